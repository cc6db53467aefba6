/* Every schedule gives the bits of every other, and of the same ranks without stages: each rank's
 * gradients and updated parameters, from drawn plans. Not dualpipe, which adds two half sums; not a
 * table that two ranks read where axes inside a stage add up its gradient (each stage's over those
 * first, then both stages'), on which schedules agree that place stages alike (loops, Vs); not the
 * norm of all gradients, whose squares are added up stage by stage (`clip`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "schedule/schedule.h"
#include "support/random_plan.h"
#include "support/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is drawn ---- */
/* What cuts a stage further. */
typedef struct {
    const char *axes, *keys;
    int ranks, batch; /* of a stage; by how many the batch is cut */
    bool sums;        /* its axes add up gradients */
    bool handed;      /* which rank updates what follows from all that a stage has */
} Inside;
#define TP "names: torchtitan\nrecipe: torchtitan-llama3\n"
static const Inside insides[] = {
    {"", "", 1, 1, false, false},
    {", dp: 2", "", 2, 2, true, false},
    {", tp: 2", TP, 2, 1, false, false},
    {", dp: 2", "data_parallel: {mode: fsdp, unit: block}\n", 2, 2, true, false},
    {", dp: 2", "data_parallel: {mode: fsdp, unit: model, reshard: false}\n", 2, 2, true, false},
    {", dp: 2, tp: 2", "data_parallel: {mode: fsdp, reshard: step}\n" TP, 4, 2, true, false},
    {", dp: 2", "data_parallel: {mode: zero1}\n", 2, 2, true, true},
    {", dp: 3", "data_parallel: {mode: zero1, form: deepspeed}\n", 3, 3, true, true},
    {", dp: 2", "data_parallel: {mode: zero2, form: megatron}\n", 2, 2, true, true},
    {", r: 2, s: 2", "data_parallel: {mode: hsdp, replicate: r, shard: s, unit: block}\n", 4, 4,
     true, false},
    {", cp: 2", "context_parallel: {mode: ring, order: zigzag}\n", 2, 1, true, false},
};
#undef TP
enum { INSIDES = sizeof insides / sizeof *insides };
static const struct {
    const char *type; /* llama; with norms of queries and keys; with biases */
    bool tied;
} models[] = {{"llama", false}, {"llama", true}, {"qwen3", true}, {"qwen2", false}};
static const char *const optimizers[] = {"name: adamw, lr: 0.01, weight_decay: 0.1",
                                         "name: sgd, lr: 0.1, momentum: 0.9"};
static const char *const again[] = {"none", "none", "block", "stage"};
typedef struct {
    const Inside *in;
    int pp, layers, parts;
    const char *model, *data, *train, *tied;
    bool apart; /* its table's gradient is added up in another order than without stages */
} Draw;
static Draw draw(Arena *a, Rng *r, int trial) {
    Draw w = {.in = &insides[trial % INSIDES], .pp = rng_chance(r, 70) ? 2 : 3};
    int model = rng_below(r, 4);
    w.layers = 2 * w.pp + rng_below(r, 3);
    w.parts = w.pp * rng_between(r, 2, 3);
    w.apart = w.in->sums && models[model].tied;
    w.model = arena_printf(
        a,
        "model: {config: {model_type: %s, hidden_size: 24, intermediate_size: "
        "38, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 6, "
        "vocab_size: 46, num_hidden_layers: %d, rms_norm_eps: 0.00001, "
        "rope_theta: 10000.0, tie_word_embeddings: %s}, layers: all, parts: [embedding, "
        "blocks, norm, head, loss]}\n",
        models[model].type, w.layers, models[model].tied ? "true" : "false");
    w.data = arena_printf(a, "batch: %d, sequence: %d, dtype: %s%s",
                          w.parts * w.in->batch * rng_between(r, 1, 2), 4 * rng_between(r, 1, 2),
                          rng_chance(r, 70) ? "f32" : "f64",
                          strstr(w.in->axes, "r: 2") ? ", cut: {batch: r*s}" : "");
    /* a second step would begin with what the first has made of such a table */
    w.train = arena_printf(a, "pass: train\noptimizer: {%s, steps: %d}\n%s",
                           optimizers[rng_below(r, 2)], w.apart ? 1 : 2, w.in->keys);
    w.tied = rng_chance(r, 50) ? "send" : "pair";
    return w;
}
/* "[[0, 1], [2]]": the layers of so many stages, uneven. */
static void add_stages(Str *s, Rng *r, int layers, int stages) {
    str_add(s, "[");
    for (int g = 0, next = 0; g < stages; g++) {
        int left = stages - g - 1, end = left ? rng_between(r, next + 1, layers - left) : layers;
        str_add(s, g ? ", [" : "[");
        for (int l = next; l < end; l++) str_addf(s, "%s%d", l > next ? ", " : "", l);
        str_add(s, "]");
        next = end;
    }
    str_add(s, "]");
}
static const char *piped(Arena *a, const Draw *w, const ScheduleKind *k, const char *stages,
                         const char *words) {
    return arena_printf(a,
                        "%smesh: {pp: %d%s}\ndata: {%s}\n%spipeline: {schedule: %s, microbatches: "
                        "%d, stages: %s, recompute: %s, tied: %s}\n",
                        w->model, w->pp, w->in->axes, w->data, w->train, k->name, w->parts, stages,
                        words, w->tied);
}
static const char *alone(Arena *a, const Draw *w) {
    return arena_printf(a, "%smesh: {one: 1%s}\ndata: {%s, microbatches: %d}\n%s", w->model,
                        w->in->axes, w->data, w->parts, w->train);
}

/* ---- bits ---- */
/* "after.1.NAME" or "grad.param.NAME" of what "rank3/" holds; NULL: another value. */
static const char *result_of(const char *name, int64_t *rank) {
    if (strncmp(name, "rank", 4)) return NULL;
    char *end;
    *rank = strtoll(name + 4, &end, 10);
    end += *end == '/';
    return !strncmp(end, "after.", 6) || !strncmp(end, "grad.param.", 11) ? end : NULL;
}
static bool same_shape(const StTensor *x, const StTensor *y) {
    return x->nd == y->nd && !memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)x->nd);
}
static bool same_numbers(Arena *a, const StTensor *x, const StTensor *y) {
    int64_t n = 1;
    for (int d = 0; d < x->nd; d++) n *= x->shape[d];
    uint64_t *p = ARENA_ARRAY(a, uint64_t, n + 1), *q = ARENA_ARRAY(a, uint64_t, n + 1);
    assert_true(st_read(x, 0, n, DT_F64, p) && st_read(y, 0, n, DT_F64, q));
    return !memcmp(p, q, (size_t)n * sizeof *p);
}
/* Two runs whose ranks, `each` of them to a stage, are held against each other. */
typedef struct {
    Arena *a;
    const Draw *w;
    const SafeTensors *x, *y;
    bool alone; /* y has no stages */
    const char *what;
} Pair;
/* Where y has it: on any stage, at the same place in it; NULL: nowhere. */
static const StTensor *in_other(const Pair *p, int64_t rank, const char *of) {
    int each = p->w->in->ranks, stages = p->alone ? 1 : p->w->pp;
    const StTensor *y = NULL;
    for (int g = 0; g < stages && !y; g++)
        y = st_find(p->y,
                    arena_printf(p->a, "rank%lld/%s", (long long)(rank % each + g * each), of));
    return y;
}
static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}
/* Of what is handed out whole parameters alone are the same on every rank. */
static bool is_handed(const char *of) {
    return !strncmp(of, "grad.", 5) || ends_with(of, ".exp_avg") || ends_with(of, ".exp_avg_sq") ||
           ends_with(of, ".momentum_buffer");
}
/* Each gradient and whatever was updated of x has the bits of y's. Returns how many. */
static int same_bits(const Pair *p) {
    int n = 0;
    for (int i = 0; i < p->x->n; i++) {
        const StTensor *x = &p->x->t[i];
        int64_t rank;
        const char *of = result_of(x->name, &rank);
        if (!of || (p->alone && p->w->apart && strstr(of, "embed"))) continue;
        const StTensor *y = in_other(p, rank, of);
        if (p->w->in->handed && is_handed(of) && (!y || !same_shape(x, y))) continue;
        if (!y) fail_msg("%s: %s is nowhere", p->what, x->name);
        if (!same_shape(x, y)) fail_msg("%s: %s has another shape", p->what, x->name);
        if (!same_numbers(p->a, x, y))
            fail_msg("%s: %s has other bits %s", p->what, x->name,
                     p->alone ? "than without stages" : "than under another schedule");
        n++;
    }
    return n;
}
/* How many things the ranks of a stage are to agree on, at the least: all that is updated whole. */
static int least(const SafeTensors *one) {
    int n = 0;
    for (int i = 0; i < one->n; i++) n += !strncmp(one->t[i].name, "grad.param.", 11);
    return n;
}
static const char *draw_words(Arena *a, Rng *r, int stages) {
    Str s = str_new(a);
    for (int g = 0; g < stages; g++) str_addf(&s, "%s%s", g ? ", " : "[", again[rng_below(r, 4)]);
    str_add(&s, "]");
    return s.s;
}
/* One plan under all schedules, each with stages and recompute of its own. */
static void check_trial(int trial) {
    Arena *a = arena_new();
    Rng r = {.s = 1800 + (uint64_t)trial};
    Draw w = draw(a, &r, trial);
    SafeTensors *one = plan_values(a, alone(a, &w), "alone.safetensors"), *first[2] = {NULL};
    int n, wanted = w.in->ranks * (least(one) - w.apart);
    const ScheduleKind *k = schedule_kinds(&n);
    for (int i = 0; i < n; i++) {
        if (k[i].both_ways) continue;
        int stages = w.pp * (k[i].most_chunks == 1 ? 1 : 2);
        Str list = str_new(a);
        add_stages(&list, &r, w.layers, stages);
        const char *plan = piped(a, &w, &k[i], list.s, draw_words(a, &r, stages));
        SafeTensors *x = plan_values(a, plan, arena_printf(a, "%s.safetensors", k[i].name));
        Pair p = {a, &w, x, one, true, plan};
        int same = same_bits(&p);
        if (same < wanted) fail_msg("%s: %d values of %d", plan, same, wanted);
        SafeTensors **like = &first[k[i].v]; /* the first stage's rank has the last one's too */
        p = (Pair){a, &w, x, *like ? *like : x, false, plan};
        assert_true(same_bits(&p) >= wanted);
        if (*like) st_close(x);
        else *like = x;
    }
    for (int v = 0; v < 2; v++) st_close(first[v]);
    st_close(one);
    arena_free(a);
}
static void test_drawn(void **state) {
    (void)state;
    int n = trials_of(2 * INSIDES, "plans under all schedules");
    for (int i = 0; i < n; i++) check_trial(i);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
