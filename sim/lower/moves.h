/* The state of a lowering, and the moves it makes: a value is brought to a layout by single moves,
 * each cached by (value, layout), so that consumers share the beginning of the way. For sim/lower
 * only.
 */
#ifndef SP_LOWER_MOVES_H
#define SP_LOWER_MOVES_H
#include "base/recent.h"
#include "lower/mislabel.h"
#include "lower/program.h"

typedef struct CacheSlot CacheSlot;
typedef struct Lower {
    Program *p;
    const Assign *a;
    Arena *arena;
    Diags *d;
    int cap_cache, n_cache;
    int stage; /* of the node that is lowered */
    int way;   /* of a pipeline: 1 where micro-batches enter at the other end */
    int *base; /* per tensor: an input or parameter before anything was asked of it */
    CacheSlot *cache;
    Recent ways;      /* that were found, rows of moves.c */
    int *scope;       /* per module and input: Val after the module's declared input, or -1 */
    bool *declared_p; /* per Val id slot: pending by declaration (output: partial, local) */
    bool declared;    /* trust: declared */
    int ring;         /* the axis round which keys and values travel; -1: none */
    bool backward;    /* a backward pass follows: what a move's adjoint is counts too */
    bool dispatched;  /* another way to dispatch than the declared one was told */
    Mislabels mislabels;
} Lower;

/* Why a move is made: on whose behalf. */
typedef struct Reason {
    const char *text;
    const char *back; /* the same of the gradient's way back; NULL: see Step */
    Loc loc;
    const char **names; /* group names per axis, or NULL */
    bool asked;         /* by a style or a key of the plan */
    bool output;        /* at a declared output: happens under trust: declared too */
    bool by_op;         /* by an op of PyTorch's, see Step */
    int module, scope;
    Phase pass;
} Reason;

/* A new value of a tensor, of no step yet; a step without operands and output. Both are the
 * program's, and stay where they are until the next one is made. */
Val *moves_value(Program *p, int tensor, const Layout *L);
Step *moves_step(Program *p, StepKind k, Phase pass);
/* A value from which ways begin: who wants it in its own layout takes it. */
void moves_begin(Lower *l, int v);
/* The same of what a module hands out: it is all that others get, so a part that was gathered is
 * not there any more as it was before, who wants it cut again has to cut it. */
void moves_begin_anew(Lower *l, int v);
/* Brings value v to a layout, over moves that others have made already where there are any; returns
 * the value that lies so. Copies whose gradients somebody sums and copies whose gradients nobody
 * does are not shared: their sums are two. Where there is no way, E0404, and v. Under trust:
 * declared what no style asks for is no move but a claim. */
int moves_to(Lower *l, int v, const Layout *to, const Reason *why);
/* A parameter on its way to `want`: over the axes on which its uses differ and the plan declares no
 * sum of its gradient, it goes there first, as a move that nobody asks for. Backward that sum then
 * comes last, on what a rank holds at rest. Returns the value that lies so. */
int moves_undeclared(Lower *l, int v, const Layout *want, const Reason *why);
/* A step that takes v for what lies as `to` says, and moves nothing. Returns that value. */
int moves_claim(Lower *l, int v, const Layout *to, const Reason *why);
/* A layout as people read it: "[B/dp, S/tp, D]", and sums that are pending; names: of groups per
 * axis, or NULL. Lives in the program's arena. */
const char *moves_place_words(const Lower *l, int v, const Layout *L, const char *const *names);
#endif
