/* Numbers of a sweep. See sweep.h. */
#include "render/sweep/sweep.h"
#include <string.h>

const char *sweep_what(const Sweep *s) { return s->others->rows ? "rows" : "batch"; }

/* ---- batches ---- */
/* Puts a batch among the others in its place; false: it is no legal plan. */
static bool add_batch(Sweep *s, int64_t batch) {
    SweepBatch x = {.batch = batch, .own = batch == s->others->batch};
    int at = s->n;
    for (int i = 0; i < s->n; i++)
        if (s->at[i].batch == batch) return true;
    const Trace *t = x.own ? s->t : s->others->with_batch(s->others->of, batch);
    if (s->n == SWEEP_BATCHES || !t || (x.total = sweep_held(t, x.bytes)) < 0) return false;
    for (; at > 0 && s->at[at - 1].batch > batch; at--) s->at[at] = s->at[at - 1];
    s->at[at] = x;
    s->n++;
    return true;
}
/* The smallest divisor of the plan's own batch with which it is legal. */
static int64_t smallest(Sweep *s) {
    enum { MOST = 64 }; /* of divisors that are tried */
    const int64_t own = s->others->batch;
    int tried = 0;
    for (int64_t d = 1; d <= own / 2 && tried < MOST && d <= 1 << 20; d++) {
        if (own % d) continue;
        if (add_batch(s, d)) return d;
        tried++;
    }
    return own;
}
/* Powers of two from there on until one does not fit, or, where no capacity is known, a few. */
static void read_batches(Sweep *s) {
    enum { FEW = 8 };
    int over = 0, n = 0;
    int64_t batch = smallest(s);
    add_batch(s, s->others->batch);
    for (; !over && n < (s->capacity ? SWEEP_BATCHES - 2 : FEW); n++, batch *= 2) {
        if (batch > INT64_MAX / 2 || !add_batch(s, batch)) {
            s->ended = batch;
            break;
        }
        for (int i = 0; i < s->n; i++)
            if (s->at[i].batch == batch) over += !sweep_fits(s, s->at[i].total);
    }
    while (s->fits < s->n && sweep_fits(s, s->at[s->fits].total)) s->fits++;
}

bool sweep_read(Sweep *s, const ViewCall *c) {
    *s = (Sweep){.c = c,
                 .t = c->t,
                 .others = c->o->others,
                 .wrong = wrong_find(c->arena, c->t, NULL, NULL),
                 .capacity = memory_capacity(c->t)};
    if (!s->others) {
        diag_error(
            c->d, "E0211", diag_nowhere,
            "draw it from such a plan: `shardproof draw PLAN --view sweep`",
            "nothing to draw in view 'sweep': other settings are tried of a plan that breaks "
            "no rule, not of a trace");
        return false;
    }
    read_batches(s);
    sweep_read_ways(s);
    s->others->expect(s->others->of, 0);
    if (s->n) return true;
    diag_error(c->d, "E0211", diag_nowhere,
               "draw it from the plan: `shardproof draw PLAN --view sweep`",
               "nothing to draw in view 'sweep': the trace has no records of memory");
    return false;
}

/* ---- words ---- */
static bool of_rows(const Sweep *s) { return s->others->rows; }
const char *sweep_number(Arena *a, int64_t n) {
    const char *digits = arena_printf(a, "%lld", (long long)n);
    const size_t all = strlen(digits);
    Str s = str_new(a);
    for (size_t i = 0; i < all; i++)
        str_addf(&s, "%s%c", i && all > 4 && (all - i) % 3 == 0 ? "," : "", digits[i]);
    return s.s;
}
/* "batch 64", "64 rows" */
static const char *named(const Sweep *s, int64_t batch) {
    return arena_printf(s->c->arena, of_rows(s) ? "%s rows" : "batch %s",
                        sweep_number(s->c->arena, batch));
}
static const char *batch_name(const Sweep *s, int i) { return named(s, s->at[i].batch); }
static const char *needs(const Sweep *s) { return of_rows(s) ? "need" : "needs"; }
static const char *too_much(const Sweep *s, int i) {
    return bytes_text(s->at[i].total - s->capacity, s->c->arena);
}
static const char *batch_title(const Sweep *s) {
    Arena *a = s->c->arena;
    const int last = s->n - 1;
    if (!s->capacity)
        return arena_printf(a, "the fullest rank holds %s at %s, %s at %s",
                            bytes_text(s->at[0].total, a), batch_name(s, 0),
                            bytes_text(s->at[last].total, a), batch_name(s, last));
    if (!s->fits)
        return arena_printf(a, "does not fit: %s, the smallest that is legal, %s %s more",
                            batch_name(s, 0), needs(s), too_much(s, 0));
    if (s->fits == s->n)
        return arena_printf(a, "fits up to %s, the largest that was tried", batch_name(s, last));
    return arena_printf(a, "fits at %s, not at %s", batch_name(s, s->fits - 1),
                        batch_name(s, s->fits));
}
const char *sweep_title(const Sweep *s) {
    const char *more = sweep_fastest(s);
    Arena *a = s->c->arena;
    /* of widths that a plan shrinks what fits is no batch of the model itself */
    const char *shrunk = words_shrink(a, s->t),
               *own = *shrunk ? arena_printf(a, "With %s: %s", shrunk, batch_title(s))
                              : words_capital(a, batch_title(s));
    return more ? arena_printf(a, "%s; %s", own, more) : own;
}
const char *sweep_totals(const Sweep *s, int hidden, int left) {
    Str r = str_new(s->c->arena);
    str_add(&r, "What the fullest rank holds at its peak, as view memory has it of each plan. Not "
                "counted: buffers of collectives, workspace of kernels, fragmentation.");
    if (hidden)
        str_addf(&r, " Not drawn: %d smaller %s.", hidden,
                 of_rows(s)   ? "ones"
                 : hidden > 1 ? "batches"
                              : "batch");
    if (s->ended)
        str_addf(&r, " %s would break a rule.", words_capital(s->c->arena, named(s, s->ended)));
    const double parts = words_find_dim(s->t, "microbatches");
    if (parts > 1) str_addf(&r, " Each is run in %.0f micro-batches.", parts);
    str_add(&r, sweep_ways_words(s, left));
    if (*words_shrink(s->c->arena, s->t))
        str_add(&r, " At its own widths (--full) the model has other bytes and times.");
    return r.s;
}
