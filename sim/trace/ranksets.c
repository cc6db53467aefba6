/* Different sets of ranks. See ranksets.h: a table by a hash of the runs or boxes. */
#include "trace/ranksets.h"

static uint64_t mixed(uint64_t h, int64_t x) {
    h = (h ^ (uint64_t)x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}
/* The same for sets that rankset_same finds equal. */
static uint64_t hash_of(const RankSet *x) {
    uint64_t h = mixed(0, x->n);
    for (int i = 0; i < x->n; i++) {
        if (x->run) {
            const RankRun *r = &x->run[i];
            h = mixed(mixed(mixed(h, r->first), r->count), r->stride);
            continue;
        }
        for (int k = 0; k < x->box[i].n; k++)
            h = mixed(mixed(h, x->box[i].side[k].first), x->box[i].side[k].count);
    }
    return h;
}
/* Where the set's number stands, or has room. */
static int *place_of(const RankSets *s, const RankSet *x) {
    uint64_t at = hash_of(x);
    for (;; at++) {
        int *place = &s->place[at % (uint64_t)s->places];
        if (!*place || rankset_same(s->set[*place - 1], x)) return place;
    }
}
static void make_room(RankSets *s) {
    s->places *= 2;
    s->place = ARENA_ARRAY(s->arena, int, s->places);
    for (int i = 0; i < s->n; i++) *place_of(s, s->set[i]) = i + 1;
}

RankSets ranksets_new(Arena *arena) {
    enum { FIRST = 64 };
    return (RankSets){.arena = arena, .places = FIRST, .place = ARENA_ARRAY(arena, int, FIRST)};
}
int ranksets_number(RankSets *s, const RankSet *x) {
    int *place = place_of(s, x);
    if (*place) return *place - 1;
    *ARENA_PUSH(s->arena, s->set, s->n, s->cap) = x;
    *place = s->n;
    if (2 * s->n > s->places) make_room(s);
    return s->n - 1;
}
