/* The engine of tests without an MPI or a GPU: the rendezvous, messages, hearts and ends of
 * `--cuda` with moves and sums over the same sockets, on the host. test_nccl puts it beside a copy
 * of the program as shardproof-nccl.so. Users have an MPI. SOCKETS_GPU=0: its ranks compute on GPU
 * 0. */
#include "engine/star.h"
#include <stdlib.h>
#include <string.h>

EngineOpen shardproof_engine;
enum { GROUPS = 64 };
typedef struct {
    int64_t color, place;
} Seat;
static struct {
    Engine e; /* first */
    Star *star;
    struct {
        int64_t n, *member;
    } group[GROUPS];
    int n_groups;
} S;

static void exchange(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e;
    star_exchange(S.star, out, n_out, in, n_in);
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    return star_least(S.star, mine);
}
/* What every rank says, to every rank. */
static void all_say(void *mine, void *all, int64_t bytes) {
    int n = 0;
    EngineItem *out = malloc((size_t)S.e.ranks * sizeof *out),
               *in = malloc((size_t)S.e.ranks * sizeof *in);
    for (int64_t r = 0; r < S.e.ranks; r++) {
        if (r == S.e.rank) continue;
        out[n] = (EngineItem){r, bytes, mine};
        in[n++] = (EngineItem){r, bytes, (char *)all + r * bytes};
    }
    memcpy((char *)all + S.e.rank * bytes, mine, (size_t)bytes);
    star_exchange(S.star, out, n, in, n);
    free(out);
    free(in);
}
static int group(Engine *e, int64_t color, int64_t place) {
    Seat mine = {color, place}, *all = malloc((size_t)e->ranks * sizeof *all);
    if (S.n_groups == GROUPS) return -1;
    all_say(&mine, all, sizeof mine);
    int64_t *member = malloc((size_t)e->ranks * sizeof *member), n = 0;
    for (int64_t r = 0; r < e->ranks; r++) {
        if (all[r].color != color) continue;
        int64_t at = n++;
        for (; at > 0 && all[member[at - 1]].place > all[r].place; at--)
            member[at] = member[at - 1];
        member[at] = r;
    }
    free(all);
    S.group[S.n_groups].n = n;
    S.group[S.n_groups].member = member;
    return S.n_groups++;
}
static void ungroup(Engine *e) {
    (void)e;
    while (S.n_groups) free(S.group[--S.n_groups].member);
}
static void add(void *to, const void *from, int64_t n, const EngineSum *s) {
    for (int64_t i = 0; i < n && s->number == ENGINE_F32; i++) {
        float *a = (float *)to + i, b = ((const float *)from)[i];
        *a = s->max ? (b > *a ? b : *a) : *a + b;
    }
    for (int64_t i = 0; i < n && s->number == ENGINE_F64; i++) {
        double *a = (double *)to + i, b = ((const double *)from)[i];
        *a = s->max ? (b > *a ? b : *a) : *a + b;
    }
}
/* From the last member to the first: another order than the declared one. */
static void sum(Engine *e, const EngineSum *s) {
    int64_t k = S.group[s->group].n, *member = S.group[s->group].member, at = 0, mine = s->n;
    size_t es = s->number == ENGINE_F32 ? 4 : 8;
    EngineItem *out = calloc((size_t)k, sizeof *out), *in = calloc((size_t)k, sizeof *in);
    int n = 0;
    for (int64_t i = 0; i < k; i++)
        if (member[i] == e->rank && s->each) mine = s->each[i];
    char *theirs = malloc((size_t)(k * mine) * es + 1);
    for (int64_t i = 0; i < k; i++) {
        int64_t to = s->each ? s->each[i] : s->n;
        char *block = (char *)(uintptr_t)s->mine + (s->each ? (size_t)at * es : 0),
             *room = theirs + (size_t)(i * mine) * es;
        at += to;
        if (member[i] == e->rank) {
            memcpy(room, block, (size_t)mine * es);
            continue;
        }
        out[n] = (EngineItem){member[i], to * (int64_t)es, block};
        in[n++] = (EngineItem){member[i], mine * (int64_t)es, room};
    }
    star_exchange(S.star, out, n, in, n);
    memcpy(s->out, theirs + (size_t)((k - 1) * mine) * es, (size_t)mine * es);
    for (int64_t i = k - 2; i >= 0; i--) add(s->out, theirs + (size_t)(i * mine) * es, mine, s);
    free(theirs);
    free(out);
    free(in);
}
static void stop(Engine *e, int code) {
    (void)e;
    star_abort(S.star, code);
}
static void done(Engine *e) {
    ungroup(e);
    star_close(S.star);
}
Engine *shardproof_engine(const EngineHost *host) {
    if (host->abi != ENGINE_ABI) {
        host->failed(host->arg, "the plug-in belongs to another version of shardproof");
        return NULL;
    }
    const char *gpu = getenv("SOCKETS_GPU");
    S.e = (Engine){.name = "sockets",
                   .device = gpu ? atoi(gpu) : -1,
                   .exchange = exchange,
                   .tell = exchange,
                   .least = least,
                   .group = group,
                   .ungroup = ungroup,
                   .sum = sum,
                   .abort = stop,
                   .close = done};
    S.star = star_open(&(StarOwner){.host = host}, &S.e);
    return S.star ? &S.e : NULL;
}
