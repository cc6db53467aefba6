/* The options of the command line, and the parser that walks them and the table of commands. POSIX
 * short options, GNU long ones, "--opt value" and "--opt=value", "--" ends options, options
 * anywhere. Refuses abbreviations: what a script says must mean the same when options are added. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/notation.h"
#include "cli/terminal.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { O_FLAG, O_TEXT, O_INT, O_REAL, O_SET, O_WORD, O_WORD_OR_FIRST } OptionKind;
typedef struct {
    const char *name;
    char letter; /* 0: none */
    OptionKind kind;
    size_t at;       /* into CliOptions */
    const char *arg; /* NULL: none */
    int commands;    /* bits of commands, C_ANOTHER, C_OF_... */
    const char *what;
    const char *words; /* O_WORD: the allowed ones; O_WORD_OR_FIRST: where none follows the first */
} Option;
enum {
    C_ANOTHER =
        1 << 20, /* makes the run another than the plan's file asks for: nothing to record in it */
    C_OF_AGAINST = 1 << 21, /* says how --against compares: nothing without it */
    C_OF_MPI = 1 << 22,     /* nothing without --mpi */
    C_OF_PLAN = 1 << 23,    /* says how a plan is run: nothing to a trace */
    C_OF_IMPORT = 1 << 24,  /* says what a framework's own file does not: nothing to a plan */
    C_ALL = (1 << 15) - 1,
    C_PLANS =
        C_RUN | C_CHECK | C_SHAPES | C_PARAMS | C_COMMS | C_TIMES | C_EXPLAIN | C_DRAW | C_DIFF,
    C_RUNS = C_RUN | C_CHECK,
    C_EXECUTED = C_RUNS | C_DRAW, /* that may execute the plan */
    C_TIMED = C_RUNS | C_TIMES | C_DRAW | C_DIFF,
    C_FILES = C_PLANS | C_IMPORT | C_EXPORT, /* that take a framework's own file */
    C_RANKED = C_RUN | C_SHAPES | C_PARAMS | C_COMMS | C_TIMES | C_EXPLAIN | C_DRAW,
};
#define AT(f) offsetof(CliOptions, f)
static const Option options[] = {
    {"output", 'o', O_TEXT, AT(output), "PATH", C_ALL,
     "where the result goes: a folder for run (default out/), else a file", NULL},
    {"format", 0, O_TEXT, AT(format), "FORMAT", C_ALL,
     "how the result is written; the formats are listed above (default: as the name of -o ends)",
     NULL},
    {"view", 0, O_TEXT, AT(view), "VIEW", C_DRAW | C_DIFF, "which picture: see `list views`", NULL},
    {"theme", 0, O_WORD, AT(theme), "THEME", C_DRAW | C_DIFF, "light, dark or print",
     "light dark print"},
    {"preset", 0, O_WORD, AT(preset), "PRESET", C_DRAW | C_DIFF, "page: wide, column, slide or a4",
     "wide column slide a4"},
    {"layer", 0, O_INT, AT(layer), "N", C_DRAW | C_DIFF, "the layer to draw", NULL},
    {"part", 0, O_TEXT, AT(part), "PART", C_DRAW | C_DIFF,
     "one part: embedding, attention, mlp, moe, head, loss, weights; of a storyboard: op, value, "
     "step or ring; of shards: module; of all, the end of a name: attention.wo, o_proj",
     NULL},
    {"pass", 0, O_TEXT, AT(pass), "PASS", C_DRAW | C_DIFF, "forward or backward only", NULL},
    {"beside", 0, O_TEXT, AT(beside), "PLAN|TRACE", C_DRAW,
     "errors: a repaired plan (or its trace) to show beside it; pipeline: other schedules "
     "(gpipe,zb-h1), plans or traces on the same axis of time",
     NULL},
    {"measured", 0, O_FLAG, AT(measured), NULL, C_DRAW,
     "timeline: what a run with --mpi took, beside the model", NULL},
    {"width", 0, O_INT, AT(width), "PX", C_DRAW | C_DIFF, "width of a PNG in pixels", NULL},
    {"page", 0, O_INT, AT(page), "N", C_DRAW | C_DIFF,
     "page N of a figure of several (default: the first, in a PDF all)", NULL},
    {"build", 0, O_FLAG, AT(build), NULL, C_DRAW,
     "one step after the other: a page each in a PDF, an SVG plays", NULL},
    {"quiz", 0, O_WORD, AT(quiz), "WHAT", C_DRAW,
     "leave shapes, collectives or bytes blank, with the key on a page of its own",
     "shapes collectives bytes"},
    {"rank", 0, O_INT, AT(rank), "R", C_RANKED,
     "speak of this rank (default: all classes; pictures: the first)", NULL},
    {"notation", 0, O_WORD, AT(notation), "WHOSE", C_SHAPES | C_PARAMS,
     "how values lie in one notation: (Replicate(), Shard(0)); A[I_X, J]{U_Z}; [I/X, J]",
     NOTATIONS},
    {"hooks", 0, O_FLAG, AT(hooks), NULL, C_EXPLAIN,
     "what runs before and after each module's forward, whose hook that is, which collective",
     NULL},
    {"pairs", 0, O_FLAG, AT(pairs), NULL, C_COMMS,
     "which rank sends how many rows of experts to which, as a matrix", NULL},
    {"each", 0, O_FLAG, AT(each), NULL, C_COMMS,
     "of a step with micro-batches a row for each of them, not one for all", NULL},
    {"set", 0, O_SET, AT(sets), "KEY=VALUE", C_PLANS | C_EXPORT | C_ANOTHER | C_OF_PLAN,
     "override a key of the plan: mesh.tp=4, plan[PATTERN]=colwise", NULL},
    {"seed", 0, O_INT, AT(seed), "N", C_EXECUTED | C_ANOTHER | C_OF_PLAN,
     "the same as --set data.seed=N", NULL},
    {"fault", 0, O_TEXT, AT(fault), "NAME", C_PLANS | C_ANOTHER | C_OF_PLAN,
     "plant one more mistake of this name: see `list faults`", NULL},
    {"hardware", 0, O_TEXT, AT(hardware), "NAME", C_TIMED | C_CALIBRATE | C_ANOTHER | C_OF_PLAN,
     "the machine of the time model: see `list hardware`; calibrate --cuda: whose links to assume",
     NULL},
    {"threads", 0, O_INT, AT(threads), "N", C_EXECUTED, "worker threads; 0 (default): all cores",
     NULL},
    {"trace", 0, O_TEXT, AT(trace), "FILE", C_PLANS & ~C_DIFF,
     "also write the trace of the run (JSON Lines)", NULL},
    {"save-values", 0, O_TEXT, AT(save_values), "FILE", C_RUNS, "write all values as safetensors",
     NULL},
    {"dump", 0, O_WORD, AT(dump), "PASS", (C_PLANS & ~C_DIFF) | C_OF_PLAN,
     "print the program after this pass: lower", "lower"},
    {"against", 0, O_TEXT, AT(against), "FILE", C_RUNS | C_ANOTHER,
     "compare with another implementation's values (safetensors)", NULL},
    {"against-rank", 0, O_INT, AT(against_rank), "R", C_RUNS | C_ANOTHER | C_OF_AGAINST,
     "the file of --against is what rank R holds; a folder of rank*.safetensors says it by itself",
     NULL},
    {"map", 0, O_TEXT, AT(map), "FILE", C_RUNS | C_ANOTHER | C_OF_AGAINST,
     "YAML of `their name: our name` for --against; \"module.*\": \"*\" takes a prefix away", NULL},
    {"tolerance", 0, O_REAL, AT(tolerance), "T", C_RUNS | C_ANOTHER | C_OF_AGAINST,
     "for --against, of each tensor's largest magnitude", NULL},
    {"strict", 0, O_FLAG, AT(strict), NULL, C_RUNS | C_ANOTHER, "SUSPECT counts as a failure",
     NULL},
    {"sensitivity", 0, O_FLAG, AT(sensitivity), NULL, C_RUNS | C_ANOTHER,
     "measure the end-to-end bounds by a second unsharded run", NULL},
    {"check", 0, O_WORD, AT(check), "HOW", C_RUNS | C_ANOTHER,
     "full: every product again (default), quick: by projections, auto: by size",
     "full quick auto"},
    {"end-to-end", 0, O_FLAG, AT(end_to_end), NULL, C_RUNS | C_ANOTHER,
     "with --check quick: compare with the unsharded run too", NULL},
    {"no-end-to-end", 0, O_FLAG, AT(no_end_to_end), NULL, C_RUNS | C_ANOTHER,
     "hold every step, and do not compare with the unsharded run as well", NULL},
    {"fail-on", 0, O_WORD, AT(fail_on), "SEVERITY", C_CHECK | C_ANOTHER,
     "what makes exit 1 besides wrong values: note, warning or error (the default)",
     "note warning error"},
    {"exact", 0, O_FLAG, AT(exact), NULL, C_RUNS | C_ANOTHER,
     "also integer data, 8 seeds, equal by bits (level 3)", NULL},
    {"static", 0, O_FLAG, AT(statically), NULL, C_CHECK | C_ANOTHER,
     "rules and structure only: nothing is executed, any size is checked at once", NULL},
    {"update-expect", 0, O_FLAG, AT(update_expect), NULL, C_CHECK,
     "write the plan's `expect` section from the run", NULL},
    {"model", 0, O_TEXT, AT(model), "PRESET", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a framework's file: the model whose plan it is, see `list models`", NULL},
    {"config", 0, O_TEXT, AT(config), "FILE", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a framework's file: the config.json of the model", NULL},
    {"mesh", 0, O_TEXT, AT(mesh), "AXIS=N,...", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a framework's file: the mesh, outermost axis first, dp=2,tp=4", NULL},
    {"args", 0, O_TEXT, AT(args), "WORDS", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a script of Megatron's: what it takes from outside, and more arguments, 'TP=8 1=runs/a "
     "--vocab-size 32000'; of a Python file: 'loss_parallel=True'",
     NULL},
    {"tp", 0, O_INT, AT(tp), "N", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a config.json of Hugging Face: ranks of tensor parallelism", NULL},
    {"tp-plan", 0, O_TEXT, AT(tp_plan), "FILE", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a config.json: a table pattern -> style (JSON) over the plan that the library ships",
     NULL},
    {"ep", 0, O_INT, AT(ep), "N", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a config.json: ranks that share its experts, those of --tp", NULL},
    {"ep-plan", 0, O_TEXT, AT(ep_plan), "FILE", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a config.json or a file of names: a table for experts over its own", NULL},
    {"hf-version", 0, O_TEXT, AT(hf_version), "V", C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a table of Hugging Face: the transformers whose styles it names, 4.50 on, 5.0 to 5.19 or "
     "5.23 (the default)",
     NULL},
    {"names", 0, O_TEXT, AT(names), "FILE", C_IMPORT,
     "hf: recorded names and shapes of any model, or a folder of them; no config is needed", NULL},
    {"loss-parallel", 0, O_FLAG, AT(loss_parallel), NULL,
     C_FILES | C_ANOTHER | C_OF_IMPORT | C_OF_PLAN,
     "of a file of PyTorch: the loss runs under loss_parallel()", NULL},
    {"full", 0, O_FLAG, AT(full), NULL, C_FILES | C_ANOTHER | C_OF_PLAN,
     "sizes as they are: a plan's `shrink` is undone; of a framework's file, not those that run in "
     "seconds",
     NULL},
    {"to", 0, O_WORD, AT(to), "FRAMEWORK", C_EXPORT, "whose way of saying the plan",
     "torch hf jax megatron torchtitan"},
    {"cuda", 0, O_WORD_OR_FIRST, AT(cuda), "[HOW]", C_RUNS | C_CALIBRATE | C_ANOTHER,
     "ranks (if no word follows): a process and a GPU for each rank, through NCCL; share: ranks "
     "may "
     "share a GPU; virtual: all ranks on one (needs the plug-ins of make CUDA=1)",
     "ranks share virtual"},
    {"mpi", 0, O_FLAG, AT(mpi), NULL, C_RUNS | C_CALIBRATE | C_ANOTHER,
     "run on the processes that mpirun has started, one for each rank", NULL},
    {"sum", 0, O_WORD, AT(sum), "HOW", C_RUNS | C_ANOTHER | C_OF_MPI,
     "for --mpi and --cuda: sums in the declared order (the default), or the engine's own",
     "declared engine"},
    {"deadline", 0, O_REAL, AT(deadline), "SECONDS", C_RUNS | C_CALIBRATE | C_OF_MPI,
     "for --mpi and --cuda: a rank that is silent for so long is lost (default 60)", NULL},
    {"color", 0, O_WORD, AT(color), "WHEN", C_ALL, "auto, always or never", "auto always never"},
    {"quiet", 'q', O_FLAG, AT(quiet), NULL, C_ALL, "errors only; check: failed plans only", NULL},
    {"verbose", 'v', O_FLAG, AT(verbose), NULL, C_ALL,
     "more: notes, times, all checks, every layer", NULL},
    {"help", 'h', O_FLAG, AT(help), NULL, C_ALL, "this text", NULL},
    {"version", 0, O_FLAG, AT(version), NULL, C_ALL, "version, licence and what was built in",
     NULL},
};
enum { N_OPTIONS = sizeof options / sizeof *options, LARGEST_PX = 32767 /* of Cairo */ };

const char *const *options_names(Arena *arena) {
    const char **names = ARENA_ARRAY(arena, const char *, N_OPTIONS + 1);
    for (int i = 0; i < N_OPTIONS; i++) names[i] = options[i].name;
    return names;
}

/* ---- parsing ---- */

static void usage(Cli *c, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void usage(Cli *c, const char *hint, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_error(c->d, "E0212", diag_nowhere, hint, "%s", arena_vprintf(c->arena, fmt, ap));
    va_end(ap);
}
static const char *nearest_word(const char *words, const char *w, Arena *arena) {
    const char *list[32];
    int n = 0;
    for (const char *p = words; *p && n < 31;) {
        size_t k = strcspn(p, " ");
        list[n++] = arena_strndup(arena, p, k);
        p += k + (p[k] == ' ');
    }
    list[n] = NULL;
    return diag_nearest(w, list);
}
static void set_int(Cli *c, const Option *o, const char *s) {
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno)
        usage(c, NULL,
              errno ? "--%s: %s is larger than 2^63-1" : "--%s wants a whole number, not '%s'",
              o->name, s);
    else *(int64_t *)(void *)((char *)&c->o + o->at) = v;
}
static void set_real(Cli *c, const Option *o, const char *s) {
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v) || v <= 0)
        usage(c, NULL, "--%s wants a positive number, not '%s'", o->name, s);
    else *(double *)(void *)((char *)&c->o + o->at) = v;
}
static void add_set(Cli *c, const char *key, size_t n, const char *value) {
    if (c->o.n_sets == CLI_MAX_SETS) usage(c, NULL, "more than %d times --set", CLI_MAX_SETS);
    else c->o.sets[c->o.n_sets++] = (PlanSet){arena_strndup(c->arena, key, n), value};
}
static void set_set(Cli *c, const char *s) {
    /* the key may hold a pattern with '=' in no case, but the value may */
    const char *eq = strchr(s, '=');
    if (!eq || eq == s) usage(c, NULL, "--set wants KEY=VALUE, not '%s'", s);
    else add_set(c, s, (size_t)(eq - s), eq + 1);
}
static void apply(Cli *c, const Option *o, const char *arg) {
    void *at = (char *)&c->o + o->at;
    switch (o->kind) {
    case O_FLAG: *(bool *)at = true; break;
    case O_INT: set_int(c, o, arg); break;
    case O_REAL: set_real(c, o, arg); break;
    case O_SET: set_set(c, arg); break;
    case O_WORD:
    case O_WORD_OR_FIRST:
        if (!text_has_word(o->words, arg))
            usage(c, nearest_word(o->words, arg, c->arena), "--%s is one of %s, not '%s'", o->name,
                  o->words, arg);
        *(const char **)at = arg;
        break;
    case O_TEXT:
        if (!arg[strspn(arg, " \t\n")]) usage(c, NULL, "--%s is empty", o->name);
        *(const char **)at = arg;
        break;
    }
}

/* The options that were given, to be held against the command once it is known. */
typedef struct {
    Cli *c;
    int argc, i;
    char **argv;
    int n_given, cap_given;
    const Option **given;
} Parse;

static const Option *find_long(const char *name, size_t n) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(options[i].name) == n && strncmp(options[i].name, name, n) == 0)
            return &options[i];
    return NULL;
}
static const Option *find_short(char letter) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (options[i].letter == letter && letter) return &options[i];
    return NULL;
}
/* The argument of an option: behind '=' or the next word. NULL and an error if there is none. */
static const char *argument(Parse *p, const Option *o, const char *inline_arg) {
    if (inline_arg) return inline_arg;
    bool more = p->i + 1 < p->argc, first = o->kind == O_WORD_OR_FIRST;
    if (first && !(more && text_has_word(o->words, p->argv[p->i + 1])))
        return arena_strndup(p->c->arena, o->words, strcspn(o->words, " "));
    if (more) return p->argv[++p->i];
    usage(p->c, NULL, "--%s wants %s", o->name, o->arg);
    return NULL;
}
static void take(Parse *p, const Option *o, const char *inline_arg) {
    if (!o->arg && inline_arg) {
        usage(p->c, NULL, "--%s takes no value", o->name);
        return;
    }
    const char *arg = o->arg ? argument(p, o, inline_arg) : NULL;
    if (o->arg && !arg) return;
    for (int i = 0; i < p->n_given; i++)
        if (p->given[i] == o && o->at == AT(output))
            usage(p->c, NULL, "--output is given twice: there is one result");
    apply(p->c, o, arg);
    *ARENA_PUSH(p->c->arena, p->given, p->n_given, p->cap_given) = o;
}
static void parse_long(Parse *p, const char *word) {
    const char *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    const Option *o = find_long(word, n);
    if (o) {
        take(p, o, eq ? eq + 1 : NULL);
        return;
    }
    const char *name = arena_strndup(p->c->arena, word, n),
               *near = diag_nearest(name, options_names(p->c->arena));
    usage(p->c, near ? arena_printf(p->c->arena, "--%s", near) : NULL, "unknown option '--%s'",
          name);
}
static void parse_short(Parse *p, const char *letters) {
    for (; *letters; letters++) {
        const Option *o = find_short(*letters);
        if (!o) {
            usage(p->c, NULL, "unknown option '-%c'", *letters);
            return;
        }
        take(p, o, o->arg && letters[1] ? letters + 1 : NULL);
        if (o->arg) return;
    }
}
static const Command *find_command(const Cli *c, const char *name) {
    for (int i = 0; i < c->n_commands; i++)
        if (strcmp(c->commands[i].name, name) == 0) return &c->commands[i];
    return NULL;
}
static const char *nearest_command(const Cli *c, const char *name) {
    const char *names[16];
    int n = 0;
    while (n < c->n_commands) names[n] = c->commands[n].name, n++;
    names[n] = NULL;
    return diag_nearest(name, names);
}
/* The first operand is the command; `help` before one asks for its help. */
static void choose_command(Cli *c) {
    CliOptions *o = &c->o;
    if (o->n_operands && strcmp(o->operands[0], "help") == 0) {
        o->help = true;
        o->operands++;
        o->n_operands--;
    }
    if (!o->n_operands) return;
    c->command = find_command(c, o->operands[0]);
    if (!c->command && !strcmp(o->operands[0], "report"))
        diag_error(c->d, "E0214", diag_nowhere, "`run` and `draw` make the pictures one by one",
                   "`report` is not supported by this version");
    else if (!c->command)
        usage(c, nearest_command(c, o->operands[0]), "unknown command '%s'", o->operands[0]);
    o->operands++;
    o->n_operands--;
}
/* What a run on processes cannot do, and what is for it alone. */
static void check_processes(Parse *p) {
    Cli *c = p->c;
    static const char *const virtual[] = {"static", "exact", "update-expect", "cuda"};
    bool many = cli_processes(c);
    const char *by = c->o.mpi ? "mpi" : "cuda";
    for (int i = 0; i < p->n_given; i++) {
        const Option *o = p->given[i];
        if (o->commands & C_OF_MPI && !many)
            usage(c, "add --mpi, or leave it out",
                  "--%s is for --mpi and --cuda, and there is none", o->name);
        for (size_t k = 0; many && k < sizeof virtual / sizeof *virtual; k++)
            if (!strcmp(o->name, virtual[k]) && strcmp(o->name, by) != 0)
                usage(c, "leave one of them out", "--%s is not for --%s", o->name, by);
    }
    for (int i = 0; many && i < c->o.n_operands; i++)
        if (!strcmp(c->o.operands[i], "-"))
            usage(c, "name a file that all processes can read",
                  "--%s cannot read a plan from standard input: only one process has it", by);
}
/* The comparison with the unsharded run, asked for, left out, or needed. */
static void check_unsharded(Parse *p) {
    Cli *c = p->c;
    if (c->o.end_to_end && (!c->o.check || !strcmp(c->o.check, "full")))
        usage(c, "add --check quick, or leave it out",
              "--end-to-end is for --check quick: a full check compares with the unsharded run by "
              "itself");
    static const char *const unsharded[] = {"end-to-end", "against", "save-values", "sensitivity"};
    for (int i = 0; c->o.no_end_to_end && i < p->n_given; i++)
        for (size_t e = 0; e < sizeof unsharded / sizeof *unsharded; e++)
            if (!strcmp(p->given[i]->name, unsharded[e]))
                usage(c, "leave one of them out",
                      "--%s wants the unsharded run, --no-end-to-end leaves it out", unsharded[e]);
}
static void check_usage(Parse *p) {
    Cli *c = p->c;
    const Command *k = c->command;
    if (!k || c->o.help || c->o.version) return;
    for (int i = 0; i < p->n_given; i++)
        if (!(p->given[i]->commands & k->bit))
            usage(c, NULL, "`%s` has no option --%s", k->name, p->given[i]->name);
    for (int i = 0; !c->o.against && i < p->n_given; i++)
        if (p->given[i]->commands & C_OF_AGAINST)
            usage(c, "add --against FILE, or leave it out",
                  "--%s is for --against, and there is none", p->given[i]->name);
    check_processes(p);
    for (int i = p->n_given - 1; i >= 0; i--)
        if (p->given[i]->commands & C_OF_IMPORT) c->o.of_import = p->given[i]->name;
    /* a trace is modelled anew for another machine only where its times are the question */
    for (int i = p->n_given - 1; i >= 0; i--)
        if (p->given[i]->commands & C_OF_PLAN &&
            (p->given[i]->at != AT(hardware) || !(k->bit & C_TIMES)))
            c->o.of_plan = p->given[i]->name;
    static const char *const executed[] = {"against", "save-values",   "exact", "sensitivity",
                                           "strict",  "update-expect", "check", "end-to-end",
                                           "cuda",    "threads",       "seed",  "no-end-to-end"};
    for (int i = 0; c->o.statically && i < p->n_given; i++)
        for (size_t e = 0; e < sizeof executed / sizeof *executed; e++)
            if (!strcmp(p->given[i]->name, executed[e]))
                usage(c, "leave one of them out", "--%s wants a run, --static executes nothing",
                      executed[e]);
    check_unsharded(p);
    for (int i = 0; c->o.update_expect && i < p->n_given; i++)
        if (p->given[i]->commands & C_ANOTHER)
            usage(c, "write it into the plan, or leave --update-expect out",
                  "--update-expect records what the plan's file does; with --%s it is another run",
                  p->given[i]->name);
    for (int i = 0; i < p->n_given; i++)
        if (p->given[i]->at == AT(page) && c->o.page < 1 && !diags_errors(c->d))
            usage(c, "the first is 1", "--page wants 1 or more");
    bool picture = c->o.format && text_has_word("svg png pdf", c->o.format);
    if (k->bit & C_DIFF && c->o.format && strcmp(c->o.format, "text") && picture == !c->o.view)
        usage(c, picture ? "add --view block" : "leave one of them out",
              picture ? "`diff` as %s wants --view" : "--view is a picture, not %s", c->o.format);
    if (k->bit & C_DIFF && !c->o.view &&
        (c->o.theme || c->o.preset || c->o.part || c->o.pass || c->o.width || c->o.page ||
         c->o.hardware || c->o.layer >= 0))
        usage(c, "add --view block, timeline, memory or shards", "`diff` draws only with --view");
    if (c->o.width > LARGEST_PX)
        usage(c, NULL, "--width wants 1 .. %d pixels, not %lld", LARGEST_PX, (long long)c->o.width);
    if (c->o.n_operands < k->min) usage(c, NULL, "`%s` wants %s", k->name, k->operands);
    if (c->o.n_operands > k->max) usage(c, NULL, "`%s` wants %s and no more", k->name, k->operands);
    if (c->o.format && !text_has_word(k->formats, c->o.format))
        usage(c, nearest_word(k->formats, c->o.format, c->arena), "`%s` writes %s, not '%s'",
              k->name, k->formats, c->o.format);
}
/* The format that a file's name asks for. Pictures and folders have rules of their own (draw, run).
 */
static const struct {
    const char *extension, *format;
} extensions[] = {{"txt", "text"},  {"text", "text"}, {"json", "json"}, {"jsonl", "jsonl"},
                  {"csv", "csv"},   {"md", "md"},     {"xml", "junit"}, {"sarif", "sarif"},
                  {"yaml", "yaml"}, {"yml", "yaml"},  {"py", "py"},     {"toml", "toml"},
                  {"sh", "sh"}};
/* `run` makes a folder: a name that asks for a file would hide the mistake. */
static void refuse_file(Cli *c, const char *dot) {
    bool file = text_has_word("svg png pdf html", dot + 1);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        file |= !strcmp(dot + 1, extensions[i].extension);
    if (file)
        usage(c,
              arena_printf(c->arena,
                           "-o FOLDER for all files; `run --format json > %s`, `draw` and `check` "
                           "write one",
                           c->o.output),
              "`run` writes a folder, and '%s' is the name of a file", c->o.output);
}
static void format_by_name(Cli *c) {
    const Command *k = c->command;
    const char *dot = c->o.output ? strrchr(c->o.output, '.') : NULL;
    if (k && k->bit & C_RUN && dot && !strchr(dot, '/')) refuse_file(c, dot);
    if (c->o.format) return;
    if (k && k->bit & C_DIFF && c->o.view) return; /* a picture */
    if (!k || k->bit & (C_RUN | C_DRAW | C_COMPLETION) || !dot || dot == c->o.output ||
        dot[-1] == '/' || strchr(dot, '/'))
        return;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (!strcmp(dot + 1, extensions[i].extension) &&
            text_has_word(k->formats, extensions[i].format))
            c->o.format = extensions[i].format;
    if (!c->o.format)
        usage(c,
              strchr(k->formats, ' ')
                  ? "end the name with one of these, or say --format"
                  : arena_printf(c->arena, "end the name with .%s, or say --format %s", k->formats,
                                 k->formats),
              "`%s` writes %s, not '%s'", k->name, k->formats, dot);
}
/* Records say what is: they know nothing of rows and columns that an option adds to a table. */
static void check_records(const Parse *p) {
    Cli *c = p->c;
    static const struct {
        const char *name, *help;
    } of_tables[] = {{"each", "json and csv have a row of each; records say `per_step`"},
                     {"notation", "json and csv have the column"}};
    for (int i = 0; c->o.format && !strcmp(c->o.format, "jsonl") && i < p->n_given; i++)
        for (size_t k = 0; k < sizeof of_tables / sizeof *of_tables; k++)
            if (!strcmp(p->given[i]->name, of_tables[k].name))
                usage(c, of_tables[k].help, "--%s is of tables, and jsonl has records",
                      of_tables[k].name);
}
/* --full undoes a plan's own shrink, not one that the command line says. */
static void set_full(Cli *c) {
    for (int i = 0; i < c->o.n_sets; i++)
        if (!strcmp(c->o.sets[i].key, "model.shrink") || !strcmp(c->o.sets[i].key, "model")) return;
    add_set(c, "model.shrink", strlen("model.shrink"), NULL);
}
void options_parse(Cli *c, int argc, char **argv) {
    Parse p = {.c = c, .argc = argc, .argv = argv, .i = 1};
    c->o =
        (CliOptions){.rank = -1, .seed = -1, .layer = -1, .tp = -1, .ep = -1, .against_rank = -1};
    c->o.operands = ARENA_ARRAY(c->arena, const char *, argc + 1);
    bool rest = false;
    for (; p.i < argc; p.i++) {
        const char *a = argv[p.i];
        if (rest || a[0] != '-' || !a[1]) c->o.operands[c->o.n_operands++] = a;
        else if (strcmp(a, "--") == 0) rest = true;
        else if (a[1] == '-') parse_long(&p, a + 2);
        else parse_short(&p, a + 1);
    }
    if (c->o.seed >= 0)
        add_set(c, "data.seed", 9, arena_printf(c->arena, "%lld", (long long)c->o.seed));
    choose_command(c);
    if (c->o.full && c->command && c->command->bit & (C_PLANS | C_EXPORT)) set_full(c);
    check_usage(&p);
    if (!c->o.help) format_by_name(c);
    if (!c->o.help) check_records(&p);
    c->format = c->o.format;
    if (c->command && !c->format)
        c->format = arena_strndup(c->arena, c->command->formats, strcspn(c->command->formats, " "));
}

const OptionRow *options_rows(Arena *arena, int *n) {
    OptionRow *rows = ARENA_ARRAY(arena, OptionRow, N_OPTIONS);
    for (int i = 0; i < N_OPTIONS; i++)
        rows[i] = (OptionRow){options[i].name,     options[i].arg,  options[i].letter,
                              options[i].commands, options[i].what, options[i].words};
    *n = N_OPTIONS;
    return rows;
}

/* ---- help ---- */
/* Columns of help: 80, fewer where the terminal or COLUMNS has fewer. */
static int help_width(const Cli *c) {
    int w = terminal_columns(fileno(c->out));
    return w > 80 ? 80 : w < 40 ? 40 : w;
}
static void help_option(const Option *o, size_t width, Str *s) {
    char left[64];
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
             o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, o->arg ? " " : "",
             o->arg ? o->arg : "");
    str_addf(s, "  %-25s ", left);
    size_t col = 28;
    for (const char *w = o->what; *w;) {
        size_t k = strcspn(w, " ");
        if (col + k > width - 1) {
            str_addf(s, "\n%28s", "");
            col = 28;
        }
        str_addn(s, w, k);
        col += k + 1;
        w += k;
        if (*w == ' ') {
            if (col + strcspn(w + 1, " ") <= width - 1) str_add(s, " ");
            w++;
        }
    }
    str_add(s, "\n");
}
static void help_examples(const char *text, Str *s) {
    if (!*text) return;
    str_add(s, "\nExamples:\n");
    while (*text) {
        size_t k = strcspn(text, "\n");
        str_addf(s, "  %.*s\n", (int)k, text);
        text += k + (text[k] == '\n');
    }
}
static void help_command(const Command *k, size_t width, Str *s) {
    const char *gap =
        strlen("Usage: shardproof  [OPTION]... ") + strlen(k->name) + strlen(k->operands) > width
            ? "\n       "
            : " ";
    if (!*k->operands) gap = "";
    str_addf(s, "Usage: shardproof %s [OPTION]...%s", k->name, gap);
    size_t col = 7;
    for (const char *w = k->operands; *w;) { /* a long choice goes on in the next line */
        size_t n = strcspn(w, "|") + (w[strcspn(w, "|")] == '|');
        bool full = gap[0] == '\n' && col + n > width - 1;
        str_addf(s, "%s%.*s", full ? "\n       " : "", (int)n, w);
        col = (full ? 7 : col) + n;
        w += n;
    }
    str_add(s, "\n");
    str_addf(s, "%c%s.\n", k->what[0] - 'a' + 'A', k->what + 1);
    help_examples(k->examples, s);
    str_addf(s, "\nFormats: %s\n\nOptions:\n", k->formats);
    for (int i = 0; i < N_OPTIONS; i++)
        if (options[i].commands & k->bit) help_option(&options[i], width, s);
}
static void help_program(const Cli *c, int width, Str *s) {
    str_addf(s, "Usage: shardproof COMMAND [OPTION]... OPERAND...\n%s\n",
             table_wrap("Executes one Transformer block under a sharding plan on virtual ranks, "
                        "proves it equal to the unsharded model, logs every collective and draws "
                        "what a rank does.",
                        width - 1, 0, c->arena));
    help_examples("shardproof run plans/03-llama3-8b-tp2.yaml\n"
                  "shardproof check plans/*.yaml\n"
                  "shardproof shapes plan.yaml --set mesh.tp=8\n"
                  "shardproof explain E0403\n",
                  s);
    str_add(s, "\nCommands:\n");
    for (int i = 0; i < c->n_commands; i++)
        str_addf(s, "  %-10s %s\n", c->commands[i].name, c->commands[i].what);
    str_addf(s, "\n%s\n",
             table_wrap("`shardproof COMMAND --help` lists a command's options. PLAN may be - "
                        "(standard input).",
                        width - 1, 0, c->arena));
    str_addf(s, "%s\n",
             table_wrap("Exit codes: 0 done and all held, 1 a check failed, 2 usage, 3 bad input, "
                        "4 output not written, 5 a limit, 70 internal error.",
                        width - 1, 0, c->arena));
}
void options_help(const Cli *c, Str *out) {
    int width = help_width(c);
    Str s = str_new(c->arena);
    if (c->command) help_command(c->command, (size_t)width, &s);
    else help_program(c, width, &s);
    str_add(&s, "\nManual: man shardproof. Report bugs to the issue tracker of the project.\n");
    str_add(out, table_fold(s.s, width, c->arena));
}
