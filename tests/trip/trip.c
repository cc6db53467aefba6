/* A shared object for LD_PRELOAD that makes one allocation or one file operation of a program fail,
 * so that tests can see what the real binary does then, inside libyaml, Jansson, Cairo and Pango
 * too. Counting begins when the program sets its signal stack (base_catch_signals, first thing in
 * main): what the loader and constructors of libraries do is not ours.
 *
 *   TRIP_WHAT=alloc|io|end|thread   what fails; end: a ranged read (pread) finds the end of its
 * file, which has shrunk; thread: a thread cannot be started TRIP_AT=n (from 1; 0: only count)
 * TRIP_LAST=m (every one of n..m fails) TRIP_SIGNAL=s        raise signal s there instead of
 * failing TRIP_FROM=ours|others  only allocations asked for by the program, libyaml and Jansson; or
 * only those of any other library TRIP_COUNT=FILE      where the number of operations is left (8
 * bytes)      TRIP_SHOW=1: say who was hit
 *
 * Refuses to be anything but a test's tool: it knows glibc only. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_bool armed;
static bool alloc, io, ends, threads, show;
static long at, last;
static int sig;
static int whom; /* 0 anybody, 1 ours, 2 others */
static _Atomic int64_t own, *count = &own;

static bool trips(void *caller, const char *what) {
    long k = (long)atomic_fetch_add(count, 1) + 1;
    if (!at || k < at || k > last) return false;
    if (show) {
        Dl_info i = {0};
        char text[256];
        dladdr(caller, &i);
        int n = snprintf(text, sizeof text, "trip: %s number %ld of %s%s%s\n", what, k,
                         i.dli_fname ? i.dli_fname : "?", i.dli_sname ? " " : "",
                         i.dli_sname ? i.dli_sname : "");
        if (write(2, text, (size_t)n) < 0) _exit(99);
    }
    if (sig) raise(sig);
    return !sig;
}
/* Who calls libc, which then calls malloc (strdup, fopen), is not known: these count as others. */
static bool is_ours(void *caller) {
    static const char *const names[] = {"shardproof", "libyaml", "libjansson"};
    static _Thread_local struct { /* asking the loader takes longer than the allocation */
        void *caller;
        bool ours;
    } known[1024];
    size_t at_slot = ((uintptr_t)caller >> 1) % 1024;
    if (known[at_slot].caller == caller) return known[at_slot].ours;
    Dl_info i = {0};
    bool ours = !dladdr(caller, &i) || !i.dli_fname;
    const char *slash = ours ? NULL : strrchr(i.dli_fname, '/'), *base = ours    ? ""
                                                                         : slash ? slash + 1
                                                                                 : i.dli_fname;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        ours |= strncmp(base, names[k], strlen(names[k])) == 0;
    known[at_slot].caller = caller;
    known[at_slot].ours = ours;
    return ours;
}
static bool no_memory(void *caller) {
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || !alloc) return false;
    if (whom && is_ours(caller) != (whom == 1)) return false;
    if (!trips(caller, "allocation")) return false;
    errno = ENOMEM;
    return true;
}
static bool no_io(void *caller, const char *what, int err) {
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || !io || !trips(caller, what))
        return false;
    errno = err;
    return true;
}
#define CALLER __builtin_return_address(0)
#define REAL(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))

int sigaltstack(const stack_t *restrict s, stack_t *restrict old) {
    const char *what = getenv("TRIP_WHAT"), *n = getenv("TRIP_AT"), *m = getenv("TRIP_LAST"),
               *file = getenv("TRIP_COUNT");
    io = what && strcmp(what, "io") == 0;
    ends = what && strcmp(what, "end") == 0;
    threads = what && strcmp(what, "thread") == 0;
    alloc = !io && !ends && !threads;
    at = n ? atol(n) : 0;
    last = m ? atol(m) : at;
    const char *whose = getenv("TRIP_FROM");
    whom = !whose ? 0 : strcmp(whose, "ours") == 0 ? 1 : 2;
    const char *signal_text = getenv("TRIP_SIGNAL");
    sig = signal_text ? atoi(signal_text) : 0;
    show = getenv("TRIP_SHOW") != NULL;
    int fd = file ? open(file, O_RDWR) : -1;
    void *p = fd >= 0 ? mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (p != MAP_FAILED) count = p;
    atomic_store(&armed, true);
    return REAL(int (*)(const stack_t *, stack_t *), "sigaltstack")(s, old);
}

void *malloc(size_t n) { return no_memory(CALLER) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return no_memory(CALLER) ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return no_memory(CALLER) ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) {
    return no_memory(CALLER) ? NULL : __libc_memalign(align, n);
}
void *memalign(size_t align, size_t n) {
    return no_memory(CALLER) ? NULL : __libc_memalign(align, n);
}
int posix_memalign(void **p, size_t align, size_t n) {
    void *q = no_memory(CALLER) ? NULL : __libc_memalign(align, n);
    if (!q) return ENOMEM;
    *p = q;
    return 0;
}

/* ---- files that shrink ---- */
ssize_t pread(int fd, void *p, size_t n, off_t at_byte) {
    if (atomic_load_explicit(&armed, memory_order_relaxed) && ends && trips(CALLER, "pread"))
        return 0;
    return REAL(ssize_t(*)(int, void *, size_t, off_t), "pread")(fd, p, n, at_byte);
}

/* ---- threads ---- */
int pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict a, void *(*f)(void *),
                   void *restrict arg) {
    if (atomic_load_explicit(&armed, memory_order_relaxed) && threads &&
        trips(CALLER, "pthread_create"))
        return EAGAIN;
    typedef int (*Create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return REAL(Create, "pthread_create")(t, a, f, arg);
}

/* ---- files: only what writes ---- */
int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if ((flags & O_ACCMODE) != O_RDONLY && no_io(CALLER, "open", EACCES)) return -1;
    return REAL(int (*)(const char *, int, ...), "open")(path, flags, mode);
}
size_t fwrite(const void *restrict p, size_t size, size_t n, FILE *restrict f) {
    if (f != stderr && no_io(CALLER, "fwrite", ENOSPC)) return 0;
    return REAL(size_t(*)(const void *, size_t, size_t, FILE *), "fwrite")(p, size, n, f);
}
int fflush(FILE *f) {
    if (f && f != stderr && no_io(CALLER, "fflush", ENOSPC)) return EOF;
    return REAL(int (*)(FILE *), "fflush")(f);
}
int fsync(int fd) { return no_io(CALLER, "fsync", EIO) ? -1 : REAL(int (*)(int), "fsync")(fd); }
int fclose(FILE *f) {
    int r = REAL(int (*)(FILE *), "fclose")(f);
    return no_io(CALLER, "fclose", EIO) ? EOF : r;
}
FILE *fdopen(int fd, const char *mode) {
    return no_io(CALLER, "fdopen", EMFILE)
               ? NULL
               : REAL(FILE * (*)(int, const char *), "fdopen")(fd, mode);
}
int rename(const char *from, const char *to) {
    return no_io(CALLER, "rename", EACCES)
               ? -1
               : REAL(int (*)(const char *, const char *), "rename")(from, to);
}
int linkat(int d, const char *from, int e, const char *to, int flags) {
    if (no_io(CALLER, "linkat", EPERM)) return -1;
    return REAL(int (*)(int, const char *, int, const char *, int), "linkat")(d, from, e, to,
                                                                              flags);
}
int mkdir(const char *path, mode_t mode) {
    return no_io(CALLER, "mkdir", ENOSPC)
               ? -1
               : REAL(int (*)(const char *, mode_t), "mkdir")(path, mode);
}
