/* Layouts and redistribution: test vectors of the chunk rule, nesting, zigzag and the flattened
 * cut, and thousands of random redistributions, right in value and in adjoint, executed by the
 * virtual backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "exec/exec.h"
#include "exec/assemble.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Mesh mesh_of(int n, const int64_t *size) {
    static const char *const names[] = {"a", "b", "c"};
    Mesh m = {.naxes = n};
    for (int i = 0; i < n; i++) m.axis[i] = (MeshAxis){.name = names[i], .size = size[i]};
    assert_true(mesh_finish(&m));
    return m;
}
static void check_index(const Mesh *m, const Layout *l, int64_t N, int64_t rank, int n,
                        const int64_t *want) {
    Arena *a = arena_new();
    IndexList got = layout_index(m, l, 0, N, rank, a);
    assert_int_equal(got.n, n);
    assert_int_equal(layout_dim_size(m, l, 0, N, rank), n);
    for (int i = 0; i < n; i++) assert_int_equal(got.at[i], want[i]);
    arena_free(a);
}

/* torch.chunk: trailing ranks may be short or empty (5 on 4 -> 2,2,1,0 and so on). */
static void test_chunk_rule(void **state) {
    (void)state;
    static const struct {
        int64_t N, n, size[8];
    } rows[] = {{5, 4, {2, 2, 1, 0}},  {9, 4, {3, 3, 3, 0}},
                {6, 4, {2, 2, 2, 0}},  {3, 8, {1, 1, 1, 0, 0, 0, 0, 0}},
                {10, 4, {3, 3, 3, 1}}, {0, 3, {0, 0, 0}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Mesh m = mesh_of(1, &rows[i].n);
        Layout l = layout_whole(&m, 1, TY_I);
        layout_cut(&l, 0, 0, CUT_CHUNK);
        for (int64_t r = 0; r < rows[i].n; r++)
            assert_int_equal(layout_dim_size(&m, &l, 0, rows[i].N, r), rows[i].size[r]);
    }
}
/* FSDP (dp) on top of TP on the same dim of 8 rows, mesh 2x2 (dp, tp): tp outermost, what PyTorch
 * calls strided. */
static void test_ordered_axes(void **state) {
    (void)state;
    Mesh m = mesh_of(2, (int64_t[]){2, 2});
    Layout strided = layout_whole(&m, 1, TY_I), plain = strided;
    layout_cut(&strided, 0, 1, CUT_CHUNK);
    layout_cut(&strided, 0, 0, CUT_CHUNK);
    layout_cut(&plain, 0, 0, CUT_CHUNK);
    layout_cut(&plain, 0, 1, CUT_CHUNK);
    static const int64_t s[4][2] = {{0, 1}, {4, 5}, {2, 3}, {6, 7}},
                         p[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    for (int64_t r = 0; r < 4; r++) {
        check_index(&m, &strided, 8, r, 2, s[r]);
        check_index(&m, &plain, 8, r, 2, p[r]);
    }
    /* length 9, dp cuts each of two tp blocks in 4: [0,1,5] [2,3,6] [4,7] [8] put together over tp
     */
    Mesh m2 = mesh_of(2, (int64_t[]){4, 2});
    Layout l = layout_whole(&m2, 1, TY_I);
    layout_cut(&l, 0, 1, CUT_CHUNK);
    layout_cut(&l, 0, 0, CUT_CHUNK);
    static const int64_t want[8][2] = {{0, 1},  {5, -1}, {2, 3},   {6, -1},
                                       {4, -1}, {7, -1}, {-1, -1}, {8, -1}};
    for (int64_t r = 0; r < 8; r++) {
        int n = want[r][0] < 0 ? 0 : want[r][1] < 0 ? 1 : 2;
        check_index(&m2, &l, 9, r, n, want[r]);
    }
}
static void test_zigzag_and_striped(void **state) {
    (void)state;
    Mesh m = mesh_of(1, (int64_t[]){4});
    Layout z = layout_whole(&m, 1, TY_I), s = z;
    layout_cut(&z, 0, 0, CUT_ZIGZAG);
    layout_cut(&s, 0, 0, CUT_STRIPED);
    static const int64_t zz[4][4] = {{0, 1, 14, 15}, {2, 3, 12, 13}, {4, 5, 10, 11}, {6, 7, 8, 9}};
    for (int64_t r = 0; r < 4; r++) {
        int64_t st[4] = {r, r + 4, r + 8, r + 12};
        check_index(&m, &z, 16, r, 4, zz[r]);
        check_index(&m, &s, 16, r, 4, st);
    }
}
static void test_split_axis(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = mesh_of(2, (int64_t[]){2, 12});
    m.group[m.ngroups++] = (MeshGroup){"sp", {.n = 1, .a = {1}}};
    assert_true(mesh_split(&m, a, "b", 4));
    assert_int_equal(m.naxes, 3);
    assert_int_equal(m.axis[1].size, 4);
    assert_int_equal(m.axis[1].stride, 3);
    assert_int_equal(m.axis[2].size, 3);
    AxisList l;
    assert_true(mesh_lookup(&m, "sp", &l));
    assert_int_equal(l.n, 2);
    assert_string_equal(mesh_axes_text(&m, a, &l, false), "b");
    assert_true(mesh_lookup(&m, "b", &l));
    assert_int_equal(l.n, 2);
    assert_false(mesh_split(&m, a, "a", 3));
    for (int64_t r = 0; r < m.nranks; r++)
        for (int64_t i = 0; i < 12; i++)
            assert_int_equal(mesh_index_in(&m, &l, mesh_member(&m, &l, r, i)), i);
    arena_free(a);
}

/* ---- random redistributions ---- */
static uint64_t rng;
static int below(int n) {
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (int)((rng >> 33) % (uint64_t)n);
}
static Layout random_layout(const Mesh *m, int nd) {
    Layout l = layout_whole(m, nd, TY_I);
    int order[3] = {0, 1, 2};
    for (int i = m->naxes - 1; i > 0; i--) {
        int k = below(i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < m->naxes; i++) {
        if (below(10) < 6) layout_cut(&l, below(nd), order[i], below(3) ? CUT_CHUNK : CUT_ZIGZAG);
        else l.type[order[i]] = (uint8_t[]){TY_I, TY_R, TY_P}[below(3)];
    }
    /* and of the block of a rank before, as on a ring */
    for (int d = 0; d < nd; d++)
        for (int k = 0; k < l.n[d]; k++)
            if (!below(4)) l.e[d][k].shift = (uint8_t)below((int)m->axis[l.e[d][k].axis].size);
    return l;
}
/* A one-tensor world: enough of a program for the executor. */
typedef struct {
    Arena *a;
    Mesh mesh;
    Graph g;
    GTensor t;
    Program p;
    Pool *pool;
    Exec *e;
} World;
static void world_open(World *w, const Mesh *m, int nd, const int64_t *shape) {
    *w = (World){.a = arena_new(), .mesh = *m};
    w->t = (GTensor){.name = "x",
                     .kind = KIND_ACTIVATION,
                     .nd = nd,
                     .nstored = nd,
                     .producer = -1,
                     .module = -1};
    memcpy(w->t.letter, "bckxyz", 6);
    for (int d = 0; d < nd; d++) w->t.size[d] = shape[d], w->t.stored[d] = 1, w->t.sym[d] = "N";
    w->g = (Graph){.nt = 1, .t = &w->t};
    w->p = (Program){.arena = w->a, .mesh = &w->mesh, .graph = &w->g};
    w->p.val = ARENA_ARRAY(w->a, Val, MOVES_MAX + 2);
    w->p.step = ARENA_ARRAY(w->a, Step, MOVES_MAX + 2);
    w->pool = pool_new(1);
}
static void world_close(World *w) {
    exec_free(w->e);
    pool_free(w->pool);
    arena_free(w->a);
}
static void chain(World *w, const Layout *from, const MovePlan *mv) {
    w->p.val[0] = (Val){.kind = KIND_ACTIVATION, .L = *from, .step = -1};
    w->p.nv = 1;
    for (int i = 0; i < mv->n; i++) {
        w->p.val[i + 1] = (Val){.id = i + 1, .kind = KIND_ACTIVATION, .L = mv->m[i].to, .step = i};
        w->p.step[i] =
            (Step){.id = i, .kind = ST_MOVE, .nin = 1, .in = {i}, .out = i + 1, .move = mv->m[i]};
        w->p.nv++;
    }
    w->p.ns = mv->n;
    w->e = exec_new(w->a, &w->p, DT_F64, w->pool);
}
static double value_at(int64_t i) { return (double)((i * 7919 + 13) % 1009) / 64 - 7; }
/* Locals that denote X: blocks of it; over pending axes random parts that add up to it exactly
 * (sixteenths). */
struct Buf; /* private to the executor: locals are made through exec_load and then edited in place
             */
static double *full_values;
static Local kept; /* t.p: the locals that exec_load made */
static int kept_n;
static void *give_full(void *arg, int tensor, Dtype t) {
    (void)tensor, (void)t;
    const World *w = arg;
    int64_t n = 1;
    for (int d = 0; d < w->t.nd; d++) n *= w->t.size[d];
    double *p = base_malloc((size_t)(n ? n : 1) * 8);
    memcpy(p, full_values, (size_t)n * 8);
    return p;
}
/* What rank r holds of a value that is pending over axes of `from`: the first of them the value
 * `src`, and noise that all of them together cancel. Packed into `t`. */
static double *part_of(World *w, const Layout *from, int64_t r, const Tensor *src,
                       const Tensor *t) {
    int64_t n = tensor_count(t), idx[LAYOUT_MAX_DIMS] = {0};
    double *p = arena_alloc(w->a, (size_t)n * 8 + 8);
    AxisList P = {0};
    for (int x = 0; x < w->mesh.naxes; x++)
        if (from->type[x] == TY_P) P.a[P.n++] = (uint8_t)x;
    int64_t np = mesh_size(&w->mesh, &P), me = mesh_index_in(&w->mesh, &P, r);
    for (int64_t k = 0; k < n; k++) {
        int64_t o = 0;
        for (int d = 0; d < t->nd; d++) o += idx[d] * src->s[d];
        double noise = np > 1 ? (me + 1 < np ? (double)((me + 1) * (k % 5 + 1))
                                             : -(double)(np * (np - 1) / 2 * (k % 5 + 1)))
                              : 0;
        p[k] = (me == 0 ? ((double *)src->p)[o] : 0) + noise;
        for (int d = t->nd - 1; d >= 0; d--) {
            if (++idx[d] < t->n[d]) break;
            idx[d] = 0;
        }
    }
    return p;
}
/* Parts over pending axes: the program's first move is preceded by I -> P (the first rank keeps the
 * value), then noise that cancels is added by hand: +k on one member, -k on the next. */
static void scatter(World *w, const Layout *from) {
    Layout base = *from;
    for (int x = 0; x < w->mesh.naxes; x++)
        if (base.type[x] == TY_P) base.type[x] = TY_I;
    w->p.val[0].L = base;
    w->e->full = give_full;
    w->e->full_arg = w;
    assert_true(exec_load(w->e, 0));
    w->p.val[0].L = *from;
    Store *s = exec_store(w->e, 0);
    /* give every rank a local of its own, packed, then write its part */
    Local *own = base_malloc(sizeof *own * (size_t)w->mesh.nranks);
    for (int64_t r = 0; r < w->mesh.nranks; r++) {
        if (s->which[r] == EXEC_NOTHING) {
            own[r] = (Local){0};
            continue;
        }
        own[r] = s->l[s->which[r]];
        Tensor t = own[r].t, src = t;
        tensor_pack(&t);
        t.p = part_of(w, from, r, &src, &t);
        own[r].t = t;
        own[r].rank = r;
    }
    kept_n = s->n; /* for unscatter */
    kept.t.p = base_malloc(sizeof *own * (size_t)s->n);
    memcpy(kept.t.p, s->l, sizeof *own * (size_t)s->n);
    int64_t room = w->mesh.nranks > s->n ? w->mesh.nranks : s->n;
    s->l = base_realloc(s->l, sizeof *own * (size_t)room);
    Local keep = s->l[0];
    for (int64_t r = 0; r < w->mesh.nranks; r++) {
        own[r].buf = keep.buf; /* data live in the arena; the buffer is only counted */
        s->l[r] = own[r];
        if (s->which[r] != EXEC_NOTHING) s->which[r] = (uint32_t)r;
    }
    s->n = s->cap = (int)w->mesh.nranks;
    free(own);
}
/* The made-up locals own nothing: what exec_load counted is put back before the executor frees it.
 */
static void unscatter(World *w) {
    Store *s = exec_store(w->e, 0);
    if (!s->alive) return;
    for (int i = 0; i < kept_n; i++) s->l[i] = ((Local *)(void *)kept.t.p)[i];
    s->n = kept_n;
    free(kept.t.p);
}
/* What the value denotes: pending parts added, replicas equal. Compared with X. */
static void check_value(World *w, int val, const double *X) {
    const Layout *L = &w->p.val[val].L;
    AxisList P = {0};
    for (int x = 0; x < w->mesh.naxes; x++)
        if (L->type[x] == TY_P) P.a[P.n++] = (uint8_t)x;
    int64_t n = 1, np = mesh_size(&w->mesh, &P);
    for (int d = 0; d < w->t.nd; d++) n *= w->t.size[d];
    /* from every rank's point of view: replicas must agree */
    for (int64_t r = 0; r < w->mesh.nranks; r++) {
        bool here = layout_holds(&w->mesh, L, r);
        assert_int_equal(here, exec_local(w->e, val, r) != NULL); /* nothing, not something empty */
        if (!here || mesh_index_in(&w->mesh, &P, r)) continue;
        double *sum = base_malloc((size_t)(n ? n : 1) * 8);
        memset(sum, 0, (size_t)n * 8);
        for (int64_t i = 0; i < np; i++) {
            Tensor t = assemble_value(w->e, val, &P, mesh_member(&w->mesh, &P, r, i));
            assert_int_equal(tensor_count(&t), n);
            for (int64_t k = 0; k < n; k++) sum[k] += ((double *)t.p)[k];
            free(t.p);
        }
        for (int64_t k = 0; k < n; k++) assert_true(sum[k] == X[k]);
        free(sum);
    }
}
static int one_redistribution(int64_t *cheaper, int kinds[MOVE_KINDS]) {
    int na = 1 + below(3), nd = 1 + below(3);
    int64_t size[3] = {0}, shape[3] = {0}, n = 1;
    for (int i = 0; i < na; i++) size[i] = (int64_t[]){1, 2, 2, 3}[below(4)];
    for (int d = 0; d < nd; d++) n *= shape[d] = 1 + below(11);
    Mesh m = mesh_of(na, size);
    Layout f = random_layout(&m, nd), t = random_layout(&m, nd);
    for (int x = 0; x < na; x++) /* R -> I is not a forward move */
        if (f.type[x] == TY_R && t.type[x] == TY_I) t.type[x] = TY_R;
    if (below(4) == 0) { /* stages of a pipeline: it lives at one coordinate of an axis */
        int x = below(na);
        layout_place(&f, x, below((int)size[x]));
        layout_place(&t, x, below((int)size[x]));
        bool owner = below(3) == 0, back = below(2); /* equal copies, and one of the ranks' own */
        if (owner) layout_set_type(back ? &t : &f, x, TY_I);
        else if (below(4) == 0) layout_set_type(&t, x, TY_P); /* one term of a sum */
    }
    MovePlan plan, greedy;
    if (!redistribute(&m, shape, &f, &t, &plan)) return 1;
    if (redistribute_greedy(&f, &t, &greedy))
        *cheaper += plan.n != greedy.n || memcmp(plan.m, greedy.m, sizeof(Move) * (size_t)plan.n);
    for (int i = 0; i < plan.n; i++) kinds[plan.m[i].kind]++;
    full_values = base_malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) full_values[i] = value_at(i);
    World w;
    world_open(&w, &m, nd, shape);
    chain(&w, &f, &plan);
    scatter(&w, &f);
    for (int i = 0; i < plan.n; i++) assert_true(exec_step(w.e, &w.p.step[i]));
    check_value(&w, plan.n, full_values);
    unscatter(&w);
    world_close(&w);
    Layout dt = layout_dual(&t), df = layout_dual(&f); /* the adjoint brings a cotangent home */
    MovePlan back;
    redistribute_mirror(&plan, &back);
    world_open(&w, &m, nd, shape);
    chain(&w, &dt, &back);
    scatter(&w, &dt);
    for (int i = 0; i < back.n; i++) assert_true(exec_step(w.e, &w.p.step[i]));
    assert_true(layout_eq(&w.p.val[back.n].L, &df));
    check_value(&w, back.n, full_values);
    unscatter(&w);
    world_close(&w);
    free(full_values);
    return 0;
}
static void test_random_redistributions(void **state) {
    (void)state;
    int64_t cheaper = 0;
    int no_way = 0, kinds[MOVE_KINDS] = {0};
    rng = 1;
    for (int i = 0; i < 3000; i++) no_way += one_redistribution(&cheaper, kinds);
    print_message("3000 redistributions, no way found for %d, the mirror was taken in %lld\n",
                  no_way, (long long)cheaper);
    for (int k = 0; k < MOVE_KINDS; k++) {
        print_message("  %-16s %d\n",
                      k == MOVE_ALL_REDUCE_MAX ? "all_reduce max" : move_name((MoveKind)k),
                      kinds[k]);
        if (k != MOVE_ALL_REDUCE_MAX) assert_true(kinds[k] > 50);
    }
    assert_int_equal(no_way, 0);
    assert_true(cheaper > 10);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_rule),
        cmocka_unit_test(test_ordered_axes),
        cmocka_unit_test(test_zigzag_and_striped),
        cmocka_unit_test(test_split_axis),
        cmocka_unit_test(test_random_redistributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
