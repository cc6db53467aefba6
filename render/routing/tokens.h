/* Single tokens of a routing: which rows the ranks of the group asked for, what became of each, its
 * weight and the scores it was chosen by. Only where the run recorded them and an eye can follow.
 */
#ifndef SP_RENDER_TOKENS_H
#define SP_RENDER_TOKENS_H
#include "render/routing/routing.h"

enum { TOKENS_RANKS = 8, TOKENS_EACH = 32 }; /* ranks, and tokens of a rank, that are shown */

/* One token for one expert. */
typedef struct {
    int64_t token, expert;
    int64_t from, to; /* members; to: -1 where nobody has got it */
    bool kept;        /* a capacity had room for it */
    double weight;    /* NaN: not known */
} TokenRow;

typedef struct {
    int64_t n; /* rows that the members' tokens ask for, by member, expert, token */
    TokenRow *row;
    int64_t *n_own; /* [members] */
    int64_t **own;  /* [members][n_own]: its tokens, ascending */
    int64_t top;    /* experts that a token asks for */
    int64_t length; /* of a sequence; 0: not known */
    int64_t n_scores;
    const double *scores; /* [token][expert]; NULL: not known */
    int64_t room;         /* rows that an expert takes; 0: all */
    const char
        *inside; /* what ranks do within the experts: "AllGather over tp before, ..."; NULL */
} Tokens;

/* Those of the group that `r` shows; NULL where they are not known or too many. In the arena of the
 * call. */
const Tokens *routing_tokens(const Routing *r);
/* How many of a token's rows were kept, and the sum of their weights. */
typedef struct {
    int64_t asked, kept;
    double sum;
} TokenSum;
TokenSum tokens_sum(const Tokens *k, int64_t token);
/* "every row that was sent is there, and from each rank as many come back": what was held against
 * what, or what is missing. Sets *right. */
const char *tokens_stamp(const Routing *r, const Tokens *k, bool *right);
/* "token 13: sequence 1, position 1" */
const char *tokens_name(const Routing *r, const Tokens *k, int64_t token);
#endif
