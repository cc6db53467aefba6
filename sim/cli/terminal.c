/* What the streams and the environment say about a terminal. */
#include "cli/terminal.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *terminal_env(const char *name) {
    const char *s = getenv(name);
    return s && *s ? s : NULL;
}

bool terminal_is(FILE *f) {
    int fd = fileno(f);
    return fd >= 0 && isatty(fd);
}

bool terminal_is_ascii(FILE *f) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (int i = 0; i < 3 && !locale; i++) locale = terminal_env(names[i]);
    const char *set = locale ? strchr(locale, '.') : NULL; /* "en_GB.UTF-8@euro" */
    if (!locale) return terminal_is(f); /* containers set none, and their logs show UTF-8 */
    return !set || (strncasecmp(set, ".utf-8", 6) != 0 && strncasecmp(set, ".utf8", 5) != 0);
}

/* --color beats everything, then NO_COLOR, then what forces it, then what the stream is. */
bool terminal_wants_color(const char *when, FILE *f) {
    if (when && strcmp(when, "auto") != 0) return strcmp(when, "always") == 0;
    if (terminal_env("NO_COLOR")) return false;
    const char *force =
        terminal_env("FORCE_COLOR") ? terminal_env("FORCE_COLOR") : terminal_env("CLICOLOR_FORCE");
    if (force && strcmp(force, "0") != 0) return true;
    const char *term = terminal_env("TERM"), *cli = terminal_env("CLICOLOR");
    if ((cli && strcmp(cli, "0") == 0) || (term && strcmp(term, "dumb") == 0)) return false;
    return terminal_is(f);
}

int terminal_columns(int fd) {
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    return n > 0 ? n : 80;
}

int terminal_width(FILE *f) {
    if (!terminal_is(f)) return 0;
    return terminal_columns(fileno(f));
}
