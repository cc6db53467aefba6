/* Moves on the way of a value to a layout, with who asked for them. It knows no op, no module's
 * boundary and no style: whoever wants a value elsewhere says where, and why. Refuses to decide
 * where anything should lie. */
#include "lower/moves.h"
#include <string.h>

/* Whose copies are shared: those of one value (its root), for `boundary: per_module` within one
 * module (else -1), and apart from them those whose sum of gradients nobody asks for. */
typedef struct {
    int root, module;
    bool unasked;
    int way; /* through the pipeline: a stage of each may have the same place */
} CopyKey;
struct CacheSlot {
    CopyKey key;
    uint64_t hash;
    int val;
};

Val *moves_value(Program *p, int tensor, const Layout *L) {
    const GTensor *t = &p->graph->t[tensor];
    return program_add_val(
        p,
        &(Val){
            .root = -1, .tensor = tensor, .diff = t->diff, .kind = t->kind, .L = *L, .list = -1});
}
Step *moves_step(Program *p, StepKind k, Phase pass) {
    Step blank = step_blank(k, pass);
    return program_add_step(p, &blank, -1);
}

/* ---- cache of single moves ---- */
static int *cache_slot(Lower *l, CopyKey key, const Layout *L) {
    if (2 * (l->n_cache + 1) > l->cap_cache) {
        int old = l->cap_cache;
        CacheSlot *from = l->cache;
        l->cap_cache = old ? 2 * old : 256;
        l->cache = ARENA_ARRAY(l->arena, CacheSlot, l->cap_cache);
        l->n_cache = 0;
        for (int i = 0; i < l->cap_cache; i++) l->cache[i].val = -1;
        for (int i = 0; i < old; i++)
            if (from[i].val >= 0)
                *cache_slot(l, from[i].key, &l->p->val[from[i].val].L) = from[i].val;
    }
    uint64_t h = layout_hash(L) ^ (uint64_t)key.root * 0x9e3779b97f4a7c15u ^
                 (uint64_t)(key.module + 1) << 40 ^ (uint64_t)key.unasked << 63 ^
                 (uint64_t)key.way << 62;
    for (uint64_t i = h;; i++) {
        CacheSlot *s = &l->cache[i & (uint64_t)(l->cap_cache - 1)];
        if (s->val >= 0 && s->hash == h && s->key.root == key.root && s->key.module == key.module &&
            s->key.unasked == key.unasked && s->key.way == key.way &&
            layout_eq(&l->p->val[s->val].L, L))
            return &s->val;
        if (s->val >= 0) continue;
        *s = (CacheSlot){key, h, -1};
        l->n_cache++;
        return &s->val;
    }
}

const char *moves_place_words(const Lower *l, int val, const Layout *L, const char *const *names) {
    Val v = l->p->val[val];
    v.L = *L;
    for (int x = 0; names && x < l->p->mesh->naxes; x++)
        if (names[x]) v.group[x] = names[x];
    Str s = str_new(l->arena);
    str_add(&s, program_symbolic(l->p, &v, l->arena));
    for (int x = 0; x < l->p->mesh->naxes; x++)
        if (L->type[x] == TY_P && l->p->mesh->axis[x].size > 1)
            str_addf(&s, " with a sum over %s pending", l->p->mesh->axis[x].name);
    return s.s;
}
void moves_begin(Lower *l, int v) {
    const Val *x = &l->p->val[v];
    *cache_slot(l, (CopyKey){x->root, -1, false, l->way}, &x->L) = v;
}
void moves_begin_anew(Lower *l, int v) {
    l->p->val[v].root = v;
    moves_begin(l, v);
}

static bool communicates(const Mesh *m, const Move *v) {
    return move_communicates(v->kind) && mesh_size(m, &v->axes) > 1;
}

/* The group name for the axes of a move: what the plan wrote for them, if it is one name that
 * stands for exactly them. */
static const char *group_name(const Mesh *m, const Val *src, const Move *v,
                              const char *const *names) {
    const char *g = NULL;
    for (int i = 0; i < v->axes.n; i++) {
        const char *n =
            names && names[v->axes.a[i]] ? names[v->axes.a[i]] : src->group[v->axes.a[i]];
        if (i && n != g && (!n || !g || strcmp(n, g))) return NULL;
        g = n;
    }
    AxisList l;
    if (!g || !mesh_lookup(m, g, &l) || l.n != v->axes.n) return NULL;
    return memcmp(l.a, v->axes.a, (size_t)l.n) ? NULL : g;
}
/* Does the plan declare that the gradient of this parameter is summed over all of these axes? */
static bool declared_sum(const Lower *l, int tensor, const AxisList *axes) {
    for (int i = 0; i < axes->n; i++)
        if (l->p->mesh->axis[axes->a[i]].size > 1 && !(l->a->summed[tensor] >> axes->a[i] & 1))
            return false;
    return true;
}
/* Nothing happens forward, and the adjoint is a sum over the axis. */
static bool uses_part(const Move *mv) {
    return mv->kind == MOVE_ID && mv->from.type[mv->axes.a[0]] == TY_I &&
           mv->to.type[mv->axes.a[0]] == TY_R;
}
/* The stage of a pipeline that moves a value: the one that wants it, if it is there already; else
 * whoever has it. */
static int stage_of(const Lower *l, const Val *v, const Move *mv, bool sent) {
    const Stages *s = l->a->stages;
    if (!s || sent) return v->stage;
    bool placed = v->L.type[s->axis] == TY_AT;
    bool here = placed ? v->L.at[s->axis] == s->home[l->stage] && l->stage > v->stage
                       : mv->to.type[s->axis] == TY_AT; /* its own of two copies */
    return here ? l->stage : v->stage;
}
static int list_after(Lower *l, int src, const Move *mv, const Reason *why);
static int single_move(Lower *l, int src, const Move *mv, const Reason *why, bool claim) {
    Program *p = l->p;
    int list = claim ? p->val[src].list : list_after(l, src, mv, why);
    Val *w = moves_value(p, p->val[src].tensor, &mv->to);
    const Val *v = &p->val[src];
    w->root =
        claim
            ? w->id
            : v->root; /* a claimed copy is another value from here on: it shares no moved copies */
    w->kind = v->kind;
    w->diff = v->diff;
    w->cot = v->cot, w->parts = v->parts, w->n_parts = v->n_parts; /* a gradient stays one */
    w->list = list == src ? w->id : list;
    bool sent = !claim && move_relocates(mv->kind);
    int by = stage_of(l, v, mv, sent);
    w->stage = sent ? l->stage : by;
    for (int x = 0; x < p->mesh->naxes; x++)
        w->group[x] = why->names && why->names[x] && layout_where(&mv->to, x) >= 0 ? why->names[x]
                                                                                   : v->group[x];
    Step *s = moves_step(p, claim ? ST_CLAIM : ST_MOVE, why->pass);
    s->nin = 1;
    s->in[0] = src;
    s->out = w->id;
    s->stage = by;
    s->move = *mv;
    /* a claim is about the axes on which the label differs */
    for (int x = 0; claim && x < p->mesh->naxes; x++)
        if (mv->from.type[x] != mv->to.type[x] ||
            layout_where(&mv->from, x) != layout_where(&mv->to, x))
            s->move.axes.a[s->move.axes.n++] = (uint8_t)x;
    s->why = why->text;
    s->back = why->back;
    /* whatever else the way to the operand needs */
    if (!claim && mv->kind == MOVE_ID && v->kind == KIND_PARAM &&
        mv->from.type[mv->axes.a[0]] == TY_I)
        s->why = arena_printf(l->arena, "from here on its uses differ over %s",
                              mesh_axes_text(p->mesh, l->arena, &mv->axes, true));
    s->loc = why->loc;
    s->module = why->module;
    s->by_op = why->by_op;
    s->unasked = !why->asked || (v->kind == KIND_PARAM && mv->kind == MOVE_SLICE &&
                                 !declared_sum(l, v->tensor, &mv->axes));
    s->inferred = s->unasked && communicates(p->mesh, mv);
    s->group = group_name(p->mesh, v, &s->move, why->names);
    w->step = s->id;
    return w->id;
}
/* The axes of a move that the list makes too: those over which its layout changes. */
static AxisList list_axes(const Move *mv, const Layout *from, const Layout *to) {
    AxisList axes = {0};
    for (int i = 0; i < mv->axes.n; i++) {
        int x = mv->axes.a[i];
        if (from->type[x] != to->type[x] || layout_where(from, x) != layout_where(to, x))
            axes.a[axes.n++] = (uint8_t)x;
    }
    return axes.n ? axes : mv->axes; /* another cut of the same dim */
}
/* The ways that the list goes while its rows make a single move: one, unless what is one kind of
 * move to them is several to it (a dim of theirs that it has not is cut too). */
static bool list_moves(const Lower *l, int list, const Move *mv, const Layout *to, MovePlan *out) {
    const Program *p = l->p;
    Move own = {.from = p->val[list].L, .to = *to};
    own.axes = list_axes(mv, &own.from, to);
    own.kind = move_kind(&own.from, to, own.axes.a[0]);
    bool one = own.kind != MOVE_KINDS;
    for (int i = 1; i < own.axes.n; i++) one &= move_kind(&own.from, to, own.axes.a[i]) == own.kind;
    *out = (MovePlan){.n = 1, .m = {own}};
    return one || redistribute(p->mesh, p->graph->t[p->val[list].tensor].size, &own.from, to, out);
}
/* What axes of one rank cut is whole. */
static Layout without_ones(const Mesh *m, const Layout *of) {
    Layout L = *of;
    for (int x = 0; x < m->naxes; x++)
        if (m->axis[x].size == 1 && layout_where(&L, x) >= 0) layout_set_type(&L, x, TY_I);
    return L;
}
/* A copy of the list that lies so but for axes of one rank, which no copy needs to travel for; the
 * list itself if there is none. */
static int nearest_list(const Lower *l, int list, const Layout *to) {
    const Program *p = l->p;
    Layout want = without_ones(p->mesh, to);
    for (int v = 0; v < p->nv; v++) {
        if (p->val[v].tensor != p->val[list].tensor || p->val[v].root != p->val[list].root)
            continue;
        Layout has = without_ones(p->mesh, &p->val[v].L);
        if (layout_eq(&has, &want)) return v;
    }
    return list;
}
/* The list that rows follow after a single move: it goes the same way, projected, unless it has
 * done so already for others. A list itself: src. */
static int list_after(Lower *l, int src, const Move *mv, const Reason *why) {
    Program *p = l->p;
    int list = p->val[src].list;
    if (list < 0 || list == src) return list;
    Layout to = program_list_layout(p, list, &mv->to);
    if (layout_eq(&p->val[list].L, &to)) return list;
    MovePlan plan;
    Reason r = *why;
    r.asked = true;
    r.text = "the index list goes the way of its rows: the counts are exchanged";
    int near = nearest_list(l, list, &to);
    bool way = near == list ? list_moves(l, list, mv, &to, &plan)
                            : redistribute(p->mesh, p->graph->t[p->val[list].tensor].size,
                                           &p->val[near].L, &to, &plan);
    if (!way) {
        diag_error(l->d, "E0404", why->loc, NULL, "%s: there is no way from %s to %s",
                   p->graph->t[p->val[list].tensor].name,
                   moves_place_words(l, list, &p->val[list].L, NULL),
                   moves_place_words(l, list, &to, NULL));
        return list;
    }
    list = near;
    for (int i = 0; i < plan.n; i++) {
        CopyKey key = {p->val[list].root, -1, false, l->way};
        if (*cache_slot(l, key, &plan.m[i].to) < 0) {
            int made = single_move(l, list, &plan.m[i], &r, false);
            *cache_slot(l, key, &plan.m[i].to) = made;
        }
        list = *cache_slot(l, key, &plan.m[i].to);
    }
    return list;
}
/* How a parameter that was gathered lies between the passes: cut by some of the axes again. */
static Layout kept_layout(const Move *gathered, const AxisList *keep) {
    Layout L = gathered->to;
    const Layout *from = &gathered->from;
    for (int d = 0; d <= L.ndim; d++)
        for (int k = L.n[d]; k < from->n[d]; k++) {
            Entry e = from->e[d][k];
            if (!(mesh_axes_set(keep) >> e.axis & 1)) continue;
            if (d == L.ndim) L.list = from->list, L.flat = from->flat;
            L.e[d][L.n[d]++] = e;
            L.type[e.axis] = TY_V;
        }
    return L;
}
/* `reshard_over`: of a parameter that is gathered whole each rank keeps the part of a smaller
 * group. The backward pass gathers from there (adjoint.c). */
static void keep_part(Lower *l, int v) {
    Program *p = l->p;
    const AxisList *keep = &l->a->keep;
    const Step gather = p->step[p->val[v].step];
    if (!keep->n || !l->backward || p->val[v].kind != KIND_PARAM ||
        gather.move.kind != MOVE_ALL_GATHER)
        return;
    Layout L = kept_layout(&gather.move, keep);
    if (layout_eq(&L, &gather.move.to) || layout_eq(&L, &gather.move.from)) return;
    Val *w = moves_value(p, p->val[v].tensor, &L);
    const Val *whole = &p->val[v];
    w->root = whole->root;
    w->kind = whole->kind;
    w->list = whole->list;
    w->stage = whole->stage;
    memcpy(w->group, whole->group, sizeof w->group);
    Step *s = moves_step(p, ST_MOVE, gather.pass);
    s->nin = 1;
    s->in[0] = v;
    s->out = w->id;
    s->stage = gather.stage;
    s->packs = true;
    s->move = (Move){.from = gather.move.to, .to = L};
    for (int i = 0; i < gather.move.axes.n; i++)
        if (layout_where(&L, gather.move.axes.a[i]) >= 0)
            s->move.axes.a[s->move.axes.n++] = gather.move.axes.a[i];
    s->move.kind = move_kind(&s->move.from, &L, s->move.axes.a[0]);
    s->why = "kept for the backward pass, cut over a smaller group";
    s->loc = l->a->plan->data_parallel.reshard_over_loc;
    s->module = gather.module;
    w->step = s->id;
}
/* A way between two layouts of a value of these sizes. */
typedef struct {
    Layout from, to;
    int64_t size[LAYOUT_MAX_DIMS];
    bool ok; /* there is one */
    int n;
    Move *m;
} KnownWay;
typedef struct {
    const int64_t *size;
    const Layout *from, *to;
} WantedWay;
static bool is_way(const void *row, const void *want) {
    const KnownWay *w = row;
    const WantedWay *x = want;
    return layout_eq(&w->to, x->to) && layout_eq(&w->from, x->from) &&
           !memcmp(w->size, x->size, sizeof w->size);
}
/* The way that redistribute finds, which costs much more than finding it again. Valid until the
 * next call. */
static const KnownWay *find_way(Lower *l, const WantedWay *x) {
    enum { MAX_WAYS = 32 };
    if (!l->ways.row) l->ways = recent_new(l->arena, MAX_WAYS, sizeof(KnownWay));
    KnownWay *known = recent_find(&l->ways, is_way, x), w = {.from = *x->from, .to = *x->to};
    if (known) return known;
    MovePlan plan;
    memcpy(w.size, x->size, sizeof w.size);
    w.ok = redistribute(l->p->mesh, x->size, x->from, x->to, &plan);
    w.n = w.ok ? plan.n : 0;
    w.m = arena_memdup(l->arena, plan.m, (size_t)w.n * sizeof *plan.m);
    return recent_add(&l->ways, &w);
}
int moves_to(Lower *l, int v, const Layout *to, const Reason *why) {
    Program *p = l->p;
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    if (layout_eq(&p->val[v].L, to)) return v;
    const KnownWay plan = *find_way(l, &(WantedWay){t->size, &p->val[v].L, to});
    bool ok = plan.ok;
    bool real = !ok, local = ok, sum = false;
    for (int i = 0; ok && i < plan.n; i++) {
        real |= plan.m[i].kind != MOVE_ID, local &= move_views(plan.m[i].kind);
        sum |= l->backward && p->val[v].diff && !why->asked && uses_part(&plan.m[i]) &&
               mesh_size(p->mesh, &plan.m[i].axes) > 1;
    }
    /* the loss's own data (labels, a target) have no line: whoever loads them cuts them as the
     * values lie; labels come with the tokens, and are cut as those are */
    bool loaded = t->kind == KIND_INPUT && local && !t->is_int && why->pass == PHASE_LOSS;
    bool silent = l->declared && !why->output && !why->asked && !loaded;
    if (!ok && !(silent && t->kind != KIND_PARAM)) {
        diag_error(l->d, "E0404", why->loc, NULL, "%s: there is no way from %s to %s", t->name,
                   moves_place_words(l, v, &p->val[v].L, NULL), moves_place_words(l, v, to, NULL));
        return v;
    }
    CopyKey key = {p->val[v].root, why->scope, sum, l->way};
    if (graph_is_list(t))
        key = (CopyKey){p->val[v].root, -1, false, l->way}; /* one copy for all rows */
    if (silent &&
        (real ||
         sum)) { /* trust: declared makes no move that no style asked for: the label is believed */
        if (*cache_slot(l, key, to) < 0) {
            int made = moves_claim(l, v, to, why);
            *cache_slot(l, key, to) = made;
        }
        return *cache_slot(l, key, to);
    }
    for (int i = 0; i < plan.n; i++) {
        int *slot = cache_slot(l, key, &plan.m[i].to);
        if (*slot < 0) {
            int made = single_move(l, v, &plan.m[i], why, false);
            *cache_slot(l, key, &plan.m[i].to) = made;
            keep_part(l, made);
        }
        v = *cache_slot(l, key, &plan.m[i].to);
    }
    return v;
}
int moves_claim(Lower *l, int v, const Layout *to, const Reason *why) {
    Move claim = {.from = l->p->val[v].L, .to = *to, .kind = MOVE_ID};
    return single_move(l, v, &claim, why, true);
}
int moves_undeclared(Lower *l, int v, const Layout *want, const Reason *why) {
    Program *p = l->p;
    Layout first = p->val[v].L;
    bool any = false;
    for (int x = 0; l->backward && x < p->mesh->naxes; x++) {
        AxisList one = {.n = 1, .a = {(uint8_t)x}};
        if (first.type[x] != TY_I || want->type[x] != TY_R ||
            declared_sum(l, p->val[v].tensor, &one))
            continue;
        first.type[x] = TY_R;
        any = true;
    }
    Reason r = *why;
    r.asked = false;
    return any ? moves_to(l, v, &first, &r) : v;
}
