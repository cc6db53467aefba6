/* What two traces differ in: rows of `diff`, and its verdict. Each kind of thing that has a name is
 * listed for both sides, sorted, and held against each other. Refuses to judge which is better. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/homes.h"
#include "formats/json.h"
#include "trace/trace_times.h"
#include <stdlib.h>
#include <string.h>

static const char *or_empty(const char *s) { return s ? s : ""; }
static const Column diff_columns[] = {{"what", "what", false, 0},
                                      {"name", "name", false, COL_WRAP | COL_NAMES},
                                      {"a", "A", false, COL_WRAP},
                                      {"b", "B", false, COL_WRAP}};

/* A row of a layer (-1: of none), where the texts differ; what a side has not is empty. */
static void differ_in(Table *t, int layer, const char *what, const char *name, Cell a, Cell b) {
    if (a.plain == b.plain || (a.plain && b.plain && strcmp(a.plain, b.plain) == 0)) return;
    Cell *r = table_row(t);
    table_place(t, (RowPlace){.layer = layer, .at = -1, .part = -1});
    r[0] = cell_text(what);
    r[1] = cell_text(name);
    r[2] = a.plain ? a : (Cell){"-", NULL, NULL};
    r[3] = b.plain ? b : (Cell){"-", NULL, NULL};
}
static void differ(Table *t, const char *what, const char *name, Cell a, Cell b) {
    differ_in(t, -1, what, name, a, b);
}
/* Things with a name on one side, with what is to be compared; sorted by name, layer 2 before layer
 * 10, equal names in their order. */
typedef struct {
    const char *name;
    Cell what;
    int order, layer;        /* layer -1: of none */
    const TraceShape *shape; /* of what lies on ranks; NULL: of nothing else */
    const char *stages;      /* then: the axis of the pipeline; NULL: there is none */
    const Homes *homes; /* then: rows of their own tell where layers lie; NULL: each name does */
} Item;
typedef struct {
    Item *item;
    int n, cap;
} Items;
static int by_name(const void *a, const void *b) {
    const Item *x = a, *y = b;
    int k = text_order(x->name, y->name);
    return k ? k : x->order - y->order;
}
static Item *add_cell(Items *l, Arena *a, const char *name, Cell what) {
    Item *i = ARENA_PUSH(a, l->item, l->n, l->cap);
    *i = (Item){.name = or_empty(name), .what = what, .order = l->n, .layer = -1};
    return i;
}
static Item *add_item(Items *l, Arena *a, const char *name, const char *text) {
    return add_cell(l, a, name, cell_text(text));
}
static bool says_place(const TraceShape *s, const TracePlace *p) {
    for (int i = 0; i < s->n_places; i++)
        if (text_same(s->place[i].axis, p->axis) && text_same(s->place[i].place, p->place))
            return true;
    return false;
}
/* Whose homes is the item's place on that axis? 0: nobody's, or no rows tell of homes. */
static int homes_of_item(const Item *x, const char *axis) {
    for (int i = 0; x->homes && i < x->shape->n_places; i++)
        if (text_same(x->shape->place[i].axis, axis))
            return homes_which(x->homes, x->layer, &x->shape->place[i]);
    return 0;
}
/* Do rows of layers tell where it lies? Beside another both must lie where one and the same layer
 * does. */
static bool is_at_home(const Item *x, const Item *other, const char *axis) {
    return homes_of_item(x, axis) & (other ? homes_of_item(other, axis) : -1);
}
/* "[B/dp, S, D] [1, 64, 256] (dp: shard(0), tp: replicate)"; beside `other` without the place in a
 * pipeline that both have, which differs from stage to stage and is no difference; without that
 * which rows of layers tell. */
static const char *lying_text(const Item *x, const Item *other, Arena *a) {
    const TraceShape *s = x->shape;
    Str t = str_new(a), places = str_new(a);
    str_add(&t, or_empty(s->symbolic));
    for (int i = 0; i < s->n_local; i++)
        str_addf(&t, "%s %s", i ? ";" : "", cell_shape(a, s->local[i].shape, s->nd).text);
    for (int i = 0; i < s->n_places; i++) {
        const TracePlace *p = &s->place[i];
        bool stage = x->stages && text_same(p->axis, x->stages);
        if (stage && other && says_place(other->shape, p)) continue;
        if (stage && is_at_home(x, other, p->axis)) continue;
        str_addf(&places, "%s%s: %s", places.n ? ", " : "", p->axis, or_empty(p->place));
    }
    if (places.n) str_addf(&t, " (%s)", places.s);
    return t.s;
}
static Cell cell_layout(const Item *x, Arena *a) {
    JsonWriter w = json_writer(a);
    const TraceShape *s = x->shape;
    Item all = *x;
    all.homes = NULL;
    const char *text = lying_text(x, NULL, a), *plain = lying_text(&all, NULL, a);
    json_open(&w, NULL, '{');
    json_str(&w, "symbolic", s->symbolic);
    json_open(&w, "local", '[');
    for (int i = 0; i < s->n_local; i++)
        json_raw(&w, NULL, cell_shape(a, s->local[i].shape, s->nd).json);
    json_close(&w, ']');
    json_str(&w, "layout", table_places(s, a));
    json_close(&w, '}');
    return (Cell){text, plain, w.s.s};
}
static void sort_items(Items *l) {
    if (l->n) qsort(l->item, (size_t)l->n, sizeof *l->item, by_name);
}
static int copies_at(const Items *l, int i) {
    int n = 0;
    while (i + n < l->n && text_same(l->item[i + n].name, l->item[i].name)) n++;
    return n;
}
/* Reads one of the n copies like that? Only where rows of layers tell where they lie. */
static bool is_told(const Item *x, const Item *copy, int n) {
    bool told = false;
    for (int i = 0; i < n && x->homes; i++) told |= text_same(copy[i].what.text, x->what.text);
    return told;
}
/* The rows of n and m copies of one name, in their order; where rows of layers tell where they lie,
 * those that read alike once. */
static void diff_copies(Table *t, const char *what, const Item *a, int n, const Item *b, int m) {
    const int from = t->n_rows, pairs = n < m ? n : m;
    for (int i = 0; i < pairs; i++) {
        Cell x = a[i].what, y = b[i].what;
        if (a[i].shape && b[i].shape) {
            x.text = lying_text(&a[i], &b[i], t->arena);
            y.text = lying_text(&b[i], &a[i], t->arena);
            bool told = text_same(x.text, y.text);
            for (int r = from; r < t->n_rows && a[i].homes; r++)
                told |=
                    text_same(t->row[r][2].text, x.text) && text_same(t->row[r][3].text, y.text);
            if (told) continue;
        }
        differ_in(t, a[i].layer, what, a[i].name, x, y);
    }
    for (int i = pairs; i < n; i++)
        if (!is_told(&a[i], b, m) && !is_told(&a[i], a, i))
            differ_in(t, a[i].layer, what, a[i].name, a[i].what, cell_text(NULL));
    for (int i = pairs; i < m; i++)
        if (!is_told(&b[i], a, n) && !is_told(&b[i], b, i))
            differ_in(t, b[i].layer, what, b[i].name, cell_text(NULL), b[i].what);
}
/* A row for every name that one side has not, or has otherwise. */
static void diff_items(Table *t, const char *what, Items a, Items b) {
    sort_items(&a);
    sort_items(&b);
    for (int i = 0, k = 0; i < a.n || k < b.n;) {
        const int c = i == a.n ? 1 : k == b.n ? -1 : text_order(a.item[i].name, b.item[k].name);
        const int n = c <= 0 ? copies_at(&a, i) : 0, m = c >= 0 ? copies_at(&b, k) : 0;
        diff_copies(t, what, a.item + i, n, b.item + k, m);
        i += n;
        k += m;
    }
}
typedef struct {
    const Trace *t;
    const Homes *homes; /* NULL: no rows of layers */
    Arena *a;
} Side;
/* A row for each run of layers that lie elsewhere in the other pipeline: "layers.4-7". */
static void diff_homes(Table *t, const Homes *a, const Homes *b) {
    int n = a->n > b->n ? a->n : b->n;
    for (int from = 0, to; from < n; from = to + 1) {
        const char *x = homes_at(a, from), *y = homes_at(b, from);
        for (to = from;
             to + 1 < n && text_same(homes_at(a, to + 1), x) && text_same(homes_at(b, to + 1), y);)
            to++;
        if (text_same(x, y)) continue;
        const char *name = from == to ? arena_printf(t->arena, "layers.%d", from)
                                      : arena_printf(t->arena, "layers.%d-%d", from, to);
        differ(t, "stage", name, cell_text(x ? arena_printf(t->arena, "%s: %s", a->axis, x) : NULL),
               cell_text(y ? arena_printf(t->arena, "%s: %s", b->axis, y) : NULL));
    }
}
/* What lies on ranks, under its name. */
static void add_shape(Items *l, const Side *side, const char *name, int layer,
                      const TraceShape *s) {
    Item *i = add_cell(l, side->a, name, cell_text(NULL));
    i->layer = layer;
    i->shape = s;
    i->stages = side->t->schedule_axis;
    i->homes = side->homes;
    i->what = cell_layout(i, side->a);
}
static Items param_items(const Side *side, bool rest) {
    const Trace *t = side->t;
    Items l = {0};
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *p = &t->params[i];
        const TraceShape *s = rest ? &p->rest : &p->compute;
        add_shape(&l, side, p->compute.name ? p->compute.name : p->plan_name, p->layer, s);
    }
    return l;
}
/* Moved copies are left to the collectives that move them. */
static Items value_items(const Side *side) {
    const Trace *t = side->t;
    Items l = {0};
    for (int i = 0; i < t->n_values; i++) {
        const TraceShape *s = &t->values[i].shape;
        if (t->values[i].kind == VALUE_MOVED) continue;
        add_shape(&l, side, s->name, t->values[i].layer, s);
    }
    return l;
}
/* Two sizes that read alike may still differ. */
static Cell cell_exact(int64_t v, Arena *a) {
    const char *s = bytes_text(v, a);
    if (v >= 1024) s = arena_printf(a, "%s (%lld bytes)", s, (long long)v);
    return (Cell){s, s, cell_int(a, v).json};
}
typedef struct {
    Phase pass;
    const char *op, *axes, *reduce;
} CommKind;
static int is_kind(const TraceCollective *c, const void *arg) {
    const CommKind *k = arg;
    return c->pass == k->pass && !strcmp(or_empty(c->op), k->op) &&
           !strcmp(or_empty(c->axes), k->axes) && !strcmp(or_empty(c->reduce), k->reduce);
}
/* "forward all_gather(tp)" -> "2, sending 64 KiB (65536 bytes)"; "forward all_reduce(tp), avg" ->
 * ... */
static Items comm_items(const Trace *t, Arena *a) {
    Items l = {0};
    int64_t *count = ARENA_ARRAY(a, int64_t, t->n_collectives);
    CommKind *kind = ARENA_ARRAY(a, CommKind, t->n_collectives);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        CommKind x = {c->pass, or_empty(c->op), or_empty(c->axes), or_empty(c->reduce)};
        bool other = *x.reduce && strcmp(x.reduce, "sum") != 0;
        int k = 0;
        while (k < l.n && !is_kind(c, &kind[k])) k++;
        if (k == l.n) {
            kind[k] = x;
            add_item(&l, a,
                     arena_printf(a, "%s %s(%s)%s%s", phase_text(x.pass), x.op, x.axes,
                                  other ? ", " : "", other ? x.reduce : ""),
                     NULL);
        }
        count[k] += collective_times(c);
    }
    for (int k = 0; k < l.n; k++) {
        const char *text = arena_printf(a, "%lld, sending %s", (long long)count[k],
                                        lookup_sent_text(t, is_kind, &kind[k], true, a));
        l.item[k].what =
            (Cell){text, text,
                   arena_printf(a, "{\"count\":%lld,\"bytes_sent\":%lld}", (long long)count[k],
                                (long long)lookup_most_sent(t, is_kind, &kind[k]))};
    }
    return l;
}
/* What a plan plants, by the value that it changes: two plans that differ in a mistake differ. */
static Items planted_items(const Trace *t, Arena *a) {
    Items l = {0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!c->planted) continue;
        add_item(&l, a, arena_printf(a, "%s of %s", or_empty(c->op), or_empty(c->value)),
                 arena_printf(a, "%s%s%s", c->planted, c->declared ? "; due: " : "",
                              or_empty(c->declared)))
            ->layer = c->layer;
    }
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].planted)
            add_item(
                &l, a,
                arena_printf(a, "%s of %s", or_empty(t->moves[i].op), or_empty(t->moves[i].value)),
                t->moves[i].planted)
                ->layer = t->moves[i].layer;
    for (int i = 0; i < t->n_computes; i++) { /* a record for each class of ranks, in a row */
        const TraceCompute *c = &t->computes[i];
        if (c->planted && (!i || t->computes[i - 1].step != c->step))
            add_item(&l, a, arena_printf(a, "%s of %s", or_empty(c->op), or_empty(c->output)),
                     c->planted)
                ->layer = c->layer;
    }
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].planted)
            add_item(&l, a, t->values[i].shape.name, t->values[i].planted)->layer =
                t->values[i].layer;
    for (int i = 0; i < t->n_params; i++)
        if (t->params[i].planted)
            add_item(&l, a, t->params[i].plan_name, t->params[i].planted)->layer =
                t->params[i].layer;
    return l;
}
/* Gradients that are right only if somebody sums them, and over what. */
static Items undeclared_items(const Trace *t, Arena *a) {
    Items l = {0};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (undeclared_collective(t, c))
            add_item(&l, a, or_empty(c->value), arena_printf(a, "over %s, by no line", c->axes))
                ->layer = c->layer;
    }
    return l;
}
static Items memory_items(const Trace *t, Arena *a) {
    Items l = {0};
    int64_t rest = 0;
    for (const char *const *c = lookup_categories(t, a); *c; c++)
        add_cell(&l, a, *c, cell_exact(lookup_peak(t, *c), a));
    if (t->n_memory) add_cell(&l, a, "peak", cell_exact(lookup_peak(t, NULL), a));
    for (int i = 0; i < t->n_params; i++) rest += t->params[i].bytes;
    add_cell(&l, a, "parameters at rest", cell_exact(rest, a));
    return l;
}
/* "1f1b over pp, order 3f2a90c1": a file is not its path but the order that it has. */
static const char *schedule_text(const Trace *t, Arena *a) {
    bool file = strpbrk(t->schedule, "./") != NULL;
    uint32_t h = 2166136261u;
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *x = &t->actions[i];
        const int of[] = {x->rank, x->stage, x->microbatch, *x->kind, x->joined};
        for (size_t k = 0; k < sizeof of / sizeof *of; k++) h = (h ^ (uint32_t)of[k]) * 16777619u;
    }
    return arena_printf(a, "%s over %s, order %08x", file ? "a file" : t->schedule,
                        or_empty(t->schedule_axis), h);
}
static Items run_items(const Trace *t, Arena *a) {
    Items l = {0};
    Str mesh = str_new(a);
    for (int i = 0; i < t->n_axes; i++)
        str_addf(&mesh, "%s%s=%lld", i ? " " : "", t->axes[i].name, (long long)t->axes[i].size);
    add_item(&l, a, "mesh", mesh.s);
    add_item(&l, a, "pass", pass_words[t->pass]);
    add_item(&l, a, "dtype", t->dtype);
    if (t->schedule) add_item(&l, a, "schedule", schedule_text(t, a));
    for (int i = 0; i < t->n_groups; i++)
        add_item(&l, a, arena_printf(a, "group %s", t->groups[i].name), t->groups[i].axes);
    for (int i = 0; i < t->n_model; i++)
        add_item(&l, a, t->model[i].name, arena_printf(a, "%.17g", t->model[i].value));
    return l;
}
static Items setting_items(const Trace *t, Arena *a) {
    Items l = {0};
    for (int i = 0; i < t->n_settings; i++)
        add_item(&l, a, t->settings[i].name, t->settings[i].text);
    return l;
}
Table table_diff(const Cli *c, const Trace *a, const Trace *b, bool brief) {
    Arena *m = c->arena;
    Homes homes[2] = {homes_of(a, m), homes_of(b, m)};
    Side x = {a, brief ? &homes[0] : NULL, m}, y = {b, brief ? &homes[1] : NULL, m};
    Table t =
        table_new(m, "difference", diff_columns, (int)(sizeof diff_columns / sizeof *diff_columns));
    diff_items(&t, "run", run_items(a, m), run_items(b, m));
    if (a->n_settings && b->n_settings) /* traces of other writers may say nothing of them */
        diff_items(&t, "setting", setting_items(a, m), setting_items(b, m));
    if (brief) diff_homes(&t, &homes[0], &homes[1]);
    diff_items(&t, "parameter", param_items(&x, false), param_items(&y, false));
    diff_items(&t, "at rest", param_items(&x, true), param_items(&y, true));
    diff_items(&t, "value", value_items(&x), value_items(&y));
    diff_items(&t, "collectives", comm_items(a, m), comm_items(b, m));
    diff_items(&t, "undeclared sum", undeclared_items(a, m), undeclared_items(b, m));
    diff_items(&t, "planted", planted_items(a, m), planted_items(b, m));
    diff_items(&t, "memory", memory_items(a, m), memory_items(b, m));
    if (a->verdict && b->verdict)
        differ(&t, "verdict", "", cell_text(a->verdict), cell_text(b->verdict));
    if (a->executed && b->executed)
        differ(&t, "first wrong", "", cell_text(a->first_wrong), cell_text(b->first_wrong));
    return t;
}

void table_diff_record(Table *t, const TraceApart *x) {
    Cell *r = table_row(t);
    table_place(t, (RowPlace){.layer = -1, .at = -1, .part = -1});
    r[0] = cell_text("record");
    r[1] =
        cell_text(x->n == 1 ? "one differs" : arena_printf(t->arena, "%d differ, the first", x->n));
    r[2] = cell_text(x->a ? x->a : "-");
    r[3] = cell_text(x->b ? x->b : "-");
}

/* "96 KiB less sent", "96 KiB less memory": B against A. An amount with its unit is less, not
 * fewer. */
static const char *by_how_much(int64_t a, int64_t b, Arena *m) {
    int64_t d = a < b ? b - a : a - b;
    return arena_printf(m, "%s %s", bytes_text(d, m), b > a ? "more" : "less");
}
/* Modelled seconds of a step: of a pipeline by its schedule, else of the rank that others wait for;
 * 0: there are no times, or those of one micro-batch of several. */
static double step_of(const Trace *t) {
    bool busiest;
    double end = 0;
    for (int i = 0; i < t->n_actions; i++) end = t->actions[i].end > end ? t->actions[i].end : end;
    const RankSet *slowest = t->n_events ? trace_slowest(t, &busiest) : NULL;
    if (!slowest || end > 0 || trace_microbatches(t) > 1) return end;
    return trace_times_of(t, rankset_first(slowest)).span;
}
/* "step takes 450 µs"; of a pipeline "schedule takes 1.56 ms": what is done once a step is extra,
 * which `extra` says. */
static const char *step_words(const Trace *t, const char *takes, const char *time,
                              const char *extra, Arena *m) {
    return arena_printf(m, "%s%s %s%s", t->n_actions ? "schedule" : "step", takes, time,
                        t->n_actions ? extra : "");
}
/* "B's step takes 450 µs, A's 549 µs. ", in as many digits as tell them apart. */
static const char *steps_text(const Trace *a, const Trace *b, Arena *m) {
    static const char once[] = "what is done once a step is extra";
    const double x = step_of(a), y = step_of(b), least = x < y ? x : y, most = x < y ? y : x;
    if (!(least > 0)) return "";
    const char *own = time_text(y, m), *far = time_text(x, m), *part[2];
    const bool equal = most - least <= 5e-5 * most, both = a->n_actions && b->n_actions;
    if (!equal && !strcmp(own, far)) {
        const char *long_one = time_sum_text((double[]){least, most - least}, 2, part, m);
        own = x < y ? long_one : part[0], far = x < y ? part[0] : long_one;
    }
    if (!a->n_actions != !b->n_actions) {
        const char *extra = arena_printf(m, ", %s", once);
        return arena_printf(m, "B's %s, A's %s. ", step_words(b, " takes", own, extra, m),
                            step_words(a, "", far, extra, m));
    }
    const char *what = both ? "schedule" : "step", *end = both ? "; " : "";
    if (equal) return arena_printf(m, "Both %ss take %s%s%s. ", what, own, end, both ? once : "");
    return arena_printf(m, "B's %s takes %s, A's %s%s%s. ", what, own, far, end, both ? once : "");
}
const char *table_diff_verdict(const Trace *a, const Trace *b, Arena *m) {
    Str s = str_new(m);
    int64_t sent_a = lookup_most_sent(a, lookup_of_step, NULL),
            sent_b = lookup_most_sent(b, lookup_of_step, NULL);
    /* pictures may be of one micro-batch, and of the pass that both have */
    const bool parts = trace_microbatches(a) > 1 || trace_microbatches(b) > 1 ||
                       trace_has_backward(a) != trace_has_backward(b);
    str_addf(&s, "%sB against A, of a rank: %s%s", steps_text(a, b, m),
             sent_a == sent_b ? "the same bytes sent"
                              : arena_printf(m, "%s sent", by_how_much(sent_a, sent_b, m)),
             parts ? " in the whole step" : "");
    int64_t peak_a = lookup_peak(a, NULL), peak_b = lookup_peak(b, NULL);
    if (a->n_memory && b->n_memory)
        str_addf(&s, ", %s memory at the peak",
                 peak_a == peak_b ? "the same" : by_how_much(peak_a, peak_b, m));
    if (a->verdict && b->verdict)
        str_addf(&s, "; %s%s", a->verdict,
                 strcmp(a->verdict, b->verdict) ? arena_printf(m, ", and %s", b->verdict)
                                                : " both");
    return s.s;
}
