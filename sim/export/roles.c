/* What each axis of a plan is for, in the words of frameworks whose meshes have fixed axes: copies
 * of the model, shards of it, a part of the sequence, tensor parallelism. */
#include "assign/context.h"
#include "export/export.h"
#include "plan/sharding.h"
#include <string.h>

static bool has(const AxisList *l, int axis) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == axis) return true;
    return false;
}
static bool names(const Mesh *m, const char *text, int axis) {
    AxisList l;
    return text && mesh_lookup(m, text, &l) && has(&l, axis);
}
bool export_roles(const Export *e, Roles *r) {
    const Plan *p = e->p;
    const Mesh *m = e->as->mesh;
    AxisList context = {0};
    bool good = true, cuts = context_axes(m, p, &context);
    *r = (Roles){1, 1, 1, 1, -1};
    for (int i = 0; i < p->n_axes; i++) {
        AxisList l;
        const char *what = "tensor parallelism";
        int64_t *to = &r->tp, size = p->axes[i].size;
        if (size == 1 || !mesh_lookup(m, p->axes[i].name, &l)) continue;
        int axis = l.a[0];
        bool sharded = plan_data_mode(p)->cuts_params && has(&e->as->shard, axis);
        if (cuts && has(&context, axis)) to = &r->cp, what = "context parallelism";
        else if (e->as->tokens >> axis & 1 || has(&e->as->data, axis)) {
            bool copy = !sharded || names(m, p->data_parallel.replicate, axis);
            to = copy ? &r->replicate : &r->shard;
            what = copy ? "copies of the model" : "shards of the model";
        } else r->tp_axis = axis;
        if (*to > 1) {
            export_refuse(e, p->axes[i].loc, "one axis for each of them",
                          "two axes of more than one rank are for %s", what);
            good = false;
        }
        *to *= size;
    }
    return good;
}

ImportInput export_input(const Export *e, const char *framework, const char *text) {
    return (ImportInput){.framework = framework,
                         .path = framework,
                         .text = text,
                         .n = strlen(text),
                         .model = e->p->preset ? e->p->preset : "llama3-8b",
                         .tp = -1,
                         .ep = -1,
                         .dir = "."};
}
const char *export_first_same(const Export *e, const char *framework, const char *const *text,
                              int n, const char *hint) {
    ExportDifference best = {0};
    for (int i = 0; i < n; i++) {
        ImportInput in = export_input(e, framework, text[i]);
        ExportDifference x = export_difference(e, &in);
        if (x.same) return text[i];
        if (!i || x.steps > best.steps) best = x;
    }
    export_refuse_difference(e, framework, hint, &best);
    return NULL;
}
