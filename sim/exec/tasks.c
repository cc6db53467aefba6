/* See tasks.h. */
#include "exec/tasks.h"
#include <string.h>

ActionKind tasks_kind(const Program *p, const Step *s) {
    if (s->id < p->n_forward) return DO_F;
    return lives_adds_up(p, s) ? DO_W : DO_I;
}
static void add(const Tasks *t, TaskSteps *to, const Step *s) {
    *ARENA_PUSH_LARGE(t->arena, to->step, to->n, to->cap) = s;
}
static TaskSteps *at(const Tasks *t, int stage, ActionKind k) { return &t->of[stage * 4 + (int)k]; }

static const Play *played(const Program *p, const Schedule *s, Arena *arena) {
    PlayTimes t = play_even(s, 1, 1, 1, arena);
    t.buffers = p->assign->plan->pipeline.p2p_buffers;
    return play_schedule(s, &t, arena);
}
Tasks *tasks_new(const Program *p, Arena *arena) {
    const Stages *stages = p->assign->stages;
    if (!stages) return NULL;
    Tasks *t = ARENA_NEW(arena, Tasks);
    *t = (Tasks){.p = p,
                 .arena = arena,
                 .schedule = stages->schedule,
                 .play = played(p, stages->schedule, arena),
                 .of = ARENA_ARRAY(arena, TaskSteps, stages->ways * stages->n * 4),
                 .reads = ARENA_ARRAY(arena, int, p->nv + 1),
                 .later = ARENA_ARRAY(arena, bool, p->nv + 1),
                 .left = ARENA_ARRAY(arena, int *, stages->schedule->parts)};
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        int r[RULE_MAX_IN + 2], n = step_reads(s, r);
        bool once = lives_deferred(p, s);
        for (int k = 0; k < n; k++) {
            if (once) t->later[r[k]] = true;
            else t->reads[r[k]]++;
        }
        if (once) continue;
        ActionKind k = tasks_kind(p, s);
        add(t, at(t, s->stage, k), s);
        if (k != DO_F) add(t, at(t, s->stage, DO_B), s);
        /* whichever of the stage's copies is first */
        if (lives_both(p, s)) add(t, at(t, s->stage + stages->n, k), s);
    }
    return t;
}
const TaskSteps *tasks_of(const Tasks *t, const Action *a) {
    const Stages *s = t->p->assign->stages;
    return at(t, a->stage + stages_way(s, a->part) * s->n, a->kind);
}
void tasks_begin(Tasks *t) {
    for (int i = 0; i < t->schedule->parts; i++) t->left[i] = NULL;
}
bool tasks_unread(const Program *p, const Val *v, int reads) {
    return v->kind == KIND_PARAM && !v->cot && v->step >= 0 && !reads &&
           !p->graph->t[v->tensor].next_of;
}
int tasks_read(Tasks *t, const Step *s, int64_t instance, int *out) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r), gone = 0;
    if (!t->left[instance])
        t->left[instance] = arena_memdup(t->arena, t->reads, (size_t)t->p->nv * sizeof *t->reads);
    for (int k = 0; k < n; k++)
        if (--t->left[instance][r[k]] == 0 && !t->later[r[k]]) out[gone++] = r[k];
    if (!t->later[s->out] && tasks_unread(t->p, &t->p->val[s->out], t->reads[s->out]))
        out[gone++] = s->out;
    return gone;
}
