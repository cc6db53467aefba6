/* Ranks as threads. See threads.h. */
#include "threads.h"
#include "drive/ranks.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct Letter {
    struct Letter *next;
    int64_t bytes;
    char data[];
} Letter;
typedef struct Hub {
    const Threads *x;
    pthread_mutex_t lock;
    pthread_cond_t news;
    Letter **box; /* ranks * ranks: from, to; the oldest first */
    int64_t met, round, least, last_least;
} Hub;
enum { GROUPS = 64 };
typedef struct {
    Engine e; /* first */
    Hub *hub;
    int64_t messages, bytes, told, sending;
    bool telling;
    struct {
        int64_t n, *member;
    } group[GROUPS];
    int n_groups;
} Own;

static void post(Own *o, const EngineItem *m) {
    Hub *h = o->hub;
    Letter *l = malloc(sizeof *l + (size_t)m->bytes), **at;
    *l = (Letter){.bytes = m->bytes};
    memcpy(l->data, m->p, (size_t)m->bytes);
    bool counts = !o->telling || !h->x->flip_moves;
    if (counts && o->e.rank == h->x->flip_rank && o->sending == h->x->flip_message &&
        m->bytes > h->x->flip_over)
        l->data[m->bytes - 1] ^= 0x40; /* a high bit of the last number */
    at = &h->box[o->e.rank * h->x->ranks + m->peer];
    while (*at) at = &(*at)->next;
    *at = l;
    o->messages++;
    o->bytes += m->bytes;
}
static void fetch(Own *o, const EngineItem *m) {
    Hub *h = o->hub;
    Letter **box = &h->box[m->peer * h->x->ranks + o->e.rank], *l;
    while (!*box) pthread_cond_wait(&h->news, &h->lock);
    l = *box;
    *box = l->next;
    if (l->bytes != m->bytes) abort(); /* both must compute the same sizes */
    memcpy(m->p, l->data, (size_t)m->bytes);
    free(l);
}
static void carry(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    Own *o = (Own *)e;
    int64_t sends = 0;
    pthread_mutex_lock(&o->hub->lock);
    for (int i = 0; i < n_out; i++)
        if (out[i].bytes) post(o, &out[i]), sends += out[i].bytes > o->hub->x->flip_over;
    if (!o->telling || !o->hub->x->flip_moves) o->sending += sends > 0;
    pthread_cond_broadcast(&o->hub->news);
    for (int i = 0; i < n_in; i++)
        if (in[i].bytes) fetch(o, &in[i]);
    pthread_mutex_unlock(&o->hub->lock);
}
static void exchange(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in) {
    (void)on;
    carry(e, out, n_out, in, n_in);
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    Own *o = (Own *)e;
    int64_t before = o->bytes;
    o->telling = true;
    carry(e, out, n_out, in, n_in);
    o->telling = false;
    o->told += o->bytes - before;
}
static int64_t least(Engine *e, int64_t mine) {
    Own *o = (Own *)e;
    Hub *h = o->hub;
    pthread_mutex_lock(&h->lock);
    int64_t round = h->round;
    if (!h->met++ || mine < h->least) h->least = mine;
    if (h->met == h->x->ranks) {
        h->met = 0;
        h->last_least = h->least;
        h->round++;
        pthread_cond_broadcast(&h->news);
    }
    while (h->round == round) pthread_cond_wait(&h->news, &h->lock);
    int64_t all = h->last_least;
    pthread_mutex_unlock(&h->lock);
    return all;
}
static int by_place(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}
static int group(Engine *e, int64_t color, int64_t place) {
    Own *o = (Own *)e;
    int64_t n = e->ranks, mine[3] = {place, e->rank, color},
            (*all)[3] = malloc((size_t)n * sizeof *all);
    EngineItem *to = calloc((size_t)n, sizeof *to), *from = calloc((size_t)n, sizeof *from);
    if (o->n_groups == GROUPS) abort();
    for (int64_t r = 0; r < n; r++) {
        to[r] = (EngineItem){r, sizeof mine, mine};
        from[r] = (EngineItem){r, sizeof mine, all[r]};
    }
    carry(e, to, (int)n, from, (int)n);
    qsort(all, (size_t)n, sizeof *all, by_place);
    int id = o->n_groups++;
    o->group[id].member = malloc((size_t)n * sizeof(int64_t));
    o->group[id].n = 0;
    for (int64_t r = 0; r < n; r++)
        if (all[r][2] == color) o->group[id].member[o->group[id].n++] = all[r][1];
    free(all);
    free(to);
    free(from);
    return id;
}
static void ungroup(Engine *e) {
    Own *o = (Own *)e;
    while (o->n_groups) free(o->group[--o->n_groups].member);
}
static void add(const EngineSum *s, const char *from, int64_t first, int64_t n, bool fresh) {
    for (int64_t i = 0; i < n; i++) {
        double x = s->number == ENGINE_F32 ? (double)((const float *)from)[first + i]
                                           : ((const double *)from)[first + i];
        double old = s->number == ENGINE_F32 ? (double)((float *)s->out)[i] : ((double *)s->out)[i];
        double now = fresh ? x : s->max ? (x > old ? x : old) : x + old;
        if (s->number == ENGINE_F32) ((float *)s->out)[i] = (float)now;
        else ((double *)s->out)[i] = now;
    }
}
static void sum(Engine *e, const EngineOn *on, const EngineSum *s) {
    (void)on;
    Own *o = (Own *)e;
    int64_t n = o->group[s->group].n, *member = o->group[s->group].member, first = 0, mine = s->n;
    int64_t bytes = s->n * (s->number == ENGINE_F32 ? 4 : 8);
    char *all = malloc((size_t)(n * bytes) + 1);
    EngineItem *to = calloc((size_t)n, sizeof *to), *from = calloc((size_t)n, sizeof *from);
    for (int64_t k = 0; k < n; k++) {
        to[k] = (EngineItem){member[k], bytes, (void *)(uintptr_t)s->mine};
        from[k] = (EngineItem){member[k], bytes, all + k * bytes};
    }
    carry(e, to, (int)n, from, (int)n);
    for (int64_t k = 0; s->each && member[k] != e->rank; k++) first += s->each[k];
    for (int64_t k = 0; s->each && k < n; k++)
        if (member[k] == e->rank) mine = s->each[k];
    for (int64_t k = n - 1; k >= 0; k--) add(s, all + k * bytes, first, mine, k == n - 1);
    free(all);
    free(to);
    free(from);
}
static void never(Engine *e, int code) {
    (void)e, (void)code;
    abort();
}

typedef struct {
    Own own;
    Arena *a;
    ThreadsRun r;
    pthread_t thread;
} Rank;
static void *run(void *arg) {
    Rank *k = arg;
    const Threads *x = k->own.hub->x;
    PipelineOptions o = x->o;
    const char *text = k->own.e.rank && x->others ? x->others : x->text;
    o.ranks = ranks_new(k->a, &k->own.e, &(RanksOptions){60, x->engine_sums, "1.0", false, false});
    if (k->own.e.rank) o.save_values = o.against = NULL;
    k->r.d = diags_new(k->a);
    if (x->work) {
        x->work(x->arg, k->a, k->r.d, o.ranks);
        return arg;
    }
    k->r.t = pipeline_run(k->a, k->r.d, plan_text("random.yaml", text), &o, &k->r.rep);
    return arg;
}
ThreadsRun threads_run(Arena *a, const Threads *x) {
    size_t n = (size_t)x->ranks;
    Hub h = {.x = x, .box = calloc(n * n, sizeof *h.box)};
    Rank *k = calloc(n, sizeof *k);
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.news, NULL);
    for (size_t r = 0; r < n; r++) {
        k[r].own = (Own){.e = {.rank = (int64_t)r,
                               .ranks = x->ranks,
                               .name = "threads",
                               .device = -1,
                               .exchange = exchange,
                               .tell = tell,
                               .least = least,
                               .group = group,
                               .ungroup = ungroup,
                               .sum = sum,
                               .abort = never},
                         .hub = &h};
        k[r].a = r ? arena_new() : a;
        assert_int_equal(pthread_create(&k[r].thread, NULL, run, &k[r]), 0);
    }
    for (size_t r = 0; r < n; r++) pthread_join(k[r].thread, NULL);
    ThreadsRun out = k[0].r;
    out.messages = ARENA_ARRAY(a, int64_t, n);
    out.bytes = ARENA_ARRAY(a, int64_t, n);
    out.told = ARENA_ARRAY(a, int64_t, n);
    for (size_t r = 0; r < n; r++) {
        out.messages[r] = k[r].own.messages;
        out.bytes[r] = k[r].own.bytes;
        out.told[r] = k[r].own.told;
        ungroup(&k[r].own.e);
        if (r) arena_free(k[r].a);
    }
    for (size_t b = 0; b < n * n; b++) assert_null(h.box[b]); /* nothing was sent to nobody */
    free(h.box);
    free(k);
    return out;
}
