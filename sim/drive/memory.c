/* The room that there is: of the machine, the process limits and the control groups. */
#include "drive/memory.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    UNLIMITED_STACK = 8 << 20
}; /* what a thread gets where there is no limit, or a larger one */
static char *small_file(Arena *arena, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char text[8192];
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 ? arena_strndup(arena, text, (size_t)n) : NULL;
}
int64_t memory_meminfo(const char *text) {
    const char *s = text ? strstr(text, "MemAvailable:") : NULL;
    long long kib = s ? strtoll(s + 13, NULL, 10) : 0;
    return kib > 0 ? (int64_t)kib * 1024 : INT64_MAX;
}
int64_t memory_group(const char *limit, const char *use) {
    char *end;
    long long most = limit ? strtoll(limit, &end, 10) : 0, have = use ? strtoll(use, NULL, 10) : 0;
    /* "max"; v1 says 2^63 less a page */
    if (!limit || end == limit || most <= 0 || most >= INT64_MAX / 2) return INT64_MAX;
    return most > have ? most - have : 0;
}
static void least(MemoryRoom *r, int64_t bytes, const char *what) {
    if (bytes < r->bytes) *r = (MemoryRoom){bytes, what, 0};
}
/* Every group from ours up to the root may set a limit: v2 in one tree, v1 in the tree of its own
 * of "memory". */
static void groups(Arena *arena, MemoryRoom *r) {
    static const char what[] = "the memory limit of the control group";
    char *all = small_file(arena, "/proc/self/cgroup"), *at;
    for (char *line = all ? strtok_r(all, "\n", &at) : NULL; line;
         line = strtok_r(NULL, "\n", &at)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) continue;
        bool v2 = list[1] == ':', v1 = strncmp(list + 1, "memory:", 7) == 0 ||
                                       strstr(list, ",memory:") || strstr(list, ":memory,");
        if (!v1 && !v2) continue;
        path = arena_strdup(arena, path + 1);
        for (size_t n = strlen(path);; n = (size_t)(strrchr(path, '/') - path)) {
            path[n] = 0;
            const char *dir = arena_printf(arena, "/sys/fs/cgroup%s%s", v2 ? "" : "/memory", path);
            char *limit =
                small_file(arena, arena_printf(arena, "%s/%s", dir,
                                               v2 ? "memory.max" : "memory.limit_in_bytes"));
            char *use =
                small_file(arena, arena_printf(arena, "%s/%s", dir,
                                               v2 ? "memory.current" : "memory.usage_in_bytes"));
            char *stat = small_file(arena, arena_printf(arena, "%s/memory.stat", dir));
            int64_t room = memory_group(limit, use);
            /* pages of files are given up when memory is wanted */
            const char *file =
                stat ? strstr(stat, v2 ? "\ninactive_file " : "\ntotal_inactive_file ") : NULL;
            if (file && room < INT64_MAX / 2) room += strtoll(strchr(file, ' '), NULL, 10);
            least(r, room, what);
            if (!strrchr(path, '/')) break;
        }
    }
}
MemoryRoom memory_room(Arena *arena) {
    MemoryRoom r = {memory_meminfo(small_file(arena, "/proc/meminfo")),
                    "what the machine has available", 0};
    if (r.bytes == INT64_MAX)
        r.bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    groups(arena, &r);
    long pages = 0, resident = 0;
    const char *statm = small_file(arena, "/proc/self/statm");
    if (statm && sscanf(statm, "%ld %ld", &pages, &resident) != 2) pages = 0;
    struct rlimit lim;
    int64_t page = sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &lim) == 0 && lim.rlim_cur < (rlim_t)INT64_MAX)
        least(&r,
              (int64_t)lim.rlim_cur - pages * page > 0 ? (int64_t)lim.rlim_cur - pages * page : 0,
              "ulimit -v");
    const bool space = !strcmp(r.what, "ulimit -v");
    if (getrlimit(RLIMIT_DATA, &lim) == 0 && lim.rlim_cur < (rlim_t)INT64_MAX)
        least(&r, (int64_t)lim.rlim_cur, "ulimit -d");
    if (space && getrlimit(RLIMIT_STACK, &lim) == 0)
        r.stacks = lim.rlim_cur < (rlim_t)UNLIMITED_STACK ? (int64_t)lim.rlim_cur : UNLIMITED_STACK;
    return r;
}
MemoryRoom memory_room_of(Arena *arena, int threads) {
    MemoryRoom r = memory_room(arena);
    r.bytes -= r.stacks * (threads - 1);
    if (r.bytes < 0) r.bytes = 0;
    return r;
}
