/* Running the real binary as a user would: a process of its own with its own streams, limits and
 * signals. Refuses to interpret: what it printed, its exit code and its signal come back as they
 * were. */
#ifndef SP_TESTS_CHILD_H
#define SP_TESTS_CHILD_H
#include "base/arena.h"
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

typedef struct {
    const char *const *words; /* behind the program's name; NULL-terminated */
    const char *const *env;   /* NAME=VALUE set besides our own; NAME alone: unset */
    const char *in;           /* file that standard input comes from; "" closed; NULL: /dev/null */
    const char *out, *err;    /* file that the stream goes to; "" closed; NULL: captured */
    int limit;                /* RLIMIT_...; taken if limit_to is not 0 */
    long limit_to;
    int signal, after_us; /* sent so long after the program took its place; 0: none */
    const char
        *after_text; /* the signal is sent when stderr has shown this, not by time; NULL: by time */
    int after_cpu_ms; /* the signal is sent when it has used so much processor time; 0: see above */
    bool pty;         /* stderr (and stdout with pty_out) is a terminal */
    bool pty_out;
    int columns;           /* of it; 0: 80; below 0: it does not say */
    void (*prepare)(void); /* in the child before exec; NULL: nothing */
} Child;
typedef struct {
    int code;   /* exit code, or 128 + signal */
    int signal; /* that it died of; 0: none */
    char *out, *err;
    size_t n_err;
    double seconds, after_signal; /* from its start, and from the signal, to its end */
    long max_kib;                 /* most memory it had at once */
} Ended;

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
/* Fails the test unless it ended with `code` and wrote `in_err` to stderr. */
void child_expect(const Ended *e, int code, const char *in_err);

/* The program under test: ./shardproof of the working directory; fails the test if there is none.
 */
const char *child_program(void);
/* Copies the program to `path`, a new file, where every user may start it, and uses that from now
 * on; NULL:
 * ./shardproof again. */
void child_use(const char *path);
/* The program that stands there is the one, until child_use(NULL). */
void child_use_installed(const char *at);
/* The file of that name that make has built beside the test program; NULL: it has not, for it lacks
 * what that needs. */
const char *child_built(Arena *a, const char *name);
/* A file beside the test that runs; fails the test if it is not there. In `a`. */
const char *child_beside(Arena *a, const char *name);
/* A library for LD_PRELOAD that make has built beside the test that runs, or a copy of it in /tmp
 * if blanks are in its path: the loader takes blanks and colons there for the ends of names. */
const char *child_preload(Arena *a, const char *name);
/* Runs to its end; killed after 600 s of processor time, or without any. Texts live in `a`. */
Ended child_run(Arena *a, const Child *c);
/* The letter of a process's state: R runs, S waits, T is stopped, Z has ended and its parent has
 * not looked yet, or never will; 0: it is gone. */
char process_state(pid_t pid);
bool process_ended(pid_t pid);
/* 0: the process has ended. */
pid_t process_parent(pid_t pid);
/* Names in a folder that end with `suffix`; with "" all. */
int child_count(const char *dir, const char *suffix);
/* A file's bytes, terminated, or NULL. */
char *child_read(Arena *a, const char *path, size_t *n);
void child_write(const char *path, const char *text);
#endif
