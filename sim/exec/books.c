/* The sizes of store.c's, call.c's, transfer.c's and compare.c's own tables. */
#include "exec/books.h"
#include "exec/compare.h"
#include "exec/store.h"
#include "ops/op.h"
#include <string.h>

enum { CHUNK = 16, NAME = 64 }; /* the heap's header and rounding; a value's name */

static int64_t doubled(int64_t n, int64_t least) { /* room of an array that doubles */
    int64_t c = least;
    while (c < n) c *= 2;
    return c;
}
/* tuplemap.c: twice the entries, and the table before it while it grows. */
static int64_t map(int64_t n, int64_t width) {
    int64_t slots = doubled(2 * (n + 1), 64);
    return (slots + slots / 2) * (8 * width + 4);
}
int64_t books_value(int64_t ranks, int64_t locals) {
    return 4 * ranks + doubled(locals, 4) * (int64_t)sizeof(Local) + 2 * CHUNK;
}
int64_t books_buffers(int64_t n) { return n * ((int64_t)sizeof(Buf) + CHUNK); }

/* A call per block, some at a time (call.c). */
static int64_t kernel(const Step *s, int64_t out) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    return map(out, 2 * n + 1) + 256 * (int64_t)sizeof(OpCall);
}
/* A list of blocks per group, found by all of it, and the blocks made from them. */
static int64_t move(const Program *p, const Step *s, int64_t out) {
    int64_t ranks = p->mesh->nranks, parts = mesh_size(p->mesh, &s->move.axes);
    return map(out, 4) + 8 * ranks + map(ranks / parts, parts);
}
/* A look at each block, and where several ranks hold one, at who holds what. */
static int64_t check(int64_t ranks, int64_t out) {
    int64_t look = out * (int64_t)(sizeof(CompareSeen) + 3 * sizeof(int64_t));
    int64_t replicas = 4 * ranks + map(out, 2) + out * 5;
    return look > replicas ? look : replicas;
}
int64_t books_step(const Program *p, const Step *s, int64_t in, int64_t out) {
    bool computes = s->kind == ST_OP || s->kind == ST_ADJOINT;
    int64_t run = computes             ? kernel(s, out)
                  : s->kind == ST_MOVE ? move(p, s, out)
                                       : map(out > in ? out : in, 2);
    int64_t after = check(p->mesh->nranks, out > in ? out : in);
    return run > after ? run : after;
}
int64_t books_records(const Program *p, int64_t steps, int64_t parts) {
    int64_t each = 0, once = 0; /* of a micro-batch, of a training step */
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        bool last = s->pass == PHASE_OPTIMIZER;
        *(last ? &once : &each) += s->kind == ST_OP || s->kind == ST_ADJOINT ? 2 : 1;
    }
    for (int v = 0; v < p->nv; v++)
        if (p->val[v].step < 0) *(p->val[v].kind == KIND_INPUT ? &each : &once) += 1;
    double all = (double)steps * ((double)each * (double)parts + (double)once);
    int64_t n = all < 1e12 ? (int64_t)all : (int64_t)1e12; /* more than any machine holds */
    return n * NAME + (doubled(n, 8) + n) * (int64_t)sizeof(TraceCheck);
}
