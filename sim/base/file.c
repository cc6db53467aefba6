/* Reading whole inputs within limits, and writing outputs so that none is ever half-written or lost.
 * Refuses to block on an input that stays silent, and to rename over anything that is not a regular file. */
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    if (name[0] == '/' || !dir || !dir[0] || strcmp(dir, ".") == 0) return arena_strdup(arena, name);
    return arena_printf(arena, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name);
}

/* ---- reading ---- */

/* The nearest name in the folder of a file that does not exist, or NULL. */
static const char *nearest_file(Arena *arena, const char *path) {
    const char *dir = file_dir(arena, path), *slash = strrchr(path, '/');
    DIR *h = opendir(dir);
    if (!h) return NULL;
    const char **names = ARENA_ARRAY(arena, const char *, DIR_NAMES + 1);
    int n = 0;
    for (struct dirent *e; n < DIR_NAMES && (e = readdir(h));)
        if (e->d_name[0] != '.') names[n++] = arena_strdup(arena, e->d_name);
    closedir(h);
    const char *best = diag_nearest(slash ? slash + 1 : path, names);
    return best ? file_join(arena, dir, best) : NULL;
}

static void cannot_open(Arena *arena, Diags *d, const char *path, Loc loc, int err) {
    if (err == ENOENT || err == ENOTDIR)
        diag_error(d, "E0101", loc, nearest_file(arena, path), "no file '%s'", path);
    else
        diag_error(d, "E0102", loc, NULL, "'%s' cannot be opened: %s", path, strerror(err));
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
    bool regular;
} Source;

/* Reads fd to its end into `arena`; `guess` is the size it is expected to have. */
static char *read_fd(Arena *arena, Diags *d, int fd, const Source *s, size_t guess, size_t *out_n) {
    size_t cap = guess, n = 0;
    char *buf = base_malloc(cap + 1), *copy = NULL;
    for (;;) {
        int ready = s->regular ? 1 : wait_for(fd);
        if (ready == 0 && n == 0) {
            diag_error(d, "E0102", s->loc, "close the pipe after writing, or write the plan into a file",
                       "'%s' gave nothing for 2 seconds", s->path);
            goto end;
        }
        if (ready == 0) {
            diag_warn(d, "W0001", s->loc, NULL, "'%s' was not closed: what came until 2 seconds of silence is used",
                      s->path);
            break;
        }
        if (n == cap) cap = cap < SIZE_MAX / 4 ? cap * 2 : cap, buf = base_realloc(buf, cap + 1);
        ssize_t k = ready < 0 ? -1 : read(fd, buf + n, cap - n);
        if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (k < 0) {
            diag_error(d, "E0102", s->loc, NULL, "'%s' cannot be read: %s", s->path, strerror(errno));
            goto end;
        }
        if (k == 0) break;
        n += (size_t)k;
        if (n > s->limit) {
            diag_error(d, "E0702", s->loc, NULL, "'%s' is larger than %zu bytes", s->path, s->limit);
            goto end;
        }
    }
    copy = arena_strndup(arena, buf, n);
    *out_n = n;
end:
    free(buf);
    return copy;
}

char *file_read(Arena *arena, Diags *d, const char *path, size_t limit, Loc loc, size_t *n) {
    bool is_stdin = strcmp(path, "-") == 0;
    if (!loc.file) loc = about(path);
    *n = 0;
    /* O_NONBLOCK: opening a FIFO without a writer must not hang; it does not matter for regular files */
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        cannot_open(arena, d, path, loc, errno);
        return NULL;
    }
    struct stat st;
    char *text = NULL;
    Source s = {path, loc, limit, false};
    if (fstat(fd, &st) < 0) {
        cannot_open(arena, d, path, loc, errno);
    } else if (S_ISDIR(st.st_mode)) {
        diag_error(d, "E0102", loc, NULL, "'%s' is a folder", path);
    } else if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > limit) {
        diag_error(d, "E0702", loc, NULL, "'%s' has %jd bytes, the limit is %zu", path, (intmax_t)st.st_size, limit);
    } else {
        s.regular = S_ISREG(st.st_mode);
        /* one byte more than the size, so that the end is seen without growing */
        size_t guess = s.regular && st.st_size > 0 ? (size_t)st.st_size + 1 : FIRST_BLOCK;
        text = read_fd(arena, d, fd, &s, guess, n);
    }
    if (!is_stdin) close(fd);
    return text;
}

/* ---- writing ---- */

struct OutFile {
    char *path; /* as given */
    char *real; /* what is renamed over: symbolic links are followed */
    char *temp; /* "" when written through */
    FILE *f;
};

static char *dup_text(const char *s) {
    size_t n = strlen(s) + 1;
    return memcpy(base_malloc(n), s, n);
}

static void remove_temp(void *arg) {
    const OutFile *o = arg;
    if (o->temp[0]) unlink(o->temp);
}

static void out_free(OutFile *o) {
    free(o->path);
    free(o->real);
    free(o->temp);
    free(o);
}

static void *cannot_write(Diags *d, const char *path, int err) {
    Loc l = {path, 0, 0};
    const char *hint = err == ENOENT ? "the folder does not exist" : err == ENOSPC ? "the disk is full" : NULL;
    diag_error(d, "E0105", l, hint, "cannot be written: %s", strerror(err));
    return NULL;
}

/* The descriptor that a path stands for: /dev/fd/3, or whatever our own standard streams are connected to (their file
 * must not be replaced under them). -1: none. */
static int same_as_open_fd(const char *path, const struct stat *st) {
    static const char *const prefix[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0) return STDOUT_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(prefix[i]);
        if (strncmp(path, prefix[i], n) == 0 && path[n] >= '0' && path[n] <= '9' && strlen(path + n) < 6)
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
        for (int ms = 0; ms <= SILENCE_MS; ms += 20) {
            out = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
            if (out >= 0 || errno != ENXIO) break;
            poll(NULL, 0, 20);
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

/* A new file in the folder of `real` under a name nobody else has. `old`: what is there now, or NULL. */
static FILE *open_temp(const char *real, const struct stat *old, char **temp) {
    const char *slash = strrchr(real, '/');
    int dir = slash ? (int)(slash - real) + 1 : 0;
    size_t size = (size_t)dir + 64;
    char *t = base_malloc(size);
    int fd = -1;
    for (int i = 0; fd < 0 && i < 10000; i++) {
        snprintf(t, size, "%.*s.shardproof-%ld-%d.tmp", dir, real, (long)getpid(), i);
        fd = open(t, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    FILE *f = NULL;
    if (fd >= 0) {
        if (old && fchmod(fd, old->st_mode & 07777) < 0) errno = 0; /* a file system without modes */
        f = fdopen(fd, "w");
        if (!f) close(fd), unlink(t);
    }
    if (f)
        *temp = t;
    else
        free(t);
    return f;
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
    char real[PATH_MAX];
    o->path = dup_text(path);
    o->real = dup_text(there && !through && realpath(path, real) ? real : path);
    o->temp = NULL;
    o->f = through ? open_through(path, fd) : open_temp(o->real, there ? &st : NULL, &o->temp);
    if (!o->f) {
        cannot_write(d, path, errno);
        out_free(o);
        return NULL;
    }
    if (through) o->temp = dup_text("");
    base_cleanup_push(remove_temp, o);
    return o;
}

FILE *file_stream(OutFile *f) { return f->f; }
const char *file_temp_path(OutFile *f) { return f->temp; }

void file_abandon(OutFile *o) {
    if (!o) return;
    base_cleanup_pop(remove_temp, o);
    fclose(o->f);
    remove_temp(o);
    out_free(o);
}

bool file_commit(Diags *d, OutFile *o) {
    base_cleanup_pop(remove_temp, o);
    errno = 0;
    bool ok = !ferror(o->f);
    ok = fflush(o->f) == 0 && ok;
    int err = errno;
    if (fclose(o->f) != 0) {
        if (ok) err = errno;
        ok = false;
    }
    if (ok && o->temp[0] && rename(o->temp, o->real) < 0) {
        err = errno;
        ok = false;
    }
    /* a reader that went away has read what it wanted: a broken pipe ends quietly */
    if (!ok && !o->temp[0] && err == EPIPE) ok = true;
    if (!ok) {
        cannot_write(d, o->path, err ? err : EIO);
        remove_temp(o);
    }
    out_free(o);
    return ok;
}

bool file_write(Diags *d, const char *path, const void *p, size_t n) {
    OutFile *o = file_create(d, path);
    if (!o) return false;
    fwrite(p, 1, n, o->f);
    return file_commit(d, o);
}

bool file_make_dirs(Diags *d, const char *path) {
    char *p = dup_text(path);
    struct stat st;
    for (char *s = p + (p[0] == '/'); *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        if (mkdir(p, 0777) < 0 && errno != EEXIST && errno != EISDIR) break;
        *s = '/';
    }
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        cannot_write(d, path, errno);
    } else if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        cannot_write(d, path, ENOTDIR);
    } else {
        free(p);
        return true;
    }
    free(p);
    return false;
}
