/* Reading safetensors files: 8 bytes of header length, a JSON header, data. Everything the header
 * says is checked against the file before it is believed. Data are read by ranges into the caller's
 * memory, never mapped: a file that shrinks while it is read is an error and not a signal. Refuses
 * what the format forbids (holes, overlaps), even if harmless. */
#include "formats/safetensors.h"
#include "base/file.h"
#include "base/text.h"
#include "formats/json.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format allows headers of 100 MB; of files that exist, those of 100,000 tensors have about 12.
 */
enum {
    HEADER_LIMIT = 100 * 1000 * 1000,
    HEADER_READ = 16 << 20,
    INDEX_LIMIT = 64 << 20,
    MAX_SHARDS = 900,
    CHUNK = 1 << 16
};

/* Element types of the format, in the order of StTensor.stored. */
typedef enum {
    ST_BOOL,
    ST_U8,
    ST_I8,
    ST_I16,
    ST_U16,
    ST_I32,
    ST_U32,
    ST_I64,
    ST_F16,
    ST_BF16,
    ST_F32,
    ST_F64
} Stored;
static const struct {
    const char *name;
    Dtype as;
    int size;
} types[] = {{"BOOL", DT_I64, 1}, {"U8", DT_I64, 1},    {"I8", DT_I64, 1},  {"I16", DT_I64, 2},
             {"U16", DT_I64, 2},  {"I32", DT_I64, 4},   {"U32", DT_I64, 4}, {"I64", DT_I64, 8},
             {"F16", DT_F16, 2},  {"BF16", DT_BF16, 2}, {"F32", DT_F32, 4}, {"F64", DT_F64, 8}};
enum { N_TYPES = sizeof types / sizeof *types };

/* The open files. */
struct StMap {
    int n;
    int fd[MAX_SHARDS];
};

/* One file being opened. */
typedef struct {
    Arena *a;
    Diags *d;
    const char *path;
    Loc loc;
    int fd;
    int64_t data, size; /* where data begin, where the file ends */
} File;

static bool lie(const File *f, const char *what) {
    diag_error(f->d, "E0109", f->loc,
               "download or write it again: it may be cut off, or another kind of file",
               "'%s' is no valid safetensors file: %s", f->path, what);
    return false;
}

/* Whole ranges: false if the file ends before or cannot be read. */
static bool read_at(int fd, void *out, int64_t n, int64_t offset) {
    char *p = out;
    while (n > 0) {
        ssize_t got = pread(fd, p, (size_t)(n > 1 << 30 ? 1 << 30 : n), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        offset += got;
        n -= got;
    }
    return true;
}

/* ---- header ---- */

static bool whole_number(const Json *v, int64_t *out) {
    if (!v || v->kind != JSON_INT || v->i < 0) return false;
    *out = v->i;
    return true;
}

/* Shape and byte range of one tensor; `offset` counts from the start of the file. */
static bool read_entry(const File *f, const char *name, const Json *v, StTensor *t) {
    const Json *dtype = json_get(v, "dtype"), *shape = json_get(v, "shape"),
               *range = json_get(v, "data_offsets");
    *t = (StTensor){.name = name, .file = f->path, .fd = f->fd};
    if (!dtype || dtype->kind != JSON_STRING || !shape || shape->kind != JSON_ARRAY || !range ||
        range->kind != JSON_ARRAY || range->n != 2)
        return lie(f, arena_printf(f->a, "'%s' lacks dtype, shape or data_offsets", name));
    int type = 0;
    while (type < N_TYPES && strcmp(types[type].name, dtype->s)) type++;
    if (type == N_TYPES)
        return lie(f, arena_printf(f->a, "'%s' has the unknown dtype '%s'", name, dtype->s));
    t->dtype = types[type].as;
    t->stored = (uint8_t)type;
    if (shape->n > LAYOUT_MAX_DIMS)
        return lie(f, arena_printf(f->a, "'%s' has %d dims", name, shape->n));
    int64_t bytes = types[type].size, begin, end;
    for (t->nd = 0; t->nd < shape->n; t->nd++) {
        int64_t *n = &t->shape[t->nd];
        if (!whole_number(shape->item[t->nd], n) || __builtin_mul_overflow(bytes, *n, &bytes))
            return lie(f, arena_printf(f->a, "the shape of '%s' is impossible", name));
    }
    if (!whole_number(range->item[0], &begin) || !whole_number(range->item[1], &end) ||
        begin > end || end > f->size - f->data)
        return lie(f, arena_printf(f->a, "the offsets of '%s' are outside the file", name));
    if (end - begin != bytes)
        return lie(f, arena_printf(f->a, "'%s' has %lld bytes, its shape asks for %lld", name,
                                   (long long)(end - begin), (long long)bytes));
    t->offset = f->data + begin;
    t->bytes = bytes;
    return true;
}

static int by_offset(const void *a, const void *b) {
    const StTensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1
                               : x->bytes > y->bytes; /* empty tensors before their neighbour */
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StTensor *)a)->name, ((const StTensor *)b)->name);
}

/* The data must be covered once: the format forbids overlaps and holes. */
static bool check_cover(const File *f, StTensor *t, int n) {
    if (n) qsort(t, (size_t)n, sizeof *t, by_offset);
    int64_t at = f->data;
    for (int i = 0; i < n; i++) {
        if (t[i].offset != at)
            return lie(f, arena_printf(f->a,
                                       t[i].offset < at
                                           ? "the data of '%s' overlap those of another tensor"
                                           : "there is a hole before the data of '%s'",
                                       t[i].name));
        at += t[i].bytes;
    }
    if (at != f->size) return lie(f, "the file is longer than its tensors");
    return true;
}

static bool read_header(File *f, SafeTensors *st, int *cap) {
    unsigned char length[8];
    struct stat s;
    if (fstat(f->fd, &s) || !S_ISREG(s.st_mode)) return lie(f, "not a regular file");
    f->size = s.st_size;
    if (f->size < 10 || !read_at(f->fd, length, 8, 0)) return lie(f, "it is too short");
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | length[i];
    if (n > HEADER_LIMIT) return lie(f, "its header is larger than 100 MB");
    if ((int64_t)n > f->size - 8)
        return lie(f, "its header is longer than the file: it may be cut off");
    if (n > HEADER_READ) {
        diag_error(f->d, "E0702", f->loc, "split the checkpoint into several files with an index",
                   "'%s' has a header of %llu bytes, the limit is %d", f->path,
                   (unsigned long long)n, HEADER_READ);
        return false;
    }
    f->data = 8 + (int64_t)n;
    char *text = base_malloc(n + 1);
    const char *why = NULL;
    int line = 0, col = 0;
    bool got = read_at(f->fd, text, (int64_t)n, 8);
    Json *o = got ? json_parse(f->a, text, n, &why, &line, &col) : NULL;
    free(text);
    if (!o)
        return lie(f, got ? arena_printf(f->a, "the header is not JSON: %s", why)
                          : "it cannot be read");
    if (o->kind != JSON_OBJECT) return lie(f, "the header is no JSON object");
    int first = st->n;
    for (int i = 0; i < o->n; i++) {
        if (!strcmp(o->key[i], "__metadata__")) continue;
        StTensor t;
        if (!read_entry(f, o->key[i], o->value[i], &t)) return false;
        *ARENA_PUSH(f->a, st->t, st->n, *cap) = t;
    }
    return check_cover(f, st->n ? st->t + first : NULL, st->n - first);
}

static bool open_file(Arena *a, Diags *d, const char *path, Loc loc, SafeTensors *st, int *cap) {
    File f = {.a = a, .d = d, .path = path, .loc = loc};
    f.fd = open(path,
                O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block; it is refused later */
    if (f.fd < 0) {
        int e = errno;
        diag_error(d, e == ENOENT || e == ENOTDIR ? "E0101" : "E0102", loc, NULL, "'%s': %s", path,
                   strerror(e));
        return false;
    }
    st->maps->fd[st->maps->n++] = f.fd;
    return read_header(&f, st, cap);
}

/* ---- sharded checkpoints ---- */

/* A shard's name in an index: a file beside it. */
static bool is_plain_name(const char *s) { return *s && *s != '.' && !strchr(s, '/'); }

/* {"weight_map": {TENSOR: FILE}}: every file is opened once, every tensor must be where the index
 * says. */
static bool open_index(Arena *a, Diags *d, const char *path, Loc loc, SafeTensors *st, int *cap) {
    File f = {.a = a, .d = d, .path = path, .loc = loc};
    size_t n = 0;
    const char *why = "no weight_map";
    int line = 0, col = 0;
    char *text = file_read(a, d, path, INDEX_LIMIT, loc, &n);
    if (!text) return false;
    Json *o = json_parse(a, text, n, &why, &line, &col);
    Json *map = o ? json_get(o, "weight_map") : NULL;
    if (!map || map->kind != JSON_OBJECT) return lie(&f, why ? why : "no weight_map");
    const char **files = ARENA_ARRAY(a, const char *, MAX_SHARDS);
    int nfiles = 0;
    for (int i = 0; i < map->n; i++) {
        const Json *v = map->value[i];
        if (v->kind != JSON_STRING || !is_plain_name(v->s))
            return lie(&f, arena_printf(a, "'%s' is in no file of this folder", map->key[i]));
        int k = 0;
        while (k < nfiles && strcmp(files[k], v->s)) k++;
        if (k < nfiles) continue;
        if (nfiles == MAX_SHARDS) return lie(&f, "more than 900 shards");
        files[nfiles++] = v->s;
        if (!open_file(a, d, file_join(a, file_dir(a, path), v->s), loc, st, cap)) return false;
    }
    if (st->n) qsort(st->t, (size_t)st->n, sizeof *st->t, by_name);
    for (int i = 0; i < map->n; i++) {
        const StTensor *t = st_find(st, map->key[i]);
        if (!t || strcmp(t->file, file_join(a, file_dir(a, path), map->value[i]->s)))
            return lie(&f, arena_printf(a, "'%s' is not in %s", map->key[i], map->value[i]->s));
    }
    return true;
}

/* The file that a folder stands for. */
static const char *file_of_folder(Arena *a, const char *path) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    struct stat s;
    if (stat(path, &s) || !S_ISDIR(s.st_mode)) return path;
    for (int i = 0; i < 2; i++) {
        const char *file = file_join(a, path, names[i]);
        if (!stat(file, &s)) return file;
    }
    return file_join(a, path, names[0]);
}

SafeTensors *st_open(Arena *arena, Diags *d, const char *path, Loc loc) {
    SafeTensors *st = ARENA_NEW(arena, SafeTensors);
    st->maps = ARENA_NEW(arena, struct StMap);
    int cap = 0;
    path = file_of_folder(arena, path);
    if (!loc.file) loc = (Loc){path, 0, 0};
    bool ok = text_before(path, ".json") ? open_index(arena, d, path, loc, st, &cap)
                                         : open_file(arena, d, path, loc, st, &cap);
    if (ok && st->n) qsort(st->t, (size_t)st->n, sizeof *st->t, by_name);
    for (int i = 1; ok && i < st->n; i++)
        if (!strcmp(st->t[i - 1].name, st->t[i].name)) {
            File f = {.a = arena, .d = d, .path = path, .loc = loc};
            ok = lie(&f, arena_printf(arena, "'%s' occurs twice", st->t[i].name));
        }
    if (ok) return st;
    st_close(st);
    return NULL;
}

void st_close(SafeTensors *st) {
    if (!st) return;
    for (int i = 0; i < st->maps->n; i++) close(st->maps->fd[i]);
    st->maps->n = 0;
}

const StTensor *st_find(const SafeTensors *st, const char *name) {
    StTensor key = {.name = name};
    return st->n ? bsearch(&key, st->t, (size_t)st->n, sizeof *st->t, by_name) : NULL;
}

const char *st_dtype_name(const StTensor *t) { return types[t->stored].name; }
const char *st_shape_text(Arena *a, int nd, const int64_t *shape) {
    Str s = str_new(a);
    for (int d = 0; d < nd; d++) str_addf(&s, "%s%lld", d ? ", " : "[", (long long)shape[d]);
    str_add(&s, nd ? "]" : "[]");
    return s.s;
}
const char *st_index_text(Arena *a, const StTensor *t, int64_t i) {
    int64_t *at = ARENA_ARRAY(a, int64_t, t->nd + 1);
    for (int d = t->nd - 1; d >= 0; d--) {
        at[d] = i % t->shape[d];
        i /= t->shape[d];
    }
    return st_shape_text(a, t->nd, at);
}

/* ---- what is in it, in short ---- */
enum { FINGERPRINT_PIECE = 4096 };
static uint64_t hash_bytes(uint64_t h, const void *p, size_t n) {
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 1099511628211u; /* FNV-1a */
    return h;
}
static uint64_t hash_piece(uint64_t h, const StTensor *t, int64_t first, int64_t n) {
    char raw[FINGERPRINT_PIECE];
    bool ok = read_at(t->fd, raw, n, t->offset + first);
    return ok ? hash_bytes(h, raw, (size_t)n) : hash_bytes(h, "?", 1);
}
uint64_t st_fingerprint(const SafeTensors *st) {
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < st->n; i++) {
        const StTensor *t = &st->t[i];
        int64_t n = t->bytes < FINGERPRINT_PIECE ? t->bytes : FINGERPRINT_PIECE,
                last = t->bytes - n;
        h = hash_bytes(h, t->name, strlen(t->name) + 1);
        h = hash_bytes(h, &t->stored, sizeof t->stored);
        h = hash_bytes(h, t->shape, sizeof t->shape[0] * (size_t)t->nd);
        for (int k = 0; k <= 2; k++)
            h = hash_piece(h, t, last / 2 * k + (k == 2 ? last % 2 : 0), n);
    }
    return h;
}

/* ---- data ---- */

static double half_to_double(uint16_t h) {
    uint32_t sign = (uint32_t)(h >> 15) << 31, e = h >> 10 & 31, m = h & 1023u;
    union {
        uint32_t u;
        float f;
    } x;
    if (e == 0) { /* zero and subnormals: m * 2^-24 */
        x.f = (float)m * 0x1p-24f;
        x.u |= sign;
    } else {
        x.u = sign | (e == 31 ? 255u : e + 112u) << 23 | m << 13;
    }
    return x.f;
}

static double bf16_to_double(uint16_t h) {
    union {
        uint32_t u;
        float f;
    } x = {.u = (uint32_t)h << 16};
    return x.f;
}

/* Element i of raw bytes; whole numbers are returned exactly through *whole. */
static double element(const unsigned char *p, int64_t i, Stored type, int64_t *whole) {
#define LOAD(T)                                                                                    \
    T v;                                                                                           \
    memcpy(&v, p + i * (int64_t)sizeof v, sizeof v)
#define WHOLE(T)                                                                                   \
    {                                                                                              \
        LOAD(T);                                                                                   \
        *whole = (int64_t)v;                                                                       \
        return (double)v;                                                                          \
    }
#define REAL(T, convert)                                                                           \
    {                                                                                              \
        LOAD(T);                                                                                   \
        return convert(v);                                                                         \
    }
    switch (type) {
    case ST_BOOL:
    case ST_U8: WHOLE(uint8_t)
    case ST_I8: WHOLE(int8_t)
    case ST_I16: WHOLE(int16_t)
    case ST_U16: WHOLE(uint16_t)
    case ST_I32: WHOLE(int32_t)
    case ST_U32: WHOLE(uint32_t)
    case ST_I64: WHOLE(int64_t)
    case ST_F16: REAL(uint16_t, half_to_double)
    case ST_BF16: REAL(uint16_t, bf16_to_double)
    case ST_F32: REAL(float, (double))
    case ST_F64: REAL(double, )
    }
    return 0;
#undef LOAD
#undef WHOLE
#undef REAL
}

/* A real as a whole number; what no int64 holds becomes the nearest that it does, NaN 0. */
static int64_t to_whole(double x) {
    if (!(x == x)) return 0;
    if (x >= 0x1p63) return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static void convert(const unsigned char *raw, int64_t n, Stored type, Dtype dtype, void *out,
                    int64_t at) {
    bool is_whole = types[type].as == DT_I64;
    for (int64_t i = 0; i < n; i++) {
        int64_t whole = 0;
        double x = element(raw, i, type, &whole);
        if (dtype == DT_F32) ((float *)out)[at + i] = (float)x;
        else if (dtype == DT_F64) ((double *)out)[at + i] = x;
        else ((int64_t *)out)[at + i] = is_whole ? whole : to_whole(x);
    }
}

bool st_read(const StTensor *t, int64_t first, int64_t n, Dtype dtype, void *out) {
    int64_t size = types[t->stored].size, count = t->bytes / size;
    bool inside = first >= 0 && n >= 0 && n <= count && first <= count - n;
    bool ok = inside;
    /* Same type: straight to where it belongs. */
    bool same = types[t->stored].as == dtype && size == dtype_size(dtype);
    if (same && inside) ok = read_at(t->fd, out, n * size, t->offset + first * size);
    unsigned char raw[CHUNK];
    for (int64_t at = 0; !same && ok && at < n;) {
        int64_t k = CHUNK / size < n - at ? CHUNK / size : n - at;
        ok = read_at(t->fd, raw, k * size, t->offset + (first + at) * size);
        if (ok) convert(raw, k, (Stored)t->stored, dtype, out, at);
        at += k;
    }
    if (!ok && n > 0) memset(out, 0, (size_t)n * (size_t)dtype_size(dtype));
    return ok;
}
