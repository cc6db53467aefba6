/* What the tests against the outside share: golden files, running a plan from its text, counting
 * what a trace says. */
#ifndef SP_TESTS_SUPPORT_H
#define SP_TESTS_SUPPORT_H
#include "drive/pipeline.h"
#include "formats/safetensors.h"
#include "formats/json.h"
#include <glob.h>
#include <time.h>

/* Absolute path of a golden file or folder, "hf/qwen3/config.json": of ../shared/golden where that
 * exists (complete), else of tests/golden (a selection). A missing one fails the test. */
const char *golden_path(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Is it there? For what the selection leaves out; a test that skips something says so. */
bool golden_has(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* True where the complete set is there. */
bool golden_complete(void);
/* Opens a golden safetensors file, parses a golden JSON file; a failure fails the test. */
SafeTensors *golden_tensors(Arena *a, const char *path);
Json *golden_json(Arena *a, const char *path);
/* All numbers of a tensor as doubles, *n of them; a missing tensor fails the test. */
const double *tensor_numbers(Arena *a, const SafeTensors *st, const char *name, int64_t *n);

/* The plan that README and manual show, word for word. */
extern const char example_plan[];

/* How many times longer a limit of time is here: SHARDPROOF_SLOW, set under sanitizers and
 * valgrind; else 1. */
int slow_machine(void);
/* A part of a test that may use `ms` of processor time: `for (Timed t = within(100); timed(&t);)
 * part;` does it, up to ten times until it once has used no more, and fails where it never has: a
 * machine that is taken from us for a while, and counts that as ours, is so in one of them. One
 * that is slower gets as much more as reading an ordinary text takes longer on it; a mistake in
 * how long something takes does not. */
typedef struct {
    double ms;
    int tries;
    clock_t start;
} Timed;
Timed within(double ms);
bool timed(Timed *t);
/* How many of `all` things a long test looks at: the first SHARDPROOF_SAMPLE of them where that is
 * set (and less); says so. */
int sample_of(int all, const char *what);
/* The same of what there is no end of: SHARDPROOF_SOAK of them where that is set (`make soak`),
 * else `ordinary`. */
int trials_of(int ordinary, const char *what);
/* Number k of n spread evenly over `all` things: for lists whose beginning is all of one kind. */
int sample_at(int k, int n, int all);

/* Plans of a folder, one after the other:
 * `for (PlanFiles f = plan_files("plans/[0-9]*.yaml", NULL); plan_files_next(&f);)`. */
typedef struct {
    Arena *a; /* of this plan, gone with the next one */
    const char *path, *text;
    int at, take, all; /* how many were taken, are to be taken, are there */
    glob_t found;
} PlanFiles;
/* Those of a pattern in which {a,b} stands for either; none fails the test. `what`, "plans": a
 * sample of them where one is asked for (sample_of); NULL: all. */
PlanFiles plan_files(const char *pattern, const char *what);
/* The next one, a failure to read it fails the test; false behind the last, and all is freed. */
bool plan_files_next(PlanFiles *f);

/* A plan of two small layers of a preset, laid out by a recipe whose lines are in that scheme. */
const char *recipe_plan(Arena *a, const char *preset, const char *recipe, const char *names,
                        const char *pass);

/* One run of a plan. */
typedef struct {
    Diags *d;
    Trace *t; /* NULL if the plan could not be understood */
    PipelineReport rep;
} PlanRun;
/* Runs `text` as the file `file` (relative paths start from its folder) without executing, or
 * executing on one thread.
 */
PlanRun plan_run(Arena *a, const char *file, const char *text, bool execute);
PlanRun plan_run_with(Arena *a, const char *file, const char *text, const PipelineOptions *o);
/* What a run that must come out right saves (--save-values), under a temporary name. */
SafeTensors *plan_values(Arena *a, const char *text, const char *file);
/* The same, and the plan must come out `equivalent` (executed) or without errors; prints the
 * diagnostics if not. */
PlanRun plan_good(Arena *a, const char *text, bool execute);
/* The whole golden model of that name under hf, backward, in f64, against its own values, and it
 * must come out equivalent: `config` is its file, `more` lines of the plan behind the mesh. */
PlanRun golden_model(Arena *a, const char *name, const char *config, const char *mesh,
                     const char *more);
/* Is that its verdict? False too where there is none: refused, not executed, no memory. */
bool run_is(const PlanRun *r, const char *verdict);
/* It must be, or the test fails there, with what the run said. */
void run_must_be_at(const PlanRun *r, const char *verdict, const char *file, int line);
#define run_must_be(r, verdict) run_must_be_at(r, verdict, __FILE__, __LINE__)
bool run_has(const PlanRun *r, const char *code);
/* The first diagnostic of that code whose message or help says so; NULL: there is none. */
const Diag *run_diag(const PlanRun *r, const char *code, const char *says);
void run_print(const PlanRun *r);
/* Diagnostics as they are printed, without colours. */
const char *diags_text(Arena *a, const Diags *d);

/* Collectives of a trace by pass, op and axis; NULL means any. The axis may be the group's name or
 * the mesh axes. */
int64_t count_collectives(const Trace *t, const char *pass, const char *op, const char *axis);
/* The first collective of op on a value, the shape of a value as it leaves its step, a parameter; a
 * missing one fails.
 */
const TraceCollective *find_collective(const Trace *t, const char *op, const char *value);
const TraceShape *find_value(const Trace *t, const char *name, bool last);
const TraceParam *find_param(const Trace *t, const char *name);
/* Local shape of a value or parameter on a rank, as text "[2, 16]". */
const char *local_text(Arena *a, const TraceShape *s, int64_t rank);
/* A file's path in a folder of this test run that is removed at its end. */
const char *temp_path(Arena *a, const char *name);
/* The bytes that a message tells behind these words: "7.08 MiB". Fails if it says no such thing. */
double bytes_behind(const char *text, const char *words);
/* One tensor of a file to be written. */
typedef struct {
    const char *name;
    int nd;
    int64_t shape[4];
    const double *x;
    const int64_t *ids; /* instead of x: an I64 tensor */
} NewTensor;
/* Writes a safetensors file of F64 (or I64) tensors and returns its path (in the temporary folder).
 */
const char *write_tensors(Arena *a, const char *name, const NewTensor *t, int n);
#endif
