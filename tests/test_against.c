/* --save-values and --against: what a run writes it finds again, equal, whatever the plan; what
 * another implementation wrote in another order, under other names or with NaN is told for what it
 * is; and nothing is skipped in silence. */
#include "support/child.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct AgainstRow Row;

static const char small[] = "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                            "blocks, norm, head, loss]}\n";
static const Row *row_of(const PlanRun *r, const char *name) {
    for (int i = 0; i < r->rep.n_against; i++)
        if (!strcmp(r->rep.against[i].name, name)) return &r->rep.against[i];
    return NULL;
}
static const Diag *diag_of(const PlanRun *r, const char *code) {
    for (int i = 0; i < r->d->n; i++)
        if (!strcmp(r->d->item[i].code, code)) return &r->d->item[i];
    return NULL;
}
static PlanRun run(Arena *a, const char *text, const char *save, const char *against,
                   const char *map) {
    return plan_run_with(
        a, "against.yaml", text,
        &(PipelineOptions){
            .execute = true, .threads = 1, .save_values = save, .against = against, .map = map});
}
static const char *saved_by(Arena *a, const char *text) {
    const char *file = temp_path(a, "saved.safetensors");
    PlanRun r = run(a, text, file, NULL, NULL);
    if (!r.t || r.rep.exit) run_print(&r);
    assert_true(!r.rep.exit && run_is(&r, "equivalent"));
    return file;
}

static const char *on_two_ranks(Arena *a) {
    return arena_printf(a,
                        "%sdata: {batch: 2, sequence: 10, dtype: f64}\nmesh: {tp: 2}\n"
                        "names: torchtitan\nrecipe: torchtitan-llama3\n",
                        small);
}
/* A tensor of a file under another name. */
static NewTensor tensor_as(Arena *a, SafeTensors *st, const char *name, const char *as) {
    int64_t n;
    const StTensor *s = st_find(st, name);
    assert_non_null(s);
    NewTensor t = {.name = as, .nd = s->nd, .x = tensor_numbers(a, st, name, &n)};
    memcpy(t.shape, s->shape, sizeof t.shape);
    return t;
}

/* ---- the round trip ---- */
static const struct {
    const char *name, *text;
    const char *has[10]; /* names that the file must have, among them what used to be missing */
} trips[] = {
    {"forward",
     "data: {batch: 2, sequence: 10, dtype: f64}\nmesh: {dp: 2, tp: 2}\nnames: torchtitan\nrecipe: "
     "torchtitan-llama3\n",
     {"input_ids", "labels", "layers.0.attention.wq.weight", "layers.0.q_rope", "loss_mean",
      "rank3/labels", "rank3/layers.0.mlp.down", "rank1/layers.0.attention.wq.weight"}},
    {"f32",
     "data: {batch: 2, sequence: 10, dtype: f32}\nmesh: {dp: 2, tp: 2}\nnames: hf\nrecipe: "
     "hf-llama\n",
     {"input_ids", "model.layers.0.self_attn.q_proj.weight", "rank3/layers.0.mlp.down"}},
    {"backward",
     "data: {batch: 3, sequence: 10, dtype: f64}\nmesh: {dp: 2, tp: 2}\nnames: torchtitan\nrecipe: "
     "torchtitan-llama3\npass: backward\n",
     {"grad.param.layers.0.attention.wq.weight", "grad.layers.0.q_rope", "grad.logits",
      "rank2/grad.param.layers.0.attention.wq.weight", "rank2/grad.layers.0.q_proj",
      "rank1/grad.layers.0.mlp.act", "rank3/grad.embed"}},
    {"FSDP",
     "data: {batch: 3, sequence: 9, dtype: f32}\nmesh: {dp: 3}\nnames: torchtitan\npass: "
     "backward\ndata_parallel: {mode: fsdp}\n",
     {"grad.param.norm.weight", "rank2/layers.0.attention.wq.weight",
      "rank2/grad.param.layers.0.attention.wq.weight", "rank2/grad.layers.0.q_proj"}},
    {"training",
     "data: {batch: 4, sequence: 8, dtype: f64}\nmesh: {dp: 2, tp: 2}\nnames: torchtitan\nrecipe: "
     "torchtitan-llama3\npass: train\n"
     "optimizer: {name: adamw, lr: 0.01, clip: 0.5, steps: 3}\ndata_parallel: {mode: fsdp}\n",
     {"losses", "labels", "layers.0.attention.wq.weight", "after.2.layers.0.attention.wq.weight",
      "after.2.norm.weight.exp_avg_sq", "rank3/after.2.layers.0.attention.wq.weight",
      "rank3/layers.0.attention.wq.weight", "rank1/after.2.norm.weight.exp_avg", "rank2/input_ids",
      "rank2/grad.layers.0.q_proj"}},
    {"micro-batches",
     "data: {batch: 4, sequence: 8, dtype: f32, microbatches: 2}\nmesh: {dp: 2}\nnames: hf\npass: "
     "train\noptimizer: {name: sgd, lr: 0.01, momentum: 0.9, steps: 2}\n",
     {"losses", "after.1.model.norm.weight.momentum_buffer", "rank1/after.1.model.norm.weight",
      "rank1/labels"}},
};
enum { N_TRIPS = sizeof trips / sizeof *trips };
static void test_round_trip(void **state) {
    (void)state;
    int n = sample_of(N_TRIPS, "round trips");
    for (int i = 0; i < n; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(a, "%s%s", small, trips[i].text), *file = saved_by(a, text);
        SafeTensors *st = golden_tensors(a, file);
        for (int k = 0; k < 10 && trips[i].has[k]; k++)
            if (!st_find(st, trips[i].has[k]))
                fail_msg("%s: no %s is saved", trips[i].name, trips[i].has[k]);
        PlanRun r = run(a, text, NULL, file, NULL);
        if (!r.t || r.rep.exit) run_print(&r);
        assert_int_equal(r.rep.exit, 0);
        assert_int_equal(r.rep.n_against, st->n);
        for (int k = 0; k < r.rep.n_against; k++) {
            const Row *x = &r.rep.against[k];
            if (!x->ok || x->missing_here || x->missing_there || x->max_abs != 0)
                fail_msg("%s: %s is not what was saved", trips[i].name, x->name);
        }
        printf("%-14s %d tensors saved, all found again, equal in every bit\n", trips[i].name,
               st->n);
        st_close(st);
        arena_free(a);
    }
}
/* Ranks' tensors in a file are held against the ranks: rank 1's part under rank 0's name differs,
 * rank 9 does not exist. */
static void test_ranks(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = on_two_ranks(a);
    SafeTensors *st = golden_tensors(a, saved_by(a, text));
    static const char *const from[] = {"rank1/layers.0.q_proj", "rank1/layers.0.q_proj",
                                       "rank1/layers.0.q_proj"};
    static const char *const as[] = {"rank0/layers.0.q_proj", "rank1/layers.0.q_proj",
                                     "rank9/layers.0.q_proj"};
    NewTensor t[3];
    for (int i = 0; i < 3; i++) t[i] = tensor_as(a, st, from[i], as[i]);
    PlanRun r = run(a, text, NULL, write_tensors(a, "ranks.safetensors", t, 3), NULL);
    assert_false(row_of(&r, as[0])->ok);
    assert_true(row_of(&r, as[1])->ok);
    assert_true(row_of(&r, as[2])->missing_here);
    assert_non_null(row_of(&r, "rank1/layers.0.k_proj"));
    assert_true(row_of(&r, "rank1/layers.0.k_proj")->missing_there);
    assert_int_equal(r.rep.exit, 1);
    st_close(st);
    arena_free(a);
}

/* ---- names ---- */
/* All tensors of a file under other names. */
static const char *renamed(Arena *a, const char *file, const char *prefix) {
    SafeTensors *st = golden_tensors(a, file);
    NewTensor *t = arena_alloc(a, sizeof *t * (size_t)st->n);
    int n = 0;
    for (int i = 0; i < st->n; i++) {
        const char *name = st->t[i].name;
        if (st->t[i].nd > 4 || st->t[i].dtype == DT_I64 || !strncmp(name, "rank", 4)) continue;
        t[n++] = tensor_as(a, st, name, arena_printf(a, "%s%s", prefix, name));
    }
    st_close(st);
    return write_tensors(a, "renamed.safetensors", t, n);
}
static const char *write_map(Arena *a, const char *text) {
    const char *path = temp_path(a, "map.yaml");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}
/* A file of which nothing matches is no success: DDP's prefix is found, and one line of a map takes
 * it away. */
static void test_nothing_matches(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = on_two_ranks(a);
    const char *file = renamed(a, saved_by(a, text), "module.");
    PlanRun r = run(a, text, NULL, file, NULL);
    const Diag *d = diag_of(&r, "E0209");
    assert_non_null(d);
    assert_int_equal(r.rep.exit, 3);
    assert_non_null(strstr(d->message, "module."));
    assert_non_null(strstr(d->message, "tok_embeddings.weight"));
    assert_non_null(strstr(d->hint, "`module.`"));
    assert_non_null(strstr(d->hint, "\"module.*\": \"*\""));
    r = run(a, text, NULL, file, write_map(a, "\"module.*\": \"*\"\n"));
    assert_int_equal(r.rep.exit, 0);
    assert_true(row_of(&r, "module.layers.0.attention.wq.weight")->ok);
    assert_true(row_of(&r, "module.logits")->ok);
    /* other names altogether: both sides are shown */
    NewTensor odd = {.name = "h.0.attn", .nd = 1, .shape = {1}, .x = (double[]){1}};
    r = run(a, text, NULL, write_tensors(a, "odd.safetensors", &odd, 1), NULL);
    assert_non_null(diag_of(&r, "E0209"));
    assert_non_null(strstr(diag_of(&r, "E0209")->message, "h.0.attn"));
    assert_non_null(strstr(diag_of(&r, "E0209")->hint, "--map"));
    /* another model's file, of which one name fits behind a prefix by chance: no map helps */
    NewTensor many[8];
    for (int i = 0; i < 8; i++) {
        many[i] = odd;
        many[i].name = arena_printf(a, "module.h.%d.attn", i);
    }
    many[3].name = "module.logits";
    r = run(a, text, NULL, write_tensors(a, "odd.safetensors", many, 8), NULL);
    assert_non_null(diag_of(&r, "E0209"));
    assert_null(strstr(diag_of(&r, "E0209")->hint, "`module.`"));
    /* the inputs fit, as they do in a dump of DDP: nothing that is computed was compared */
    static const char *const dump[] = {"input_ids", "module.logits", "module.embed"};
    for (int i = 0; i < 3; i++) many[i].name = dump[i];
    r = run(a, text, NULL, write_tensors(a, "odd.safetensors", many, 3), NULL);
    d = diag_of(&r, "E0209");
    assert_non_null(d);
    assert_non_null(strstr(d->message, "nothing but inputs and parameters in "));
    assert_non_null(strstr(d->message, "the file has module.embed, module.logits, the model "));
    assert_non_null(strstr(d->hint, "`module.`"));
    assert_int_equal(r.rep.exit, 3);
    odd.name = "grad.logits"; /* a forward run has no gradients */
    r = run(a, text, NULL, write_tensors(a, "odd.safetensors", &odd, 1), NULL);
    assert_non_null(strstr(diag_of(&r, "E0209")->hint, "pass: backward"));
    assert_int_equal(r.rep.exit, 3);
    static const char *const nobody[] = {"rank2/logits", "rank99999999999999999999/logits"};
    for (int i = 0; i < 2; i++) { /* a rank that the mesh has not holds nothing to compare */
        odd.name = nobody[i];
        r = run(a, text, NULL, write_tensors(a, "odd.safetensors", &odd, 1), NULL);
        assert_non_null(diag_of(&r, "E0209"));
        assert_non_null(strstr(diag_of(&r, "E0209")->hint, "ranks 0 to 1"));
        assert_int_equal(r.rep.exit, 3);
    }
    arena_free(a);
}
/* A file saved on another mesh: its ranks hold other parts of everything, and that is said once. */
static void test_other_mesh(void **state) {
    (void)state;
#define MESH_OF(mesh)                                                                              \
    "model: {kind: mlp, sizes: [8, 16, 8], bias: true}\ndata: {rows: 4, dtype: f64}\nmesh: {" mesh \
    "}\nplan: {net1: colwise, net2: rowwise}\n"
    static const char *const rows[][3] = {
        {MESH_OF("tp: 2"), MESH_OF("tp: 4"),
         "of another mesh: it has the ranks 0 to 1, the plan ranks 0 to 3"},
        {MESH_OF("tp: 4"), MESH_OF("tp: 2"),
         "of another mesh: it has the ranks 0 to 3, the plan ranks 0 to 1"},
        {MESH_OF("dp: 2, tp: 2"), MESH_OF("tp: 4"),
         "other parts than ours, of another mesh or another"},
    };
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PlanRun r = run(a, rows[i][1], NULL, saved_by(a, rows[i][0]), NULL);
        int said = 0, parts = 0;
        for (int k = 0; k < r.d->n; k++) {
            said += !strcmp(r.d->item[k].code, "E0506") && strstr(r.d->item[k].message, rows[i][2]);
            parts +=
                strstr(r.d->item[k].message, ": shape ") && !strstr(r.d->item[k].message, " (");
        }
        if (said != 1 || parts) run_print(&r);
        assert_int_equal(said, 1);
        assert_int_equal(parts, 0);
        assert_int_equal(r.rep.exit, 1);
        arena_free(a);
    }
#undef MESH_OF
}
/* The file of another rank, and one of whole values, are told for what they are, once. */
static void test_whose(void **state) {
    (void)state;
    static const char *const name = "layers.0.attention.wq.weight",
                             *const down = "layers.0.feed_forward.w2.weight";
    static const struct {
        int64_t of, rank; /* whose tensors (-1: whole), for whom they are given */
        const char *said, *hint;
    } rows[] = {
        {1, 0, "what rank 1 holds in place of what rank 0 holds: all 2 tensors that differ",
         "name that rank with --against-rank"},
        {0, 1, "what rank 0 holds in place of what rank 1 holds: all 2 tensors that differ",
         "name that rank"},
        {-1, 0,
         "the file has whole values in place of what rank 0 holds: all 2 tensors that differ",
         "leave --against-rank out"},
        {1, 1, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        SafeTensors *st = st_open(a, d, saved_by(a, on_two_ranks(a)), diag_nowhere);
        const char *from = rows[i].of < 0 ? "" : arena_printf(a, "rank%d/", (int)rows[i].of);
        NewTensor t[] = {tensor_as(a, st, arena_printf(a, "%s%s", from, name), name),
                         tensor_as(a, st, arena_printf(a, "%s%s", from, down), down),
                         tensor_as(a, st,
                                   arena_printf(a, "rank%d/layers.0.output", (int)rows[i].rank),
                                   "layers.0.output")};
        st_close(st);
        const char *file = write_tensors(a, "one.safetensors", t, 3);
        PlanRun r = plan_run_with(
            a, "against.yaml", on_two_ranks(a),
            &(PipelineOptions){
                .execute = true, .threads = 1, .against = file, .against_of = rows[i].rank + 1});
        int errors = diags_errors(r.d);
        const Diag *x = diag_of(&r, "E0506");
        if (errors != (rows[i].said != NULL) || !rows[i].said != !x ||
            (x && (!strstr(x->message, rows[i].said) || !strstr(x->hint, rows[i].hint)))) {
            run_print(&r);
            fail_msg("row %d: %d errors", (int)i, errors);
        }
        arena_free(a);
    }
}
/* A checkpoint's names are understood whatever scheme the plan's patterns use. */
static void test_checkpoint_names(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = on_two_ranks(a);
    SafeTensors *st = golden_tensors(a, saved_by(a, text));
    static const char *const names[] = {
        "layers.0.attention.wq.weight",     "model.layers.0.self_attn.q_proj.weight",
        "layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight",
        "layers.0.attn.q_proj.weight",      "decoder.layers.0.self_attention.linear_q.weight"};
    NewTensor t[6];
    for (int i = 0; i < 6; i++) t[i] = tensor_as(a, st, names[0], names[i]);
    PlanRun r = run(a, text, NULL, write_tensors(a, "schemes.safetensors", t, 6), NULL);
    for (int i = 0; i < 6; i++)
        if (!row_of(&r, names[i]) || !row_of(&r, names[i])->ok)
            fail_msg("%s is not known", names[i]);
    st_close(st);
    arena_free(a);
}

/* ---- orders ---- */
/* The numbers of a tensor of `nd` dims of sizes n with its dims in the order `perm`, seen as the
 * shape `as`. */
static NewTensor reordered(Arena *a, const SafeTensors *st, const char *name, int nd,
                           const int64_t *n, const int *perm, int n_as, const int64_t *as) {
    int64_t count, stride[4], i[4] = {0}, s = 1;
    const double *x = tensor_numbers(a, st, name, &count);
    double *y = ARENA_ARRAY(a, double, count);
    for (int d = nd - 1; d >= 0; d--) stride[d] = s, s *= n[d];
    assert_int_equal(s, count);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0;
        for (int d = 0; d < nd; d++) at += i[d] * stride[perm[d]];
        y[k] = x[at];
        for (int d = nd - 1; d >= 0; d--) {
            if (++i[d] < n[perm[d]]) break;
            i[d] = 0;
        }
    }
    NewTensor t = {.name = name, .nd = n_as, .x = y};
    memcpy(t.shape, as, sizeof *as * (size_t)n_as);
    return t;
}
/* D 48, H 6, K 3, d 8 (H*d = D), F 10, B 2, S 5: wo is a square. */
static const char square[] =
    "model: {config: {model_type: llama, hidden_size: 48, num_attention_heads: 6, "
    "num_key_value_heads: 3, intermediate_size: 10, vocab_size: 11, num_hidden_layers: 1, "
    "head_dim: 8}, parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 5, dtype: f64}\nmesh: {dp: 2}\nnames: hf\n";
static void test_orders(void **state) {
    (void)state;
    Arena *a = arena_new();
    SafeTensors *st = golden_tensors(a, saved_by(a, square));
    static const int sbd[] = {1, 0, 2}, bhsd[] = {0, 2, 1, 3}, two[] = {1, 0},
                     same[] = {0, 1, 2, 3};
    const int64_t d3[] = {2, 5, 48}, d4[] = {2, 5, 6, 8}, gate[] = {10, 48}, wo[] = {48, 48};
    static const struct {
        const char *name, *what, *there;
    } want[] = {
        {"layers.0.o_proj", "sequence first",
         "[S, B, D] [5, 2, 48] in the file, [B, S, D] [2, 5, 48] here"},
        {"layers.0.q_rope", "heads before the sequence",
         "[B, H, S, d] [2, 6, 5, 8] in the file, [B, S, H, d] [2, 5, 6, 8] here"},
        {"model.layers.0.mlp.gate_proj.weight", "transposed",
         "[D, F] [48, 10] in the file, [F, D] [10, 48] here"},
        {"model.layers.0.self_attn.o_proj.weight", "transposed",
         "[H*d, D] [48, 48] in the file, [D, H*d] [48, 48] here"},
        {"layers.0.q_proj", "heads are a dim of their own there",
         "[B, S, H, d] [2, 5, 6, 8] in the file, [B, S, H*d] [2, 5, 48] here"},
        {"layers.0.k_rope", "heads are flattened there",
         "[B, S, K*d] [2, 5, 24] in the file, [B, S, K, d] [2, 5, 3, 8] here"},
        {"logits", "shape", "[2, 4, 11] in the file, [B, S, V] [2, 5, 11] here"},
    };
    NewTensor t[] = {
        reordered(a, st, want[0].name, 3, d3, sbd, 3, (int64_t[]){5, 2, 48}),
        reordered(a, st, want[1].name, 4, d4, bhsd, 4, (int64_t[]){2, 6, 5, 8}),
        reordered(a, st, want[2].name, 2, gate, two, 2, (int64_t[]){48, 10}),
        reordered(a, st, want[3].name, 2, wo, two, 2, wo),
        reordered(a, st, want[4].name, 4, d4, same, 4, d4),
        reordered(a, st, want[5].name, 4, (int64_t[]){2, 5, 3, 8}, same, 3, (int64_t[]){2, 5, 24}),
        {.name = "logits", .nd = 3, .shape = {2, 4, 11}, .x = ARENA_ARRAY(a, double, 88)},
    };
    enum { N = sizeof want / sizeof *want };
    PlanRun r = run(a, square, NULL, write_tensors(a, "orders.safetensors", t, N), NULL);
    for (int i = 0; i < N; i++) {
        const Row *x = row_of(&r, want[i].name);
        assert_true(x && !x->ok && !x->missing_here);
        if (!x->why || strncmp(x->why, want[i].what, strlen(want[i].what)) ||
            !strstr(x->why, want[i].there))
            fail_msg("%s: %s", x->name, x->why ? x->why : "no reason");
    }
    for (int i = 0; i < r.d->n; i++)
        assert_null(strstr(r.d->item[i].message, "inf")); /* never "differs by inf" */
    assert_non_null(strstr(diag_of(&r, "E0506")->hint, "equal"));
    assert_int_equal(r.rep.exit, 1);
    st_close(st);
    arena_free(a);
}
typedef struct {
    const char *plan, *value, *name, *why;
    int nd, perm[4], spoiled; /* the last number is so much more */
    bool whole, ok;           /* whole: as the library has it, not the first sequence alone */
} Output;
static void hold_output(const Output *o) {
    const int64_t wide[] = {2, 4, 12}, heads[] = {2, 4, 4, 2};
    const int64_t *shape = o->nd == 4 ? heads : wide;
    Arena *a = arena_new();
    SafeTensors *st = golden_tensors(a, saved_by(a, o->plan));
    NewTensor t = reordered(a, st, o->value, o->nd, shape, o->perm, o->nd, shape);
    double *x = arena_memdup(a, t.x, (o->nd == 4 ? 64 : 96) * sizeof *x);
    t.name = o->name;
    t.shape[0] = o->whole ? 2 : 1;
    t.x = x;
    x[t.shape[0] * (o->nd == 4 ? 32 : 48) - 1] += o->spoiled;
    PlanRun r = run(a, o->plan, NULL, write_tensors(a, "modules.safetensors", &t, 1), NULL);
    const Row *row = row_of(&r, t.name);
    if (!row || row->missing_here || row->ok != o->ok || r.rep.exit != !o->ok ||
        (o->why && (!row->why || !strstr(row->why, o->why))))
        fail_msg("%s as %s: %s", o->value, t.name, row && row->why ? row->why : "no words");
    st_close(st);
    arena_free(a);
}
/* What a module hands out is the library's own in two ways: which of our values it is, and in which
 * order it lies (docs: transformers 5.23, whose modules are so). Sequence and heads are as many. */
static void test_outputs_of_modules(void **state) {
    (void)state;
#define SIZES                                                                                      \
    "vocab_size: 11, hidden_size: 12, intermediate_size: 10, num_hidden_layers: 1, "               \
    "num_attention_heads: 4, num_key_value_heads: 4, head_dim: 2}"
#define REST                                                                                       \
    ", parts: [embedding, blocks, norm, head, loss]}\ndata: {batch: 2, sequence: 4, dtype: f64}\n" \
    "mesh: {dp: 2}\nnames: hf\n"
    static const char gemma[] = "model: {config: {model_type: gemma3_text, " SIZES REST,
                      gpt2[] = "model: {config: {model_type: gpt2, vocab_size: 11, n_embd: 12, "
                               "n_layer: 1, n_head: 4, n_positions: 9}" REST;
#undef SIZES
#undef REST
    static const Output rows[] = {
        {gemma, "embed_scaled", "model.embed_tokens.output", NULL, 3, {0, 1, 2}, 0, true, true},
        {gemma, "embed", "model.embed_tokens.output", NULL, 3, {0, 1, 2}, 0, true, false},
        {gemma, "embed", "embed", NULL, 3, {0, 1, 2}, 0, true, true},
        {gemma,
         "layers.0.q_norm",
         "model.layers.0.self_attn.q_norm.output",
         "heads before the sequence",
         4,
         {0, 2, 1, 3},
         0,
         true,
         true},
        {gemma,
         "layers.0.q_norm",
         "model.layers.0.self_attn.q_norm.output",
         NULL,
         4,
         {0, 2, 1, 3},
         1,
         true,
         false},
        {gemma,
         "layers.0.q_norm",
         "layers.0.q_norm",
         "heads before the sequence",
         4,
         {0, 2, 1, 3},
         0,
         true,
         false},
        {gpt2,
         "pos_embed",
         "transformer.wpe.output",
         "of one sequence in the file",
         3,
         {0, 1, 2},
         0,
         false,
         true},
        {gpt2, "pos_embed", "transformer.wpe.output", "shape", 3, {0, 1, 2}, 1, false, false},
        {gpt2, "embed", "transformer.wte.output", "shape", 3, {0, 1, 2}, 0, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) hold_output(&rows[i]);
}
/* Other numbers in a shape that agrees (tokens in one dim, a dim of one element more) are other
 * numbers, by so much: the shape is not to blame. Another order is told there too. */
static void test_other_numbers_in_a_shape_that_agrees(void **state) {
    (void)state;
    Arena *a = arena_new();
    SafeTensors *st = golden_tensors(a, saved_by(a, square));
    static const int same[] = {0, 1, 2}, sbd[] = {1, 0, 2};
    const int64_t d3[] = {2, 5, 48};
    NewTensor t[] = {
        reordered(a, st, "layers.0.q_proj", 3, d3, same, 2, (int64_t[]){10, 48}),
        reordered(a, st, "layers.0.o_proj", 3, d3, same, 4, (int64_t[]){1, 2, 5, 48}),
        reordered(a, st, "loss_mean", 1, (int64_t[]){1}, same, 1, (int64_t[]){1}),
        reordered(a, st, "layers.0.resid_attn", 3, d3, sbd, 2, (int64_t[]){10, 48}),
    };
    enum { N = sizeof t / sizeof *t };
    for (int i = 0; i < N - 1; i++) {
        int64_t n = 1;
        for (int d = 0; d < t[i].nd; d++) n *= t[i].shape[d];
        double *x = arena_memdup(a, t[i].x, sizeof *x * (size_t)n);
        for (int64_t k = 0; k < n; k++) x[k] *= 2;
        t[i].x = x;
    }
    PlanRun r = run(a, square, NULL, write_tensors(a, "doubled.safetensors", t, N), NULL);
    for (int i = 0; i < N - 1; i++) {
        const Row *x = row_of(&r, t[i].name);
        assert_true(x && !x->ok && !x->missing_here);
        if (x->why) fail_msg("%s: %s", x->name, x->why);
        assert_true(fabs(x->max_rel - 0.5) < 1e-9); /* of theirs, which is twice ours */
    }
    assert_non_null(strstr(row_of(&r, "layers.0.resid_attn")->why, "sequence first"));
    st_close(st);
    arena_free(a);
}
/* NaN and infinity of the file have a name and a place. */
static void test_not_finite(void **state) {
    (void)state;
    static const struct {
        double bad;
        const char *text;
    } rows[] = {{NAN, "is NaN at [1, 2, 3]"},
                {INFINITY, "is infinity at [1, 2, 3]"},
                {-INFINITY, "is -infinity at [1, 2, 3]"}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        SafeTensors *st = golden_tensors(a, saved_by(a, square));
        int64_t n;
        double *x = arena_memdup(a, tensor_numbers(a, st, "layers.0.o_proj", &n), 8 * 2 * 5 * 48);
        x[(5 + 2) * 48 + 3] = rows[i].bad;
        NewTensor t = {.name = "layers.0.o_proj", .nd = 3, .shape = {2, 5, 48}, .x = x};
        PlanRun r = run(a, square, NULL, write_tensors(a, "nan.safetensors", &t, 1), NULL);
        const Diag *d = diag_of(&r, "E0504");
        assert_non_null(d);
        assert_non_null(strstr(d->message, rows[i].text));
        assert_null(diag_of(&r, "E0506"));
        assert_false(row_of(&r, "layers.0.o_proj")->ok);
        assert_int_equal(r.rep.exit, 3);
        st_close(st);
        arena_free(a);
    }
}
/* Whole numbers are compared exactly, whatever the tolerance: one label that is off by one differs.
 */
static void test_whole_numbers(void **state) {
    (void)state;
    Arena *a = arena_new();
    SafeTensors *st = golden_tensors(a, saved_by(a, square));
    int64_t n, ids[2][10];
    const double *x = tensor_numbers(a, st, "input_ids", &n),
                 *y = tensor_numbers(a, st, "labels", &n);
    for (int i = 0; i < 10; i++) ids[0][i] = (int64_t)x[i], ids[1][i] = (int64_t)y[i] + (i == 7);
    NewTensor t[] = {{.name = "input_ids", .nd = 2, .shape = {2, 5}, .ids = ids[0]},
                     {.name = "labels", .nd = 2, .shape = {2, 5}, .ids = ids[1]}};
    PlanRun r =
        plan_run_with(a, "against.yaml", square,
                      &(PipelineOptions){.execute = true,
                                         .threads = 1,
                                         .against = write_tensors(a, "ids.safetensors", t, 2),
                                         .tolerance = 1});
    assert_true(row_of(&r, "input_ids")->ok);
    assert_false(row_of(&r, "labels")->ok);
    st_close(st);
    arena_free(a);
}

/* ---- training ---- */
/* PyTorch's ten steps: every loss, and every parameter and its state after every step; a number
 * that is moved is found. */
static void test_training(void **state) {
    (void)state;
    static const struct {
        const char *name, *loss, *optimizer;
        int parts;
    } runs[] = {{"adamw-var", "var", "name: adamw, lr: 0.05", 3},
                {"sgd-sum-clip", "sum", "name: sgd, lr: 0.25, momentum: 0.9, clip: 1.0", 2}};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        const char *file = golden_path(a, "toy/%s/values.safetensors", runs[i].name);
        const char *text =
            arena_printf(a,
                         "model: {kind: mlp, sizes: [10, 32, 5], bias: true, activation: relu, "
                         "weights: {file: %s, prefix: \"initial.\"}}\n"
                         "data: {dtype: f64, inputs: %s}\nmesh: {tp: 2}\npass: train\nloss: "
                         "%s\noptimizer: {%s, steps: 10}\nplan: {net1: colwise, net2: rowwise}\n",
                         file, file, runs[i].loss, runs[i].optimizer);
        PlanRun r =
            plan_run_with(a, "against.yaml", text,
                          &(PipelineOptions){.execute = true,
                                             .threads = 1,
                                             .against = file,
                                             .tolerance = 1e-10,
                                             .map = write_map(a, "\"initial.*\": \"*\"\n")});
        if (!r.t || r.rep.exit) run_print(&r);
        assert_int_equal(r.rep.exit, 0);
        assert_true(row_of(&r, "losses")->ok && row_of(&r, "losses")->count == 10);
        assert_true(row_of(&r, "initial.net1.weight")
                        ->ok); /* a plain name is the value before the first step */
        int after = 0;
        for (int k = 0; k < r.rep.n_against; k++)
            after += !strncmp(r.rep.against[k].name, "after.", 6) && r.rep.against[k].ok;
        SafeTensors *st = golden_tensors(a, file);
        int there = 0;
        for (int k = 0; k < st->n; k++) there += !strncmp(st->t[k].name, "after.", 6);
        assert_int_equal(after, there);
        assert_true(there >= 4 * runs[i].parts);
        st_close(st);
        arena_free(a);
    }
}
static void test_training_fails(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text =
        "model: {kind: mlp, sizes: [6, 8, 5]}\ndata: {rows: 4, dtype: f64}\nmesh: {tp: 2}\npass: "
        "train\nloss: var\n"
        "optimizer: {name: adamw, lr: 0.05, steps: 2}\nplan: {net1: colwise, net2: rowwise}\n";
    SafeTensors *st = golden_tensors(a, saved_by(a, text));
    static const char *const names[] = {"losses", "after.1.net1.weight.exp_avg",
                                        "after.1.net2.weight"};
    static const char *const as[] = {"losses", "after.1.net1.weight.exp_avg",
                                     "after.0.net2.weight"}; /* another step's weight */
    NewTensor t[3];
    for (int i = 0; i < 3; i++) {
        int64_t n;
        const StTensor *s = st_find(st, names[i]);
        double *x = arena_memdup(a, tensor_numbers(a, st, names[i], &n), (size_t)s->bytes);
        if (i < 2) x[n - 1] *= 1 + 1e-6;
        t[i] = (NewTensor){.name = as[i], .nd = s->nd, .x = x};
        memcpy(t[i].shape, s->shape, sizeof t[i].shape);
    }
    PlanRun r = run(a, text, NULL, write_tensors(a, "train.safetensors", t, 3), NULL);
    for (int i = 0; i < 3; i++)
        assert_true(!row_of(&r, as[i])->ok && !row_of(&r, as[i])->missing_here);
    assert_int_equal(r.rep.exit, 1);
    st_close(st);
    arena_free(a);
}

/* ---- where it is told ---- */
static const char *told(Arena *a, const char *plan, const char *file, const char *format) {
    const char *words[] = {"check", plan, "--against", file, "--format", format, NULL};
    return child_run(a, &(Child){.words = words}).out;
}
static void test_told(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = temp_path(a, "told.yaml");
    FILE *f = fopen(plan, "w");
    assert_non_null(f);
    fputs(square, f);
    fclose(f);
    SafeTensors *st = golden_tensors(a, saved_by(a, square));
    int64_t n;
    double *x = arena_memdup(a, tensor_numbers(a, st, "logits", &n), 8 * 2 * 5 * 11);
    NewTensor t[] = {{.name = "layers.0.o_proj",
                      .nd = 3,
                      .shape = {2, 5, 48},
                      .x = tensor_numbers(a, st, "layers.0.o_proj", &n)},
                     {.name = "logits", .nd = 3, .shape = {2, 5, 11}, .x = x},
                     {.name = "nobody", .nd = 1, .shape = {1}, .x = x}};
    x[3] += 1;
    const char *file = write_tensors(a, "told.safetensors", t, 3);
    const char *line = "1 equal, 1 different, 1 only in the file, ";
    assert_non_null(
        strstr(told(a, plan, file, "junit"), arena_printf(a, "<system-out>against: %s", line)));
    assert_non_null(
        strstr(told(a, plan, file, "json"),
               "\"against\":{\"equal\":[\"layers.0.o_proj\"],\"different\":[\"logits\"]"));
    assert_non_null(
        strstr(told(a, plan, file, "jsonl"),
               "\"type\":\"against\",\"name\":\"logits\",\"result\":\"different\",\"count\":110"));
    const char *text = told(a, plan, file, "text");
    assert_non_null(strstr(text, "only in the file (1): nobody"));
    assert_non_null(strstr(text, "only in the model ("));
    /* the records survive being written and read */
    PlanRun r = run(a, square, NULL, file, NULL);
    size_t size;
    char *records = trace_text(r.t, a, true, &size);
    Trace *again = trace_read(a, r.d, "again.jsonl", records, size);
    assert_non_null(again);
    assert_int_equal(again->n_against, r.t->n_against);
    assert_int_equal(again->n_against, r.rep.n_against);
    for (int i = 0; i < again->n_against; i++)
        assert_string_equal(again->against[i].result, r.t->against[i].result);
    st_close(st);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_nothing_matches),
        cmocka_unit_test(test_other_mesh),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_checkpoint_names),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_outputs_of_modules),
        cmocka_unit_test(test_other_numbers_in_a_shape_that_agrees),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_fails),
        cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
