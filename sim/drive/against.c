/* Comparing with a file. Shapes first: numbers are compared only where the shapes agree; where they
 * do not, or where an order of dims explains the difference, that is what the report says. Refuses
 * to skip anything in silence: every tensor of the file and every value of the run gets a row. */
#include "drive/against.h"
#include "base/file.h"
#include "drive/arrange.h"
#include "drive/dump.h"
#include "drive/endtoend.h"
#include "drive/packed_rows.h"
#include "drive/rounded.h"
#include "drive/whose.h"
#include "exec/call.h"
#include "formats/yaml.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct AgainstRow Row;

struct Against {
    Arena *arena;
    Diags *d;
    const Program *p;
    int64_t steps;
    double tolerance; /* 0: by dtype */
    Dump *dump;
    SafeTensors *st; /* of the dump */
    Yaml *map;
    const char **name; /* per tensor of the file: what the map makes of its name */
    ValueKey *key;
    bool *known, *done;
    Row *row;
    const char **hint; /* per tensor of a rank that differs: told at the end, all together */
    bool *other_part;  /* per tensor of a rank: it is of another shape, which no order explains */
    int64_t last_rank; /* that the file names; -1: none */
    bool one;          /* --against-rank names it, the file does not */
    Whose *whose;      /* per rank of the mesh: what the file has in place of its parts */
    bool ranks, after, grads, whole; /* does the file have any; whole: values of no rank */
    bool held[3][2]; /* of ranks: values of that kind, and gradients of such (ValueKind) */
};

/* ---- names ---- */
/* `their name: our name`; both may end in `*`: "module.*": "*". */
static const char *mapped(Arena *arena, const Yaml *map, const char *name) {
    for (int i = 0; map && i < map->n; i++) {
        const char *from = map->pair[i].key, *to = map->pair[i].value->s;
        if (!strcmp(from, name)) return to;
        size_t nf = strlen(from), nt = strlen(to);
        if (!nf || !nt || from[nf - 1] != '*' || to[nt - 1] != '*' || strncmp(from, name, nf - 1))
            continue;
        return arena_printf(arena, "%.*s%s", (int)nt - 1, to, name + nf - 1);
    }
    return name;
}
/* NULL and a diagnostic if the file is something else. */
static Yaml *read_map(Arena *arena, Diags *d, const char *file) {
    size_t n;
    char *text = file_read(arena, d, file, 1 << 20, diag_nowhere, &n);
    Diags *own = diags_new(arena); /* of a file of another kind only the place is told */
    Yaml *map = text ? yaml_parse(arena, own, file, text, n) : NULL,
         *bad = map && map->kind != YAML_MAP ? map : NULL;
    if (text && !map)
        diag_error(d, own->n ? own->item[0].code : "E0104",
                   own->n ? own->item[0].loc : ((Loc){file, 1, 1}), "their_name: our_name",
                   "--map wants YAML, and this is none from here on");
    for (int i = 0; map && !bad && i < map->n; i++)
        if (map->pair[i].value->kind != YAML_SCALAR) bad = map->pair[i].value;
    if (bad)
        diag_error(d, "E0301", bad->loc, "their_name: our_name",
                   "--map wants one name for each name, not %s", yaml_kind_text(bad));
    return bad ? NULL : map;
}
/* "layers.0.attn_probs" belongs to the node that makes "layers.0.<something>" and whose op has that
 * probe; NULL if there is none. */
static const GNode *probed(const Graph *g, const char *name) {
    const char *dot = strrchr(name, '.');
    for (int k = 0; dot && k < g->nn; k++) {
        const GNode *node = &g->node[k];
        if (node->op->probe && !strcmp(node->op->probe, dot + 1) &&
            !strncmp(g->t[node->out].name, name, (size_t)(dot - name) + 1))
            return node;
    }
    return NULL;
}
static bool understood(const Against *a, const char *name, ValueKey *k) {
    return value_key(a->arena, a->p, a->steps, name, k) || probed(a->p->graph, name);
}
/* The start of the file's names without which most of them are ours ("module.", "_orig_mod."): how
 * many, and it in *prefix. */
static int best_prefix(const Against *a, const char **prefix) {
    enum { LOOKED_AT = 200, DEPTH = 4 };
    int most = 0, n = a->st->n < LOOKED_AT ? a->st->n : LOOKED_AT;
    for (int i = 0; i < n && 2 * most < a->st->n; i++) {
        const char *end = a->st->t[i].name;
        for (int depth = 0; depth < DEPTH && (end = strpbrk(end, "./")) != NULL; depth++) {
            const char *start =
                arena_strndup(a->arena, a->st->t[i].name, (size_t)(++end - a->st->t[i].name));
            int found = 0;
            ValueKey k;
            for (int j = 0; j < a->st->n; j++)
                if (!strncmp(a->st->t[j].name, start, strlen(start)))
                    found += understood(a, a->st->t[j].name + strlen(start), &k);
            if (found > most) {
                most = found;
                *prefix = start;
            }
        }
    }
    return most;
}
/* The first names of parameters or of other values of the model. */
static void first_names(const Against *a, bool params, Str *out) {
    enum { SHOWN = 3 };
    const Graph *g = a->p->graph;
    for (int t = 0, n = 0; t < g->nt && n < SHOWN; t++) {
        if ((g->t[t].kind == KIND_PARAM) != params) continue;
        ValueKey k = {.tensor = t, .after = -1, .rank = -1};
        str_addf(out, "%s%s", out->n ? ", " : "", value_name(a->arena, g, &k));
        n++;
    }
}
/* Are all names those of ranks that the mesh has not? */
static bool of_other_ranks(const Against *a) {
    for (int i = 0; i < a->st->n; i++) {
        ValueKey k;
        value_key(a->arena, a->p, a->steps, a->name[i], &k);
        if (k.rank < a->p->mesh->nranks) return false;
    }
    return a->st->n > 0;
}
/* Something that the model computes, not what it is given? */
static bool computed(const Against *a, int i) {
    const ValueKey *k = &a->key[i];
    if (!a->known[i]) return probed(a->p->graph, a->name[i]) != NULL;
    return k->grad || k->after >= 0 || k->tensor < 0 ||
           a->p->graph->t[k->tensor].kind == KIND_ACTIVATION;
}
/* `given`: inputs and parameters match, and no other. */
static void nothing_matches(const Against *a, const char *file, bool given) {
    enum { SHOWN = 3 };
    Str theirs = str_new(a->arena), ours = str_new(a->arena);
    bool grads = a->st->n > 0;
    for (int i = 0, shown = 0; i < a->st->n; i++) {
        if (!a->known[i] && shown++ < SHOWN)
            str_addf(&theirs, "%s%s", theirs.n ? ", " : "", a->st->t[i].name);
        grads = grads && subject_is_gradient(subject_of(a->st->t[i].name));
    }
    first_names(a, true, &ours);
    first_names(a, false, &ours);
    const char *prefix = NULL, *hint = "--map FILE, a YAML of `their name: our name`; `shardproof "
                                       "shapes PLAN` prints our names";
    bool others = of_other_ranks(a);
    int n = grads || others ? 0 : best_prefix(a, &prefix);
    if (others)
        hint = arena_printf(a->arena, "the mesh has the %s; the file is of another mesh",
                            ranks_span(0, a->p->mesh->nranks - 1, a->arena));
    else if (grads) hint = "the file holds gradients: `pass: backward`";
    else if (2 * n >= a->st->n && n) /* a few names that happen to fit say nothing */
        hint = arena_printf(
            a->arena,
            "without the prefix `%s` %d of %d match: --map FILE with the line `\"%s*\": \"*\"`",
            prefix, n, a->st->n, prefix);
    diag_error(a->d, "E0209", ((Loc){file, 0, 0}), hint,
               "%s in '%s' is a value of this model: the file has %s, the model %s",
               given ? "nothing but inputs and parameters" : "nothing", file,
               a->st->n ? theirs.s : "no tensors", ours.s);
}
/* What the map makes of a tensor's name; whose rank it is stands before it and is no part of it. */
static const char *named(const Against *a, int i) {
    const char *name = a->st->t[i].name, *slash = strchr(name, '/');
    int64_t rank = -1;
    if (!a->map || !slash || sscanf(name, "rank%" SCNd64, &rank) != 1)
        return mapped(a->arena, a->map, name);
    const char *whole = mapped(a->arena, a->map, name), *own = mapped(a->arena, a->map, slash + 1);
    return whole != name ? whole : arena_printf(a->arena, "rank%lld/%s", (long long)rank, own);
}
/* What the file speaks of: of the rest it lacks nothing that it should have. */
static void note(Against *a, int i) {
    const ValueKey *k = &a->key[i];
    if (!a->known[i]) return;
    a->whole |= k->rank < 0;
    a->ranks |= k->rank >= 0;
    a->after |= k->after >= 0;
    a->grads |= k->grad;
    if (k->rank >= 0 && k->after < 0) a->held[a->p->graph->t[k->tensor].kind][k->grad] = true;
}
Against *against_open(Arena *arena, Diags *d, const Program *p, int64_t steps, AgainstFile of) {
    Against *a = ARENA_NEW(arena, Against);
    *a = (Against){.arena = arena, .d = d, .p = p, .steps = steps, .tolerance = of.tolerance};
    if (of.rank > p->mesh->nranks) {
        diag_error(d, "E0212", diag_nowhere, "ranks count from 0",
                   "--against-rank %lld: the mesh has %lld rank%s", (long long)of.rank - 1,
                   (long long)p->mesh->nranks, p->mesh->nranks == 1 ? "" : "s");
        return NULL;
    }
    a->dump = dump_open(arena, d, of.file, of.rank - 1);
    a->st = a->dump ? &a->dump->all : NULL;
    if (a->st && of.map) a->map = read_map(arena, d, of.map);
    if (!a->st || (of.map && !a->map)) {
        against_close(a);
        return NULL;
    }
    int n = a->st->n, met = 0, made = 0;
    a->name = ARENA_ARRAY(arena, const char *, n + 1);
    a->key = ARENA_ARRAY(arena, ValueKey, n + 1);
    a->known = ARENA_ARRAY(arena, bool, n + 1);
    a->done = ARENA_ARRAY(arena, bool, n + 1);
    a->row = ARENA_ARRAY(arena, Row, n + 1);
    a->hint = ARENA_ARRAY(arena, const char *, n + 1);
    a->other_part = ARENA_ARRAY(arena, bool, n + 1);
    a->whose = ARENA_ARRAY(arena, Whose, p->mesh->nranks + 1);
    a->one = of.rank > 0;
    a->last_rank = -1;
    for (int i = 0; i < n; i++) {
        a->name[i] = named(a, i);
        a->row[i].name = a->st->t[i].name;
        a->known[i] = value_key(arena, p, steps, a->name[i], &a->key[i]);
        if (a->key[i].rank > a->last_rank) a->last_rank = a->key[i].rank;
        met += a->known[i] || probed(p->graph, a->name[i]);
        made += computed(a, i);
        note(a, i);
    }
    if (made || (met && met == n)) return a;
    nothing_matches(a, of.file, met > 0);
    against_close(a);
    return NULL;
}
void against_close(Against *a) {
    if (a) dump_close(a->dump);
}
bool against_wants_ranks(const Against *a) { return a->ranks; }
/* A parameter as it is before any step, or an input. */
static bool is_given(const Against *a, const ValueKey *k) {
    return k->tensor >= 0 && !k->grad && k->after < 0 &&
           a->p->graph->t[k->tensor].kind != KIND_ACTIVATION;
}
/* A tensor of bf16 that is computed: whatever the plan's dtype, it is as far off as bf16 makes it.
 */
static bool is_rounded(const Against *a, int i) {
    return a->known[i] && a->st->t[i].dtype == DT_BF16 && !(a->tolerance > 0) &&
           !is_given(a, &a->key[i]);
}
/* Of another type, a gradient or what the first step makes of it: nothing but rounding may be left
 * of it. */
static bool is_of_gradient(const Against *a, int i) {
    return a->known[i] && a->st->t[i].dtype != DT_BF16 && !(a->tolerance > 0) && a->steps <= 1 &&
           rounded_of_gradient(a->p, &a->key[i]);
}
/* For the unsharded model in bf16, which is run at the end: what one pass or step makes. */
static bool waits(const Against *a, int i) {
    return (a->steps <= 1 && is_rounded(a, i)) || is_of_gradient(a, i);
}
bool against_wants_narrow(const Against *a) {
    for (int i = 0; i < a->st->n; i++)
        if (waits(a, i)) return true;
    return false;
}

/* ---- numbers ---- */
/* Of the tensor's largest magnitude; whole numbers must be equal. What a rank holds is no better
 * than the run's own dtype. */
static double tolerance_for(const Against *a, const StTensor *s, const ValueKey *k, Dtype ours) {
    static const double by[] = {
        [DT_F32] = 1e-5, [DT_F64] = 1e-11, [DT_I64] = 0, [DT_BF16] = 2e-2, [DT_F16] = 2e-2};
    /* half a unit in the last place of the largest: what is given is only rounded */
    static const double rounded[] = {[DT_BF16] = 0x1p-8, [DT_F16] = 0x1p-11};
    bool narrow = s->dtype == DT_BF16 || s->dtype == DT_F16;
    if (ours == DT_I64) return 0;
    if (a->tolerance > 0) return a->tolerance;
    if (narrow && is_given(a, k)) return fmax(rounded[s->dtype], k->rank >= 0 ? by[ours] : 0);
    /* a plan of bf16 and a dump of bf16: as far as such a run may be from the float64 model */
    bool bf16 = s->dtype == DT_BF16 && plan_executes_in(a->p->assign->plan) == DT_BF16;
    if (bf16) return fmax(by[DT_BF16], endtoend_share(a->p, DT_BF16)) * (k->rank >= 0 ? 2 : 1);
    return fmax(by[s->dtype], k->rank >= 0 ? by[ours] : 0) * (k->grad ? 10 : 1);
}
/* The file's numbers, all finite; NULL and a diagnostic if not, or if they cannot be read any more.
 */
static double *file_numbers(Against *a, const StTensor *s, Row *row, int64_t n) {
    double *x = base_malloc(base_mul((size_t)(n ? n : 1), 8));
    if (!st_read(s, 0, n, DT_F64, x)) { /* nothing is equal to what is gone */
        diag_error(a->d, "E0102", ((Loc){s->file, 0, 0}), NULL,
                   "'%s' changed or failed while '%s' was read", s->file, s->name);
        row->unread = true;
        free(x);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i])) continue;
        const char *what = isnan(x[i]) ? "NaN" : x[i] > 0 ? "infinity" : "-infinity";
        row->why =
            arena_printf(a->arena, "%s in the file, at %s", what, st_index_text(a->arena, s, i));
        diag_error(a->d, "E0504", ((Loc){s->file, 0, 0}),
                   "a comparison with it can prove nothing: look at how the file was made",
                   "'%s' is %s at %s", s->name, what, st_index_text(a->arena, s, i));
        free(x);
        return NULL;
    }
    return x;
}
static bool shapes_agree(const ValueShape *o, const StTensor *s) {
    /* tokens as one dim, sequence after sequence: the same order */
    if (o->nstored == s->nd + 1 && o->shape[0] * o->shape[1] == s->shape[0]) {
        for (int d = 1; d < s->nd; d++)
            if (o->shape[d + 1] != s->shape[d]) return false;
        return !strcmp(o->sym[0], "B") && o->stored[0] == 1;
    }
    /* a dim of one element is none: many writers know no shape [], or keep one head */
    int i = 0, k = 0;
    for (;;) {
        while (i < o->nstored && o->shape[i] == 1) i++;
        while (k < s->nd && s->shape[k] == 1) k++;
        if (i == o->nstored || k == s->nd) return i == o->nstored && k == s->nd;
        if (o->shape[i++] != s->shape[k++]) return false;
    }
}
static void tell(const Against *a, const Row *row, const char *hint) {
    Loc at = {a->st->t[row - a->row].file, 0, 0};
    if (row->why) diag_error(a->d, "E0506", at, hint, "%s: %s", row->name, row->why);
    else
        diag_error(a->d, "E0506", at, hint,
                   "%s differs from the file by %.3g of its largest magnitude (tolerance %.3g)",
                   row->name, row->max_rel, row->tolerance);
}
/* Both shapes and, if an order of dims explains it, which. Where the shapes agree (also as tokens
 * in one dim, or with a dim of one element more), only an order in which the numbers are equal
 * does. */
static void differs(Against *a, const StTensor *s, const ValueShape *o, const Arrangement *how,
                    bool same_shape, Row *row) {
    const char *there = st_shape_text(a->arena, s->nd, s->shape),
               *here = st_shape_text(a->arena, o->nstored, o->shape);
    const char *hint = "the values differ from the other implementation's: weights, config or "
                       "names do not belong together";
    if (how->what && (how->equal || !same_shape)) {
        row->why = arena_printf(a->arena, "%s: %s %s in the file, %s %s here", how->what,
                                how->symbols, there, arrange_symbols(a->arena, o), here);
        hint = how->equal ? "put in our order the numbers are equal"
                          : "the numbers differ in that order too";
    } else if (!same_shape) {
        row->why = arena_printf(a->arena, "shape %s in the file, %s %s here", there,
                                arrange_symbols(a->arena, o), here);
        hint =
            "another batch, sequence, number of heads or model; sizes are those of `shapes PLAN`";
    }
    int i = (int)(row - a->row);
    if (a->key[i].rank < 0) tell(a, row, hint);
    else a->hint[i] = hint, a->other_part[i] = !same_shape && !how->what;
}
static double largest(const double *x, int64_t n) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(x[i]));
    return top;
}
/* All differences together, by what rounding does. */
static void compare_norm(const Against *a, const Rounded *r, const double *want, const double *off,
                         Row *row) {
    double norm = rounded_norm(off, row->count), size = rounded_norm(want, row->count),
           along = rounded_along(off, want, row->count);
    row->ok = norm <= r->norm && fabs(along) <= r->along;
    if (fabs(along) > r->along)
        row->why = arena_printf(a->arena,
                                "its numbers are %.4g times ours, bf16 moves them together by at "
                                "most %.2g",
                                1 / (1 - along / size), r->along / size);
    else if (!row->ok)
        row->why = arena_printf(a->arena,
                                "its numbers together are %.2g of their size off (root mean "
                                "square), bf16 makes that at most %.2g",
                                norm / size, r->norm / size);
}
/* Is it what a module hands out, by the module's name? How such a tensor is laid out is the other
 * implementation's own: nobody loads it. */
static bool is_output(const Against *a, const Row *row) {
    const char *name = a->name[row - a->row];
    const size_t n = strlen(name), end = sizeof ".output" - 1;
    return n > end && !strcmp(name + n - end, ".output");
}
/* A result that says the same for each sequence of the batch, and so says it once: positions. */
static double *repeated(Theirs s, const ValueShape *o) {
    bool once = s.nd == o->nstored && s.nd > 1 && s.shape[0] == 1 && !strcmp(o->sym[0], "B");
    int64_t n = 1;
    for (int d = 1; once && d < s.nd; n *= s.shape[d++]) once = s.shape[d] == o->shape[d];
    double *all = once ? base_malloc(base_mul((size_t)(o->shape[0] * n), 8)) : NULL;
    for (int64_t b = 0; once && b < o->shape[0]; b++)
        memcpy(all + b * n, s.x, (size_t)n * sizeof *s.x);
    return all;
}
/* What a module of theirs hands out in another order of dims, or once for the whole batch, in ours;
 * malloc'ed. NULL: it is no such thing, or not equal. */
static double *put_right(Against *a, Theirs s, const ValueShape *o, const double *have,
                         double allowed, Row *row) {
    double *all = repeated(s, o);
    int64_t m = value_count(o);
    if (!is_output(a, row) || m == 0) return free(all), NULL;
    for (int64_t i = 0; all && i < m; i++)
        if (!(fabs(all[i] - have[i]) <= allowed)) return free(all), NULL;
    if (all) row->why = "of one sequence in the file, the same for each of the batch here";
    if (all || row->count != m) return all;
    Arrangement how = arrange(a->arena, o, have, s, allowed);
    if (!how.equal || !strstr(how.what, "sequence")) return NULL;
    all = base_malloc(base_mul((size_t)m, 8));
    arrange_put(o, &how, s.x, all);
    row->why = arena_printf(a->arena, "%s: %s in the file, %s here", how.what, how.symbols,
                            arrange_symbols(a->arena, o));
    return all;
}
/* How far the row's numbers are from ours, one by one, beyond what each may be; malloc'ed
 * differences. */
static double *differences(const double *want, const double *have, const double *each, Row *row) {
    double *off = base_malloc(base_mul((size_t)(row->count ? row->count : 1), 8));
    row->max_abs = 0;
    for (int64_t i = 0; want && i < row->count; i++) {
        off[i] = isfinite(have[i]) ? want[i] - have[i] : HUGE_VAL;
        row->max_abs = fmax(row->max_abs, fabs(off[i]));
        if (each) off[i] = copysign(fmax(fabs(off[i]) - each[i], 0), off[i]);
    }
    return off;
}
/* `have`: packed, in o's order. `round`: what rounding may do, or NULL: the row's tolerance. */
static void compare(Against *a, const StTensor *s, const ValueShape *o, const double *have,
                    Rounded *round, Row *row) {
    const double *each = round ? round->each : NULL;
    if (each) round = NULL;
    int64_t n = 1, m = value_count(o);
    for (int d = 0; d < s->nd; d++) n *= s->shape[d];
    double *want = file_numbers(a, s, row, n), top = want ? largest(want, n) : 0;
    if (!want) return;
    /* all zero there: held against what is here, unless that is the noise of a sum */
    if (!(top > 0)) top = largest(have, m) > 1e-15 ? largest(have, m) : 0;
    bool same = shapes_agree(o, s);
    row->count = n;
    /* f16 has no number between those that are 2^-24 apart, however small the tensor is */
    if (s->dtype == DT_F16 && top > 0 && !(a->tolerance > 0)) row->tolerance += 0x1p-25 / top;
    if (round) rounded_own(round, want, n);
    if (round && top > 0) row->tolerance = round->most / top;
    double allowed = row->tolerance * (top > 0 ? top : 1),
           *off = differences(same ? want : NULL, have, each, row);
    double beyond = same ? largest(off, n) : 0;
    double *put = same && beyond <= allowed
                      ? NULL
                      : put_right(a, (Theirs){s->nd, s->shape, want}, o, have, allowed, row);
    if (put) {
        free(want), free(off);
        want = put, same = true, row->count = n = m;
        off = differences(want, have, NULL, row);
        beyond = row->max_abs;
    }
    row->max_rel = top > 0 ? row->max_abs / top : row->max_abs;
    row->ok = same && (top > 0 ? beyond / top : beyond) <= row->tolerance;
    if (row->ok && beyond < row->max_abs && row->max_rel > row->tolerance)
        row->why = "only where rounding is all that is left of the gradient";
    if (row->ok && round) compare_norm(a, round, want, off, row);
    free(off);
    if (!row->ok) {
        Arrangement how = {0};
        if (n == m && n) how = arrange(a->arena, o, have, (Theirs){s->nd, s->shape, want}, allowed);
        differs(a, s, o, &how, same, row);
    }
    free(want);
}
/* What differs may be a packed weight that the framework cuts as one list of rows: right where its
 * result is gathered, and named where it is not. */
static void compare_packed(Against *a, const ValueSet *set, int i) {
    Row *row = &a->row[i];
    PackedRows rows;
    if (row->ok || !a->hint[i] || !packed_rows(set, a->p, &a->key[i], row->count, &rows)) return;
    double *x = file_numbers(a, &a->st->t[i], row, row->count),
           top = x ? largest(x, row->count) : 0, most = 0;
    for (int64_t k = 0; x && k < row->count; k++) most = fmax(most, fabs(x[k] - rows.x[k]));
    if (x && most <= row->tolerance * (top > 0 ? top : 1)) {
        row->why = arena_printf(a->arena, "%s, where the plan cuts each packed block%s", rows.what,
                                rows.gathered ? ": the same result, which is gathered" : "");
        a->hint[i] = "cut each block of rows by itself (`packed_colwise`)";
        a->other_part[i] = false;
        row->ok = rows.gathered;
        if (row->ok) {
            a->hint[i] = NULL;
            row->max_abs = most, row->max_rel = top > 0 ? most / top : most;
        }
    }
    free(x), free(rows.x);
}
/* What is not its rank's may be another's. */
static void note_whose(Against *a, const ValueSet *set, int i) {
    const StTensor *s = &a->st->t[i];
    const Row *row = &a->row[i];
    /* of numbers that are off only all together nobody can say whose they are */
    bool together = row->max_abs > 0 && row->max_rel <= row->tolerance;
    double *x = a->hint[i] && !together ? base_malloc(base_mul((size_t)row->count + 1, 8)) : NULL;
    if (x && st_read(s, 0, row->count, DT_F64, x)) {
        double top = largest(x, row->count);
        whose_add(&a->whose[a->key[i].rank], set,
                  &(WhoseTensor){a->key[i], row->name, x, row->count,
                                 row->tolerance * (top > 0 ? top : 1)});
    }
    free(x);
}
static void compare_value(Against *a, const ValueSet *set, int i) {
    const StTensor *s = &a->st->t[i];
    Row *row = &a->row[i];
    ValueShape o;
    if (!value_shape(set, &a->key[i], &o)) return;
    a->done[i] = true;
    row->tolerance = tolerance_for(a, s, &a->key[i], o.dtype);
    void *x = value_read(set, &a->key[i], &o);
    if (!x) {
        row->unread = true;
        return;
    }
    int64_t n = value_count(&o);
    double *have = o.dtype == DT_F64 ? x : base_malloc(base_mul((size_t)(n ? n : 1), 8));
    for (int64_t k = 0; k < n && have != x; k++)
        have[k] = o.dtype == DT_F32 ? (double)((float *)x)[k] : (double)((int64_t *)x)[k];
    Rounded round = {0};
    bool known = is_rounded(a, i) ? rounded_steps(set, a->p, &a->key[i], n, &round) ||
                                        rounded_allows(set, &a->key[i], &round)
                 : is_of_gradient(a, i) ? rounded_each(set, a->p, &a->key[i], s->dtype, &round)
                                        : false;
    compare(a, s, &o, have, known ? &round : NULL, row);
    free(round.each);
    compare_packed(a, set, i);
    if (a->key[i].rank >= 0) note_whose(a, set, i);
    if (have != x) free(have);
    free(x);
}
/* The step of the unsharded run that computes a node; NULL if one of its operands is no longer
 * held. */
static const Step *probe_step(const Exec *e, const GNode *node) {
    const Program *p = e->p;
    for (int k = 0; k < p->ns; k++) {
        const Step *s = &p->step[k];
        if (s->kind != ST_OP || &p->graph->node[s->node] != node) continue;
        for (int i = 0; i < s->nin; i++)
            if (!exec_store(e, s->in[i])->alive) return NULL;
        return s;
    }
    return NULL;
}
/* An inner value of an op, which is computed for the comparison alone. */
static void compare_probe(Against *a, const ValueSet *set, int i) {
    Exec *e = set->ref->exec;
    const GNode *node = probed(e->p->graph, a->name[i]);
    const Step *step = node ? probe_step(e, node) : NULL;
    OpCall c;
    if (!step || !call_make(e, step, 0, &c, a->arena)) return;
    assert(c.dtype == DT_F64);
    const StTensor *s = &a->st->t[i];
    ValueShape o = {.dtype = DT_F64};
    double *x = node->op->probe_run(&c, &o.size[0]);
    int64_t n = 1, m = o.size[0];
    for (int d = 0; d < s->nd; d++) n *= s->shape[d];
    o.nd = o.nstored = o.stored[0] = 1;
    o.sym[0] = node->op->probe;
    if (n == m) { /* an op says how many numbers, not how they lie: as the file has them */
        o.nd = o.nstored = s->nd;
        for (int d = 0; d < s->nd; d++)
            o.size[d] = o.shape[d] = s->shape[d], o.stored[d] = 1, o.sym[d] = "?";
    }
    o.shape[0] = o.size[0];
    a->done[i] = true;
    a->row[i].tolerance = tolerance_for(a, s, &a->key[i], DT_F64);
    compare(a, s, &o, x, NULL, &a->row[i]);
    free(x);
}
void against_step(Against *a, const ValueSet *s) {
    for (int i = 0; i < a->st->n; i++)
        if (a->known[i] && !a->done[i] && a->key[i].after == s->after && !waits(a, i))
            compare_value(a, s, i);
}
void against_rest(Against *a, const ValueSet *s) {
    for (int i = 0; i < a->st->n; i++) {
        if (a->done[i]) continue;
        if (a->known[i]) compare_value(a, s, i);
        else if (s->ref) compare_probe(a, s, i);
    }
}

/* Files of ranks in another order, or of whole values: one finding for each rank. */
static void tell_whose(Against *a) {
    for (int64_t r = 0; r < a->p->mesh->nranks; r++) {
        const Whose *w = &a->whose[r];
        const char *is = whose_text(a->arena, w);
        Loc at = {0};
        if (!is) continue;
        for (int i = 0; i < a->st->n; i++) {
            if (!a->hint[i] || a->key[i].rank != r) continue;
            at.file = a->st->t[i].file;
            a->hint[i] = NULL, a->other_part[i] = false;
        }
        bool whole = whose_whole(w);
        const char *hint = !whole && a->one ? "name that rank with --against-rank"
                           : !whole ? "the files are named after other ranks, or the mesh's "
                                      "axes stand in another order there"
                           : a->one ? "leave --against-rank out: values of the whole model"
                                    : "write each rank's part: x.to_local() of a DTensor";
        diag_error(
            a->d, "E0506", at, hint,
            "the file has %s in place of what rank %lld holds: all %d tensor%s that differ%s "
            "(%s)",
            is, (long long)r, w->n, w->n == 1 ? "" : "s", w->n == 1 ? "s" : "", w->first);
    }
}
/* Ranks of another mesh hold other parts of everything: that is one finding, and none about a
 * tensor. Of as many ranks as ours those that hold other parts are one, and the rest is told each.
 */
static void tell_ranks(Against *a) {
    int n = a->st->n, parts = 0, differ = 0, first = -1;
    tell_whose(a);
    for (int i = 0; i < n; i++) {
        differ += a->hint[i] != NULL;
        parts += a->other_part[i];
        if (first < 0 && a->other_part[i]) first = i;
    }
    int64_t ours = a->p->mesh->nranks - 1;
    bool other_mesh = parts && !a->one && a->last_rank != ours;
    for (int i = 0; i < n; i++)
        if (a->hint[i] && !other_mesh && (!a->other_part[i] || parts == 1))
            tell(a, &a->row[i], a->hint[i]);
    Loc at = {parts ? a->st->t[first].file : NULL, 0, 0};
    const char *hint = "run the plan and mesh that the file was saved under; values of the whole "
                       "model are compared all the same";
    if (other_mesh)
        diag_error(a->d, "E0506", at, hint,
                   "the file's ranks are of another mesh: it has the %s, the plan %s, and %d "
                   "tensor%s of ranks that both have differ (%s: %s)",
                   ranks_span(0, a->last_rank, a->arena), ranks_span(0, ours, a->arena), differ,
                   differ == 1 ? "" : "s", a->row[first].name, a->row[first].why);
    else if (parts > 1)
        diag_error(a->d, "E0506", at, hint,
                   "%d tensors of ranks are other parts than ours, of another mesh or another plan "
                   "(%s: %s)",
                   parts, a->row[first].name, a->row[first].why);
}

/* ---- the report ---- */
static int by_key(const void *x, const void *y) {
    const ValueKey *a = x, *b = y;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    if (a->after != b->after) return a->after < b->after ? -1 : 1;
    if (a->tensor != b->tensor) return a->tensor < b->tensor ? -1 : 1;
    return (int)a->grad - (int)b->grad;
}
static const char *result(const Row *x) {
    if (x->missing_here) return "only in the file";
    if (x->missing_there) return "only in the model";
    if (x->unread) return "not read";
    return x->ok ? "equal" : "different";
}
/* Gradients and trained values only if the file speaks of any; of ranks only what is of a kind that
 * it has, and parameters always. */
static bool is_due(const Against *a, const ValueKey *k) {
    if (k->rank < 0 || k->after >= 0) return (!k->grad || a->grads) && (k->after < 0 || a->after);
    ValueKind kind = a->p->graph->t[k->tensor].kind;
    return a->held[kind][k->grad] || (kind == KIND_PARAM && !k->grad);
}
static void record(Trace *t, const Row *x) {
    *ARENA_PUSH(t->arena, t->against, t->n_against, t->cap_against) =
        (TraceAgainst){x->name, result(x), x->count, x->max_abs, x->max_rel, x->tolerance, x->why};
}
void against_report(Against *a, const ValueSet *s, PipelineReport *rep, Trace *t) {
    int n = a->st->n, met = 0, cap = n, n_list = 0;
    ValueKey *have = ARENA_ARRAY(a->arena, ValueKey, n + 1);
    tell_ranks(a);
    rep->against = a->row;
    rep->n_against = n;
    for (int i = 0; i < n; i++) {
        a->row[i].missing_here = !a->done[i];
        if (!a->done[i]) continue;
        have[met] = a->key[i];
        have[met++].part = 0; /* one of its parts: the file has it */
    }
    if (met) qsort(have, (size_t)met, sizeof *have, by_key);
    int64_t ranks = a->ranks && s->ranks ? s->ranks->p->mesh->nranks : 0;
    bool *speaks = ARENA_ARRAY(a->arena, bool, ranks + 1); /* does the file, of this rank? */
    for (int i = 0; i < n; i++)
        if (a->known[i] && a->key[i].rank >= 0 && a->key[i].rank < ranks)
            speaks[a->key[i].rank] = true;
    for (int64_t q = -1; q < ranks; q++) {
        bool asked = q < 0 ? s->ref && (a->whole || !a->ranks) : speaks[q];
        ValueKey *list = asked ? value_list(s, q, &n_list) : NULL;
        for (int i = 0; list && i < n_list; i++) {
            if (!is_due(a, &list[i])) continue;
            if (met && bsearch(&list[i], have, (size_t)met, sizeof *have, by_key)) continue;
            *ARENA_PUSH(a->arena, rep->against, rep->n_against, cap) =
                (Row){.name = value_name(a->arena, a->p->graph, &list[i]), .missing_there = true};
        }
    }
    for (int i = 0; i < rep->n_against; i++) record(t, &rep->against[i]);
}
