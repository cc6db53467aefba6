/* What "split" means is found here from the program alone: a value is split if a sum is pending in
 * it, or was added up over ranks, or if it is made of such a value. */
#include "run_values.h"
#include "exec/assemble.h"
#include "exec/exec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static bool pending(const Program *p, const Val *v) {
    for (int x = 0; x < p->mesh->naxes; x++)
        if (v->L.type[x] == TY_P && p->mesh->axis[x].size > 1) return true;
    return false;
}
static bool reduces(const Program *p, const Step *s) {
    return s->kind == ST_MOVE && pending(p, &p->val[s->in[0]]);
}
/* Is it a value by which the unsharded run knows it: what an op of the forward pass makes, or the
 * whole gradient of a parameter? */
static bool named(const Program *p, const Step *s) {
    if (s->recompute) return false;
    const Val *v = &p->val[s->out];
    bool param = p->graph->t[v->tensor].kind == KIND_PARAM;
    return s->kind == ST_OP ? !v->cot : v->cot && param && p->grad[v->tensor] == s->out;
}
static void keep(void *arg, Exec *e, const Step *s, bool checked) {
    RunValues *k = arg;
    const Program *p = e->p;
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    if (!checked) return;
    if (!k->done) k->done = ARENA_ARRAY(k->a, bool, p->nv + 1);
    bool *done = (bool *)k->done, split = reduces(p, s) || pending(p, &p->val[s->out]);
    for (int i = 0; i < n; i++) split |= done[r[i]];
    done[s->out] = split;
    if (pending(p, &p->val[s->out]) || !named(p, s)) return;
    AxisList none = {0};
    Tensor t = assemble_value(e, s->out, &none, 0);
    Dtype dtype = exec_dtype(e, s->out);
    int64_t count = tensor_count(&t);
    *ARENA_PUSH(k->a, k->v, k->n, k->cap) =
        (RunValue){.name = program_value_name(p, &p->val[s->out], k->a),
                   .dtype = dtype,
                   .n = count,
                   .x = arena_memdup(k->a, t.p, (size_t)(count * dtype_size(dtype))),
                   .split = split,
                   .gradient = p->val[s->out].cot};
    e->host->release(e->host, t.p);
}
void run_values(RunValues *k, const char *file, const char *text, bool one) {
    Arena *a = k->a;
    Diags *d = diags_new(a);
    PipelineReport rep;
    PlanText given = plan_text(file, text);
    PipelineOptions o = {.execute = true, .threads = 1, .watch = keep, .watch_arg = k};
    static const char *const axes[] = {"dp", "cp", "tp", "ep", "edp", "etp"};
    PlanSet set[6];
    for (int i = 0; i < 6 && one; i++) { /* every axis of the mesh that there is */
        const char *mesh = strstr(text, "\nmesh: {"), *end = mesh ? strchr(mesh, '}') : NULL;
        const char *key = arena_printf(a, "%s: ", axes[i]), *at = mesh ? strstr(mesh, key) : NULL;
        bool own = at && at < end && (at[-1] == '{' || at[-1] == ' ');
        if (own) set[given.n_sets++] = (PlanSet){arena_printf(a, "mesh.%s", axes[i]), "1"};
    }
    given.sets = set;
    diags_source(d, file, text, strlen(text));
    Trace *t = pipeline_run(a, d, given, &o, &rep);
    bool good = t && t->verdict && !strcmp(t->verdict, "equivalent") && !rep.exit;
    if (!good) printf("%s\n", text), diags_print(d, stderr, false);
    assert_true(good);
}
const RunValue *run_value(const RunValues *k, const char *name) {
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->v[i].name, name)) return &k->v[i];
    return NULL;
}
double run_value_at(const RunValue *v, int64_t i) {
    switch (v->dtype) {
    case DT_F64: return ((const double *)v->x)[i];
    case DT_F32: return ((const float *)v->x)[i];
    default: return (double)((const int64_t *)v->x)[i];
    }
}
