/* How all exporters refuse: one code, at a place of the plan, with what comes nearest. */
#include "export/export.h"
#include <string.h>

void export_refuse(const Export *e, Loc at, const char *hint, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_error(e->d, "E0218", at, hint, "%s", arena_vprintf(e->a, fmt, ap));
    va_end(ap);
}

/* What makes a plan equivalent although no line of it says so, or keeps PyTorch from doing what it
 * says: the table alone would compute something else, or nothing. */
static const struct {
    const char *code, *why;
    bool always; /* not only of tables */
} noted[] = {
    {"N0001", "a table holds only what lines ask for", false},
    {"N0008", "a table holds only what lines declare", false},
    {"N0006", "PyTorch does not do this", false},
    {"W0401", "this plan does not hold", true},
};
void export_refuse_noted(const Export *e, bool asked) {
    int n = e->d->n; /* those that are added here are not looked at */
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof noted / sizeof *noted; k++)
            if ((asked || noted[k].always) && strcmp(e->d->item[i].code, noted[k].code) == 0) {
                Diag said = e->d->item[i]; /* the list may move */
                export_refuse(e, said.loc, said.hint, "%s: %s", noted[k].why, said.message);
            }
}

void export_refuse_keys(const Export *e, const char *framework, bool context, bool stages) {
    const Plan *p = e->p;
    const struct {
        bool there;
        Loc at;
        const char *what, *hint;
    } rows[] = {
        {!stages && p->pipeline.loc.file, p->pipeline.loc, "no cut of the layers into stages",
         "take `pipeline` and its axis out"},
        {!context && p->context_parallel.loc.file, p->context_parallel.loc,
         "nothing about context parallelism", "take `context_parallel` and its axis out"},
        {!stages && p->recompute, p->recompute_loc, "nothing about what is computed again",
         "recompute: none"},
        {!p->save_gathered, p->save_gathered_loc, "no gathered value that is made again",
         "save_gathered: true"},
        {p->moe.capacity_factor > 0, p->moe.capacity_loc,
         "no limit of an expert's rows that is written here", "leave `capacity_factor` out"},
        {p->n_faults > 0, p->n_faults ? p->faults[0].loc : p->mesh_loc, "no planted fault",
         "leave `faults` out"},
        {p->n_gradients > 0, p->n_gradients ? p->gradients[0].loc : p->mesh_loc,
         "nothing about gradients by themselves", "leave `gradients` out"},
        {e->as->model->dims.mlp || e->as->model->dims.core, p->model_loc,
         "no model without the layers of a Transformer", "model: {preset: llama3-8b}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].there)
            export_refuse(e, rows[i].at, rows[i].hint, "%s has %s", framework, rows[i].what);
}
