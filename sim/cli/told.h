/* What `explain` has to say: sections of fields, for people and as a JSON document. A section is
 * about one thing: a value, a step, a word. The document has beside them the records of these
 * things, in the form that `shapes`, `params` and `comms` give them. */
#ifndef SP_CLI_TOLD_H
#define SP_CLI_TOLD_H
#include "cli/cli.h"

/* How a field stands in text: its name and text in columns, or the text alone, as a line or further
 * in. */
typedef enum { TOLD_COLUMN, TOLD_LINE, TOLD_DEEP } ToldForm;
typedef struct {
    const char *name, *text;
    ToldForm form;
} ToldField;
typedef struct {
    const char *kind;  /* "value", "style", "code" */
    const char *name;  /* what it is about */
    const char *title; /* for people */
    int n, cap;
    ToldField *field;
} ToldSection;
typedef struct Told {
    Arena *a;
    int n, cap;
    ToldSection *section;
    int n_steps, cap_steps;
    int *step; /* those that it is about */
} Told;

/* A new last section. Texts are kept, not copied. */
void told_section(Told *told, const char *kind, const char *name, const char *title);
/* It is about a step too. */
void told_step(Told *told, int step);
/* A field of the last section; an empty text is left out. A name that is empty goes on with the
 * field before. */
void told_field(Told *told, ToldForm form, const char *name, const char *text);
/* All of it into c->text, for people. */
void told_text(Cli *c, const Told *told);
/* The document into c->text: the sections; where `t` is given, the rows of it that are about them;
 * under `diagnostics` what was found in `d` (NULL: nothing). */
void told_document(Cli *c, const Told *told, const Trace *t, const Diags *d);
#endif
