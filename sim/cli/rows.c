/* Rows of experts in words and numbers. See rows.h. */
#include "cli/rows.h"
#include "cli/find.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <string.h>

/* Rows of one side of a collective. */
typedef struct {
    const char *name;
    int64_t expected, most;
    const double *run; /* per rank; NULL: it was not run */
} Side;
/* "12", or "12-40" where ranks differ. */
static const char *range_text(Arena *a, const double *x, const TraceSpread *s, int64_t rank) {
    if (rank >= 0) return arena_printf(a, "%.0f", x[rank]);
    if (s->least == s->peak) return arena_printf(a, "%.0f", s->peak);
    return arena_printf(a, "%.0f-%.0f", s->least, s->peak);
}
static void side_text(Str *s, Arena *a, const Trace *t, const Side *x, int64_t rank) {
    if (!x->run) {
        str_addf(s, "%s %lld expected, %lld at most", x->name, (long long)x->expected,
                 (long long)x->most);
        return;
    }
    TraceSpread run = trace_spread(x->run, t->ranks);
    str_addf(s, "%s %s (expected %lld, at most %lld)", x->name, range_text(a, x->run, &run, rank),
             (long long)x->expected, (long long)x->most);
}
static void side_json(JsonWriter *w, const Trace *t, const Side *x, int64_t rank) {
    json_open(w, x->name, '{');
    json_int(w, "expected", x->expected);
    json_int(w, "most", x->most);
    if (x->run) {
        TraceSpread s = trace_spread(x->run, t->ranks);
        json_real(w, "least", rank < 0 ? s.least : x->run[rank]);
        json_real(w, "peak", rank < 0 ? s.peak : x->run[rank]);
        json_real(w, "mean", rank < 0 ? s.mean : x->run[rank]);
        json_int(w, "rank", rank < 0 ? s.peak_at : rank);
    }
    json_close(w, '}');
}
/* "peak over mean 1.67 (rank 2)" of what ranks receive: the one that gets most decides how long a
 * step takes. */
static void peak_text(Str *s, const Trace *t, const double *out) {
    TraceSpread x = trace_spread(out, t->ranks);
    if (x.mean > 0 && x.peak > x.mean)
        str_addf(s, "; out: peak over mean %.2f (rank %lld)", x.peak / x.mean,
                 (long long)x.peak_at);
}
Cell rows_of_collective(Arena *a, const Trace *t, const TraceCollective *k, int64_t rank) {
    if (k->row_bytes <= 0) return cell_text(NULL);
    const TraceExchange *x = trace_exchange(t, k->step);
    TraceTraffic b = collective_on(k, rank);
    const Side side[] = {{"in", b.bytes_in / k->row_bytes, k->most_in, x ? x->in : NULL},
                         {"out", b.bytes_out / k->row_bytes, k->most_out, x ? x->out : NULL},
                         {"sent", b.bytes_sent / k->row_bytes, k->most_sent, x ? x->sent : NULL}};
    Str s = str_new(a);
    JsonWriter w = json_writer(a);
    str_addf(&s, "of %s%s: ", bytes_text(k->row_bytes, a), x ? ", in the run" : "");
    json_open(&w, NULL, '{');
    json_int(&w, "bytes", k->row_bytes);
    json_bool(&w, "run", x != NULL);
    for (int i = 0; i < 3; i++) {
        if (i) str_add(&s, ", ");
        side_text(&s, a, t, &side[i], rank);
        side_json(&w, t, &side[i], rank);
    }
    json_close(&w, '}');
    if (x && rank < 0) peak_text(&s, t, x->out);
    return (Cell){s.s, s.s, w.s.s};
}
Cell rows_of_value(Arena *a, const Trace *t, const TraceValue *v, const TraceLocal *l,
                   int64_t rank) {
    if (v->most <= 0) return cell_text(NULL);
    const TraceRouted *k = trace_routed(t, v->list);
    Str s = str_new(a);
    JsonWriter w = json_writer(a);
    str_addf(&s, "%lld expected, %lld at most", (long long)l->shape[0], (long long)v->most);
    if (v->room) str_addf(&s, ", room for %s", v->room);
    json_open(&w, NULL, '{');
    json_int(&w, "expected", l->shape[0]);
    json_int(&w, "most", v->most);
    json_str(&w, "room", v->room);
    double least = INFINITY, peak = -INFINITY;
    int64_t one;
    for (RankWalk i = {0}; k && rankset_next(&l->ranks, &i, &one);) {
        double n = rank < 0 || one == rank ? routed_on(k, one) : NAN;
        least = fmin(least, n), peak = fmax(peak, n);
    }
    if (least <= peak) {
        str_addf(&s, least < peak ? ", %.0f-%.0f in the run" : ", %.0f in the run", least, peak);
        json_real(&w, "least", least);
        json_real(&w, "peak", peak);
    }
    json_close(&w, '}');
    return (Cell){s.s, s.s, w.s.s};
}

/* ---- below the table ---- */
static void dispatch_note(Str *s, const TraceDispatch *d) {
    str_addf(s, "%s: %.0f rows asked for", d->value, d->asked);
    if (d->asked > d->kept) str_addf(s, ", %.0f dropped, %.0f kept", d->asked - d->kept, d->kept);
    str_addf(s, "; experts get %.0f-%.0f; ranks compute on %.0f-%.0f", d->at_experts.least,
             d->at_experts.peak, d->at_ranks.least, d->at_ranks.peak);
    if (d->at_ranks.mean > 0)
        str_addf(s, ", peak over mean %.2f (rank %lld)", d->at_ranks.peak / d->at_ranks.mean,
                 (long long)d->at_ranks.peak_at);
    str_add(s, "\n");
}
void rows_dispatched(Str *notes, Arena *a, const Trace *t) {
    enum { SHOWN = 8 };
    int n;
    const TraceDispatch *d = trace_dispatches(t, a, &n);
    for (int i = 0; i < n && i < SHOWN; i++) dispatch_note(notes, &d[i]);
    if (n > SHOWN) str_addf(notes, "and %d more layers: `routed` records have them\n", n - SHOWN);
}
static const Column dispatch_columns[] = {
    {"layer", "layer", true, 0},
    {"value", "value", false, 0},
    {"experts", "experts", true, 0},
    {"asked", "asked for", true, 0},
    {"kept", "kept", true, 0},
    {"dropped", "dropped", true, 0},
    {"expert_least", "fewest of an expert", true, 0},
    {"expert_peak", "most of an expert", true, 0},
    {"rank_least", "fewest on a rank", true, 0},
    {"rank_peak", "most on a rank", true, 0},
    {"rank_mean", "mean of the ranks", true, 0},
    {"peak_rank", "rank that has most", true, 0},
};
Table rows_dispatches(Arena *a, const Trace *t) {
    Table out =
        table_new(a, "dispatch", dispatch_columns, sizeof dispatch_columns / sizeof(Column));
    int n;
    const TraceDispatch *d = trace_dispatches(t, a, &n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&out);
        r[0] = cell_int(a, d[i].layer);
        r[1] = cell_text(d[i].value);
        r[2] = cell_int(a, d[i].experts);
        r[3] = cell_real(a, d[i].asked);
        r[4] = cell_real(a, d[i].kept);
        r[5] = cell_real(a, d[i].asked - d[i].kept);
        r[6] = cell_real(a, d[i].at_experts.least);
        r[7] = cell_real(a, d[i].at_experts.peak);
        r[8] = cell_real(a, d[i].at_ranks.least);
        r[9] = cell_real(a, d[i].at_ranks.peak);
        r[10] = cell_real(a, d[i].at_ranks.mean);
        r[11] = cell_int(a, d[i].at_ranks.peak_at);
    }
    return out;
}
const char *rows_sent(Arena *a, const Trace *t, int64_t rank) {
    bool known = false;
    double *sent = ARENA_ARRAY(a, double, t->ranks + 1), expected = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        known |= k->row_bytes > 0 && trace_exchange(t, k->step);
        expected += (double)collective_on(k, rank).bytes_sent;
        for (int64_t r = 0; t->n_exchanges && r < t->ranks; r++)
            sent[r] += (double)trace_sent(t, k, r);
    }
    if (!known) return NULL;
    TraceSpread s = trace_spread(sent, t->ranks);
    const char *due = bytes_text((int64_t)expected, a),
               *one = bytes_text((int64_t)(rank < 0 ? s.peak : sent[rank]), a);
    if (rank >= 0 || s.least == s.peak)
        return arena_printf(a, "%s in the run, %s expected", one, due);
    int64_t low = 0;
    while (sent[low] > s.least) low++;
    LookupRange of = lookup_range((int64_t)s.least, (int64_t)s.peak, false, a);
    return arena_printf(a, "%s (rank %lld) to %s (rank %lld) in the run, %s expected", of.least,
                        (long long)low, of.most, (long long)s.peak_at, due);
}
/* May the router decide how many rows there are? */
static bool varies(const TraceCollective *k) {
    return k->bytes_in != k->most_in * k->row_bytes || k->bytes_out != k->most_out * k->row_bytes ||
           k->bytes_sent != k->most_sent * k->row_bytes;
}
void rows_notes(Str *notes, Arena *a, const Trace *t) {
    bool any = false, ragged = false, known = false;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].row_bytes > 0) {
            any = true;
            ragged |= varies(&t->collectives[i]);
            known |= trace_exchange(t, t->collectives[i].step) != NULL;
        }
    if (ragged)
        str_add(notes, known
                           ? "bytes of rows are those to expect where all experts are asked for as "
                             "often; `rows` has the run's\n"
                           : "rows and their bytes are those to expect where all experts are asked "
                             "for as often; how many there are, a run's trace says\n");
    if (any) rows_dispatched(notes, a, t);
}
