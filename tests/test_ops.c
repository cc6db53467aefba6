/* Every op, every dim that may be cut, sizes that do not divide, forward and adjoint: sharded
 * against whole through lower, the derived backward, the executor and the check. The cases are
 * generated from the list of ops and their rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "exec/check.h"
#include "exec/device_gpu.h"
#include "exec/assemble.h"
#include "kernel/bf16.h"
#include "ops/op.h"
#include "support/emulate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rules that nodes give to ops without one of their own, plus variants that matter. */
typedef struct {
    const char *op, *rule;
    RopeOrder order;
    int64_t chunk, window;
    double cap, factor; /* factor 0: 11 */
} Case;
static const Case cases[] = {
    {.op = "einsum", .rule = "btd,fd->btf"},
    {.op = "einsum", .rule = "btd,kgxd->btkgx"},
    {.op = "einsum", .rule = "btkgx,dkgx->btd"},
    {.op = "einsum", .rule = "btf,btf->btf"},
    {.op = "einsum", .rule = "bted,efd->btef"},
    {.op = "einsum", .rule = "btd->"},
    {.op = "einsum", .rule = "bt,bt->"},
    {.op = "einsum", .rule = "btd,ufd->btuf"},
    {.op = "add", .rule = "btd,btd->btd"},
    {.op = "add", .rule = "btf,f->btf"},
    {.op = "add", .rule = "btkgx,kgx->btkgx"},
    {.op = "rmsnorm", .rule = "btd!,d->btd"},
    {.op = "rmsnorm", .rule = "btkgx!,x->btkgx"},
    {.op = "layernorm", .rule = "btd!,d->btd"},
    {.op = "layernorm", .rule = "btd!->btd"},
    {.op = "rope", .rule = "btkgx!->btkgx", .order = ROPE_NEIGHBOURS},
    {.op = "rope", .rule = "btkx!->btkx"},
    {.op = "rope", .rule = "btz!->btz", .order = ROPE_NEIGHBOURS}, /* three stay as they are */
    {.op = "rope", .rule = "btz!->btz"},
    {.op = "rope", .rule = "btx!->btx", .order = ROPE_NEIGHBOURS_TO_HALVES},
    {.op = "rmsnorm", .rule = "btkgx!->btkgx"},
    {.op = "split", .rule = "btd!->btc"},
    {.op = "split", .rule = "btkx!->btka"},
    {.op = "split", .rule = "btp!->btxh"},
    {.op = "split", .rule = "btv!->btkx"},
    {.op = "concat", .rule = "btkx!,btka!->btkz"},
    {.op = "concat", .rule = "btkx!,bta!->btkz"},
    {.op = "temperature", .rule = "btkgx->btkgx", .chunk = 4},
    {.op = "attention", .rule = "btkx!,bs!kx!,bs!kw!->btkw"},
    {.op = "attention", .rule = "btkgx!,bs!kx!,bs!kx!->btkgx", .chunk = 3},
    {.op = "attention", .rule = "btkx!,bs!kx!,bs!kw!->btkw", .chunk = 2},
    {.op = "attention", .rule = "btkgx!,bs!kx!,bs!kx!->btkgx", .window = 2},
    {.op = "attention", .rule = "btkx!,bs!kx!,bs!kw!->btkw", .window = 3},
    {.op = "attention", .rule = "btkgx!,bs!kx!,bs!kx!->btkgx", .cap = 0.25},
    {.op = "attention", .rule = "btkx!,bs!kx!,bs!kw!->btkw", .window = 3, .cap = 2},
    {.op = "attention", .rule = "btkgx!,bs!kx!,bs!kx!->btkgx"},
    {.op = "attention_two_parts", .rule = "btkx!,btka!,bs!kx!,bs!a!,bs!kw!->btkw"},
    {.op = "attention_two_parts", .rule = "btkx!,btka!,bs!kx!,bs!a!,bs!kw!->btkw", .chunk = 3},
    {.op = "attention_two_parts_part", .rule = "btkw!,btka!,bs~t!kw!,bs~t!a!,bs~t!kx!->btkp"},
    {.op = "attention_two_parts_part",
     .rule = "btkw!,btka!,bs~t!kw!,bs~t!a!,bs~t!kx!->btkp",
     .cap = 0.5},
    {.op = "attention_part", .rule = "btkgx!,bs~t!kx!,bs~t!kx!->btkgp"},
    {.op = "attention_part", .rule = "btkgx!,bs~t!kx!,bs~t!kx!->btkgp", .cap = 0.5},
    {.op = "softcap", .rule = "btv->btv", .factor = 0.6},
    {.op = "clamp", .rule = "btkgx->btkgx", .factor = 0.7},
    {.op = "limit_pairs", .rule = "btfu!->btfu", .factor = 0.7},
    {.op = "embed", .rule = "vd,bt->btd"},
    {.op = "add", .rule = "btd,->btd"},
    {.op = "scale", .rule = "btd->btd"},
    {.op = "scale", .rule = "->"},
    {.op = "axpby", .rule = "bd,bd->bd"},
    {.op = "ema_square", .rule = "bd,bd->bd"},
    {.op = "adamw", .rule = "bd,bd,bd->bd"},
    {.op = "sumsq", .rule = "bd->"},
    {.op = "clip", .rule = "->"},
    {.op = "pick", .rule = "btv,bt->bt"},
    {.op = "nll", .rule = "bt,bt,bt,bt->bt"},
};
enum { N_CASES = sizeof cases / sizeof *cases };
/* Has the op letters of rows? Those are laid out by test_rows. */
static bool of_rows(const Op *op) { return op->rule && strchr(op->rule, '['); }
static int rows_of(const Op *op) {
    int n = 0;
    for (int c = 0; c < N_CASES; c++) n += !strcmp(cases[c].op, op->name);
    return n;
}
/* Case c of an op: its rows of the table; where it has none, the one rule that it states itself.
 * False: there are no more. */
static bool case_of(const Op *op, int c, Case *out) {
    for (int k = 0; k < N_CASES; k++)
        if (!strcmp(cases[k].op, op->name) && !c--) {
            *out = cases[k];
            return true;
        }
    if (c || rows_of(op) || of_rows(op)) return false;
    *out = (Case){.op = op->name, .rule = op->rule ? op->rule : op->typical};
    return out->rule != NULL;
}
static bool in_bf16;              /* numbers that bf16 holds */
static bool many_rows;            /* more than a block of 16 */
static int64_t size_of(char ch) { /* primes and other sizes that 2, 3 and 4 do not divide */
    switch (ch) {
    case 'b': return many_rows ? 2 : 3;
    case 't':
    case 's': return many_rows ? 37 : 7;
    case 'd': return 5;
    case 'f': return 11;
    case 'k': return 3;
    case 'g': return many_rows ? 2 : 5;
    case 'x': return many_rows ? 18 : 4;
    case 'v': return 13;
    case 'a':
    case 'c':
    case 'w': return 3;
    case 'h': return 1;
    case 'z': return 7;                  /* x and a */
    case 'p': return many_rows ? 19 : 5; /* x and a lse */
    default: return 2;
    }
}
typedef struct {
    Arena *a;
    Mesh mesh;
    Graph g;
    GTensor t[8];
    GNode node[2];
    Model model;
    Plan plan;
    Assign assign;
    double freq[8];
    Diags *d;
} World;
static void tensor(World *w, const char *name, const char *letters, int nl, ValueKind kind,
                   bool diff, bool is_int) {
    GTensor *t = &w->t[w->g.nt];
    *t = (GTensor){.id = w->g.nt++,
                   .name = name,
                   .kind = kind,
                   .diff = diff,
                   .is_int = is_int,
                   .nd = nl,
                   .nstored = nl,
                   .module = -1,
                   .producer = -1};
    memcpy(t->letter, letters, (size_t)nl);
    for (int i = 0; i < nl; i++) {
        t->size[i] = size_of(letters[i]);
        t->stored[i] = 1;
        t->sym[i] = arena_strndup(w->a, letters + i, 1);
    }
}
static bool int_operand(const Op *op, int i) {
    return ((!strcmp(op->name, "embed") || !strcmp(op->name, "position") ||
             !strcmp(op->name, "pick")) &&
            i == 1) ||
           (!strcmp(op->name, "nll") && i == 3);
}
static void *give(void *arg, int t, Dtype dt) {
    World *w = arg;
    const GTensor *x = &w->t[t];
    int64_t n = 1;
    for (int d = 0; d < x->nd; d++) n *= x->size[d];
    void *p = base_malloc((size_t)(n ? n : 1) * 8);
    for (int64_t i = 0; i < n; i++) {
        int64_t h = (i * 2654435761 + t * 40503 + 12345) % 1009;
        double v = (double)h / 500 - 0.8 +
                   ((t == 0 && !strcmp(w->node[0].op->name, "nll")) ||
                            (t == 2 && !strcmp(w->node[0].op->name, "adamw")) ||
                            !strcmp(w->node[0].op->name, "clip") ||
                            (t == 0 && !strcmp(w->node[0].op->name, "normalise"))
                        ? 2
                        : 0);
        if (in_bf16) v = (double)bf16_round((float)v);
        if (dt == DT_I64) ((int64_t *)p)[i] = h % size_of('v');
        else if (dt == DT_F32) ((float *)p)[i] = (float)v;
        else ((double *)p)[i] = v;
    }
    return p;
}
/* loss = sum of y g */
static void add_loss(World *w) {
    const GNode *n = &w->node[0];
    const char *err;
    int at, cot = w->g.nt;
    GNode *l = &w->node[1];
    *l = (GNode){.id = 1,
                 .op = op_find("einsum"),
                 .module = -1,
                 .layer = -1,
                 .label = "loss",
                 .part = "loss",
                 .nin = 2};
    tensor(w, "g", n->rule.out, n->rule.nout, KIND_INPUT, false, false);
    l->in[0] = n->out;
    l->in[1] = cot;
    const char *text = arena_printf(w->a, "%s,%s->", n->rule.out, n->rule.out);
    assert_true(rule_parse(text, &l->rule, &err, &at));
    l->out = w->g.nt;
    tensor(w, "loss", "", 0, KIND_ACTIVATION, true, false);
    w->t[l->out].producer = 1;
    w->g.nn = 2;
    w->g.loss = l->out;
}
static void build(World *w, const Op *op, const Case *x) {
    const char *err;
    int at;
    *w = (World){.a = arena_new()};
    w->d = diags_new(w->a);
    GNode *n = &w->node[0];
    *n = (GNode){.op = op, .module = -1, .layer = -1, .label = op->name, .part = "mlp"};
    assert_true(rule_parse(x->rule, &n->rule, &err, &at));
    for (int i = 0; i < 8; i++) w->freq[i] = 1.0 / (1 + i);
    n->at = (Attrs){.eps = 1e-5,
                    .scale = 0.5,
                    .inv_freq = w->freq,
                    .n_freq = 2,
                    .order = x->order,
                    .turn = 1.25,
                    .chunk = x->chunk,
                    .window = x->window,
                    .cap = x->cap,
                    .offset = 1,
                    .ignore = 5,
                    .factor = x->factor > 0 ? x->factor : 11,
                    .a = 0.7,
                    .b = 0.4,
                    .lr = 0.1,
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .decay = 0.01,
                    .step = 3}; /* two of the 13 ids are padding */
    static const char *const names[RULE_MAX_IN] = {"p", "q", "r", "u", "v", "w"};
    for (int i = 0; i < n->rule.nin; i++) {
        bool is_int = int_operand(op, i), nodiff = op->nodiff >> i & 1;
        n->in[n->nin++] = w->g.nt;
        tensor(w, names[i], n->rule.in[i], n->rule.nl[i], KIND_INPUT, !is_int && !nodiff, is_int);
    }
    n->out = w->g.nt;
    bool diff = op->adjoint != NULL;
    tensor(w, "y", n->rule.out, n->rule.nout, KIND_ACTIVATION, diff, false);
    w->t[n->out].producer = 0;
    w->g.nn = 1;
    w->g.output = n->out;
    w->g.loss = -1;
    if (diff) add_loss(w);
    w->g.t = w->t;
    w->g.node = w->node;
    w->model.g = w->g;
}
/* The whole of a value: what the ranks hold of it, summed (or the largest) over a pending axis. NAN
 * ends it. */
static double *denoted(World *w, Exec *e, int v) {
    const Layout *L = &e->p->val[v].L;
    double *out = NULL;
    AxisList P = {0}, none = {0};
    if (L->type[0] == TY_P || L->type[0] == TY_M) P.a[P.n++] = 0;
    int64_t parts = mesh_size(&w->mesh, &P);
    for (int64_t q = 0; q < parts; q++) {
        Tensor t = assemble_value(e, v, P.n ? &P : &none, mesh_member(&w->mesh, &P, 0, q));
        int64_t count = tensor_count(&t);
        if (!out) out = arena_alloc(w->a, (size_t)(count + 1) * 8), out[count] = NAN;
        for (int64_t z = 0; z < count; z++) {
            double x = ((double *)t.p)[z];
            out[z] = q == 0 ? x : L->type[0] == TY_M ? fmax(out[z], x) : out[z] + x;
        }
        free(t.p);
    }
    return out;
}
/* Every input that has the letter lies cut by the one axis, the others whole. */
static void lay(World *w, char letter, int64_t n, CutHow how) {
    w->mesh = (Mesh){.naxes = 1, .axis = {{.name = "a", .size = n}}};
    assert_true(mesh_finish(&w->mesh));
    w->plan.kv_replicate = "auto";
    w->assign =
        (Assign){.plan = &w->plan, .mesh = &w->mesh, .model = &w->model, .d = w->d, .arena = w->a};
    w->assign.use = ARENA_ARRAY(w->a, ModuleUse, 1);
    w->assign.compute = ARENA_ARRAY(w->a, Layout, w->g.nt);
    w->assign.rest = ARENA_ARRAY(w->a, Layout, w->g.nt);
    w->assign.group = arena_alloc(w->a, sizeof *w->assign.group * (size_t)w->g.nt);
    w->assign.line = ARENA_ARRAY(w->a, int, w->g.nt);
    w->assign.claimed = ARENA_ARRAY(w->a, bool, w->g.nt);
    for (int t = 0; t < w->g.nt; t++) {
        Layout *l = &w->assign.rest[t];
        *l = layout_whole(&w->mesh, w->t[t].nd, TY_I);
        const char *at = memchr(w->t[t].letter, letter, (size_t)w->t[t].nd);
        if (letter && at && w->t[t].kind == KIND_INPUT)
            layout_cut(l, (int)(at - w->t[t].letter), 0, how);
        w->assign.compute[t] = *l;
    }
}
/* Lowers with every operand that has the letter cut by the axis, runs forward and backward, checks
 * every value. */
static Dtype numbers = DT_F64;
static Device *ranks_on; /* NULL: the host; then nothing is asked for but the check */
static int run_cut(World *w, char letter, int64_t n, CutHow how, double **out, int *values) {
    lay(w, letter, n, how);
    Program *p = lower(w->a, &w->assign);
    if (p->loss >= 0) adjoint_program(p);
    assert_int_equal(diags_errors(w->d), 0);
    int found = verify(p, w->d, false, NULL);
    if (found) diags_print(w->d, stderr, false);
    assert_int_equal(found, 0);
    Pool *pool = pool_new(2);
    Exec *e = exec_new(w->a, p, numbers, pool);
    if (ranks_on) e->dev = ranks_on;
    bool *narrow = ARENA_ARRAY(w->a, bool, p->nv + 1);
    for (int v = 0; v < p->nv; v++)
        narrow[v] = in_bf16 && w->t[p->val[v].tensor].nd > 0 && !exec_is_int(e, v);
    if (in_bf16) e->narrow = narrow;
    e->full = give;
    e->full_arg = w;
    Trace *tr = trace_new(w->a);
    Check *c = check_new(w->a, e, tr);
    for (int i = 0; i < p->ns; i++) {
        assert_true(exec_step(e, &p->step[i]));
        check_step(c, &p->step[i]);
    }
    int fails = (int)tr->n_fail;
    for (int i = 0; i < tr->n_checks; i++)
        if (!strcmp(tr->checks[i].verdict, "FAIL"))
            print_message("%s %s cut %c by %lld: %s level %d got %g want %g bound %g: %s\n",
                          w->node[0].op->name, w->node[0].rule.text, letter ? letter : '-',
                          (long long)n, tr->checks[i].value, tr->checks[i].level, tr->checks[i].got,
                          tr->checks[i].want, tr->checks[i].bound, tr->checks[i].cause);
    *values += tr->n_checks;
    for (int k = 0; k < 5; k++) out[k] = NULL;
    /* the output and the gradients, as one rank of each group denotes them */
    for (int k = 0; k <= w->node[0].nin; k++) {
        int v = k == 0 ? p->first[w->node[0].out] : p->grad[w->node[0].in[k - 1]];
        if (v >= 0 && !ranks_on) out[k] = denoted(w, e, v);
    }
    exec_free(e);
    pool_free(pool);
    return fails;
}
/* Every op's kernels for GPUs, run here, in both types and on operands that lie in bf16: whole,
 * each letter cut by three, and by zigzag where its positions are asked for, so that blocks are
 * uneven and positions are global. Each kernel in the list runs. */
static void on_kernels(const Case *one, const Op *op, int *values) {
    World w;
    double *out[RULE_MAX_IN];
    build(&w, op, one);
    assert_int_equal(run_cut(&w, 0, 1, CUT_CHUNK, out, values), 0);
    for (const char *ch = one->rule; *ch; ch++) {
        if (*ch < 'a' || *ch > 'z' || strchr(ch + 1, *ch)) continue; /* each letter once */
        for (int how = 0; how < 2; how++) {
            bool asked = op_asks(op, &w.node[0].rule, &w.node[0].at) & RULE_BIT(*ch);
            if (how == CUT_ZIGZAG && (!asked || size_of(*ch) < 4)) continue;
            assert_int_equal(run_cut(&w, *ch, how ? 2 : 3, (CutHow)how, out, values), 0);
        }
    }
    arena_free(w.a);
}
static void test_every_op_on_kernels(void **state) {
    (void)state;
    static const char *const names[] = {
#define NAME(name, together) #name,
        GPU_KERNELS(NAME) "product"};
    int values = 0, never = 0;
    for (int k = 0; k < 3; k++) {
        numbers = k ? DT_F32 : DT_F64;
        in_bf16 = k == 2;
        Gpu *gpu = emulated_gpu((size_t)1 << 34, k ? 32 : 64);
        ranks_on = device_gpu(gpu);
        for (int o = 0; o < n_ops; o++) {
            Case one;
            for (int c = 0; case_of(op_list[o], c, &one); c++)
                on_kernels(&one, op_list[o], &values);
        }
        Arena *a = arena_new();
        const char *missing = device_gpu_missing(ranks_on, a);
        if (missing) fail_msg("no kernel, on the host: %s", missing);
        for (int i = 0; i <= GPU_N_KERNELS && !in_bf16;
             i++) /* those of rows: test_rows; bf16: test_device */
            if ((i < GPU_gather_rows || i == GPU_N_KERNELS) && i != GPU_bf16 &&
                i != GPU_bf16_pack && !strstr(names[i], "_tiles") && !emulated_calls(gpu)[i])
                print_message("never ran: %s\n", names[i]), never++;
        if (in_bf16) assert_true(emulated_calls(gpu)[GPU_bf16_pack] > 1000);
        arena_free(a);
        device_free(ranks_on);
    }
    ranks_on = NULL;
    in_bf16 = false;
    numbers = DT_F64;
    print_message("%d values made by kernels\n", values);
    assert_int_equal(never, 0);
}
/* Attention on numbers of bf16 goes by products of matrices, over blocks that are not full: forward
 * and both adjoints, whole and in parts, with every mask; and by them alone. */
static void test_attention_tiles(void **state) {
    (void)state;
    int values = 0;
    Gpu *gpu = emulated_gpu((size_t)1 << 34, 64);
    numbers = DT_F32;
    in_bf16 = many_rows = true;
    ranks_on = device_gpu(gpu);
    for (int o = 0; o < n_ops; o++) {
        Case one;
        bool tiles =
            !strcmp(op_list[o]->name, "attention") || !strcmp(op_list[o]->name, "attention_part");
        for (int c = 0; tiles && case_of(op_list[o], c, &one); c++)
            on_kernels(&one, op_list[o], &values);
    }
    const long *calls = emulated_calls(gpu);
    assert_true(calls[GPU_attention_tiles] > 0 && calls[GPU_attention_tiles_q] > 0 &&
                calls[GPU_attention_tiles_kv] > 0);
    assert_true(!calls[GPU_attention] && !calls[GPU_attention_q] && !calls[GPU_attention_kv]);
    device_free(ranks_on);
    ranks_on = NULL;
    in_bf16 = many_rows = false;
    numbers = DT_F64;
    print_message("%d values made by kernels\n", values);
}
static int64_t count_of(const World *w, int k) {
    const GTensor *t = k == 0 ? &w->t[w->node[0].out] : &w->t[w->node[0].in[k - 1]];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}
static void test_every_op_every_dim(void **state) {
    (void)state;
    int runs = 0, values = 0, ops_seen = 0;
    for (int o = 0; o < n_ops; o++) {
        bool seen = of_rows(op_list[o]);
        Case one;
        for (int c = 0; case_of(op_list[o], c, &one); c++) {
            seen = true;
            World w;
            build(&w, op_list[o], &one);
            double *whole[RULE_MAX_IN], *cut[RULE_MAX_IN];
            assert_int_equal(run_cut(&w, 0, 1, CUT_CHUNK, whole, &values), 0);
            for (const char *ch = one.rule; *ch; ch++) {
                if (*ch < 'a' || *ch > 'z' || strchr(ch + 1, *ch)) continue; /* each letter once */
                for (int64_t n = 2; n <= 8; n *= 2)
                    for (int how = 0; how < 2; how++) {
                        if (how == CUT_ZIGZAG && size_of(*ch) < 2 * n) continue;
                        assert_int_equal(run_cut(&w, *ch, n, (CutHow)how, cut, &values), 0);
                        runs++;
                        for (int k = 0; k <= w.node[0].nin; k++) {
                            assert_true(!whole[k] == !cut[k]);
                            for (int64_t i = 0; whole[k] && i < count_of(&w, k); i++) {
                                if (!(fabs(whole[k][i] - cut[k][i]) <=
                                      1e-12 * (1 + fabs(whole[k][i]))))
                                    print_message("%s %s cut %c by %lld, output or gradient %d, "
                                                  "element %lld: %g against %g\n",
                                                  op_list[o]->name, one.rule, *ch, (long long)n, k,
                                                  (long long)i, cut[k][i], whole[k][i]);
                                assert_true(fabs(whole[k][i] - cut[k][i]) <=
                                            1e-12 * (1 + fabs(whole[k][i])));
                            }
                        }
                    }
            }
            arena_free(w.a);
        }
        if (!seen) print_message("op %s has no case\n", op_list[o]->name);
        assert_true(seen);
        ops_seen++;
    }
    print_message("%d ops, %d cuts, %d values checked\n", ops_seen, runs, values);
    assert_true(runs > 200);
}
/* The unsharded call of a world's op, its operands filled; the output is to be freed with them. */
static OpCall whole_of(World *w) {
    const GNode *n = &w->node[0];
    OpCall f = {.op = n->op, .rule = &n->rule, .at = &n->at, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) f.local[i] = f.global[i] = size_of((char)('a' + i));
    for (int i = 0; i < n->nin; i++) {
        f.in[i].nd = n->rule.nl[i];
        for (int d = 0; d < f.in[i].nd; d++) f.in[i].n[d] = size_of(n->rule.in[i][d]);
        tensor_pack(&f.in[i]);
        f.in_int |= (uint32_t)int_operand(n->op, i) << i;
        f.in[i].p = give(w, n->in[i], int_operand(n->op, i) ? DT_I64 : DT_F64);
    }
    f.out.nd = n->rule.nout;
    for (int d = 0; d < f.out.nd; d++) f.out.n[d] = size_of(n->rule.out[d]);
    tensor_pack(&f.out);
    f.out.p = base_malloc((size_t)tensor_count(&f.out) * 8);
    return f;
}
/* sum of y g for the operands as they are. */
static double loss_of(const OpCall *f, const double *g) {
    double sum = 0;
    f->op->forward(f);
    for (int64_t z = 0; z < tensor_count(&f->out); z++) sum += ((double *)f->out.p)[z] * g[z];
    return sum;
}
/* The adjoint towards operand i, some 40 of its elements, against differences; `fout` is y. */
static void hold_operand(const OpCall *f, int i, double *cot, double *fout) {
    OpCall a = *f;
    a.operand = i;
    a.cot = f->out;
    a.cot.p = cot;
    a.fout = f->out;
    a.fout.p = fout;
    a.out = f->in[i];
    int64_t ni = tensor_count(&a.out);
    a.out.p = base_malloc((size_t)ni * 8);
    f->op->adjoint(&a);
    double *x = f->in[i].p, *g = a.out.p;
    for (int64_t k = 0; k < ni; k += 1 + ni / 40) {
        double keep = x[k], h = 1e-5;
        if (fabs(keep) < 2 * h) continue; /* where relu has no derivative */
        x[k] = keep + h;
        double hi = loss_of(f, cot);
        x[k] = keep - h;
        double want = (hi - loss_of(f, cot)) / (2 * h);
        x[k] = keep;
        if (!(fabs(g[k] - want) <= 1e-6 * (1 + fabs(want))))
            print_message("%s %s operand %d element %lld: %g against %g\n", f->op->name,
                          f->rule->text, i, (long long)k, g[k], want);
        assert_true(fabs(g[k] - want) <= 1e-6 * (1 + fabs(want)));
    }
    free(a.out.p);
}
/* Holds the adjoint of an op in one case towards all operands; returns those that it held. */
static uint32_t hold_case(const Op *op, const Case *one) {
    World w;
    uint32_t held = 0;
    build(&w, op, one);
    const GNode *n = &w.node[0];
    OpCall f = whole_of(&w);
    double *cot = give(&w, n->out, DT_F64);
    op->forward(&f);
    size_t bytes = (size_t)tensor_count(&f.out) * 8;
    double *fout = base_malloc(bytes);
    memcpy(fout, f.out.p, bytes);
    for (int i = 0; i < n->nin; i++) {
        if ((f.in_int >> i & 1) || (op->nodiff >> i & 1)) continue;
        held |= 1u << i;
        /* what hands its cotangent on leaves the derivative to others that read the final result:
         * test_context holds them together against loops of its own */
        if (!op->adj_hands_on) hold_operand(&f, i, cot, fout);
    }
    for (int i = 0; i < n->nin; i++) free(f.in[i].p);
    free(f.out.p);
    free(fout);
    free(cot);
    arena_free(w.a);
    return held;
}
/* The adjoint of every op towards every operand against central differences of its forward kernel,
 * unsharded. Nothing else can tell that an adjoint is wrong: `run` holds it against an unsharded
 * program that uses the same kernel. */
static void test_adjoint_is_the_gradient(void **state) {
    (void)state;
    uint32_t held[64] = {0}; /* per op: operands that were differentiated */
    for (int o = 0; o < n_ops; o++) {
        Case one;
        for (int c = 0; op_list[o]->adjoint && case_of(op_list[o], c, &one); c++)
            held[o] |= hold_case(op_list[o], &one);
    }
    for (int o = 0; o < n_ops; o++) {
        if (!op_list[o]->adjoint == !held[o]) continue;
        if (op_list[o]->rule && strchr(op_list[o]->rule, '[')) continue; /* rows: test_rows */
        fail_msg("the adjoint of %s is held against no differences: it needs a case",
                 op_list[o]->name);
    }
}
/* gelu(x) = x Phi(x): values from tables of the normal distribution. */
static void test_gelu_values(void **state) {
    (void)state;
    const Op *op = op_activation("gelu");
    assert_non_null(op);
    double x[] = {-3, -1, 0, 0.5, 1, 2}, y[6],
           want[] = {-0.004049694094890287, -0.1586552539314571, 0,
                     0.3457312306370066,    0.8413447460685429,  1.954499736103642};
    Rule r;
    const char *e;
    int at;
    assert_true(rule_parse("b->b", &r, &e, &at));
    OpCall c = {.op = op,
                .rule = &r,
                .dtype = DT_F64,
                .in = {{.nd = 1, .n = {6}, .s = {1}, .p = x}},
                .out = {.nd = 1, .n = {6}, .s = {1}, .p = y}};
    op->forward(&c);
    for (int i = 0; i < 6; i++) assert_true(fabs(y[i] - want[i]) < 1e-14);
}
static void test_rules(void **state) {
    (void)state;
    Rule r;
    const char *e;
    int at;
    assert_true(rule_parse("btkgx!,bs!kx!,bs!kx!->btkgx", &r, &e, &at));
    assert_int_equal(r.nin, 3);
    assert_int_equal(r.whole, RULE_BIT('x') | RULE_BIT('s'));
    assert_true(rule_parse("[bte]d,efd->[bte]f", &r, &e, &at));
    assert_int_equal(r.listed[0], RULE_BIT('b') | RULE_BIT('t') | RULE_BIT('e'));
    static const char *const bad[] = {"",       "btd",   "btd->btd!",    "bb->b",         "b,->->b",
                                      "b[t->b", "bT->b", "abcdefghi->a", "a,b,c,d,e,f->a"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        e = NULL;
        assert_false(rule_parse(bad[i], &r, &e, &at));
        assert_non_null(e);
    }
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->rule) assert_true(rule_parse(op_list[i]->rule, &r, &e, &at));
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_gelu_values),
                                       cmocka_unit_test(test_adjoint_is_the_gradient),
                                       cmocka_unit_test(test_every_op_on_kernels),
                                       cmocka_unit_test(test_attention_tiles),
                                       cmocka_unit_test(test_every_op_every_dim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
