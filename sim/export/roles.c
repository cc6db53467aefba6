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
    AxisList ep = {0}, etp;
    bool good = true, cuts = context_axes(m, p, &context), experts = e->as->model->dims.E > 0;
    *r = (Roles){.replicate = 1, .shard = 1, .cp = 1, .tp = 1, .pp = 1, .tp_axis = -1};
    r->ep = experts && mesh_lookup(m, "ep", &ep) ? mesh_size(m, &ep) : 1;
    for (int i = 0; i < p->n_axes; i++) {
        AxisList l;
        const char *what = "tensor parallelism";
        int64_t *to = &r->tp, size = p->axes[i].size;
        if (size == 1 || !mesh_lookup(m, p->axes[i].name, &l)) continue;
        int axis = l.a[0];
        bool sharded = plan_data_mode(p)->cuts_params && has(&e->as->shard, axis);
        if (e->as->stages && e->as->stages->axis == axis) to = &r->pp, what = "stages";
        else if (cuts && has(&context, axis)) to = &r->cp, what = "context parallelism";
        else if (e->as->tokens >> axis & 1 || has(&e->as->data, axis)) {
            bool copy = !sharded || names(m, p->data_parallel.replicate, axis);
            to = copy ? &r->replicate : &r->shard;
            what = copy ? "copies of the model" : "shards of the model";
        } else r->tp_axis = axis;
        if (*to > 1 && r->ep == 1) { /* experts may take a part of what is one axis to others */
            export_refuse(e, p->axes[i].loc, "one axis for each of them",
                          "two axes of more than one rank are for %s", what);
            good = false;
        }
        *to *= size;
    }
    r->etp = !experts || (r->tp_axis >= 0 && has(&ep, r->tp_axis)) ? 1
             : mesh_lookup(m, "etp", &etp)                         ? mesh_size(m, &etp)
                                                                   : 0;
    return good;
}

bool export_stages(const Export *e, const Roles *r, const char *framework, ExportStages *s) {
    const Plan *p = e->p;
    const ModelDims *m = &e->as->model->dims;
    const Stages *st = e->as->stages;
    *s = (ExportStages){.chunks = 1, .parts = 1, .layers = m->last_layer - m->first_layer};
    if (!st) return true;
    int64_t dp = r->replicate * r->shard, batch = p->whole_batch ? p->whole_batch : p->batch;
    s->chunks = st->n / st->schedule->ranks, s->parts = st->schedule->parts;
    s->local = batch / dp, s->size = s->local / s->parts;
    if (p->pipeline.file)
        export_refuse(e, p->pipeline.file_loc, "schedule: 1f1b", "%s has no orders from a file",
                      framework);
    else if (batch % (dp * s->parts))
        export_refuse(e, p->pipeline.loc, "a batch that they divide",
                      "%lld micro-batches of %lld sequences on %lld ranks of data parallelism are "
                      "not alike",
                      (long long)s->parts, (long long)batch, (long long)dp);
    else return true;
    return false;
}

ImportInput export_input(const Export *e, const char *framework, const char *text) {
    const ModelDims *d = &e->as->model->dims;
    return (ImportInput){.framework = framework,
                         .path = framework,
                         .text = text,
                         .n = strlen(text),
                         .model = e->p->preset ? e->p->preset
                                  : d->kv_rank ? "deepseek-v3"
                                  : d->turns   ? "llama4-maverick"
                                  : d->E       ? "qwen3-30b-a3b"
                                               : "llama3-8b", /* that is built alike */
                         .tp = -1,
                         .ep = -1,
                         .full = e->as->stages != NULL,
                         .layers = e->as->stages ? d->last_layer - d->first_layer : 0,
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
