/* `import`, and the other commands on a framework's own file: both make the plan of it, one to
 * write it, the others to go on with it. */
#include "base/file.h"
#include "cli/document.h"
#include "cli/imported.h"
#include <string.h>

enum { FILE_BYTES = 1 << 20 };

/* Whatever is wrong with a plan before any rule of it can be: its patterns, names and sizes. Rules
 * are for `check`. */
static bool plan_stands(Cli *c, Diags *d, const char *file, const ImportedPlan *p) {
    const char *slash = strrchr(file, '/'), /* its paths start where the plan is written */
        *name = arena_printf(c->arena, "%s (imported)", slash ? slash + 1 : file);
    PipelineOptions o = {0};
    PipelineReport report;
    Diags *all = diags_new(c->arena);
    all->sources = d->sources;
    diags_origins(all, name, p->origin, p->n_origin);
    diags_words(all, d->words, d->words_of);
    pipeline_run(c->arena, all, (PlanText){name, p->text, p->n, NULL, 0}, &o, &report);
    for (int i = 0; i < all->n; i++) {
        const Diag *g = &all->item[i];
        if (g->severity == DIAG_ERROR && g->exit != 1)
            diag_error(d, g->code, g->loc, g->hint, "%s", g->message);
    }
    d->sources = all->sources;
    return diags_errors(d) == 0;
}
static char *read_file(Cli *c, Diags *d, const char *path, size_t *n) {
    return file_read(c->arena, d, path, FILE_BYTES, diag_nowhere, n);
}
/* The plan as a text, and for its lines where in the framework's file they come from. */
static void document(Cli *c, const Diags *d, const char *framework, const ImportedPlan *p) {
    JsonWriter w = document_head(c);
    json_str(&w, "framework", framework);
    json_open(&w, "diagnostics", '[');
    document_diagnostics(&w, d);
    json_close(&w, ']');
    json_str(&w, "plan", p->text);
    json_open(&w, "origins", '[');
    for (int i = 0; p->text && i < p->n_origin; i++) {
        json_break(&w);
        json_open(&w, NULL, '{');
        json_int(&w, "plan_line", p->origin[i].line);
        json_int(&w, "plan_column", p->origin[i].col);
        const Loc *from = &p->origin[i].from;
        json_str(&w, "file", from->file); /* null: from nowhere in it, up to the next */
        if (from->file) json_int(&w, "line", from->line);
        if (from->file) json_int(&w, "column", from->col);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    document_tail(c, &w);
}
int cmd_import(Cli *c) {
    const char *framework = c->o.operands[0];
    const char *path = c->o.n_operands > 1 ? c->o.operands[1] : NULL, *text = "";
    Diags *d = diags_new(c->arena);
    size_t n = 0;
    if (c->o.names) return cmd_names(c);
    bool args = path && strncmp(path, "--", 2) == 0;
    if (c->o.n_operands > 2 && !args)
        diag_error(d, "E0212", diag_nowhere,
                   "what a plan lacks is said by options: --model, --mesh, --tp",
                   "`import` wants FRAMEWORK FILE and no more");
    if (path && !args && !diags_errors(d)) text = read_file(c, d, path, &n);
    ImportedPlan p = {0};
    if (!diags_errors(d)) {
        ImportInput in = imported_input(c, framework, args ? NULL : path, text, n);
        in.dir = c->o.output ? file_dir(c->arena, c->o.output) : ".";
        if (args) in.arg = c->o.operands + 1, in.n_args = c->o.n_operands - 1;
        if (!import_idle(c->arena, d, &in, &framework, 1, in.path ? in.path : "the arguments"))
            p = import_plan(c->arena, d, &in);
        if (p.text && !plan_stands(c, d, path && !args ? path : framework, &p)) p.text = NULL;
    }
    if (!strcmp(c->format, "json")) document(c, d, framework, &p);
    else if (p.text) str_addn(&c->text, p.text, p.n);
    if (diags_errors(d)) c->o.output = NULL; /* an existing plan stays */
    cli_diagnostics(c, d, false);
    return imported_exit(d);
}
