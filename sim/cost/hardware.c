/* Hardware profiles: plans/hardware/NAME.yaml read through a table of keys, and the same rows built
 * in for a program that was copied away from its folder. A profile says what a machine reaches, not
 * what its data sheet promises; the files state where each number is from. Refuses a profile with a
 * number missing: a guess would look like a measurement. */
#include "base/file.h"
#include "base/text.h"
#include "cost/cost.h"
#include "formats/yaml.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROFILE_BYTES = 64 << 10 };

#define NO_NCCL                                                                                    \
    { 0, 0, 0, 0, 0, 0, 0, 0 }
/* Kept equal to the files by a test. */
static const Hardware builtin[] = {
    {"h100-sxm", "NVIDIA H100 SXM, 8 per node, NVLink 4 and one NDR 400 NIC each", 53e12, 53e12,
     660e12, 3.0e12, 3e-6, 8, 370e9, 48e9, 5e-6, 20e-6, 80000000000, NO_NCCL},
    {"h200-sxm", "NVIDIA H200 SXM, 8 per node, NVLink 4 and one NDR 400 NIC each", 53e12, 53e12,
     660e12, 4.3e12, 3e-6, 8, 370e9, 48e9, 5e-6, 20e-6, 141000000000, NO_NCCL},
    {"a100-80g", "NVIDIA A100 SXM 80 GB, 8 per node, NVLink 3 and one HDR 200 NIC each", 15e12,
     15e12, 210e12, 1.8e12, 3e-6, 8, 235e9, 23e9, 5e-6, 20e-6, 80000000000, NO_NCCL},
    {"b200", "NVIDIA B200 SXM, 8 per node, NVLink 5 and one 400 Gb/s NIC each", 60e12, 30e12,
     1500e12, 7.0e12, 3e-6, 8, 740e9, 48e9, 5e-6, 20e-6, 180000000000, NO_NCCL},
    {"h100-nccl",
     "h100-sxm, its collectives as NCCL's tuner expects them",
     53e12,
     53e12,
     660e12,
     3.0e12,
     3e-6,
     8,
     370e9,
     48e9,
     5e-6,
     20e-6,
     80000000000,
     {NCCL_HOPPER, NCCL_INTEL, NCCL_NVLINK, 12, 30e9, 8, 5, 40e9}},
    {"cpu", "a laptop or small cloud machine: one process per rank, shared memory", 200e9, 100e9,
     200e9, 40e9, 0.5e-6, 64, 5e9, 1e9, 2e-6, 30e-6, 16000000000, NO_NCCL},
};
enum { N_BUILTIN = sizeof builtin / sizeof *builtin };

const char *const *hardware_names(void) {
    static const char *const names[N_BUILTIN + 1] = {"h100-sxm",  "h200-sxm", "a100-80g", "b200",
                                                     "h100-nccl", "cpu",      NULL};
    return names;
}

/* ---- profiles as files ---- */
typedef struct {
    const char *group, *key; /* group NULL: at the top */
    size_t at;
    bool whole; /* int64_t, else double */
} Key;
static const Key keys[] = {
    {"flops", "f32", offsetof(Hardware, flops_f32), false},
    {"flops", "f64", offsetof(Hardware, flops_f64), false},
    {"flops", "bf16", offsetof(Hardware, flops_bf16), false},
    {NULL, "memory_bandwidth", offsetof(Hardware, memory_bandwidth), false},
    {NULL, "kernel_overhead", offsetof(Hardware, kernel_overhead), false},
    {NULL, "gpus_per_node", offsetof(Hardware, gpus_per_node), true},
    {"intra", "bandwidth", offsetof(Hardware, intra_bandwidth), false},
    {"inter", "bandwidth", offsetof(Hardware, inter_bandwidth), false},
    {"intra", "latency", offsetof(Hardware, intra_latency), false},
    {"inter", "latency", offsetof(Hardware, inter_latency), false},
    {NULL, "memory", offsetof(Hardware, memory), true},
};
enum { N_KEYS = sizeof keys / sizeof *keys };
/* Of the group `nccl`, which a profile may have: numbers, and words of a list. */
static const Key nccl_keys[] = {
    {"nccl", "channels", offsetof(Hardware, nccl.channels), true},
    {"nccl", "channel_bandwidth", offsetof(Hardware, nccl.channel_bandwidth), false},
    {"nccl", "nvls_channels", offsetof(Hardware, nccl.nvls_channels), true},
    {"nccl", "nvls_bandwidth", offsetof(Hardware, nccl.nvls_bandwidth), false},
    {"nccl", "nvls_ranks", offsetof(Hardware, nccl.nvls_ranks), true},
};
enum { N_NCCL = sizeof nccl_keys / sizeof *nccl_keys };
static const struct {
    const char *key;
    size_t at;
    const char *word[4];
} nccl_words[] = {
    {"gpu", offsetof(Hardware, nccl.gpu), {"ampere", "hopper", "blackwell", NULL}},
    {"cpu", offsetof(Hardware, nccl.cpu), {"intel", "amd", NULL, NULL}},
    {"link", offsetof(Hardware, nccl.link), {"nvlink", "pci", NULL, NULL}},
};
enum { N_NCCL_WORDS = sizeof nccl_words / sizeof *nccl_words };
static const char *const groups[] = {"flops", "intra", "inter", "nccl"};
enum { N_GROUPS = sizeof groups / sizeof *groups };

static const double SMALLEST = 1e-18, LARGEST = 1e24;

static void read_number(Diags *d, const Yaml *y, const Key *k, Hardware *h) {
    char *end = NULL;
    double v = y->kind == YAML_SCALAR && !y->quoted ? strtod(y->s, &end) : 0;
    if (!end || end == y->s || *end) {
        diag_error(d, "E0301", y->loc, NULL, "'%s' must be a number, such as 660e12", k->key);
        return;
    }
    bool zero_ok =
        strstr(k->key, "latency") || strstr(k->key, "overhead") || strstr(k->key, "nvls");
    bool far = v > LARGEST || (v > 0 && v < SMALLEST); /* sums of them stay numbers */
    if (!isfinite(v) || v < 0 || far || (v == 0 && !zero_ok) ||
        (k->whole && (v != floor(v) || v > 9e15))) {
        diag_error(d, "E0309", y->loc, NULL, "'%s' cannot be %s", k->key, y->s);
        return;
    }
    if (k->whole) *(int64_t *)(void *)((char *)h + k->at) = (int64_t)v;
    else *(double *)(void *)((char *)h + k->at) = v;
}
static void unknown_keys(Diags *d, const Yaml *map, const char *group) {
    const char *names[N_KEYS + N_NCCL + N_NCCL_WORDS + N_GROUPS + 2];
    int n = 0;
    for (int i = 0; i < N_KEYS + N_NCCL; i++) {
        const Key *k = i < N_KEYS ? &keys[i] : &nccl_keys[i - N_KEYS];
        if (group ? k->group && strcmp(k->group, group) == 0 : !k->group) names[n++] = k->key;
    }
    for (int i = 0; group && i < N_NCCL_WORDS; i++)
        if (strcmp(group, "nccl") == 0) names[n++] = nccl_words[i].key;
    if (!group) {
        names[n++] = "what";
        for (int i = 0; i < N_GROUPS; i++) names[n++] = groups[i];
    }
    names[n] = NULL;
    for (int i = 0; i < map->n; i++)
        if (!map->pair[i].used)
            diag_error(d, "E0201", map->pair[i].loc, diag_nearest(map->pair[i].key, names),
                       "unknown key '%s' in a hardware profile", map->pair[i].key);
}
static void lacks(Diags *d, Loc loc, const char *group, const char *key) {
    diag_error(d, "E0208", loc, NULL, "the hardware profile lacks '%s%s%s'", group ? group : "",
               group ? "." : "", key);
}
static void read_numbers(Diags *d, Yaml *y, const Key *k, int n, Hardware *h) {
    for (int i = 0; i < n; i++) {
        Yaml *group = k[i].group ? yaml_get(y, k[i].group) : y;
        Yaml *v = group && group->kind == YAML_MAP ? yaml_get(group, k[i].key) : NULL;
        if (v) read_number(d, v, &k[i], h);
        else lacks(d, y->loc, k[i].group, k[i].key);
    }
}
static void read_nccl(Diags *d, Yaml *y, Hardware *h) {
    Yaml *group = yaml_get(y, "nccl");
    if (!group) return;
    read_numbers(d, y, nccl_keys, N_NCCL, h);
    for (int i = 0; i < N_NCCL_WORDS; i++) {
        Yaml *v = group->kind == YAML_MAP ? yaml_get(group, nccl_words[i].key) : NULL;
        int *to = (int *)(void *)((char *)h + nccl_words[i].at), k = 0;
        const char *const *word = nccl_words[i].word;
        while (v && word[k] && (v->kind != YAML_SCALAR || strcmp(word[k], v->s) != 0)) k++;
        if (!v) lacks(d, y->loc, "nccl", nccl_words[i].key);
        else if (word[k]) *to = k;
        else
            diag_error(d, "E0301", v->loc, diag_nearest(v->kind == YAML_SCALAR ? v->s : "", word),
                       "'%s' is none of NCCL's: it knows %s, %s%s%s", nccl_words[i].key, word[0],
                       word[1], word[2] ? ", " : "", word[2] ? word[2] : "");
    }
}
/* Nothing but blanks and comments, or a null: which is no profile either. */
static bool is_empty(Arena *arena, const char *path, const char *text, size_t n) {
    const Yaml *y = yaml_parse_value(arena, diags_new(arena), (Loc){path, 1, 1}, text, n);
    return y && y->kind == YAML_SCALAR && yaml_is_null(y);
}
static bool is_profile(Yaml *y) {
    static const char *const one[] = {"flops", "intra", "inter", "memory_bandwidth", "what"};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (y->kind == YAML_MAP && yaml_get(y, one[i])) return true;
    return false;
}
static const Hardware *read_profile(Arena *arena, Diags *d, const char *name, const char *path,
                                    Loc loc) {
    size_t n;
    int errors = diags_errors(d);
    const char *text = file_read(arena, d, path, PROFILE_BYTES, loc, &n);
    if (!text) return NULL;
    Diags *own = diags_new(arena);
    Yaml *y = yaml_parse(arena, own, path, text, n);
    /* of a file of another kind nothing is quoted: any plan may name any file */
    if (!y || !is_profile(y)) {
        int line = own->n ? own->item[0].loc.line : 0, col = own->n ? own->item[0].loc.col : 0;
        const char *code = own->n ? own->item[0].code : "E0301";
        const bool empty = !y && is_empty(arena, path, text, n);
        diag_error(d, code, ((Loc){path, line, col}),
                   "`shardproof list hardware` has those that need no file; plans/hardware has "
                   "examples",
                   y       ? "this is no hardware profile: a mapping with flops, intra and inter"
                   : empty ? "this is no hardware profile: the file is empty"
                           : "this is no hardware profile: it is not YAML from here on");
        return NULL;
    }
    diags_source(d, path, text, n);
    Hardware *h = ARENA_NEW(arena, Hardware);
    Yaml *what = yaml_get(y, "what");
    h->name = arena_strdup(arena, name);
    h->what = what && what->kind == YAML_SCALAR ? what->s : "";
    read_numbers(d, y, keys, N_KEYS, h);
    read_nccl(d, y, h);
    unknown_keys(d, y, NULL);
    for (int i = 0; i < N_GROUPS; i++) {
        Yaml *g = yaml_get(y, groups[i]);
        if (g && g->kind == YAML_MAP) unknown_keys(d, g, groups[i]);
    }
    return diags_errors(d) == errors ? h : NULL;
}
static bool is_path(const char *name) { return strchr(name, '/') || text_before(name, ".yaml"); }
/* A path as it is, a name in the first folder that has it; NULL: there is no file of this name. */
static const char *find_file(Arena *arena, const char *name, const char *const *dirs) {
    if (is_path(name)) return name;
    for (; dirs && *dirs; dirs++) {
        const char *path = file_join(arena, *dirs, arena_printf(arena, "%s.yaml", name));
        if (access(path, F_OK) == 0) return path;
    }
    return NULL;
}
const Hardware *hardware_find(Arena *arena, Diags *d, const char *name, const char *const *dirs,
                              Loc loc) {
    const char *path = find_file(arena, name, dirs);
    if (path) return read_profile(arena, d, name, path, loc);
    for (int i = 0; i < N_BUILTIN; i++)
        if (strcmp(builtin[i].name, name) == 0) return &builtin[i];
    const char *near = diag_nearest(name, hardware_names());
    diag_error(d, "E0213", loc, near ? near : "see `shardproof list hardware`",
               "unknown hardware '%s'", name);
    return NULL;
}
/* Where the profile of a plan is looked for, and under which name. */
typedef struct {
    const char *name, *dirs[3];
} Wanted;
static Wanted wanted(Arena *arena, const char *option, const char *in_plan, const char *plan_dir) {
    const char *dir = plan_dir ? plan_dir : ".",
               *name = option ? option : (in_plan ? in_plan : "h100-sxm");
    if (!option && in_plan && is_path(name)) name = file_join(arena, dir, name);
    return (Wanted){name, {arena_printf(arena, "%s/hardware", dir), "plans/hardware", NULL}};
}
const char *hardware_file(Arena *arena, const char *option, const char *in_plan,
                          const char *plan_dir) {
    Wanted w = wanted(arena, option, in_plan, plan_dir);
    return find_file(arena, w.name, w.dirs);
}
const Hardware *hardware_of_plan(Arena *arena, Diags *d, const char *option, const char *in_plan,
                                 const char *plan_dir, Loc plan_loc) {
    Wanted w = wanted(arena, option, in_plan, plan_dir);
    const Loc none = {0};
    return hardware_find(arena, d, w.name, w.dirs, option ? none : plan_loc);
}
