/* shapes, params, comms, times, diff, draw, report and list: what a plan or a trace says, without
 * executing anything (a picture of errors excepted). */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/shipped.h"
#include "cli/words.h"
#include "cli/find.h"
#include "cli/fold.h"
#include "cli/part.h"
#include "cli/rows.h"
#include "cli/sweep.h"
#include "cost/cost.h"
#include "lower/program.h"
#include "model/model.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one plan or trace as a table ---- */
/* What was loaded for a command that shows; prints what was found. NULL: nothing to show, and
 * l->exit says why. */
static const Trace *show_loaded(Cli *c, bool ok, Loaded *l) {
    cli_diagnostics(c, l->d, false);
    if (ok && c->o.rank >= l->trace->ranks) {
        diag_error(c->d, "E0212", diag_nowhere, "ranks count from 0",
                   "--rank %lld: the mesh has %lld rank%s", (long long)c->o.rank,
                   (long long)l->trace->ranks, l->trace->ranks == 1 ? "" : "s");
        return NULL;
    }
    if (ok && c->o.trace) trace_write(l->trace, c->d, c->o.trace);
    /* a plan that says itself that it is wrong may be looked at like any other */
    const Plan *p = l->report.plan;
    if (ok && l->exit == 1 && p && p->expect.set &&
        (p->expect.equivalent == 0 || p->expect.has_diagnostics))
        l->exit = 0;
    return ok ? l->trace : NULL;
}
static const Trace *load_shown(Cli *c, const char *path, const PipelineOptions *o, Loaded *l) {
    return show_loaded(c, cli_load(c, path, o, false, l) && !cli_idle_options(c, l), l);
}
/* People see layers and stages that are alike once, except with -v; programs always see all.
 * `t`: NULL for rows of two traces. */
static void show_folded(Cli *c, const Table *table, const Trace *t) {
    Table folded = *table;
    if (cli_folds(c)) folded = t ? fold_table(table, t) : fold_layers(table);
    cli_table(c, &folded);
}
/* `records` are the types of trace records that say the same in jsonl. */
typedef Table (*MakeTable)(const Cli *c, const Trace *t);
/* What a document has beside its rows: of collectives, what became of the rows of experts. */
static void show_document(Cli *c, const Trace *t, const Table *rows, const Diags *d) {
    Beside beside = {0};
    Table dispatches = {0};
    if (t && c->command->bit == C_COMMS) {
        dispatches = rows_dispatches(c->arena, t);
        beside = (Beside){"dispatches", &dispatches};
    }
    document_tables(c, t ? rows : NULL, beside, d, NULL);
}
static int show(Cli *c, MakeTable make, const char *records) {
    PipelineOptions o = cli_pipeline(c);
    o.events = c->command->bit == C_TIMES;
    Loaded l;
    const Trace *t = load_shown(c, c->o.operands[0], &o, &l);
    if (strcmp(c->format, "jsonl") == 0 && !l.refused) {
        cli_records(c, &l, records);
        return l.exit;
    }
    Table table = t ? make(c, t) : (Table){0};
    if (strcmp(c->format, "json") == 0 && !l.refused) show_document(c, t, &table, l.d);
    else if (t) show_folded(c, &table, t);
    return l.exit;
}
int cmd_shapes(Cli *c) { return show(c, table_shapes, "value compute collective move diagnostic"); }
int cmd_params(Cli *c) { return show(c, table_params, "param diagnostic"); }
int cmd_times(Cli *c) { return show(c, table_times, "event measured diagnostic"); }
static Table table_pairs(const Cli *c, const Trace *t) {
    return pairs_table(c->arena, t, c->o.rank);
}
int cmd_comms(Cli *c) {
    if (!c->o.pairs) return show(c, table_comms, "collective exchange routed diagnostic");
    if (strcmp(c->format, "text")) return show(c, table_pairs, "exchange routed diagnostic");
    PipelineOptions o = cli_pipeline(c);
    Loaded l;
    const Trace *t = load_shown(c, c->o.operands[0], &o, &l);
    if (t) pairs_text(&c->text, c->arena, t, c->o.rank, c->look.width);
    return l.exit;
}

/* ---- draw ---- */
typedef struct {
    const char *name;
    RenderFormat format;
    bool binary;
} Format;
static const Format draw_formats[] = {
    {"text", FORMAT_TEXT, false}, {"svg", FORMAT_SVG, false},       {"png", FORMAT_PNG, true},
    {"pdf", FORMAT_PDF, true},    {"chrome", FORMAT_CHROME, false}, {"json", FORMAT_JSON, false}};
/* --format, else the name of the output, else text. */
static bool choose_format(Cli *c, const Format **f) {
    RenderFormat by_name = FORMAT_TEXT;
    bool named = c->o.output && strcmp(c->o.output, "-") != 0;
    struct stat st;
    if (named && stat(c->o.output, &st) == 0 && S_ISDIR(st.st_mode)) {
        diag_error(c->d, "E0105", diag_nowhere,
                   arena_printf(c->arena, "name a file in it: -o %s/block.svg", c->o.output),
                   "'%s' is a folder", c->o.output);
        return false;
    }
    if (!c->o.format && named && !render_format(c->o.output, &by_name)) {
        diag_error(c->d, "E0212", diag_nowhere, "say --format svg, png, pdf, text, json or chrome",
                   "the name '%s' does not say a format", c->o.output);
        return false;
    }
    for (size_t i = 0; i < sizeof draw_formats / sizeof *draw_formats; i++)
        if (c->o.format ? strcmp(draw_formats[i].name, c->o.format) == 0
                        : draw_formats[i].format == by_name)
            *f = &draw_formats[i];
    return true;
}
/* Chrome's format has the timeline only, and some views are data as JSON: a file of another view
 * would not be what was asked for. */
static bool data_fits(Cli *c, const RenderView *view, const Format *f) {
    int n;
    const RenderView *views = render_views(&n);
    unsigned wanted = f->format == FORMAT_JSON                  ? VIEW_JSON
                      : f->format == FORMAT_CHROME && c->o.view ? VIEW_CHROME
                                                                : 0;
    if (!(wanted & ~view->asks)) return true;
    Str who = str_new(c->arena);
    for (int i = 0; i < n; i++)
        if (views[i].asks & wanted) str_addf(&who, "%s%s", who.n ? ", " : "", views[i].name);
    diag_error(c->d, "E0212", diag_nowhere,
               "what a run holds as one JSON object: `run --format json`; tables: shapes, comms",
               "view '%s' has no %s, these have: %s", view->name,
               f->format == FORMAT_JSON ? "JSON" : "Chrome trace", who.s);
    return false;
}
static const RenderView *known_view(Cli *c) {
    int n;
    const RenderView *views = render_views(&n);
    const char **names = ARENA_ARRAY(c->arena, const char *, n + 1);
    for (int i = 0; i < n; i++) {
        if (!c->o.view || strcmp(views[i].name, c->o.view) == 0) return &views[i];
        names[i] = views[i].name;
    }
    const char *near = diag_nearest(c->o.view, names);
    diag_error(c->d, "E0212", diag_nowhere,
               near ? arena_printf(c->arena, "did you mean '%s'?", near)
                    : "`shardproof list views` prints them",
               "unknown view '%s'", c->o.view);
    return NULL;
}
/* Options that say how a plan is run, or what stands beside it, are for the views that show it: a
 * picture without would let its reader believe in them. */
static bool run_options_fit(Cli *c, const RenderView *view, const Format *f) {
    const CliOptions *o = &c->o;
    const struct {
        bool given;
        unsigned asks;
        const char *name;
    } rows[] = {{o->beside != NULL, VIEW_BESIDE | VIEW_SEVERAL, "beside"},
                {o->hardware && f->format != FORMAT_CHROME, VIEW_TIMES, "hardware"},
                {o->threads > 0, VIEW_RUN | VIEW_SAMPLES, "threads"},
                {o->seed >= 0, VIEW_RUN | VIEW_SAMPLES, "seed"}};
    int n;
    const RenderView *views = render_views(&n);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (!rows[r].given || view->asks & rows[r].asks) continue;
        Str who = str_new(c->arena);
        for (int i = 0; i < n; i++)
            if (views[i].asks & rows[r].asks)
                str_addf(&who, "%s%s", who.n ? ", " : "", views[i].name);
        diag_error(c->d, "E0212", diag_nowhere,
                   arena_printf(c->arena, "add --view %s, or leave it out", who.s),
                   "--%s belongs to the view %s, and this is '%s'", rows[r].name, who.s,
                   view->name);
        return false;
    }
    return true;
}
/* Options of pictures mean nothing to text, and --width means something to a PNG only. */
static bool picture_options(Cli *c, const Format *f) {
    bool words = f->format == FORMAT_TEXT || f->format == FORMAT_CHROME || f->format == FORMAT_JSON;
    const char *given = c->o.preset  ? "preset"
                        : c->o.theme ? "theme"
                        : c->o.page  ? "page"
                        : c->o.build ? "build"
                        : c->o.quiz  ? "quiz"
                                     : "width";
    if (words && (c->o.preset || c->o.theme || c->o.width || c->o.page || c->o.build || c->o.quiz))
        diag_error(c->d, "E0212", diag_nowhere, "say -o FILE.svg, .png or .pdf, or --format",
                   "--%s is for pictures, and this is %s", given,
                   f->format == FORMAT_CHROME ? "a Chrome trace" : f->name);
    else if (c->o.width && f->format != FORMAT_PNG)
        diag_error(c->d, "E0212", diag_nowhere,
                   "an SVG or PDF has no pixels; --preset chooses the page",
                   "--width is for a PNG");
    else return true;
    return false;
}
/* An SVG or a PNG is one page: says which, of how many, and how to come to the others. */
static void say_pages(const Cli *c, const Format *f, int n) {
    if (n < 2 || c->o.page || c->o.quiet || f->format == FORMAT_PDF) return;
    fprintf(c->err, "this is page 1 of %d; --page %s the other%s, a PDF has them all\n", n,
            n == 2 ? "2 draws" : arena_printf(c->arena, "2 to %d draw", n), n == 2 ? "" : "s");
}
/* The document of a figure as data. One without a figure says why to who reads on a pipe; it is no
 * file, as a picture that cannot be drawn is none. */
static void draw_data(Cli *c, const Trace *t, const char *view, const char *figure,
                      const Diags *d) {
    const bool file = c->o.output && strcmp(c->o.output, "-") != 0;
    if (figure || !file) document_figure(c, t, view, figure, d);
    else c->o.output = NULL;
}
/* `d`: what was found in the plan or trace. */
static void draw(Cli *c, const Trace *t, const Diags *d, const RenderOptions *asked,
                 const Format *f) {
    RenderOptions own = *asked, *o = &own;
    const char *path = c->o.output && strcmp(c->o.output, "-") != 0 ? c->o.output : NULL;
    size_t n = 0;
    int pages = 0;
    own.pages = &pages;
    if (!path && f->binary && isatty(fileno(c->out))) {
        diag_error(c->d, "E0212", diag_nowhere, "say -o FILE", "a %s is not for a terminal",
                   f->name);
        return;
    }
    if (!path) o->columns = c->look.width;
    if (f->format == FORMAT_JSON) {
        draw_data(c, t, o->view, render_text(t, c->d, o, f->format, c->arena, &n), d);
        return;
    }
    c->o.output = NULL; /* what is written below is written there, or to `out` */
    if (path) {
        bool drawn = render_file(t, c->d, o, f->format, path);
        if (drawn && c->o.verbose) fprintf(c->err, "%s\n", path);
        if (drawn) say_pages(c, f, pages);
        return;
    }
    const char *s = render_text(t, c->d, o, f->format, c->arena, &n);
    if (s) say_pages(c, f, pages), str_addn(&c->text, s, n);
}
/* A view that gains by a run but can do without: a plan that is too large to run here is drawn all
 * the same, and the picture says that it was not executed. */
static void forgive_limits(Loaded *l) {
    int kept = 0;
    if (!l->trace || l->is_trace || l->trace->executed) return;
    for (int i = 0; i < l->d->n; i++) {
        bool limit = false;
        for (int k = 0; k < n_diag_codes; k++)
            limit |= strcmp(diag_codes[k].code, l->d->item[i].code) == 0 && diag_codes[k].exit == 5;
        if (!limit) l->d->item[kept++] = l->d->item[i];
    }
    if (kept == l->d->n) return;
    l->d->n = kept;
    l->exit = diags_exit(l->d);
}
/* The run that the picture of errors shows beside the wrong one: that of --beside, or of the plan
 * itself without the mistakes that it plants, or that a key of it asks for. A repair that is not
 * known is not guessed. False: it was asked for and cannot be had. */
static bool find_beside(Cli *c, PipelineOptions o, const Loaded *l, const RenderView *view,
                        RenderOptions *r) {
    const Plan *p = l->report.plan;
    bool planted = p && (p->n_faults || p->n_gradients || plan_asks_wrong(p) || c->o.fault);
    Loaded right;
    bool own = planted && strcmp(l->path, "-") != 0;
    if (!(view->asks & VIEW_BESIDE) || (!c->o.beside && !own)) return true;
    o.sound = !c->o.beside;
    o.dump = NULL;
    bool ok = cli_load(c, c->o.beside ? c->o.beside : l->path, &o, false, &right);
    if (ok && right.trace->n_checks > 0 && right.trace->ranks == l->trace->ranks) {
        r->beside = right.trace;
        r->beside_planted = !c->o.beside;
        return true;
    }
    if (!c->o.beside) return true;
    cli_diagnostics(c, right.d, false);
    if (ok)
        diag_error(c->d, "E0212", diag_nowhere,
                   "it must have the same ranks, and a trace must be of an executed run",
                   "'%s' cannot stand beside '%s'", c->o.beside, l->path);
    return false;
}
/* What is said of the last `--set` is of this word of --beside. */
static void say_of_beside(Diags *d, int set, const char *word) {
    diags_source(d, "--beside", word, strlen(word));
    for (int i = 0; i < d->n; i++)
        if (plan_from_set(d->item[i].loc) && d->item[i].loc.line == set)
            d->item[i].loc = (Loc){"--beside", 1, 1};
}
/* One of the schedules beside that of the plan: the same plan with another, by its name, or a file.
 * NULL after diagnostics; *exit: with what the command ends if with nothing worse. */
static const Trace *one_schedule(Cli *c, const PipelineOptions *o, const Loaded *l,
                                 const char *word, int *exit) {
    bool name = !strpbrk(word, "./") && access(word, F_OK) != 0;
    Loaded other;
    if (name && (l->is_trace || !strcmp(l->path, "-") || c->o.n_sets == CLI_MAX_SETS)) {
        diag_error(c->d, "E0212", diag_nowhere, "name the other's file",
                   "the schedule '%s' beside a trace or a plan from standard input", word);
        return NULL;
    }
    if (name) c->o.sets[c->o.n_sets++] = (PlanSet){"pipeline.schedule", word};
    bool ok = cli_load(c, name ? l->path : word, o, false, &other);
    if (name) say_of_beside(other.d, c->o.n_sets--, word);
    bool stuck = ok && other.trace->n_stuck > 0; /* drawn all the same, and told */
    if (!ok || stuck) cli_diagnostics(c, other.d, false);
    if (!ok || stuck) *exit = cli_worse(*exit, stuck ? other.exit : 2);
    return ok ? other.trace : NULL;
}
/* "gpipe,zb-h1,other.yaml": all of them. False: one cannot be had. */
static bool find_several(Cli *c, const PipelineOptions *o, Loaded *l, RenderOptions *r) {
    for (const char *at = c->o.beside; at && *at;) {
        size_t n = strcspn(at, ",");
        if (r->n_several == VIEW_MAX_BESIDE) {
            diag_error(c->d, "E0212", diag_nowhere, NULL, "--beside: at most %d others",
                       VIEW_MAX_BESIDE);
            return false;
        }
        const Trace *t = one_schedule(c, o, l, arena_strndup(c->arena, at, n), &l->exit);
        if (!t) return false;
        r->several[r->n_several++] = t;
        at += n + (at[n] == ',');
    }
    return true;
}
int cmd_draw(Cli *c) {
    const Format *f = &draw_formats[0];
    const RenderView *view = known_view(c);
    /* the diagnostic says it */
    if (!view || !choose_format(c, &f) || !data_fits(c, view, f) || !picture_options(c, f))
        return 0;
    PipelineOptions o = cli_pipeline(c);
    bool sampled = view->asks & VIEW_SAMPLES;
    o.execute = view->asks & (VIEW_SAMPLES | VIEW_RUN);
    o.events = view->asks & VIEW_TIMES || f->format == FORMAT_CHROME;
    o.numbers = o.execute;
    o.distances = view->asks & VIEW_FAR;
    o.stuck = (view->asks & VIEW_SEVERAL) != 0;
    if (!run_options_fit(c, view, f)) return 2;
    Loaded l;
    bool ok = cli_load(c, c->o.operands[0], &o, false, &l);
    if (sampled) forgive_limits(&l);
    const Trace *t = show_loaded(c, ok && !cli_idle_options(c, &l), &l);
    if (!t && f->format == FORMAT_JSON && !l.refused) draw_data(c, NULL, view->name, NULL, l.d);
    if (!t) return l.exit;
    RenderOptions r = {.view = view->name,
                       .preset = c->o.preset,
                       .theme = c->o.theme,
                       .rank = c->o.rank,
                       .layer = c->o.layer,
                       .part = c->o.part,
                       .pass = c->o.pass,
                       .measured = c->o.measured,
                       .build = c->o.build,
                       .quiz = c->o.quiz,
                       .page = c->o.page,
                       .width_px = c->o.width > 65536 ? 65536 : (int)c->o.width};
    part_resolve(c->arena, t, view, &r);
    if (!find_beside(c, o, &l, view, &r)) return cli_worse(l.exit, 2);
    if (view->asks & VIEW_SEVERAL && !find_several(c, &o, &l, &r)) return cli_worse(l.exit, 2);
    if (view->asks & VIEW_OTHERS) r.others = sweep_others(c, &o, &l);
    sweep_watch(r.others, c);
    draw(c, t, l.d, &r, f);
    sweep_end(r.others);
    return l.exit;
}

/* ---- diff ---- */
/* The view of both plans side by side; the exit code is that of `diff` without one. */
static bool draw_two(Cli *c, const Trace *x, const Trace *y, const RenderView *view,
                     const char *difference) {
    const Format *f = &draw_formats[0];
    if (!choose_format(c, &f) || !picture_options(c, f)) return false;
    if (f->format == FORMAT_CHROME || f->format == FORMAT_JSON ||
        view->asks & (VIEW_RUN | VIEW_OTHERS)) {
        diag_error(c->d, "E0212", diag_nowhere, "block, timeline, memory, shards, mesh or overview",
                   "view '%s' as %s is of one plan", view->name, f->name);
        return false;
    }
    bool words = f->format == FORMAT_TEXT;
    RenderOptions r = {.view = view->name,
                       .preset = c->o.preset || words ? c->o.preset : "column",
                       .theme = c->o.theme,
                       .rank = -1,
                       .layer = c->o.layer,
                       .part = c->o.part,
                       .pass = c->o.pass,
                       .with = y,
                       .difference = difference,
                       .page = c->o.page,
                       .width_px = c->o.width > 65536 ? 65536 : (int)c->o.width};
    part_resolve(c->arena, x, view, &r);
    draw(c, x, NULL, &r, f);
    return true;
}
/* Two runs whose tables say the same may still part: their records are held against each other. A
 * row with the first that differ; *what says what was compared. */
static void diff_records(const Cli *c, const Trace *x, const Trace *y, Table *t,
                         const char **what) {
    *what = "";
    if (t->n_rows || !x->executed || !y->executed) return;
    TraceApart apart = trace_apart(x, y, c->arena);
    if (apart.n) {
        table_diff_record(t, &apart);
        return;
    }
    *what = apart.backends
                ? arena_printf(c->arena,
                               ": the records of %s and %s are equal once backend, "
                               "times and magnitudes are left out",
                               x->backend ? x->backend : "-", y->backend ? y->backend : "-")
                : ": the records are equal once times are left out";
}
/* Of pipelines people are told where layers lie apart from what lies there: rows of layers are then
 * alike. */
static Table diff_shown(const Cli *c, const Trace *x, const Trace *y, const Table *all) {
    bool piped = x->schedule_axis || y->schedule_axis;
    Table brief =
        piped && cli_folds(c) && all->n_rows ? table_diff(c, x, y, true) : (Table){.n_rows = 0};
    if (!brief.n_rows) return *all;
    brief.notes = all->notes;
    if (brief.n_rows < all->n_rows)
        str_add(&brief.notes, "where layers lie, and copies of a value that read alike, are told "
                              "once; -v shows all\n");
    return brief;
}
int cmd_diff(Cli *c) {
    PipelineOptions o = cli_pipeline(c);
    const RenderView *view = c->o.view ? known_view(c) : NULL;
    if (c->o.view && !view) return 2;
    if (view && !run_options_fit(c, view, &draw_formats[0])) return 2;
    o.events = view && view->asks & VIEW_TIMES;
    Loaded a, b;
    bool ok = cli_load(c, c->o.operands[0], &o, false, &a),
         ok_b = cli_load(c, c->o.operands[1], &o, false, &b);
    if (ok_b && b.is_trace) ok = ok && !cli_idle_options(c, &a); /* of one plan: they are for it */
    const Trace *x = show_loaded(c, ok, &a), *y = show_loaded(c, ok_b, &b);
    bool json = strcmp(c->format, "json") == 0 && !a.refused && !b.refused;
    if (!x || !y) {
        if (json) document_table(c, NULL, a.d, b.d);
        return cli_worse(x ? 0 : a.exit, y ? 0 : b.exit);
    }
    Table t = table_diff(c, x, y, false);
    const char *what;
    diff_records(c, x, y, &t, &what);
    const char *apart =
        t.n_rows ? arena_printf(c->arena, "%d difference%s. %s", t.n_rows, t.n_rows == 1 ? "" : "s",
                                table_diff_verdict(x, y, c->arena))
                 : arena_printf(c->arena, "no difference%s", what);
    if (view && !draw_two(c, x, y, view, apart)) return 2;
    if (view) return cli_worse(t.n_rows ? 1 : 0, cli_worse(a.exit, b.exit));
    bool text = strcmp(c->format, "text") == 0;
    if (t.n_rows) str_addf(&t.notes, "%s\n", apart);
    if (json) document_table(c, &t, a.d, b.d);
    else if (t.n_rows || !text) {
        Table shown = diff_shown(c, x, y, &t);
        show_folded(c, &shown, NULL);
    } else if (!c->o.quiet) str_addf(&c->text, "%s\n", apart);
    return cli_worse(t.n_rows ? 1 : 0, cli_worse(a.exit, b.exit));
}

/* ---- list ---- */
static Table list_two(Cli *c, const char *record, const Column *col, int n) {
    return table_new(c->arena, record, col, n);
}

static void list_models(Cli *c) {
    static const Column col[] = {
        {"name", "model", false, 0}, {"D", "D", true, 0}, {"L", "L", true, 0},
        {"H", "H", true, 0},         {"K", "K", true, 0}, {"d", "d", true, 0},
        {"F", "F", true, 0},         {"V", "V", true, 0}, {"what", "", false, COL_BELOW}};
    Table t = list_two(c, "model", col, 9);
    int n;
    const Preset *p = model_presets(&n);
    for (int i = 0; i < n; i++) {
        const int64_t size[] = {p[i].D, p[i].L, p[i].H, p[i].K, p[i].d, p[i].F, p[i].V};
        Cell *r = table_row(&t);
        r[0] = cell_text(p[i].name);
        for (int k = 0; k < 7; k++)
            if (size[k]) r[1 + k] = cell_int(c->arena, size[k]);
        r[8] = cell_text(p[i].what ? p[i].what : "");
    }
    cli_table(c, &t);
}
static void list_styles(Cli *c) {
    static const Column col[] = {{"name", "style", false, 0},
                                 {"aliases", "also called", false, COL_WRAP},
                                 {"what", "what it does", false, COL_WRAP},
                                 {"gradients", "its parameters' gradients", false, 0}};
    Table t = list_two(c, "style", col, 4);
    int n;
    const StyleRow *s = style_rows(&n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(s[i].style.name);
        r[1] = cell_text(s[i].aliases ? s[i].aliases : "");
        r[2] = cell_text(s[i].what);
        bool places = s[i].style.weight.set;
        r[3] = cell_text(!places ? "" : s[i].style.sums ? "summed" : "as they are");
    }
    cli_table(c, &t);
}
static void list_ops(Cli *c) {
    static const Column col[] = {{"name", "op", false, 0},
                                 {"label", "label", false, COL_WRAP},
                                 {"rule", "rule", false, 0},
                                 {"by", "given by", false, COL_SHORT},
                                 {"activation", "activation", false, COL_OPTIONAL | COL_DROP}};
    Table t = list_two(c, "op", col, 5);
    for (int i = 0; i < n_ops; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(op_list[i]->name);
        r[1] = cell_text(op_list[i]->label);
        r[2] = cell_text(op_list[i]->rule ? op_list[i]->rule : op_list[i]->typical);
        r[3] = op_list[i]->rule ? cell_text("op") : cell_text("node");
        r[4] = cell_text(op_list[i]->activation);
    }
    str_add(&t.notes,
            "\nnode: where the op stands in the model gives its rule; the one shown is typical\n"
            "b batch, t token, s token of the keys, d hidden size, f feed-forward size,\n"
            "v vocabulary; k key/value head, g query head of its group, x head size;\n"
            "u gate and up, e expert ([..]: rows of a list); y latent and rotated key, c r its\n"
            "parts, n unrotated part of a head; j rows of queries, keys and values in one\n"
            "weight, h a scalar.\n"
            "A letter that the result lacks is summed over (rowmax: maximum);\n"
            "! must be whole on each rank; any other letter may be cut.\n");
    cli_table(c, &t);
}
static void list_views(Cli *c) {
    static const Column col[] = {{"name", "view", false, 0},
                                 {"what", "what it shows", false, COL_WRAP}};
    Table t = list_two(c, "view", col, 2);
    int n;
    const RenderView *v = render_views(&n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(v[i].name);
        r[1] = cell_text(v[i].what);
    }
    cli_table(c, &t);
}
static void list_names(Cli *c) {
    Column *col = ARENA_ARRAY(c->arena, Column, NAMES_COUNT + 1);
    col[0] = (Column){"what", "module", false, 0};
    for (int k = 0; k < NAMES_COUNT; k++) {
        const char *scheme = plan_names_text((Names)k);
        col[k + 1] = (Column){scheme, scheme, false, COL_BELOW | COL_TITLED};
    }
    Table t = list_two(c, "names", col, NAMES_COUNT + 1);
    int n;
    const NamesRow *rows = names_table(&n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(rows[i].what);
        for (int k = 0; k < NAMES_COUNT; k++) r[k + 1] = cell_text(rows[i].name[k]);
    }
    cli_table(c, &t);
}
static void list_hardware(Cli *c) {
    static const Column col[] = {{"name", "hardware", false, 0},
                                 {"bf16", "bf16 FLOP/s", true, 0},
                                 {"f32", "f32 FLOP/s", true, 0},
                                 {"memory_bandwidth", "bytes/s", true, 0},
                                 {"intra_bandwidth", "in node", true, COL_LAST},
                                 {"inter_bandwidth", "between", true, COL_LAST},
                                 {"memory", "memory", true, 0},
                                 {"what", "", false, COL_BELOW}};
    static const char *const dirs[] = {"plans/hardware", NULL};
    Table t = list_two(c, "hardware", col, 8);
    for (const char *const *name = hardware_names(); *name; name++) {
        const Hardware *h = hardware_find(c->arena, c->d, *name, dirs, diag_nowhere);
        if (!h) continue;
        const double v[] = {h->flops_bf16, h->flops_f32, h->memory_bandwidth, h->intra_bandwidth,
                            h->inter_bandwidth};
        Cell *r = table_row(&t);
        r[0] = cell_text(h->name);
        for (int k = 0; k < 5; k++) {
            r[1 + k] = cell_real(c->arena, v[k]);
            r[1 + k].text = count_text(v[k], c->arena);
        }
        r[6] = cell_bytes(c->arena, h->memory);
        r[7] = cell_text(h->what);
    }
    cli_table(c, &t);
}
static void list_faults(Cli *c) {
    static const Column col[] = {{"name", "fault", false, 0},
                                 {"what", "what it does", false, COL_WRAP}};
    Table t = list_two(c, "fault", col, 2);
    const char *const *what, *const *names = fault_names(c->arena, &what);
    for (int i = 0; names[i]; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(names[i]);
        r[1] = cell_text(what[i]);
    }
    names = fault_edits(c->arena, &what); /* what `faults:` of a plan can do to a step */
    for (int i = 0; names[i]; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(arena_printf(c->arena, "{at: STEP, %s}", names[i]));
        r[1] = cell_text(what[i]);
    }
    cli_table(c, &t);
}
static void list_codes(Cli *c) {
    static const Column col[] = {
        {"code", "code", false, 0}, {"exit", "exit", true, 0}, {"title", "what", false, COL_WRAP}};
    Table t = list_two(c, "code", col, 3);
    for (int i = 0; i < n_diag_codes; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(diag_codes[i].code);
        r[1] = cell_int(c->arena, diag_codes[i].exit);
        r[2] = cell_text(diag_codes[i].title);
    }
    cli_table(c, &t);
}
static const struct {
    const char *name;
    void (*print)(Cli *c);
} lists[] = {{"models", list_models}, {"styles", list_styles}, {"ops", list_ops},
             {"views", list_views},   {"names", list_names},   {"hardware", list_hardware},
             {"faults", list_faults}, {"codes", list_codes},   {"recipes", list_recipes},
             {"plans", list_plans},   {"keys", list_keys},     {"placements", list_placements},
             {"terms", list_terms}};
enum { N_LISTS = sizeof lists / sizeof *lists };

int cmd_list(Cli *c) {
    const char *names[N_LISTS + 1] = {NULL};
    for (int i = 0; i < N_LISTS; i++) {
        names[i] = lists[i].name;
        if (strcmp(c->o.operands[0], lists[i].name) == 0) {
            lists[i].print(c);
            return 0;
        }
    }
    diag_error(c->d, "E0212", diag_nowhere, diag_nearest(c->o.operands[0], names),
               "`list` knows %s, not '%s'", c->command->operands, c->o.operands[0]);
    return 2;
}
