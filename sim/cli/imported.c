/* A framework's own file in place of a plan: the plan that is made of it. */
#include "cli/imported.h"
#include "base/file.h"
#include <string.h>

ImportInput imported_input(const Cli *c, const char *framework, const char *path, const char *text,
                           size_t n) {
    const CliOptions *o = &c->o;
    return (ImportInput){.framework = framework,
                         .path = path,
                         .text = text,
                         .n = n,
                         .model = o->model,
                         .config = o->config,
                         .mesh = o->mesh,
                         .args = o->args,
                         .tp_plan = o->tp_plan,
                         .ep_plan = o->ep_plan,
                         .hf_version = o->hf_version,
                         .tp = o->tp,
                         .ep = o->ep,
                         .loss_parallel = o->loss_parallel,
                         .full = o->full,
                         .dir = "."};
}

/* A wrong option is wrong usage, whatever else is wrong. */
int imported_exit(const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR && d->item[i].exit == 2) return 2;
    return diags_exit(d);
}

bool cli_import(Cli *c, Loaded *l, const char **name) {
    const char *framework = import_recognise(l->path, l->text, l->n);
    if (!framework) return true;
    if (c->o.update_expect) {
        diag_error(l->d, "E0212", diag_nowhere, "`import` it, and update the plan",
                   "--update-expect writes into plans, not into a file of %s", framework);
        l->exit = imported_exit(l->d);
        return false;
    }
    ImportInput in = imported_input(c, framework, l->path, l->text, l->n);
    in.dir = file_dir(c->arena, l->path);
    if (!strcmp(l->path, "-") && c->o.n_operands == 1 &&
        import_idle(c->arena, l->d, &in, &framework, 1, in.path)) {
        l->exit = imported_exit(l->d);
        return false;
    }
    ImportedPlan p = import_plan(c->arena, l->d, &in);
    l->exit = imported_exit(l->d);
    if (!p.text) return false;
    *name = arena_printf(c->arena, "%s (imported)", *name);
    diags_origins(l->d, *name, p.origin, p.n_origin);
    diags_words(l->d, import_words, framework);
    l->text = p.text;
    l->n = p.n;
    return true;
}
