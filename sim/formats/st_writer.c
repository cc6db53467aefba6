/* Writing safetensors files as a stream: all tensors are declared, then their data follow in the
 * same order. The target appears only when everything was written (base/file.h); a file with
 * missing data is never committed. */
#include "base/file.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include <assert.h>
#include <string.h>

typedef struct {
    const char *name;
    Dtype dtype;
    int nd;
    int64_t shape[LAYOUT_MAX_DIMS];
    int64_t begin, end; /* of its data */
} Declared;

struct StWriter {
    Arena *a;
    Diags *d;
    OutFile *f;
    Declared *t;
    int n, cap;
    int64_t size, written; /* bytes of data declared and written */
    bool started;
};

StWriter *st_writer(Arena *arena, Diags *d, const char *path) {
    OutFile *f = file_create(d, path);
    if (!f) return NULL;
    StWriter *w = ARENA_NEW(arena, StWriter);
    w->a = arena;
    w->d = d;
    w->f = f;
    return w;
}

void st_declare(StWriter *w, const char *name, Dtype dtype, int nd, const int64_t *shape) {
    assert(!w->started && nd <= LAYOUT_MAX_DIMS);
    Declared t = {.name = arena_strdup(w->a, name), .dtype = dtype, .nd = nd, .begin = w->size};
    int64_t bytes = dtype_size(dtype);
    for (int i = 0; i < nd; i++) {
        t.shape[i] = shape[i];
        bytes *= shape[i];
    }
    t.end = w->size += bytes;
    *ARENA_PUSH(w->a, w->t, w->n, w->cap) = t;
}

static void put(StWriter *w, const void *p, size_t n) {
    if (n) file_put(w->f, p, n);
}

static void write_header(StWriter *w) {
    static const char *const names[] = {
        [DT_F32] = "F32", [DT_F64] = "F64", [DT_I64] = "I64", [DT_BF16] = "BF16", [DT_F16] = "F16"};
    w->started = true;
    JsonWriter j = json_writer(w->a);
    json_open(&j, NULL, '{');
    for (int i = 0; i < w->n; i++) {
        const Declared *t = &w->t[i];
        json_open(&j, t->name, '{');
        json_str(&j, "dtype", names[t->dtype]);
        json_open(&j, "shape", '[');
        for (int k = 0; k < t->nd; k++) json_int(&j, NULL, t->shape[k]);
        json_close(&j, ']');
        json_open(&j, "data_offsets", '[');
        json_int(&j, NULL, t->begin);
        json_int(&j, NULL, t->end);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, '}');
    while (j.s.n % 8) str_add(&j.s, " "); /* so that data start at a multiple of 8 */
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)j.s.n >> 8 * i);
    put(w, length, 8);
    put(w, j.s.s, j.s.n);
}

void st_data(StWriter *w, const void *p, size_t bytes) {
    if (!w->started) write_header(w);
    assert((int64_t)bytes <= w->size - w->written);
    put(w, p, bytes);
    w->written += (int64_t)bytes;
}

bool st_commit(StWriter *w) {
    if (!w->started) write_header(w);
    assert(w->written == w->size);
    return file_commit(w->d, w->f);
}
void st_abandon(StWriter *w) { file_abandon(w->f); }
