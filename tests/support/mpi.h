/* Starting processes with the launcher of an MPI, as users do: Open MPI's, or the one that
 * SHARDPROOF_MPI names (openmpi, mpich). Refuses to pass silently: where there is none, NEEDS_MPI
 * says so and skips the test. */
#ifndef SP_TESTS_MPI_H
#define SP_TESTS_MPI_H
#include "base/arena.h"
#include <stdbool.h>

typedef struct {
    const char *name, *title;     /* "openmpi": of the plug-in; "Open MPI" */
    const char *launcher, *other; /* programs, Debian's name first */
    const char *says;             /* what its --version says */
    const char *options;          /* as root, and for more processes than cores */
    const char *rank;             /* the variable that tells a process its rank */
    int forced; /* its exit code where it had to kill processes after one said 5 */
    int begun;  /* the same where some had not come so far that it knew them */
} Mpi;

/* The MPI under test, NULL if it or its plug-in is not here: said on stdout. */
const Mpi *mpi_here(void);
#define NEEDS_MPI                                                                                  \
    if (!mpi_here()) skip()
/* Its launcher with the options that it wants here: "mpirun.mpich -n" is what a line begins with
 * when the number of processes follows. */
const char *mpi_run(void);

/* A shell's line, which may hold no single quote: its exit code; what it prints goes to the files.
 * It is ended after 20 minutes. */
int line_code(const char *out, const char *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What `fmt` prints, as the launcher's words behind the options. */
#define MPI_RUN(out, err, fmt, ...) line_code(out, err, "%s " fmt, mpi_run(), __VA_ARGS__)
/* The program under a name that a line may hold as it is, wherever the tree lies. The plug-in is
 * found beside what the link leads to. */
const char *mpi_program(void);
/* Fails unless the code is `want` and the file `err` holds the words. */
void mpi_expect(int code, int want, const char *err, const char *words);
/* How many ends of a run the file `err` tells. */
int ends_told(const char *err);
/* Was a rank lost that only had no processor for so long as the deadline: another than `rank`,
 * which was stopped or killed (-1: none was)? That says nothing of what is tried, which is tried
 * again with a longer deadline: LONGEST seconds at most, so that what fails by itself fails. */
bool lost_another(Arena *a, const char *err, int rank);
/* Does the file say so? */
bool is_said(Arena *a, const char *err, const char *words);
/* Where the machine is too busy for the processes to come together in time, that says nothing of
 * what is tried either. */
bool too_busy(Arena *a, const char *err);
enum { LONGEST = 600 };
/* How many files a run left in `dir`. Every one is that of a run that was let be, which left them
 * in `like`; only times differ in a trace. One that is half written fails the test. What has no
 * name of its own yet is none: SIGKILL, which launchers send too, may leave it (where there are no
 * files without a name, or behind the link; test_outputs holds that nothing else leaves one). */
int whole_files(Arena *a, const char *dir, const char *like);
#endif
