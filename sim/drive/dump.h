/* The file of --against, or many: what a framework's ranks have written, one file each, as one list
 * of tensors under the names "rank3/NAME". Refuses to guess which rank a file is of. */
#ifndef SP_DRIVE_DUMP_H
#define SP_DRIVE_DUMP_H
#include "formats/safetensors.h"

typedef struct Dump {
    SafeTensors all; /* of all files; its tensors are open until dump_close */
    SafeTensors **file;
    int n, cap;
} Dump;
/* Opens a file (or what st_open takes for one); with `rank` of 0 or more its tensors are what that
 * rank holds; of a folder with rank0.safetensors, rank1.safetensors, .. and no model's file each is
 * of its rank. NULL and diagnostics where st_open gives them; E0704 above 512 files, E0109 where
 * two files are of one rank. */
Dump *dump_open(Arena *arena, Diags *d, const char *path, int64_t rank);
void dump_close(Dump *x); /* NULL is allowed */
#endif
