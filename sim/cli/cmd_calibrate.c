/* `calibrate`: a hardware profile of the machine that the processes run on. */
#include "cli/cli.h"
#include "drive/calibrate.h"

int cmd_calibrate(Cli *c) {
    if (!c->ranks) {
        diag_error(c->d, "E0212", diag_nowhere,
                   "mpirun -n 4 shardproof calibrate --mpi -o machine.yaml",
                   "`calibrate` measures processes: it wants --mpi");
        return 2;
    }
    if (!cli_greet(c, "calibrate")) return 5;
    const char *text = calibrate(c->arena, c->d, c->ranks);
    if (text) str_add(&c->text, text);
    else c->o.output = NULL; /* an existing file stays */
    return text ? 0 : cli_exit_of(c->d);
}
