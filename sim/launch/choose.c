/* Launches of what makes index lists and counts their rows. */
#include "launch/launch.h"
#include "ops/capacity.h"
#include "ops/router.h"
#include "ops/util.h"
#include <stdlib.h>
#include <string.h>

enum { RUN = 256 }; /* candidates that one thread lists */

/* The rows of which a flag is set, ascending, into the result. `of_list`: the flags are of the rows
 * of ids; else of all [e, b, t]. */
static void list(const LaunchCall *x, void *flags, int64_t n, bool of_list) {
    const OpCall *c = x->c;
    int64_t runs = (n + RUN - 1) / RUN, e = c->local['e' - 'a'], b = c->local['b' - 'a'],
            t = c->local['t' - 'a'];
    Tensor counts = {.nd = 1, .n = {runs}, .s = {1}};
    int64_t k[] = {n, RUN, of_list, b, t, c->global['b' - 'a'], c->global['t' - 'a'], e};
    counts.p = x->to->scratch(x->to->arg, (runs + 1) * 8);
    GpuLaunch l = launch_over(x, GPU_list_count, &counts, &counts);
    l.args.x[0].p = flags;
    memcpy(l.args.k, k, sizeof k);
    launch_each(x, &l, runs);
    int64_t *table = base_malloc(base_mul((size_t)(e + b + t) + 1, sizeof *table));
    for (int64_t i = 0; i < e; i++) table[i] = global_index(c, 'e', i);
    for (int64_t i = 0; i < b; i++) table[e + i] = global_index(c, 'b', i);
    for (int64_t i = 0; i < t; i++) table[e + b + i] = global_index(c, 't', i);
    l = launch_over(x, GPU_list, &counts, &c->out);
    l.args.x[0].p = flags;
    l.args.x[1].p = counts.p;
    l.args.x[2].p = c->ids.p;
    memcpy(l.args.k, k, sizeof k);
    l.table = table;
    l.bytes = (size_t)(e + b + t) * sizeof *table;
    launch_each(x, &l, runs);
    free(table);
}
static bool choose(const LaunchCall *x) {
    const OpCall *c = x->c;
    const Tensor *z = &c->in[c->rule->nin - 1];
    int64_t ne = z->n[2], tokens = z->n[0] * z->n[1];
    void *flags = x->to->scratch(x->to->arg, (tokens * ne + 1) * 8);
    GpuLaunch l = launch_over(x, GPU_select, z, z);
    l.args.nd = 2;
    l.args.out.p = flags;
    launch_operand(&l, 0, z, NULL, NULL);
    l.args.x[1].p = x->to->scratch(x->to->arg, (3 * tokens * ne + 1) * 8);
    int64_t k[] = {ne, c->at->top < ne ? c->at->top : ne, c->at->groups, c->at->top_groups,
                   z->s[2]};
    memcpy(l.args.k, k, sizeof k);
    launch_each(x, &l, tokens);
    list(x, flags, tokens * ne, false);
    return true;
}
LaunchFn launch_select, launch_select_by, launch_capacity, launch_counts;
bool launch_select(const LaunchCall *x) { return choose(x); }
bool launch_select_by(const LaunchCall *x) { return choose(x); }

/* Of each group the room, of each token the group. */
static int64_t *rooms_and_groups(const OpCall *c, int64_t *groups, int64_t *n) {
    int64_t tokens = c->global['b' - 'a'] * c->global['t' - 'a'], *room = capacity_rooms(c, groups);
    *n = *groups + (c->at->group ? tokens : 0);
    int64_t *table = base_malloc(base_mul((size_t)*n, sizeof *table));
    memcpy(table, room, (size_t)*groups * sizeof *table);
    for (int64_t i = 0; i < *n - *groups; i++) table[*groups + i] = c->at->group[i];
    free(room);
    return table;
}
bool launch_capacity(const LaunchCall *x) {
    const OpCall *c = x->c;
    int64_t rows = c->ids.n[0], tokens = c->global['b' - 'a'] * c->global['t' - 'a'], groups, n,
            *table = rooms_and_groups(c, &groups, &n);
    Tensor space = {.nd = 1, .n = {rows}, .s = {1}};
    void *first = x->to->scratch(x->to->arg, (rows + 1) * 8),
         *flags = x->to->scratch(x->to->arg, (rows + 1) * 8);
    for (int step = 0; step < 2; step++) {
        space.p = step ? flags : first;
        GpuLaunch l = launch_over(x, step ? GPU_capacity : GPU_capacity_first, &space, &space);
        int64_t k[] = {tokens, c->at->group != NULL, c->at->priority, groups};
        memcpy(l.args.k, k, sizeof k);
        l.args.x[0].p = c->ids.p;
        launch_operand(&l, 1, &c->in[1], NULL, NULL);
        l.args.x[2].p = first;
        l.table = table;
        l.bytes = (size_t)n * sizeof *table;
        launch_each(x, &l, rows);
    }
    list(x, flags, rows, true);
    free(table);
    return true;
}
bool launch_counts(const LaunchCall *x) {
    OpCall c = launch_with_ids(x);
    int64_t rows = c.ids.n[0], nb = c.out.n[0], parts = c.at->parts > 1 ? c.at->parts : 1,
            *table = base_malloc(base_mul((size_t)(2 * rows) + 1, sizeof *table));
    for (int64_t r = 0; r < rows; r++) {
        RowAt at = row_at(&c, r);
        table[2 * r] = at.b * parts / nb;
        table[2 * r + 1] = at.e;
    }
    GpuLaunch l = launch_over(x, GPU_counts, &c.out, &c.out);
    l.args.k[0] = rows;
    l.args.k[1] = parts;
    l.table = table;
    l.bytes = (size_t)(2 * rows) * sizeof *table;
    launch_each(x, &l, tensor_count(&c.out));
    free(table);
    return true;
}
