/* When gathered parameters are held. See held.h. */
#include "exec/held.h"

typedef struct {
    TraceHeld held;
    int first_use, lead;
    bool again; /* of the backward pass: gathered anew */
} Unit;

static bool gathers_parameter(const Program *p, const Step *s) {
    const Val *v = &p->val[s->out];
    return s->kind == ST_MOVE && s->move.kind == MOVE_ALL_GATHER && v->kind == KIND_PARAM &&
           !v->cot && mesh_size(p->mesh, &s->move.axes) > 1;
}
/* The first kernel from step `i` on. */
static int kernel_from(const Program *p, int i) {
    while (i < p->ns && p->step[i].kind != ST_OP && p->step[i].kind != ST_ADJOINT &&
           p->step[i].kind != ST_SUM)
        i++;
    return i;
}
static void find_starts(const Program *p, Unit **u, int n) {
    int backward = kernel_from(p, p->n_forward);
    for (int i = 0; i < n; i++) {
        int ahead = i - TRACE_PREFETCH, before = ahead >= 0 && u[ahead]->again == u[i]->again
                                                     ? u[ahead]->first_use
                                                 : u[i]->again ? backward
                                                               : 0;
        /* operands of one kernel are gathered one after the other: they are in use together */
        if (before >= u[i]->lead) before = i > 0 ? u[i - 1]->held.from : u[i]->lead;
        u[i]->held.from = before < u[i]->lead ? before : u[i]->lead;
    }
}
const TraceHeld **held_find(const Program *p, Arena *arena) {
    const TraceHeld **held = ARENA_ARRAY(arena, const TraceHeld *, p->ns + 1);
    int *first = ARENA_ARRAY(arena, int, p->nv + 1), *last = ARENA_ARRAY(arena, int, p->nv + 1),
        n = 0, cap = 0;
    Unit **order = NULL, **of = ARENA_ARRAY(arena, Unit *, p->ns + 1);
    program_reads(p, true, first, last);
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (!gathers_parameter(p, s)) continue;
        int lead = s->unit >= 0 ? s->unit : i;
        if (!of[lead]) {
            of[lead] = *ARENA_PUSH(arena, order, n, cap) = ARENA_NEW(arena, Unit);
            *of[lead] = (Unit){.first_use = p->ns, .lead = lead, .again = i >= p->n_forward};
        }
        Unit *u = of[lead];
        if (first[s->out] < u->first_use) u->first_use = first[s->out];
        int until = last[s->out] > i ? last[s->out] : i;
        if (until > u->held.until) u->held.until = until;
        held[i] = &u->held;
    }
    find_starts(p, order, n);
    return held;
}
