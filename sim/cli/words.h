/* What a word means: terms of the field, keys, placements, styles, faults, recipes, ops. */
#ifndef SP_CLI_WORDS_H
#define SP_CLI_WORDS_H
#include "cli/cli.h"

typedef enum { TERM_WORD, TERM_LETTER, TERM_COLLECTIVE, TERM_BOX } TermKind;
typedef struct {
    const char *name; /* NULL ends */
    TermKind kind;
    const char *also; /* other words for it, with a blank between; or NULL */
    const char *what;
} Term;
extern const Term cli_terms[]; /* terms.c */
extern const Term cli_boxes[]; /* boxes.c: what figures say */

/* Explains a word into c->text, by every table that knows it. False with E0209 and the nearest word
 * in c->d if none does. */
bool explain_word(Cli *c, const char *word);
/* Does any table know this very word? */
bool words_know(Cli *c, const char *word);
/* All that `explain` knows by one word of letters, digits, '_', '-' and '.', codes too, with a
 * blank between: for completion. */
const char *words_plain(Arena *a, Diags *d);
/* Tables of `list keys`, `list placements`, `list terms`. */
void list_keys(Cli *c);
void list_placements(Cli *c);
void list_terms(Cli *c);
#endif
