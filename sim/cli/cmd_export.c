/* `export`: a plan that passes its static rules, in another framework's way of saying it. */
#include "export/export.h"
#include "cli/cli.h"
#include <string.h>

int cmd_export(Cli *c) {
    PipelineOptions o = cli_pipeline(c);
    Loaded l;
    if (!c->o.to) {
        diag_error(c->d, "E0212", diag_nowhere, arena_printf(c->arena, "--to %s", export_words),
                   "`export` wants the framework");
        return 2;
    }
    const char *format = export_format(c->o.to);
    if ((c->o.format || c->o.output) && format && strcmp(c->format, format) != 0) {
        diag_error(c->d, "E0212", diag_nowhere,
                   arena_printf(c->arena, "-o plan.%s, or --format %s", format, format),
                   "`export --to %s` writes %s, not '%s'", c->o.to, format, c->format);
        return 2;
    }
    int code = 0;
    bool loaded = cli_load(c, c->o.operands[0], &o, true, &l);
    if (!loaded || l.exit || diags_errors(l.d)) code = l.exit ? l.exit : cli_exit_of(l.d);
    const char *text = NULL;
    if (loaded && !code && !(text = export_plan(c->arena, l.d, l.report.plan, c->o.to)))
        code = diags_exit(l.d);
    if (text) str_add(&c->text, text);
    else c->o.output = NULL; /* an existing file stays */
    if (!l.refused || diags_errors(l.d)) cli_diagnostics(c, l.d, false);
    return text ? 0 : code ? code : 70;
}
