/* A sharding rule is a string: "btd!,d->btd". Letters are the dims of the operands in order; `!`
 * after a letter says that the dim must be whole; `[bte]d` lists letters that are stored as rows;
 * `s~t` ties (ring attention). */
#ifndef SP_OPS_RULE_H
#define SP_OPS_RULE_H
#include "layout/layout.h"

/* An op has at most so many operands; an adjoint reads these and the cotangent. */
enum { RULE_OPERANDS = 5, RULE_MAX_IN = RULE_OPERANDS + 1 };
typedef struct Rule {
    int nin;
    int nl[RULE_MAX_IN];                       /* letters per operand */
    char in[RULE_MAX_IN][LAYOUT_MAX_DIMS + 1]; /* terminated */
    int nout;
    char out[LAYOUT_MAX_DIMS + 1];
    uint32_t whole; /* bit per letter a..z that must be whole */
    char tied, to; /* "s~t": where an axis cuts t it may cut s too, a node's hops behind; 0: none */
    uint32_t listed[RULE_MAX_IN + 1]; /* letters in brackets per operand; last: output */
    const char *text;
} Rule;
#define RULE_BIT(ch) (1u << ((ch) - 'a'))
/* Parses a terminated text, which `out` goes on pointing to. On failure returns false and says why
 * in *error (static text), with *at the offset in bytes. */
bool rule_parse(const char *text, Rule *out, const char **error, int *at);
/* Position of letter ch in operand i (in the output), or -1. */
int rule_find(const Rule *r, int operand, char ch);
int rule_find_out(const Rule *r, char ch);
/* The letters in brackets, of any operand or the output; 0: nothing is stored as rows. */
uint32_t rule_listed(const Rule *r);
/* Is the output an index list that no operand has yet? */
bool rule_makes_list(const Rule *r);
/* The rule of the adjoint towards operand i: out, saved operands -> in[i] (saved given as a bit
 * mask of operands). */
Rule rule_adjoint(const Rule *r, int i, uint32_t saved);
#endif
