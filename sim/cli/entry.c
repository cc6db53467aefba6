/* From the arguments to the exit code: options, the command, its output. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/files.h"
#include "cli/imported.h"
#include "cli/shipped.h"
#include "cli/terminal.h"
#include "drive/ranks.h"
#include <string.h>
#include <sys/stat.h>

static void print_version(Cli *c) {
    str_addf(&c->text,
             "shardproof %s\nLicence MIT; there is no warranty.\nBuilt in: virtual ranks; MPI, "
             "CUDA and NCCL by plug-in\n",
             CLI_VERSION);
}

static int end(Cli *c, int code) {
    if (cli_exit_of(c->d) == 2 && c->o.output) cli_forget(c); /* an output may be what is wrong */
    cli_write_output(c);
    if (c->d->n) cli_diagnostics(c, c->d, false);
    code = cli_worse(code, cli_exit_of(c->d));
    if (cli_exit_of(c->d) == 2)
        fprintf(c->err, "Try 'shardproof %s%s--help'.\n", c->command ? c->command->name : "",
                c->command ? " " : "");
    if (c->ranks) {
        code = ranks_decide(c->ranks, code);
        ranks_close(c->ranks);
    }
    if (c->silent) fclose(c->out);
    arena_free(c->arena);
    return code;
}
/* One process of several, and not the one that speaks. */
static bool fall_silent(Cli *c) {
    FILE *nobody =
        cli_processes(c) && ranks_silent(cli_on_gpus(c)) ? fopen("/dev/null", "w") : NULL;
    if (nobody) c->out = c->err = nobody;
    return nobody != NULL;
}
static bool start_ranks(Cli *c) {
    RanksOptions o = {c->o.deadline > 0 ? c->o.deadline : 60,
                      c->o.sum && !strcmp(c->o.sum, "engine"), CLI_VERSION, cli_on_gpus(c),
                      c->o.cuda && !strcmp(c->o.cuda, "share")};
    c->ranks = ranks_open(c->arena, c->d, &o);
    return c->ranks != NULL;
}

/* --cuda without a launcher: the processes of this machine, as many as the first plan has ranks.
 * They say all there is to say: of a plan that cannot be read, too. */
static int start_processes(Cli *c, char **argv) {
    c->o.save_values = c->o.trace = NULL; /* their folder may be one that the ranks make */
    PipelineOptions o = cli_pipeline(c);
    Loaded l = {0};
    if (c->command->bit == C_CHECK) folders_expand(c);
    if (c->o.n_operands) cli_load(c, c->o.operands[0], &o, true, &l);
    c->d = diags_new(c->arena);
    cli_forget(c);
    return end(c, ranks_spawn(c->d, l.trace ? l.trace->ranks : 1, argv));
}

/* Of several processes each does the whole where nobody says that they are ranks: a line of mpirun
 * without --mpi. One of them tells. */
static void note_alone(Cli *c) {
    if (cli_processes(c) || !(c->command->bit & (C_RUN | C_CHECK))) return;
    if (ranks_launched(false) && !ranks_silent(false))
        diag_warn(c->d, "W0601", diag_nowhere, "with --mpi each of them is one rank of the mesh",
                  "a launcher has started several processes, and each of them does all of this by "
                  "itself");
}

/* Wrong words. Of several processes this may be the one that has them: the others hear of it, and
 * rank 0 tells (E0606), unless its own words are wrong. */
static int refuse(Cli *c) {
    Diags *said = c->d;
    if (cli_processes(c) && ranks_launched(cli_on_gpus(c))) {
        const char *why = diags_errors(said) ? said->item[0].message : "no command";
        c->d = diags_new(c->arena);
        if (start_ranks(c)) cli_greet(c, arena_printf(c->arena, "nothing: %s", why));
        c->d = said;
    }
    return end(c, 2);
}

/* Were options given that are for frameworks' own files, and no operand is one that reads them, but
 * some are plans? Then E0212 is in c->d. What comes through a pipe, or cannot be read, may be one.
 */
static bool idle_beside_plans(Cli *c) {
    if (!c->o.of_import || c->command->bit & C_IMPORT) return false;
    int n = c->command->bit & C_EXPLAIN ? 1 : c->o.n_operands; /* of a plan, and a name in it */
    const char *plan = NULL, *own = NULL, **framework = ARENA_ARRAY(c->arena, const char *, n + 1);
    int found = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        size_t size;
        const char *path = c->o.operands[i];
        if (stat(path, &st) != 0) return false;
        if (S_ISREG(st.st_mode)) {
            const char *text =
                file_read(c->arena, diags_new(c->arena), path, CLI_PLAN_BYTES, diag_nowhere, &size);
            if (!text) return false;
            if ((framework[found] = import_recognise(path, text, size))) {
                own = own ? own : path, found++;
                continue;
            }
            if (cli_looks_like_trace(text, size)) continue; /* other words for it */
        } else if (!S_ISDIR(st.st_mode)) {
            return false;
        }
        plan = path;
    }
    if (found) {
        ImportInput in = imported_input(c, framework[0], own, "", 0);
        return import_idle(c->arena, c->d, &in, framework, found, own);
    }
    if (!plan) return false;
    diag_error(
        c->d, "E0212", diag_nowhere,
        arena_printf(c->arena, "say it in the plan or by --set, or leave --%s out", c->o.of_import),
        "--%s is for a framework's own file, and '%s' is none", c->o.of_import, plan);
    return true;
}

int cli_main(int argc, char **argv, FILE *out, FILE *err) {
    Arena *arena = arena_new();
    Cli c = {.arena = arena,
             .out = out,
             .err = err,
             .d = diags_new(arena),
             .text = str_new(arena),
             .commands = cli_commands,
             .n_commands = n_cli_commands};
    options_parse(&c, argc, argv);
    c.silent = fall_silent(&c);
    /* what mpirun gives its processes looks like a terminal and is none */
    if (cli_processes(&c) && !c.o.color) c.o.color = "never";
    bool to_file = c.o.output && strcmp(c.o.output, "-") != 0 && c.command &&
                   c.command->bit != C_RUN; /* run: a folder, and the report goes to `out` */
    c.color_out = !to_file && terminal_wants_color(c.o.color, c.out);
    c.color_err = terminal_wants_color(c.o.color, c.err);
    bool plain = to_file || cli_processes(&c);
    c.look = (TableLook){plain ? 0 : terminal_width(c.out), c.color_out};
    if (c.o.version || c.o.help) {
        c.o.output = NULL;
        if (c.o.version) print_version(&c);
        else options_help(&c, &c.text);
        c.d = diags_new(arena); /* who asks for help has said enough */
        return end(&c, 0);
    }
    if (diags_errors(c.d)) return refuse(&c);
    if (!c.command) {
        options_help(&c, &c.text);
        fputs(c.text.s, c.err);
        cli_forget(&c);
        return refuse(&c);
    }
    shipped_operands(&c);
    if (!files_check_words(&c) || idle_beside_plans(&c)) return refuse(&c);
    note_alone(&c);
    if (cli_on_gpus(&c) && !ranks_launched(true)) {
        if (c.command->bit != C_CALIBRATE) return start_processes(&c, argv);
        c.o.cuda = "virtual"; /* nobody has started several: the GPU that is here */
    }
    if (cli_processes(&c) && !start_ranks(&c)) return end(&c, 5);
    return end(&c, c.command->run(&c));
}
