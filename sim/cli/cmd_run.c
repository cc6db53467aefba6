/* run and check: execute plans, hold them against their expectations, write what was asked for.
 * Refuses to hide anything: a picture that cannot be drawn, or an expectation that fails, is in the
 * exit code. */
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/expect.h"
#include "cli/files.h"
#include "drive/gpu.h"
#include "drive/ranks.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what both do with one plan ---- */
/* --fail-on: the mildest severity that fails a plan. */
static Severity fails_from(const Cli *c) {
    for (int s = DIAG_NOTE; c->o.fail_on && s > DIAG_ERROR; s--)
        if (!strcmp(c->o.fail_on, severity_words[s])) return (Severity)s;
    return DIAG_ERROR;
}
/* Notes and warnings fail a plan which held, if the plan does not mean them. */
static void fail_on(const Cli *c, Loaded *l) {
    int n = 0;
    for (int i = 0; i < l->d->n; i++) {
        const Diag *g = &l->d->item[i];
        n += g->severity != DIAG_ERROR && g->severity <= fails_from(c) &&
             !expect_means(l->report.plan, g);
    }
    l->above = n;
    l->exit = n ? 1 : 0;
}
bool cli_open_gpu(Cli *c) {
    int at = c->ranks ? ranks_device(c->ranks) : 0;
    bool wanted = c->o.cuda && at >= 0;
    if (c->ranks && c->o.cuda) ranks_warn(c->ranks, c->d);
    if (wanted) c->device = gpu_open(c->arena, c->d, at, c->ranks ? ranks_sharing(c->ranks) : 1);
    bool here = !wanted || c->device;
    return c->ranks ? ranks_all(c->ranks, c->d, here, "open its GPU") : here;
}
void cli_close_gpu(Cli *c) {
    gpu_close(c->device);
    c->device = NULL;
}
/* Runs a plan and holds it against its expectations. */
static void run_one(Cli *c, const char *path, PipelineOptions o, Loaded *l) {
    if (c->ranks) ranks_next(c->ranks);
    o.device = c->device;
    cli_load(c, path, &o, true, l);
    gpu_notes(c->device, c->arena, l->d);
    /* it was not even read: the other processes wait for a word */
    if (c->ranks && !ranks_met(c->ranks)) ranks_meet(c->ranks, l->d, false, 0, RANKS_PLAN);
    const Plan *p = l->report.plan;
    /* without numbers the structure decides */
    if (o.structure && l->trace && !l->exit && summary_structure(l->trace)) l->exit = 1;
    if (p && !l->refused) l->exit = expect_check(p, l->trace, l->d, l->exit);
    if (p && !l->refused && !l->exit) fail_on(c, l);
    if (!l->trace) return;
    l->trace->diags = l->d->item; /* failed expectations too */
    l->trace->n_diags = l->d->n;
    if (c->o.trace && !c->silent) trace_write(l->trace, c->d, c->o.trace);
}
/* Does nobody read any more? Rank 0 is the one who knows. */
static bool is_gone(const Cli *c) {
    return c->ranks ? ranks_decide(c->ranks, c->gone) != 0 : c->gone;
}

/* ---- run ---- */
/* Draws one view into its file, of --rank where it can show one rank. A view that this trace has no
 * data for (no collectives, no times) is left out. */
static bool draw_one(Cli *c, const Trace *t, const RunFile *file) {
    Diags *d = diags_new(c->arena);
    RenderOptions o = {
        .view = file->view->name, .rank = file->view->of_rank ? c->o.rank : -1, .layer = -1};
    if (render_file(t, d, &o, file->format, file->path)) return true;
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->item[i].code, "E0211") != 0)
            diag_error(c->d, d->item[i].code, d->item[i].loc, d->item[i].hint, "%s",
                       d->item[i].message);
    return false;
}
/* The folder that a run writes to, and which folders of its path did not exist before. */
typedef struct {
    const char *path;
    char **made; /* outermost first */
    int n_made, cap_made;
} OutDir;
/* Those that are still empty go again; also from a signal handler. */
static void remove_made(void *arg) {
    const OutDir *o = arg;
    for (int i = o->n_made - 1; i >= 0; i--) rmdir(o->made[i]);
}
/* Makes the folder and tries to write there, before any work is done. */
static bool open_folder(Cli *c, const char *path, OutDir *o) {
    *o = (OutDir){.path = path};
    for (size_t i = 1, n = strlen(path); i <= n; i++) {
        if ((path[i] != '/' && path[i]) || path[i - 1] == '/') continue;
        char *part = arena_strndup(c->arena, path, i);
        if (access(part, F_OK) != 0) *ARENA_PUSH(c->arena, o->made, o->n_made, o->cap_made) = part;
    }
    base_cleanup_push(remove_made, o);
    errno = 0;
    bool made = file_make_dirs(diags_new(c->arena), path);
    int why = made ? file_try_folder(path) : errno;
    if (made && !why) return true;
    struct stat st;
    bool no_folder = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
    diag_error(c->d, "E0105", diag_nowhere, "name another folder with -o; nothing was run",
               "the output folder '%s' cannot be %s: %s", path,
               made || no_folder ? "written to" : "made",
               no_folder ? "it is a file" : strerror(why));
    return false;
}
static void close_folder(OutDir *o) {
    base_cleanup_pop(remove_made, o);
    remove_made(o);
}
/* Trace and pictures into `dir`; *n names of files that were written. */
static const char **write_files(Cli *c, const Loaded *l, const char *dir, int *n) {
    int all;
    const RunFile *f = files_of_run(c, dir, l->trace->plan, &all);
    const char **files = ARENA_ARRAY(c->arena, const char *, all + 1);
    *n = 0;
    if (!file_make_dirs(c->d, dir)) return files;
    for (int i = 0; i < all; i++) {
        bool done =
            f[i].view ? draw_one(c, l->trace, &f[i]) : trace_write(l->trace, c->d, f[i].path);
        if (done) files[(*n)++] = f[i].path;
    }
    if (c->o.trace) files[(*n)++] = c->o.trace;
    return files;
}
static void run_chrome(Cli *c, const Trace *t) {
    RenderOptions o = {.view = render_view_that(VIEW_CHROME)->name, .rank = c->o.rank, .layer = -1};
    size_t n;
    const char *s = render_text(t, c->d, &o, FORMAT_CHROME, c->arena, &n);
    if (s) str_addn(&c->text, s, n);
}
static int run_into(Cli *c, const char *dir) {
    PipelineOptions o = cli_pipeline(c);
    o.execute = o.events = o.numbers = o.distances = true;
    Loaded l;
    if (!cli_open_gpu(c)) return 5;
    run_one(c, c->o.operands[0], o, &l);
    cli_close_gpu(c);
    cli_diagnostics(c, l.d, true);
    bool jsonl = strcmp(c->format, "jsonl") == 0;
    if (jsonl && !l.refused) cli_records(c, &l, NULL);
    bool json = strcmp(c->format, "json") == 0;
    if (!l.trace) {
        if (json && !l.refused) document_run(c, &l, NULL, 0);
        return l.exit;
    }
    if (c->o.rank >= l.trace->ranks) {
        diag_error(c->d, "E0212", diag_nowhere, "ranks count from 0",
                   "--rank %lld: the mesh has %lld rank%s", (long long)c->o.rank,
                   (long long)l.trace->ranks, l.trace->ranks == 1 ? "" : "s");
        return 2;
    }
    if (c->silent) return l.exit;
    int n = 0;
    const char **files = write_files(c, &l, dir, &n);
    if (json) document_run(c, &l, files, n);
    else if (strcmp(c->format, "chrome") == 0) run_chrome(c, l.trace);
    else if (!c->o.quiet && !jsonl) summary_report(c, &l, files, n);
    return l.exit;
}
int cmd_run(Cli *c) {
    if (c->o.output && strcmp(c->o.output, "-") == 0) {
        diag_error(c->d, "E0212", diag_nowhere,
                   "--format jsonl writes the trace to standard output",
                   "`run` writes into a folder");
        return 2;
    }
    const char *dir = c->o.output ? c->o.output : "out";
    if (!cli_greet(c, "run")) return 5;
    if (c->silent) return ranks_decide(c->ranks, 0) ? 4 : run_into(c, dir);
    OutDir out;
    int code = open_folder(c, dir, &out) ? 0 : 4;
    if (c->ranks) code = ranks_decide(c->ranks, code);
    if (!code) code = run_into(c, out.path);
    close_folder(&out);
    return code;
}

/* ---- check ---- */
static const Column check_columns[] = {
    {"plan", "plan", false, 0},
    {"result", "result", false, 0},
    {"verdict", "verdict", false, 0},
    {"exit", "exit", true, 0},
    {"pass", "pass", true, 0},
    {"suspect", "suspect", true, 0},
    {"fail", "fail", true, 0},
    {"worst", "worst value", false, 0},
    {"used", "of bound", true, 0},
    {"first_wrong", "first wrong", false, COL_OPTIONAL},
    {"undeclared", "undeclared sums", true, COL_EMPTY},
    {"against", "against", false, COL_OPTIONAL},
    {"unasked", "unasked moves", true, COL_EMPTY},
    {"structure", "wrong in structure", true, COL_EMPTY},
    {"cause", "likely cause", false, COL_EMPTY | COL_BELOW | COL_TITLED},
};
/* What has to outlive the plan's arena. */
static Cell kept(Arena *a, Cell cell) {
    if (cell.text) cell.text = arena_strdup(a, cell.text);
    if (cell.plain) cell.plain = arena_strdup(a, cell.plain);
    if (cell.json) cell.json = arena_strdup(a, cell.json);
    return cell;
}
static void check_row(const Cli *c, Table *table, const Loaded *l) {
    const Trace *t = l->trace;
    Arena *a = table->arena;
    Cell *r = table_row(table);
    r[0] = cell_text(l->path);
    r[1] = cell_text(l->exit ? "FAIL" : "ok");
    r[3] = cell_int(a, l->exit);
    if (!t) return;
    r[2] = kept(a, cell_text(summary_unexecuted(t) ? "not executed" : t->verdict));
    r[4] = cell_int(a, t->n_pass);
    r[5] = cell_int(a, t->n_suspect);
    r[6] = cell_int(a, t->n_fail);
    r[7] = kept(a, cell_text(t->worst_value));
    if (t->worst_value) r[8] = cell_real(a, t->worst_used);
    r[9] = kept(a, cell_text(t->first_wrong));
    if (t->n_undeclared) r[10] = cell_int(a, t->n_undeclared);
    r[11] = cell_text(summary_against_line(t, a));
    if (t->n_unasked) r[12] = cell_int(a, t->n_unasked);
    if (summary_structure(t)) r[13] = cell_int(a, summary_structure(t));
    r[14] = kept(a, cell_text(summary_cause(t, c->o.strict)));
}
static int count_notes(const Diags *d) {
    int n = 0;
    for (int i = 0; i < d->n; i++) n += d->item[i].severity == DIAG_NOTE;
    return n;
}
/* On a terminal the notes of a single plan are shown; in a list of plans, and in a log, they are
 * counted. */
static bool shows_notes(const Cli *c) {
    int fd = fileno(c->err);
    return c->o.verbose || fails_from(c) == DIAG_NOTE ||
           (c->o.n_operands == 1 && strcmp(c->format, "text") == 0 && fd >= 0 && isatty(fd));
}
/* What a plan that holds said it would do wrong is not said again. Its notes are, and warnings that
 * it did not speak of. */
static void check_diagnostics(Cli *c, const Loaded *l) {
    const Plan *p = l->report.plan;
    Diags shown = *l->d;
    if ((!l->exit || l->above) && !c->o.verbose && p && p->expect.set) {
        shown.item = ARENA_ARRAY(c->arena, Diag, l->d->n + 1);
        shown.n = 0;
        for (int i = 0; i < l->d->n; i++) {
            const Diag *g = &l->d->item[i];
            bool news = g->severity == DIAG_WARNING && !expect_means(p, g);
            if (g->severity == DIAG_NOTE || news) shown.item[shown.n++] = *g;
        }
    }
    cli_diagnostics(c, &shown, shows_notes(c));
}
static void check_text(Cli *c, const Loaded *l, int width) {
    bool ok = l->exit == 0;
    if (ok && c->o.quiet) return;
    const Trace *t = l->trace;
    bool held = ok || l->above;
    bool expected = held && (!t || (t->verdict && strcmp(t->verdict, "equivalent") != 0) ||
                             (!t->verdict && summary_structure(t)));
    cli_paint(c, ok ? "1;32" : "1;31", ok ? "ok  " : "FAIL");
    const char *path = table_clean(l->path, 0, c->arena);
    int gap = width - table_text_width(path);
    str_addf(&c->text, "  %s%*s  %s%s", path, gap > 0 ? gap : 0, "", summary_line(t, l, c->arena),
             expected ? ", as expected" : "");
    int notes = c->o.quiet || shows_notes(c) ? 0 : count_notes(l->d);
    if (notes)
        str_addf(&c->text, " (%d note%s, -v shows %s)", notes, notes == 1 ? "" : "s",
                 notes == 1 ? "it" : "them");
    if (l->above)
        str_addf(&c->text, "; --fail-on %s: %d %s above", c->o.fail_on, l->above,
                 l->above == 1 ? "is" : "are");
    str_add(&c->text, "\n");
    if (!ok || c->o.verbose) summary_head(c, l, "      ");
    if (l->report.shrunk && c->o.verbose)
        str_addf(&c->text, "      shrunk: %s\n", l->report.shrunk);
    summary_against(c, l);
}
static void check_one(Cli *c, const char *path, PipelineOptions o, Loaded *l) {
    run_one(c, path, o, l);
    if (!c->o.update_expect || l->refused || !l->report.plan) return;
    if (!update_expect(c, l)) return;
    /* what the file says now is what the run did */
    run_one(c, path, o, l);
}
/* `unheld`: of those that did not fail, how many were not executed. */
static void check_counts(Cli *c, int n, int bad, int unheld) {
    if (n < 2 || c->o.quiet) return;
    if (bad) str_addf(&c->text, "%d of %d plans failed", bad, n);
    else str_addf(&c->text, "%d plans hold", n);
    if (unheld && bad) str_addf(&c->text, ", %d more not executed", unheld);
    else if (unheld == n) str_add(&c->text, ", none of them executed");
    else if (unheld) str_addf(&c->text, ", %d of them not executed", unheld);
    str_add(&c->text, "\n");
}
/* Does the command line, or the plan, ask for numbers? `--check auto` leaves it to the size. */
static bool wants_numbers(const CliOptions *o, const Plan *p) {
    const Expect *e = &p->expect;
    bool how = o->check && strcmp(o->check, "auto"), planted = o->fault || p->n_faults;
    return how || planted || p->n_gradients || o->strict || o->sensitivity || o->exact ||
           o->end_to_end || o->no_end_to_end || o->update_expect || o->against || o->save_values ||
           o->mpi || o->cuda ||
           (e->set && (e->equivalent >= 0 || e->first_wrong || e->has_diagnostics));
}
/* A plan that this machine cannot execute for its size is held by rules and structure, and a note
 * says so. Not where a run was asked for: by an option, or by what the plan says of values. */
static bool too_large(const Cli *c, const Loaded *l) {
    static const char *const sizes[] = {"E0701", "E0703", "E0707"};
    const Plan *p = l->report.plan;
    if (!p || l->refused || l->exit != 5 || c->o.statically || wants_numbers(&c->o, p))
        return false;
    int large = 0, other = 0;
    for (int i = 0; i < l->d->n; i++) {
        bool size = false;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            size |= !strcmp(l->d->item[i].code, sizes[k]);
        large += size;
        other += !size && l->d->item[i].severity == DIAG_ERROR;
    }
    return large && !other && l->trace;
}
static void check_statically(Cli *c, const char *path, PipelineOptions o, Loaded *l) {
    const Diag *why = l->d->item;
    while (why->severity != DIAG_ERROR) why++;
    Loaded held;
    o.execute = false;
    o.structure = true;
    run_one(c, path, o, &held);
    if (!held.trace) return;
    diag_note(held.d, "N0014", why->loc, why->hint,
              "not executed, so rules and structure were checked and no values: %s", why->message);
    held.trace->diags = held.d->item;
    held.trace->n_diags = held.d->n;
    if (!held.exit) fail_on(c, &held);
    *l = held;
}
/* What outlives each plan's arena, in the form that the format asks for. */
typedef struct {
    int width; /* of the longest name */
    Table table;
    PlanFindings *found;
    const char **document;
    int unheld; /* that did not fail, and were not executed */
} Checked;
/* Plan `at` in an arena of its own: a hundred plans need no more memory than the largest. */
static int check_plan(Cli *c, int at, Checked *r) {
    PipelineOptions o = cli_pipeline(c);
    bool json = strcmp(c->format, "json") == 0;
    Arena *all = c->arena;
    Loaded l;
    o.execute = !c->o.statically;
    o.structure = c->o.statically;
    o.events = json;
    c->arena = arena_new();
    double from = clock_seconds();
    check_one(c, c->o.operands[at], o, &l);
    if (too_large(c, &l)) check_statically(c, c->o.operands[at], o, &l);
    r->unheld += !c->o.statically && !l.exit && l.trace && summary_unexecuted(l.trace);
    check_row(c, &r->table, &l);
    r->found[at] = findings_collect(&l, c->o.strict, fails_from(c), all);
    r->found[at].seconds = clock_seconds() - from;
    r->document[at] = json ? document_plan(c, &l, all) : NULL;
    check_diagnostics(c, &l);
    if (strcmp(c->format, "text") == 0) check_text(c, &l, r->width);
    if (strcmp(c->format, "jsonl") == 0 && !l.refused) cli_records(c, &l, NULL);
    cli_flush(c);
    arena_free(c->arena);
    c->arena = all;
    return l.exit;
}
/* What folders and patterns leave out fails a gate that --fail-on makes so strict. */
static int check_left_out(Cli *c) {
    const int n = c->left_out && fails_from(c) == DIAG_NOTE ? c->left_out->n : 0;
    if (!n) return 0;
    if (!strcmp(c->format, "text")) {
        cli_paint(c, "1;31", "FAIL");
        str_addf(&c->text, "  %s left out; --fail-on note: %d %s above\n",
                 n == 1 ? c->left_out->item[0].loc.file : "files and folders are", n,
                 n == 1 ? "is" : "are");
    }
    return 1;
}
int cmd_check(Cli *c) {
    folders_expand(c);
    int n = c->o.n_operands, code = check_left_out(c), bad = 0, done = 0;
    if (!cli_greet(c, arena_printf(c->arena, "check of %d plan%s", n, n == 1 ? "" : "s"))) return 5;
    if (n > 1 && (c->o.trace || c->o.save_values)) {
        diag_error(c->d, "E0212", diag_nowhere, "run them one by one",
                   "--trace and --save-values hold one plan, not %d", n);
        return 2;
    }
    if (!cli_open_gpu(c)) return 5;
    const int n_left = c->left_out ? c->left_out->n : 0;
    Checked r = {.found = ARENA_ARRAY(c->arena, PlanFindings, n + n_left),
                 .document = ARENA_ARRAY(c->arena, const char *, n)};
    r.table = table_new(c->arena, "result", check_columns,
                        (int)(sizeof check_columns / sizeof *check_columns));
    for (int i = 0; n > 1 && i < n; i++) {
        int w = table_text_width(c->o.operands[i]);
        if (w > r.width) r.width = w;
    }
    for (; done < n && !is_gone(c); done++) {
        c->plan_at = done + 1;
        c->plan_of = n;
        int one = check_plan(c, done, &r);
        code = cli_worse(code, one);
        bad += one != 0;
    }
    cli_close_gpu(c);
    if (strcmp(c->format, "text") == 0) check_counts(c, n, bad, r.unheld);
    else if (strcmp(c->format, "json") == 0) document_check(c, r.document, done, bad);
    else if (strstr("csv md", c->format)) cli_table(c, &r.table);
    else {
        for (int i = 0; i < n_left; i++)
            r.found[n + i] = findings_beside(&c->left_out->item[i], fails_from(c), c->arena);
        findings_write(c, r.found, n + n_left);
    }
    return code;
}
