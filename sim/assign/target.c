/* Placements onto layouts: which axes a placement speaks of, and which letters they cut. */
#include "assign/target.h"
#include "assign/compiled.h"
#include "assign/context.h"
#include "assign/suggest.h"
#include <assert.h>
#include <string.h>

const char *target_default_axis(const Assign *a, bool vocab) {
    AxisList l;
    if (vocab && mesh_lookup(a->mesh, "vp", &l)) return "vp";
    if (mesh_lookup(a->mesh, "tp", &l)) return "tp";
    return a->plan->n_axes == 1 ? a->plan->axes[0].name : NULL;
}

CutHow target_how(const Assign *a, const GTensor *t, int letter, int axis, const char *o) {
    AxisList cp;
    if (t->kind == KIND_PARAM || t->role[letter] != DIM_SEQUENCE) return CUT_CHUNK;
    if (!context_ordered(a->mesh, a->plan, &cp)) return CUT_CHUNK;
    for (int i = 0; i < cp.n; i++)
        for (int how = 0; o && cp.a[i] == axis && how < N_CUTS; how++)
            if (!strcmp(o, layout_orders[how])) return (CutHow)how;
    return CUT_CHUNK;
}

/* Cuts the letter over the i-th of the placement's axes; what another letter had of it is whole. */
static void cut_letter(const Placing *p, int letter, int i) {
    assert(letter >= 0 && i < p->axes->n);
    int axis = p->axes->a[i];
    assert(letter < p->t->nd);
    if (layout_where(p->out, axis) != letter) {
        layout_set_type(p->out, axis, TY_I);
        layout_cut(p->out, letter, axis,
                   target_how(p->a, p->t, letter, axis, p->a->plan->context_parallel.order));
    }
    if (p->names) p->names[axis] = p->group;
}
static void cut_all(const Placing *p, int letter) {
    for (int i = 0; i < p->axes->n; i++) cut_letter(p, letter, i);
}

/* Does this stored dim count heads: K, K*G, or either times d? */
static bool counts_heads(const GTensor *t, int dim) {
    return t->role[graph_stored_first(t, dim)] == DIM_KV_HEADS;
}

/* The axes of the placement, and those that cut the stored dim already. */
static AxisList axes_of_dim(const Placing *p, int dim) {
    AxisList by = {0};
    int first = graph_stored_first(p->t, dim), end = first + p->t->stored[dim];
    for (int axis = 0; axis < p->a->mesh->naxes; axis++) {
        int where = layout_where(p->out, axis);
        if (memchr(p->axes->a, axis, (size_t)p->axes->n) || (where >= first && where < end))
            by.a[by.n++] = (uint8_t)axis;
    }
    return by;
}
/* k or v over more ranks than there are KV heads, or heads that do not divide. */
static void heads_not_cut(const Placing *p, int dim, bool has_g, Loc loc) {
    const Assign *a = p->a;
    const GTensor *t = p->t;
    int first = graph_stored_first(t, dim);
    AxisList by = axes_of_dim(p, dim);
    if (compiled_heads(a, loc, t, dim, &by)) return;
    const int64_t H = a->model->dims.H, K = a->model->dims.K, n = mesh_size(a->mesh, p->axes);
    const bool split = K && n > K && n % K == 0 && H % n == 0; /* by a line of keys or values */
    diag_error(a->d, has_g ? "E0303" : "E0305", loc,
               split ? "with more ranks than KV heads the axis is split by the lines of keys and "
                       "values: `colwise` for these"
                     : arena_printf(a->arena,
                                    "choose a number of ranks that divides the heads, and the KV "
                                    "heads or is a multiple of them: %s",
                                    suggest_head_ranks(a->arena, H, K)),
               "%s: %lld heads cannot be cut over %s of size %lld", graph_name(t),
               (long long)(has_g ? t->size[first] * t->size[first + 1] : t->size[first]),
               mesh_axes_text(a->mesh, a->arena, p->axes, true), (long long)n);
}
/* Cuts a stored dim that counts heads or is made of several letters: each axis takes the first
 * letter whose rest it divides. What is left over of the axes on a tensor without a query-head
 * letter (k, v) stays whole: KV heads are replicated over it. */
static bool cut_composite(const Placing *p, int dim, Loc loc) {
    const GTensor *t = p->t;
    int first = graph_stored_first(t, dim), at = first, end = first + t->stored[dim],
        last = end; /* last: after the letters that count heads */
    while (last > first && t->role[last - 1] == DIM_HEAD_SIZE) last--;
    /* packed (u f): the cut goes to the last letter, whole blocks stay together */
    if (!counts_heads(t, dim)) {
        cut_all(p, end - 1);
        return true;
    }
    int64_t rest = t->size[at];
    for (int i = 0; i < p->axes->n; i++) {
        int axis = p->axes->a[i];
        int64_t n = p->a->mesh->axis[axis].size;
        while (at < last && rest % n) {
            at++;
            rest = at < last ? t->size[at] : 0;
        }
        if (at < last) {
            cut_letter(p, at, i);
            rest /= n;
            continue;
        }
        bool has_g = last - first > 1;
        if (has_g || i == 0 || p->a->model->dims.kv_rank) { /* latent: k counts all heads */
            heads_not_cut(p, dim, has_g, loc);
            return false;
        }
        /* k or v: replicated over the rest of the axes; a result whose uses differ there stays so
         */
        if (t->kind == KIND_PARAM || p->out->type[axis] != TY_R)
            layout_set_type(p->out, axis, TY_I);
    }
    return true;
}

/* The stored dim that a placement names, or -1 and E0401. */
static int named_dim(const Placing *p, const RawPlace *place, Loc loc, const char *name) {
    int dim = place->dim < 0 ? place->dim + p->t->nstored : place->dim;
    if (dim >= 0 && dim < p->t->nstored) return dim;
    diag_error(p->a->d, "E0401", loc, NULL, "dim %d is out of range: %s has %d dims", place->dim,
               name, p->t->nstored);
    return -1;
}
static bool place_shard(const Placing *p, const RawPlace *place, Loc loc) {
    const GTensor *t = p->t;
    if (place->letter) {
        const char *at = memchr(t->letter, place->letter, (size_t)t->nd);
        if (!at) {
            diag_error(p->a->d, "E0401", loc,
                       arena_printf(p->a->arena, "its dims are %.*s", t->nd, t->letter),
                       "%s has no dim '%c'", graph_name(t), place->letter);
            return false;
        }
        cut_all(p, (int)(at - t->letter));
        return true;
    }
    int dim = named_dim(p, place, loc, graph_name(t));
    if (dim < 0) return false;
    if (t->stored[dim] > 1 || counts_heads(t, dim)) return cut_composite(p, dim, loc);
    cut_all(p, graph_stored_first(t, dim));
    return true;
}
/* The dim as the list it is in memory, where it has several letters. */
static bool place_contiguous(const Placing *p, const RawPlace *place) {
    int dim = named_dim(p, place, place->loc, p->t->name);
    if (dim < 0) return false;
    if (p->t->stored[dim] == 1) cut_all(p, graph_stored_first(p->t, dim));
    for (int i = 0; i < p->axes->n && p->t->stored[dim] > 1; i++) {
        layout_set_type(p->out, p->axes->a[i], TY_I);
        layout_cut_list(p->out, p->axes->a[i], dim);
        if (p->names) p->names[p->axes->a[i]] = p->group;
    }
    return true;
}

/* Is this placement shard of the sequence dim of an activation? Then the group `sp` is meant. */
static bool is_sequence(const GTensor *t, const RawPlace *p) {
    if (p->kind != RP_SHARD || t->kind == KIND_PARAM) return false;
    if (p->letter) return p->letter == 't';
    int dim = p->dim < 0 ? p->dim + t->nstored : p->dim;
    return dim >= 0 && dim < t->nstored && t->stored[dim] == 1 &&
           t->role[graph_stored_first(t, dim)] == DIM_SEQUENCE;
}

/* Is whole here "equal, with uses that differ"? */
static bool uses_differ(const Placing *p) {
    const ModuleUse *u = p->use;
    return u && p->t->diff &&
           ((p->kind == USE_INPUT && u->cuts_param && !u->local_inside) ||
            (p->kind == USE_OUTPUT && u->out_varies));
}

static int letter_of(const GTensor *t, DimRole role) {
    for (int d = 0; d < t->nd; d++)
        if (t->role[d] == role) return d;
    return -1;
}
/* How many parts the axes that are not placed here cut a letter into. */
static int64_t parts_before(const Placing *p, int letter) {
    AxisList cut = layout_dim_axes(p->out, letter);
    int64_t n = 1;
    for (int i = 0; i < cut.n; i++)
        if (!(mesh_axes_set(p->axes) >> cut.a[i] & 1)) n *= p->a->mesh->axis[cut.a[i]].size;
    return n;
}
/* Part r of n of the list of a rank's tokens, sequence behind sequence: whole sequences, or a part
 * of the only one. Anything else begins in the middle of one sequence and ends in that of another,
 * and no cut of a dim is that. */
static bool place_tokens(const Placing *p, Loc loc) {
    const Assign *a = p->a;
    int b = letter_of(p->t, DIM_BATCH), s = letter_of(p->t, DIM_SEQUENCE);
    int64_t n = mesh_size(a->mesh, p->axes);
    if (b < 0 || s < 0) {
        diag_error(a->d, "E0401", loc, NULL, "%s has no tokens", graph_name(p->t));
        return false;
    }
    int64_t before = parts_before(p, b), whole = p->t->size[b], mine = whole / before;
    bool sequences = n == 1 || whole % (before * n) == 0, one = whole == before;
    if (sequences) cut_all(p, b);
    else if (one) cut_all(p, s);
    else
        diag_error(a->d, "E0214", loc,
                   arena_printf(a->arena,
                                "a batch of which each rank has a multiple of %lld sequences, or "
                                "one; or `shard(t)`: the same result, each rank with other tokens",
                                (long long)n),
                   "the flat list of tokens, %s%lld sequences of a rank, in %lld parts over %s: a "
                   "part would be no cut of the batch or of the sequence",
                   whole % before ? "about " : "", (long long)mine, (long long)n,
                   mesh_axes_text(a->mesh, a->arena, p->axes, true));
    return sequences || one;
}
bool target_place(const Placing *p, const RawPlace *place) {
    AxisType ty;
    switch (place->kind) {
    case RP_SHARD: /* a style's own placement stands nowhere */
        return place_shard(p, place, place->loc.file || !p->use ? place->loc : p->use->loc);
    case RP_TOKENS: return place_tokens(p, place->loc.file || !p->use ? place->loc : p->use->loc);
    case RP_CONTIGUOUS: return place_contiguous(p, place);
    case RP_REPLICATE: ty = uses_differ(p) ? TY_R : TY_I; break;
    case RP_INVARIANT: ty = TY_I; break;
    case RP_VARYING: ty = p->t->diff ? TY_R : TY_I; break;
    case RP_PARTIAL: ty = TY_P; break;
    default: return true; /* null, local */
    }
    for (int i = 0; i < p->axes->n; i++) layout_set_type(p->out, p->axes->a[i], ty);
    return true;
}

/* The axes that a placement without axes of its own speaks of; false if there are none. */
static bool bare_axes(const Placing *p, const RawPlace *bare, AxisList *axes, const char **group) {
    bool seq = is_sequence(p->t, bare);
    const ModuleUse *u = p->use;
    AxisList l;
    if (u && u->style) {
        *axes = seq ? u->seq_axes : u->axes;
        *group = seq ? u->seq_group : u->group;
        return true;
    }
    /* block_input */
    bool sp = seq && mesh_lookup(p->a->mesh, "sp", &l);
    *group = sp ? "sp" : target_default_axis(p->a, false);
    return *group && mesh_lookup(p->a->mesh, *group, axes);
}

bool assign_target(const Assign *a, const Target *want, Layout *out, const char **names) {
    const RawSpec *s = want->spec;
    AxisList axes = {0};
    Placing p = {.a = a,
                 .t = &a->model->g.t[want->tensor],
                 .use = want->module >= 0 ? &a->use[want->module] : NULL,
                 .kind = want->kind,
                 .axes = &axes,
                 .out = out,
                 .names = names};
    *out = *want->from;
    if (!s->set) return true;
    if (!s->mapping) return !bare_axes(&p, &s->bare, &axes, &p.group) || target_place(&p, &s->bare);
    bool ok = true;
    for (int i = 0; i < s->n; i++) {
        p.group = s->on[i].axis;
        if (s->on[i].if_any && !mesh_lookup(a->mesh, p.group, &axes)) continue;
        if (!p.group && p.use) { /* of a row: the style's own */
            axes = p.use->axes;
            p.group = p.use->group;
            ok &= target_place(&p, &s->on[i].place);
            continue;
        }
        ok &= assign_axes(a->mesh, a->arena, a->d, p.group, s->on[i].loc, &axes) &&
              target_place(&p, &s->on[i].place);
    }
    return ok;
}

bool assign_label_holds(const Assign *a, const Layout *cur, const Layout *label) {
    for (int x = 0; x < a->mesh->naxes; x++) {
        if (a->mesh->axis[x].size == 1) continue;
        int wc = layout_where(cur, x), wl = layout_where(label, x);
        bool eq_c = cur->type[x] == TY_I || cur->type[x] == TY_R,
             eq_l = label->type[x] == TY_I || label->type[x] == TY_R;
        if (wc != wl || (wc < 0 && !(eq_c && eq_l) && cur->type[x] != label->type[x])) return false;
    }
    return true;
}
