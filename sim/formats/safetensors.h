/* safetensors files: reading by ranges, writing as a stream. Uses base, json and kernel/tensor.h
 * only, so that the model may look at a header (sizes, names) before there is a graph. */
#ifndef SP_FORMATS_SAFETENSORS_H
#define SP_FORMATS_SAFETENSORS_H
#include "base/diag.h"
#include "kernel/tensor.h"

typedef struct StTensor {
    const char *name;
    Dtype dtype; /* what it is read as; I32 and the other whole numbers count as DT_I64 */
    int nd;
    int64_t shape[LAYOUT_MAX_DIMS];
    const char *file;
    int fd;         /* of the open file */
    uint8_t stored; /* element type in the file, private */
    int64_t offset; /* of its first byte in the file */
    int64_t bytes;
} StTensor;
typedef struct SafeTensors {
    int n;
    StTensor *t; /* sorted by name */
    struct StMap *maps;
} SafeTensors;
/* Opens one .safetensors file, a model.safetensors.index.json with its shards, or a folder that
 * holds one of them (model.safetensors first); NULL and diagnostics (E01xx, E0109) if it is
 * missing, truncated or lies (offsets out of range, overlapping, with holes, sizes that do not fit,
 * unknown dtype, header larger than 100 MB; E0702 above 16 MiB). Files stay open until st_close. */
SafeTensors *st_open(Arena *arena, Diags *d, const char *path, Loc loc);
void st_close(SafeTensors *st);
/* The tensor of that very name, or NULL; it lives as long as the files are open. */
const StTensor *st_find(const SafeTensors *st, const char *name);
/* A number for what is in it: names, types, shapes, and of every tensor the bytes, of a large one
 * those of its ends and of its middle. Files that differ anywhere else have the same: nobody wants
 * to read a whole model for it. */
uint64_t st_fingerprint(const SafeTensors *st);
/* Reads elements first..first+n-1 (which the tensor must have) into out[n] as f32, f64 or i64.
 * BF16, F16, F32, F64 and whole-number sources. False, and zeros, if the file no longer holds them:
 * it is read by ranges, never mapped, so that a file that shrinks cannot end the run. */
bool st_read(const StTensor *t, int64_t first, int64_t n, Dtype dtype, void *out);
/* The type's name as written in files, "BF16". */
const char *st_dtype_name(const StTensor *t);
/* "[2, 20, 42]": a shape, or a place; where element i of a tensor stands, row-major. They live in
 * `a`. */
const char *st_shape_text(Arena *a, int nd, const int64_t *shape);
const char *st_index_text(Arena *a, const StTensor *t, int64_t i);

typedef struct StWriter StWriter;
/* Writes a file: declare all tensors, then data in the same order, then commit (or abandon: both
 * free it). F64, F32, I64, row-major. NULL
 * and a diagnostic if it cannot be created; st_commit is false, and nothing is left, if anything
 * was not written. */
StWriter *st_writer(Arena *arena, Diags *d, const char *path);
void st_declare(StWriter *w, const char *name, Dtype dtype, int nd, const int64_t *shape);
void st_data(StWriter *w, const void *p,
             size_t bytes); /* the next declared tensor, whole or in pieces */
bool st_commit(StWriter *w);
/* Gives up: nothing is left of it. */
void st_abandon(StWriter *w);
#endif
