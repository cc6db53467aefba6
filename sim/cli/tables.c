/* What shapes, params and comms show: rows made from a trace. Refuses to compute anything
 * that the trace does not say; the same facts stand in its records. */
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/fold.h"
#include "cli/notation.h"
#include "cli/rows.h"
#include "trace/counts.h"
#include "trace/trace_way.h"
#include <stdlib.h>
#include <string.h>

/* A set of ranks: "0-7" for people, as in records for programs. */
static Cell cell_ranks(Arena *a, const RankSet *r) {
    const char *text = rankset_text(r, a);
    return (Cell){text, text, trace_ranks_json(r, a)};
}
/* The last row is of this layer and speaks of these ranks; NULL: of none. */
static void place_row(const Cli *c, Table *out, const Trace *t, int layer, const RankSet *ranks) {
    if (cli_folds(c)) table_place(out, fold_place(t, layer, ranks, c->arena));
}
enum { MANY_RANKS = 1 << 24 }; /* more are not looked at one by one */
#define N(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *or_empty(const char *s) { return s ? s : ""; }
static const char *place_of_line(Arena *a, const char *file, int line) {
    return line > 0 ? arena_printf(a, "%s:%d", file ? file : "", line) : NULL;
}
/* "tp: shard(0), dp: replicate" */
const char *table_places(const TraceShape *s, Arena *a) {
    Str t = str_new(a);
    for (int i = 0; i < s->n_places; i++)
        str_addf(&t, "%s%s: %s", i ? ", " : "", s->place[i].axis, or_empty(s->place[i].place));
    return t.s;
}
/* What a step does: "linear", "all_gather(sp)", "slice(tp)", "input". */
static const char *step_op(const FoundStep *f, const TraceValue *v, Arena *a) {
    if (f && f->collective) {
        const char *axis = f->collective->axis ? f->collective->axis : f->collective->axes;
        return arena_printf(a, "%s(%s)", or_empty(f->collective->op), or_empty(axis));
    }
    if (f && f->move)
        return arena_printf(a, "%s(%s)", or_empty(f->move->op), or_empty(f->move->axes));
    if (f && f->compute) return f->compute->label ? f->compute->label : or_empty(f->compute->op);
    return v && v->kind ? value_role_words[v->kind] : "";
}
static Phase step_pass(const FoundStep *f, const TraceValue *v) {
    if (f && f->compute) return f->compute->pass;
    if (f && f->collective) return f->collective->pass;
    if (f && f->move) return f->move->pass;
    return v ? v->pass : PHASE_NONE;
}

/* The layer of a step or its value; of what an optimizer makes no record says it, its name does. */
static int step_layer(const FoldWords *words, const FoundStep *f, const TraceValue *v) {
    int layer = v               ? v->layer
                : f->compute    ? f->compute->layer
                : f->collective ? f->collective->layer
                                : f->move->layer;
    bool updates = step_pass(f, v) == PHASE_OPTIMIZER;
    return layer < 0 && updates && v ? fold_place_named(words, v->shape.name).layer : layer;
}

/* ---- shapes ---- */
static const Column shape_columns[] = {
    {"step", "step", true, 0},
    {"pass", "pass", false, COL_OPTIONAL | COL_DROP},
    {"op", "op", false, COL_SHORT},
    {"value", "value", false, COL_PREFIX | COL_NAMES},
    {"symbolic", "symbolic", false, 0},
    {"pending", "pending", false, COL_OPTIONAL},
    {"local", "local", false, COL_BELOW},
    {"bytes", "bytes", true, COL_DROP},
    {"layout", "layout", false, COL_OPTIONAL | COL_BELOW},
    {"ranks", "ranks", false, COL_OPTIONAL | COL_PLACE},
    {"rows", "rows", false, COL_EMPTY | COL_BELOW | COL_TITLED},
    {"notation", "notation", false, COL_EMPTY | COL_NAMES},
};
/* What is shown of a trace; a value of it as one line shows it. */
typedef struct {
    const Trace *trace;
    StepIndex steps;
    FoldWords words;
} Shapes;
typedef struct {
    const Shapes *of;
    const TraceValue *v;
    const TraceLocal *l; /* NULL: no class of ranks */
} Shown;
static void shape_row(const Cli *c, Table *t, int step, const FoundStep *f, Shown x) {
    const TraceValue *v = x.v;
    const TraceLocal *l = x.l;
    Arena *a = c->arena;
    Cell *r = table_row(t);
    place_row(c, t, x.of->trace, step_layer(&x.of->words, f, v), l ? &l->ranks : NULL);
    r[0] = step < 0 ? (Cell){NULL, "-1", "-1"} : cell_int(a, step);
    r[1] = cell_text(phase_words[step_pass(f, v)]);
    r[2] = cell_text(step_op(f, v, a));
    if (!v) {
        r[3] = cell_text(f->compute      ? f->compute->output
                         : f->collective ? f->collective->value
                                         : f->move->value);
        return;
    }
    r[3] = cell_text(v->shape.name);
    r[4] = cell_text(v->shape.symbolic);
    if (v->shape.pending)
        r[5] = (Cell){arena_printf(a, "Σ %s", v->shape.pending), v->shape.pending, NULL};
    if (l) {
        r[6] = cell_shape(a, l->shape, v->shape.nd);
        r[7] = cell_bytes(a, l->bytes);
        r[9] = cell_ranks(a, &l->ranks);
        r[10] = rows_of_value(a, x.of->trace, v, l, c->o.rank);
    }
    r[8] = cell_text(table_places(&v->shape, a));
    r[11] = cell_text(notation_text(c->o.notation, &v->shape, v->shape.name, a));
    if (strcmp(c->format, "text") == 0 && !c->o.verbose) r[8] = cell_text(NULL);
}
/* A parameter that only changes its type (I to R), or is moved over axes of one rank, is a step,
 * but nothing happens to it: people see it with -v. */
static bool is_silent(const Cli *c, const Trace *trace, const FoundStep *f) {
    if (!f || !f->move || !f->move->axes || !cli_folds(c)) return false;
    const char *axes[TRACE_MAX_AXES];
    int n;
    lookup_axes(trace, f->move->axes, true, axes, &n);
    return !n || (f->move->op && strcmp(f->move->op, "identity") == 0);
}
static void value_rows(const Cli *c, Table *t, const Shapes *of, const TraceValue *v) {
    const StepIndex *x = &of->steps;
    const FoundStep *f = v->step >= 0 && v->step < x->n ? &x->step[v->step] : NULL;
    bool any = false;
    if (is_silent(c, of->trace, f)) return;
    for (int i = 0; i < v->shape.n_local; i++) {
        const TraceLocal *l = &v->shape.local[i];
        if (c->o.rank >= 0 && !rankset_has(&l->ranks, c->o.rank)) continue;
        shape_row(c, t, v->step, f, (Shown){of, v, l});
        any = true;
    }
    if (!any && c->o.rank < 0) shape_row(c, t, v->step, f, (Shown){of, v, NULL});
}
Table table_shapes(const Cli *c, const Trace *t) {
    Table out = table_new(c->arena, "shape", shape_columns, N(shape_columns));
    const Shapes of = {t, lookup_steps(t, c->arena), fold_words(t, c->arena)};
    int v = 0;
    while (v < t->n_values && t->values[v].step < 0) value_rows(c, &out, &of, &t->values[v++]);
    for (int s = 0; s < of.steps.n; s++) {
        const FoundStep *f = &of.steps.step[s];
        if (!f->value && (f->compute || f->collective || f->move))
            shape_row(c, &out, s, f, (Shown){&of, NULL, NULL});
        /* values are in the order of their steps */
        for (; v < t->n_values && t->values[v].step <= s; v++)
            value_rows(c, &out, &of, &t->values[v]);
    }
    return out;
}

/* ---- params ---- */
static const Column param_columns[] = {
    {"name", "parameter", false, COL_PREFIX | COL_NAMES},
    {"global", "global", false, COL_DROP},
    {"symbolic", "symbolic", false, 0},
    {"local", "local", false, 0},
    {"placements", "placements", false, COL_BELOW},
    {"mesh", "mesh", false, COL_DROP},
    {"rest", "at rest", false, COL_OPTIONAL},
    {"bytes", "bytes", true, 0},
    {"ranks", "ranks", false, COL_OPTIONAL | COL_PLACE},
    {"style", "style", false, COL_OPTIONAL | COL_DROP},
    {"line", "plan line", false, COL_OPTIONAL | COL_DROP | COL_PREFIX},
    {"notation", "notation", false, COL_EMPTY | COL_NAMES},
    {"devices", "devices", false, COL_EMPTY},
};
/* The axes of its placements; with --notation torch those of the DTensor alone. */
static const char *placement_mesh(const Cli *c, const TraceParam *p) {
    Arena *a = c->arena;
    Str s = str_new(a);
    const TraceShape *shape = p->rest.n_places == p->n_placements ? &p->rest : &p->compute;
    if (p->on && c->o.notation && !strcmp(c->o.notation, "torch")) {
        for (const char *q = p->on; *q; q++) str_addf(&s, *q == '*' ? ", " : "%c", *q);
        return s.s ? s.s : "";
    }
    for (int i = 0; i < shape->n_places; i++)
        str_addf(&s, "%s%s", i ? ", " : "", shape->place[i].axis);
    return s.s;
}
/* Of large sets only the first ranks are tried: a class of a million ranks is answered at once. */
static bool share_a_rank(const RankSet *a, const RankSet *b) {
    RankWalk w = {0};
    int64_t rank;
    for (int tried = 0; tried < 1 << 16 && rankset_next(a, &w, &rank); tried++)
        if (rankset_has(b, rank)) return true;
    return rankset_has(a, rankset_first(b));
}
/* What one rank holds of it at rest; rank -1: the most that one of these ranks does (NULL: of all).
 */
static int64_t bytes_at_rest(const TraceParam *p, const RankSet *ranks, int64_t rank) {
    int64_t most = 0;
    for (int i = 0; i < p->rest.n_local; i++) {
        const TraceLocal *l = &p->rest.local[i];
        bool counts = rank >= 0 ? rankset_has(&l->ranks, rank)
                                : !ranks || p->rest.n_local == 1 || share_a_rank(&l->ranks, ranks);
        if (counts && l->bytes > most) most = l->bytes;
    }
    return p->rest.n_local ? most : p->bytes;
}
static void param_row(const Cli *c, Table *t, const Trace *trace, const TraceParam *p,
                      const TraceLocal *l) {
    Arena *a = c->arena;
    Cell *r = table_row(t);
    place_row(c, t, trace, p->layer, l ? &l->ranks : NULL);
    r[0] = cell_text(p->plan_name ? p->plan_name : p->compute.name);
    r[1] = cell_shape(a, p->compute.global_shape, p->compute.nd);
    r[2] = cell_text(p->compute.symbolic);
    if (l) {
        r[3] = cell_shape(a, l->shape, p->compute.nd);
        r[8] = cell_ranks(a, &l->ranks);
    }
    r[4] = cell_texts(a, p->placements, p->n_placements);
    r[5] = cell_text(placement_mesh(c, p));
    bool differs = p->rest.symbolic && strcmp(p->rest.symbolic, or_empty(p->compute.symbolic)) != 0;
    r[6] = cell_text(differs ? p->rest.symbolic : NULL);
    r[7] = cell_bytes(a, bytes_at_rest(p, l ? &l->ranks : NULL, c->o.rank));
    r[9] = cell_text(p->style);
    r[10] = cell_text(place_of_line(a, p->file, p->line));
    r[11] = cell_text(notation_param(c->o.notation, trace, p, a));
    const char *devices = notation_devices(c->o.notation, trace, p, c->o.rank, a);
    r[12] = (Cell){devices, devices, devices && *devices == '[' ? devices : NULL};
}
static int64_t all_at_rest(const Trace *t, int64_t rank) {
    int64_t all = 0;
    for (int i = 0; i < t->n_params; i++) all += bytes_at_rest(&t->params[i], NULL, rank);
    return all;
}
/* The most that a rank holds of all parameters at rest: a rank of a pipeline holds those of its
 * stages. *uneven: others hold less. Looked at is the first rank of each set that holds one alike.
 */
static int64_t most_at_rest(const Cli *c, const Trace *t, bool *uneven) {
    bool *seen = ARENA_ARRAY(c->arena, bool, t->ranks + 1);
    int64_t most = -1;
    for (int i = 0; i < t->n_params; i++)
        for (int k = 0; k < t->params[i].rest.n_local; k++) {
            int64_t rank = rankset_first(&t->params[i].rest.local[k].ranks);
            if (rank < 0 || rank >= t->ranks || seen[rank]) continue;
            seen[rank] = true;
            int64_t all = all_at_rest(t, rank);
            *uneven |= most >= 0 && all != most;
            most = all > most ? all : most;
        }
    return most < 0 ? all_at_rest(t, -1) : most;
}
Table table_params(const Cli *c, const Trace *t) {
    Table out = table_new(c->arena, "parameter", param_columns, N(param_columns));
    bool uneven = false;
    int64_t all = c->o.rank >= 0 ? all_at_rest(t, c->o.rank) : most_at_rest(c, t, &uneven);
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *p = &t->params[i];
        bool any = false;
        for (int k = 0; k < p->compute.n_local; k++) {
            if (c->o.rank >= 0 && !rankset_has(&p->compute.local[k].ranks, c->o.rank)) continue;
            param_row(c, &out, t, p, &p->compute.local[k]);
            any = true;
        }
        if (!any && c->o.rank < 0) param_row(c, &out, t, p, NULL);
    }
    str_addf(&out.notes, "%d parameters, %s%s per rank at rest\n", t->n_params,
             uneven ? "at most " : "", bytes_text(all, c->arena));
    return out;
}

/* ---- comms ---- */
static const Column comm_columns[] = {
    {"step", "step", true, 0},
    {"pass", "pass", false, COL_OPTIONAL},
    {"op", "op", false, COL_SHORT},
    {"axis", "group", false, 0},
    {"axes", "axes", false, COL_OPTIONAL | COL_DROP},
    {"groups", "groups", true, COL_DROP},
    {"size", "size", true, 0},
    {"ranks", "ranks", false, COL_PLACE},
    {"dtype", "dtype", false, COL_OPTIONAL | COL_DROP},
    {"reduce", "reduce", false, COL_OPTIONAL | COL_DROP},
    {"bytes_in", "in", true, COL_LAST},
    {"bytes_out", "out", true, COL_LAST},
    {"bytes_sent", "sent", true, 0},
    {"value", "value", false, COL_BELOW | COL_NAMES},
    {"why", "why", false, COL_BELOW | COL_NAMES},
    {"line", "plan line", false, COL_OPTIONAL | COL_BELOW},
    {"inferred", "inferred", false, COL_OPTIONAL | COL_DROP},
    {"planted", "mistake", false, COL_EMPTY | COL_BELOW},
    {"skipped", "skipped", false, COL_EMPTY}, /* people read it in what is sent */
    {"times", "times", true, COL_EMPTY},
    {"local", "unequal groups", false, COL_EMPTY | COL_BELOW | COL_TITLED | COL_PLACE},
    {"declared", "declared", false, COL_EMPTY}, /* people read it in the mistake */
    {"rows", "rows", false, COL_EMPTY | COL_BELOW | COL_TITLED},
    {"per_step", "a step", true, COL_EMPTY | COL_DROP},
    {"microbatch", "micro-batch", true, COL_EMPTY | COL_PART}, /* --each */
};
/* Which group to show: that of `rank`, else the first. -1: the rank is in none. */
static int64_t group_of(const RankGroups *g, int64_t rank) {
    return rank < 0 ? 0 : groups_with(g, rank);
}
/* A group whose members step evenly, without looking at them; empty if they do not. */
static RankSet group_run(Arena *a, const RankGroups *g, int64_t group) {
    int64_t count = 1, stride = 1;
    for (int k = g->n_in - 1; k >= 0; k--) {
        if (g->in_size[k] == 1) continue;
        if (count == 1) stride = g->in_stride[k];
        else if (g->in_stride[k] != count * stride) return (RankSet){0};
        count *= g->in_size[k];
    }
    return stride > 0 ? rankset_range(a, groups_member(g, group, 0), count, stride) : (RankSet){0};
}
static Cell cell_group(Arena *a, const RankGroups *g, int64_t group) {
    enum { LISTED = 64 };
    int64_t n = groups_size(g);
    RankSet run = n > LISTED ? group_run(a, g, group) : (RankSet){0};
    if (run.n) return cell_ranks(a, &run);
    if (n > MANY_RANKS) return (Cell){arena_printf(a, "%lld ranks", (long long)n), NULL, NULL};
    int64_t *list = ARENA_ARRAY(a, int64_t, n);
    bool ascending = true;
    for (int64_t i = 0; i < n; i++) {
        list[i] = groups_member(g, group, i);
        ascending = ascending && (i == 0 || list[i] > list[i - 1]);
    }
    Cell whole = cell_shape(a, list, (int)n);
    if (!ascending && n > LISTED)
        whole.text =
            arena_printf(a, "%s of %lld ranks", cell_shape(a, list, LISTED).text, (long long)n);
    if (!ascending) return whole;
    RankSet s = rankset_from(a, list, n);
    return cell_ranks(a, &s);
}
/* "ranks 0-1: 32 KiB in, 64 KiB out, 32 KiB sent; ranks 2-3: ..." and the same as JSON. */
static Cell cell_unequal(Arena *a, const TraceCollective *k) {
    Str s = str_new(a), j = str_new(a);
    if (!k->n_local) return cell_text(NULL);
    for (int i = 0; i < k->n_local; i++) {
        const TraceTraffic *l = &k->local[i];
        str_addf(&s, "%s%s: %s in, %s out, %s sent", i ? "; " : "", rankset_words(&l->ranks, a),
                 bytes_text(l->bytes_in, a), bytes_text(l->bytes_out, a),
                 bytes_text(l->bytes_sent, a));
        str_addf(&j, "%s{\"ranks\":%s,\"bytes_in\":%lld,\"bytes_out\":%lld,\"bytes_sent\":%lld}",
                 i ? "," : "[", trace_ranks_json(&l->ranks, a), (long long)l->bytes_in,
                 (long long)l->bytes_out, (long long)l->bytes_sent);
    }
    str_add(&j, "]");
    return (Cell){s.s, s.s, j.s};
}
/* Where a collective is: the shape of its groups, where the one begins that is shown, and what its
 * classes of ranks send. */
static RowPlace comm_place(const Trace *t, const TraceCollective *k, int64_t group, int part,
                           Arena *a) {
    const RankGroups *g = &k->groups;
    RankSet first = rankset_range(a, groups_member(g, group < 0 ? 0 : group, 0), 1, 1);
    RowPlace at = fold_place(t, k->layer, &first, a);
    Str s = str_new(a);
    at.part = part;
    if (!at.ranks) return at;
    str_add(&s, at.ranks);
    for (int i = 0; i < g->n_in; i++)
        str_addf(&s, " %lldx%lld", (long long)g->in_size[i], (long long)g->in_stride[i]);
    for (int i = 0; i < g->n_out; i++)
        str_addf(&s, " of %lldx%lld", (long long)g->out_size[i], (long long)g->out_stride[i]);
    for (int i = 0; i < k->n_local; i++) {
        const TraceTraffic *l = &k->local[i];
        str_addf(&s, "; %s %lld %lld %lld", fold_ranks(t, &l->ranks, a), (long long)l->bytes_in,
                 (long long)l->bytes_out, (long long)l->bytes_sent);
    }
    at.ranks = s.s;
    return at;
}
/* The row of a collective, and the micro-batch that it is listed in; -1: of one for all. */
static void comm_row(const Cli *c, const Trace *t, Table *out, const TraceCollective *k, int part) {
    Arena *a = c->arena;
    int64_t rank = c->o.rank;
    Cell *r = table_row(out);
    if (cli_folds(c)) table_place(out, comm_place(t, k, group_of(&k->groups, rank), part, a));
    r[0] = cell_int(a, k->step);
    r[1] = cell_text(phase_words[k->pass]);
    r[2] = cell_text(k->op);
    r[3] = cell_text(k->axis ? k->axis : k->axes);
    r[4] = cell_text(k->axes);
    r[5] = cell_int(a, groups_count(&k->groups));
    r[6] = cell_int(a, groups_size(&k->groups));
    r[7] = cell_group(a, &k->groups, group_of(&k->groups, rank));
    r[8] = cell_text(k->dtype);
    r[9] = cell_text(k->reduce);
    TraceTraffic b = collective_on(k, rank); /* rank -1 is in no class: the largest */
    r[10] = cell_bytes(a, b.bytes_in);
    r[11] = cell_bytes(a, b.bytes_out);
    r[12] = cell_bytes(a, lookup_sent(k, rank));
    r[13] = cell_text(k->value);
    r[14] = cell_text(k->why);
    r[15] = cell_text(place_of_line(a, k->file, k->line));
    r[16] = cell_bool(k->inferred);
    const char *should = k->declared ? arena_printf(a, ", where %s is due", k->declared) : "";
    if (k->planted)
        r[17] = (Cell){arena_printf(a, "planted: %s%s", k->planted, should), k->planted, NULL};
    r[18] = (Cell){NULL, k->skipped ? "true" : "false", k->skipped ? "true" : "false"};
    if (collective_times(k) > 1) r[19] = cell_int(a, collective_times(k));
    if (rank < 0) r[20] = cell_unequal(a, k);
    if (k->declared) r[21] = (Cell){NULL, k->declared, NULL};
    r[22] = rows_of_collective(a, t, k, rank);
    if (trace_microbatches(t) > 1) r[23] = cell_int(a, collective_per_step(k));
    if (part >= 0 && k->per_step) r[24] = cell_int(a, part);
}
/* A row for each micro-batch that does it, those of one below those of the one before. */
static void comm_rows_each(const Cli *c, const Trace *t, Table *out) {
    StepIndex of = lookup_steps(t, c->arena);
    int64_t parts = trace_microbatches(t);
    for (int64_t part = 0; part < parts; part++)
        for (int i = 0; i < t->n_collectives; i++) {
            const TraceCollective *k = &t->collectives[i];
            const TraceValue *makes = k->step >= 0 ? of.step[k->step].value : NULL;
            if (group_of(&k->groups, c->o.rank) >= 0 &&
                collective_in(k, parts, makes ? makes->way : 0, part))
                comm_row(c, t, out, k, (int)part);
        }
}
Table table_comms(const Cli *c, const Trace *t) {
    Table out = table_new(c->arena, "comm", comm_columns, N(comm_columns));
    Arena *a = c->arena;
    int64_t sent = 0, rank = c->o.rank;
    int skipped = 0, done = 0, messages = 0;
    bool each = c->o.each && trace_microbatches(t) > 1;
    if (each) comm_rows_each(c, t, &out);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (group_of(&k->groups, rank) < 0) continue;
        if (!each) comm_row(c, t, &out, k, -1);
        sent += lookup_sent(k, rank);
        done += collective_times(k);
        if (collective_is_message(k)) messages += collective_times(k);
        skipped += k->skipped;
    }
    const char *all = rank < 0 ? lookup_sent_text(t, NULL, NULL, false, a) : bytes_text(sent, a);
    const char *run = rows_sent(a, t, rank); /* where experts' rows make them other than expected */
    str_addf(&out.notes, "%s, ", counted_text(a, done, messages));
    if (run) str_addf(&out.notes, "sent per rank: %s\n", run);
    else str_addf(&out.notes, "%s sent per rank\n", all);
    if (trace_microbatches(t) > 1)
        str_addf(&out.notes, "of %s of %lld, and what is done once a step\n%s\n",
                 trace_way_one(trace_both_ways(t)), (long long)trace_microbatches(t),
                 lookup_step_text(t, rank, a));
    if (skipped)
        str_addf(&out.notes,
                 "not counted: %d that the plan's planted mistake skips; nothing is sent there\n",
                 skipped);
    rows_notes(&out.notes, a, t);
    return out;
}
