/* Sets of ranks: runs, or boxes of the mesh where runs would be a list as long as an axis. Refuses
 * to know why ranks belong together. */
#include "trace/trace_fields.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_RUNS = 16 }; /* a set that needs more is written as boxes, where there is a mesh */

/* ---- looking ---- */
static int64_t box_count(const RankBox *b) {
    int64_t n = 1;
    for (int k = 0; k < b->n; k++) n *= b->side[k].count;
    return n;
}
/* Member i in row-major order of the coordinates. */
static int64_t box_member(const RankBox *b, int64_t i) {
    int64_t rank = 0;
    for (int k = b->n - 1; k >= 0; k--) {
        const RankSide *s = &b->side[k];
        rank += (s->first + i % s->count) * s->stride;
        i /= s->count;
    }
    return rank;
}
int64_t rankset_count(const RankSet *r) {
    int64_t n = 0;
    for (int i = 0; i < r->n; i++) n += r->run ? r->run[i].count : box_count(&r->box[i]);
    return n;
}
static bool box_has(const RankBox *b, int64_t rank) {
    for (int k = 0; k < b->n; k++) {
        int64_t c = rank / b->side[k].stride % b->side[k].size - b->side[k].first;
        if (c < 0 || c >= b->side[k].count) return false;
    }
    return rank >= 0;
}
bool rankset_has(const RankSet *r, int64_t rank) {
    for (int i = 0; i < r->n; i++) {
        if (!r->run) {
            if (box_has(&r->box[i], rank)) return true;
            continue;
        }
        int64_t off = rank - r->run[i].first, stride = r->run[i].stride ? r->run[i].stride : 1;
        if (off >= 0 && off % stride == 0 && off / stride < r->run[i].count) return true;
    }
    return false;
}
int64_t rankset_first(const RankSet *r) {
    if (!r->n) return 0;
    int64_t first = r->run ? r->run[0].first : box_member(&r->box[0], 0);
    for (int i = 1; i < r->n && !r->run; i++) {
        int64_t x = box_member(&r->box[i], 0);
        if (x < first) first = x;
    }
    return first;
}
bool rankset_next(const RankSet *r, RankWalk *w, int64_t *rank) {
    while (w->i < r->n) {
        int64_t n = r->run ? r->run[w->i].count : box_count(&r->box[w->i]);
        if (w->k < n) {
            const RankRun *u = r->run ? &r->run[w->i] : NULL;
            *rank = u ? u->first + w->k * u->stride : box_member(&r->box[w->i], w->k);
            w->k++;
            return true;
        }
        w->i++;
        w->k = 0;
    }
    return false;
}
static bool same_box(const RankBox *a, const RankBox *b) {
    if (a->n != b->n) return false;
    for (int k = 0; k < a->n; k++)
        if (a->side[k].first != b->side[k].first || a->side[k].count != b->side[k].count)
            return false;
    return true;
}
bool rankset_same(const RankSet *a, const RankSet *b) {
    if (a->n != b->n || !a->run != !b->run) return false;
    if (a->run == b->run && a->box == b->box) return true;
    if (a->run) return !memcmp(a->run, b->run, (size_t)a->n * sizeof *a->run);
    for (int i = 0; i < a->n; i++)
        if (!same_box(&a->box[i], &b->box[i])) return false;
    return true;
}

/* ---- making ---- */
RankSet rankset_range(Arena *arena, int64_t first, int64_t count, int64_t stride) {
    assert(first >= 0 && (count <= 1 || stride > 0));
    RankSet r = {0};
    if (count <= 0) return r;
    r.n = 1;
    r.run = ARENA_NEW(arena, RankRun);
    *r.run = (RankRun){first, count, count == 1 ? 1 : stride};
    return r;
}
RankSet rankset_from(Arena *arena, const int64_t *ranks, int64_t n) {
    RankSet r = {0};
    int cap = 0;
    for (int64_t i = 0; i < n;) {
        int64_t stride = i + 1 < n ? ranks[i + 1] - ranks[i] : 1, count = 1;
        assert(ranks[i] >= 0 && stride > 0 && "ranks ascend");
        while (i + count < n && ranks[i + count] - ranks[i + count - 1] == stride) count++;
        /* two ranks far apart are a run only if nothing after them is: 0,2 3 4 5 is 0 and 2-5 */
        bool better_next =
            count == 2 && i + 3 < n && ranks[i + 3] - ranks[i + 2] == ranks[i + 2] - ranks[i + 1];
        if (better_next) count = 1;
        *ARENA_PUSH(arena, r.run, r.n, cap) = (RankRun){ranks[i], count, count == 1 ? 1 : stride};
        i += count;
    }
    return r;
}
/* A box as one run of ranks, if it is one: sides that are stepped through evenly melt together. */
static bool box_run(const RankBox *b, RankRun *out) {
    int64_t count = 1, stride = 1;
    for (int k = b->n - 1; k >= 0; k--) {
        const RankSide *s = &b->side[k];
        if (s->count == 1) continue;
        if (count == 1) stride = s->stride;
        else if (s->stride != count * stride) return false;
        count *= s->count;
    }
    *out = (RankRun){box_member(b, 0), count, count == 1 ? 1 : stride};
    return true;
}
static int by_first(const void *a, const void *b) {
    const RankRun *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}
static int by_rank(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
RankSet rankset_boxes(Arena *arena, const RankBox *box, int n) {
    RankSet set = {.n = n, .box = arena_memdup(arena, box, (size_t)n * sizeof *box)}, runs = {0};
    if (!n) return (RankSet){0};
    enum { LOOKED_AT = 4096 };
    int64_t all = rankset_count(&set);
    if (all <= LOOKED_AT) { /* as any list of ranks, if that is short */
        int64_t list[LOOKED_AT] = {0}, at = 0, rank;
        for (RankWalk w = {0}; rankset_next(&set, &w, &rank);) list[at++] = rank;
        qsort(list, (size_t)all, sizeof *list, by_rank);
        runs = rankset_from(arena, list, all);
        return all <= TRACE_SPELLED || runs.n <= FEW_RUNS ? runs : set;
    }
    RankRun run[FEW_RUNS];
    if (n > FEW_RUNS) return set;
    for (int i = 0; i < n; i++)
        if (!box_run(&box[i], &run[i])) return set;
    qsort(run, (size_t)n, sizeof *run, by_first);
    runs.run = ARENA_ARRAY(arena, RankRun, n);
    for (int i = 0; i < n; i++) {
        RankRun *last = runs.n ? &runs.run[runs.n - 1] : NULL;
        bool joins = last && last->stride == 1 && run[i].stride == 1 &&
                     last->first + last->count == run[i].first;
        bool inside = last && run[i].first < last->first + (last->count - 1) * last->stride;
        if (inside) return set; /* runs that interlock are no list in ascending order */
        if (joins) last->count += run[i].count;
        else runs.run[runs.n++] = run[i];
    }
    return runs;
}

/* ---- a list of ranks as boxes ---- */
typedef struct {
    Arena *arena;
    RankBox box; /* the sides outside are set */
    RankBox *out;
    int n, cap;
} Cutting;
/* Do the ranks a[0..n) and b[0..n) have the same coordinates on the inner axes? */
static bool same_inside(const int64_t *a, const int64_t *b, int64_t n, int64_t shift) {
    for (int64_t i = 0; i < n; i++)
        if (a[i] + shift != b[i]) return false;
    return true;
}
/* The ascending ranks of one coordinate of each axis outside `k`. */
static void cut_list(Cutting *c, int k, const int64_t *ranks, int64_t n) {
    if (k == c->box.n) {
        *ARENA_PUSH(c->arena, c->out, c->n, c->cap) = c->box;
        return;
    }
    RankSide *s = &c->box.side[k];
    for (int64_t i = 0; i < n;) {
        int64_t at = ranks[i] / s->stride % s->size, len = 0, count = 1;
        while (i + len < n && ranks[i + len] / s->stride % s->size == at) len++;
        while (i + (count + 1) * len <= n &&
               same_inside(ranks + i, ranks + i + count * len, len, count * s->stride) &&
               (i + (count + 1) * len == n ||
                ranks[i + (count + 1) * len] / s->stride % s->size != at + count))
            count++;
        s->first = at;
        s->count = count;
        cut_list(c, k + 1, ranks + i, len);
        i += count * len;
    }
    s->first = 0;
    s->count = s->size;
}
RankBox *rankset_cut(Arena *arena, const RankBox *mesh, const int64_t *ranks, int64_t n,
                     int *n_boxes) {
    Cutting c = {.arena = arena, .box = *mesh};
    if (n) cut_list(&c, 0, ranks, n);
    *n_boxes = c.n;
    return c.out;
}
RankSet rankset_on_mesh(Arena *arena, const RankBox *mesh, const int64_t *ranks, int64_t n) {
    assert(mesh->n <= TRACE_MAX_AXES);
    Arena *tmp = arena_new();
    RankSet runs = rankset_from(tmp, ranks, n);
    Cutting c = {.arena = tmp, .box = *mesh};
    if (runs.n > FEW_RUNS && n > TRACE_SPELLED && mesh->n) cut_list(&c, 0, ranks, n);
    RankSet set = {.n = runs.n};
    if (c.n && c.n < runs.n)
        set = (RankSet){.n = c.n, .box = arena_memdup(arena, c.out, (size_t)c.n * sizeof *c.out)};
    else if (runs.n) set.run = arena_memdup(arena, runs.run, (size_t)runs.n * sizeof *runs.run);
    arena_free(tmp);
    return set;
}

/* ---- texts ---- */
static void run_text(Str *s, const RankRun *r) {
    int64_t last = r->first + (r->count - 1) * r->stride;
    if (r->count > 2 && r->stride == 1) {
        str_addf(s, "%lld-%lld", (long long)r->first, (long long)last);
    } else if (r->count > 4) {
        str_addf(s, "%lld:%lld:%lld", (long long)r->first, (long long)(last + r->stride),
                 (long long)r->stride);
    } else {
        for (int64_t i = 0; i < r->count; i++)
            str_addf(s, "%s%lld", i ? "," : "", (long long)(r->first + i * r->stride));
    }
}
const char *rankbox_text(const RankBox *b, Arena *arena) {
    Str s = str_new(arena);
    for (int k = 0; k < b->n; k++) {
        const RankSide *x = &b->side[k];
        if (x->count == x->size) continue;
        str_addf(&s, "%s%s=%lld", s.n ? " " : "", x->axis, (long long)x->first);
        if (x->count > 1) str_addf(&s, ":%lld", (long long)(x->first + x->count));
    }
    return s.n ? s.s : "all";
}
const char *rankset_text(const RankSet *r, Arena *arena) {
    RankSet c = *r;
    int64_t n = rankset_count(r);
    if (n <= TRACE_SPELLED && r->n > 1) { /* one text per set, however its runs were cut */
        int64_t list[TRACE_SPELLED] = {0}, k = 0, rank;
        for (RankWalk w = {0}; rankset_next(r, &w, &rank);) list[k++] = rank;
        qsort(list, (size_t)k, sizeof *list, by_rank);
        c = rankset_from(arena, list, n);
    }
    Str s = str_new(arena);
    for (int i = 0; i < c.n; i++) {
        if (i) str_add(&s, c.run ? "," : ", ");
        if (c.run) run_text(&s, &c.run[i]);
        else str_add(&s, rankbox_text(&c.box[i], arena));
    }
    return n ? s.s : "none";
}
const char *rankset_words(const RankSet *r, Arena *arena) {
    return arena_printf(arena, "rank%s %s", rankset_count(r) == 1 ? "" : "s",
                        rankset_text(r, arena));
}
const char *ranks_span(int64_t first, int64_t last, Arena *arena) {
    return first == last
               ? arena_printf(arena, "rank %lld", (long long)first)
               : arena_printf(arena, "ranks %lld to %lld", (long long)first, (long long)last);
}
RankBox trace_mesh_box(const Trace *t) {
    RankBox b = {0};
    int64_t stride = 1;
    for (int k = t->n_axes - 1; k >= 0; k--) {
        if (t->n_axes > TRACE_MAX_AXES || t->axes[k].size < 1) return (RankBox){0};
        b.side[k] = (RankSide){t->axes[k].name, t->axes[k].size, stride, 0, t->axes[k].size};
        stride *= t->axes[k].size;
    }
    b.n = stride == t->ranks ? t->n_axes : 0;
    return b;
}
