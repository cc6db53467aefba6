/* What JSON documents are made of. A document is one object: its schema, the command and its
 * operands, then what the command has to say; docs/shardproof.schema.json says what each holds. */
#ifndef SP_CLI_DOCUMENT_H
#define SP_CLI_DOCUMENT_H
#include "cli/cli.h"

/* A document that has begun: its head is written. Ended, it goes to c->text. */
JsonWriter document_head(const Cli *c);
void document_tail(Cli *c, JsonWriter *w);
/* An array of texts. */
void document_texts(JsonWriter *w, const char *key, const char *const *s, int n);
/* Diagnostics as the trace's records have them, notes too, into the array that `w` is in. NULL:
 * none. */
void document_diagnostics(JsonWriter *w, const Diags *d);
/* The rows of a table, an array of objects, each on a line of its own. NULL: none. */
void document_rows(JsonWriter *w, const char *key, const Table *t);
#endif
