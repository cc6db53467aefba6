/* From the arguments to the exit code: options, the command, its output. */
#include "cli/cli.h"
#include "cli/files.h"
#include "cli/shipped.h"
#include "cli/terminal.h"

static void print_version(Cli *c) {
    str_addf(&c->text,
             "shardproof %s\nLicence MIT; there is no warranty.\nBuilt in: virtual ranks; without "
             "CUDA, without MPI\n",
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
    arena_free(c->arena);
    return code;
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
    bool to_file = c.o.output && c.command &&
                   c.command->bit != C_RUN; /* run: a folder, and the report goes to `out` */
    c.color_out = !to_file && terminal_wants_color(c.o.color, out);
    c.color_err = terminal_wants_color(c.o.color, err);
    c.look = (TableLook){to_file ? 0 : terminal_width(out), c.color_out};
    if (c.o.version || c.o.help) {
        c.o.output = NULL;
        if (c.o.version) print_version(&c);
        else options_help(&c, &c.text);
        c.d = diags_new(arena); /* who asks for help has said enough */
        return end(&c, 0);
    }
    if (diags_errors(c.d)) return end(&c, 2);
    if (!c.command) {
        options_help(&c, &c.text);
        fputs(c.text.s, err);
        cli_forget(&c);
        return end(&c, 2);
    }
    shipped_operands(&c);
    return end(&c, files_check_words(&c) ? c.command->run(&c) : 2);
}
