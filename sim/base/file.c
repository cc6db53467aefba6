/* Reading whole inputs within limits, and writing outputs so that none is ever half-written or
 * lost. Refuses to block on an input that stays silent, and to rename over anything that is not a
 * regular file. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE */
#endif
#include "base/file.h"
#include "base/clock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SILENCE_MS = 2000, FIRST_BLOCK = 1 << 16, DIR_NAMES = 2000 };

static Loc about(const char *path) {
    Loc l = {strcmp(path, "-") == 0 ? "<stdin>" : path, 0, 0};
    return l;
}

/* ---- names ---- */

const char *file_dir(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

const char *file_join(Arena *arena, const char *dir, const char *name) {
    if (name[0] == '/' || !dir || !dir[0] || strcmp(dir, ".") == 0)
        return arena_strdup(arena, name);
    return arena_printf(arena, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name);
}

const char *file_target(Arena *arena, const char *path) {
    enum { LINKS = 40 }; /* as the system follows them */
    char to[PATH_MAX];
    for (int i = 0; i < LINKS; i++) {
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n < 0) return arena_strdup(arena, path);
        to[n] = 0;
        path = file_join(arena, file_dir(arena, path), to);
    }
    return arena_strdup(arena, path);
}

/* ---- reading ---- */

/* The nearest name in the folder of a file that does not exist, or NULL. */
static const char *nearest_file(Arena *arena, const char *path) {
    const char *dir = file_dir(arena, path), *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path; /* it is there itself, where it leads nowhere */
    DIR *h = opendir(dir);
    if (!h) return NULL;
    const char **names = ARENA_ARRAY(arena, const char *, DIR_NAMES + 1);
    int n = 0;
    for (struct dirent *e; n < DIR_NAMES && (e = readdir(h));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, base) != 0)
            names[n++] = arena_strdup(arena, e->d_name);
    closedir(h);
    const char *best = diag_nearest(base, names);
    return best ? file_join(arena, dir, best) : NULL;
}

static void cannot_open(Arena *arena, Diags *d, const char *path, Loc loc, int err) {
    const char *to = file_target(arena, path);
    if (err == ENOENT && strcmp(to, path) != 0)
        diag_error(d, "E0101", loc, nearest_file(arena, to),
                   "no file '%s': it is a link to '%s', which is not there", path, to);
    else if (err == ENOENT || err == ENOTDIR)
        diag_error(d, "E0101", loc, nearest_file(arena, path), "no file '%s'", path);
    else diag_error(d, "E0102", loc, NULL, "'%s' cannot be opened: %s", path, strerror(err));
}

/* Waits until fd has something to say. 1: read on, 0: silent for too long, -1: error. */
static int wait_for(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r;
    do r = poll(&p, 1, SILENCE_MS);
    while (r < 0 && errno == EINTR);
    return r;
}

typedef struct {
    const char *path;
    Loc loc;
    size_t limit;
    size_t (*larger)(const char *head, size_t n); /* NULL: the limit holds whatever the content */
    bool regular;
    size_t size; /* of a regular file */
} Source;

static void too_large(Diags *d, const Source *s) {
    if (s->regular)
        diag_error(d, "E0702", s->loc, NULL, "'%s' has %zu bytes, the limit is %zu", s->path,
                   s->size, s->limit);
    else diag_error(d, "E0702", s->loc, NULL, "'%s' is larger than %zu bytes", s->path, s->limit);
}

/* Reads fd to its end into `arena`; `guess` is the size it is expected to have. */
static char *read_fd(Arena *arena, Diags *d, int fd, Source *s, size_t guess, size_t *out_n) {
    size_t cap = guess, n = 0;
    char *buf = base_malloc(cap + 1), *copy = NULL;
    for (;;) {
        int ready = s->regular ? 1 : wait_for(fd);
        if (ready == 0 && n == 0) {
            diag_error(d, "E0102", s->loc,
                       "close the pipe after writing, or write the plan into a file",
                       "'%s' gave nothing for 2 seconds", s->path);
            goto end;
        }
        if (ready == 0) {
            diag_warn(d, "W0001", s->loc, NULL,
                      "'%s' was not closed: what came until 2 seconds of silence is used", s->path);
            break;
        }
        if (n == cap) cap = cap < SIZE_MAX / 4 ? cap * 2 : cap, buf = base_realloc(buf, cap + 1);
        ssize_t k = ready < 0 ? -1 : read(fd, buf + n, cap - n);
        if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (k < 0) {
            diag_error(d, "E0102", s->loc, NULL, "'%s' cannot be read: %s", s->path,
                       strerror(errno));
            goto end;
        }
        if (k == 0) break;
        n += (size_t)k;
        if (n <= s->limit) continue;
        buf[n] = 0;
        size_t limit = s->larger ? s->larger(buf, n) : 0;
        s->larger = NULL;
        if (limit > s->limit) s->limit = limit;
        if (n > s->limit || s->size > s->limit) {
            too_large(d, s);
            goto end;
        }
        if (s->size > cap) cap = s->size + 1, buf = base_realloc(buf, cap + 1);
    }
    copy = arena_strndup(arena, buf, n);
    *out_n = n;
end:
    free(buf);
    return copy;
}

char *file_read(Arena *arena, Diags *d, const char *path, size_t limit, Loc loc, size_t *n) {
    return file_read_larger(arena, d, path, (FileLimit){limit, NULL}, loc, n);
}

char *file_read_larger(Arena *arena, Diags *d, const char *path, FileLimit limit, Loc loc,
                       size_t *n) {
    bool is_stdin = strcmp(path, "-") == 0;
    if (!loc.file) loc = about(path);
    *n = 0;
    /* O_NONBLOCK: opening a FIFO without a writer must not hang; it does not matter for regular
     * files */
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        cannot_open(arena, d, path, loc, errno);
        return NULL;
    }
    struct stat st;
    char *text = NULL;
    Source s = {.path = path, .loc = loc, .limit = limit.bytes, .larger = limit.larger};
    if (fstat(fd, &st) < 0) {
        cannot_open(arena, d, path, loc, errno);
    } else if (S_ISDIR(st.st_mode)) {
        diag_error(d, "E0102", loc, NULL, "'%s' is a folder", path);
    } else {
        s.regular = S_ISREG(st.st_mode);
        s.size = s.regular && st.st_size > 0 ? (size_t)st.st_size : 0;
        /* one byte more than the size, so that the end is seen without growing */
        size_t guess = s.size ? s.size + 1 : FIRST_BLOCK;
        if (guess > limit.bytes + 1) guess = limit.bytes + 1;
        if (s.size > limit.bytes && !limit.larger) too_large(d, &s);
        else text = read_fd(arena, d, fd, &s, guess, n);
    }
    if (!is_stdin) close(fd);
    return text;
}

/* ---- writing ---- */

struct OutFile {
    char *path; /* as given */
    char *real; /* what is renamed over: symbolic links are followed */
    char *temp; /* a name beside `real` that is ours alone; NULL when written through */
    bool named; /* the name exists: the folder's file system has no files without a name */
    int err;    /* of the first write that failed; 0: none */
    FILE *f;
};

static char *dup_text(const char *s) {
    size_t n = strlen(s) + 1;
    return memcpy(base_malloc(n), s, n);
}

/* Runs in signal handlers. The name is random: that of a file which was never made is nobody else's
 * either. */
static void remove_temp(void *arg) {
    const OutFile *o = arg;
    if (o->temp) unlink(o->temp);
}

static void out_free(OutFile *o) {
    free(o->path);
    free(o->real);
    free(o->temp);
    free(o);
}

static void *cannot_write(Diags *d, const char *path, int err) {
    static const struct {
        int err;
        const char *hint;
    } hints[] = {{ENOENT, "the folder does not exist"},
                 {ENOSPC, "the disk is full"},
                 {EDQUOT, "the disk quota is used up"},
                 {EFBIG, "the limit of file sizes is reached (ulimit -f)"},
                 {EROFS, "the disk is mounted read-only"}};
    Loc l = {path, 0, 0};
    const char *hint = NULL;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].err == err) hint = hints[i].hint;
    if (err == ENOMEM) base_die(5, "out of memory while '%s' was written [E0701]", path);
    diag_error(d, "E0105", l, hint, "cannot be written: %s", strerror(err));
    return NULL;
}

/* The descriptor that a path stands for: /dev/fd/3, or whatever our own standard streams are
 * connected to (their file must not be replaced under them). -1: none. */
static int same_as_open_fd(const char *path, const struct stat *st) {
    static const char *const prefix[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0) return STDOUT_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(prefix[i]);
        if (strncmp(path, prefix[i], n) == 0 && path[n] >= '0' && path[n] <= '9' &&
            strlen(path + n) < 6)
            return atoi(path + n);
    }
    for (int fd = STDOUT_FILENO; st && fd <= STDERR_FILENO; fd++) {
        struct stat o;
        if (fstat(fd, &o) == 0 && o.st_dev == st->st_dev && o.st_ino == st->st_ino) return fd;
    }
    return -1;
}

/* Opens something that is not a regular file. A FIFO gets 2 s for its reader to come. */
static FILE *open_through(const char *path, int fd) {
    int out = -1;
    if (fd >= 0) {
        fflush(fd == STDERR_FILENO ? stderr : stdout);
        out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    } else {
        for (double end = clock_seconds() + 1e-3 * SILENCE_MS;; poll(NULL, 0, 20)) {
            bool last = clock_seconds() >= end; /* looked at before: a last try comes after it */
            out = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
            if (out >= 0 || errno != ENXIO || last) break;
        }
        if (out >= 0) {
            int flags = fcntl(out, F_GETFL);
            if (flags >= 0) fcntl(out, F_SETFL, flags & ~O_NONBLOCK);
        }
    }
    if (out < 0) return NULL;
    FILE *f = fdopen(out, "w");
    if (!f) close(out);
    return f;
}

/* A name in the folder of `path` that nobody else has or will have. */
static char *temp_name(const char *path) {
    const char *slash = strrchr(path, '/');
    int dir = slash ? (int)(slash - path) + 1 : 0;
    size_t size = (size_t)dir + 64;
    char *t = base_malloc(size);
    uint64_t r;
    if (getrandom(&r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        r = ((uint64_t)getpid() << 40) ^ ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec;
    }
    snprintf(t, size, "%.*s.shardproof-%016llx.tmp", dir, path, (unsigned long long)r);
    return t;
}

/* A new file in the folder of o->real: without a name where the system can (then not even SIGKILL
 * leaves it behind), else under o->temp. o->temp is to be removed from here on. -1: errno. */
static int open_temp(OutFile *o) {
    const char *slash = strrchr(o->real, '/');
    size_t n = slash ? (size_t)(slash - o->real) : 0;
    char dir[PATH_MAX] = ".";
    int fd = -1;
    o->temp = temp_name(o->real);
    base_cleanup_push(remove_temp, o);
    if (n < sizeof dir && slash) memcpy(dir, o->real, n ? n : 1), dir[n ? n : 1] = 0;
    /* a file without a name gets one through /proc */
    if (n < sizeof dir && access("/proc/self/fd", X_OK) == 0)
        fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
        return fd;
    fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    o->named = fd >= 0;
    return fd;
}

/* What is there keeps its mode and, where we may, its owner. */
static void keep_mode(int fd, const struct stat *old) {
    if (old->st_uid != geteuid() || old->st_gid != getegid()) {
        int ignored = fchown(fd, old->st_uid, old->st_gid);
        (void)ignored;
    }
    (void)fchmod(fd, old->st_mode & 07777); /* a file system may have no modes */
}

static bool open_beside(OutFile *o, const struct stat *old) {
    int fd = open_temp(o), err;
    o->f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (o->f && old) keep_mode(fd, old);
    if (o->f) return true;
    err = errno;
    if (fd >= 0) close(fd);
    if (o->named) unlink(o->temp);
    base_cleanup_pop(remove_temp, o);
    errno = err;
    return false;
}

OutFile *file_create(Diags *d, const char *path) {
    struct stat st;
    bool there = strcmp(path, "-") != 0 && stat(path, &st) == 0;
    if (!path[0]) return cannot_write(d, path, ENOENT);
    if (there && S_ISDIR(st.st_mode)) return cannot_write(d, path, EISDIR);
    int fd = same_as_open_fd(path, there ? &st : NULL);
    bool through = fd >= 0 || (there && !S_ISREG(st.st_mode));
    /* renaming would replace even a file that may not be written */
    if (there && !through && access(path, W_OK) < 0) return cannot_write(d, path, errno);
    OutFile *o = base_malloc(sizeof *o);
    Arena *tmp = arena_new();
    *o = (OutFile){.path = dup_text(path)};
    o->real = dup_text(through ? path : file_target(tmp, path));
    arena_free(tmp);
    bool endless = !through && readlink(o->real, (char[1]){0}, 1) >= 0;
    if (through) o->f = open_through(path, fd);
    if (through ? o->f != NULL : !endless && open_beside(o, there ? &st : NULL)) return o;
    int err = endless ? ELOOP : errno;
    cannot_write(d, path, err);
    out_free(o);
    return NULL;
}

FILE *file_stream(OutFile *f) { return f->f; }
void file_put(OutFile *o, const void *p, size_t n) {
    errno = 0;
    if (o->err || fwrite(p, 1, n, o->f) == n) return;
    o->err = errno ? errno : EIO; /* the stream would only remember that there was one */
}

/* The end of an output that is not wanted. */
static void discard(OutFile *o) {
    if (o->f) fclose(o->f);
    if (o->named) unlink(o->temp);
    if (o->temp) base_cleanup_pop(remove_temp, o);
    out_free(o);
}
void file_abandon(OutFile *o) {
    if (o) discard(o);
}

/* The new file in place of the old: everything on the disk first, so that a power failure leaves
 * one of the two. */
static int put_in_place(OutFile *o) {
    int fd = fileno(o->f);
    if (fsync(fd) < 0 && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    if (!o->named) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, link, AT_FDCWD, o->temp, AT_SYMLINK_FOLLOW) < 0) return errno;
        o->named = true;
    }
    int closed = fclose(o->f); /* some file systems tell only now */
    o->f = NULL;
    if (closed != 0 || rename(o->temp, o->real) < 0) return errno;
    o->named = false;
    return 0;
}

bool file_commit(Diags *d, OutFile *o) {
    errno = 0;
    int err = o->err ? o->err : fflush(o->f) != 0 ? errno : 0;
    if (!err && ferror(o->f)) err = EIO;
    if (!err && o->temp) err = put_in_place(o);
    /* a reader that went away has read what it wanted: a broken pipe ends quietly */
    if (!o->temp && err == EPIPE) err = 0;
    if (!o->temp && !err) {
        if (fclose(o->f) != 0 && errno != EPIPE) err = errno;
        o->f = NULL;
    }
    if (err) cannot_write(d, o->path, err);
    discard(o);
    return !err;
}

bool file_write(Diags *d, const char *path, const void *p, size_t n) {
    OutFile *o = file_create(d, path);
    if (!o) return false;
    file_put(o, p, n);
    return file_commit(d, o);
}

bool file_make_dirs(Diags *d, const char *path) {
    char *p = dup_text(path);
    struct stat st;
    int err = 0; /* of the outermost folder that cannot be made: the reason for all below it */
    for (char *s = p + (p[0] == '/'); *s && !err; s++) {
        if (*s != '/') continue;
        *s = 0;
        if (mkdir(p, 0777) < 0) {
            int why = errno;
            if (stat(p, &st) < 0) err = why;
        }
        *s = '/';
    }
    free(p);
    if (!err && mkdir(path, 0777) < 0 && errno != EEXIST) err = errno;
    if (!err && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))) err = ENOTDIR;
    if (err) cannot_write(d, path, err);
    errno = err;
    return !err;
}

int file_try_folder(const char *dir) {
    Arena *tmp = arena_new();
    OutFile o = {.real = dup_text(file_join(tmp, dir, "x"))};
    errno = 0;
    int err = open_beside(&o, NULL) ? 0 : errno ? errno : EIO;
    if (!err) {
        fclose(o.f);
        if (o.named) unlink(o.temp);
        base_cleanup_pop(remove_temp, &o);
    }
    free(o.real);
    free(o.temp);
    arena_free(tmp);
    return err;
}
bool file_writable(Diags *d, const char *path) {
    struct stat st;
    if (strcmp(path, "-") == 0) return true;
    int err = 0;
    if (stat(path, &st) < 0) {
        Arena *tmp = arena_new();
        const char *to = file_target(tmp, path);
        err = readlink(to, (char[1]){0}, 1) >= 0 ? ELOOP : file_try_folder(file_dir(tmp, to));
        arena_free(tmp);
    } else if (S_ISDIR(st.st_mode)) {
        err = EISDIR;
    } else if (access(path, W_OK) < 0) {
        err = errno;
    }
    if (err) cannot_write(d, path, err);
    return !err;
}
