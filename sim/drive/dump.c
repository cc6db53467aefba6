/* Files of ranks as one list of tensors. See dump.h. */
#include "drive/dump.h"
#include "base/file.h"
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 512 }; /* all are open at once, and a process may have 1,024 */

/* The rank that a file's name says: "rank12.safetensors"; -1: it is none's. */
static int64_t rank_of(const char *name) {
    char *end;
    if (strncmp(name, "rank", 4) || !isdigit((unsigned char)name[4])) return -1;
    long long rank = strtoll(name + 4, &end, 10);
    return strcmp(end, ".safetensors") || end - name > 16 ? -1 : (int64_t)rank;
}
static int is_rank(const struct dirent *e) { return rank_of(e->d_name) >= 0; }
static int by_rank(const struct dirent **x, const struct dirent **y) {
    int64_t a = rank_of((*x)->d_name), b = rank_of((*y)->d_name);
    return (a > b) - (a < b);
}
/* Adds the tensors of a file; rank -1: under their own names. */
static bool add(Dump *x, Arena *arena, Diags *d, const char *path, int64_t rank) {
    SafeTensors *st = st_open(arena, d, path, diag_nowhere);
    if (!st) return false;
    *ARENA_PUSH(arena, x->file, x->n, x->cap) = st;
    StTensor *all = ARENA_ARRAY(arena, StTensor, x->all.n + st->n + 1);
    if (x->all.n) memcpy(all, x->all.t, sizeof *all * (size_t)x->all.n);
    for (int i = 0; i < st->n; i++) {
        StTensor *t = &all[x->all.n + i];
        *t = st->t[i];
        if (rank >= 0) t->name = arena_printf(arena, "rank%lld/%s", (long long)rank, t->name);
    }
    x->all.t = all;
    x->all.n += st->n;
    return true;
}
static bool add_ranks(Dump *x, Arena *arena, Diags *d, const char *folder, struct dirent **e,
                      int n) {
    if (n > MOST_FILES) {
        diag_error(d, "E0704", ((Loc){folder, 0, 0}), "leave some ranks out of the folder",
                   "%d files of ranks; %d can be compared at once", n, MOST_FILES);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int64_t rank = rank_of(e[i]->d_name);
        const char *path = file_join(arena, folder, e[i]->d_name);
        if (i && rank == rank_of(e[i - 1]->d_name)) {
            diag_error(d, "E0109", ((Loc){path, 0, 0}), "one file for each rank",
                       "'%s' and '%s' are of one rank", e[i - 1]->d_name, e[i]->d_name);
            return false;
        }
        if (!add(x, arena, d, path, rank)) return false;
    }
    return true;
}
/* The files of ranks in a folder that is no checkpoint; 0: it is something else. */
static int scan(Arena *arena, const char *path, struct dirent ***e) {
    struct stat s;
    if (stat(path, &s) || !S_ISDIR(s.st_mode)) return 0;
    if (!stat(file_join(arena, path, "model.safetensors"), &s)) return 0;
    if (!stat(file_join(arena, path, "model.safetensors.index.json"), &s)) return 0;
    int n = scandir(path, e, is_rank, by_rank);
    return n > 0 ? n : 0;
}
/* A folder with nothing to read in it. */
static bool is_empty(Arena *arena, const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode) &&
           stat(file_join(arena, path, "model.safetensors"), &s) &&
           stat(file_join(arena, path, "model.safetensors.index.json"), &s);
}
Dump *dump_open(Arena *arena, Diags *d, const char *path, int64_t rank) {
    Dump *x = ARENA_NEW(arena, Dump);
    struct dirent **e = NULL;
    int n = rank < 0 ? scan(arena, path, &e) : 0;
    bool none = !n && is_empty(arena, path), ok = false;
    if (none)
        diag_error(d, "E0101", ((Loc){path, 0, 0}),
                   "docs/dump_ranks.py writes a file for each rank; `run --save-values FILE` one",
                   "the folder '%s' has neither rank0.safetensors and so on nor model.safetensors",
                   path);
    else ok = n ? add_ranks(x, arena, d, path, e, n) : add(x, arena, d, path, rank);
    for (int i = 0; i < n; i++) free(e[i]);
    free(e);
    if (ok) return x;
    dump_close(x);
    return NULL;
}
void dump_close(Dump *x) {
    for (int i = 0; x && i < x->n; i++) st_close(x->file[i]);
}
