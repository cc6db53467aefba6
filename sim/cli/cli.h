/* The command line: options, subcommands, and what all commands share (loading a plan or trace,
 * writing a result). Results go to `out`, everything else to `err`. cli_main is main() without the
 * process: tests call it. */
#ifndef SP_CLI_CLI_H
#define SP_CLI_CLI_H
#include "cli/table.h"
#include "drive/pipeline.h"
#include "render/render.h"
#include "trace/trace_same.h"
#include <stdio.h>
#include <string.h>

#ifdef SHARDPROOF_VERSION /* by the Makefile */
#define CLI_VERSION SHARDPROOF_VERSION
#else
#define CLI_VERSION "0.1.0"
#endif
enum { CLI_MAX_SETS = 64, CLI_PLAN_BYTES = 1 << 20 };

/* Bits of commands, for the table of options. */
enum {
    C_RUN = 1 << 0,
    C_CHECK = 1 << 1,
    C_SHAPES = 1 << 2,
    C_PARAMS = 1 << 3,
    C_COMMS = 1 << 4,
    C_EXPLAIN = 1 << 5,
    C_DRAW = 1 << 6,
    C_DIFF = 1 << 8,
    C_LIST = 1 << 9,
    C_COMPLETION = 1 << 10,
    C_IMPORT = 1 << 11,
    C_EXPORT = 1 << 12,
    C_CALIBRATE = 1 << 13,
    C_TIMES = 1 << 14,
};

/* What the command line said. */
typedef struct {
    const char *output, *format, *trace, *dump, *hardware, *fault, *save_values;
    const char *against, *beside, *map, *view, *theme, *preset, *part, *pass;
    const char *color, *fail_on, *check;
    const char *model, *config, *mesh, *args, *tp_plan, *ep_plan, *hf_version,
        *names;     /* of files of frameworks */
    const char *to; /* export: the framework */
    const char *quiz;
    const char *notation;
    const char *of_plan;          /* the first of the given options that says how a plan is run */
    const char *of_import;        /* the same of those for a framework's own file */
    int64_t tp, ep, against_rank; /* -1: none */
    bool loss_parallel, full;
    double tolerance, deadline;
    const char *sum;  /* of --mpi and --cuda: declared or engine */
    const char *cuda; /* where the ranks compute: ranks, each on its GPU; virtual, on one; NULL: on
                         the host */
    int64_t rank, threads, seed, layer, width, page;
    bool quiet, verbose, strict, sensitivity, end_to_end, no_end_to_end, exact, update_expect,
        statically, mpi, hooks, measured, build, pairs, each, help, version;
    int n_sets;
    PlanSet sets[CLI_MAX_SETS];
    int n_operands;
    const char **operands;
} CliOptions;

typedef struct Cli Cli;
typedef struct {
    const char *name;
    int bit;
    const char *operands; /* "PLAN NAME" */
    int min, max;         /* operands */
    const char *formats;  /* "text json", first is the default */
    const char *what;     /* one line */
    const char *examples; /* lines for --help */
    int (*run)(Cli *c);   /* gives the exit code */
} Command;
/* All of them (commands.c). What works on the table finds it in Cli: it is a command itself. */
extern const Command cli_commands[];
extern const int n_cli_commands;

struct Cli {
    Arena *arena;
    FILE *out, *err;
    Diags *d; /* of the command line and of outputs; plans have their own */
    const Command *commands;
    int n_commands;
    CliOptions o;
    const Command *command;
    const char *format; /* chosen or default */
    bool color_out, color_err;
    TableLook look;
    Str text;     /* the result so far, written by cli_flush */
    size_t tamed; /* bytes of it that hold nothing hostile any more, but may hold our own colours */
    Diags *left_out;       /* check: notes of what its folders and patterns leave out; a note's
                              file is the first such; NULL: nothing is */
    int plan_at, plan_of;  /* check: which plan of how many; 0: there is one */
    struct Ranks *ranks;   /* --mpi, --cuda: the processes; NULL: this one is alone */
    struct Device *device; /* --cuda: where the ranks compute; NULL: on the host */
    bool silent;           /* one of them, and not rank 0: it says and writes nothing */
    bool gone;             /* the reader of `out` closed it: end quietly */
};

/* The whole program (entry.c): returns the exit code. */
int cli_main(int argc, char **argv, FILE *out, FILE *err);

/* ---- options.c ---- */
/* Reads argv into c->o and finds the command (NULL: none, for --help and --version). Errors (E0212)
 * go to c->d. */
void options_parse(Cli *c, int argc, char **argv);
void options_help(const Cli *c, Str *out); /* of c->command, or of the program */
/* What completion needs of a row of the table of options. */
typedef struct {
    const char *name, *arg;   /* arg NULL: takes none */
    char letter;              /* 0: none */
    int commands;             /* bits */
    const char *what, *words; /* words NULL: any */
} OptionRow;
/* All rows, *n of them, in the arena. */
const OptionRow *options_rows(Arena *arena, int *n);
/* The options of a command as "--name ARG" and what they do, for tests of the manual.
 * NULL-terminated names. */
const char *const *options_names(Arena *arena);

/* ---- what commands share (cli.c) ---- */
typedef struct {
    const char *path;
    const char *text; /* of the file */
    size_t n;
    Diags *d;      /* what was found in it */
    Trace *trace;  /* NULL: not understood */
    bool is_trace; /* was a trace, not a plan */
    PipelineReport report;
    int exit;     /* what it asks for so far */
    int above;    /* a plan that held fails by so many notes and warnings (--fail-on) */
    bool refused; /* not run: the command line, or an output it names, is at fault */
} Loaded;
/* A framework's own file becomes the text of a plan under another name, and what is said of it is
 * said of the file; any other file stays as it is. False: it cannot be said, errors are in l->d. */
bool cli_import(Cli *c, Loaded *l, const char **name);
/* Is a file of these bytes a trace? Its beginning says so. */
bool cli_looks_like_trace(const char *s, size_t n);
/* Pipeline options from the command line; nothing is executed unless the caller says so. */
PipelineOptions cli_pipeline(const Cli *c);
/* Reads a plan or a trace (recognised by its content; a plan is run with `o`). True if there is a
 * trace to work with.
 */
bool cli_load(Cli *c, const char *path, const PipelineOptions *o, bool plan_only, Loaded *l);
/* Did options that say how a plan is run meet nothing but a trace, which is a run already? Then
 * E0212 is in l->d. */
bool cli_idle_options(const Cli *c, Loaded *l);
/* Prints the diagnostics of a file: errors always, warnings unless -q, notes with `notes` and
 * unless -q. */
void cli_diagnostics(Cli *c, const Diags *d, bool notes);
/* Is there somebody who looks at a line of progress? Not in a log, not under CI, not beside machine
 * output on the same terminal. */
bool cli_wants_progress(const Cli *c);
/* The more important of two exit codes: the first of 2, 70, 5, 4, 3, 1, 0. */
int cli_worse(int a, int b);
/* Writes c->text to `out`, or at the end of the command to -o, and empties it. */
void cli_flush(Cli *c);
/* The end of a command: c->text goes to -o, if there is one. */
void cli_write_output(Cli *c);
/* Empties c->text. */
void cli_forget(Cli *c);
/* Is this the only process, or are all of them about to do the same, `task` ("check of 2 plans")?
 * If not, E0606 is in c->d. */
bool cli_greet(Cli *c, const char *task);
/* Is each rank a process with a GPU of its own (--cuda)? A process at all (--mpi, too)? */
bool cli_on_gpus(const Cli *c);
bool cli_processes(const Cli *c);
/* Exit code that the diagnostics ask for: 0 if none is an error. */
int cli_exit_of(const Diags *d);
/* Lines of the trace's text whose records are of one of the types ("param value", NULL: of all),
 * into c->text; of a plan that gave no trace its diagnostics. */
void cli_records(Cli *c, const Loaded *l, const char *types);
/* A table in c->format into c->text. */
void cli_table(Cli *c, const Table *t);
/* A paragraph into c->text, each line indented, at most 80 columns or what the terminal has. */
void cli_wrapped(Cli *c, const char *text, int indent);
/* Text with colour if the result is coloured: code as in "1;31". */
void cli_paint(Cli *c, const char *code, const char *text);

/* ---- commands ---- */
/* Each works on c->o and its operands, writes its result to c->text or a file, and returns the exit
 * code; what is wrong goes to c->d. */
/* --cuda: the GPU that all plans of this command run on, or this process's one of several. False:
 * there is none, E0601 is in c->d; of several processes none goes on then. cli_close_gpu gives it
 * back. */
bool cli_open_gpu(Cli *c);
void cli_close_gpu(Cli *c);
int cmd_run(Cli *c);
int cmd_check(Cli *c);
int cmd_calibrate(Cli *c);
int cmd_shapes(Cli *c);
int cmd_params(Cli *c);
int cmd_comms(Cli *c);
int cmd_times(Cli *c);
int cmd_explain(Cli *c);
int cmd_draw(Cli *c);
int cmd_diff(Cli *c);
int cmd_list(Cli *c);
int cmd_completion(Cli *c);
int cmd_import(Cli *c);
int cmd_names(Cli *c); /* import --names */
int cmd_export(Cli *c);

/* ---- tables of a trace (tables.c) ---- */
/* People see what is alike once, except with -v; programs always see all. */
static inline bool cli_folds(const Cli *c) {
    return !c->o.verbose && (!strcmp(c->format, "text") || !strcmp(c->format, "md"));
}
/* As `shapes`, `params`, `comms`, `times` and `diff` (of two traces) print them; in c->arena. */
Table table_shapes(const Cli *c, const Trace *t);
Table table_params(const Cli *c, const Trace *t);
Table table_comms(const Cli *c, const Trace *t);
Table table_times(const Cli *c, const Trace *t); /* times.c */
/* `brief`: where layers lie in a pipeline has rows of its own, not a place in each row. */
Table table_diff(const Cli *c, const Trace *a, const Trace *b, bool brief);
/* A row for records that differ where the tables say the same. */
void table_diff_record(Table *t, const TraceApart *x);
/* What counts of it, in a sentence: bytes sent, memory, verdicts. */
const char *table_diff_verdict(const Trace *a, const Trace *b, Arena *arena);
/* "tp: shard(0), dp: replicate" */
const char *table_places(const TraceShape *s, Arena *arena);

/* ---- folders and patterns as operands (folders.c) ---- */
/* Each operand that is a folder becomes the plans in it, and each pattern the files that it
 * matches; E0101 into c->d for one without any. */
void folders_expand(Cli *c);

/* ---- reports of a run (summary.c) ---- */
/* One line: "equivalent, 41 values checked, worst ...". */
const char *summary_line(const Trace *t, const Loaded *l, Arena *arena);
/* The first check that failed; where none did and the run is strict, the first suspect one. NULL:
 * neither. And its likely cause, NULL if there is none. */
const TraceCheck *summary_failure(const Trace *t, bool strict);
const char *summary_cause(const Trace *t, bool strict);
/* First wrong value, ranks, axis, plan line, likely cause, error per rank; empty if nothing failed.
 */
void summary_head(Cli *c, const Loaded *l, const char *indent);
/* The short report of `run`. */
void summary_report(Cli *c, const Loaded *l, const char *const *files, int n_files);
/* Rows of --against as a table. */
void summary_against(Cli *c, const Loaded *l);
/* Steps that the static check found wrong (level 0). They are in no total and decide no verdict:
 * numbers do. */
int summary_structure(const Trace *t);
/* Was the plan held by rules and structure alone, without a number? */
bool summary_unexecuted(const Trace *t);
/* "12 equal, 1 different, 3 only in the file"; NULL without --against. */
const char *summary_against_line(const Trace *t, Arena *arena);

/* ---- what nobody declared (undeclared.c) ---- */
/* Is this one of the sums that the verdict lists as undeclared? */
bool undeclared_collective(const Trace *t, const TraceCollective *c);
/* "if somebody sums these 3 gradients over tp: A, B, C; and makes this move: D, no line of the plan
 * does", with at most `names` names for each; with none, shorter. NULL: every sum is declared, and
 * every move asked for. */
const char *undeclared_text(const Trace *t, int names, Arena *arena);

/* ---- formats of `check` for other tools (findings.c) ---- */
typedef struct {
    const char *code, *message, *file;
    int line, col;
    Severity severity;
    bool meant; /* the plan says that it comes */
} Finding;
typedef struct {
    const char *plan;
    const char *against;    /* what came of --against, in a line; or NULL */
    const char *unexecuted; /* that no number was looked at, unasked; NULL: as it was asked for */
    int exit, n, cap;
    Severity fails; /* the mildest severity that makes the plan fail (--fail-on) */
    double seconds; /* that its check took */
    bool held;      /* nothing else does: its errors are those that it expects */
    Finding *f;
} PlanFindings;
/* The diagnostics of a plan and its first failed check, copied. */
PlanFindings findings_collect(const Loaded *l, bool strict, Severity fails, Arena *into);
/* A note of no plan (N0022): the path that it is about stands for one. */
PlanFindings findings_beside(const Diag *d, Severity fails, Arena *into);
/* All plans in c->format, if it is junit, sarif, github or gitlab. */
void findings_write(Cli *c, const PlanFindings *p, int n);

/* ---- JSON documents (document.c, document_run.c) ---- */
/* One object for each command, with its schema, the command and its operands first;
 * docs/shardproof.schema.json says what each holds, and tests hold it to that. */
/* A table as a document into c->text: its rows under `rows`, and under `diagnostics` what was found
 * in the one or two files that it is of. `t` NULL: no rows, as there is nothing to show; `a`, `b`
 * NULL: no file. */
void document_table(Cli *c, const Table *t, const Diags *a, const Diags *b);
/* The same with the rows of a second table under `key`. */
typedef struct {
    const char *key;
    const Table *table;
} Beside;
void document_tables(Cli *c, const Table *t, Beside beside, const Diags *a, const Diags *b);
/* The document of `run` into c->text: verdict, diagnostics, time, memory, collectives, shapes, and
 * the `n` names of the files that it wrote. The plan may have given no trace. */
void document_run(Cli *c, const Loaded *l, const char *const *files, int n);
/* What `check` says of one plan, an object in `into`: the same without shapes and files. */
const char *document_plan(const Cli *c, const Loaded *l, Arena *into);
/* The document of `check` into c->text: the objects of its n plans, in their order. */
void document_check(Cli *c, const char *const *plan, int n, int failed);

/* The document of `draw --format json` into c->text: what the view shows, an object; NULL: there is
 * nothing. `t` NULL: the plan gave no trace. */
void document_figure(Cli *c, const Trace *t, const char *view, const char *figure, const Diags *d);

/* ---- check --update-expect (update.c) ---- */
/* Writes the `expect` section of the plan file from the run; all else in the file stays. False, and
 * mostly a diagnostic in c->d, if the file stays as it is: what was found is not the plan's doing,
 * or the section cannot be rewritten. */
bool update_expect(Cli *c, const Loaded *l);
#endif
