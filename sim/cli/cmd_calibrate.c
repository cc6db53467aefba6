/* `calibrate`: a hardware profile of the machine that the processes, or the GPU, run on. */
#include "cli/cli.h"
#include "drive/calibrate.h"

/* Processes, on GPUs with --cuda; one GPU where nobody has started several. */
static const char *measured(Cli *c) {
    if (c->ranks) return calibrate(c->arena, c->d, c->ranks, c->device);
    const Hardware *links =
        hardware_of_plan(c->arena, c->d, c->o.hardware, NULL, NULL, diag_nowhere);
    return links ? calibrate_gpu(c->arena, c->d, c->device, links) : NULL;
}
int cmd_calibrate(Cli *c) {
    if (!c->ranks && !c->o.cuda) {
        diag_error(
            c->d, "E0212", diag_nowhere,
            "mpirun -n 4 shardproof calibrate --mpi -o machine.yaml, or shardproof calibrate "
            "--cuda -o gpu.yaml",
            "`calibrate` measures processes or a GPU: it wants --mpi or --cuda");
        return 2;
    }
    const char *text = NULL;
    bool here = cli_greet(c, "calibrate") && cli_open_gpu(c);
    if (here) text = measured(c);
    if (here) cli_close_gpu(c);
    if (text) str_add(&c->text, text);
    else c->o.output = NULL; /* an existing file stays */
    return text ? 0 : here ? cli_exit_of(c->d) : 5;
}
