/* See nccl.h. The tables and formulas are those of NCCL 2.28.9 to 2.30 (src/graph/tuning.cc,
 * ncclTopoTuneModel and ncclTopoGetAlgoTime), in its units, microseconds and GB/s. What NCCL takes
 * from the graph that it finds in a machine, channels and their bandwidth, is the profile's; of
 * several nodes a channel has no more than its share of the node's network cards. */
#include "cost/nccl.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- NCCL's constants ---- */
static const double base_latency[NCCL_ALGORITHMS][NCCL_PROTOCOLS] = {
    [NCCL_TREE] = {6.8, 14.0, 8.4}, [NCCL_RING] = {6.6, 14.0, 8.4}, [NCCL_PAT] = {8, 8, 8}};
enum { NET = NCCL_PCI + 1, LINKS };
/* per step */
static const double link_latency[LINKS][NCCL_ALGORITHMS][NCCL_PROTOCOLS] = {
    [NCCL_NVLINK] = {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}},
    [NCCL_PCI] = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4.0}},
    [NET] = {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};
/* of a GPU's generation; by nodes: one, two, more */
typedef struct {
    double ring_ll128[3], tree_ll128[3], tree[3], nvls_tree[3]; /* most, of one channel */
    double ll;                                                  /* most of LL on one node */
    double nvls; /* share that NVLS reaches; 0: none */
} Generation;
static const Generation generations[] = {[NCCL_AMPERE] = {.ring_ll128 = {20, 20, 20},
                                                          .tree_ll128 = {20, 20, 20},
                                                          .tree = {24, 23.6, 17.8},
                                                          .nvls_tree = {24, 23.6, 17.8},
                                                          .ll = 87.7,
                                                          .nvls = 0},
                                         [NCCL_HOPPER] = {.ring_ll128 = {36.7, 36.7, 36.7},
                                                          .tree_ll128 = {36.7, 36.7, 29},
                                                          .tree = {38.7, 41.4, 36},
                                                          .nvls_tree = {0, 57.7, 45.5},
                                                          .ll = 141,
                                                          .nvls = 0.85},
                                         [NCCL_BLACKWELL] = {.ring_ll128 = {40, 40, 40},
                                                             .tree_ll128 = {55.6, 31.67, 20},
                                                             .tree = {70, 42.8, 24},
                                                             .nvls_tree = {0, 96, 80},
                                                             .ll = 282,
                                                             .nvls = 0.74}};
/* Of the hosts' processors: most of LL with two nodes and with more; a message's overhead. */
static const struct {
    double ll[2], overhead;
} hosts[] = {[NCCL_INTEL] = {{39, 20.4}, 1}, [NCCL_AMD] = {{22.5, 19}, 2}};
/* "Trees are not perfectly sticking to the model for medium sizes": by powers of two from 64 B. */
enum { TREE_SIZES = 23 };
static const double tree_share[NCCL_PROTOCOLS][TREE_SIZES] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

/* ---- which collectives ---- */
typedef struct {
    const char *op;
    bool reduces_all,
        gathers; /* an all-reduce; a gather or a reduce-scatter; else from one to all */
} Kind;
static const Kind kinds[] = {{"all_reduce", true, false},
                             {"all_gather", false, true},
                             {"reduce_scatter", false, true},
                             {"broadcast", false, false}};
static const Kind *kind_of(const char *op) {
    for (size_t i = 0; op && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].op, op)) return &kinds[i];
    return NULL;
}
bool nccl_models(const Hardware *h, const char *op) {
    return h->nccl.channels > 0 && kind_of(op) != NULL;
}
static double steps_of(const Kind *k, int64_t n) {
    return (double)(k->reduces_all ? 2 * (n - 1) : k->gathers ? n - 1 : n);
}
double nccl_size(const char *op, int64_t ranks, double sent) {
    const Kind *k = kind_of(op);
    assert(k && ranks > 1);
    return k->reduces_all || k->gathers ? sent * (double)ranks / steps_of(k, ranks) : sent;
}

/* ---- one way ---- */
typedef struct {
    const Hardware *h;
    const NcclAsk *ask;
    const Kind *kind;
    const Generation *gpu;
    NcclAlgo a;
    NcclProto p;
    int by_nodes;    /* 0: one, 1: two, 2: more */
    double per_node; /* ranks */
    double channels;
} Way;
static bool is_nvls(const Way *w) { return w->a == NCCL_NVLS || w->a == NCCL_NVLS_TREE; }
static bool possible(const Way *w) {
    const NcclProfile *n = &w->h->nccl;
    const NcclAsk *x = w->ask;
    bool one = x->nodes == 1, rings = n->link == NCCL_NVLINK || w->p != NCCL_LL128,
         switched = n->link == NCCL_NVLINK && w->gpu->nvls > 0 && n->nvls_channels > 1 &&
                    w->per_node >= (double)n->nvls_ranks;
    switch (w->a) {
    case NCCL_RING: return rings;
    case NCCL_TREE: return w->kind->reduces_all && rings;
    case NCCL_NVLS: return one && switched && (w->kind->reduces_all || w->kind->gathers);
    case NCCL_NVLS_TREE: return !one && switched && w->kind->reduces_all;
    case NCCL_PAT: return w->kind->gathers && x->nodes == x->ranks && !one;
    case NCCL_ALGORITHMS: break;
    }
    return false;
}
/* GB/s of a channel, between nodes its share of the cards of those of its ranks that are on one. */
static double channel(const Way *w, double within) {
    double cards = w->per_node * w->h->inter_bandwidth * 1e-9 / w->channels;
    return w->ask->nodes == 1 ? within * 1e-9 : fmin(within * 1e-9, cards);
}
static double nvls_channel(const Way *w) {
    double within =
        w->h->nccl.nvls_bandwidth * 1e-9 * w->gpu->nvls * (w->channels - 1) / w->channels;
    within *= w->kind->reduces_all ? 2 : (w->per_node - 1) / w->per_node;
    if (w->a == NCCL_NVLS) return within;
    /* up and down once where there are two nodes */
    double between = channel(w, HUGE_VAL) * (w->ask->nodes == 2 ? 2 : 1);
    return fmin(fmin(within, between), w->gpu->nvls_tree[w->by_nodes]);
}
/* Its bus bandwidth in GB/s, then that of S: busBw and its ratio. */
static double bandwidth(const Way *w) {
    double n = (double)w->ask->ranks, many = w->channels,
           bus = many * (is_nvls(w) ? nvls_channel(w) : channel(w, w->h->nccl.channel_bandwidth));
    double ll = w->by_nodes ? hosts[w->h->nccl.cpu].ll[w->by_nodes - 1] : w->gpu->ll;
    bool tree = w->a == NCCL_TREE;
    if (w->a == NCCL_RING && w->p == NCCL_LL) bus = fmin(ll, bus / 2);
    if (w->a == NCCL_RING && w->p == NCCL_LL128)
        bus = fmin(bus * 0.92, many * w->gpu->ring_ll128[w->by_nodes]);
    if (tree) bus = fmin(bus * 0.92, many * w->gpu->tree[w->by_nodes]);
    if (tree && w->p == NCCL_LL) bus = fmin(bus / 3.8, ll);
    if (tree && w->p == NCCL_LL128)
        bus = fmin(bus * (w->by_nodes ? 120.0 / 128 : 7.0 / 9),
                   many * w->gpu->tree_ll128[w->by_nodes]);
    if (w->a == NCCL_PAT) bus *= 0.75;
    if (w->kind->gathers && w->a != NCCL_RING) return bus;
    return bus * (tree ? 0.5 : n / steps_of(w->kind, w->ask->ranks));
}
static double floor_log2(double x) { return floor(log2(x)); }
/* Microseconds. */
static double latency(const Way *w) {
    const int link = w->h->nccl.link, far = w->ask->nodes > 1 ? NET : link;
    double nodes = (double)w->ask->nodes, in = link_latency[link][w->a][w->p],
           base = base_latency[w->a][w->p], steps = steps_of(w->kind, w->ask->ranks);
    /* a rank alone on its node hides nothing of it */
    double between = link_latency[NET][w->per_node > 1 ? w->a : NCCL_TREE][w->p];
    switch (w->a) {
    case NCCL_RING:
        if (!w->kind->reduces_all && !w->kind->gathers)
            return base + steps * link_latency[far][w->p == NCCL_SIMPLE ? NCCL_TREE : w->a][w->p];
        double across = nodes == 1 ? 0 : (nodes - 1) * (w->kind->reduces_all ? 2 : 1),
               post = hosts[w->h->nccl.cpu].overhead * (w->p == NCCL_SIMPLE ? 3 : 1);
        if (nodes > 1) in = fmax(in, post);
        return base + (steps - across) * in + across * between;
    case NCCL_TREE: return base + 2 * ((floor(w->per_node) - 1) * in + floor_log2(nodes) * between);
    case NCCL_NVLS: return in;
    case NCCL_NVLS_TREE: return in + 2 * floor_log2(nodes) * between;
    case NCCL_PAT: return base + floor_log2(nodes) * between / 3.5 + 2.8 * (double)w->ask->ranks;
    case NCCL_ALGORITHMS: break;
    }
    return base;
}
/* What depends on the size: of trees the bandwidth, of rings over nodes the latency. */
static void by_size(const Way *w, NcclWay *out) {
    double s = w->ask->bytes;
    int power = s >= 64 ? (int)floor_log2(s / 64) : -1;
    if (w->a == NCCL_TREE && power >= 0 && power < TREE_SIZES)
        out->bandwidth *= tree_share[w->p][power];
    if (w->a == NCCL_RING && w->p == NCCL_SIMPLE && w->ask->nodes > 1 && w->kind->reduces_all &&
        s / (w->channels * (double)w->ask->ranks) >= 64)
        out->latency *= 1.4;
}
bool nccl_way(const Hardware *h, const NcclAsk *ask, NcclAlgo algo, NcclProto proto, NcclWay *out) {
    const NcclProfile *n = &h->nccl;
    assert(nccl_models(h, ask->op) && ask->ranks > 1 && ask->nodes >= 1);
    Way w = {h, ask, kind_of(ask->op), &generations[n->gpu], algo, proto, .channels = 1};
    w.by_nodes = ask->nodes > 2 ? 2 : (int)ask->nodes - 1;
    w.per_node = (double)ask->ranks / (double)ask->nodes;
    w.channels = (double)(is_nvls(&w) ? n->nvls_channels : n->channels);
    bool simple = algo == NCCL_RING || algo == NCCL_TREE || proto == NCCL_SIMPLE;
    if (!simple || !possible(&w)) return false;
    *out = (NcclWay){algo, proto, latency(&w) * 1e-6, bandwidth(&w) * 1e9, 0};
    by_size(&w, out);
    out->time = out->latency + ask->bytes / out->bandwidth;
    return true;
}
NcclWay nccl_choose(const Hardware *h, const NcclAsk *ask) {
    NcclWay best = {.time = INFINITY}, one;
    for (int a = 0; a < NCCL_ALGORITHMS; a++)
        for (int p = 0; p < NCCL_PROTOCOLS; p++)
            if (nccl_way(h, ask, (NcclAlgo)a, (NcclProto)p, &one) && one.time < best.time)
                best = one;
    return best;
}
const char *nccl_way_text(const NcclWay *way, Arena *arena) {
    static const char *const algo[] = {"Tree", "Ring", "NVLS", "NVLSTree", "PAT"},
                             *const proto[] = {"LL", "LL128", "Simple"};
    return arena_printf(arena, "%s/%s", algo[way->algo], proto[way->proto]);
}
