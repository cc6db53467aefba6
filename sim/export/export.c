/* The door of the exporters: lays the plan over its model, refuses what no table of styles says,
 * and asks the framework's own file. */
#include "export/export.h"
#include <string.h>

static const struct {
    const char *name, *format;
    const char *(*write)(const Export *e);
    bool asked; /* its text holds each move that it makes, none follows by itself */
} frameworks[] = {{"torch", "py", export_torch, true},
                  {"hf", "json", export_hf, false},
                  {"jax", "json", export_jax, false},
                  {"megatron", "sh", export_megatron, false},
                  {"torchtitan", "toml", export_torchtitan, false}};
enum { N_FRAMEWORKS = sizeof frameworks / sizeof *frameworks };
const char export_words[] = "torch hf jax megatron torchtitan";

const char *export_format(const char *to) {
    for (int i = 0; i < N_FRAMEWORKS; i++)
        if (strcmp(frameworks[i].name, to) == 0) return frameworks[i].format;
    return NULL;
}

const char *export_plan(Arena *arena, Diags *d, const Plan *p, const char *to) {
    Diags *again = diags_new(arena); /* what was said of the plan has been said */
    Mesh *mesh = assign_mesh(arena, again, p);
    Model *model = mesh ? model_build(arena, again, p, mesh) : NULL;
    Assign *as = model ? assign_plan(arena, again, p, mesh, model, NULL) : NULL;
    for (int i = 0; i < N_FRAMEWORKS; i++) {
        if (strcmp(frameworks[i].name, to) != 0) continue;
        Export e = {arena, d, p, as};
        export_refuse_noted(&e, frameworks[i].asked);
        const char *text = as ? frameworks[i].write(&e) : NULL;
        return diags_errors(d) ? NULL : text;
    }
    const char *names[N_FRAMEWORKS + 1] = {NULL};
    for (int i = 0; i < N_FRAMEWORKS; i++) names[i] = frameworks[i].name;
    const char *near = diag_nearest(to, names);
    diag_error(d, "E0212", diag_nowhere, near ? near : export_words, "unknown framework '%s'", to);
    return NULL;
}
