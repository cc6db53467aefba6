/* The peak of a run, found by walking its program with sizes instead of tensors, and the room that
 * there is for it. The walk mirrors store.c (which buffers exist, are shared, are kept for reuse)
 * and check.c (what a step's check copies). */
#include "exec/memory.h"
#include "exec/books.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEPT_FROM = 1 << 16, PAGE_ROUND = 4096 };
static const int64_t MOST = (int64_t)1 << 44; /* no machine has it, and sums of many of them fit */
static const int64_t KEPT_BYTES = (int64_t)1 << 30,
                     PARAMS_KEPT = (int64_t)3
                                   << 30; /* store.c: store_buf_drop; pipeline.c: load_sources */

/* ---- the walk ---- */
typedef struct {
    int64_t bytes; /* of one buffer */
    int64_t n;
} Kept;
typedef struct {
    Arena *arena;
    const Program *p;
    const Graph *g; /* sizes: the program's graph, or that of the whole batch */
    int64_t es;     /* bytes of an element */
    bool whole;     /* the unsharded program: one copy of everything, moves do nothing */
    bool keep_all;
    int *last;                /* per value: the last step that reads it */
    int *root;                /* per value: whose buffers it shows; -1: not there */
    int *refs;                /* per root: values that show its buffers */
    int64_t *books;           /* per value: bytes of its tables */
    int64_t live, kept, peak; /* bytes in use, in the list for reuse, most of both with copies */
    Kept *list;
    int n_list, cap_list;
} Walk;

static int64_t elements(const Program *p, const Graph *g, int v) {
    const GTensor *t = &g->t[p->val[v].tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n < MOST ? n : MOST;
}
static int64_t copies(const Program *p,
                      const Layout *l) { /* pending sums differ on every rank of the axis */
    int64_t n = 1;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (l->type[a] == TY_P || l->type[a] == TY_M) n *= p->mesh->axis[a].size;
    return n;
}
static int64_t blocks(const Program *p, const Layout *l) {
    int64_t n = copies(p, l);
    for (int a = 0; a < p->mesh->naxes; a++)
        if (l->type[a] == TY_V) n *= p->mesh->axis[a].size;
    return n;
}
static int64_t size_of(const Walk *w, int v) { /* an element: integers are int64 */
    return w->p->graph->t[w->p->val[v].tensor].is_int ? 8 : w->es;
}
static int64_t own_bytes(const Walk *w, int v) {
    int64_t n =
        elements(w->p, w->g, v) * size_of(w, v) * (w->whole ? 1 : copies(w->p, &w->p->val[v].L));
    return n < MOST ? n : MOST;
}
static int64_t own_blocks(const Walk *w, int v) {
    return w->whole ? 1 : blocks(w->p, &w->p->val[v].L);
}

/* Ranks that the walked program runs on, and the tables of a value that is there from now on. */
static int64_t ranks(const Walk *w) { return w->whole ? 1 : w->p->mesh->nranks; }
static void open_books(Walk *w, int v) {
    w->live -= w->books[v];
    w->books[v] = books_value(ranks(w), own_blocks(w, v));
    w->live += w->books[v];
}
static void see(Walk *w, int64_t beside) {
    if (w->live + w->kept + beside > w->peak) w->peak = w->live + w->kept + beside;
}
/* n buffers of `bytes` each, from the list where one fits as store.c wants it. */
static void take(Walk *w, int64_t bytes, int64_t n) {
    for (int i = 0; i < w->n_list && n > 0; i++) {
        Kept *k = &w->list[i];
        if (!k->n || k->bytes < bytes || k->bytes > bytes + bytes / 4 + PAGE_ROUND) continue;
        int64_t m = k->n < n ? k->n : n;
        k->n -= m;
        n -= m;
        w->kept -= m * k->bytes;
        w->live += m * bytes + books_buffers(m);
    }
    w->live += n * bytes + books_buffers(n);
    see(w, 0);
}
static void give(Walk *w, int64_t bytes, int64_t n) {
    w->live -= bytes * n + books_buffers(n);
    if (bytes < KEPT_FROM) return;
    int64_t room = (KEPT_BYTES - w->kept + bytes - 1) / bytes, m = room < 0   ? 0
                                                                   : room < n ? room
                                                                              : n;
    w->kept += m * bytes;
    for (int i = 0; i < w->n_list; i++)
        if (w->list[i].bytes == bytes) {
            w->list[i].n += m;
            return;
        }
    *ARENA_PUSH(w->arena, w->list, w->n_list, w->cap_list) = (Kept){bytes, m};
}
static void make(Walk *w, int v) {
    int64_t n = own_blocks(w, v);
    w->root[v] = v;
    w->refs[v] = 1;
    open_books(w, v);
    take(w, own_bytes(w, v) / n, n);
}
static void share(Walk *w, int from, int to) {
    w->root[to] = w->root[from];
    if (w->root[to] >= 0) w->refs[w->root[to]]++;
    open_books(w, to);
}
static void drop(Walk *w, int v) {
    int r = w->root[v];
    w->root[v] = -1;
    w->live -= w->books[v];
    w->books[v] = 0;
    if (r < 0 || --w->refs[r]) return;
    bool loaded = w->p->val[r].step < 0; /* one array, of which the ranks hold views */
    int64_t n = loaded ? 1 : own_blocks(w, r);
    give(w, own_bytes(w, r) / n, n);
}
/* A source is loaded whole; blocks that are no ranges of it are copied. */
static bool is_view(const Walk *w, int v) {
    const Layout *l = &w->p->val[v].L;
    for (int d = 0; d < l->ndim && !w->whole; d++)
        for (int i = 0; i < l->n[d]; i++)
            if (l->e[d][i].how == CUT_ZIGZAG || l->e[d][i].how == CUT_STRIPED) return false;
    return true;
}
static void load(Walk *w, int v) {
    int64_t bytes = own_bytes(w, v);
    w->root[v] = v;
    w->refs[v] = 1;
    open_books(w, v);
    w->live += bytes + books_buffers(1);
    see(w, is_view(w, v) ? 0 : bytes);
}
static void load_checked(Walk *w, int v) {
    load(w, v);
    if (!w->whole) see(w, own_bytes(w, v)); /* read a second time, to be compared */
}
/* Copies that the check of a step makes beside what is there. */
static int64_t check_kernel_bytes(const Walk *w, const int *r, int n, int out) {
    int64_t narrow = 0, wide = 0, top, o = elements(w->p, w->g, out);
    for (int k = 0; k < n; k++) narrow += elements(w->p, w->g, r[k]) * size_of(w, r[k]);
    top = narrow + o * w->es;                  /* the kernel on the whole, in the run's dtype */
    for (int k = 0; k < n && w->es < 8; k++) { /* inputs are widened one by one */
        int64_t e = elements(w->p, w->g, r[k]);
        if (narrow + wide + 8 * e + o * w->es > top) top = narrow + wide + 8 * e + o * w->es;
        narrow -= e * size_of(w, r[k]);
        wide += 8 * e;
    }
    if (w->es < 8 && wide + 24 * o > top) top = wide + 24 * o; /* value, bound, probable bound */
    return top;
}
static int64_t check_bytes(const Walk *w, const Step *s, const int *r, int n) {
    int64_t o = elements(w->p, w->g, s->out);
    if (w->whole) return 0;
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: return check_kernel_bytes(w, r, n, s->out);
    case ST_SUM: return 2 * o * w->es;
    case ST_MOVE:
    case ST_CLAIM:
        return copies(w->p, &s->move.from) > copies(w->p, &s->move.to) ? (16 + w->es) * o
                                                                       : o * w->es;
    case ST_SEED: return 0;
    }
    return 0;
}
static bool is_slice(const Step *s) { /* whole to cut: a view */
    int a = s->move.axes.n ? s->move.axes.a[0] : 0, from = s->move.from.type[a],
        to = s->move.to.type[a];
    return (from == TY_I || from == TY_R) && to == TY_V;
}
static bool stays(const Walk *w,
                  int v) { /* exec_release: results and what the next training step reads */
    int t = w->p->val[v].tensor;
    const Graph *g = w->p->graph;
    return w->p->env[t] == v && (t == g->output || t == g->loss || g->t[t].next_of);
}
static void walk_step(Walk *w, const Step *s) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++)
        if (w->root[r[k]] < 0 && w->p->val[r[k]].step < 0) load_checked(w, r[k]);
    bool shows = s->kind == ST_CLAIM ||
                 (s->kind == ST_MOVE && (w->whole || s->move.kind == MOVE_ID || is_slice(s)));
    if (shows) share(w, s->in[0], s->out);
    else make(w, s->out);
    int64_t in = n ? own_blocks(w, r[0]) : 1;
    see(w,
        check_bytes(w, s, r, n) + (w->whole ? 0 : books_step(w->p, s, in, own_blocks(w, s->out))));
    for (int k = 0; k < n && !w->keep_all; k++)
        if (w->last[r[k]] <= s->id && !stays(w, r[k])) drop(w, r[k]);
}
static Walk walk(Arena *arena, const Program *p, const Graph *g, int64_t es, bool whole,
                 bool keep_all, bool load_first) {
    Walk w = {.arena = arena, .p = p, .g = g, .es = es, .whole = whole, .keep_all = keep_all};
    w.last = ARENA_ARRAY(arena, int, p->nv + 1);
    w.root = ARENA_ARRAY(arena, int, p->nv + 1);
    w.refs = ARENA_ARRAY(arena, int, p->nv + 1);
    w.books = ARENA_ARRAY(arena, int64_t, p->nv + 1);
    for (int v = 0; v < p->nv; v++) w.last[v] = w.root[v] = -1;
    for (int i = 0; i < p->ns; i++) {
        int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
        for (int k = 0; k < n; k++) w.last[r[k]] = i;
    }
    for (int v = 0; v < p->nv && load_first; v++) {
        if (p->val[v].step >= 0) continue;
        bool late = !whole && p->val[v].kind == KIND_PARAM && !p->graph->nn_model && w.last[v] >= 0;
        if (!late || w.live <= PARAMS_KEPT) load_checked(&w, v);
    }
    for (int i = 0; i < p->ns; i++) walk_step(&w, &p->step[i]);
    return w;
}
/* Micro-batches: gradients of parameters are added up in doubles beside the values. */
static int64_t sums_bytes(const Program *p) {
    int64_t n = 0;
    for (int i = 0; i < p->ns; i++) {
        const Val *v = &p->val[p->step[i].out];
        if (p->step[i].kind == ST_ADJOINT && v->cot && p->graph->t[v->tensor].kind == KIND_PARAM)
            n += 8 * elements(p, p->graph, p->step[i].out) * copies(p, &v->L);
    }
    return n;
}
MemoryNeed memory_predict(const Program *p, const MemoryUse *use) {
    Arena *tmp = arena_new();
    int64_t es = dtype_size(use->dtype), sums = use->microbatches > 1 ? sums_bytes(p) : 0;
    Walk run = walk(tmp, p, p->graph, es, false, use->keep_all, true);
    Walk ref = walk(tmp, p, use->whole, 8, true, use->keep_whole, use->keep_whole);
    int64_t after =
        run.live + run.kept + sums; /* what the run leaves while the unsharded one works */
    MemoryNeed need = {.sharded = run.peak + sums, .unsharded = ref.peak * (use->nudged ? 3 : 1)};
    need.peak = need.sharded > after + need.unsharded ? need.sharded : after + need.unsharded;
    if (use->exact) {
        Walk one = walk(tmp, p, p->graph, es, true, true, false),
             all = walk(tmp, p, p->graph, es, false, false, false);
        int64_t exact = after + one.peak + all.peak;
        if (exact > need.peak) need.peak = exact;
    }
    int64_t records = books_records(p, use->steps, use->microbatches);
    need.peak += records;
    need.sharded += records;
    need.records = records;
    /* the heap gives nothing back while a run goes on (mallopt in pipeline.c), and holes between
     * arrays of different sizes stay unused: measured on plans of 0.1 to 10 GiB the process grows
     * to 1.36 .. 1.63 times what is in use at once */
    need.peak += need.peak / 2;
    need.sharded += need.sharded / 2;
    need.unsharded += need.unsharded / 2;
    arena_free(tmp);
    return need;
}

/* ---- the room ---- */
static char *small_file(Arena *arena, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char text[8192];
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 ? arena_strndup(arena, text, (size_t)n) : NULL;
}
int64_t memory_meminfo(const char *text) {
    const char *s = text ? strstr(text, "MemAvailable:") : NULL;
    long long kib = s ? strtoll(s + 13, NULL, 10) : 0;
    return kib > 0 ? (int64_t)kib * 1024 : INT64_MAX;
}
int64_t memory_group(const char *limit, const char *use) {
    char *end;
    long long most = limit ? strtoll(limit, &end, 10) : 0, have = use ? strtoll(use, NULL, 10) : 0;
    /* "max"; v1 says 2^63 less a page */
    if (!limit || end == limit || most <= 0 || most >= INT64_MAX / 2) return INT64_MAX;
    return most > have ? most - have : 0;
}
static void least(MemoryRoom *r, int64_t bytes, const char *what) {
    if (bytes < r->bytes) *r = (MemoryRoom){bytes, what};
}
/* Every group from ours up to the root may set a limit: v2 in one tree, v1 in the tree of its own
 * of "memory". */
static void groups(Arena *arena, MemoryRoom *r) {
    static const char what[] = "the memory limit of the control group";
    char *all = small_file(arena, "/proc/self/cgroup"), *at;
    for (char *line = all ? strtok_r(all, "\n", &at) : NULL; line;
         line = strtok_r(NULL, "\n", &at)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) continue;
        bool v2 = list[1] == ':', v1 = strncmp(list + 1, "memory:", 7) == 0 ||
                                       strstr(list, ",memory:") || strstr(list, ":memory,");
        if (!v1 && !v2) continue;
        path = arena_strdup(arena, path + 1);
        for (size_t n = strlen(path);; n = (size_t)(strrchr(path, '/') - path)) {
            path[n] = 0;
            const char *dir = arena_printf(arena, "/sys/fs/cgroup%s%s", v2 ? "" : "/memory", path);
            char *limit =
                small_file(arena, arena_printf(arena, "%s/%s", dir,
                                               v2 ? "memory.max" : "memory.limit_in_bytes"));
            char *use =
                small_file(arena, arena_printf(arena, "%s/%s", dir,
                                               v2 ? "memory.current" : "memory.usage_in_bytes"));
            char *stat = small_file(arena, arena_printf(arena, "%s/memory.stat", dir));
            int64_t room = memory_group(limit, use);
            /* pages of files are given up when memory is wanted */
            const char *file =
                stat ? strstr(stat, v2 ? "\ninactive_file " : "\ntotal_inactive_file ") : NULL;
            if (file && room < INT64_MAX / 2) room += strtoll(strchr(file, ' '), NULL, 10);
            least(r, room, what);
            if (!strrchr(path, '/')) break;
        }
    }
}
MemoryRoom memory_room(Arena *arena) {
    MemoryRoom r = {memory_meminfo(small_file(arena, "/proc/meminfo")),
                    "what the machine has available"};
    if (r.bytes == INT64_MAX)
        r.bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    groups(arena, &r);
    long pages = 0, resident = 0;
    const char *statm = small_file(arena, "/proc/self/statm");
    if (statm && sscanf(statm, "%ld %ld", &pages, &resident) != 2) pages = 0;
    struct rlimit lim;
    int64_t page = sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &lim) == 0 && lim.rlim_cur < (rlim_t)INT64_MAX)
        least(&r,
              (int64_t)lim.rlim_cur - pages * page > 0 ? (int64_t)lim.rlim_cur - pages * page : 0,
              "ulimit -v");
    if (getrlimit(RLIMIT_DATA, &lim) == 0 && lim.rlim_cur < (rlim_t)INT64_MAX)
        least(&r, (int64_t)lim.rlim_cur, "ulimit -d");
    return r;
}
