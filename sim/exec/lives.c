/* When values come and go. See lives.h. */
#include "exec/lives.h"

static void put(int *head, int *next, int step, int v) {
    next[v] = head[step];
    head[step] = v;
}
static int64_t whole_bytes(const GTensor *t, Dtype dtype) {
    int64_t n = dtype_size(t->is_int ? DT_I64 : dtype);
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}
static void find_late(const Program *p, Dtype dtype, Lives *l) {
    int64_t loaded = 0;
    for (int v = 0; v < p->nv; v++) {
        const Val *x = &p->val[v];
        if (x->step >= 0) continue;
        bool may_wait = x->kind == KIND_PARAM && !p->graph->nn_model && l->last[v] >= 0;
        l->late[v] = may_wait && loaded > LIVES_FIRST;
        if (!l->late[v]) loaded += whole_bytes(&p->graph->t[x->tensor], dtype);
    }
}
Lives lives_find(const Program *p, Dtype dtype, const TraceHeld *const *held, Arena *arena) {
    int *first = ARENA_ARRAY(arena, int, p->nv + 1);
    Lives l = {.last = ARENA_ARRAY(arena, int, p->nv + 1),
               .late = ARENA_ARRAY(arena, bool, p->nv + 1),
               .come = ARENA_ARRAY(arena, int, p->ns + 1),
               .next_come = ARENA_ARRAY(arena, int, p->nv + 1),
               .go = ARENA_ARRAY(arena, int, p->ns + 1),
               .next_go = ARENA_ARRAY(arena, int, p->nv + 1)};
    program_reads(p, false, first, l.last);
    for (int i = 0; i <= p->ns; i++) l.come[i] = l.go[i] = -1;
    for (int v = 0; v < p->nv; v++) {
        const Val *x = &p->val[v];
        const TraceHeld *ahead = held && x->step >= 0 ? held[x->step] : NULL;
        if (x->step >= 0) put(l.come, l.next_come, ahead ? ahead->from : x->step, v);
        if (l.last[v] >= 0) put(l.go, l.next_go, ahead ? ahead->until : l.last[v], v);
    }
    find_late(p, dtype, &l);
    return l;
}
