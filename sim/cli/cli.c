/* From argv to an exit code: parse, dispatch, and the things all commands share. Refuses to know
 * any command's work. */
#include "cli/cli.h"
#include "cli/ascii.h"
#include "cli/files.h"
#include "cli/progress.h"
#include "cli/shipped.h"
#include "cli/terminal.h"
#include "base/file.h"
#include "base/text.h"
#include "cost/cost.h"
#include "drive/ranks.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t INPUT_BYTES = (size_t)1 << 28; /* a trace */

bool cli_wants_progress(const Cli *c) {
    const char *term = terminal_env("TERM");
    bool mixed = strcmp(c->format, "text") != 0 && !c->o.output && terminal_is(c->out);
    return terminal_is(c->err) && !mixed && !c->o.quiet && !terminal_env("CI") &&
           !(term && strcmp(term, "dumb") == 0);
}

/* ---- exit codes and diagnostics ---- */
int cli_worse(int a, int b) {
    static const int order[] = {2, 70, 5, 4, 3, 1};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i]) return order[i];
    return a ? a : b;
}
void cli_diagnostics(Cli *c, const Diags *d, bool notes) {
    Diags shown = *d;
    shown.item = ARENA_ARRAY(c->arena, Diag, d->n);
    shown.n = 0;
    for (int i = 0; i < d->n; i++) {
        Severity s = d->item[i].severity;
        if (s == DIAG_ERROR || (!c->o.quiet && (s == DIAG_WARNING || notes || c->o.verbose)))
            shown.item[shown.n++] = d->item[i];
    }
    shown.cap = shown.n;
    fflush(c->out);
    int width = terminal_width(c->err);
    char *text = NULL;
    size_t n = 0;
    bool ascii = terminal_is_ascii(c->err);
    FILE *f = width || ascii ? open_memstream(&text, &n) : NULL;
    diags_print_fit(&shown, f ? f : c->err, c->color_err, width);
    if (f && fclose(f) == 0) {
        const char *s = width ? table_fold(text, width, c->arena) : text;
        fputs(ascii ? ascii_text(s, c->arena) : s, c->err);
    }
    free(text);
}

/* ---- results ---- */
/* Whatever a command has put together since the last call: what is hostile in it is shown, never
 * sent. Our own colours are added behind it. Pictures and JSON have escapes of their own. */
static void tame(Cli *c) {
    assert(c->tamed <= c->text.n);
    static const char *const own[] = {"json", "jsonl", "chrome", "html", "sarif", "gitlab", NULL};
    bool escaped = c->command && c->command->bit == C_DRAW;
    for (int i = 0; own[i] && c->format; i++) escaped |= strcmp(c->format, own[i]) == 0;
    const char *s = c->text.s + c->tamed,
               *t = escaped ? s : text_visible_lines(c->arena, s, c->text.n - c->tamed);
    if (t != s) {
        c->text.n = c->tamed;
        str_add(&c->text, t);
    }
    c->tamed = c->text.n;
}
/* What was put together has been written, or is not wanted. */
void cli_forget(Cli *c) { c->text.n = c->tamed = 0; }
bool cli_on_gpus(const Cli *c) { return c->o.cuda && strcmp(c->o.cuda, "virtual") != 0; }
bool cli_processes(const Cli *c) { return c->o.mpi || cli_on_gpus(c); }
bool cli_greet(Cli *c, const char *task) { return !c->ranks || ranks_greet(c->ranks, c->d, task); }
static void write_result(Cli *c, const char *text, size_t n) {
    errno = 0;
    if (c->gone || !n || (fwrite(text, 1, n, c->out) == n && fflush(c->out) == 0)) return;
    /* whoever closed the pipe has read enough; anything else is a lost result */
    if (errno != EPIPE)
        diag_error(c->d, "E0105", diag_nowhere, NULL, "the standard output cannot be written: %s",
                   strerror(errno));
    c->gone = true;
}
void cli_flush(Cli *c) {
    if (c->o.output || !c->text.n) return; /* -o: at the end */
    const Command *k = c->command;
    bool folds = c->look.width && k && k->bit != C_DRAW && !c->o.help &&
                 strcmp(c->format, "text") == 0; /* a picture is none the better for it */
    tame(c);
    const char *s = folds ? table_fold(c->text.s, c->look.width, c->arena) : c->text.s;
    bool words = !c->format || strcmp(c->format, "text") == 0,
         ascii = words && terminal_is_ascii(c->out);
    if (ascii) s = ascii_text(s, c->arena);
    write_result(c, s, folds || ascii ? strlen(s) : c->text.n);
    cli_forget(c);
    c->text.s[0] = 0;
}
void cli_write_output(Cli *c) {
    bool folder = c->command && c->command->bit == C_RUN;
    if (c->o.output && !folder && c->text.n && !c->silent) {
        tame(c);
        file_write(c->d, c->o.output, c->text.s, c->text.n);
    } else {
        c->o.output = NULL; /* run: its report goes to `out` */
        cli_flush(c);
    }
}
void cli_table(Cli *c, const Table *t) {
    if (strcmp(c->format, "json") == 0) {
        document_table(c, t, NULL, NULL);
        return;
    }
    tame(c);
    str_add(&c->text, table_render(t, c->format, c->look, c->arena));
    c->tamed = c->text.n;
}
void cli_wrapped(Cli *c, const char *text, int indent) {
    int width = c->look.width > 0 && c->look.width < 80 ? c->look.width : 80;
    str_add(&c->text, table_wrap(text, width, indent, c->arena));
    str_add(&c->text, "\n");
}
void cli_paint(Cli *c, const char *code, const char *text) {
    tame(c);
    text = text_visible(c->arena, text);
    if (c->color_out && *code) str_addf(&c->text, "\033[%sm%s\033[0m", code, text);
    else str_add(&c->text, text);
    c->tamed = c->text.n;
}
/* The records of a plan that gave no trace: what is wrong with it. */
static const Trace *trace_of_errors(Cli *c, const Loaded *l) {
    Trace *t = trace_new(c->arena);
    t->plan = l->report.plan ? l->report.plan->name : l->path;
    t->verdict = "invalid";
    t->diags = l->d->item;
    t->n_diags = l->d->n;
    return t;
}
static bool has_type(const char *types, const char *type, size_t n) {
    for (const char *w = types; *w;) {
        size_t k = strcspn(w, " ");
        if (k == n && strncmp(w, type, n) == 0) return true;
        w += k + (w[k] == ' ');
    }
    return false;
}
void cli_records(Cli *c, const Loaded *l, const char *types) {
    size_t n;
    const char *s = trace_text(l->trace ? l->trace : trace_of_errors(c, l), c->arena, true, &n),
               *end = s + n;
    for (const char *line = s; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)),
                   *type = strstr(line, "\"type\":\"") + 8;
        if (!types || has_type(types, type, strcspn(type, "\"")))
            str_addn(&c->text, line, (size_t)(stop + 1 - line));
        line = stop + 1;
    }
}

/* ---- plans and traces ---- */
PipelineOptions cli_pipeline(const Cli *c) {
    const CliOptions *o = &c->o;
    const char *how = o->check ? o->check : "full";
    return (PipelineOptions){
        .check = how[0] == 'q'   ? CHECK_QUICK
                 : how[0] == 'a' ? CHECK_AUTO
                                 : CHECK_FULL,
        .end_to_end = o->end_to_end,
        .no_end_to_end = o->no_end_to_end,
        .strict = o->strict,
        .full = o->full,
        .sensitivity = o->sensitivity,
        .rank = o->rank,
        .exact = o->exact ? 8 : 0,
        .threads = o->threads > 1 << 20 ? 1 << 20 : (int)o->threads,
        .hardware = o->hardware,
        .fault = o->fault,
        .against = o->against,
        .map = o->map,
        .against_of = o->against_rank + 1,
        .tolerance = o->tolerance,
        .save_values = c->silent ? NULL : o->save_values,
        .dump = o->dump,
        .ranks = c->ranks,
    };
}
/* A JSON object whose first line has a schema is a trace; a plan in JSON has none. */
bool cli_looks_like_trace(const char *s, size_t n) {
    if (n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0) s += 3, n -= 3;
    while (n && *s && strchr(" \t\r\n", *s)) s++, n--;
    const char *end = n ? memchr(s, '\n', n) : NULL;
    size_t line = end ? (size_t)(end - s) : n;
    const char *schema = n && *s == '{' ? strstr(s, "\"schema\"") : NULL;
    return schema && schema < s + line;
}
/* Plans have their own limit: only what begins like a trace is read further. */
static size_t larger_limit(const char *head, size_t n) {
    return cli_looks_like_trace(head, n) ? INPUT_BYTES : 0;
}
/* An unknown key in --set is wrong usage, not a wrong plan. */
int cli_exit_of(const Diags *d) {
    int code = diags_exit(d);
    for (int i = 0; i < d->n; i++) {
        const Diag *g = &d->item[i];
        bool set = g->severity == DIAG_ERROR && g->loc.file && strcmp(g->loc.file, "--set") == 0;
        if (set && strcmp(g->code, "E0201") == 0) code = 2;
    }
    return code;
}
/* The machine of the time model is looked up before anything runs: an unknown one would be found
 * after the work. */
static bool known_hardware(Cli *c, const PipelineOptions *o, const char *name, Loaded *l) {
    Diags *d = diags_new(c->arena);
    Plan *p = plan_parse(c->arena, d, (PlanText){name, l->text, l->n, c->o.sets, c->o.n_sets});
    /* what is wrong with the plan is said when it is run */
    if ((!o->hardware && !p->hardware) || diags_errors(d)) return true;
    if (hardware_of_plan(c->arena, d, o->hardware, p->hardware, p->dir, p->hardware_loc))
        return true;
    l->d = d;
    l->report.plan = p;
    l->exit = cli_exit_of(d);
    return false;
}
static void run_plan(Cli *c, const PipelineOptions *o, const char *name, Loaded *l) {
    if (!known_hardware(c, o, name, l)) return;
    PipelineOptions with = *o;
    char *dump = NULL; /* written like any result, so that a failure is told */
    size_t n_dump = 0;
    if (o->dump && !(with.dump_to = open_memstream(&dump, &n_dump)))
        base_die(5, "out of memory for --dump [E0701]");
    Progress progress = {0};
    ProgressLine *line = NULL;
    if (o->execute && cli_wants_progress(c))
        line = progress_line_start(c->arena, &progress, fileno(c->err), c->plan_at, c->plan_of);
    if (line) with.progress = &progress;
    l->trace = pipeline_run(c->arena, l->d, (PlanText){name, l->text, l->n, c->o.sets, c->o.n_sets},
                            &with, &l->report);
    progress_line_end(line);
    if (with.dump_to && fclose(with.dump_to) != 0) base_die(5, "out of memory for --dump [E0701]");
    const char *seen = dump ? text_visible_lines(c->arena, dump, n_dump) : "";
    write_result(c, seen, seen == dump ? n_dump : strlen(seen));
    free(dump);
    l->exit = l->trace ? l->report.exit : 0;
    int found = cli_exit_of(l->d);
    if (!l->trace) l->exit = found ? found : 70;
    if (found == 2) {
        l->exit = 2;
        l->refused = true;
        l->trace = NULL;
    }
}
bool cli_load(Cli *c, const char *path, const PipelineOptions *o, bool plan_only, Loaded *l) {
    *l = (Loaded){.path = path, .d = diags_new(c->arena)};
    FileLimit limit = {CLI_PLAN_BYTES, plan_only ? NULL : larger_limit};
    l->text = file_read_larger(c->arena, l->d, path, limit, diag_nowhere, &l->n);
    if (!l->text) {
        shipped_suggest(c->arena, path, l->d);
        l->exit = diags_exit(l->d);
        return false;
    }
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    l->is_trace = cli_looks_like_trace(l->text, l->n);
    if (l->is_trace && plan_only) {
        diag_error(l->d, "E0104", ((Loc){name, 1, 1}),
                   "draw, shapes, params, comms, explain and diff read traces",
                   "`%s` wants a plan, and this is a trace", c->command->name);
        l->exit = 3;
        return false;
    }
    if (!l->is_trace && !cli_import(c, l, &name)) return false;
    if (!files_check(c, l)) {
        l->exit = cli_exit_of(c->d);
        l->refused = true;
        return false;
    }
    if (l->is_trace) {
        l->trace = trace_read(c->arena, l->d, name, l->text, l->n);
        l->exit = diags_exit(l->d);
    } else {
        run_plan(c, o, name, l);
    }
    return l->trace != NULL;
}
bool cli_idle_options(const Cli *c, Loaded *l) {
    if (!l->is_trace || !c->o.of_plan) return false;
    diag_error(l->d, "E0212", diag_nowhere,
               arena_printf(c->arena, "give the plan, or leave --%s out", c->o.of_plan),
               "--%s says how a plan is run, and '%s' is the trace of a run", c->o.of_plan,
               l->path);
    l->exit = 2;
    l->refused = true;
    return true;
}

/* ---- main without the process ---- */
