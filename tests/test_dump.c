/* What ranks of another framework have written, held against what the plan says that each must
 * hold: golden/dump is Hugging Face's Llama on two ranks, parameters, results of modules, gradients
 * and AdamW's state, written by docs/dump_ranks.py. Spoiled copies of it are told for what they
 * are. */
#include "formats/safetensors.h"
#include "support/child.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char plan[] = "tests/golden/dump/plan.yaml", folder[] = "tests/golden/dump",
                  rank1[] = "tests/golden/dump/rank1.safetensors";

static Ended check(Arena *a, const char *file, const char *rank) {
    const char *const all[] = {"check", plan, "--against", file, NULL};
    const char *const one[] = {"check", plan, "--against", file, "--against-rank", rank, NULL};
    return child_run(a, &(Child){.words = rank ? one : all});
}
static void says(const Ended *e, const char *text) {
    if (!strstr(e->out, text) && !strstr(e->err, text))
        fail_msg("no '%s' in\n%s%s", text, e->out, e->err);
}
static void test_recorded(void **state) {
    (void)state;
    Arena *a = arena_new();
    Ended both = check(a, folder, NULL), one = check(a, rank1, "1");
    child_expect(&both, 0, "");
    says(&both, "all 150 that were compared are equal");
    assert_null(strstr(both.out, "only in the file"));
    assert_null(strstr(both.out, "param"));
    child_expect(&one, 0, "");
    says(&one, "all 75 that were compared are equal");
    assert_null(strstr(one.out, "rank0/"));
    Ended wrong = check(a, rank1, "0"); /* another rank's parts, but for what all have */
    child_expect(&wrong, 1, "the file has what rank 1 holds in place of what rank 0 holds: all 51");
    assert_null(strstr(wrong.err, "differs from the file by"));
    assert_null(strstr(wrong.err, "rank0/model.norm.weight"));
    Ended none = check(a, rank1, "2");
    child_expect(&none, 2, "--against-rank 2: the mesh has 2 ranks");
    Ended empty = check(a, "tests/golden", NULL);
    child_expect(&empty, 3, "the folder 'tests/golden' has neither rank0.safetensors");
    Ended alone = child_run(a, &(Child){.words = WORDS("check", plan, "--against-rank", "1")});
    child_expect(&alone, 2, "--against-rank is for --against");
    arena_free(a);
}

/* ---- spoiled copies ---- */
typedef struct {
    Arena *a;
    NewTensor t[800];
    int n;
} Copy;
static Copy copy_of(Arena *a, const char *path) {
    Copy c = {.a = a};
    Diags *d = diags_new(a);
    SafeTensors *st = st_open(a, d, path, diag_nowhere);
    assert_non_null(st);
    assert_true(st->n <= (int)(sizeof c.t / sizeof *c.t));
    for (int i = 0; i < st->n; i++) {
        int64_t n = 1;
        for (int k = 0; k < st->t[i].nd; k++) n *= st->t[i].shape[k];
        double *x = ARENA_ARRAY(a, double, n);
        assert_true(st_read(&st->t[i], 0, n, DT_F64, x));
        NewTensor *t = &c.t[c.n++];
        *t = (NewTensor){.name = st->t[i].name, .nd = st->t[i].nd, .x = x};
        memcpy(t->shape, st->t[i].shape, sizeof t->shape);
    }
    st_close(st);
    return c;
}
static NewTensor *tensor(Copy *c, const char *name) {
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->t[i].name, name)) return &c->t[i];
    fail_msg("no %s", name);
    return NULL;
}
/* out[to(i)] = in[i]: rows of a matrix in another order. */
static void order_rows(Copy *c, NewTensor *t, const int *to) {
    int64_t cols = t->shape[1];
    double *x = ARENA_ARRAY(c->a, double, t->shape[0] * cols);
    for (int64_t i = 0; i < t->shape[0]; i++)
        memcpy(x + to[i] * cols, t->x + i * cols, sizeof *x * (size_t)cols);
    t->x = x;
}
static void transpose(Copy *c, NewTensor *t) {
    int64_t rows = t->shape[0], cols = t->shape[1];
    double *x = ARENA_ARRAY(c->a, double, rows *cols);
    for (int64_t i = 0; i < rows * cols; i++) x[i % cols * rows + i / cols] = t->x[i];
    t->x = x;
    t->shape[0] = cols;
    t->shape[1] = rows;
}
static void test_spoiled(void **state) {
    (void)state;
    /* of a rank's two heads of four: the halves of each side by side, and back */
    static const int pairs[] = {0, 2, 1, 3, 4, 6, 5, 7}, mixed[] = {3, 2, 1, 0, 4, 5, 6, 7};
    Arena *a = arena_new();
    Copy c = copy_of(a, rank1);
    transpose(&c, tensor(&c, "model.layers.0.mlp.up_proj.weight"));
    transpose(&c, tensor(&c, "model.layers.0.self_attn.o_proj.weight")); /* a square */
    order_rows(&c, tensor(&c, "model.layers.0.self_attn.q_proj.weight"), pairs);
    order_rows(&c, tensor(&c, "model.layers.0.self_attn.k_proj.weight"), pairs);
    order_rows(&c, tensor(&c, "after.0.model.layers.0.self_attn.q_proj.weight"), mixed);
    NewTensor *lost = tensor(&c, "after.0.model.layers.0.self_attn.v_proj.weight.exp_avg_sq");
    lost->x = ARENA_ARRAY(a, double, lost->shape[0] * lost->shape[1]); /* zeros; 1e-6 here */
    tensor(&c, "lm_head.weight")->name = "head.weight";
    Ended e = check(a, write_tensors(a, "spoiled.safetensors", c.t, c.n), "1");
    child_expect(&e, 1, "rank1/model.layers.0.mlp.up_proj.weight: transposed");
    says(&e, "rank1/model.layers.0.self_attn.o_proj.weight: transposed");
    says(&e, "q_proj.weight: the pairs of rope stand side by side there (interleaved)");
    says(&e, "k_proj.weight: the pairs of rope stand side by side there (interleaved)");
    says(&e, "rank1/after.0.model.layers.0.self_attn.q_proj.weight differs from the file by");
    says(&e, "v_proj.weight.exp_avg_sq differs from the file by 1 of its largest magnitude");
    says(&e, "only in the file (1): rank1/head.weight");
    says(&e, "only in the model (11): ");
    says(&e, "rank1/lm_head.weight, ");
    arena_free(a);
}
static int64_t count_of(const NewTensor *t) {
    int64_t n = 1;
    for (int k = 0; k < t->nd; k++) n *= t->shape[k];
    return n;
}
/* Its numbers once more, to be changed. */
static double *own_numbers(Arena *a, NewTensor *t) {
    double *x = arena_memdup(a, t->x, (size_t)count_of(t) * sizeof *x);
    t->x = x;
    return x;
}
/* Gate and up in one weight, which the framework cuts as one list of rows: two ranks, one has all
 * gates. Right where the result is gathered (Hugging Face's glm4, phi3), else named. */
static Ended one_list(Arena *a, const char *lines) {
    const char *file = temp_path(a, "packed.yaml"), *values = temp_path(a, "packed.safetensors");
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fprintf(f,
            "model: {preset: llama3-8b, layers: 1, shrink: 64, config: {packed_mlp: true}}\n"
            "data: {batch: 1, sequence: 8}\nmesh: {tp: 2}\nnames: hf\npass: train\n"
            "optimizer: {name: adamw, lr: 0.01, steps: 1}\nplan:\n%s",
            lines);
    fclose(f);
    Ended run = child_run(a, &(Child){.words = WORDS("run", "-q", file, "-o", temp_path(a, "out"),
                                                     "--save-values", values)});
    child_expect(&run, 0, "");
    Copy c = copy_of(a, values);
    static const char *const names[] = {"", "grad.param.", "after.0."};
    NewTensor t[6];
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < 2; r++)
            t[2 * i + r] =
                *tensor(&c, arena_printf(a, "rank%d/%smodel.layers.0.mlp.gate_up_proj.weight", r,
                                         names[i]));
        int64_t half = count_of(&t[2 * i]) / 2; /* the ups of rank 0, the gates of rank 1 */
        double *x = own_numbers(a, &t[2 * i]), *y = own_numbers(a, &t[2 * i + 1]);
        for (int64_t k = 0; k < half; k++) {
            double up = x[half + k];
            x[half + k] = y[k];
            y[k] = up;
        }
    }
    return child_run(a, &(Child){.words = WORDS("check", "-v", file, "--against",
                                                write_tensors(a, "list.safetensors", t, 6))});
}
static void test_one_list(void **state) {
    (void)state;
    Arena *a = arena_new();
    Ended gathered = one_list(a, "  model.layers.*.mlp.gate_up_proj: colwise_gather_output\n"
                                 "  model.layers.*.mlp.down_proj: rowwise_split_input\n"),
          packed = one_list(a, "  model.layers.*.mlp.gate_up_proj: packed_colwise\n"
                               "  model.layers.*.mlp.down_proj: rowwise\n");
    child_expect(&gathered, 0, "");
    says(&gathered, "rows 0 to 223 of 448 as one list, where the plan cuts each packed block: the "
                    "same result, which is gathered");
    child_expect(&packed, 1, "rows 224 to 447 of 448 as one list, where the plan cuts each packed");
    says(&packed, "cut each block of rows by itself (`packed_colwise`)");
    assert_null(strstr(packed.out, "which is gathered"));
    arena_free(a);
}
/* ---- gradients that are zero by identity ---- */
/* A bias of keys without rope adds the same to all scores of a row, which softmax does not see. */
static const char nope[] =
    "{\"model_type\": \"smollm3\", \"hidden_size\": 32, \"intermediate_size\": 48, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
    "\"vocab_size\": 64, \"rms_norm_eps\": 1e-6, \"attention_bias\": true, "
    "\"no_rope_layers\": [0], \"max_position_embeddings\": 64, \"rope_theta\": 10000.0, "
    "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"mlp_bias\": false}";
static const char *written(Arena *a, const char *name, const char *text) {
    const char *path = temp_path(a, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}
/* What rounding alone makes of such a bias, in its gradient, AdamW's moments and step, is no
 * difference in float32; more than that is, and the same in any other parameter. */
static void test_zero_gradient(void **state) {
    (void)state;
    static const struct {
        const char *what, *of, *end;
        double noise, wrong; /* the first number is off by */
    } rows[] = {{"grad.param.", "k_proj.bias", "", 4e-9, 4e-7},
                {"after.0.", "k_proj.bias", ".exp_avg", 4e-10, 4e-8},
                {"after.0.", "k_proj.bias", ".exp_avg_sq", 1e-20, 1e-17},
                {"after.0.", "k_proj.bias", "", 0.003, 0.03},
                {"after.0.", "q_proj.bias", "", 1e-8, 1e-4}};
    Arena *a = arena_new();
    const char *config = written(a, "config.json", nope), *values = temp_path(a, "v.safetensors");
    const char *file = written(
        a, "nope.yaml",
        arena_printf(a,
                     "model: {hf_config: \"%s\", parts: [embedding, blocks, norm, head, loss]}\n"
                     "data: {batch: 2, sequence: 8}\nmesh: {tp: 2}\nnames: hf\npass: train\n"
                     "optimizer: {name: adamw, lr: 0.01, steps: 1}\n"
                     "plan: {model.layers.*.self_attn.k_proj: colwise_gather_output}\n",
                     config));
    Ended run = child_run(a, &(Child){.words = WORDS("run", "-q", file, "-o", temp_path(a, "out"),
                                                     "--save-values", values)});
    child_expect(&run, 0, "");
    Copy c = copy_of(a, values);
    for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
        const bool wrong = i % 2, rank = i / 2 % 2;
        const char *name = arena_printf(a, "rank%d/%smodel.layers.0.self_attn.%s%s", rank,
                                        rows[i / 4].what, rows[i / 4].of, rows[i / 4].end);
        NewTensor t = *tensor(&c, name);
        own_numbers(a, &t)[0] += wrong ? rows[i / 4].wrong : rows[i / 4].noise;
        Ended e =
            child_run(a, &(Child){.words = WORDS("check", "-v", file, "--against",
                                                 write_tensors(a, "off.safetensors", &t, 1))});
        child_expect(&e, wrong, wrong ? "differs from the file by" : "");
        if (!wrong) says(&e, "equal");
        if (!wrong && rows[i / 4].of[0] == 'k')
            says(&e, "only where rounding is all that is left of the gradient");
    }
    arena_free(a);
}
/* ---- half precision ---- */
static uint16_t half_bits(double x, bool bf16) {
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (bf16) return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    int e;
    double m = frexp(fabs(x), &e);
    if (m == 0) return 0;
    int64_t mant = llrint(ldexp(m, 11)); /* 1024 to 2048 */
    if (e < -13) return (uint16_t)((x < 0) << 15 | (uint32_t)llrint(ldexp(fabs(x), 24)));
    return (uint16_t)(((uint32_t)(x < 0) << 15) + ((uint32_t)(e + 14) << 10) +
                      (uint32_t)(mant - 1024));
}
/* A file of tensors in bf16 or f16. */
static const char *half_file(Arena *a, const NewTensor *t, int n, bool bf16) {
    Str h = str_new(a);
    int64_t count[80], at = 0;
    for (int i = 0; i < n; i++) {
        count[i] = 1;
        str_addf(&h, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", t[i].name,
                 bf16 ? "BF16" : "F16");
        for (int k = 0; k < t[i].nd; k++) {
            str_addf(&h, "%s%lld", k ? "," : "", (long long)t[i].shape[k]);
            count[i] *= t[i].shape[k];
        }
        str_addf(&h, "],\"data_offsets\":[%lld,%lld]}", (long long)at,
                 (long long)(at + 2 * count[i]));
        at += 2 * count[i];
    }
    str_add(&h, "}");
    const char *path = temp_path(a, "half.safetensors");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    uint64_t size = h.n;
    fwrite(&size, 8, 1, f);
    fwrite(h.s, 1, h.n, f);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < count[i]; k++) {
            uint16_t b = half_bits(t[i].x[k], bf16);
            fwrite(&b, 2, 1, f);
        }
    fclose(f);
    return path;
}
/* Where its largest number is. */
static int64_t largest(const NewTensor *t) {
    int64_t top = 0;
    for (int64_t i = 0; i < count_of(t); i++)
        if (fabs(t->x[i]) > fabs(t->x[top])) top = i;
    return top;
}
/* The same tensor, its first number off by a share of its largest. */
static NewTensor first_off(Arena *a, const NewTensor *t, double share) {
    NewTensor o = *t;
    own_numbers(a, &o)[0] += share * fabs(t->x[largest(t)]);
    return o;
}
static void test_half(void **state) {
    (void)state;
    Arena *a = arena_new();
    Copy c = copy_of(a, rank1);
    NewTensor *t = tensor(&c, "model.layers.0.mlp.up_proj.weight");
    for (int bf16 = 0; bf16 < 2; bf16++) {
        NewTensor off = first_off(a, t, bf16 ? 0x1p-6 : 0x1p-9);
        Ended good = check(a, half_file(a, t, 1, bf16), "1"),
              bad = check(a, half_file(a, &off, 1, bf16), "1");
        child_expect(&good, 0, "");
        child_expect(&bad, 1, "up_proj.weight differs from the file");
    }
    /* squares of gradients, below f16's smallest normal number: 2^-25 off by being written */
    t = tensor(&c, "after.0.model.layers.0.self_attn.q_proj.weight.exp_avg_sq");
    double top = fabs(t->x[largest(t)]);
    assert_true(top < 0x1p-14);
    NewTensor off = first_off(a, t, 0x1p-22 / top);
    Ended good = check(a, half_file(a, t, 1, false), "1"),
          bad = check(a, half_file(a, &off, 1, false), "1");
    child_expect(&good, 0, "");
    child_expect(&bad, 1, "exp_avg_sq differs from the file");
    arena_free(a);
}
/* ---- a run in bf16 ---- */
static const double LR = 0.01; /* the plan's */
static Ended check_bf16(Arena *a, const char *file, const char *dtype, bool rank) {
    const char *words[] = {
        "check", plan,        "-v",        "--set", dtype,
        "--set", "mesh.tp=1", "--against", file,    rank ? "--against-rank" : NULL,
        "0",     NULL};
    return child_run(a, &(Child){.words = words});
}
static int rows_different(const Ended *e) {
    int n = 0;
    for (const char *p = e->out; (p = strstr(p, " DIFFERENT ")) != NULL; p++) n++;
    return n;
}
typedef struct {
    double units;  /* of bf16, which the largest number is off by */
    double factor; /* of all numbers; 0: 1 */
    bool steps;    /* each number is a step of the optimizer further up or down */
    int least, most;
    const char *says;
} Planted;
/* What transformers' Llama itself has in bf16, which rounds elsewhere than we do, and what is wrong
 * with it: how many of its eleven activations and gradients are told. Nothing may be told of one
 * unit, everything of a twentieth. */
static void test_bf16(void **state) {
    (void)state;
    static const Planted rows[] = {
        {0, 0, false, 0, 0, NULL},
        {1, 0, false, 0, 0, NULL},
        {8, 0, false, 3, 8, "differs from the file by"},
        {32, 0, false, 11, 11, "differs from the file by"},
        {0, 1.002, false, 0, 0, NULL},
        {0, 1.01, false, 2, 7, " times ours, bf16 moves them together by at most"},
        {0, 1.02, false, 4, 9, " times ours, bf16 moves them together by at most"},
        {0, 1.05, false, 11, 11, "its numbers are 1.05"},
        {0, 0, true, 1, 1, "v_proj.weight: its numbers together are"}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Planted *r = &rows[i];
        Copy c = copy_of(a, "tests/golden/dump/bf16.safetensors");
        for (int k = 0; k < c.n; k++) {
            NewTensor *t = &c.t[k];
            bool after = !strncmp(t->name, "after.", 6),
                 moment = strstr(t->name, "exp_avg") != NULL;
            int64_t top = largest(t);
            double *x = own_numbers(a, t);
            if (!after) x[top] += r->units * ldexp(1, ilogb(x[top]) - 7);
            for (int64_t j = 0; j < count_of(t); j++)
                if (!after && r->factor > 0) x[j] *= r->factor;
                else if (after && !moment && r->steps) x[j] += j % 2 ? LR : -LR;
        }
        const char *file = half_file(a, c.t, c.n, true);
        /* a plan in f32 is held to the same measure, and its weights were rounded on top */
        for (int f32 = 0; f32 < 2; f32++) {
            const char *dtype = f32 ? "data.dtype=f32" : "data.dtype=bf16";
            Ended whole = check_bf16(a, file, dtype, false),
                  rank = check_bf16(a, file, dtype, true);
            int n = rows_different(&whole), m = rows_different(&rank);
            int least = r->least - (f32 ? 2 : 0);
            if (n < least || n > r->most || m < least - 3 || m > r->most)
                fail_msg("row %zu, %s: %d and %d are told\n%s", i, dtype, n, m, whole.out);
            if (r->says) says(&whole, r->says);
        }
    }
    arena_free(a);
}
/* Two files of one rank; a folder without any. */
static void test_folders(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *dir = temp_path(a, "ranks");
    assert_int_equal(mkdir(dir, 0700), 0);
    Ended empty = check(a, dir, NULL);
    child_expect(&empty, 3, "E0101");
    size_t n;
    char *bytes = child_read(a, rank1, &n);
    static const char *const names[] = {"rank1", "rank01", "ranks", "rank"};
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(arena_printf(a, "%s/%s.safetensors", dir, names[i]), "wb");
        assert_non_null(f);
        if (i < 2) fwrite(bytes, 1, n, f);
        fclose(f);
    }
    Ended two = check(a, dir, NULL);
    child_expect(&two, 3, "are of one rank");
    remove(arena_printf(a, "%s/rank01.safetensors", dir));
    Ended one = check(a, dir, NULL); /* what has no number is nobody's */
    child_expect(&one, 0, "");
    says(&one, "all 75 that were compared are equal");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_one_list), cmocka_unit_test(test_zero_gradient),
        cmocka_unit_test(test_half),     cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
