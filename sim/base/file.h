/* Files: reading whole inputs within limits, writing outputs so that none is ever half-written or lost. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H
#include "base/diag.h"
/* Reads a whole file, "-" or a pipe included (until end of file, `limit` bytes or 2 s of silence). NULL and a diagnostic
 * (E01xx, at `loc`, or about the file itself if loc.file is NULL) if it is missing, a directory, unreadable or larger than limit (E07xx). Terminated with
 * a NUL that is not counted. */
char *file_read(Arena *arena, Diags *d, const char *path, size_t limit, Loc loc, size_t *n);
/* An output under way: written beside the target, renamed over it by file_commit; an output that is not a regular file is
 * written through. Removed if the run ends early. */
typedef struct OutFile OutFile;
OutFile *file_create(Diags *d, const char *path); /* NULL and E0105 (exit 4) */
FILE *file_stream(OutFile *f);
const char *file_temp_path(OutFile *f); /* where a library may write by itself (cairo); "" when written through */
bool file_commit(Diags *d, OutFile *f); /* flush, check, rename; false and a diagnostic on failure */
void file_abandon(OutFile *f);
bool file_write(Diags *d, const char *path, const void *p, size_t n); /* create + write + commit */
/* "dir/name" relative to `dir` unless absolute. */
const char *file_join(Arena *arena, const char *dir, const char *name);
const char *file_dir(Arena *arena, const char *path);
bool file_make_dirs(Diags *d, const char *path);
#endif
