/* Keys of other frameworks in a plan: what is written here in their place, for a help. Refuses to
 * read them: their meaning depends on a framework's other keys (`shardproof import` knows those).
 */
#include "plan/read.h"
#include "base/text.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- axes ---- */

static const char *const axis_words[] = {"dp", "cp", "tp", "sp", "pp", "ep", "etp", "edp"};
bool plan_is_axis_word(const char *name) {
    for (size_t i = 0; i < sizeof axis_words / sizeof *axis_words; i++)
        if (!strcmp(axis_words[i], name)) return true;
    return false;
}

/* What other frameworks call the axes that have a meaning by their names here. */
static const struct {
    const char *theirs, *ours;
} axes_of_others[] = {
    {"data", "dp"},
    {"data_parallel", "dp"},
    {"ddp", "dp"},
    {"batch", "dp"},
    {"replica", "dp"},
    {"fsdp", "dp"},
    {"hsdp", "dp"},
    {"replicate", "dp"},
    {"shard", "dp"},
    {"model", "tp"},
    {"mp", "tp"},
    {"mdl", "tp"},
    {"model_parallel", "tp"},
    {"tensor", "tp"},
    {"tensor_parallel", "tp"},
    {"tensor_model_parallel", "tp"},
    {"autotp", "tp"},
    {"context", "cp"},
    {"context_parallel", "cp"},
    {"seq", "cp"},
    {"sequence", "cp"},
    {"sequence_parallel", "cp"},
    {"pipe", "pp"},
    {"pipeline", "pp"},
    {"pipeline_parallel", "pp"},
    {"pipeline_model_parallel", "pp"},
    {"stage", "pp"},
    {"expert", "ep"},
    {"experts", "ep"},
    {"expert_parallel", "ep"},
    {"expert_model_parallel", "ep"},
};
const char *plan_axis_of_others(const char *name) {
    for (size_t i = 0; i < sizeof axes_of_others / sizeof *axes_of_others; i++)
        if (!strcasecmp(axes_of_others[i].theirs, name)) return axes_of_others[i].ours;
    for (size_t i = 0; i < sizeof axis_words / sizeof *axis_words; i++) /* TP */
        if (!strcasecmp(axis_words[i], name) && strcmp(axis_words[i], name)) return axis_words[i];
    return NULL;
}
const char *plan_axis_of_size(Arena *a, const char *name) {
    static const char *const ends[] = {"_size", "_degree"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(name), end = strlen(ends[i]);
        if (n <= end || strcmp(name + n - end, ends[i])) continue;
        const char *axis = arena_strndup(a, name, n - end), *ours = plan_axis_of_others(axis);
        if (!strcmp(axis, "data_parallel_shard")) return "dp_shard";
        if (!strcmp(axis, "data_parallel_replicate")) return "dp_replicate";
        if (plan_is_axis_word(axis)) return axis;
        return ours && (strstr(axis, "parallel") || !strcmp(axis, "autotp")) ? ours : NULL;
    }
    return NULL;
}
/* "batchSize" and "batch-size" as batch_size is compared: letters and digits alone, small ones. */
const char *read_bare_key(Arena *a, const char *key) {
    char *s = arena_strdup(a, key), *to = s;
    for (const char *c = s; *c; c++)
        if (isalnum((unsigned char)*c)) *to++ = (char)tolower((unsigned char)*c);
    *to = 0;
    return s;
}
/* ---- helps ---- */

#define SIZES                                                                                      \
    "sizes are those of `model: llama3-8b` (`list models` has more) or of a config.json: `model: " \
    "{hf_config: config.json}`"
#define EXPERTS "ranks of experts are a group of axes that the mesh has: `groups: {ep: dp}`"
#define RANKS "there are as many ranks as the sizes of the mesh's axes multiply to: `mesh: {dp: 2}`"
#define ZERO "write `data_parallel: zero1`, `zero2` or, for stage 3, `fsdp`"
#define BUCKETS "what is reduced at once is `unit`: parameter, block or model"
#define ROTATE "write `context_parallel: {mode: ring}`, or `mode: all_gather`"
#define TITAN                                                                                      \
    "write `data: {batch: 2, sequence: 64}`; torchtitan's own file is read as it is: `shardproof " \
    "check train.toml`"
#define AGAIN "write `recompute: block`"
#define PARTS "write `data: {microbatches: %ld}`"
/* Theirs without marks between the letters; what is written here. */
static const struct {
    const char *theirs, *here;
} settings[] = {
    {"bf16", "write `data: {dtype: bf16}`"},
    {"fp16", "write `data: {dtype: bf16}`: dtypes are f64, f32 and bf16"},
    {"mixedprecision", "write `data: {dtype: bf16, master: f32}`"},
    {"gradientaccumulationsteps", PARTS},
    {"nummicrobatches", PARTS},
    {"zerooptimization", ZERO},
    {"zerostage", ZERO},
    {"fsdp", "write `data_parallel: fsdp`"},
    {"fsdpconfig", "write `data_parallel: fsdp`"},
    {"ddp", "write `data_parallel: ddp`"},
    {"gradientcheckpointing", AGAIN},
    {"activationcheckpoint", AGAIN},
    {"activationcheckpointing", AGAIN},
    {"recomputegranularity", AGAIN},
    {"sequenceparallel", "a style of the lines of norms; `recipe: megatron-sp` and `recipe: "
                         "torchtitan-llama3` have such lines"},
    {"enablesequenceparallel", "a style of the lines of norms; `recipe: megatron-sp` and `recipe: "
                               "torchtitan-llama3` have such lines"},
    {"stage", ZERO},
    {"overlapcomm", "leave it out: times overlap what the data allow"},
    {"reducebucketsize", BUCKETS},
    {"bucketcapmb", BUCKETS},
    {"rotatemethod", ROTATE},
    {"contextparallelrotatemethod", ROTATE},
    {"enableloadbalance", "write `order: zigzag`"},
    {"splitpoints", "write `stages:` with the layers of each: [[0, 1], [2]]"},
    {"training", TITAN},
    {"flavor", "write `model: llama3-8b`: `list models` has all"},
    {"modelnameorpath", "write `model: llama3-8b`: `list models` has all"},
    {"topk", SIZES},
    {"numexperts", SIZES},
    {"hiddensize", SIZES},
    {"intermediatesize", SIZES},
    {"ffnhiddensize", SIZES},
    {"numattentionheads", SIZES},
    {"numkeyvalueheads", SIZES},
    {"numquerygroups", SIZES},
    {"vocabsize", SIZES},
    {"modeltype", SIZES},
    {"worldsize", RANKS},
    {"numprocesses", RANKS},
    {"nprocpernode", RANKS},
};
/* Outermost first, as frameworks number their ranks. */
static const char *const order[] = {"pp", "dp", "dp_replicate", "dp_shard", "cp", "tp"};

/* The number, in decimal digits, from 1 to what a mesh can have; else, for "auto" too, `other`. */
static long number_or(const Yaml *y, long other) {
    enum { MOST = 1 << 20 };
    const size_t digits = strspn(y->s, "0123456789");
    if (!digits || y->s[digits]) return other;
    const long n = strtol(y->s, NULL, 10); /* what is too large for it is LONG_MAX */
    return n >= 1 && n <= MOST ? n : other;
}
/* The axis that a key such as tensor_model_parallel_size gives the size of, and that size, 2 where
 * no mesh can have what it says; NULL. */
static const char *sized_axis(Arena *a, const YamlPair *pair, long *size) {
    char *name = arena_strdup(a, pair->key);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    if (pair->value->kind != YAML_SCALAR) return NULL;
    *size = number_or(pair->value, 2);
    return plan_axis_of_size(a, name);
}
/* The size that an unread key of the map, or of a mapping in it, gives the axis; 0: none does. */
static long size_of(Arena *a, const Yaml *map, const char *axis) {
    for (int i = 0; i < map->n; i++) {
        const YamlPair *pair = &map->pair[i];
        long size = 0;
        if (pair->used) continue;
        const char *of = sized_axis(a, pair, &size);
        if (of && !strcmp(of, axis)) return size;
        for (int k = 0; pair->value->kind == YAML_MAP && k < pair->value->n; k++) {
            of = sized_axis(a, &pair->value->pair[k], &size);
            if (of && !strcmp(of, axis)) return size;
        }
    }
    return 0;
}
/* The mesh with the axes that keys of the map give sizes of, behind those that it has. NULL: they
 * are of one rank each. */
static const char *mesh_of(PlanReader *r, const Yaml *map) {
    Str s = str_new(r->a);
    const Plan *p = r->p;
    int more = 0;
    for (int i = 0; i < p->n_axes; i++)
        str_addf(&s, "%s%s: %lld", s.n ? ", " : "", p->axes[i].name, (long long)p->axes[i].size);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        bool has = false;
        for (int i = 0; i < p->n_axes; i++) has |= !strcmp(p->axes[i].name, order[k]);
        const long size = has ? 0 : size_of(r->a, map, order[k]);
        if (size < 2) continue;
        str_addf(&s, "%s%s: %ld", s.n ? ", " : "", order[k], size);
        more++;
    }
    return more ? s.s : NULL;
}
const char *plan_foreign_mesh(PlanReader *r, const Yaml *root) {
    const char *mesh = mesh_of(r, root);
    return mesh ? arena_printf(r->a, "mesh: {%s}", mesh) : NULL;
}
const char *plan_foreign_key(PlanReader *r, const Yaml *map, const YamlPair *pair, bool top) {
    const char *bare = read_bare_key(r->a, pair->key);
    long size;
    const char *axis = top ? sized_axis(r->a, pair, &size) : NULL;
    if (axis && size == 1) return "leave it out: one rank is no axis";
    if (axis && !strcmp(axis, "ep")) return EXPERTS;
    const char *mesh = axis ? mesh_of(r, map) : NULL;
    bool sizes = false; /* `parallelism: {tensor_parallel_degree: 2}` */
    for (int k = 0; top && pair->value->kind == YAML_MAP && k < pair->value->n; k++)
        sizes |= sized_axis(r->a, &pair->value->pair[k], &size) != NULL;
    if (sizes && (mesh = mesh_of(r, map)))
        return arena_printf(r->a, "sizes of axes are the mesh: `mesh: {%s}`", mesh);
    if (mesh)
        return arena_printf(r->a, "an axis of the mesh: `mesh: {%s}`%s", mesh,
                            strcmp(axis, "pp") ? "" : ", and `pipeline: {schedule: 1f1b}`");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].theirs, bare))
            return strcmp(settings[i].here, PARTS)
                       ? settings[i].here
                       : arena_printf(r->a, PARTS,
                                      pair->value->kind == YAML_SCALAR ? number_or(pair->value, 4)
                                                                       : 4);
    return NULL;
}
