/* Bytes as a file without a disk: a memfd, rewritten for every input. */
#define _GNU_SOURCE
#include "fuzz.h"
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_file(const uint8_t *p, size_t n) {
    static char path[40];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        assert(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    assert(ftruncate(fd, 0) == 0 && pwrite(fd, p, n, 0) == (ssize_t)n);
    return path;
}
