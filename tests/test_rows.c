/* Rows: values that exist only for the (expert, token) pairs that a router chose. The kernels on
 * lists of all kinds against central differences; whole plans of a model with experts under every
 * way to lay them out, in f64 and f32; bits where no sum is split; what must not be believed. */
#include "support/emulate.h"
#include "support/support.h"
#include "exec/device_gpu.h"
#include "exec/exec.h"
#include "ops/op.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- kernels ---- */
/* On a rank that holds some experts, sequences and positions of a whole of 5, 4 and 6. */
static const int64_t whole[26] = {['e' - 'a'] = 5, ['b' - 'a'] = 4, ['t' - 'a'] = 6,
                                  ['d' - 'a'] = 3, ['w' - 'a'] = 7, ['u' - 'a'] = 2};
static const int64_t some_e[] = {1, 2, 4}, some_b[] = {0, 3}, some_t[] = {0, 1, 4, 5};
typedef struct {
    int n;
    int64_t id[64];
} List;
/* Pairs that a hash chooses; `all`: also of tokens and experts of other ranks. */
static List list_of(bool part, int seed) {
    List l = {0};
    for (int64_t e = 0; e < 5; e++)
        for (int64_t b = 0; b < 4; b++)
            for (int64_t t = 0; t < 6; t++) {
                bool here = e != 0 && e != 3 && (b == 0 || b == 3) && t != 2 && t != 3;
                int64_t h = (e * 7 + b * 13 + t * 31 + seed * 17) * 2654435761u % 1013;
                if ((!part || here) && h % (seed % 3 + 2) == 0 && l.n < 64)
                    l.id[l.n++] = (e * 4 + b) * 6 + t;
            }
    return l;
}
typedef struct {
    Rule rule;
    Attrs at;
    OpCall c;
    List list;
    double x[3][4096], y[4096], g[4096];
} Kernel;
static void tensor_of(const Kernel *k, Tensor *t, const char *letters, int nl, uint32_t listed,
                      double *data) {
    t->nd = nl;
    t->p = data;
    for (int d = 0; d < nl; d++) {
        int64_t n = k->c.local[letters[d] - 'a'];
        t->n[d] = !(listed & RULE_BIT(letters[d])) ? n : d ? 1 : k->list.n;
    }
    tensor_pack(t);
}
static void kernel_open(Kernel *k, const char *op, const char *rule, bool part, int seed) {
    const char *why;
    int at;
    *k = (Kernel){.at = {.top = 2}, .list = list_of(part, seed)};
    assert_true(rule_parse(rule, &k->rule, &why, &at));
    k->c = (OpCall){.op = op_find(op), .rule = &k->rule, .at = &k->at, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) k->c.local[i] = k->c.global[i] = whole[i];
    if (part) {
        k->c.local['e' - 'a'] = 3, k->c.index['e' - 'a'] = some_e;
        k->c.local['b' - 'a'] = 2, k->c.index['b' - 'a'] = some_b;
        k->c.local['t' - 'a'] = 4, k->c.index['t' - 'a'] = some_t;
    }
    k->c.rows = k->list.n;
    k->c.ids = (Tensor){.nd = 1, .n = {k->list.n}, .s = {1}, .p = k->list.id};
    for (int i = 0; i < k->rule.nin; i++) {
        tensor_of(k, &k->c.in[i], k->rule.in[i], k->rule.nl[i], k->rule.listed[i], k->x[i]);
        for (int64_t j = 0; j < tensor_count(&k->c.in[i]); j++)
            k->x[i][j] = sin((double)(j * (i + 3) + seed)) + 0.1 * (double)i;
    }
    tensor_of(k, &k->c.out, k->rule.out, k->rule.nout, k->rule.listed[RULE_MAX_IN], k->y);
    for (int64_t j = 0; j < 4096; j++) k->g[j] = cos((double)(3 * j + seed));
}
/* Scores as sigmoids are: above 0, so that a token's sum is not near it. */
static void positive(Kernel *k, int seed) {
    for (int64_t j = 0; j < tensor_count(&k->c.in[0]); j++) k->x[0][j] = 1 / (1 + exp(-k->x[0][j]));
    k->at.factor = 2.5;
    k->at.a = seed != 1; /* divided by the sum, or not */
}
/* The list as an operand. */
static void with_list(Kernel *k, int operand) {
    k->c.in_int |= 1u << operand;
    k->c.in[operand].p = k->list.id;
}
static double objective(const Kernel *k) {
    OpCall c = k->c;
    double s = 0;
    c.op->forward(&c);
    for (int64_t j = 0; j < tensor_count(&c.out); j++) s += k->y[j] * k->g[j];
    return s;
}
/* The adjoint towards an operand, against differences of the forward kernel. */
static void hold_adjoint(Kernel *k, int operand) {
    static double grad[4096];
    OpCall a = k->c;
    objective(k); /* leaves the output in y */
    a.operand = operand;
    a.cot = k->c.out;
    a.cot.p = k->g;
    a.fout = k->c.out;
    tensor_of(k, &a.out, k->rule.in[operand], k->rule.nl[operand], k->rule.listed[operand], grad);
    a.op->adjoint(&a);
    for (int64_t j = 0; j < tensor_count(&a.out); j++) {
        const double h = 1e-5;
        double keep = k->x[operand][j];
        k->x[operand][j] = keep + h;
        double up = objective(k);
        k->x[operand][j] = keep - h;
        double down = objective(k);
        k->x[operand][j] = keep;
        assert_true(fabs((up - down) / (2 * h) - grad[j]) < 1e-7 * (1 + fabs(grad[j])));
    }
}
static const struct {
    const char *op, *rule;
    int list, operands; /* the operand that is the list, -1: none; how many have gradients */
} kernels[] = {
    {"einsum", "btd,[ebt]->[ebt]d", 1, 1},
    {"einsum", "[ebt]d,ewd->[ebt]w", -1, 2},
    {"einsum", "[ebt]d,euwd->[ebt]uw", -1, 2},
    {"einsum", "[ebt]w,edw->[ebt]d", -1, 2},
    {"einsum", "[ebt]d,[ebt]->btd", -1, 2},
    {"einsum", "[ebt]d,[ebt]->[ebt]d", -1, 2},
    {"einsum", "[ebt]w,[ebt]w->[ebt]w", -1, 2},
    {"gate", "bte,[ebt]->[ebt]", 1, 1},
    {"swiglu", "[ebt]uw->[ebt]w", -1, 1},
    {"gate_all", "bte,[ebt]->[ebt]", 1, 1},
    {"share", "bte,[ebt]->[ebt]", 1, 1},
    {"einsum", "[ebt]d->btd", -1, 1},
    {"einsum", "[ebt]d,eduw->[ebt]uw", -1, 2},
    {"einsum", "[ebt]d,edwu->[ebt]wu", -1, 2},
    {"add", "[ebt]wu,ewu->[ebt]wu", -1, 2},
    {"add", "[ebt]d,ed->[ebt]d", -1, 2},
    {"limit_pairs", "[ebt]wu->[ebt]wu", -1, 1},
    {"swiglu_up_plus", "[ebt]wu->[ebt]w", -1, 1},
    {"einsum", "[ebt]w,ewd->[ebt]d", -1, 2},
    {"einsum", "[ebt]->bte", -1, 1},
    {"einsum", "bte,[ebt]->[ebt]", 1, 1},
    {"counts", "[eb!t!]->be", 0, 0}, /* by hand, below */
};
/* test_ops leaves out the ops whose own rule has rows: each stands here. */
static bool has_case(const Op *op) {
    if (op->rows) return true; /* makes a list: test_select, test_capacity, test_routers */
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].op, op->name)) return true;
    return false;
}
static void test_adjoints(void **state) {
    (void)state;
    int held = 0;
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->rule && strchr(op_list[i]->rule, '[') && !has_case(op_list[i]))
            fail_msg("the op %s of rows has no case", op_list[i]->name);
    Kernel *k = base_malloc(sizeof *k);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (int seed = 0; seed < 3; seed++)
            for (int part = 0; part < 2; part++)
                for (int operand = 0; operand < kernels[i].operands; operand++, held++) {
                    kernel_open(k, kernels[i].op, kernels[i].rule, part, seed);
                    if (kernels[i].list >= 0) with_list(k, kernels[i].list);
                    if (!strcmp(kernels[i].op, "share")) positive(k, seed);
                    if (strstr(kernels[i].rule, "wu->")) k->at.factor = 0.6, k->at.a = 1.7;
                    hold_adjoint(k, operand);
                }
    assert_int_equal(held, 192);
    free(k);
}
/* Rows per expert of each sequence's own micro-batch, of the whole batch of four. */
static void hold_counts(Kernel *k) {
    for (int64_t parts = 1; parts <= 4; parts *= 2) {
        Attrs at = {.parts = parts};
        kernel_open(k, "counts", "[eb!t!]->be", 0, 3);
        with_list(k, 0);
        k->c.at = &at;
        k->c.op->forward(&k->c);
        int64_t nb = k->c.local['b' - 'a'], ne = k->c.local['e' - 'a'], all = 0;
        assert_int_equal(nb, 4);
        for (int64_t b = 0; b < nb; b++)
            for (int64_t e = 0; e < ne; e++) {
                int count = 0;
                for (int r = 0; r < k->list.n; r++)
                    count += k->list.id[r] / 24 == e &&
                             k->list.id[r] / 6 % 4 / (4 / parts) == b / (4 / parts);
                assert_true(k->y[b * ne + e] == count);
                all += count;
            }
        assert_int_equal(all, k->list.n * (4 / parts));
    }
}
/* By hand: what each kernel says, row by row. */
static void test_kernels_by_hand(void **state) {
    (void)state;
    Kernel *k = base_malloc(sizeof *k);
    for (int part = 0; part < 2; part++) {
        kernel_open(k, "einsum", "[ebt]d,[ebt]->btd", part, 1);
        k->c.op->forward(&k->c);
        for (int64_t b = 0; b < k->c.local['b' - 'a']; b++)
            for (int64_t t = 0; t < k->c.local['t' - 'a']; t++)
                for (int64_t d = 0; d < 3; d++) {
                    int64_t token = (part ? some_b[b] : b) * 6 + (part ? some_t[t] : t);
                    double want = 0;
                    for (int r = 0; r < k->list.n; r++)
                        if (k->list.id[r] % 24 == token) want += k->x[0][r * 3 + d] * k->x[1][r];
                    assert_true(k->y[(b * k->c.local['t' - 'a'] + t) * 3 + d] == want);
                }
        kernel_open(k, "einsum", "[ebt]->e", part, 2);
        with_list(k, 0);
        k->c.op->forward(&k->c);
        for (int64_t e = 0; e < k->c.local['e' - 'a']; e++) {
            int count = 0;
            for (int r = 0; r < k->list.n; r++)
                count += k->list.id[r] / 24 == (part ? some_e[e] : e);
            assert_true(k->y[e] == count);
        }
        hold_counts(k);
        kernel_open(k, "einsum", "[ebt]d,ewd->[ebt]w", part, 0);
        k->c.op->forward(&k->c);
        for (int r = 0; r < k->list.n; r++)
            for (int64_t w = 0; w < 7; w++) {
                int64_t e = k->list.id[r] / 24, at = part ? (e == 4 ? 2 : e - 1) : e;
                double want = 0;
                for (int64_t d = 0; d < 3; d++)
                    want += k->x[0][r * 3 + d] * k->x[1][(at * 7 + w) * 3 + d];
                assert_true(fabs(k->y[r * 7 + w] - want) < 1e-14);
            }
    }
    free(k);
}
/* The k largest of each token, ties to the lower expert, ordered by expert, sequence, position. */
static void test_select(void **state) {
    (void)state;
    const char *why;
    int at;
    Rule r;
    assert_true(rule_parse("bte!->[ebt]", &r, &why, &at));
    Attrs attrs = {.top = 2};
    double z[] = {1, 3, 3, 0, /**/ 5, 5, 5, 5, /**/ -1, -2, -3, NAN}; /* two of three sequences */
    int64_t b[] = {1, 2, 4}, out[6];
    OpCall c = {.op = op_find("select"), .rule = &r, .at = &attrs, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) c.local[i] = c.global[i] = 1;
    c.local['b' - 'a'] = 3, c.global['b' - 'a'] = 5, c.index['b' - 'a'] = b;
    c.local['e' - 'a'] = c.global['e' - 'a'] = 4;
    c.in[0] = (Tensor){.nd = 3, .n = {3, 1, 4}, .p = z};
    tensor_pack(&c.in[0]);
    assert_int_equal(c.op->rows(&c), 6);
    c.out = (Tensor){.nd = 1, .n = {6}, .s = {1}, .p = out};
    c.op->forward(&c);
    int64_t want[] = {0 * 5 + 2, 0 * 5 + 4, 1 * 5 + 1, 1 * 5 + 2, 1 * 5 + 4, 2 * 5 + 1};
    assert_memory_equal(out, want, sizeof want);
    attrs.top = 9; /* no more than there are */
    assert_int_equal(c.op->rows(&c), 12);
}

/* ---- the same on a GPU's kernels ---- */
static void *moved(Device *d, const Tensor *t, Dtype dt, bool with) {
    Tensor there = *t;
    there.p = d->alloc(d, (size_t)(tensor_count(t) * dtype_size(dt)) + 8);
    if (with) d->put(d, &there, t, dt);
    return there.p;
}
/* The call on the GPU; its result goes into y. */
static void call_there(Device *d, const OpCall *host, bool adjoint, void *y) {
    OpCall c = *host;
    Dtype out = c.op->rows ? DT_I64 : DT_F64;
    bool cot = adjoint, fout = adjoint && c.op->adj_reads_output, listed = c.ids.nd > 0;
    if (listed) c.ids.p = moved(d, &host->ids, DT_I64, true);
    for (int i = 0; i < c.rule->nin; i++)
        c.in[i].p = moved(d, &host->in[i], c.in_int >> i & 1 ? DT_I64 : DT_F64, true);
    if (cot) c.cot.p = moved(d, &host->cot, DT_F64, true);
    c.fout.p = fout ? moved(d, &host->fout, DT_F64, true) : NULL;
    c.out.p = moved(d, &host->out, out, false);
    d->call(d, &c, 1, adjoint ? DEVICE_ADJOINT : DEVICE_FORWARD, NULL);
    Tensor got = d->get(d, &c.out, out);
    memcpy(y, got.p, (size_t)tensor_count(&c.out) * 8);
    d->done(d, &got);
    if (listed) d->release(d, c.ids.p);
    for (int i = 0; i < c.rule->nin; i++) d->release(d, c.in[i].p);
    if (cot) d->release(d, c.cot.p);
    if (fout) d->release(d, c.fout.p);
    d->release(d, c.out.p);
}
static void hold_there(Device *d, Kernel *k, int operand) {
    static double there[4096], fout[4096], here[4096];
    OpCall a = k->c;
    a.op->forward(&a);
    call_there(d, &k->c, false, there);
    for (int64_t j = 0; j < tensor_count(&a.out); j++)
        assert_true(fabs(there[j] - k->y[j]) <= 1e-12 * (1 + fabs(k->y[j])));
    if (operand < 0) return;
    memcpy(fout, k->y, sizeof fout);
    a.operand = operand;
    a.cot = a.fout = k->c.out;
    a.cot.p = k->g;
    a.fout.p = fout;
    tensor_of(k, &a.out, k->rule.in[operand], k->rule.nl[operand], k->rule.listed[operand], here);
    a.op->adjoint(&a);
    call_there(d, &a, true, there);
    for (int64_t j = 0; j < tensor_count(&a.out); j++)
        assert_true(fabs(there[j] - here[j]) <= 1e-12 * (1 + fabs(here[j])));
}
/* A list, word for word; *k has the operands. */
static void hold_list(Device *d, OpCall *c) {
    int64_t here[256], there[256];
    int64_t n = c->op->rows(c);
    assert_true(n <= 256);
    c->out = (Tensor){.nd = 1, .n = {n}, .s = {1}, .p = here};
    c->op->forward(c);
    call_there(d, c, false, there);
    assert_memory_equal(here, there, (size_t)n * 8);
}
static void hold_choice(Device *d, Kernel *k, int seed) {
    static const int groups[][2] = {{0, 0}, {2, 1}, {4, 2}};
    for (int part = 0; part < 2; part++)
        for (int g = 0; g < 3; g++)
            for (int top = 1; top < 9; top += 3) {
                kernel_open(k, "select", "bte!->[ebt]", part, seed);
                k->at = (Attrs){.top = top, .groups = groups[g][0], .top_groups = groups[g][1]};
                k->c.local['e' - 'a'] = k->c.global['e' - 'a'] = 8; /* never cut */
                k->c.index['e' - 'a'] = NULL;
                k->c.ids = (Tensor){0};
                tensor_of(k, &k->c.in[0], "bte", 3, 0, k->x[0]);
                for (int64_t j = 0; j < tensor_count(&k->c.in[0]); j++)
                    k->x[0][j] = j % 11 ? floor(8 * sin((double)(j * 3 + seed))) : NAN; /* ties */
                hold_list(d, &k->c);
            }
}
static void hold_capacity(Device *d, Kernel *k, int seed) {
    static const int32_t group[24] = {0, 1, 2, 0, 1, 2, 0, 0, 2, 1, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0};
    for (int way = 0; way < 3; way++)
        for (int grouped = 0; grouped < 2; grouped++) {
            kernel_open(k, "capacity", "[eb!t!],[eb!t!]->[ebt]", false, seed);
            k->at = (Attrs){.top = 2, .factor = 0.4 + 0.2 * seed, .priority = "osw"[way]};
            k->at.group = grouped ? group : NULL;
            with_list(k, 0);
            for (int64_t j = 0; j < k->list.n; j++) k->x[1][j] = (double)(j * 5 % 7); /* ties */
            hold_list(d, &k->c);
            assert_true(k->c.out.n[0] > 0 && k->c.out.n[0] < k->list.n);
        }
}
static void test_on_kernels(void **state) {
    (void)state;
    static const char *const names[] = {
#define NAME(name, together) #name,
        GPU_KERNELS(NAME)};
#undef NAME
    Gpu *gpu = emulated_gpu((size_t)1 << 32, GPU_WARP);
    Device *d = device_gpu(gpu);
    Kernel *k = base_malloc(sizeof *k);
    for (int seed = 0; seed < 3; seed++) {
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
            for (int part = 0; part < 2; part++)
                for (int operand = -1; operand < kernels[i].operands; operand++) {
                    kernel_open(k, kernels[i].op, kernels[i].rule, part, seed);
                    if (kernels[i].list >= 0) with_list(k, kernels[i].list);
                    if (!strcmp(kernels[i].op, "share")) positive(k, seed);
                    if (strstr(kernels[i].rule, "wu->")) k->at.factor = 0.6, k->at.a = 1.7;
                    hold_there(d, k, operand);
                }
        hold_choice(d, k, seed);
        hold_capacity(d, k, seed);
    }
    Arena *a = arena_new();
    const char *missing = device_gpu_missing(d, a);
    if (missing) fail_msg("on the host: %s", missing);
    for (int i = GPU_gather_rows; i < GPU_N_KERNELS; i++)
        if (!emulated_calls(gpu)[i]) fail_msg("never ran: %s", names[i]);
    arena_free(a);
    device_free(d);
    free(k);
}

/* ---- plans ---- */
static const char attention[] =
    "  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n";
static const char sequence[] =
    "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: shard(1), desired_input: "
    "replicate}\n  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n";
static const char token_router[] = "  layers.*.moe.router.gate: sequence_parallel\n";
static const char experts[] = "  layers.*.moe.experts: {style: expert_parallel, axis: ep}\n";
typedef struct {
    const char *name, *mesh, *groups;
    int E, k, layers, B, S;
    bool sp;             /* the stream is cut over tp */
    const char *experts; /* lines */
    const char *more;    /* keys */
} Family;
#define DDP "data_parallel: {mode: ddp}\n"
#define FSDP "data_parallel: {mode: fsdp}\n"
#define ZIGZAG "context_parallel: {mode: all_gather, order: zigzag}\n"
#define MASKED "  layers.*.moe.experts: {style: expert_parallel, axis: tp, output: replicate}\n"
#define BOTH "  layers.*.moe.experts: {axis: ep, weight: {ep: shard(e), tp: shard(w)}}\n"
static const Family families[] = {
    {"ep over dp", "{dp: 2}", "ep: dp", 4, 2, 1, 4, 6, false, experts, DDP},
    {"ep over dp x cp, zigzag", "{dp: 2, cp: 2}", "ep: dp*cp", 8, 2, 2, 4, 8, false, experts,
     DDP ZIGZAG},
    {"the same, FSDP", "{dp: 2, cp: 2}", "ep: dp*cp", 8, 2, 1, 4, 8, false, experts, FSDP ZIGZAG},
    {"masked over tp", "{dp: 2, tp: 2}", "ep: tp", 4, 2, 1, 4, 6, false, MASKED, DDP},
    {"masked, experts uneven", "{tp: 4}", "ep: tp", 5, 2, 1, 2, 7, false, MASKED, ""},
    {"experts cut inside", "{tp: 2}", "ep: tp", 4, 2, 1, 2, 6, false,
     "  layers.*.moe.experts: {style: tensor_parallel, desired_input: [null, null, replicate], "
     "output: replicate}\n",
     ""},
    {"experts cut inside, sequence parallel", "{tp: 2}", "ep: tp", 4, 2, 2, 2, 6, true,
     "  layers.*.moe: {style: prepare_module_input_output, input: shard(1), desired_input: "
     "replicate, output: partial, desired_output: shard(1)}\n"
     "  layers.*.moe.experts: {style: tensor_parallel, desired_input: [null, null, replicate]}\n"
     "  layers.*.moe.router.gate: "
     "replicated_with_grad_allreduce\n",
     ""},
    {"folded: ep over dp x tp", "{dp: 2, tp: 2}", "ep: dp*tp", 4, 2, 1, 4, 6, true, experts, DDP},
    {"folded: ep over all", "{dp: 2, cp: 2, tp: 2}", "ep: dp*cp*tp", 8, 2, 1, 4, 16, true, experts,
     FSDP ZIGZAG},
    {"ep and etp", "{dp: 2, tp: 2}", "ep: dp", 4, 2, 1, 4, 6, true, BOTH, DDP},
    {"ep and etp, zigzag, FSDP", "{dp: 2, cp: 2, tp: 2}", "ep: dp*cp", 8, 3, 1, 4, 16, true, BOTH,
     FSDP ZIGZAG},
    {"copies of experts, inner ep", "{edp: 2, ep: 2}", "dp: edp*ep", 4, 2, 1, 8, 6, false, experts,
     DDP},
    {"copies of experts, outer ep, FSDP", "{ep: 2, edp: 2}", "dp: ep*edp", 4, 2, 1, 8, 6, false,
     experts, FSDP},
    {"experts not cut, FSDP", "{dp: 4}", "ep: dp", 4, 2, 1, 8, 6, false,
     "  layers.*.moe.experts.w1: {weight: replicate}\n", FSDP},
    {"5 experts on 4 ranks", "{dp: 4}", "ep: dp", 5, 2, 1, 6, 5, false, experts, DDP},
    {"a rank without tokens", "{dp: 4}", "ep: dp", 8, 2, 1, 3, 5, false, experts, DDP},
    {"a rank without experts", "{dp: 4}", "ep: dp", 3, 2, 1, 4, 5, false, experts, FSDP},
    {"one expert a token", "{dp: 2}", "ep: dp", 4, 1, 1, 4, 5, false, experts, DDP},
    {"all experts", "{dp: 2}", "ep: dp", 4, 4, 1, 4, 5, false, experts, DDP},
    {"recomputed", "{dp: 2}", "ep: dp", 4, 2, 2, 4, 6, false, experts, DDP "recompute: block\n"},
    {"declared", "{dp: 2}", "ep: dp", 4, 2, 1, 4, 6, false, experts, DDP "trust: declared\n"},
};
enum { N_FAMILIES = sizeof families / sizeof *families };
static const char *family_text(Arena *a, const Family *f, const char *dtype, const char *pass) {
    return arena_printf(
        a,
        "model: {config: {model_type: mixtral, hidden_size: 16, intermediate_size: 24, "
        "num_hidden_layers: %d, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 4, "
        "vocab_size: 32, num_local_experts: %d, num_experts_per_tok: %d}, layers: all}\n"
        "mesh: %s\ngroups: {%s}\ndata: {batch: %d, sequence: %d, dtype: %s%s}\nnames: torchtitan\n"
        "plan:\n%s%s%spass: %s\n%s",
        f->layers, f->E, f->k, f->mesh, f->groups, f->B, f->S, dtype,
        f->sp ? ", block_input: shard(1)" : "",
        f->sp                    ? sequence
        : strstr(f->mesh, "tp:") ? attention
                                 : "",
        f->sp && !strstr(f->experts, "router") ? token_router : "", f->experts, pass, f->more);
}
static void test_families(void **state) {
    (void)state;
    static const char *const dtypes[] = {"f64", "f32"};
    for (int i = 0; i < N_FAMILIES; i++)
        for (int d = 0; d < 2; d++) {
            Arena *a = arena_new();
            const char *text = family_text(a, &families[i], dtypes[d], "backward");
            PlanRun r = plan_run(a, "rows.yaml", text, true);
            bool good = run_is(&r, "equivalent") && !r.rep.exit && !r.t->n_undeclared &&
                        !r.t->n_unasked && r.t->n_pass > 100;
            if (!good) {
                fprintf(stderr, "%s %s\n%s", families[i].name, dtypes[d], text);
                run_print(&r);
                fail_msg("%s %s: equivalent expected, nothing undeclared", families[i].name,
                         dtypes[d]);
            }
            arena_free(a);
        }
}
/* Training goes on from what a step made, micro-batches have lists of their own. */
static void test_training(void **state) {
    (void)state;
    static const char *const more[] = {
        FSDP "optimizer: {name: adamw, lr: 0.01, steps: 3}\n",
        DDP "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, steps: 2}\n"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        Family f = families[i < 2 ? 0 : 11];
        f.more = more[i % 2];
        f.B = i < 2 ? 4 : 8;
        const char *text = family_text(a, &f, "f64", "train");
        if (i % 2) {
            const char *at = strstr(text, "data: {") + 7;
            text = arena_printf(a, "%.*smicrobatches: 2, %s", (int)(at - text), text, at);
        }
        PlanRun r = plan_good(a, text, true);
        run_must_be(&r, "equivalent");
        arena_free(a);
    }
}

/* ---- bits ---- */
typedef struct {
    const char *name;
    int64_t n; /* elements met so far */
    double x[1 << 14];
} Kept;
/* What the ranks hold of a value, side by side: its first dim is cut, if any. */
static void keep(void *arg, struct Exec *e, const struct Step *s, bool checked) {
    Kept *k = arg;
    if (checked || strcmp(step_value(e->p, s), k->name)) return;
    k->n = 0;
    const Store *st = exec_store(e, s->out);
    for (int i = 0; i < st->n; i++) {
        const Tensor *t = &st->l[i].t;
        assert_true(k->n + tensor_count(t) <= 1 << 14);
        memcpy(k->x + k->n, t->p, (size_t)tensor_count(t) * 8);
        k->n += tensor_count(t);
    }
}
static void run_kept(Arena *a, const Family *f, Kept *k) {
    PipelineOptions o = {.execute = true, .threads = 1, .watch = keep, .watch_arg = k};
    PlanRun r = plan_run_with(a, "rows.yaml", family_text(a, f, "f64", "backward"), &o);
    assert_non_null(r.t);
    run_must_be(&r, "equivalent");
    assert_true(k->n > 0);
}
/* Expert parallelism over ranks of tokens splits no sum: rows are ordered by expert and token
 * whatever the plan, so the experts' gradients have the unsharded run's bits. */
static void test_expert_gradients_by_bits(void **state) {
    (void)state;
    static const char *const names[] = {"grad.param.layers.0.moe.experts.w1",
                                        "grad.param.layers.0.moe.experts.w2",
                                        "grad.param.layers.0.moe.experts.w3"};
    Kept *one = base_malloc(sizeof *one), *many = base_malloc(sizeof *many);
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < 3; n++) {
            Arena *a = arena_new();
            Family f = families[i], single;
            f.layers = 1; /* above, attention under cp splits sums */
            single = f;
            single.mesh = "{dp: 1, cp: 1}";
            one->name = many->name = names[n];
            run_kept(a, &single, one);
            run_kept(a, &f, many);
            assert_int_equal(one->n, many->n);
            assert_memory_equal(one->x, many->x, (size_t)one->n * 8);
            arena_free(a);
        }
    free(one);
    free(many);
}

/* ---- what must not be believed ---- */
typedef struct {
    const char *name;
    int how, step; /* step: the one that was spoiled, -1: none yet */
} Spoil;
/* On rank 1: a row is missing, a row is another token's, rows stand in another order. */
static void spoil(void *arg, struct Exec *e, const struct Step *s, bool checked) {
    Spoil *x = arg;
    if (checked || x->step >= 0 || strcmp(step_value(e->p, s), x->name)) return;
    Store *st = exec_store(e, s->out);
    Tensor *t = &st->l[st->which[1]].t;
    int64_t *id = t->p, n = t->n[0];
    double *d = t->p;
    x->step = s->id;
    switch (x->how) {
    case 0: t->n[0]--; break;
    case 1: id[n - 1] += id[n - 1] % 6 ? -1 : 1; break;
    case 2: id[0] = id[1]; break;
    case 3: d[0] = nextafter(d[0], 2); break;
    case 4: { /* gates rolled */
        double last = d[n - 1];
        memmove(d + 1, d, (size_t)(n - 1) * 8);
        d[0] = last;
        break;
    }
    }
}
static void test_spoiled(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int how;
    } rows[] = {{"layers.0.moe.list", 0},       {"layers.0.moe.list", 1},
                {"layers.0.moe.list", 2},       {"layers.0.moe.weights", 3},
                {"layers.0.moe.weights", 4},    {"layers.0.moe.dispatched", 0},
                {"layers.0.moe.dispatched", 3}, {"grad.layers.0.moe.weights", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Spoil s = {rows[i].value, rows[i].how, -1};
        PipelineOptions o = {.execute = true, .threads = 1, .watch = spoil, .watch_arg = &s};
        PlanRun r =
            plan_run_with(a, "rows.yaml", family_text(a, &families[0], "f64", "backward"), &o);
        assert_non_null(r.t);
        if (!run_is(&r, "different") || strcmp(r.t->first_wrong, rows[i].value))
            fail_msg("%s spoiled by %d: %s, first wrong %s", rows[i].value, rows[i].how,
                     r.t->verdict, r.t->first_wrong ? r.t->first_wrong : "none");
        arena_free(a);
    }
}
/* Planted in the exchange, of the rows or of their counts, forward and backward. */
static void test_faults(void **state) {
    (void)state;
    static const char *const at[] = {"layers.0.moe.dispatched", "layers.0.moe.down",
                                     "grad.layers.0.moe.down", "grad.layers.0.moe.dispatched",
                                     "layers.0.moe.list"};
    static const char *const what[] = {"do: drop", "scale: 2", "offset: 1"};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (size_t k = 0; k < sizeof what / sizeof *what; k++) {
            if (i == 4 && k == 1) continue; /* a list has no factor */
            Arena *a = arena_new();
            const char *text =
                arena_printf(a, "%sfaults: [{at: %s, %s}]\n",
                             family_text(a, &families[0], "f64", "backward"), at[i], what[k]);
            PlanRun r = plan_run(a, "rows.yaml", text, true);
            assert_non_null(r.t);
            if (!run_is(&r, "different") || strcmp(r.t->first_wrong, at[i])) {
                run_print(&r);
                fail_msg("%s %s: first wrong %s", at[i], what[k],
                         r.t->first_wrong ? r.t->first_wrong : "none");
            }
            arena_free(a);
        }
}
/* ---- other people's models ---- */
typedef struct {
    const char *name, *mesh, *lines;
    int layers, experts; /* layers with experts, and how many each has */
} Golden;
#define GOLDEN_EP "  model.layers.*.mlp.experts: {style: expert_parallel, axis: dp}\n"
#define GOLDEN_TP                                                                                  \
    "  model.layers.*.self_attn.[qkv]_proj: colwise\n  model.layers.*.self_attn.o_proj: rowwise\n"
static const Golden golden[] = {
    {"mixtral", "{one: 1}", "", 2, 8},
    {"mixtral", "{dp: 2}", GOLDEN_EP, 2, 8},
    {"mixtral", "{tp: 2}",
     GOLDEN_TP "  model.layers.*.mlp.experts: {style: tensor_parallel, output: replicate}\n", 2, 8},
    {"mixtral-wide", "{dp: 8}", GOLDEN_EP, 1, 8},
    {"mixtral-wide", "{dp: 4, tp: 2}",
     GOLDEN_TP "  model.layers.*.mlp.experts: {weight: {dp: shard(e), tp: shard(w)}, output: {tp: "
               "replicate}}\n",
     1, 8},
    {"qwen3-moe-norm", "{one: 1}", "", 2, 16},
    {"qwen3-moe-norm", "{dp: 2}", GOLDEN_EP, 2, 16},
    {"qwen3-moe-raw", "{one: 1}", "", 1, 12},
    {"qwen3-moe-raw", "{dp: 2}", GOLDEN_EP, 1, 12},
};
/* Everything that the file and the model have is equal, and every expert's weights are among it. */
static void hold_golden(const Golden *g, const PlanRun *r) {
    int equal = 0, parts = 0;
    for (int k = 0; k < r->rep.n_against; k++) {
        const struct AgainstRow *x = &r->rep.against[k];
        if (x->missing_here || x->missing_there) continue;
        bool grad = !strncmp(x->name, "grad.", 5);
        if (!x->ok || !(x->max_rel <= (grad ? 1e-10 : 1e-11)))
            fail_msg("%s %s: %s differs by %.3g", g->name, g->mesh, x->name, x->max_rel);
        equal++;
        parts += strstr(x->name, ".experts.") != NULL;
    }
    /* the selection has every second expert's */
    assert_int_equal(parts, g->layers * g->experts * 3 / (golden_complete() ? 1 : 2));
    assert_true(equal > parts + 20);
}
static void test_golden_models(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const Golden *g = &golden[i];
        Arena *a = arena_new();
        const char *more = arena_printf(a, "%s%s%s", *g->lines ? "plan:\n" : "", g->lines,
                                        strstr(g->mesh, "dp:") ? DDP : "");
        PlanRun r =
            golden_model(a, g->name, i % 2 ? "config_v4.json" : "config.json", g->mesh, more);
        hold_golden(g, &r);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adjoints),
        cmocka_unit_test(test_kernels_by_hand),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_on_kernels),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_expert_gradients_by_bits),
        cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_golden_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
