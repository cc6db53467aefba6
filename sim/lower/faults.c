/* Planted mistakes: rows that rewrite what one lowered step does, its act. What is declared of it
 * stays as it was. */
#include "lower/program.h"
#include "base/text.h"
#include "ops/op.h"
#include "assign/suggest.h"
#include "assign/sums.h"
#include <stdlib.h>
#include <string.h>

static bool is_reduction(const Step *s) {
    return s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_REDUCE_SCATTER;
}
static bool acts(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && mesh_size(p->mesh, &s->move.axes) > 1 &&
           (move_communicates(s->move.kind) || s->move.kind == MOVE_SLICE);
}
/* ---- what is done instead ---- */
static void do_drop(Act *a, const PlanFault *f) {
    (void)f;
    a->times = 0;
}
static void do_double(Act *a, const PlanFault *f) {
    (void)f;
    a->times = 2;
}
static void do_floor(Act *a, const PlanFault *f) {
    (void)f;
    a->floor = true;
}
static void do_local(Act *a, const PlanFault *f) {
    (void)f;
    a->positions = AT_LOCAL;
}
static void do_contiguous(Act *a, const PlanFault *f) {
    (void)f;
    a->positions = AT_CONTIGUOUS;
}
static void do_unweighted(Act *a, const PlanFault *f) {
    (void)f;
    a->unweighted = true;
}
static Combine combine_of(const char *kind) {
    return !strcmp(kind, "avg") || !strcmp(kind, "average") ? COMBINE_AVG : COMBINE_MAX;
}
static void do_kind(Act *a, const PlanFault *f) { /* a slice takes from the own part alone */
    if (!strcmp(f->kind, "slice")) a->times = 0;
    else a->combine = combine_of(f->kind);
}
static void do_dim(Act *a, const PlanFault *f) { a->dim = (int)f->dim; }
static void do_offset(Act *a, const PlanFault *f) { a->shift = (int)f->offset; }
static void do_scale(Act *a, const PlanFault *f) { a->scale *= f->scale; }
static void do_skip(Act *a, const PlanFault *f) {
    (void)f;
    a->times = 0;
    a->absent = true;
}
static void do_counts(Act *a, const PlanFault *f) {
    (void)f;
    a->counts = true;
}
static void read_nest(ReadAct *a, const PlanFault *f) {
    (void)f;
    a->nest = true;
}
static void read_reseed(ReadAct *a, const PlanFault *f) {
    (void)f;
    a->apart = true;
}
static void read_offset(ReadAct *a, const PlanFault *f) { a->shift = (int)f->offset; }
Act *act_rewrite(Program *p, Step *s, const char *text, Loc loc) {
    Act *a = ARENA_NEW(p->arena, Act);
    *a = act_of(s);
    s->act = a;
    s->planted_at = loc;
    s->fault = s->fault ? arena_printf(p->arena, "%s, %s", s->fault, text) : text;
    return a;
}

/* Named faults of `--fault NAME`: the first step that the row fits. */
static const struct {
    const char *name, *what;
    MoveKind kind;
    void (*act)(Act *a, const PlanFault *f);
    PlanFault how;
} rows[] = {
    {"drop-reduction",
     "the first all-reduce passes the local part on",
     MOVE_ALL_REDUCE,
     do_drop,
     {0}},
    {"drop-reduce-scatter",
     "the first reduce-scatter keeps the own part without adding",
     MOVE_REDUCE_SCATTER,
     do_drop,
     {0}},
    {"drop-gather", "the first all-gather repeats the own part", MOVE_ALL_GATHER, do_drop, {0}},
    {"average",
     "the first all-reduce divides by the number of ranks",
     MOVE_ALL_REDUCE,
     do_kind,
     {.kind = "avg"}},
    {"max-for-sum",
     "the first all-reduce takes the maximum",
     MOVE_ALL_REDUCE,
     do_kind,
     {.kind = "max"}},
    {"double-reduction", "the first all-reduce is done twice", MOVE_ALL_REDUCE, do_double, {0}},
    {"wrong-block",
     "the first reduce-scatter delivers the block of the next rank",
     MOVE_REDUCE_SCATTER,
     do_offset,
     {.offset = 1}},
};
const char *const *fault_names(Arena *arena, const char *const **what) {
    int n = (int)(sizeof rows / sizeof rows[0]);
    const char **names = ARENA_ARRAY(arena, const char *, n + 1),
               **texts = ARENA_ARRAY(arena, const char *, n + 1);
    for (int i = 0; i < n; i++) {
        names[i] = rows[i].name;
        texts[i] = rows[i].what;
    }
    if (what) *what = texts;
    return names;
}
static bool by_name(Program *p, Diags *d, const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name)) continue;
        for (int k = 0; k < p->ns; k++) {
            Step *s = &p->step[k];
            if (!acts(p, s) || s->move.kind != rows[i].kind) continue;
            if (s->fault) {
                diag_error(d, "E0215", s->planted_at, "leave one of them out",
                           "fault '%s' fits a step for which the plan plants one already (%s)",
                           name, s->fault);
                return false;
            }
            rows[i].act(act_rewrite(p, s, rows[i].name, s->loc), &rows[i].how);
            return true;
        }
        diag_error(d, "E0209", diag_nowhere,
                   "`list faults` says what each needs, `comms` what this plan has",
                   "fault '%s' fits no step of this plan", name);
        return false;
    }
    const char *near = diag_nearest(name, fault_names(p->arena, NULL));
    diag_error(d, "E0212", diag_nowhere, near ? near : "see `shardproof list faults`",
               "unknown fault '%s'", name);
    return false;
}
static bool is_op(const Step *s) { return s->kind == ST_OP || s->kind == ST_ADJOINT; }
/* Does any axis of more than one rank leave the value whole? */
static bool has_copies(const Program *p, const Val *v, const PlanFault *f) {
    (void)f;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->mesh->axis[a].size > 1 && layout_where(&v->L, a) < 0) return true;
    return false;
}
static bool nested(const Program *p, const Val *v, const PlanFault *f) {
    (void)p, (void)f;
    for (int d = 0; d <= v->L.ndim; d++)
        if (v->L.n[d] > 1) return true;
    return false;
}
/* How many blocks a source is cut into. */
static int64_t source_blocks(const Program *p, const Val *v) {
    int64_t n = 1;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (layout_where(&v->L, a) >= 0) n *= p->mesh->axis[a].size;
    return n;
}
static bool another_block(const Program *p, const Val *v, const PlanFault *f) {
    return f->offset % source_blocks(p, v) != 0;
}
static bool same_shape(const GTensor *a, const GTensor *b) {
    bool same = a->nd == b->nd;
    for (int d = 0; same && d < a->nd; d++) same = a->size[d] == b->size[d];
    return same;
}
/* Would the act be another one? What leaves a step as it is proves nothing. */
static bool can_drop(const Program *p, const Step *s, const PlanFault *f) {
    (void)f;
    if (!is_op(s)) return s->move.kind != MOVE_ID;
    return s->in[0] >= 0 &&
           same_shape(&p->graph->t[p->val[s->in[0]].tensor], &p->graph->t[p->val[s->out].tensor]);
}
static bool can_double(const Program *p, const Step *s, const PlanFault *f) {
    (void)p, (void)f;
    return is_reduction(s);
}
/* The dim that the move's axes cut, before or after it; -1: none. */
static int moved_dim(const Step *s) {
    int a = s->move.axes.n ? s->move.axes.a[0] : -1;
    if (a < 0) return -1;
    int from = layout_where(&s->move.from, a);
    return from >= 0 ? from : layout_where(&s->move.to, a);
}
/* Is anything left over where the size of that dim is divided without remainder? Of what is cut
 * along flattened dims nothing is dropped. */
static bool leaves_rest(const Program *p, const Step *s, const PlanFault *f) {
    const Layout *from = &s->move.from, *to = &s->move.to;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    int a = s->move.axes.n ? s->move.axes.a[0] : -1;
    const Layout *cut = a >= 0 && layout_where(to, a) >= 0 ? to : from;
    int d = a >= 0 ? layout_where(cut, a) : -1; /* an all-to-all: what it cuts */
    (void)f;
    if (d < 0 || d >= t->nd || from->n[from->ndim] || to->n[to->ndim]) return false;
    AxisList cutters = layout_dim_axes(cut, d);
    return t->size[d] % mesh_size(p->mesh, &cutters) != 0;
}
static bool other_kind(const Program *p, const Step *s, const PlanFault *f) {
    bool maximum = s->move.kind == MOVE_ALL_REDUCE_MAX, slice = !strcmp(f->kind, "slice");
    (void)p;
    return is_reduction(s) || (maximum && (slice || combine_of(f->kind) != COMBINE_MAX));
}
static bool other_axis(const Program *p, const Step *s, const PlanFault *f) {
    return s->move.kind != MOVE_ID &&
           (s->move.axes.n != 1 || s->move.axes.a[0] != mesh_axis(p->mesh, f->axis));
}
/* The dim that is planted; -1 is the last. */
static int64_t dim_of(const Step *s, const PlanFault *f) {
    return f->dim < 0 ? f->dim + s->move.from.ndim : f->dim;
}
static bool other_dim(const Program *p, const Step *s, const PlanFault *f) {
    int64_t dim = dim_of(s, f);
    (void)p;
    return moved_dim(s) >= 0 && dim >= 0 && dim != moved_dim(s) && dim < s->move.from.ndim;
}
static bool other_member(const Program *p, const Step *s, const PlanFault *f) {
    return moved_dim(s) >= 0 && f->offset % mesh_size(p->mesh, &s->move.axes) != 0;
}
static bool takes_part(const Program *p, const Step *s, const PlanFault *f) {
    (void)p;
    return f->rank >= 0 && move_communicates(s->move.kind) && !move_relocates(s->move.kind);
}
static bool sends_rows(const Program *p, const Step *s, const PlanFault *f) {
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    (void)f;
    return t->listed && !graph_is_list(t) && move_gathers(s->move.kind);
}
/* Indices are no numbers that a factor could make larger. */
static bool has_numbers(const Program *p, const Step *s, const PlanFault *f) {
    (void)f;
    return !p->graph->t[p->val[s->out].tensor].is_int;
}
static bool asks(const Program *p, const Step *s, const PlanFault *f) {
    (void)f;
    return is_op(s) && p->graph->node[s->node].op->asks;
}
static bool weighs(const Program *p, const Step *s, const PlanFault *f) {
    (void)f;
    return s->kind == ST_OP && p->graph->node[s->node].op->unweighted;
}
/* What `faults:` can do, and to what: moves, ops and adjoints, inputs and parameters as they lie at
 * rest. */
enum { ON_MOVE = 1, ON_OP = 2, ON_SOURCE = 4 };
/* What of an act is rewritten: two mistakes of one step may not want the same, or one of them would
 * be lost. Factors multiply; of a step that is left out nothing is left to change. */
enum {
    OF_TIMES = 1,
    OF_TAIL = 2,
    OF_BLOCKS = 4,
    OF_PLACES = 8,
    OF_GROUP = 16,
    OF_DIM = 32,
    OF_FACTOR = 64,
    OF_ALL = 127
};
typedef struct {
    const char *doing, *written;
    unsigned on, of;
    const char *what, *needs;
    void (*act)(Act *a, const PlanFault *f);
    void (*read)(ReadAct *a, const PlanFault *f);
    /* can it be done to that step, or that source? NULL: to any */
    bool (*step)(const Program *p, const Step *s, const PlanFault *f);
    bool (*source)(const Program *p, const Val *v, const PlanFault *f);
    bool alone; /* of a move: by one rank too, with `rank: R` */
} Doing;
static const Doing doings[] = {
    {"drop", "do: drop", ON_MOVE | ON_OP, OF_ALL,
     "a move or op does nothing: the own part, or its first operand, goes on as it is",
     "'drop' needs a move, or an op whose first operand has the shape of its result", do_drop, NULL,
     can_drop, NULL, true},
    {"double", "do: double", ON_MOVE, OF_TIMES, "a reduction is done twice",
     "'double' needs a reduction", do_double, NULL, can_double, NULL, true},
    {"floor", "do: floor", ON_MOVE, OF_TAIL,
     "sizes are divided without remainder: what is left over does not arrive",
     "'floor' needs a move of a dim whose size the ranks that cut it do not divide", do_floor, NULL,
     leaves_rest, NULL, true},
    {"local", "do: local", ON_OP, OF_PLACES,
     "positions or ids count from 0 on every rank instead of globally",
     "'local' needs an op that asks for positions or ids (RoPE, attention, lookups)", do_local,
     NULL, asks, NULL, false},
    {"contiguous", "do: contiguous", ON_OP, OF_PLACES,
     "positions are those of contiguous blocks, whatever the order of the data",
     "'contiguous' needs an op that asks for positions or ids (RoPE, attention, lookups)",
     do_contiguous, NULL, asks, NULL, false},
    {"unweighted", "do: unweighted", ON_OP, OF_PLACES,
     "partial results of attention are added as they are: their lse does not rescale them",
     "'unweighted' needs a merge of partial results (`context_parallel: {mode: ring}`)",
     do_unweighted, NULL, weighs, NULL, false},
    {"nest", "do: nest", ON_SOURCE, OF_DIM,
     "a parameter's shard is that of the other order of the axes that cut one dim",
     "'nest' needs a parameter or input of which two axes cut one dim", NULL, read_nest, NULL,
     nested, false},
    {"reseed", "do: reseed", ON_SOURCE, OF_TAIL,
     "ranks that should read the same data read different data",
     "'reseed' needs an input or parameter that some axis does not cut", NULL, read_reseed, NULL,
     has_copies, false},
    {"kind", "kind: avg|max|slice", ON_MOVE, OF_TIMES, "another kind of reduction",
     "'kind' needs a reduction, and another kind than its own", do_kind, NULL, other_kind, NULL,
     true},
    {"axis", "axis: AXIS", ON_MOVE, OF_GROUP, "the group of another axis",
     "'axis' needs a move between ranks, and another axis than its own", NULL, NULL, other_axis,
     NULL, false},
    {"dim", "dim: D", ON_MOVE, OF_DIM,
     "another dim, counted as the factors of a shape: of q [B, S, H*d] 2 to 4 are KV heads, "
     "queries per KV head and "
     "head size; -1 is the last",
     "'dim' needs a move of a dim that its axes cut, and another dim of the same value", do_dim,
     NULL, other_dim, NULL, false},
    {"offset", "offset: N", ON_MOVE | ON_SOURCE, OF_BLOCKS, "the block of the rank N after",
     "'offset' needs a move, an input or a parameter that some axis cuts, and the block of another "
     "rank",
     do_offset, read_offset, other_member, another_block, true},
    {"skip", "do: skip, rank: R", ON_MOVE, OF_ALL,
     "one rank takes no part in a collective: it goes on with its own part, which the others lack; "
     "in a framework they would wait for it",
     "'skip' needs a collective, and `rank`, the one that takes no part", do_skip, NULL, takes_part,
     NULL, true},
    {"counts", "do: counts", ON_MOVE, OF_BLOCKS,
     "rows that arrive are told apart by the counts of the next rank",
     "'counts' needs an exchange of rows", do_counts, NULL, sends_rows, NULL, true},
    {"scale", "scale: X", ON_MOVE | ON_OP, OF_FACTOR, "the result times X",
     "'scale' needs a result in numbers, which indices are not", do_scale, NULL, has_numbers, NULL,
     true},
};
enum { N_DOINGS = sizeof doings / sizeof doings[0] };
const char *const *fault_edits(Arena *arena, const char *const **what) {
    const char **names = ARENA_ARRAY(arena, const char *, N_DOINGS + 1);
    const char **texts = ARENA_ARRAY(arena, const char *, N_DOINGS + 1);
    for (int i = 0; i < N_DOINGS; i++) names[i] = doings[i].written, texts[i] = doings[i].what;
    *what = texts;
    return names;
}

/* The step that `at` names: "reduce_scatter of layers.0.o_proj", a step number, or a value: its
 * last move that acts, or the op that makes it. "recomputed ..." is the step as it is done again in
 * the backward pass. */
static Step *find_step(Program *p, const char *at, unsigned on) {
    static const char again[] = "recomputed ";
    bool recompute = !strncmp(at, again, sizeof again - 1);
    if (recompute) at += sizeof again - 1;
    Arena *tmp = arena_new();
    Step *found = NULL;
    char *end;
    long id = strtol(at, &end, 10);
    for (int k = 0; k < p->ns && !found && on & ON_MOVE; k++) {
        Step *s = &p->step[k];
        if (s->kind != ST_MOVE || s->recompute < recompute) continue;
        if ((!*end && id == k) || !strcmp(step_name(p, s, tmp), at)) found = s;
    }
    for (int k = 0; k < p->ns && !found && on & ON_MOVE; k++) {
        Step *s = &p->step[k];
        if (!acts(p, s) || s->recompute < recompute) continue;
        bool alias = !p->val[s->out].cot && p->val[s->out].tensor == graph_find(p->graph, at);
        if (alias || !strcmp(strstr(step_name(p, s, tmp), " of ") + 4, at)) found = s;
    }
    for (int k = 0; k < p->ns && !found && on & ON_OP; k++) {
        Step *s = &p->step[k];
        if (!is_op(s) || s->recompute < recompute) continue;
        if ((!*end && id == k) || !strcmp(step_name(p, s, tmp), at)) found = s;
    }
    arena_free(tmp);
    return found;
}
/* The input or parameter of that name, as it lies at rest; NULL: there is none. */
static Val *find_source(Program *p, const char *at) {
    int t = graph_find(p->graph, at);
    for (int i = 0; i < p->graph->nt && t < 0; i++)
        if (p->graph->t[i].plan_name && !strcmp(p->graph->t[i].plan_name, at)) t = i;
    return t >= 0 && p->first[t] >= 0 && p->val[p->first[t]].step < 0 ? &p->val[p->first[t]] : NULL;
}
/* "shift of VALUE", which `comms` shows of each hop of a ring: the first hop's name, which has its
 * number; NULL: no such hop. */
static const char *first_hop(const Program *p, const char *at) {
    const char *value = strstr(at, " of "), *kind = move_name(MOVE_SHIFT);
    size_t n = strlen(kind);
    if (!value || strncmp(at, kind, n) != 0 || at + n != value) return NULL;
    for (int k = 0; k < p->ns; k++) {
        const Step *s = &p->step[k];
        if (s->kind != ST_MOVE || s->move.kind != MOVE_SHIFT) continue;
        const char *name = step_name(p, s, p->arena);
        if (!strcmp(strstr(name, " of "), value)) return name;
    }
    return NULL;
}
/* ---- names that people shorten ---- */
/* Does the tensor's name end so, or that of a module whose result it is? In the plan's scheme or
 * the checkpoint's. */
static bool tensor_ends_so(const Graph *g, int t, const char *name) {
    if (text_names(g->t[t].name, name) || text_names(g->t[t].plan_name, name)) return true;
    for (int m = 0; m < g->nm; m++)
        if (g->module[m].output == t &&
            (text_names(g->module[m].path, name) || text_names(g->module[m].hf_path, name)))
            return true;
    return false;
}
/* What `at` means where nothing is called so: "all_reduce of attention.wo", "grad.o_proj" by the
 * end of the name. NULL: no name ends so, or several do; then *several has the first of them. */
static const char *by_end(Program *p, const char *at, unsigned on, const char **several) {
    enum { SHOWN = 4 };
    const char *of = strstr(at, " of "), *name = of ? of + 4 : at, *found = NULL;
    bool grad = !strncmp(name, "grad.", 5);
    int n = 0;
    Str all = str_new(p->arena);
    for (int t = 0; t < p->graph->nt; t++) {
        if (!tensor_ends_so(p->graph, t, name + (grad ? 5 : 0))) continue;
        const char *is = arena_printf(p->arena, "%.*s%s%s", (int)(name - at), at,
                                      grad ? "grad." : "", graph_name(&p->graph->t[t]));
        if (!find_step(p, is, on) && !(on & ON_SOURCE && find_source(p, is))) continue;
        if (n++ < SHOWN) str_addf(&all, "%s%s", n > 1 ? ", " : "", is);
        found = is;
    }
    *several =
        n > 1 ? arena_printf(p->arena, "%d names end so: %s%s", n, all.s, n > SHOWN ? ", .." : "")
              : NULL;
    return n == 1 ? found : NULL;
}
/* Names that a fault could have, each once. */
typedef struct {
    const Program *p;
    const char *at;   /* what was written */
    const char **all; /* as records have them */
    int n, cap;
    const char **said; /* those and the ends by which people call them, after what stands before the
                          name in `at`: "all_reduce of wo", "grad.wo" */
    int n_said, cap_said;
} Possible;
/* As many last components of a path as the name has. */
static const char *tail_like(const char *path, const char *name) {
    int dots = 0;
    for (; *name; name++) dots += *name == '.';
    for (const char *c = path + strlen(path); c > path; c--)
        if (c[-1] == '.' && dots-- == 0) return c;
    return path;
}
static void add_said(Possible *x, const char *before, const char *name) {
    const char *said = arena_printf(x->p->arena, "%s%s", before, name);
    for (int i = 0; i < x->n_said; i++)
        if (!strcmp(x->said[i], said)) return;
    *ARENA_PUSH(x->p->arena, x->said, x->n_said, x->cap_said) = said;
}
static void add_possible(Possible *x, const char *name, int tensor, bool cotangent) {
    const char *of = strstr(x->at, " of "), *at = of ? of + 4 : x->at, *own = strstr(name, " of ");
    const bool grad = !strncmp(at, "grad.", 5);
    for (int i = 0; i < x->n; i++)
        if (!strcmp(x->all[i], name)) return;
    *ARENA_PUSH(x->p->arena, x->all, x->n, x->cap) = name;
    add_said(x, "", name);
    if (tensor < 0 || grad != cotangent || !of != !own) return;
    const char *before = arena_printf(x->p->arena, "%.*s%s", own ? (int)(own + 4 - name) : 0, name,
                                      grad ? "grad." : "");
    const Graph *g = x->p->graph;
    at += grad ? 5 : 0;
    add_said(x, before, tail_like(graph_name(&g->t[tensor]), at));
    for (int m = 0; m < g->nm; m++)
        if (g->module[m].output == tensor && g->module[m].path)
            add_said(x, before, tail_like(g->module[m].path, at));
}
static Possible possible_names(const Program *p, const char *at, unsigned on) {
    Possible x = {.p = p, .at = at};
    bool whole = strstr(at, " of ") != NULL;
    for (int k = 0; k < p->ns; k++) {
        const Step *s = &p->step[k];
        if (!(on & ON_MOVE && acts(p, s)) && !(on & ON_OP && is_op(s))) continue;
        const char *name = step_name(p, s, p->arena), *of = strstr(name, " of ");
        add_possible(&x, of && !whole ? of + 4 : name, p->val[s->out].tensor, p->val[s->out].cot);
    }
    for (int t = 0; on & ON_SOURCE && t < p->graph->nt; t++)
        if (p->first[t] >= 0 && p->val[p->first[t]].step < 0)
            add_possible(&x, graph_name(&p->graph->t[t]), t, false);
    return x;
}
/* "did you mean 'wo' or 'w2'?", "near are 'wq', 'wk', .."; where no name is near, the first that
 * there are. NULL: there is none. */
static const char *names_hint(const Program *p, const char *at, unsigned on) {
    enum { NEAR = 8, SHOWN = 4 };
    Possible x = possible_names(p, at, on);
    *ARENA_PUSH(p->arena, x.said, x.n_said, x.cap_said) = NULL;
    const char *found[NEAR];
    const int n_found = diag_nearest_all(at, x.said, found, NEAR);
    Str s = str_new(p->arena);
    for (int i = 0; i < n_found; i++)
        str_addf(&s, "%s'%s'", !i ? "" : n_found < 3 ? " or " : ", ", found[i]);
    if (n_found)
        return arena_printf(p->arena, n_found < 3 ? "did you mean %s?" : "near are %s", s.s);
    for (int i = 0; i < x.n && i < SHOWN; i++) str_addf(&s, "%s%s", i ? ", " : "", x.all[i]);
    return x.n ? arena_printf(p->arena, "there %s %s%s", x.n > 1 ? "are" : "is", s.s,
                              x.n > SHOWN ? arena_printf(p->arena, " and %d more", x.n - SHOWN)
                                          : "")
               : NULL;
}
static void not_found(const Program *p, Diags *d, const PlanFault *f, unsigned on,
                      const char *several) {
    const char *hop = first_hop(p, f->step), *hint = NULL;
    if (several) {
        diag_error(d, "E0209", f->loc, several, "'%s' is more than one name's end", f->step);
        return;
    }
    if (hop) hint = arena_printf(p->arena, "a hop has its number: '%s'", hop);
    if (!hint) hint = names_hint(p, f->step, on);
    const bool sources = on == ON_SOURCE, moves = on & ON_MOVE;
    diag_error(d, "E0209", f->loc,
               hint      ? hint
               : sources ? "see `shardproof params`, `shapes`"
               : moves   ? "this plan moves nothing: see `shardproof comms`"
                         : "name the value that the op makes (see `shardproof shapes`)",
               sources ? "no input or parameter is called '%s'"
               : moves ? "no move is called '%s'"
                       : "no op makes '%s'",
               f->step);
}
/* "scale: 4": what is done, as records and pictures say it. */
static const char *doing_text(Arena *a, const PlanFault *f, const char *doing) {
    if (!strcmp(doing, "kind")) return arena_printf(a, "kind: %s", f->kind);
    if (!strcmp(doing, "axis") && f->axis) return arena_printf(a, "axis: %s", f->axis);
    if (!strcmp(doing, "dim")) return arena_printf(a, "dim: %lld", (long long)f->dim);
    if (!strcmp(doing, "offset")) return arena_printf(a, "offset: %lld", (long long)f->offset);
    if (strcmp(doing, "scale")) return arena_strdup(a, doing);
    Str s = str_new(a);
    str_add(&s, "scale: ");
    text_add_real(&s, f->scale);
    return s.s;
}
static const char *written(Arena *a, const PlanFault *f, const char *doing) {
    const char *text = doing_text(a, f, doing);
    return f->rank < 0 ? text : arena_printf(a, "%s on rank %lld", text, (long long)f->rank);
}
/* What other entries have rewritten of a step, and of a source. */
static unsigned rewritten(const Step *s) {
    if (!s->act) return 0;
    Act is = *s->act, declared = act_declared(&s->move);
    bool other_sum = is.combine != declared.combine, elsewhere = act_elsewhere(&s->move, &is);
    return !is.times
               ? OF_ALL
               : (is.times > 1 || other_sum ? OF_TIMES : 0) | (is.floor ? OF_TAIL : 0) |
                     (is.shift || is.counts ? OF_BLOCKS : 0) |
                     (is.positions || is.unweighted ? OF_PLACES : 0) | (elsewhere ? OF_GROUP : 0) |
                     (is.dim >= 0 ? OF_DIM : 0) | (is.scale != 1 ? OF_FACTOR : 0);
}
static unsigned read_rewritten(const Val *v) {
    const ReadAct *a = v->act;
    return a ? (a->nest ? OF_DIM : 0) | (a->apart ? OF_TAIL : 0) | (a->shift ? OF_BLOCKS : 0) : 0;
}
/* Would one of two mistakes be lost? `was` is what others have rewritten, `by` their words. */
static bool taken(Diags *d, const PlanFault *f, const Doing *row, unsigned was, const char *by) {
    unsigned of = row->of, both = was & of;
    if (f->kind && !strcmp(f->kind, "slice")) both = was;
    if (!both || (was == OF_FACTOR && of == OF_FACTOR)) return false;
    diag_error(d, "E0215", f->loc, "leave one of them out",
               "'%s' and '%s' are both planted in %s: one of the two would not act", by, row->doing,
               f->step);
    return true;
}
static void plant_read(Program *p, Val *v, const Doing *row, const PlanFault *f,
                       const PlanFault *how) {
    ReadAct *a = ARENA_NEW(p->arena, ReadAct);
    if (v->act) *a = *v->act;
    row->read(a, how);
    v->act = a;
    v->planted_at = f->loc;
    const char *text = written(p->arena, f, row->doing);
    v->fault = v->fault ? arena_printf(p->arena, "%s, %s", v->fault, text) : text;
}
/* Is the rank one of those that do the move? Of a pipeline those of its stage; all, where it goes
 * over stages. */
static bool does(const Program *p, const Step *s, int64_t rank) {
    const Stages *x = p->assign->stages;
    if (!x || mesh_axes_set(&s->move.axes) >> x->axis & 1) return true;
    int64_t at = mesh_coord(p->mesh, rank, x->axis), home = x->home[s->stage];
    return at == home || (x->schedule->both_ways && at == x->schedule->ranks - 1 - home);
}
/* Can a rank do it alone, and is there that rank? `s`: the move; NULL: it is none. */
static bool one_rank(const Program *p, Diags *d, const Doing *row, const PlanFault *f,
                     const Step *s) {
    if (f->rank < 0 || f->rank >= p->mesh->nranks)
        diag_error(d, "E0206", f->rank_loc, NULL, "there is no rank %lld: ranks are 0 to %lld",
                   (long long)f->rank, (long long)p->mesh->nranks - 1);
    else if (!row->alone || !s)
        diag_error(d, "E0215", f->rank_loc, "leave `rank` out",
                   "'%s' is done by all ranks or by none; one alone can do that of a move which "
                   "`list faults` gives a rank",
                   row->doing);
    else if (!does(p, s, f->rank))
        diag_error(d, "E0206", f->rank_loc,
                   arena_printf(p->arena, "a rank at %s=%d",
                                p->mesh->axis[p->assign->stages->axis].name,
                                p->assign->stages->home[s->stage]),
                   "rank %lld has no part in %s: it has another stage", (long long)f->rank,
                   step_name(p, s, p->arena));
    else return true;
    return false;
}
/* Where micro-batches go both ways a stage is there twice: what has the step's name in the other
 * way. A step by its number is that one alone. NULL: there is none. */
static Step *other_way(Program *p, const PlanFault *f, const Step *s) {
    const Stages *x = p->assign->stages;
    char *end;
    strtol(f->step, &end, 10);
    if (!x || x->ways < 2 || !*end) return NULL;
    Arena *tmp = arena_new();
    const char *name = step_name(p, s, tmp);
    Step *found = NULL;
    for (int k = 0; k < p->ns && !found; k++) {
        Step *t = &p->step[k];
        if (t->kind == s->kind && t->recompute == s->recompute && t->operand == s->operand &&
            stages_way_of(x, t->stage) != stages_way_of(x, s->stage) &&
            !strcmp(step_name(p, t, tmp), name))
            found = t;
    }
    arena_free(tmp);
    return found;
}
static void plant_step(Program *p, Step *s, const Doing *row, const PlanFault *f) {
    const char *doing = f->doing ? f->doing : f->kind ? "kind" : f->axis ? "axis" : "scale";
    int64_t blocks = mesh_size(p->mesh, &s->move.axes);
    PlanFault how = *f;
    how.offset = (f->offset % blocks + blocks) % blocks; /* -1 is the last */
    Act *a = act_rewrite(p, s, written(p->arena, f, doing), f->loc);
    how.dim = dim_of(s, f);
    a->alone = f->rank + 1;
    if (row->act) row->act(a, &how);
    else a->axes = (AxisList){.n = 1, .a = {(uint8_t)mesh_axis(p->mesh, f->axis)}};
}
static bool one_fault(Program *p, Diags *d, const PlanFault *f) {
    const char *doing = f->doing ? f->doing : f->kind ? "kind" : f->axis ? "axis" : "scale";
    const Doing *row = doings;
    while (row < doings + N_DOINGS - 1 && strcmp(row->doing, doing)) row++;
    const char *at = f->step, *several = NULL;
    Step *s = find_step(p, at, row->on);
    Val *v = !s && row->on & ON_SOURCE ? find_source(p, at) : NULL;
    if (!s && !v && (at = by_end(p, f->step, row->on, &several))) {
        s = find_step(p, at, row->on);
        v = !s && row->on & ON_SOURCE ? find_source(p, at) : NULL;
    }
    if (!s && !v) {
        not_found(p, d, f, row->on, several);
        return false;
    }
    if (f->axis && mesh_axis(p->mesh, f->axis) < 0) {
        diag_error(d, "E0204", f->loc, assign_axis_nearest(p->mesh, f->axis), "unknown axis '%s'",
                   f->axis);
        return false;
    }
    if (s ? row->step && !row->step(p, s, f) : !row->source(p, v, f)) {
        diag_error(d, "E0206", f->loc, NULL, "%s; %s is none", row->needs, f->step);
        return false;
    }
    if (f->rank_loc.file &&
        !one_rank(p, d, row, f,
                  s && s->kind == ST_MOVE && !move_relocates(s->move.kind) ? s : NULL))
        return false;
    if (taken(d, f, row, s ? rewritten(s) : read_rewritten(v), s ? s->fault : v->fault))
        return false;
    if (v) {
        int64_t blocks = source_blocks(p, v);
        PlanFault how = *f;
        how.offset = (f->offset % blocks + blocks) % blocks; /* -1 is the last */
        plant_read(p, v, row, f, &how);
        return true;
    }
    Step *twin = other_way(p, f, s);
    plant_step(p, s, row, f); /* of one rank: acts where that has the stage */
    if (twin) plant_step(p, twin, row, f);
    return true;
}
bool apply_faults(Program *p, const Plan *plan, Diags *d, const char *fault) {
    bool ok = true;
    for (int i = 0; i < plan->n_faults; i++) ok &= one_fault(p, d, &plan->faults[i]);
    if (fault) ok &= by_name(p, d, fault);
    return ok;
}

/* ---- what changes nothing ---- */
const char *fault_idle(const Program *p, const Step *s) {
    if (!s->act || !s->fault) return NULL;
    Act a = *s->act;
    bool move = s->kind == ST_MOVE;
    bool same = a.times == 1 && a.scale == 1 && !a.shift && !a.floor && !a.counts &&
                a.positions == AT_GLOBAL && a.dim < 0 && !a.unweighted;
    if (!move) return same ? "it does what is due" : NULL;
    Act due = act_declared(&s->move);
    same &= a.kind == due.kind && a.combine == due.combine && !act_elsewhere(&s->move, &a);
    if (same) return "it does what is due";
    bool alone = mesh_size(p->mesh, &a.axes) == 1 && mesh_size(p->mesh, &s->move.axes) == 1;
    return alone && a.scale == 1 ? "its group is one rank" : NULL;
}

/* ---- gradients: ---- */
/* One more sum over every axis on which the gradient is whole and nothing was due: n equal values.
 */
static void sum_again(Program *p, int tensor, Loc loc) {
    int g = p->grad[tensor];
    if (g < 0) return;
    AxisList axes = {0};
    uint32_t due = 0;
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (s->kind != ST_MOVE || !is_reduction(s) || p->val[s->out].tensor != tensor) continue;
        due |= mesh_axes_set(&s->move.axes);
    }
    for (int x = 0; x < p->mesh->naxes; x++)
        if (p->val[g].L.type[x] == TY_I && !(due >> x & 1) && p->mesh->axis[x].size > 1)
            axes.a[axes.n++] = (uint8_t)x;
    if (!axes.n) return;
    Val *w = program_add_val(p, &p->val[g]);
    Step blank = step_blank(ST_MOVE, PHASE_GRADIENTS), *s = program_add_step(p, &blank, w->id);
    s->nin = 1;
    s->in[0] = g;
    s->move = (Move){.from = w->L, .to = w->L, .kind = MOVE_ALL_REDUCE, .axes = axes};
    s->why = "the plan's `gradients: sum`: a sum that is not due";
    Act *a = act_rewrite(p, s, "gradients: sum", loc); /* its layouts ask for nothing */
    a->kind = MOVE_ALL_REDUCE;
    a->combine = COMBINE_SUM;
    s->loc = loc;
    p->grad[tensor] = w->id;
}
static void change_gradient(Program *p, int tensor, const char *what, Loc loc) {
    if (!strcmp(what, "sum")) {
        sum_again(p, tensor, loc);
        return;
    }
    for (int i = p->n_forward; i < p->ns; i++) {
        Step *s = &p->step[i];
        if (s->kind != ST_MOVE || !is_reduction(s) || p->val[s->out].tensor != tensor ||
            !p->val[s->out].cot || mesh_size(p->mesh, &s->move.axes) == 1)
            continue;
        bool mean = !strcmp(what, "mean");
        Act *a = act_rewrite(p, s, mean ? "gradients: mean" : "gradients: none", loc);
        if (mean) a->combine = COMBINE_AVG;
        else a->times = 0;
        s->loc = loc; /* the line that changes it, not the one that asks for it */
    }
}
/* A `**` reads as if it went through all depths, and is one component as `*` is: it would leave
 * most parameters out in silence. */
static bool through_depths(Diags *d, const PlanPair *g) {
    const char *at = g->key;
    while ((at = strstr(at, "**")) && ((at > g->key && at[-1] != '.') || (at[2] && at[2] != '.')))
        at++;
    if (!at) return false;
    diag_error(d, "E0205", g->loc,
               "write a line for each depth, as 'layers.*' and 'norm': a module stands for all "
               "parameters in it",
               "pattern '%s': `**` does not go through all depths, a wildcard is one component",
               g->key);
    return true;
}
bool apply_gradients(Program *p, const Plan *plan, Diags *d) {
    bool ok = true;
    for (int i = 0; i < plan->n_gradients; i++) {
        int hit = 0;
        if (through_depths(d, &plan->gradients[i])) {
            ok = false;
            continue;
        }
        for (int t = 0; t < p->graph->nt; t++) {
            if (p->graph->t[t].kind != KIND_PARAM ||
                !sums_names(p->graph, &p->graph->t[t], plan->gradients[i].key))
                continue;
            hit++;
            change_gradient(p, t, plan->gradients[i].text, plan->gradients[i].loc);
        }
        if (hit) continue;
        const char *key = plan->gradients[i].key, *near = suggest_nearest(p->arena, p->graph, key);
        diag_error(d, "E0205", plan->gradients[i].loc,
                   near ? arena_printf(p->arena, "did you mean '%s'?", near)
                        : "patterns under `gradients` match parameters or modules",
                   "pattern '%s' matches no parameter", key);
        ok = false;
    }
    if (plan->n_gradients && p->ns == p->n_forward) {
        diag_error(d, "E0206", plan->gradients[0].loc, "add `pass: backward`",
                   "`gradients` changes a backward pass, and there is none");
        ok = false;
    }
    return ok;
}
