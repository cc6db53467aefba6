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
/* First and last step that reads each value; through moves that only rename it. */
static void find_reads(const Program *p, int *first, int *last) {
    for (int v = 0; v < p->nv; v++) first[v] = p->ns, last[v] = p->val[v].step;
    for (int i = p->ns - 1; i >= 0; i--) {
        const Step *s = &p->step[i];
        int r[RULE_MAX_IN + 2], n = step_reads(s, r);
        bool renames =
            s->kind == ST_CLAIM ||
            (s->kind == ST_MOVE && (s->move.kind == MOVE_ID || s->move.kind == MOVE_SLICE));
        int begin = renames ? first[s->out] : i,
            end = renames && last[s->out] > i ? last[s->out] : i;
        for (int k = 0; k < n; k++) {
            if (begin < first[r[k]]) first[r[k]] = begin;
            if (end > last[r[k]]) last[r[k]] = end;
        }
    }
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
    find_reads(p, first, last);
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
        if (last[s->out] > u->held.until) u->held.until = last[s->out];
        held[i] = &u->held;
    }
    find_starts(p, order, n);
    return held;
}
