/* make measured: the table of docs/measured.md, model against measurement for every kind of
 * collective, on this machine: 4 processes of Open MPI (2 where a plan has 2 ranks), the profile
 * that `calibrate` writes here, the shortest of some runs of each step, its slowest rank. Prints
 * Markdown; refuses to judge: two processes that share a core are no measurement of a network. */
#include "base/diag.h"
#include "base/file.h"
#include "trace/trace_took.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURNS = 5 };
/* Debian's name of Open MPI's launcher, or the one that is there; any other MPI's refuses the
 * options. */
static const char launcher[] =
    "$(command -v mpirun.openmpi || echo mpirun) --allow-run-as-root --oversubscribe -q";
static const char profile[] = "out/machine.yaml", trace_file[] = "out/measured.jsonl";
typedef struct {
    int ranks;
    const char *plan; /* and options */
} Run;
static const char zero1[] = /* no plan that is shipped has a broadcast */
    "model: {preset: llama3-8b, layers: 2, shrink: 32, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16}\nmesh: {dp: 4}\ndata_parallel: {mode: zero1, axis: dp}\n"
    "pass: train\noptimizer: {name: adamw, steps: 1}\n";
static const Run runs[] = {
    {2, "plans/03-llama3-8b-tp2.yaml"},
    {4, "plans/05-llama3-8b-tp4-sp.yaml"},
    {4, "plans/18-llama3-8b-backward.yaml"},
    {4, "plans/19-llama3-8b-fsdp4.yaml"},
    {4, "plans/40-llama3-8b-ulysses4.yaml"},
    {4, "plans/41-llama3-8b-ring4-zigzag.yaml"},
    {4, "out/zero1.yaml"},
    {4, "plans/33-qwen3-30b-a3b-ep.yaml --set mesh.edp=1"},
    {4, "plans/45-llama3-8b-pp4-1f1b.yaml"},
    {2, "plans/48-llama3.2-1b-pp2-tied.yaml"},
};

/* ---- a table of kinds ---- */
typedef struct {
    const char *op;
    int64_t size;
    bool rows;
    int n;
    double bytes, sent, modelled, measured;
} Kind;
typedef struct {
    Arena *a;
    int n, cap;
    Kind *k;
} Kinds;
static Kind *kind_of(Kinds *x, const char *op, int64_t size, bool rows) {
    for (int i = 0; i < x->n; i++)
        if (!strcmp(x->k[i].op, op) && x->k[i].size == size && x->k[i].rows == rows)
            return &x->k[i];
    Kind *k = ARENA_PUSH(x->a, x->k, x->n, x->cap);
    *k = (Kind){.op = op, .size = size, .rows = rows};
    return k;
}
/* Bytes that all ranks sent in a step. */
static double sent_in(const Trace *t, int step) {
    double sent = 0;
    for (int i = 0; i < t->n_measured; i++)
        if (t->measured[i].step == step) sent += (double)t->measured[i].wire_bytes;
    return sent;
}
static const TraceTook *took_of(const TraceTook *k, int n, int step) {
    for (int i = 0; i < n; i++)
        if (k[i].step == step) return &k[i];
    return NULL;
}
/* The collectives of some runs of one plan: all have the same. */
static void add(Kinds *x, Trace *const *turn) {
    const Trace *t = turn[0];
    const TraceTook *k[TURNS];
    int n[TURNS];
    for (int i = 0; i < TURNS; i++) k[i] = trace_took(turn[i], -1, x->a, &n[i]);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        double best = -1;
        for (int r = 0; r < TURNS; r++) {
            const TraceTook *one = took_of(k[r], n[r], c->step);
            if (one && (best < 0 || one->measured < best)) best = one->measured;
        }
        Kind *kind =
            kind_of(x, arena_strdup(x->a, c->op), groups_size(&c->groups), c->row_bytes > 0);
        kind->n++;
        kind->measured += best;
        kind->sent += sent_in(t, c->step);
        for (int w = 0; w < c->n_with; w++) kind->sent += sent_in(t, c->with[w]);
        kind->modelled += took_of(k[0], n[0], c->step)->modelled;
        for (int64_t r = 0; r < t->ranks; r++)
            kind->bytes += (double)collective_on(c, r).bytes_sent;
    }
}
static Trace *one_run(Arena *a, const Run *r) {
    char line[1024];
    Diags *d = diags_new(a);
    snprintf(line, sizeof line,
             "%s -n %d ./shardproof run %s --mpi --threads 1 --hardware ./%s --trace %s >/dev/null",
             launcher, r->ranks, r->plan, profile, trace_file);
    if (system(line) != 0) return NULL;
    size_t n;
    const char *text = file_read(a, d, trace_file, (size_t)1 << 28, diag_nowhere, &n);
    return text ? trace_read(a, d, trace_file, text, n) : NULL;
}
static bool measure(Arena *a, Kinds *x, const Run *r) {
    Trace *turn[TURNS];
    for (int k = 0; k < TURNS; k++)
        if (!(turn[k] = one_run(a, r))) return false;
    add(x, turn);
    return true;
}
static int by_name(const void *a, const void *b) {
    const Kind *x = a, *y = b;
    int c = strcmp(x->op, y->op);
    return c                    ? c
           : x->rows != y->rows ? x->rows - y->rows
                                : (x->size > y->size) - (x->size < y->size);
}
static void print_all(const Kinds *x) {
    printf(
        "| collective | ranks | times | bytes modelled | bytes sent | ratio | time modelled | time "
        "measured | ratio |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < x->n; i++) {
        const Kind *k = &x->k[i];
        printf("| %s%s | %d | %d | %.1f KiB | %.1f KiB | %.2f | %.2f ms | %.2f ms | %.2f |\n",
               k->op, k->rows ? " of rows" : "", (int)k->size, k->n, k->bytes / 1024,
               k->sent / 1024, k->bytes > 0 ? k->sent / k->bytes : 0, 1e3 * k->modelled,
               1e3 * k->measured, k->modelled > 0 ? k->measured / k->modelled : 0);
    }
}
int main(void) {
    Arena *a = arena_new();
    Kinds x = {.a = a};
    char line[256];
    if (access("shardproof-openmpi.so", R_OK) != 0) {
        printf("no shardproof-openmpi.so: nothing is measured\n");
        return 0;
    }
    mkdir("out", 0777);
    snprintf(line, sizeof line, "%s -n 4 ./shardproof calibrate --mpi -o %s", launcher, profile);
    bool ok = file_write(diags_new(a), "out/zero1.yaml", zero1, strlen(zero1)) && system(line) == 0;
    for (size_t i = 0; ok && i < sizeof runs / sizeof *runs; i++) {
        ok = measure(a, &x, &runs[i]);
        if (!ok) fprintf(stderr, "measured: a run failed: %s\n", runs[i].plan);
    }
    if (x.n) qsort(x.k, (size_t)x.n, sizeof *x.k, by_name);
    if (ok) print_all(&x);
    remove(trace_file);
    arena_free(a);
    return ok ? 0 : 1;
}
