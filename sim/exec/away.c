/* Sums of blocks elsewhere. See away.h. */
#include "exec/away.h"
#include <assert.h>
#include <string.h>

enum { LETTERS = 26 };

/* ---- the sums of a block ---- */
typedef struct {
    int64_t dt, dim, n, mine;
    uint64_t seed, of;
} AskSums; /* then `mine` places */
typedef struct {
    int64_t first, blocks;
} ToldSums; /* then sums, then squares */

static int64_t bytes_of(const Tensor *t) { return tensor_count(t) * (int64_t)sizeof(double); }
static FarBytes bytes_new(Arena *arena, int64_t n) {
    return (FarBytes){n, arena_alloc(arena, base_mul((size_t)n + 1, 1))};
}
/* Appends to what has been written so far; returns what is to be written next. */
static char *put(char *at, const void *p, int64_t n) {
    if (n) memcpy(at, p, (size_t)n);
    return at + n;
}
static Tensor resized(Tensor t, int dim, int64_t n, double *p) {
    t.n[dim] = n;
    tensor_pack(&t);
    t.p = p;
    return t;
}
static bool ask_sums(void *arg, const ProjectPart *q, ProjectSums *out, Arena *arena) {
    const Exec *e = arg;
    if (far_rank(e, &q->t) < 0) return false;
    AskSums a = {q->dt, q->dim, q->n, q->t.n[q->dim], q->seed, q->of};
    FarBytes question = bytes_new(arena, (int64_t)sizeof a + a.mine * 8);
    put(put(question.p, &a, sizeof a), q->place, a.mine * 8);
    FarBytes told = far_ask(e, FAR_PROJECT, &q->t, -1, question, arena);
    ToldSums t;
    memcpy(&t, told.p, sizeof t);
    double *sums = (double *)(void *)((char *)told.p + sizeof t);
    *out = (ProjectSums){.first = t.first, .blocks = t.blocks};
    out->sum = resized(q->t, q->dim, t.blocks * PROJECT_VECTORS, sums);
    out->square = resized(q->t, q->dim, t.blocks, sums + tensor_count(&out->sum));
    assert(told.n == (int64_t)sizeof t + bytes_of(&out->sum) + bytes_of(&out->square));
    return true;
}
static FarBytes tell_sums(void *arg, const Local *of, FarBytes question, Arena *arena) {
    const Exec *own = arg;
    AskSums a;
    memcpy(&a, question.p, sizeof a);
    Dtype dt = (Dtype)a.dt;
    ProjectPart q = {.host = own->host,
                     .pool = own->pool,
                     .dt = dt,
                     .seed = a.seed,
                     .of = a.of,
                     .t = own->dev->get(own->dev, &of->t, dt),
                     .dim = (int)a.dim,
                     .n = a.n,
                     .place = (int64_t *)(void *)((char *)question.p + sizeof a)};
    assert(q.t.n[q.dim] == a.mine);
    ProjectSums s = project_part(&q, arena);
    own->dev->done(own->dev, &q.t);
    ToldSums t = {s.first, s.blocks};
    FarBytes told = bytes_new(arena, (int64_t)sizeof t + bytes_of(&s.sum) + bytes_of(&s.square));
    put(put(put(told.p, &t, sizeof t), s.sum.p, bytes_of(&s.sum)), s.square.p, bytes_of(&s.square));
    project_part_end(own->host, &s);
    return told;
}

/* ---- a product with a block ---- */
typedef struct {
    int64_t step, adjoint, side, at, dim;
    double u;
    int64_t local[LETTERS], global[LETTERS];
    Tensor out, cut, length; /* sizes */
} AskKept;                   /* then cut, then length */

static void made_sizes(const ProjectKept *q, ProjectMade *made) {
    made->out = resized(q->like.out, q->dim, q->cut.n[q->at], NULL);
    made->bound = resized(q->like.out, q->dim, q->length.n[q->at], NULL);
}
static bool ask_kept(void *arg, const ProjectKept *q, ProjectMade *out) {
    const Exec *e = arg;
    if (far_rank(e, &q->kept) < 0) return false;
    Arena *tmp = arena_new();
    AskKept a = {.step = q->step,
                 .adjoint = q->adjoint,
                 .side = q->side,
                 .at = q->at,
                 .dim = q->dim,
                 .u = q->u};
    memcpy(a.local, q->like.local, sizeof a.local);
    memcpy(a.global, q->like.global, sizeof a.global);
    a.out = q->like.out, a.cut = q->cut, a.length = q->length;
    int64_t nc = bytes_of(&q->cut), nl = bytes_of(&q->length);
    FarBytes question = bytes_new(tmp, (int64_t)sizeof a + nc + nl);
    put(put(put(question.p, &a, sizeof a), q->cut.p, nc), q->length.p, nl);
    FarBytes told = far_ask(e, FAR_PRODUCT, &q->kept, -1, question, tmp);
    made_sizes(q, out);
    int64_t no = bytes_of(&out->out), nb = bytes_of(&out->bound);
    assert(told.n == no + nb);
    out->out.p = device_array(e->host, no, 1);
    out->bound.p = device_array(e->host, nb, 1);
    put(out->out.p, told.p, no);
    put(out->bound.p, (char *)told.p + no, nb);
    arena_free(tmp);
    return true;
}
static FarBytes tell_kept(void *arg, const Local *of, FarBytes question, Arena *arena) {
    const Exec *own = arg;
    AskKept a;
    memcpy(&a, question.p, sizeof a);
    const Step *s = &own->p->step[a.step];
    const GNode *n = &own->p->graph->node[s->node];
    ProjectKept q = {.like = {.op = n->op,
                              .rule = &n->rule,
                              .at = &n->at,
                              .dtype = own->dtype,
                              .operand = s->operand,
                              .pool = own->pool,
                              .out = a.out},
                     .adjoint = a.adjoint != 0,
                     .u = a.u,
                     .side = (int)a.side,
                     .at = (int)a.at,
                     .dim = (int)a.dim,
                     .kept = own->dev->get(own->dev, &of->t, own->dtype),
                     .cut = a.cut,
                     .length = a.length};
    memcpy(q.like.local, a.local, sizeof a.local);
    memcpy(q.like.global, a.global, sizeof a.global);
    q.like.out.p = NULL;
    q.cut.p = (char *)question.p + sizeof a;
    q.length.p = (char *)q.cut.p + bytes_of(&q.cut);
    ProjectMade made = project_kept(own->host, &q);
    own->dev->done(own->dev, &q.kept);
    int64_t no = bytes_of(&made.out), nb = bytes_of(&made.bound);
    FarBytes told = bytes_new(arena, no + nb);
    put(put(told.p, made.out.p, no), made.bound.p, nb);
    own->host->release(own->host, made.out.p);
    own->host->release(own->host, made.bound.p);
    return told;
}

ProjectAway away_asks(const Exec *e) {
    return (ProjectAway){ask_sums, ask_kept, (void *)(uintptr_t)e};
}
void away_answers(Far *f, Exec *own) {
    far_answers(f, FAR_PROJECT, tell_sums, own);
    far_answers(f, FAR_PRODUCT, tell_kept, own);
}
