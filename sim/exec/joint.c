/* The ranks' parts of a step's values put together. See joint.h. */
#include "exec/joint.h"
#include "exec/call.h"
#include "exec/opcall.h"
#include <string.h>

bool joint_has_axis(const AxisList *l, int a) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == a) return true;
    return false;
}
AxisList joint_pending(const Check *c, const Step *s) {
    const Program *p = c->e->p;
    AxisList X = {0};
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    r[n++] = s->out;
    for (int a = 0; a < p->mesh->naxes; a++)
        for (int k = 0; k < n; k++) {
            int ty = p->val[r[k]].L.type[a];
            if ((ty == TY_P || ty == TY_M) && !joint_has_axis(&X, a))
                layout_add_axis(&p->val[r[k]].L, a, &X);
        }
    return X;
}
Tensor joint_letters(const Joint *j, int val) {
    const Program *p = j->c->e->p;
    Tensor t = assemble_value(j->c->e, val, j->X, j->rank);
    const GTensor *g = &p->graph->t[p->val[val].tensor];
    return t.nd < g->nd ? call_letters(&t, g) : t;
}
static Tensor joint_value(const OpcallSource *f, int val) {
    const Joint *j = f->of;
    if (!j->sizes || exec_is_int(j->c->e, val)) return joint_letters(j, val);
    Arena *tmp = arena_new();
    Region box = assemble_region(j->c->e, val, j->X, j->rank, tmp);
    Tensor t = region_packed(&box);
    const GTensor *g = &j->c->e->p->graph->t[j->c->e->p->val[val].tensor];
    arena_free(tmp);
    return t.nd < g->nd ? call_letters(&t, g) : t;
}
static Layout joint_layout(const OpcallSource *f, int val) {
    const Joint *j = f->of;
    return assemble_layout(j->c->e, &f->p->val[val].L, j->X);
}
bool joint_call(const Joint *j, const Step *s, OpCall *call, Region *ob, Arena *tmp) {
    const Check *c = j->c;
    const Program *p = c->e->p;
    OpcallSource f = {.p = p,
                      .dtype = c->e->dtype,
                      .pool = c->e->pool,
                      .rank = j->rank,
                      .part = c->e->now,
                      .sizes_only = c->e->dev->sizes_only,
                      .value = joint_value,
                      .lies = joint_layout,
                      .of = j};
    OpcallClash clash;
    if (!opcall_build(&f, s, call, &clash)) return false;
    const Val *o = &p->val[s->out];
    *ob = assemble_region(c->e, s->out, j->X, j->rank, tmp);
    for (int d = 0; d < ob->nd && !ob->outer; d++)
        if (call->out.n[d] != ob->n[d]) return false;
    /* a list that it makes: how many rows there are is what it says */
    if (o->list == s->out) ob->n[0] = ob->d[0].n = call->rows;
    if (o->list >= 0 && ob->n[0] != call->out.n[0]) return false;
    opcall_positions(&f, s, call, tmp);
    return true;
}
void joint_free(const Check *x, OpCall *c, int nin) {
    for (int i = 0; i < nin; i++) joint_give(x, c->in[i].p);
    joint_give(x, c->cot.p);
    joint_give(x, c->fout.p);
    joint_give(x, c->ids.p);
    joint_give(x, c->out.p);
}
int64_t joint_rank(const Check *c, int val, const AxisList *X, int64_t i) {
    const Program *p = c->e->p;
    return mesh_member(p->mesh, X, layout_first(p->mesh, &p->val[val].L), i);
}

bool joint_shapes(const Joint *j, const Compare *m, int val, const Region *box) {
    const Program *p = m->e->p;
    const Layout *L = &p->val[val].L;
    const Store *store = exec_store(m->e, val);
    Arena *tmp = arena_new();
    bool *seen = ARENA_ARRAY(tmp, bool, store->n + 1), hold = true;
    for (int64_t r = 0; r < p->mesh->nranks && hold && joint_numbers(j->c); r++) {
        if (store->which[r] == EXEC_NOTHING || seen[store->which[r]]) continue;
        if (!compare_agrees(p->mesh, j->X, r, j->rank)) continue;
        seen[store->which[r]] = true;
        Region due = compare_due(m, val, L, r, box, tmp);
        const Tensor *t = &exec_local(m->e, val, r)->t;
        hold = t->nd == due.nd && !memcmp(t->n, due.n, sizeof *t->n * (size_t)due.nd);
    }
    arena_free(tmp);
    return hold;
}
int64_t joint_holders(const Joint *j, int val, int64_t *to) {
    const Mesh *m = j->c->e->p->mesh;
    const Store *st = exec_store(j->c->e, val);
    int64_t n = 0;
    for (int64_t r = 0; r < m->nranks; r++) {
        if (st->which[r] == EXEC_NOTHING || !compare_agrees(m, j->X, r, j->rank)) continue;
        int64_t k = 0;
        while (k < n && st->which[to[k]] != st->which[r]) k++;
        if (k == n) to[n++] = r;
    }
    return n;
}
const char *joint_when(const Check *c, const char *cause) {
    if (!cause || (!c->part && !c->step)) return cause;
    const char *step =
        c->step ? arena_printf(c->arena, "training step %lld", (long long)c->step) : NULL;
    if (!c->part) return arena_printf(c->arena, "%s (in %s)", cause, step);
    return arena_printf(c->arena, "%s (in micro-batch %lld%s%s)", cause, (long long)c->part,
                        step ? " of " : "", step ? step : "");
}
