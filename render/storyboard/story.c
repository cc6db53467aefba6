/* Facts and words of the storyboard. See story.h. */
#include "render/storyboard/hops.h"
#include "base/text.h"
#include "render/storyboard/story.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 8, MOST_COLUMNS = 12 }; /* of a chunk that is shown whole */

/* ---- what to tell ---- */

static const struct {
    const char *op;
    RingKind kind;
} kinds[] = {{"all_gather", RING_GATHER}, {"reduce_scatter", RING_SCATTER},
             {"all_reduce", RING_REDUCE}, {"all_to_all", RING_EXCHANGE},
             {"shift", RING_SHIFT},       {"slice", RING_SLICE}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool kind_of(const char *op, RingKind *k) {
    for (int i = 0; op && i < N_KINDS; i++)
        if (!strcmp(op, kinds[i].op)) {
            *k = kinds[i].kind;
            return true;
        }
    return false;
}
static bool asked(const char *part, const char *want, const char *op, const char *value, int step) {
    char *end;
    long n = part ? strtol(part, &end, 10) : 0;
    if (part && *part && !*end) return n == step;
    return !part || !strcmp(want, op) ||
           (value && (text_names(value, part) || !strcmp(part, words_leaf(value))));
}
/* Ranks over axes as the trace writes them: "dp*cp". */
static int64_t axes_size(const Trace *t, const char *axes) {
    int64_t n = 1;
    for (const char *p = axes ? axes : ""; *p;) {
        size_t k = strcspn(p, "*");
        for (int i = 0; i < t->n_axes; i++)
            if (strlen(t->axes[i].name) == k && !strncmp(t->axes[i].name, p, k))
                n *= t->axes[i].size;
        p += k + (p[k] != 0);
    }
    return n;
}

/* Index lists are exchanged too: which rows there are, and no numbers. */
static bool is_list(const Trace *t, const TraceCollective *x) {
    return trace_routed(t, x->step) || (x->dtype && !strcmp(x->dtype, "i64"));
}
/* Where to look if nothing is asked for: at the mistake, then at the first wrong value, then inside
 * a layer: of an embedding that is cut by words all ranks but one have zeros. */
enum { MISTAKE = 4 };
static int worth(const Trace *t, const TraceCollective *x) {
    RingKind kind;
    if (x->planted || x->wrong) return MISTAKE + 1;
    if (t->first_wrong && x->value && !strcmp(x->value, t->first_wrong)) return MISTAKE;
    const TraceValue *v = trace_value(t, x->value, x->step);
    if (is_list(t, x) || (v && v->shape.nd == 0)) return 0; /* no numbers, or one in no chunks */
    if (x->layer < 0) return 1;
    return x->row_bytes > 0 && kind_of(x->op, &kind) && kind != RING_EXCHANGE ? 2 : 3;
}
/* Of those that are worth as much the one of most ranks that a page shows is told: of two ranks
 * there is but one step. */
static int64_t ranks_shown(const TraceCollective *x) {
    const int64_t n = groups_size(&x->groups);
    return n <= RING_MAX && phase_or_forward(x->pass) == PHASE_FORWARD ? n : 1;
}
static bool told(const TraceCollective *x) {
    RingKind kind;
    return kind_of(x->op, &kind) && groups_size(&x->groups) > 1;
}

bool story_mistake(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++)
        if (told(&t->collectives[i]) && worth(t, &t->collectives[i]) >= MISTAKE) return true;
    return false;
}
/* Can frames show which blocks go astray? */
static bool shifted(const Story *s) {
    const RingKind k = s->ring.kind;
    return s->coll->shift % s->ranks && !s->coll->alone &&
           (k == RING_GATHER || k == RING_SCATTER || k == RING_EXCHANGE);
}
static bool choose(Story *s) {
    const Trace *t = s->c->t;
    const char *part = s->c->o->part;
    int most = 0;
    int64_t ranks = 1;
    for (int i = 0; !part && i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        const int w = told(x) ? worth(t, x) : 0;
        if (w > most) most = w, ranks = 1;
        if (w && w == most && w < MISTAKE && ranks_shown(x) > ranks) ranks = ranks_shown(x);
    }
    char *want = arena_strdup(s->a, part ? part : "");
    for (char *p = want; *p; p++) *p = *p == '-' ? '_' : *p;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        if (!told(x) || !asked(part, want, x->op, x->value, x->step) ||
            (most && (worth(t, x) < most || ranks_shown(x) < ranks)))
            continue;
        kind_of(x->op, &s->ring.kind);
        s->coll = x;
        s->op = x->op, s->value = x->value, s->step = x->step;
        s->axis = words_axis_list(s->a, t, x->axis);
        s->ranks = groups_size(&x->groups);
        s->bytes = s->ring.kind == RING_GATHER ? x->bytes_out : x->bytes_in;
        s->sent = x->bytes_sent;
        s->ring.max = x->reduce && !strcmp(x->reduce, "max");
        s->ring.shift = shifted(s) ? x->shift : 0;
        return true;
    }
    for (int i = 0; part && i < t->n_moves; i++) {
        const TraceLocalMove *x = &t->moves[i];
        if (!kind_of(x->op, &s->ring.kind) || axes_size(t, x->axes) < 2) continue;
        if (!asked(part, want, x->op, x->value, x->step)) continue;
        s->op = x->op, s->value = x->value, s->step = x->step;
        s->axis = words_axis_list(s->a, t, x->axes);
        s->ranks = axes_size(t, x->axes);
        const TraceValue *v = trace_value(t, x->value, x->value_step);
        const TraceLocal *l = v ? words_find_local(&v->shape, 0) : NULL;
        s->bytes = l ? l->bytes : 0;
        return true;
    }
    return false;
}

static const char *what_there_is(const ViewCall *c) {
    Str s = str_new(c->arena);
    for (int k = 0; k < N_KINDS; k++) {
        bool has = false;
        for (int i = 0; i < c->t->n_collectives; i++)
            has |= !strcmp(c->t->collectives[i].op, kinds[k].op);
        for (int i = 0; i < c->t->n_moves; i++) has |= !strcmp(c->t->moves[i].op, kinds[k].op);
        if (has)
            str_addf(&s, "%s%s",
                     s.n ? ", " : "--part takes a value, a step or one of: ", kinds[k].op);
    }
    if (hops_there(c->t)) str_add(&s, ", ring");
    return s.n ? s.s : NULL;
}

/* ---- whose numbers ---- */

/* The sample of the step, if it is of the group that is asked for. */
static const TraceSample *find_sample(const Story *s, int64_t group) {
    const Trace *t = s->c->t;
    for (int i = 0; i < t->n_samples; i++) {
        const TraceSample *k = &t->samples[i];
        int64_t each = s->ring.kind == RING_GATHER ? 1 : k->size;
        if (k->step != s->step || k->size != s->ranks || k->n_chunks != s->ring.n_shown) continue;
        if (k->n_before != k->n_chunks * each || k->n_after != k->n_chunks) continue;
        if (s->coll && words_group_of(&s->coll->groups, k->first) != group) continue;
        return k;
    }
    return NULL;
}
/* An exchange of rows has no chunks of one size: its numbers are how many rows go from rank to
 * rank, as the run counted them. [place shown][rank]. */
static const TraceSample *rows_sample(Story *s, int64_t group) {
    const TraceExchange *x = s->coll->row_bytes > 0 ? trace_exchange(s->c->t, s->step) : NULL;
    if (!x || !x->n_to || x->size != s->ranks || s->ring.kind != RING_EXCHANGE) return NULL;
    TraceSample *k = ARENA_NEW(s->a, TraceSample);
    *k = (TraceSample){.step = s->step, .size = s->ranks, .n_chunks = s->ring.n_shown};
    k->n_before = k->n_chunks * s->ranks;
    k->before = ARENA_ARRAY(s->a, double, k->n_before + 1);
    for (int64_t i = 0; i < k->n_chunks; i++)
        for (int64_t r = 0; r < s->ranks; r++)
            k->before[i * s->ranks + r] =
                exchange_pair(x, s->coll, group < 0 ? 0 : group, r, s->ring.shown[i]).sent;
    s->rows = true;
    return k;
}
static void choose_ranks(Story *s) {
    RingStory *r = &s->ring;
    int64_t own = s->c->o->rank >= 0 && s->c->o->rank < s->c->t->ranks ? s->c->o->rank : 0;
    int64_t group = s->coll ? words_group_of(&s->coll->groups, own) : 0;
    r->n = (int)(s->ranks < 1 << 20 ? s->ranks : 1 << 20);
    r->n_shown = r->n > RING_MAX ? 4 : r->n;
    for (int i = 0; i < r->n_shown; i++) {
        r->shown[i] = r->n > RING_MAX && i == r->n_shown - 1 ? r->n - 1 : i;
        s->rank[i] = s->coll ? groups_member(&s->coll->groups, group < 0 ? 0 : group, r->shown[i])
                             : r->shown[i];
    }
    s->sample = s->coll ? rows_sample(s, group) : NULL;
    if (!s->sample && !(s->coll && s->coll->row_bytes > 0)) s->sample = find_sample(s, group);
    r->before = s->sample ? s->sample->before : NULL;
    if (r->kind != RING_SHIFT) return;
    /* of whose block the last is made tells the way; without a run gradients go home */
    const double *last = r->before ? r->before + (int64_t)(r->n_shown - 1) * r->n : NULL;
    r->back = last ? isfinite(last[0]) && r->n > 2 && !isfinite(last[r->n - 2])
                   : s->coll && subject_is_gradient(s->coll->subject) && r->n > 2;
}
/* "all_reduce(dp), sum": what is done, as the record says what is declared. */
static const char *done_text(const Story *s) {
    const TraceCollective *c = s->coll;
    return arena_printf(s->a, "%s(%s)%s%s", c->op, c->axes ? c->axes : "", c->reduce ? ", " : "",
                        c->reduce ? c->reduce : "");
}
/* Is something else done than what is declared, in kind, group or sum? Frames follow the record. */
static bool done_otherwise(const Story *s) {
    return s->coll->declared && strcmp(s->coll->declared, done_text(s)) != 0;
}
bool story_undrawn(const Story *s) {
    const TraceCollective *c = s->coll;
    if (!c || !c->planted) return false;
    return c->alone || (!s->ring.shift && !story_skipped(s) && c->times <= 1 && !done_otherwise(s));
}
bool story_skipped(const Story *s) { return s->coll && wrong_skipped(s->coll); }
static void make_frames(Story *s) {
    int n = s->ring.n, steps = ring_steps(s->ring.kind, n), half = n - 1;
    int few[] = {0, 1, 2, half, half + 1, steps}; /* of a long story */
    if (story_skipped(s)) steps = 0;
    const bool pairs = s->ring.kind == RING_EXCHANGE && (n % 2 || s->ring.shift),
               whole = n <= RING_MAX && !pairs;
    if (whole)
        for (int i = 0; i <= steps; i++) ring_frame(&s->frame[s->frames++], &s->ring, i);
    for (int i = 0, last = -1; !whole && i < 6; i++) {
        if (few[i] <= last || few[i] > steps || (pairs && few[i] && few[i] < steps)) continue;
        ring_frame(&s->frame[s->frames++], &s->ring, last = few[i]);
    }
}
/* What is left out moves nothing: its frame has no arrows. */
static void still(Story *s) {
    for (int f = 0; story_skipped(s) && f < s->frames; f++)
        for (int i = 0; i < s->ring.n_shown; i++)
            for (int k = 0; k < s->ring.n_shown; k++) s->frame[f].cell[i][k].sends = false;
}
int story_rows(const Story *s, int chunk) { return (int)s->sample->rows[chunk]; }
int story_columns(const Story *s, int chunk) { return (int)s->sample->columns[chunk]; }
/* The same frames for each element of the chunks, where the run recorded them all. */
static void make_elements(Story *s) {
    const TraceSample *k = s->sample;
    int n = s->ring.n_shown, most = 0;
    int64_t members = s->ring.kind == RING_GATHER ? 1 : s->ring.n, all = 0, made = 0;
    bool whole = k && n == s->ring.n && k->n_rows == n && k->n_columns == n;
    for (int c = 0; whole && c < n; c++) {
        bool sane = k->rows[c] >= 1 && k->columns[c] >= 1 && k->rows[c] <= MOST_ROWS &&
                    k->columns[c] <= MOST_COLUMNS;
        int size = sane ? story_rows(s, c) * story_columns(s, c) : 0;
        whole &= sane;
        all += size * members;
        made += size;
        most = size > most ? size : most;
    }
    if (!whole || most < 2 || all != k->n_whole || made != k->n_made) return;
    s->elements = most;
    s->element = ARENA_ARRAY(s->a, Ring, (int64_t)most * s->frames);
    for (int e = 0; e < most; e++) {
        double *before = ARENA_ARRAY(s->a, double, n *members);
        const double *from = k->whole;
        for (int c = 0; c < n; c++)
            for (int64_t r = 0, size = story_rows(s, c) * story_columns(s, c); r < members;
                 r++, from += size)
                before[c * members + r] = e < size ? from[e] : NAN;
        RingStory one = s->ring;
        one.before = before;
        for (int f = 0; f < s->frames; f++)
            ring_frame(&s->element[e * s->frames + f], &one, s->frame[f].step);
    }
}
const char *story_element(const Story *s, int frame, int chunk, int rank, int element) {
    return story_number(s, s->element[element * s->frames + frame].cell[chunk][rank].value);
}
/* One decimal less, where all chunks can still be told apart. */
static void shorten(Story *s, const Ring *frame) {
    const char *seen[RING_MAX * RING_MAX];
    int n = 0;
    if (s->decimals < 2) return;
    s->decimals--;
    for (int i = 0; i < s->ring.n_shown; i++)
        for (int k = 0; k < s->ring.n_shown; k++) {
            if (!frame[0].cell[i][k].held) continue;
            seen[n++] = story_number(s, frame[0].cell[i][k].value);
            for (int j = 0; j < n - 1; j++)
                if (!strcmp(seen[j], seen[n - 1])) {
                    s->decimals++;
                    return;
                }
        }
}
/* As many decimals as give the largest number three digits or four; very small or large ones get a
 * power of ten. */
static void choose_digits(Story *s) {
    double top = 0;
    s->whole = true;
    s->decimals = s->power = 0;
    const Ring *frame = s->elements ? s->element : s->frame;
    for (int f = 0, n = s->frames * (s->elements ? s->elements : 1); f < n; f++)
        for (int i = 0; i < s->ring.n_shown; i++)
            for (int k = 0; k < s->ring.n_shown; k++) {
                const RingCell *c = &frame[f].cell[i][k];
                if (!c->held || !isfinite(c->value)) continue;
                top = fmax(top, fabs(c->value));
                s->whole &= c->value == floor(c->value);
            }
    s->whole &= top < 1e5;
    if (s->whole || top <= 0) return;
    int e = (int)floor(log10(top));
    if (e < -2 || e > 3) s->power = e < 0 ? -3 * ((2 - e) / 3) : 3 * (e / 3);
    e -= s->power;
    s->decimals = e >= 2 ? 3 - e : 3 - (e > 0 ? e : 0);
    if (s->decimals < 0) s->decimals = 0;
    if (e < 0) s->decimals = 2 - e;
    /* what is only moved is told apart with one digit less; terms have to be seen to add up */
    if (s->ring.kind != RING_SCATTER && s->ring.kind != RING_REDUCE && !s->elements)
        shorten(s, frame);
}

void story_no_whole(Story *s) {
    s->elements = 0;
    choose_digits(s);
}
static int wrap_shift(const Story *s) {
    return (s->ring.shift % s->ring.n + s->ring.n) % s->ring.n;
}
/* What comes of the mistake in this step, beside what its note says; NULL: nothing. */
static const char *outcome(const Story *s) {
    const long long first = s->rank[0], other = story_rank(s, wrap_shift(s));
    if (!s->coll || !s->coll->planted || story_skipped(s)) return NULL;
    if (story_undrawn(s)) return "the frames show it without the mistake";
    if (!s->ring.shift)
        return s->coll->times > 1
                   ? "the frames show it once"
                   : arena_printf(s->a, "drawn as it is done; due is %s", s->coll->declared);
    switch (s->ring.kind) {
    case RING_GATHER:
        return arena_printf(s->a,
                            "every rank ends with the chunk of rank %lld at the place of that of "
                            "rank %lld, and so on",
                            (long long)story_rank(s, s->ring.n - wrap_shift(s)), first);
    case RING_SCATTER:
        return arena_printf(s->a,
                            "rank %lld ends with c%d, which is due to rank %lld, and so on round "
                            "the ring",
                            first, wrap_shift(s), other);
    default:
        return arena_printf(s->a, "rank %lld ends with what is meant for rank %lld, and so on",
                            first, other);
    }
}
/* The note about this step says what comes of it. */
static const WrongList *with_outcome(const Story *s, const WrongList *l) {
    const char *more = outcome(s);
    const int own = wrong_number(l, s->step) - 1;
    if (own < 0 || !more) return l;
    WrongList *out = arena_memdup(s->a, l, sizeof *l);
    WrongNote *note = arena_memdup(s->a, l->note, sizeof *note * (size_t)l->n);
    note[own].text = arena_printf(s->a, "%s; %s", note[own].text, more);
    if (note[own].where) note[own].where = arena_printf(s->a, "%s: %s", note[own].where, more);
    out->note = note;
    return out;
}
static bool own_step(const void *of, int step) { return ((const Story *)of)->step == step; }

bool story_prepare(const ViewCall *c, Story *s) {
    *s = (Story){.c = c, .a = c->arena};
    if (!choose(s)) {
        const char *there = what_there_is(c);
        there = words_part_help(c->arena, c->o, there);
        diag_error(
            c->d, c->o->part ? "E0212" : "E0211", diag_nowhere,
            there || !c->t->schedule ? there : "--view pipeline: what stages send to each other",
            "nothing to draw in view 'storyboard': %s",
            c->o->part ? arena_printf(c->arena, "the trace has no collective '%s'", c->o->part)
            : c->t->schedule ? "stages send from one rank to another, and no group of ranks "
                               "has a collective"
                             : "the trace has no collective");
        return false;
    }
    choose_ranks(s);
    s->wrong = wrong_find(s->a, c->t, own_step, s);
    s->is_wrong = s->wrong->n > 0;
    s->wrong = s->is_wrong ? with_outcome(s, s->wrong) : wrong_find(s->a, c->t, NULL, NULL);
    make_frames(s);
    still(s);
    make_elements(s);
    choose_digits(s);
    return true;
}

/* ---- words ---- */

const char *story_number(const Story *s, double v) {
    if (isnan(v)) return "none";
    if (isinf(v)) return v > 0 ? "∞" : "−∞";
    double shown = v / pow(10, s->power);
    const char *text = arena_printf(s->a, "%.*f", s->whole ? 0 : s->decimals, fabs(shown));
    bool zero = strspn(text, "0.") == strlen(text);
    return arena_printf(s->a, "%s%s", v < 0 && !zero ? "−" : "", text);
}
int64_t story_rank(const Story *s, int member) {
    if (s->coll) {
        int64_t g = words_group_of(&s->coll->groups, s->rank[0]);
        return groups_member(&s->coll->groups, g < 0 ? 0 : g, member % s->ring.n);
    }
    return member % s->ring.n;
}
const char *story_terms(const Story *s, const RingCell *c, bool shorter) {
    Str t = str_new(s->a);
    if (s->ring.kind == RING_EXCHANGE)
        return arena_printf(s->a, "%lld→%lld", (long long)story_rank(s, c->first),
                            (long long)story_rank(s, c->to));
    if (shorter || c->terms > RING_MAX)
        return arena_printf(s->a, "%lld→%lld", (long long)story_rank(s, c->first),
                            (long long)story_rank(s, c->first + c->terms - 1));
    for (int i = 0; i < c->terms; i++)
        str_addf(&t, "%s%lld", i ? "+" : "", (long long)story_rank(s, c->first + i));
    return t.s;
}
static bool is_ring(const Story *s) {
    return s->ring.kind <= RING_REDUCE || s->ring.kind == RING_SHIFT;
}

/* "values after layers.0.attention.wo", "the gradient after ..": a value by the plan's name of the
 * module that makes it, as the other figures call it; `behind` an op: "after ..", "of the
 * gradient after ..". */
static const char *value_words(const Story *s, bool behind) {
    const char *of = behind ? "of " : "";
    if (!s->value) return arena_printf(s->a, "%sa value", of);
    if (trace_param(s->c->t, s->value)) return arena_printf(s->a, "%s%s", of, s->value);
    const ValueName k = words_value_name(s->a, s->c->t, s->value);
    const bool after = k.after && !k.gradient;
    return arena_printf(s->a, "%s%s%s%s", after ? "" : of,
                        k.gradient         ? "the "
                        : after && !behind ? "values "
                                           : "",
                        k.before, k.path);
}
/* "w1 and 8 more": all that travels in this collective, an FSDP unit's tensors. */
static const char *what_travels(const Story *s, bool behind) {
    const char *of = value_words(s, behind);
    return s->coll && s->coll->n_with ? arena_printf(s->a, "%s and %d more", of, s->coll->n_with)
                                      : of;
}
const char *story_headline(const Story *s) {
    const CollWord *w = coll_word(s->op);
    const char *name = s->ring.kind == RING_SLICE ? "Slice" : w ? w->name : s->op;
    const char *of = what_travels(s, true);
    if (story_skipped(s))
        return arena_printf(s->a, "%s %s, %lld ranks: left out", name, of, (long long)s->ranks);
    return arena_printf(s->a, "%s%s %s, %lld ranks, step by step", is_ring(s) ? "Ring " : "", name,
                        of, (long long)s->ranks);
}
const char *story_text(const Story *s) {
    bool mean = s->coll && s->coll->reduce && !strcmp(s->coll->reduce, "avg");
    const char *what = s->ring.max ? "maximum" : mean ? "mean" : "sum";
    if (story_skipped(s)) return "Nothing is sent: every rank goes on with what it has.";
    switch (s->ring.kind) {
    case RING_GATHER:
        return "Each rank starts with one chunk and ends with all. In every step all ranks send "
               "one chunk to the right at the same time.";
    case RING_SCATTER:
        return arena_printf(
            s->a,
            "Each rank starts with its own term of %lld chunks and ends with the finished %s of "
            "one. In every step all ranks send one chunk to the right at the same time.",
            (long long)s->ranks, what);
    case RING_REDUCE:
        return arena_printf(
            s->a,
            "First a ReduceScatter (%lld chunks, every rank finishes one %s), then an AllGather of "
            "the results. In each step all ranks send a chunk to the right.",
            (long long)s->ranks, what);
    case RING_EXCHANGE:
        if (s->ring.shift)
            return "Place r of a rank holds what is meant for rank r, afterwards what came from "
                   "rank r, which is meant for another. The steps are drawn as one.";
        return s->ranks % 2
                   ? "Place r of a rank holds what is meant for rank r, afterwards what came from "
                     "rank r: the table is transposed. The steps are drawn as one."
                   : "Place r of a rank holds what is meant for rank r, afterwards what came from "
                     "rank r: the table is transposed. In every step the ranks swap in pairs.";
    case RING_SHIFT:
        return s->ring.back ? "All ranks send what they hold to the rank before, at the same time: "
                              "one hop of a ring."
                            : "All ranks send what they hold to the next rank, at the same time: "
                              "one hop of a ring.";
    default: return "Every rank has all chunks and keeps its own: nothing is sent, nobody waits.";
    }
}
/* How often all of it is done: twice where a planted mistake says so. The frames show it once. */
static int times_done(const Story *s) { return s->coll && s->coll->times > 1 ? s->coll->times : 1; }
const char *story_frame(const Story *s, const Ring *f) {
    int times = times_done(s);
    if (f->step == 0) return "Start";
    if (f->step == f->steps && times > 1)
        return arena_printf(s->a, "Step %d of %d: done once", f->step, f->steps * times);
    if (f->step == f->steps && story_undrawn(s))
        return arena_printf(s->a, "After step %d: as it should be", f->step);
    if (f->step == f->steps)
        return s->ring.kind == RING_SLICE ? "Done"
                                          : arena_printf(s->a, "After step %d: done", f->step);
    bool half = s->ring.kind == RING_REDUCE && f->step == s->ring.n - 1;
    return arena_printf(s->a, "After step %d%s", f->step, half ? ": sums" : "");
}
/* Of an exchange of rows: those that are where they should be. */
static const char *rows_sent(const Story *s, const Ring *f) {
    double all = 0, there = 0;
    for (int i = 0; i < s->ring.n_shown; i++)
        for (int r = 0; r < s->ring.n_shown; r++) {
            const RingCell *c = &f->cell[i][r];
            if (!c->held || !isfinite(c->value)) continue;
            all += c->value;
            there += c->done ? c->value : 0;
        }
    return arena_printf(s->a, "%.0f of %.0f rows in place", there, all);
}
const char *story_sent(const Story *s, const Ring *f) {
    if (s->rows && s->ranks == s->ring.n_shown) return rows_sent(s, f);
    if (f->step == 0)
        return s->ring.kind == RING_GATHER ? "each rank: one chunk, M/n" : "each rank: all of M";
    if (s->ring.kind == RING_SLICE) return "sent nothing";
    if (s->ring.kind == RING_SHIFT)
        return arena_printf(s->a, "sent M = %s", bytes_text(s->sent, s->a));
    int a = f->step, b = s->ring.n;
    for (int d = 2; d <= b; d++)
        while (a % d == 0 && b % d == 0) a /= d, b /= d;
    const char *part = b == 1
                           ? arena_printf(s->a, "%sM", a == 1 ? "" : arena_printf(s->a, "%d ", a))
                           : arena_printf(s->a, "%d/%d of M", a, b);
    const double sent = (double)s->sent / times_done(s) * f->step / f->steps,
                 share = (double)s->bytes * a / b;
    const char *bytes = bytes_text((int64_t)sent, s->a);
    /* chunks that are padded are no such part of M */
    if (fabs(sent - share) > 0.02 * sent) return arena_printf(s->a, "sent %s", bytes);
    return arena_printf(s->a, "sent %s = %s", part, bytes);
}

/* Is a single number moved? */
static bool scalar(const Story *s) {
    const TraceValue *v = trace_value(s->c->t, s->value, s->step);
    return v && v->shape.nd == 0;
}
/* How far what the last frame has of chunk i is from the run's own result. */
static void beside(const Story *s, const Ring *frame, int i, double result, double *off,
                   double *top) {
    const Ring *end = &frame[s->frames - 1];
    for (int r = 0; r < s->ring.n_shown && s->ring.kind != RING_EXCHANGE; r++)
        if (end->cell[i][r].done && isfinite(result)) {
            *off = fmax(*off, fabs(end->cell[i][r].value - result));
            *top = fmax(*top, fabs(result));
        }
}
static const char *numbers_words(const Story *s) {
    const TraceSample *k = s->sample;
    if (!k && s->coll && s->coll->row_bytes > 0 && s->c->t->n_exchanges)
        return "No numbers: chunks have as many rows as their lists say, and are not sampled.";
    if (!k && s->coll && s->coll->row_bytes > 0)
        return "No numbers: how many rows go from rank to rank only a run knows.";
    if (!k && s->ranks > 64)
        return "No numbers: the runs of groups of more than 64 ranks are not sampled.";
    if (!k && s->coll && s->coll->planted)
        return "No numbers: a planted mistake changes what this step does.";
    if (!k && s->coll && is_list(s->c->t, s->coll))
        return "No numbers: it is an index list, which names the rows that there are.";
    if (!k && s->coll && s->c->t->executed && scalar(s))
        return "No numbers: it is one number, and has no chunks.";
    if (!k && s->c->t->n_samples)
        return "No numbers: the trace has samples of another group; `draw PLAN --view storyboard "
               "--rank R` samples the group of rank R.";
    if (!k)
        return "No numbers: this was not executed; a run in f32 or f64 keeps some."; /* a slide has
                                                                                        two lines
                                                                                        for all */
    if (s->rows)
        return arena_printf(s->a, "Numbers: rows of %s from rank to rank, counted by the run.",
                            bytes_text(s->coll->row_bytes, s->a));
    Str t = str_new(s->a);
    str_addf(&t, "Numbers: of the run, %s", s->elements ? "whole chunks" : "one element per chunk");
    if (s->ring.kind != RING_EXCHANGE && k->n_at && *k->at[0])
        str_addf(&t, s->elements ? " (c0 from %s)" : " (c0: %s)", k->at[0]);
    if (!s->whole) str_addf(&t, ", rounded%s", s->power ? "" : " when printed");
    if (s->power) str_addf(&t, ", in units of 1e%d", s->power);
    double off = 0, top = 0;
    const double *made = k->made;
    for (int i = 0; i < s->ring.n_shown; i++) {
        int size = s->elements ? story_rows(s, i) * story_columns(s, i) : 1;
        for (int e = 0; e < size; e++) {
            const Ring *frame = s->elements ? &s->element[e * s->frames] : s->frame;
            beside(s, frame, i, s->elements ? *made++ : k->after[i], &off, &top);
        }
    }
    if (s->ring.kind == RING_SCATTER || s->ring.kind == RING_REDUCE)
        str_addf(&t,
                 off <= 1e-5 * top ? "; the %s are those of the run"
                                   : "; the run's own results differ from these %s",
                 s->ring.max ? "maxima" : "sums");
    return arena_printf(s->a, "%s.", t.s);
}
/* ", M = 4 KiB, n = 4: n−1 = 3 steps, 3 KiB sent per rank"; of rows what the run's ranks sent,
 * where it counted them, else what is to be expected. */
static void add_volume(const Story *s, Str *t) {
    const char *steps = s->ring.kind == RING_REDUCE  ? "2(n−1)"
                        : s->ring.kind == RING_SHIFT ? "a hop"
                                                     : "n−1",
               *expected = s->coll && s->coll->row_bytes > 0 ? " expected" : "",
               *sent = arena_printf(s->a, "%s%s sent per rank", bytes_text(s->sent, s->a),
                                    *expected ? " expected to be" : "");
    int times = times_done(s), n = ring_steps(s->ring.kind, s->ring.n) * times;
    const char *often = times > 1 ? arena_printf(s->a, "%d × ", times) : "";
    if (*expected && trace_exchange(s->c->t, s->step)) {
        int64_t own = s->rank[0], group = words_group_of(&s->coll->groups, own),
                least = trace_sent(s->c->t, s->coll, own), most = least;
        for (int64_t i = 0; i < s->ranks; i++) {
            int64_t b = trace_sent(s->c->t, s->coll,
                                   groups_member(&s->coll->groups, group < 0 ? 0 : group, i));
            least = b < least ? b : least, most = b > most ? b : most;
        }
        sent =
            arena_printf(s->a, "%s%s sent per rank in the run, %s expected",
                         least < most ? arena_printf(s->a, "%s to ", bytes_text(least, s->a)) : "",
                         bytes_text(most, s->a), bytes_text(s->sent, s->a));
    }
    if (!s->rows || s->ranks > s->ring.n_shown) /* else the frames count rows, and say no M */
        str_addf(t, ", M = %s%s", bytes_text(s->bytes, s->a), expected);
    str_addf(t, ", n = %lld", (long long)s->ranks);
    if (s->ring.kind != RING_SLICE && !story_skipped(s))
        str_addf(t, ": %s%s = %d step%s, %s", often, steps, n, n == 1 ? "" : "s", sent);
}
const char *story_plan(const Story *s) {
    Str t = str_new(s->a);
    str_addf(&t, "In this plan: step %d, %s over %s", s->step, what_travels(s, false), s->axis);
    if (s->coll && s->coll->inferred) str_add(&t, ", which no line of the plan asks for");
    if (s->ranks > s->ring.n_shown)
        str_addf(&t, ", of whose %lld ranks and chunks the first three and the last are drawn",
                 (long long)s->ranks);
    add_volume(s, &t);
    str_add(&t, ".");
    for (int i = 0; i < s->c->t->n_events; i++) {
        const TraceEvent *e = &s->c->t->events[i];
        if (e->step != s->step || !e->formula || !s->coll || story_skipped(s)) continue;
        bool result = strrchr(e->formula, '=') != NULL,
             rows = s->coll->row_bytes > 0 && trace_exchange(s->c->t, s->step);
        str_addf(&t, " Time, modelled: %s%s%s.", e->formula,
                 result ? "" : arena_printf(s->a, " = %s", time_text(e->end - e->start, s->a)),
                 rows && s->ring.kind == RING_EXCHANGE ? "; of each step the largest message counts"
                                                       : "");
        break;
    }
    if (s->ring.kind == RING_REDUCE && !story_skipped(s))
        str_add(&t, " AllReduce = ReduceScatter, then AllGather of the results.");
    str_addf(&t, " %s", numbers_words(s));
    return t.s;
}
