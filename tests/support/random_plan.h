/* Random legal plans (docs/architecture.md, "Testing"): from a seed to the text of a plan. The
 * generator knows the plan language and nothing of the engine: what it writes is legal by
 * construction, or refused where plans are parsed and layouts constructed. */
#ifndef SP_TESTS_RANDOM_PLAN_H
#define SP_TESTS_RANDOM_PLAN_H
#include "base/arena.h"
#include <stdbool.h>

/* Counter-based draws (splitmix64): a seed says everything. */
typedef struct {
    uint64_t s;
} Rng;
uint64_t rng_next(Rng *r);
int rng_below(Rng *r, int n);
int rng_between(Rng *r, int lo, int hi);
bool rng_chance(Rng *r, int percent);

enum { RANDOM_MAX_AXES = 3 };
typedef enum { AXIS_FREE, AXIS_BATCH, AXIS_SEQUENCE } AxisRole;
typedef struct RandomPlan {
    Rng r; /* goes on after the plan: mutations draw from it */
    Str s; /* the plan's text */
    int n_axes, size[RANDOM_MAX_AXES];
    AxisRole role[RANDOM_MAX_AXES];
    const char *axis[RANDOM_MAX_AXES]; /* their names */
    enum { RANDOM_STYLED, RANDOM_WILD, RANDOM_MLP, RANDOM_RECIPE, RANDOM_CORE, RANDOM_FORMS } form;
    int micro;            /* batches; 0: one */
    int pass;             /* 0 forward, 1 backward, 2 train */
    const char *schedule; /* of a pipeline; NULL: there is none */
    int pp, chunks;       /* its ranks, and stages on each */
    bool by_stage;        /* it says what stages compute again */
    /* the model */
    int B, S, D, K, G, d, F, V, layers;
    int E, k;         /* experts, and how many a token goes to; 0: none */
    int shared;       /* experts that all tokens go to */
    bool norms_after; /* of what branches add, none before them */
    bool bias, qk_norm, packed, tied,
        plain; /* plain: read from files, sizes and features are the files' own */
    /* whose attention: keys and values of their own; latent (q_rank 0: q is not); Llama 4's */
    enum { RANDOM_HEADS, RANDOM_LATENT, RANDOM_LLAMA4 } attention;
    int q_rank;
    bool apart;     /* latent: scores in two parts */
    unsigned parts; /* RANDOM_EMBEDDING ... */
    int scheme;     /* column of names_table */
    /* the lines */
    bool conventional, sp, per_module;
    const char *tp;        /* the axis or group that tensor parallel styles work on, or NULL */
    int n_sizes, sizes[5]; /* mlp */
    bool named_layers;
    const char *inputs; /* a file, or NULL */
    bool own_styles, declared;
} RandomPlan;
enum {
    RANDOM_EMBEDDING = 1,
    RANDOM_BLOCKS = 2,
    RANDOM_NORM = 4,
    RANDOM_HEAD = 8,
    RANDOM_LOSS = 16
};

/* Draws plan number `seed` into g (whose text lives in the arena) and returns its text. */
const char *random_plan(Arena *a, uint64_t seed, RandomPlan *g);

/* random_lines.c: `styles`, `plan` and `recipe`, by form. */
void random_lines(RandomPlan *g);
/* What goes into `data` on behalf of the lines: the layout of the first block's input. */
void random_block_input(RandomPlan *g);
/* The indices of the axes that nothing else cuts. */
int random_free_axes(const RandomPlan *g, int *out);
#endif
