/* Made-up routings, see routing.h. Everything follows from token and expert by their global
 * numbers. */
#include "weights/routing.h"
#include <math.h>
#include <string.h>

/* Of one (token, expert): the larger, the rather it is chosen. */
typedef struct {
    int64_t token, position, expert;
    double drawn; /* uniform in 0 .. 1 */
} Pair;
/* Larger than whatever the others say. */
static double always(void) { return 1e6; }

static int64_t turned(const Routing *r, const Pair *p, int64_t n) {
    int64_t at = (p->expert - p->token * r->k) % n;
    return at < 0 ? at + n : at;
}
static int64_t block(const Routing *r) { return (r->E + r->ranks - 1) / r->ranks; }
static double balanced(const Routing *r, const Pair *p) { return -(double)turned(r, p, r->E); }
static double hot_expert(const Routing *r, const Pair *p) {
    return p->expert ? balanced(r, p) : always();
}
static double hot_rank(const Routing *r, const Pair *p) {
    return p->expert < block(r) ? always() + balanced(r, p) : balanced(r, p);
}
static double spread(const Routing *r, const Pair *p) {
    (void)r;
    return p->drawn;
}
/* The largest of log w + Gumbel noise is drawn by the weights w = 1 / (e + 1). */
static double ragged(const Routing *r, const Pair *p) {
    (void)r;
    double u = fmin(fmax(p->drawn, 1e-9), 1 - 1e-9);
    return -log((double)p->expert + 1) - log(-log(u));
}
static double empty_rank(const Routing *r, const Pair *p) {
    int64_t last = (r->ranks - 1) * block(r);
    return p->expert >= last && last > 0 ? -always() + p->drawn : p->drawn;
}
static double burst(const Routing *r, const Pair *p) {
    bool middle = p->position >= r->S / 3 && p->position < 2 * r->S / 3;
    return middle && p->expert < r->k ? always() - (double)p->expert : balanced(r, p);
}
static const struct {
    const char *name;
    double (*logit)(const Routing *r, const Pair *p);
} workloads[] = {{"balanced", balanced}, {"hot_expert", hot_expert}, {"hot_rank", hot_rank},
                 {"spread", spread},     {"ragged", ragged},         {"empty_rank", empty_rank},
                 {"burst", burst}};

void routing_fill(const Routing *r, int64_t first, int64_t n, Dtype dtype, void *out) {
    double (*logit)(const Routing *r, const Pair *p) = spread;
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (!strcmp(workloads[i].name, r->name)) logit = workloads[i].logit;
    random_fill(&r->random, first, n, dtype, out);
    for (int64_t i = 0; i < n; i++) {
        double x = dtype == DT_F32 ? (double)((float *)out)[i] : ((double *)out)[i];
        int64_t at = first + i, token = at / r->E;
        Pair p = {token, token % r->S, at % r->E, x};
        if (dtype == DT_F32) ((float *)out)[i] = (float)logit(r, &p);
        else ((double *)out)[i] = logit(r, &p);
    }
}
