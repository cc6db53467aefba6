/* See nobody.h. */
#include "engine/nobody.h"
#include <stddef.h>

static void exchange(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in) {
    (void)e, (void)on, (void)out, (void)n_out, (void)in, (void)n_in;
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e, (void)out, (void)n_out, (void)in, (void)n_in;
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    return mine;
}
static void settle(Engine *e) { (void)e; }
static int group(Engine *e, int64_t color, int64_t place) {
    (void)color, (void)place;
    return e->sharing++; /* ranks that share no GPU */
}
static void ungroup(Engine *e) { (void)e; }
static void sum(Engine *e, const EngineOn *on, const EngineSum *s) { (void)e, (void)on, (void)s; }
Engine engine_nobody(int64_t rank, int64_t ranks) {
    return (Engine){.rank = rank,
                    .ranks = ranks,
                    .name = "nobody",
                    .device = -1,
                    .exchange = exchange,
                    .tell = tell,
                    .least = least,
                    .settle = settle,
                    .group = group,
                    .ungroup = ungroup,
                    .sum = sum};
}
