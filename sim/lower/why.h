/* The reasons of moves, as people read them. Lowering decides what is moved; this only says why.
 * Refuses to change a program. Texts are literals or live in the program's arena. */
#ifndef SP_LOWER_WHY_H
#define SP_LOWER_WHY_H
#include "lower/program.h"

/* Why value v is brought to `want` at a declared input of the module, in at most a few words. */
const char *why_input(const Program *p, int module, int v, const Layout *want);
/* Why value v is brought to `want` at a declared output of the module. */
const char *why_output(const Program *p, int module, int v, const Layout *want);
/* Why operand v of node n has to lie as `want`. *asked: does a style or a key of the plan ask for
 * it? */
const char *why_operand(const Program *p, const GNode *n, int v, const Layout *want, bool *asked);
/* Of a whole operand of an op on rows, are only the tokens wanted that the rows are of? */
bool why_tokens_of_rows(const Program *p, const GNode *n, int v, const Layout *want);
#endif
