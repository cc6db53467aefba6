/* Runs one random plan and one mutation of it, and counts. See random_run.h. */
#include "random_run.h"
#include "drive/pipeline.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ---- */
typedef struct {
    Trace *t;
    PipelineReport rep;
    Diags *d;
} Result;
typedef void Watch(void *arg, Exec *e, const Step *s, bool checked);
static Result run_watched(Arena *a, const char *text, bool execute, bool no_verify, int exact,
                          Watch *watch, void *arg) {
    Result r = {.d = diags_new(a)};
    bool quick = getenv("SHARDPROOF_CHECK") && !strcmp(getenv("SHARDPROOF_CHECK"), "quick");
    PipelineOptions o = {.watch = watch,
                         .watch_arg = arg,
                         .execute = execute,
                         .no_verify = no_verify,
                         .threads = 1,
                         .exact = exact,
                         .check = quick ? CHECK_QUICK : CHECK_FULL,
                         .events = execute && !no_verify,
                         .memory_limit = (int64_t)1 << 28};
    r.t = pipeline_run(a, r.d, plan_text("random.yaml", text), &o, &r.rep);
    return r;
}
static Result run(Arena *a, const char *text, bool execute, bool no_verify, int exact) {
    return run_watched(a, text, execute, no_verify, exact, NULL, NULL);
}
static const char *first_error(const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR) return d->item[i].code;
    return NULL;
}
/* Parsing and the construction of layouts may refuse a plan; nothing later may. */
static bool legal_refusal(const Diags *d) {
    static const char *const codes[] = {"E0303", "E0304", "E0305", "E0308",
                                        "E0309", "E0408", /* a DTensor meets a plain tensor */
                                        "E0409" /* uneven, under trust: compiler */};
    for (int i = 0; i < d->n; i++) {
        if (d->item[i].severity != DIAG_ERROR) continue;
        bool ok = false;
        for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++)
            ok |= !strcmp(d->item[i].code, codes[k]);
        ok |= !strcmp(d->item[i].code, "E0214") &&
              (strstr(d->item[i].message, "use_local_output") ||
               strstr(d->item[i].message, "cuts within heads") ||  /* under trust: compiler */
               strstr(d->item[i].message, "flat list of tokens")); /* not by any letter */
        if (!ok) return false;
    }
    return true;
}
static bool says(const Result *r, const char *code) {
    for (int i = 0; i < r->d->n; i++)
        if (!strcmp(r->d->item[i].code, code)) return true;
    return false;
}
static bool is_right(const Result *r) {
    return r->t && r->t->verdict && !strcmp(r->t->verdict, "equivalent") && !diags_errors(r->d) &&
           r->t->n_suspect == 0;
}
/* Found where values are moved: the tokens of a rank in parts that no letter says. */
static bool flat_refusal(const Result *r) {
    bool flat = false;
    for (int i = 0; i < r->d->n; i++)
        flat |= !strcmp(r->d->item[i].code, "E0214") &&
                strstr(r->d->item[i].message, "flat list of tokens");
    return flat;
}
static int first_failed_step(const Trace *t) {
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].level && !strcmp(t->checks[i].verdict, "FAIL")) return t->checks[i].step;
    return -2;
}

/* ---- mutations ---- */
static const char *const mutation_names[M_COUNT] = {"drop",  "kind",   "axis",    "dim",  "offset",
                                                    "alone", "counts", "operand", "term", "scale",
                                                    "stale", "row",    "roll"};
typedef struct {
    int step;
    const char *op;
    int collective; /* index, or -1: a slice */
} Site;
/* Moves with a collective or a slice over an axis of size > 1. */
static int sites(const Trace *t, Site *out, int cap) {
    int n = 0;
    for (int i = 0; i < t->n_collectives && n < cap; i++)
        out[n++] = (Site){t->collectives[i].step, t->collectives[i].op, i};
    for (int i = 0; i < t->n_moves && n < cap; i++) {
        bool wide = false;
        if (strcmp(t->moves[i].op, "slice") != 0) continue;
        for (int x = 0; x < t->n_axes; x++) {
            size_t k = strlen(t->axes[x].name);
            for (const char *w = t->moves[i].axes; w && *w; w += strcspn(w, "*"), w += *w == '*')
                wide |=
                    t->axes[x].size > 1 && strcspn(w, "*") == k && !strncmp(w, t->axes[x].name, k);
        }
        if (wide) out[n++] = (Site){t->moves[i].step, "slice", -1};
    }
    return n;
}
/* The fault as plan text, or NULL if this mutation does not exist at this site. */
static const char *fault_text(Arena *a, Rng *r, const Trace *t, const Site *s, int m) {
    bool reduction = !strcmp(s->op, "all_reduce") || !strcmp(s->op, "reduce_scatter");
    const char *head = arena_printf(a, "faults: [{at: \"%d\", ", s->step);
    switch (m) {
    case M_DROP: return strcmp(s->op, "slice") ? arena_printf(a, "%sdo: drop}]\n", head) : NULL;
    case M_KIND:
        if (!reduction) return NULL;
        if (!strcmp(s->op, "reduce_scatter") && rng_chance(r, 40))
            return arena_printf(a, "%skind: slice}]\n", head);
        return arena_printf(a, "%skind: %s}]\n", head, rng_chance(r, 50) ? "max" : "avg");
    case M_AXIS: {
        if (s->collective < 0) return NULL;
        const char *axes = t->collectives[s->collective].axes;
        int own = -1, cand[TRACE_MAX_AXES], n = 0;
        for (int x = 0; x < t->n_axes; x++)
            if (!strcmp(t->axes[x].name, axes)) own = x;
        for (int x = 0; own >= 0 && x < t->n_axes; x++)
            if (x != own && t->axes[x].size == t->axes[own].size) cand[n++] = x;
        return n ? arena_printf(a, "%saxis: \"%s\"}]\n", head, t->axes[cand[rng_below(r, n)]].name)
                 : NULL;
    }
    case M_OFFSET:
        return strcmp(s->op, "all_reduce") ? arena_printf(a, "%soffset: 1}]\n", head) : NULL;
    case M_DIM: {
        if (s->collective < 0 || !strcmp(s->op, "all_reduce") || !strcmp(s->op, "all_to_all"))
            return NULL;
        for (int i = 0; i < t->n_values; i++) {
            const TraceShape *v = &t->values[i].shape;
            int d = t->collectives[s->collective].dim;
            if (t->values[i].step != s->step || v->nd != 3 || d < 1 ||
                strcmp(v->dim_symbol[2], "D") || v->global_shape[1] != v->global_shape[2])
                continue;
            return arena_printf(a, "%sdim: %d}]\n", head, 3 - d);
        }
        return NULL;
    }
    case M_ALONE: /* of a maximum a part may be the whole */
        if (s->collective < 0 || !strcmp(s->op, "send")) return NULL;
        return arena_printf(a, "%sdo: %s, rank: %d}]\n", head, rng_chance(r, 50) ? "drop" : "skip",
                            rng_below(r, (int)t->ranks));
    case M_COUNTS:
        if (strcmp(s->op, "all_to_all") != 0 ||
            !strstr(t->collectives[s->collective].value, ".moe.") ||
            strstr(t->collectives[s->collective].value, ".moe.list"))
            return NULL;
        return arena_printf(a, "%sdo: counts}]\n", head);
    default: return NULL;
    }
}
/* Was the step held against what it must be, and found to be off by less than its bound of
 * rounding? */
static bool within_rounding(const Trace *t, int step) {
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].step == step && t->checks[i].max_abs > 0 &&
            t->checks[i].max_abs <= t->checks[i].bound)
            return true;
    return false;
}
enum { MOST_SITES = 512 };
/* What a mutated run says: of no effect (another is drawn), good, or wrong. */
typedef enum { MUTATION_REDRAWN, MUTATION_CAUGHT, MUTATION_MISSED } Outcome;
typedef struct {
    int kind, step;
    const char *at, *text; /* what the step is called; the plan */
    bool acted;            /* some bit of what the step makes was another */
} Mutation;
static Outcome judge(const Mutation *m, const Result *r, RandomTable *tab, uint64_t seed) {
    int k = m->kind;
    tab->planted[k]++;
    if (r->t && !m->acted && first_failed_step(r->t) < 0) {
        tab->no_change[k]++;
        return MUTATION_REDRAWN;
    }
    if (r->t && !r->t->n_fail && within_rounding(r->t, m->step)) {
        tab->in_rounding[k]++;
        return MUTATION_REDRAWN;
    }
    bool caught = r->t && r->t->n_fail > 0, located = caught && first_failed_step(r->t) == m->step;
    tab->by_values[k] += caught;
    tab->located[k] += located;
    if (located) return MUTATION_CAUGHT;
    printf("seed %llu: %s at step %d (%s) %s\n%s\n", (unsigned long long)seed, mutation_names[k],
           m->step, m->at, caught ? "caught elsewhere" : "NOT CAUGHT", m->text);
    diags_print(r->d, stdout, false);
    return MUTATION_MISSED;
}
/* A move, by a line of `faults`. */
static Outcome mutate_move(Arena *a, RandomPlan *g, const Trace *t, RandomTable *tab, uint64_t seed,
                           int m) {
    Site site[MOST_SITES];
    int n = sites(t, site, MOST_SITES);
    /* by step, or by kind: so that rare kinds come too */
    int draws = !n ? 0 : rng_chance(&g->r, 50) ? 1 : 4 * MOST_SITES;
    const Site *s = NULL;
    const char *f = NULL;
    for (int k = 0; k < draws && !f; k++)
        f = fault_text(a, &g->r, t, s = &site[rng_below(&g->r, n)], m);
    if (!f) return MUTATION_REDRAWN;
    const char *text = arena_printf(a, "%s%s", g->s.s, f);
    Result r = run(a, text, true, true, 0);
    Mutation x = {m, s->step, s->op, text, r.rep.fault_acted};
    Outcome o = judge(&x, &r, tab, seed);
    /* which block of a cut a rank gets is no matter of types, and counts are data */
    if (o == MUTATION_REDRAWN || m == M_OFFSET || m == M_COUNTS) return o;
    Result v = run(a, text, false, false, 0);
    tab->due[m]++;
    tab->by_verify[m] += says(&v, "W0401");
    if (says(&v, "W0401")) return o;
    printf("seed %llu: %s at step %d (%s) not seen by verify\n%s\n", (unsigned long long)seed,
           mutation_names[m], s->step, s->op, text);
    return MUTATION_MISSED;
}
const char *random_fault(Arena *a, Rng *r, const Trace *t) {
    Site site[MOST_SITES];
    int n = sites(t, site, MOST_SITES);
    const char *f = NULL;
    for (int k = 0; n && k < 4 * MOST_SITES && !f; k++)
        f = fault_text(a, r, t, &site[rng_below(r, n)], rng_below(r, M_STEP));
    return f;
}
/* Any step, while it runs. */
static Outcome mutate_step(Arena *a, RandomPlan *g, const StepSites *sites, RandomTable *tab,
                           uint64_t seed, int m) {
    static const char *const kinds[] = {"op", "move", "claim", "adjoint", "sum", "seed"};
    const struct StepSite *s = NULL;
    for (int k = 0; k < 4 * MOST_SITES && !s && sites->n; k++) {
        s = &sites->site[rng_below(&g->r, sites->n)];
        if (!step_site_fits(s, m - M_STEP)) s = NULL;
    }
    if (!s) return MUTATION_REDRAWN;
    StepMutation step = {.kind = m - M_STEP, .step = s->step, .r = {rng_next(&g->r)}};
    Result r = run_watched(a, g->s.s, true, true, 0, step_mutation_watch, &step);
    Mutation x = {m, s->step, kinds[s->kind], g->s.s, step.changed};
    return judge(&x, &r, tab, seed);
}
static bool count_sites(const Trace *t, const StepSites *steps, RandomTable *tab) {
    Arena *tmp = arena_new();
    Site site[MOST_SITES];
    Rng any = {0};
    int n = sites(t, site, MOST_SITES);
    for (int m = 0; m < M_STEP; m++)
        for (int i = 0; i < n; i++) tab->sites[m] += fault_text(tmp, &any, t, &site[i], m) != NULL;
    for (int m = M_STEP; m < M_COUNT; m++)
        for (int i = 0; i < steps->n; i++)
            tab->sites[m] += step_site_fits(&steps->site[i], m - M_STEP);
    arena_free(tmp);
    tab->no_site += !n;
    return n > 0 || steps->n > 0;
}
static bool mutate(Arena *a, RandomPlan *g, const Trace *t, const StepSites *steps,
                   RandomTable *tab, uint64_t seed) {
    enum { TRIES = 20 };
    long counted = tab->sites[M_COUNTS];
    bool any = count_sites(t, steps, tab), rows = tab->sites[M_COUNTS] > counted;
    for (int tries = 0; any && tries < TRIES; tries++) {
        static const int of_rows[] = {M_COUNTS, M_STEP + S_ROW, M_STEP + S_ROLL}; /* few have */
        int m = rows && rng_chance(&g->r, 50) ? of_rows[rng_below(&g->r, 3)]
                                              : rng_below(&g->r, M_COUNT);
        Outcome o = m < M_STEP ? mutate_move(a, g, t, tab, seed, m)
                               : mutate_step(a, g, steps, tab, seed, m);
        if (o != MUTATION_REDRAWN) return o == MUTATION_CAUGHT;
    }
    tab->none_possible += any;
    return true;
}

/* ---- one plan ---- */
typedef struct {
    const char *code; /* of the first error, or NULL: the values differ */
} Symptom;
static bool same_symptom(void *arg, const char *text) {
    Arena *a = arena_new();
    Result r = run(a, text, true, false, 0);
    const char *want = ((const Symptom *)arg)->code, *have = first_error(r.d);
    bool same = !is_right(&r) && (want ? have && !strcmp(want, have) : !have);
    arena_free(a);
    return same;
}
static void alarm(Arena *a, uint64_t seed, const char *plan, const Result *r) {
    enum { SHRINK_AT_MOST = 3 };
    static int shrunk; /* it takes hundreds of runs */
    printf("seed %llu: FALSE ALARM\n%s", (unsigned long long)seed, plan);
    diags_print(r->d, stdout, false);
    if (r->t && r->t->n_suspect) printf("%lld SUSPECT\n", (long long)r->t->n_suspect);
    Symptom s = {first_error(r->d)};
    fflush(stdout);
    if (shrunk++ < SHRINK_AT_MOST)
        printf("the smallest plan that does the same:\n%s\n",
               shrink_plan(a, plan, same_symptom, &s));
    fflush(stdout);
}
/* Steps so long that the unsharded loss itself leaves the range of float32, or that of a ring,
 * whose backward makes probabilities of scores without a digit left: that is told of the ranks and
 * nothing else, and nobody calls it right. */
static bool diverged(const Result *r, const char *plan) {
    for (int i = 0; i < r->d->n; i++)
        if (r->d->item[i].severity == DIAG_ERROR && strcmp(r->d->item[i].code, "E0504") != 0)
            return false;
    return diags_errors(r->d) > 0 && r->t && !r->t->n_fail && !r->t->n_suspect &&
           (strstr(plan, "mode: ring") || strstr(plan, "mode: usp") ||
            !(fabs(r->rep.loss_unsharded) <= FLT_MAX));
}
bool random_run(uint64_t seed, RandomTable *t, Coverage *c) {
    Arena *a = arena_new();
    RandomPlan g;
    const char *plan = random_plan(a, seed, &g);
    StepSites steps = {.a = a};
    Result r = run_watched(a, plan, true, false, 2, step_sites_watch, &steps);
    bool good = true;
    t->plans++;
    if (g.declared && says(&r, "N0008"))
        t->too_little++; /* sums that no line declares are not made there: nobody calls it right */
    else if (diverged(&r, plan)) t->diverged++;
    else if ((r.t && !flat_refusal(&r)) || !legal_refusal(r.d)) {
        t->legal++;
        t->form[g.form]++;
        good = is_right(&r);
        t->sides += says(&r, "N0019");
        t->alarms += !good;
        if (!good) alarm(a, seed, plan, &r);
        else {
            t->with_collective += r.t->n_collectives > 0;
            if (c) coverage_plan(c, plan, r.t, g.n_axes, g.pass);
            good = mutate(a, &g, r.t, &steps, t, seed);
        }
    }
    arena_free(a);
    return good;
}

/* ---- the table ---- */
void random_table_add(RandomTable *to, const RandomTable *from) {
    long *x = (long *)to;
    const long *y = (const long *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *x; i++) x[i] += y[i];
}
long random_table_bad(const RandomTable *t) {
    long bad = t->alarms;
    for (int m = 0; m < M_COUNT; m++) {
        long acted = t->planted[m] - t->no_change[m] - t->in_rounding[m];
        bad += acted - t->by_values[m] + acted - t->located[m] + t->due[m] - t->by_verify[m];
    }
    bad += t->diverged > 1 + t->legal / 100;
    /* else the bounds are too wide */
    for (int m = 0; m < M_COUNT; m++) bad += t->in_rounding[m] > 2 + t->planted[m] / 500;
    return bad;
}
void random_table_print(const RandomTable *t, FILE *f) {
    fprintf(f,
            "plans %ld, legal %ld: styled %ld, recipe %ld, wild %ld, linear layers %ld, attention "
            "by itself "
            "%ld; with a collective %ld; decided by sides of bends %ld, false alarms %ld\n",
            t->plans, t->legal, t->form[RANDOM_STYLED], t->form[RANDOM_RECIPE],
            t->form[RANDOM_WILD], t->form[RANDOM_MLP], t->form[RANDOM_CORE], t->with_collective,
            t->sides, t->alarms);
    fprintf(f, "plans under trust: declared that declare too little, not counted as legal: %ld\n",
            t->too_little);
    fprintf(f, "plans whose steps are too long for float32, not counted as legal: %ld\n",
            t->diverged);
    fprintf(f, "legal plans without a move to mutate %ld, none possible %ld\n", t->no_site,
            t->none_possible);
    fprintf(f, "%-8s %9s %9s %9s %11s %18s %18s %18s\n", "mutation", "sites", "planted",
            "no change", "in rounding", "caught by verify", "caught by values", "located");
    for (int m = 0; m < M_COUNT; m++) {
        long acted = t->planted[m] - t->no_change[m] - t->in_rounding[m];
        fprintf(f, "%-8s %9ld %9ld %9ld %11ld %8ld of %6ld %8ld of %6ld %8ld of %6ld\n",
                mutation_names[m], t->sites[m], t->planted[m], t->no_change[m], t->in_rounding[m],
                t->by_verify[m], t->due[m], t->by_values[m], acted, t->located[m], acted);
    }
}
