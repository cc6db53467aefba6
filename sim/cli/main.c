/* The process: signals, and cli_main. SIGPIPE is ignored, so that a closed pipe is an error of write and not of the
 * run; SIGINT and SIGTERM remove what is half-written and end with 130 and 143. */
#include "cli/cli.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The clean-ups that exist only unlink temporary files, which a handler may do. */
static void interrupted(int sig) {
    static volatile sig_atomic_t again;
    if (!again) {
        again = 1;
        base_run_cleanups();
    }
    _exit(128 + sig);
}
static void catch_signal(int sig) {
    struct sigaction old, now = {.sa_handler = interrupted};
    sigemptyset(&now.sa_mask);
    sigaddset(&now.sa_mask, SIGINT);
    sigaddset(&now.sa_mask, SIGTERM);
    /* a shell that started us in the background has ignored SIGINT for us */
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(sig, &now, NULL);
}
int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
    int code = cli_main(argc, argv, stdout, stderr);
    render_cleanup();
    return code;
}
