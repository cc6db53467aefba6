/* One word of memory for the processes of a run. See claim.h. The first process has it in a file
 * without a name (memfd), and is found by a socket whose name is the job's, in the kernel's own
 * space of names: the system forgets both when it ends. The others map that file. */
#define _GNU_SOURCE /* memfd_create, struct ucred */
#include "engine/claim.h"
#include "base/ends.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* looks after a process that has a name and does not answer by it yet (it may have no processor
 * just there), or no more; those after one whose file cannot be opened; milliseconds between them
 */
enum { LOOKS = 2000, UNREADABLE = 200, LOOK_MS = 5, ROOM = 128, WORD = sizeof(_Atomic int32_t) };

static void *map(int fd) {
    void *p =
        mmap(NULL, WORD, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    return p == MAP_FAILED ? NULL : p;
}
/* The file of that name among those that a process has open. */
static void *map_of(pid_t pid, const char *name) {
    char dir[64], want[ROOM + 32], path[ROOM + 320], is[ROOM + 32];
    void *p = NULL;
    snprintf(dir, sizeof dir, "/proc/%ld/fd", (long)pid);
    snprintf(want, sizeof want, "/memfd:%s (deleted)", name);
    DIR *all = opendir(dir);
    for (struct dirent *e; all && !p && (e = readdir(all));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        ssize_t n = readlink(path, is, sizeof is - 1);
        is[n > 0 ? n : 0] = 0;
        int fd = strcmp(is, want) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) continue;
        p = map(fd);
        close(fd);
    }
    if (all) closedir(all);
    return p;
}
/* As the first process of the job: what is open stays open. *taken: there is another. */
static void *found(const char *name, const struct sockaddr *at, socklen_t n, bool *taken) {
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = memfd_create(name, MFD_CLOEXEC);
    void *p = s >= 0 && fd >= 0 && ftruncate(fd, WORD) == 0 ? map(fd) : NULL;
    if (p && bind(s, at, n) == 0 && listen(s, SOMAXCONN) == 0) return p;
    *taken = p && errno == EADDRINUSE;
    if (p) munmap(p, WORD);
    if (s >= 0) close(s);
    if (fd >= 0) close(fd);
    return NULL;
}
/* As one of the others. *looks counts on where nobody answers yet, and is at its end soon where
 * somebody does whose file is not to be had: of another container. */
static void *join(const char *name, const struct sockaddr *at, socklen_t n, int *looks) {
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred who;
    socklen_t size = sizeof who;
    void *p = NULL;
    if (s >= 0 && connect(s, at, n) == 0 &&
        getsockopt(s, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        p = map_of(who.pid, name), *looks += p ? 0 : LOOKS / UNREADABLE - 1;
    if (s >= 0) close(s);
    return p;
}
void claim_share(const char *job) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char name[ROOM];
    void *p = NULL;
    bool taken = true;
    /* of one user: the files of another's processes cannot be opened */
    snprintf(name, sizeof name, "shardproof-%lu-%.64s", (unsigned long)getuid(), job);
    int k = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "%s", name);
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)k);
    for (int i = 0; !p && taken && i < LOOKS; i++) {
        if (i) poll(NULL, 0, LOOK_MS);
        p = found(name, (struct sockaddr *)&at, n, &taken);
        if (!p && taken) p = join(name, (struct sockaddr *)&at, n, &i);
    }
    base_one_speaks(p ? p : map(-1));
}
