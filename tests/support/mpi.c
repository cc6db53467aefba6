/* Starting processes with the launcher of an MPI. See mpi.h. */
#include "mpi.h"
#include "child.h"
#include "support.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG = 1200 }; /* seconds: nothing takes so long, however slow it is here */
/* Open MPI wants to be asked twice by root, and for more processes than cores. */
static const Mpi all[] = {
    {"openmpi", "Open MPI", "mpirun.openmpi", "mpirun", "Open MPI",
     "--allow-run-as-root --oversubscribe -q --bind-to none", "OMPI_COMM_WORLD_RANK", 5, 5},
    {"mpich", "MPICH", "mpirun.mpich", "mpirun", "HYDRA", "", "PMI_RANK", 9, 1},
};
static char launch[160];

static bool starts(const Mpi *m, const char *launcher) {
    char line[128];
    snprintf(line, sizeof line, "%s --version 2>/dev/null | grep -q '%s'", launcher, m->says);
    if (system(line) != 0) return false;
    snprintf(launch, sizeof launch, "%s %s", launcher, m->options);
    return true;
}
const Mpi *mpi_here(void) {
    const char *name = getenv("SHARDPROOF_MPI");
    const Mpi *m = &all[0];
    for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name)) m = &all[i];
    if (name && strcmp(name, m->name) != 0) fail_msg("SHARDPROOF_MPI=%s: no such MPI", name);
    char plugin[64];
    snprintf(plugin, sizeof plugin, "shardproof-%s.so", m->name);
    if (!*launch && !starts(m, m->launcher) && !starts(m, m->other)) *launch = 0;
    if (*launch && access(plugin, R_OK) == 0) return m;
    print_message("no %s here, or no %s: --mpi is not tried with it\n", m->title, plugin);
    return NULL;
}
const char *mpi_run(void) { return launch; }

int line_code(const char *out, const char *err, const char *fmt, ...) {
    Arena *a = arena_new();
    va_list ap;
    va_start(ap, fmt);
    const char *line = arena_printf(a, "exec >'%s' 2>'%s' </dev/null; timeout -k 5 %d sh -c '%s'",
                                    out, err, LONG * slow_machine(), arena_vprintf(a, fmt, ap));
    va_end(ap);
    int code = system(line);
    arena_free(a);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}
const char *mpi_program(void) {
    static char link[PATH_MAX];
    if (*link) return link;
    Arena *a = arena_new();
    snprintf(link, sizeof link, "%s", temp_path(a, "program"));
    arena_free(a);
    char *real = realpath(child_program(), NULL);
    assert_non_null(real);
    if (symlink(real, link)) fail_msg("%s: no link to %s", link, real);
    free(real);
    return link;
}
void mpi_expect(int code, int want, const char *err, const char *words) {
    Arena *a = arena_new();
    size_t n;
    const char *text = child_read(a, err, &n);
    if (code != want || !strstr(text, words)) print_error("%d, %s", code, text);
    assert_int_equal(code, want);
    assert_non_null(strstr(text, words));
    arena_free(a);
}
int ends_told(const char *err) {
    Arena *a = arena_new();
    size_t n;
    int ends = 0;
    for (const char *s = child_read(a, err, &n); (s = strstr(s, "[E06")); s++) ends++;
    arena_free(a);
    return ends;
}
bool lost_another(Arena *a, const char *err, int rank) {
    size_t n;
    const char *at = strstr(child_read(a, err, &n), "error: rank ");
    bool named = at && (strstr(at, " has been silent for ") || strstr(at, " has not come within "));
    return named && atoi(at + 12) != rank;
}
bool is_said(Arena *a, const char *err, const char *words) {
    size_t n;
    const char *text = child_read(a, err, &n);
    return text && strstr(text, words);
}
bool too_busy(Arena *a, const char *err) {
    return is_said(a, err, "the processes did not come together within ");
}
int whole_files(Arena *a, const char *dir, const char *like) {
    const char *e = temp_path(a, "whole");
    size_t n;
    int code = line_code(
        e, "/dev/null",
        "exec 2>&1; cd %s || exit 1; find . -type f ! -name \".shardproof-*\" | while read f; do "
        "case $f in *.jsonl) "
        "grep -v measured $f > %s.a; grep -v measured %s/$f > %s.b;; *) cp $f %s.a && cp %s/$f "
        "%s.b;; esac && cmp %s.a %s.b || { ls -l $f %s/$f; exit 7; }; echo $f; done",
        dir, e, like, e, e, like, e, e, e, like);
    const char *text = child_read(a, e, &n);
    if (code) print_error("not whole: %s\n", text);
    assert_int_equal(code, 0);
    int files = 0;
    for (const char *s = text; (s = strchr(s, '\n')) != NULL; s++) files++;
    return files;
}
