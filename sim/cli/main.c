/* The process: its streams and signals, and cli_main. */
#include "cli/cli.h"

int main(int argc, char **argv) {
    base_guard_streams();
    base_catch_signals();
    int code = cli_main(argc, argv, stdout, stderr);
    render_cleanup();
    return code;
}
