/* `times`: what each product, kernel and collective takes, as the model of time has it and, of a
 * run on processes or on a GPU, as it was measured. Layers count together; -v has every step.
 * Refuses to compare where the model speaks of something else: of links, where one GPU copies in
 * its memory. */
#include "cli/cli.h"
#include "cli/fold.h"
#include "cost/cost.h"
#include "trace/trace_took.h"
#include <string.h>

static const Column columns[] = {
    {"step", "step", true, COL_EMPTY},
    {"pass", "pass", false, COL_OPTIONAL},
    {"op", "op", false, COL_SHORT},
    {"axis", "group", false, COL_EMPTY},
    {"size", "size", true, COL_EMPTY | COL_DROP},
    {"value", "value", false, COL_PREFIX},
    {"times", "times", true, COL_OPTIONAL},
    {"modelled", "modelled", true, COL_EMPTY},
    {"measured", "measured", true, COL_EMPTY},
    {"ratio", "ratio", true, COL_EMPTY},
    {"wait", "waited", true, COL_EMPTY | COL_DROP},
    {"flops_rate", "FLOP/s", true, COL_EMPTY | COL_DROP},
    {"bytes_rate", "bytes/s", true, COL_EMPTY | COL_DROP},
    {"algbw", "algbw", true, COL_EMPTY | COL_DROP},
};
/* Steps that are counted together, and all that compute or communicate. */
typedef struct {
    TraceTook k;
    const char *name;
    int64_t n;
} Kind;
static bool same_kind(const Kind *x, const TraceTook *k, const char *name) {
    const char *a = x->k.axis ? x->k.axis : "", *b = k->axis ? k->axis : "";
    return x->k.moves == k->moves && x->k.pass == k->pass && x->k.size == k->size &&
           !strcmp(x->k.op, k->op) && !strcmp(x->name, name) && !strcmp(a, b);
}
static void add_time(double *sum, double more) {
    if (more >= 0) *sum = (*sum < 0 ? 0 : *sum) + more;
}
static void add(Kind *x, const TraceTook *k) {
    x->n++;
    add_time(&x->k.modelled, k->modelled);
    add_time(&x->k.measured, k->measured);
    x->k.wait += k->wait;
    x->k.flops += k->flops;
    x->k.bytes += k->bytes;
}
static Kind *kinds_of(const Trace *t, const TraceTook *k, int n, bool each, Arena *a, int *kinds) {
    const FoldWords words = fold_words(t, a);
    Kind *x = ARENA_ARRAY(a, Kind, n + 1);
    *kinds = 0;
    for (int i = 0; i < n; i++) {
        const char *name = each ? k[i].value : fold_name(&words, k[i].value, a);
        int at = each ? *kinds : 0;
        while (at < *kinds && !same_kind(&x[at], &k[i], name)) at++;
        if (at == *kinds) x[(*kinds)++] = (Kind){k[i], name, 1};
        else add(&x[at], &k[i]);
    }
    return x;
}
static Cell seconds(Arena *a, double v) {
    Cell c = v < 0 ? cell_text(NULL) : cell_real(a, v);
    if (v >= 0) c.text = time_text(v, a);
    return c;
}
static double ratio_of(const TraceTook *k, const Trace *t) {
    bool none = (k->moves && trace_took_in_memory(t)) || trace_took_in_turns(t);
    bool both = k->modelled > 0 && k->measured >= 0 && !none;
    return both ? k->measured / k->modelled : -1;
}
/* Of what has many operations for its bytes the operations, else the bytes: what limits it. */
static void rates(Arena *a, const TraceTook *k, Cell *flops, Cell *bytes) {
    double took = k->measured >= 0 ? k->measured : k->modelled;
    bool product = !k->moves && k->flops > 16 * k->bytes;
    double work = product ? k->flops : k->bytes;
    if (took <= 0 || work <= 0) return;
    Cell c = cell_real(a, work / took);
    c.text = product ? count_text(work / took, a) : bytes_text((int64_t)(work / took), a);
    *(product ? flops : bytes) = c;
}
static Cell algbw(Arena *a, const TraceTook *k) {
    double took = k->measured >= 0 ? k->measured : k->modelled, size = trace_took_size(k);
    if (took <= 0 || size <= 0) return cell_text(NULL);
    double rate = size / took;
    Cell c = cell_real(a, rate);
    c.text = bytes_text((int64_t)rate, a);
    return c;
}
static void row(Table *out, const Kind *x, bool each, const Trace *t) {
    Arena *a = out->arena;
    Cell *r = table_row(out);
    double ratio = ratio_of(&x->k, t);
    if (each || x->n == 1) r[0] = cell_int(a, x->k.step);
    r[1] = cell_text(phase_words[x->k.pass]);
    r[2] = cell_text(x->k.op);
    r[3] = cell_text(x->k.axis);
    if (x->k.moves) r[4] = cell_int(a, x->k.size);
    r[5] = cell_text(x->n == 1 ? x->k.value : x->name);
    r[6] = cell_int(a, x->n);
    r[7] = seconds(a, x->k.modelled);
    r[8] = seconds(a, x->k.measured);
    if (ratio >= 0) r[9] = cell_real(a, ratio);
    if (x->k.wait > 0) r[10] = seconds(a, x->k.wait);
    rates(a, &x->k, &r[11], &r[12]);
    r[13] = algbw(a, &x->k);
}
/* "computes: modelled 1.2 ms, measured 1.5 ms (1.25 times that)" */
static void total(Str *s, const Trace *t, const TraceTook *k, int n, bool moves) {
    Kind all = {.k = {.moves = moves, .modelled = -1, .measured = -1}};
    for (int i = 0; i < n; i++)
        if (k[i].moves == moves) add(&all, &k[i]);
    double ratio = ratio_of(&all.k, t);
    if (!all.n) return;
    str_add(s, moves ? "communication:" : "computation:");
    if (all.k.modelled >= 0) str_addf(s, " modelled %s", time_text(all.k.modelled, s->a));
    if (all.k.measured >= 0)
        str_addf(s, "%s measured %s", all.k.modelled >= 0 ? "," : "",
                 time_text(all.k.measured, s->a));
    if (ratio >= 0) str_addf(s, " (%.3g times that)", ratio);
    str_add(s, "\n");
}
static void notes(Str *s, const Trace *t, const TraceTook *k, int n, int64_t rank) {
    total(s, t, k, n, false);
    total(s, t, k, n, true);
    str_add(s, rank < 0 ? "each step by the rank that it takes longest on, none beside another"
                        : "each step by itself, none beside another");
    str_addf(s, "%s\n", trace_microbatches(t) > 1 ? "; of one micro-batch" : "");
    if (t->n_collectives)
        str_add(s,
                "of a collective bytes/s is the bus bandwidth of nccl-tests, algbw its algorithm "
                "bandwidth\n");
    if (t->hardware) str_addf(s, "modelled for %s\n", t->hardware);
    if (!t->n_measured)
        str_add(s,
                "nothing was measured: run it with --mpi or --cuda and --trace FILE, and ask for "
                "the times of FILE\n");
    else if (trace_took_in_memory(t))
        str_add(s, "measured on one GPU: collectives are copies and sums in its memory, nothing is "
                   "sent, so they have no ratio\n");
    else if (trace_took_in_turns(t))
        str_add(s, "measured with ranks that take turns on one GPU (--cuda=share): these times say "
                   "nothing\n");
}
/* A trace need not have been modelled, and --hardware may ask for another machine. Of a plan that
 * breaks a rule there are no times. */
static const Trace *modelled(const Cli *c, const Trace *t) {
    bool breaks = false;
    for (int i = 0; i < t->n_diags; i++) breaks |= t->diags[i].severity == DIAG_ERROR;
    if (breaks || (t->n_events && !c->o.hardware)) return t;
    const Hardware *h = hardware_of_plan(c->arena, c->d, c->o.hardware, NULL, NULL, diag_nowhere);
    if (!h) return t;
    Trace *own = ARENA_NEW(c->arena, Trace);
    *own = *t;
    own->n_events = own->cap_events = 0;
    own->events = NULL;
    cost_simulate(own, h);
    return own;
}
Table table_times(const Cli *c, const Trace *t) {
    Arena *a = c->arena;
    t = modelled(c, t);
    Table out = table_new(a, "time", columns, sizeof columns / sizeof *columns);
    int n, kinds;
    const TraceTook *k = trace_took(t, c->o.rank, a, &n);
    const Kind *x = kinds_of(t, k, n, c->o.verbose, a, &kinds);
    for (int i = 0; i < kinds; i++) row(&out, &x[i], c->o.verbose, t);
    notes(&out.notes, t, k, n, c->o.rank);
    return out;
}
