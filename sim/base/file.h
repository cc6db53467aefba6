/* Files: reading whole inputs within limits, writing outputs so that none is ever half-written or
 * lost. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H
#include "base/diag.h"
/* Reads a whole file, "-" or a pipe included (until end of file, `limit` bytes or 2 s of silence).
 * NULL and a diagnostic (E01xx, at `loc`, or about the file itself if loc.file is NULL) if it is
 * missing, a directory, unreadable or larger than limit (E07xx). Terminated with a NUL that is not
 * counted. */
char *file_read(Arena *arena, Diags *d, const char *path, size_t limit, Loc loc, size_t *n);
/* How many bytes an input may have. Its first bytes may say more: when there are more than `bytes`,
 * `larger` (or NULL) is asked once, with what was read so far (terminated), and returns another
 * limit, or 0. */
typedef struct {
    size_t bytes;
    size_t (*larger)(const char *head, size_t n);
} FileLimit;
/* file_read for such an input. */
char *file_read_larger(Arena *arena, Diags *d, const char *path, FileLimit limit, Loc loc,
                       size_t *n);
/* An output under way: written into a file without a name (where the file system has none such:
 * under a random one beside the target), put on the disk, and renamed over the target by
 * file_commit. Whatever ends the run before, the target is what it was and nothing else is left. An
 * output that is not a regular file is written through. */
typedef struct OutFile OutFile;
/* NULL and E0105 (exit 4). What it returns ends with file_commit or file_abandon, which free it. */
OutFile *file_create(Diags *d, const char *path);
/* Its stream, which belongs to it: not to be closed. */
FILE *file_stream(OutFile *f);
void file_put(OutFile *f, const void *p, size_t n); /* an error is kept for file_commit */
bool file_commit(Diags *d,
                 OutFile *f); /* flush, check, fsync, rename; false and a diagnostic on failure */
void file_abandon(OutFile *f);
bool file_write(Diags *d, const char *path, const void *p, size_t n); /* create + write + commit */
/* "dir/name" relative to `dir` unless absolute. */
const char *file_join(Arena *arena, const char *dir, const char *name);
/* The folder part of a path, without a slash behind it; "." of a bare name, "/" of what lies there.
 */
const char *file_dir(Arena *arena, const char *path);
/* Where an output of this path lies: the end of its symbolic links, also of those that lead to no
 * file yet. */
const char *file_target(Arena *arena, const char *path);
/* Makes a folder and those above it that are not there; false, E0105 and errno. What it made stays.
 */
bool file_make_dirs(Diags *d, const char *path);
/* Can files be made in this folder? 0 or errno. Leaves nothing behind. */
int file_try_folder(const char *dir);
/* Would file_create work? Asked before the work is done whose result goes there: false and E0105 if
 * not. */
bool file_writable(Diags *d, const char *path);
#endif
