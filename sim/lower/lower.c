/* Inserting the moves: one strategy per op and mesh axis, the operands brought to the layouts that
 * it needs, every single move cached by (value, layout) so that consumers share the beginning of
 * the way. Styles are met only at parameters and module boundaries; no module and no style is known
 * by name here. */
#include "lower/mislabel.h"
#include "lower/program.h"
#include "lower/why.h"
#include "ops/op.h"
#include <string.h>

typedef struct {
    enum { S_LETTER, S_P, S_R, S_I } kind;
    char letter;
} Strategy;

/* Whose copies are shared: those of one value (its root), for `boundary: per_module` within one
 * module (else -1), and apart from them those whose sum of gradients nobody asks for. */
typedef struct {
    int root, module;
    bool unasked;
} CopyKey;
typedef struct CacheSlot {
    CopyKey key;
    uint64_t hash;
    int val;
} CacheSlot;

typedef struct {
    Program *p;
    const Assign *a;
    Arena *arena;
    Diags *d;
    int cap_cache, n_cache;
    CacheSlot *cache;
    int *scope;       /* per module and input: Val after the module's declared input, or -1 */
    bool *declared_p; /* per Val id slot: pending by declaration (output: partial, local) */
    bool declared;    /* trust: declared */
    bool backward;    /* a backward pass follows: what a move's adjoint is counts too */
    Mislabels mislabels;
} Lower;

/* Why a move is made: on whose behalf. */
typedef struct {
    const char *text;
    Loc loc;
    const char **names; /* group names per axis, or NULL */
    bool asked;         /* by a style or a key of the plan */
    bool output;        /* at a declared output: happens under trust: declared too */
    int module, scope;
    Phase pass;
} Reason;

/* ---- values ---- */
static Val *new_val(Program *p, int tensor, const Layout *L) {
    const GTensor *t = &p->graph->t[tensor];
    return program_add_val(
        p,
        &(Val){
            .root = -1, .tensor = tensor, .diff = t->diff, .kind = t->kind, .L = *L, .list = -1});
}
static Step *new_step(Program *p, StepKind k, Phase pass) {
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
                 (uint64_t)(key.module + 1) << 40 ^ (uint64_t)key.unasked << 63;
    for (uint64_t i = h;; i++) {
        CacheSlot *s = &l->cache[i & (uint64_t)(l->cap_cache - 1)];
        if (s->val >= 0 && s->hash == h && s->key.root == key.root && s->key.module == key.module &&
            s->key.unasked == key.unasked && layout_eq(&l->p->val[s->val].L, L))
            return &s->val;
        if (s->val >= 0) continue;
        *s = (CacheSlot){key, h, -1};
        l->n_cache++;
        return &s->val;
    }
}

static const char *place_words(const Lower *l, int val, const Layout *L, const char *const *names);
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
static int list_after(Lower *l, int src, const Move *mv, const Reason *why);
static int single_move(Lower *l, int src, const Move *mv, const Reason *why, bool claim) {
    Program *p = l->p;
    int list = claim ? p->val[src].list : list_after(l, src, mv, why);
    Val *w = new_val(p, p->val[src].tensor, &mv->to);
    const Val *v = &p->val[src];
    w->root =
        claim
            ? w->id
            : v->root; /* a claimed copy is another value from here on: it shares no moved copies */
    w->kind = v->kind;
    w->diff = v->diff;
    w->list = list == src ? w->id : list;
    for (int x = 0; x < p->mesh->naxes; x++)
        w->group[x] = why->names && why->names[x] && layout_where(&mv->to, x) >= 0 ? why->names[x]
                                                                                   : v->group[x];
    Step *s = new_step(p, claim ? ST_CLAIM : ST_MOVE, why->pass);
    s->nin = 1;
    s->in[0] = src;
    s->out = w->id;
    s->move = *mv;
    /* a claim is about the axes on which the label differs */
    for (int x = 0; claim && x < p->mesh->naxes; x++)
        if (mv->from.type[x] != mv->to.type[x] ||
            layout_where(&mv->from, x) != layout_where(&mv->to, x))
            s->move.axes.a[s->move.axes.n++] = (uint8_t)x;
    s->why = why->text;
    /* whatever else the way to the operand needs */
    if (!claim && mv->kind == MOVE_ID && v->kind == KIND_PARAM &&
        mv->from.type[mv->axes.a[0]] == TY_I)
        s->why = arena_printf(l->arena, "from here on its uses differ over %s",
                              mesh_axes_text(p->mesh, l->arena, &mv->axes, true));
    s->loc = why->loc;
    s->module = why->module;
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
    if (!list_moves(l, list, mv, &to, &plan)) {
        diag_error(l->d, "E0404", why->loc, NULL, "%s: there is no way from %s to %s",
                   p->graph->t[p->val[list].tensor].name,
                   place_words(l, list, &p->val[list].L, NULL), place_words(l, list, &to, NULL));
        return list;
    }
    for (int i = 0; i < plan.n; i++) {
        CopyKey key = {p->val[list].root, -1, false};
        if (*cache_slot(l, key, &plan.m[i].to) < 0) {
            int made = single_move(l, list, &plan.m[i], &r, false);
            *cache_slot(l, key, &plan.m[i].to) = made;
        }
        list = *cache_slot(l, key, &plan.m[i].to);
    }
    return list;
}
/* Brings a value to a layout by single moves, sharing what others have moved already. Copies whose
 * gradients somebody sums and copies whose gradients nobody does are not shared: their sums are
 * two. */
static int move_to(Lower *l, int v, const Layout *to, const Reason *why) {
    Program *p = l->p;
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    if (layout_eq(&p->val[v].L, to)) return v;
    MovePlan plan;
    bool ok = redistribute(p->mesh, t->size, &p->val[v].L, to, &plan);
    bool real = !ok, local = ok, sum = false;
    for (int i = 0; ok && i < plan.n; i++) {
        real |= plan.m[i].kind != MOVE_ID, local &= plan.m[i].kind <= MOVE_SLICE;
        sum |= l->backward && p->val[v].diff && !why->asked && uses_part(&plan.m[i]) &&
               mesh_size(p->mesh, &plan.m[i].axes) > 1;
    }
    /* the loss's own data (labels, a target) have no line: whoever loads them cuts them as the
     * values lie; labels come with the tokens, and are cut as those are */
    bool loaded = t->kind == KIND_INPUT && local && !t->is_int && why->pass == PHASE_LOSS;
    bool silent = l->declared && !why->output && !why->asked && !loaded;
    if (!ok && !(silent && t->kind != KIND_PARAM)) {
        diag_error(l->d, "E0404", why->loc, NULL, "%s: there is no way from %s to %s", t->name,
                   place_words(l, v, &p->val[v].L, NULL), place_words(l, v, to, NULL));
        return v;
    }
    CopyKey key = {p->val[v].root, why->scope, sum};
    if (graph_is_list(t)) key = (CopyKey){p->val[v].root, -1, false}; /* one copy for all rows */
    if (silent &&
        (real ||
         sum)) { /* trust: declared makes no move that no style asked for: the label is believed */
        Move claim = {.from = p->val[v].L, .to = *to, .kind = MOVE_ID};
        if (*cache_slot(l, key, to) < 0) {
            int made = single_move(l, v, &claim, why, true);
            *cache_slot(l, key, to) = made;
        }
        return *cache_slot(l, key, to);
    }
    for (int i = 0; i < plan.n; i++) {
        int *slot = cache_slot(l, key, &plan.m[i].to);
        if (*slot < 0) {
            int made = single_move(l, v, &plan.m[i], why, false);
            *cache_slot(l, key, &plan.m[i].to) = made;
        }
        v = *cache_slot(l, key, &plan.m[i].to);
    }
    return v;
}
/* A parameter on its way to `want`: over the axes on which its uses differ and the plan declares no
 * sum of its gradient, it goes there first, as a move that nobody asks for. Backward that sum then
 * comes last, on what a rank holds at rest. */
static int move_undeclared(Lower *l, int v, const Layout *want, const Reason *why) {
    Program *p = l->p;
    Layout first = p->val[v].L;
    bool any = false;
    for (int x = 0; l->backward && x < p->mesh->naxes; x++) {
        AxisList one = {1, {(uint8_t)x}};
        if (first.type[x] != TY_I || want->type[x] != TY_R ||
            declared_sum(l, p->val[v].tensor, &one))
            continue;
        first.type[x] = TY_R;
        any = true;
    }
    Reason r = *why;
    r.asked = false;
    return any ? move_to(l, v, &first, &r) : v;
}

/* ---- placement of one axis seen through the rule's letters ---- */
typedef struct {
    bool cut;
    char letter;
    int type;
} Seen;
static Seen seen(const Layout *L, const char *letters, int axis) {
    int d = layout_where(L, axis);
    return d >= 0 && d < L->ndim ? (Seen){true, letters[d], TY_V} : (Seen){false, 0, L->type[axis]};
}
/* What a style says of the result of its module; NULL: nothing. */
static const RawSpec *result_of(const Style *s) {
    const RawList *o = s->desired_output.set ? &s->desired_output : &s->output;
    return o->set && o->n && o->arg[0].set ? &o->arg[0] : NULL;
}

/* What the plan declares for the output of this node's module, over the axes on which an operand
 * like it is a pending sum: true and the layout if there is such an operand. An add that refuses
 * the sum (a row bias) then gets it reduced straight to where the output has to lie. */
static bool declared_output(const Lower *l, const GNode *n, const int *in, Layout *want) {
    const Style *s = n->module >= 0 && l->p->graph->module[n->module].output == n->out
                         ? l->a->use[n->module].style
                         : NULL;
    const RawSpec *o = s ? result_of(s) : NULL;
    if (!o || (!o->mapping && o->bare.kind == RP_LOCAL)) return false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &l->p->val[in[i]];
        bool like = n->rule.nl[i] == n->rule.nout &&
                    !memcmp(n->rule.in[i], n->rule.out, (size_t)n->rule.nout),
             pending = false;
        for (int x = 0; x < l->p->mesh->naxes; x++) pending |= v->L.type[x] == TY_P;
        if (like && pending)
            return assign_target(l->a, &(Target){n->module, n->out, o, USE_OUTPUT, &v->L}, want,
                                 NULL);
    }
    return false;
}

/* One strategy for one axis: the first that applies. `goal`: declared_output, or NULL. */
static Strategy choose(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                       int axis) {
    const Program *p = l->p;
    const Op *op = n->op;
    Seen s[RULE_MAX_IN] = {0};
    bool any_diff = false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[in[i]];
        s[i] = seen(v->kind == KIND_PARAM ? &l->a->compute[v->tensor] : &v->L, n->rule.in[i], axis);
        any_diff |= v->diff;
    }
    static const ValueKind order[] = {KIND_PARAM, KIND_ACTIVATION, KIND_INPUT};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n->nin; i++)
            if (p->val[in[i]].kind == order[k] && s[i].cut &&
                !(n->rule.whole & RULE_BIT(s[i].letter)))
                return (Strategy){S_LETTER, s[i].letter};
    int partial = 0, which = -1;
    bool all_pr = true, uses_differ = false;
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[in[i]];
        if (!s[i].cut && s[i].type == TY_P && (v->diff || !any_diff)) partial++, which = i;
        all_pr &= !s[i].cut && (s[i].type == TY_P || s[i].type == TY_R);
        uses_differ |= !s[i].cut && s[i].type == TY_R && v->diff;
    }
    if (partial && ((op->lin == LIN_ADD && all_pr) ||
                    (op->lin != LIN_ADD && partial == 1 && op_linear_in(op, which))))
        return (Strategy){S_P, 0};
    int to = partial && goal
                 ? layout_where(goal, axis)
                 : -1; /* the sum is refused: reduce it to where the output has to lie */
    if (to >= 0 && to < n->rule.nout && !(n->rule.whole & RULE_BIT(n->rule.out[to])))
        return (Strategy){S_LETTER, n->rule.out[to]};
    return (Strategy){uses_differ ? S_R : S_I, 0};
}

/* Ordered entries of each letter: the order of the operand that decided, parameters first. */
typedef struct {
    int n[26];
    Entry e[26][LAYOUT_MAX_ENTRIES];
} LetterCuts;
static bool has_axis(const LetterCuts *c, char ch, int axis) {
    for (int i = 0; i < c->n[ch - 'a']; i++)
        if (c->e[ch - 'a'][i].axis == axis) return true;
    return false;
}
static void add_cut(LetterCuts *c, char ch, Entry e) {
    if (c->n[ch - 'a'] == LAYOUT_MAX_ENTRIES) base_die(70, "a letter is cut by too many axes");
    c->e[ch - 'a'][c->n[ch - 'a']++] = e;
}
static void letter_cuts(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                        const Strategy *S, LetterCuts *c) {
    memset(c, 0, sizeof *c);
    for (int params = 1; params >= 0; params--)
        for (int i = 0; i < n->nin; i++) {
            const Val *v = &l->p->val[in[i]];
            if ((v->kind == KIND_PARAM) != params) continue;
            const Layout *L = params ? &l->a->compute[v->tensor] : &v->L;
            for (int d = 0; d < L->ndim; d++)
                for (int k = 0; k < L->n[d]; k++) {
                    Entry e = L->e[d][k];
                    char ch = n->rule.in[i][d];
                    if (S[e.axis].kind == S_LETTER && S[e.axis].letter == ch &&
                        !has_axis(c, ch, e.axis))
                        add_cut(c, ch, e);
                }
        }
    /* cuts that no operand has yet, only the declared output */
    for (int d = 0; goal && d < n->rule.nout; d++)
        for (int k = 0; k < goal->n[d]; k++) {
            Entry e = goal->e[d][k];
            if (S[e.axis].kind == S_LETTER && S[e.axis].letter == n->rule.out[d] &&
                !has_axis(c, n->rule.out[d], e.axis))
                add_cut(c, n->rule.out[d], e);
        }
}
/* An operand of a node, or its output. */
typedef struct {
    const char *letters;
    int nl;
    bool diff;
    const Val *v; /* what the operand is now; NULL: the output */
} Slot;
/* The layout of an operand or of the output under the strategies. */
static Layout needed(const Lower *l, const GNode *n, const Strategy *S, const LetterCuts *c,
                     const Slot *slot) {
    const Mesh *m = l->p->mesh;
    const char *letters = slot->letters;
    const Val *v = slot->v;
    int nl = slot->nl;
    bool diff = slot->diff;
    Layout L = layout_whole(m, nl, TY_I);
    for (int x = 0; x < m->naxes; x++) {
        int t = TY_I;
        if (S[x].kind == S_LETTER) {
            if (memchr(letters, S[x].letter, (size_t)nl)) continue;
            t = v ? TY_R : n->op->max ? TY_M : TY_P;
        } else if (S[x].kind == S_P && v) {
            Seen s = seen(&v->L, letters, x);
            t = n->op->lin == LIN_ADD || (!s.cut && s.type == TY_P && diff) ? TY_P : TY_R;
        } else t = S[x].kind == S_P ? TY_P : S[x].kind == S_R ? TY_R : TY_I;
        if (!diff && t == TY_R) t = TY_I; /* R and I differ only in the gradient */
        L.type[x] = (uint8_t)t;
    }
    for (int d = 0; d < nl; d++)
        for (int k = 0; k < c->n[letters[d] - 'a']; k++) {
            Entry e = c->e[letters[d] - 'a'][k];
            if (L.n[d] < LAYOUT_MAX_ENTRIES) L.e[d][L.n[d]++] = e;
            if (!e.ghost) L.type[e.axis] = TY_V;
        }
    for (int d = 0; d < nl; d++) /* trailing ghosts cut nothing */
        while (L.n[d] && L.e[d][L.n[d] - 1].ghost) memset(&L.e[d][--L.n[d]], 0, sizeof(Entry));
    return L;
}

/* ---- module boundaries ---- */
/* A layout as people read it: "[B/dp, S/tp, D]", and sums that are pending. */
static const char *place_words(const Lower *l, int val, const Layout *L, const char *const *names) {
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
/* A module's boundary: which label speaks of it, where the value is wanted; `dtensor`: the value is
 * one of PyTorch's DTensors, which knows how it lies. */
typedef struct {
    int module;
    UseKind kind;
    const RawSpec *label, *want;
    bool dtensor;
} Boundary;
static bool says_nothing(const RawSpec *s) {
    return !s || !s->set || (!s->mapping && (s->bare.kind == RP_NONE || s->bare.kind == RP_LOCAL));
}
/* Do label and what is wanted speak of one placement? Then PyTorch moves no DTensor. */
static bool asks_no_move(const Lower *l, const Boundary *b, int v) {
    const Val *x = &l->p->val[v];
    Layout label, want;
    if (says_nothing(b->label) || says_nothing(b->want)) return true;
    return assign_target(l->a, &(Target){b->module, x->tensor, b->label, b->kind, &x->L}, &label,
                         NULL) &&
           assign_target(l->a, &(Target){b->module, x->tensor, b->want, b->kind, &x->L}, &want,
                         NULL) &&
           assign_label_holds(l->a, &label, &want);
}
static const char *instead(const Lower *l, const Boundary *b, int v) {
    if (!b->dtensor) return NULL;
    if (!asks_no_move(l, b, v)) return "and moves it from there";
    return l->a->use[b->module].prepares ? "and moves nothing here" : "and its op moves it";
}
/* Holds a label against how the value lies; under trust: declared the label is believed. */
static int label(Lower *l, const Boundary *b, int v) {
    if (says_nothing(b->label)) return v;
    const char *names[MESH_MAX_AXES] = {0};
    Layout want;
    const Val *x = &l->p->val[v];
    const ModuleUse *u = &l->a->use[b->module];
    if (!assign_target(l->a, &(Target){b->module, x->tensor, b->label, b->kind, &x->L}, &want,
                       names))
        return v;
    if (assign_label_holds(l->a, &x->L, &want) || (b->dtensor && u->relays)) return v;
    if (!l->declared || b->dtensor || u->label_raises) {
        mislabel_add(&l->mislabels, l->arena,
                     (Mislabel){.module = b->module,
                                .tensor = x->tensor,
                                .input = b->kind == USE_INPUT,
                                .own = b->label->loc.file,
                                .instead = instead(l, b, v),
                                .loc = b->label->loc.file ? b->label->loc : u->loc,
                                .want = want,
                                .have = x->L,
                                .want_text = place_words(l, v, &want, names),
                                .have_text = place_words(l, v, &x->L, NULL)});
        return v;
    }
    bool idle = b->kind == USE_INPUT ? u->idle_in : u->idle_out;
    if (idle && asks_no_move(l, b, v)) return v; /* a DTensor by that label, and plain again */
    Reason r = {.text = "the plan says that it lies so",
                .loc = u->loc,
                .names = names,
                .output = true,
                .asked = true,
                .module = b->module,
                .scope = -1,
                .pass = PHASE_FORWARD};
    Move claim = {.from = x->L, .to = want, .kind = MOVE_ID};
    return single_move(l, v, &claim, &r, true);
}
static int enter_module(Lower *l, int module, int arg, int v) {
    const ModuleUse *u = &l->a->use[module];
    const Style *s = u->style;
    if (!s) return v;
    const RawSpec *need =
        s->desired_input.set && arg < s->desired_input.n ? &s->desired_input.arg[arg] : NULL;
    Boundary b = {module, USE_INPUT, s->input.set && arg < s->input.n ? &s->input.arg[arg] : NULL,
                  need, u->dtensor_in >> arg & 1};
    v = label(l, &b, v);
    if (asks_no_move(l, &b, v) && (u->idle_in || (b.dtensor && u->prepares))) return v;
    if (need && need->set) {
        const char *names[MESH_MAX_AXES] = {0};
        Layout want;
        const Val *x = &l->p->val[v];
        if (!assign_target(l->a, &(Target){module, x->tensor, need, USE_INPUT, &x->L}, &want,
                           names))
            return v;
        Reason r = {.text = why_input(l->p, module, v),
                    .loc = u->loc,
                    .names = names,
                    .asked = true,
                    .output = true,
                    .module = module,
                    .scope = u->per_module ? module : -1,
                    .pass = PHASE_FORWARD};
        v = move_to(l, v, &want, &r);
    }
    return v;
}
/* The tensor as a node inside `module` reads it: through the declared inputs of all enclosing
 * modules, outermost first. */
static int read_through(Lower *l, int module, int tensor) {
    const Graph *g = l->p->graph;
    int chain[16], n = 0;
    for (int m = module; m >= 0 && n < 16; m = g->module[m].parent) chain[n++] = m;
    int v = l->p->env[tensor];
    while (n-- > 0) {
        const GModule *m = &g->module[chain[n]];
        for (int i = 0; i < m->n_input; i++) {
            if (m->input[i] != tensor) continue;
            int *memo = &l->scope[chain[n] * 4 + i];
            if (*memo < 0) *memo = enter_module(l, chain[n], i, v);
            v = *memo;
            break;
        }
    }
    return v;
}
static void mark_declared(Lower *l, int tensor) { l->declared_p[tensor] = true; }
/* Does the local result of a module go on as what it is? A plain shard does, into the next local
 * op; a plain share of a sum does if an enclosing module, whose result it is too, says how it lies.
 * Else it is taken for the whole. */
static bool goes_on(const Lower *l, int module, int tensor) {
    const Graph *g = l->p->graph;
    const AxisList *axes = &l->a->use[module].axes;
    bool on = false;
    for (int i = 0; i < axes->n; i++)
        on |= layout_where(&l->p->val[l->p->env[tensor]].L, axes->a[i]) >= 0;
    for (int m = g->module[module].parent; m >= 0; m = g->module[m].parent)
        on |= g->module[m].output == tensor && l->a->use[m].style &&
              l->a->use[m].style->desired_output.set;
    return on;
}
/* What a module hands out is all that others get of it: a part that was gathered is not there any
 * more as it was before, who wants it cut again has to cut it. */
static void forget_way(Lower *l, int v) {
    Val *x = &l->p->val[v];
    x->root = v;
    *cache_slot(l, (CopyKey){v, -1, false}, &x->L) = v;
}
static void leave_module(Lower *l, int module, int tensor) {
    const ModuleUse *u = &l->a->use[module];
    const Style *s = u->style;
    Program *p = l->p;
    if (!s) return;
    const RawList *move = s->desired_output.set ? &s->desired_output : &s->output;
    if (!move->set || !move->n || !move->arg[0].set) return;
    if (s->desired_output.set && s->output.set && s->output.n) {
        Boundary b = {module, USE_OUTPUT, &s->output.arg[0], &move->arg[0], u->dtensor_out};
        p->env[tensor] = label(l, &b, p->env[tensor]);
        if ((b.dtensor || u->idle_out) && asks_no_move(l, &b, p->env[tensor])) return;
    }
    const RawSpec *spec = &move->arg[0];
    if (!spec->mapping && spec->bare.kind == RP_LOCAL) { /* left as it is and taken for replicate */
        mark_declared(l, tensor);
        RawSpec repl = *spec;
        repl.bare.kind = RP_REPLICATE;
        if (l->declared && !goes_on(l, module, tensor))
            p->env[tensor] =
                label(l, &(Boundary){module, USE_OUTPUT, &repl, NULL, false}, p->env[tensor]);
        return;
    }
    const char *names[MESH_MAX_AXES] = {0};
    Layout want;
    if (!assign_target(l->a, &(Target){module, tensor, spec, USE_OUTPUT, &p->val[p->env[tensor]].L},
                       &want, names))
        return;
    if (!spec->mapping && spec->bare.kind == RP_PARTIAL) mark_declared(l, tensor);
    Reason r = {.text = why_output(p, module, p->env[tensor], &want),
                .loc = u->loc,
                .names = names,
                .asked = true,
                .output = true,
                .module = module,
                .scope = -1,
                .pass = PHASE_FORWARD};
    int left = move_to(l, p->env[tensor], &want, &r);
    if (left != p->env[tensor]) forget_way(l, left);
    p->env[tensor] = left;
}

/* ---- nodes ---- */
static void check_pending(Lower *l, const GNode *n, int v, const Layout *want) {
    const Program *p = l->p;
    const Val *x = &p->val[v];
    if (l->declared || !l->declared_p[x->tensor]) return;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->mesh->axis[a].size > 1 && x->L.type[a] == TY_P && want->type[a] != TY_P) {
            int m = p->graph->t[x->tensor].module;
            diag_error(l->d, "E0403", m >= 0 ? l->a->use[m].loc : diag_nowhere,
                       "let the module reduce its output (`output: replicate` or `shard(1)`)",
                       "%s is left as a partial sum over %s, and %s is not linear in it",
                       p->graph->t[x->tensor].name, p->mesh->axis[a].name, n->label);
            l->declared_p[x->tensor] = false; /* once is enough */
            return;
        }
}
static void node_names(const Lower *l, const GNode *n, const int *in, const Layout *L,
                       const char **names) {
    for (int x = 0; x < l->p->mesh->naxes; x++) {
        if (layout_where(L, x) < 0) continue;
        for (int params = 1; params >= 0 && !names[x]; params--)
            for (int i = 0; i < n->nin && !names[x]; i++)
                if ((l->p->val[in[i]].kind == KIND_PARAM) == params &&
                    layout_where(&l->p->val[in[i]].L, x) >= 0)
                    names[x] = l->p->val[in[i]].group[x];
    }
}
/* Is every sum that is reduced on the way to `want` one that the declared output `goal` wants
 * reduced too? */
static bool reduces(const Program *p, const Val *v, const Layout *want, const Layout *goal) {
    bool any = false;
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (v->L.type[x] != TY_P || want->type[x] == TY_P) continue;
        if (goal->type[x] == TY_P) return false;
        any = true;
    }
    return any;
}
/* Brings one operand of a node to where the strategies want it. */
static int reach(Lower *l, const GNode *n, int in, const Layout *want, const Layout *goal,
                 Phase pass) {
    Program *p = l->p;
    const GTensor *t = &p->graph->t[p->val[in].tensor];
    const ModuleUse *u = n->module >= 0 ? &l->a->use[n->module] : NULL;
    bool param = t->kind == KIND_PARAM, asked = false;
    bool dtensor = l->a->dtensor_op && l->a->dtensor_op[n->id] && !param;
    if (!dtensor) check_pending(l, n, in, want);
    Reason r = {.module = n->module,
                .scope = u && u->per_module ? n->module : -1,
                .pass = param ? PHASE_PARAMETERS : pass};
    r.text = why_operand(p, n, in, want, &asked);
    if (goal && reduces(p, &p->val[in], want,
                        goal)) { /* the style's output asks for it, only earlier: before the bias */
        r.text = why_output(p, n->module, in, want);
        asked = true;
    }
    /* between two ops of one module the module's style is what asks, if it owns what happens there:
     * loss_parallel the three sums of its loss; a style that only prepares inputs, that cuts
     * plain tensors or that says nothing of the result asks for nothing */
    bool inside = u && u->style && u->style->sums && result_of(u->style) &&
                  t->kind == KIND_ACTIVATION && t->module == n->module;
    r.asked = asked || inside || dtensor; /* PyTorch's op brings DTensors together by itself */
    /* rows change ranks because a style puts experts there */
    if (t->listed && u && u->style) {
        r.asked = true;
        r.text = "tokens go to the ranks of their experts";
    }
    if (u) r.loc = u->loc;
    if (!param) return move_to(l, in, want, &r);
    in = move_undeclared(l, in, want, &r);
    if (!strcmp(
            l->a->plan->data_parallel.grad_order,
            "tp_first")) { /* whole first, then R: the sums over R's axes come first in backward */
        Layout whole = *want;
        for (int x = 0; x < p->mesh->naxes; x++)
            if (whole.type[x] == TY_R && p->val[in].L.type[x] == TY_I)
                whole.type[x] = TY_I; /* what is cut at rest is gathered to R */
        in = move_to(l, in, &whole, &r);
    }
    return move_to(l, in, want, &r);
}
/* Rows go back to the ranks of their tokens: what cuts those cuts them again. */
static void go_home(Lower *l, const GNode *n, Phase pass) {
    Program *p = l->p;
    if (!n->home) return;
    const Layout *home = &p->val[p->first[n->home - 1]].L, *now = &p->val[p->env[n->out]].L;
    const GTensor *t = &p->graph->t[n->out];
    Layout want = *now;
    for (int x = 0; x < p->mesh->naxes; x++)
        if (layout_where(home, x) >= 0) layout_set_type(&want, x, TY_I);
    for (int d = 0; d < t->listed; d++) {
        if (!home->n[d]) continue;
        want.n[d] = home->n[d];
        memcpy(want.e[d], home->e[d], sizeof want.e[d]);
        for (int k = 0; k < home->n[d]; k++)
            if (!home->e[d][k].ghost) want.type[home->e[d][k].axis] = TY_V;
    }
    Reason r = {.text = "the results go back to the ranks of their tokens",
                .loc = n->module >= 0 ? l->a->use[n->module].loc : diag_nowhere,
                .asked = true,
                .module = n->module,
                .scope = -1,
                .pass = pass};
    p->env[n->out] = move_to(l, p->env[n->out], &want, &r);
}
static void lower_node(Lower *l, const GNode *n) {
    Program *p = l->p;
    int in[RULE_MAX_IN];
    Strategy S[MESH_MAX_AXES];
    LetterCuts cuts;
    Phase pass = !strcmp(n->part ? n->part : "", "loss") ? PHASE_LOSS : PHASE_FORWARD;
    for (int i = 0; i < n->nin; i++)
        in[i] = p->graph->t[n->in[i]].kind == KIND_PARAM ? p->env[n->in[i]]
                                                         : read_through(l, n->module, n->in[i]);
    Layout declared;
    const Layout *goal = declared_output(l, n, in, &declared) ? &declared : NULL;
    for (int x = 0; x < p->mesh->naxes; x++) S[x] = choose(l, n, in, goal, x);
    letter_cuts(l, n, in, goal, S, &cuts);
    int moved[RULE_MAX_IN];
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[in[i]];
        Layout want = needed(l, n, S, &cuts, &(Slot){n->rule.in[i], n->rule.nl[i], v->diff, v});
        moved[i] = reach(l, n, in[i], &want, goal, pass);
    }
    bool diff = false;
    for (int i = 0; i < n->nin; i++) diff |= p->val[moved[i]].diff && !(n->op->nodiff >> i & 1);
    Layout L = needed(l, n, S, &cuts, &(Slot){n->rule.out, n->rule.nout, diff, NULL});
    const char *names[MESH_MAX_AXES] = {0};
    node_names(l, n, moved, &L, names);
    Val *out = new_val(p, n->out, &L);
    out->diff = diff;
    memcpy(out->group, names, sizeof names);
    Step *s = new_step(p, ST_OP, pass);
    s->node = n->id;
    s->nin = n->nin;
    memcpy(s->in, moved, sizeof moved);
    s->out = out->id;
    if (n->rule.listed[RULE_MAX_IN]) out->list = n->op->rows ? out->id : program_list(p, s);
    s->module = n->module;
    s->why = n->label;
    if (n->module >= 0) s->loc = l->a->use[n->module].loc;
    out->step = s->id;
    p->env[n->out] = p->first[n->out] = out->id;
    *cache_slot(l, (CopyKey){out->root, -1, false}, &L) = out->id;
    go_home(l, n, pass);
    for (int m = n->module; m >= 0; m = p->graph->module[m].parent) /* inner declarations first */
        if (p->graph->module[m].output == n->out) leave_module(l, m, n->out);
}

static void lower_input(Lower *l, int t) {
    Program *p = l->p;
    const GTensor *x = &p->graph->t[t];
    Val *v = new_val(p, t, &l->a->rest[t]);
    memcpy(v->group, l->a->group[t], sizeof v->group);
    p->env[t] = p->first[t] = v->id;
    *cache_slot(l, (CopyKey){v->root, -1, false}, &v->L) = v->id;
    /* holds one layout and means another: a contiguous cut of packed blocks, a bias: local */
    if (l->a->claimed[t]) {
        Reason r = {.text = "the plan takes it for what it is not",
                    .module = x->module,
                    .scope = -1,
                    .pass = PHASE_PARAMETERS};
        if (l->a->line[t] >= 0) r.loc = l->a->plan->lines[l->a->line[t]].loc;
        Move claim = {.from = v->L, .to = l->a->compute[t], .kind = MOVE_ID};
        p->env[t] = single_move(l, v->id, &claim, &r, true);
    }
}
/* A loss over a model's output that is left pending is a part on every rank, and no line asks for
 * the sum of those: it is told, or under trust: declared not made. Silent stay the sums over cuts
 * of tokens (data parallelism) and of what the loss is taken of (its own contraction), and those of
 * a DTensor, which knows that it is pending. */
static void finish_pending_output(Lower *l) {
    Program *p = l->p;
    const Graph *g = p->graph;
    int loss = g->t[g->loss].module, x = loss >= 0 ? g->module[loss].input[0] : -1;
    if (x < 0 || p->env[x] < 0 || (l->a->dtensor && l->a->dtensor[x])) return;
    Layout want = p->val[p->env[g->loss]].L;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (want.type[a] == TY_P && p->val[p->env[x]].L.type[a] == TY_P) want.type[a] = TY_I;
    Reason r = {.text = "the model's output is a partial sum, so is its loss",
                .module = -1,
                .scope = -1,
                .pass = PHASE_LOSS};
    p->env[g->loss] = move_to(l, p->env[g->loss], &want, &r);
}
/* What leaves the program must be complete: the loss ends as I, a forward output is reduced unless
 * declared otherwise. */
static void finish(Lower *l) {
    Program *p = l->p;
    const Graph *g = p->graph;
    int t = g->loss >= 0 ? g->loss : g->output;
    if (t < 0) return;
    if (g->loss >= 0) finish_pending_output(l);
    Layout want = p->val[p->env[t]].L;
    for (int x = 0; x < p->mesh->naxes; x++) {
        if (want.type[x] == TY_P || want.type[x] == TY_M ||
            (g->loss >= 0 && want.type[x] == TY_R)) {
            want.type[x] = TY_I;
        }
    }
    if (g->loss < 0 && l->declared_p[t]) return;
    Reason r = {.text = g->loss >= 0 ? "the loss is the sum over all ranks"
                                     : "the output is a partial sum",
                .asked = g->loss >= 0,
                .output = g->loss >= 0,
                .module = -1,
                .scope = -1,
                .pass = g->loss >= 0 ? PHASE_LOSS : PHASE_FORWARD};
    p->env[t] = move_to(l, p->env[t], &want, &r);
    if (g->loss >= 0) p->loss = p->env[t];
}

static void open_lower(Lower *l, Program *p, const Assign *a) {
    const Graph *g = p->graph;
    *l = (Lower){.p = p,
                 .a = a,
                 .arena = p->arena,
                 .d = a->d,
                 .declared = a->plan->trust_declared,
                 .backward = a->plan->pass != PASS_FORWARD && g->loss >= 0};
    l->scope = ARENA_ARRAY(p->arena, int, 4 * g->nm + 4);
    l->declared_p = ARENA_ARRAY(p->arena, bool, g->nt + 1);
    for (int i = 0; i < 4 * g->nm; i++) l->scope[i] = -1;
}
Program *lower(Arena *arena, const Assign *a) {
    Program *p = ARENA_NEW(arena, Program);
    const Graph *g = &a->model->g;
    *p = (Program){.arena = arena, .mesh = a->mesh, .graph = g, .assign = a, .loss = -1};
    p->env = ARENA_ARRAY(arena, int, g->nt + 1);
    p->first = ARENA_ARRAY(arena, int, g->nt + 1);
    p->grad = ARENA_ARRAY(arena, int, g->nt + 1);
    Lower l;
    open_lower(&l, p, a);
    for (int t = 0; t < g->nt; t++) p->env[t] = p->first[t] = p->grad[t] = -1;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].kind != KIND_ACTIVATION) lower_input(&l, t);
    int nn = g->nn_model ? g->nn_model : g->nn;
    for (int n = 0; n < nn; n++) lower_node(&l, &g->node[n]);
    finish(&l);
    mislabels_report(p, &l.mislabels, l.d);
    p->n_forward = p->ns;
    return p;
}
/* An element-wise op on what a rank holds at rest: all operands lie like the first (flattened cuts
 * included), a scalar is complete, and a sum over everything is pending over whatever cuts the
 * operand. */
static void lower_at_rest(Lower *l, const GNode *n) {
    Program *p = l->p;
    int in[RULE_MAX_IN] = {0};
    const Layout *like = &p->val[p->env[n->in[0]]].L;
    Layout first = *like, scalar = layout_whole(p->mesh, 0, TY_I), out = first;
    Reason r = {.text = "the norm is over all gradients",
                .asked = true,
                .output = true,
                .module = -1,
                .scope = -1,
                .pass = PHASE_OPTIMIZER};
    for (int i = 0; i < n->nin; i++)
        in[i] = move_to(l, p->env[n->in[i]], n->rule.nl[i] ? &first : &scalar, &r);
    if (!n->rule.nout) {
        out = scalar;
        for (int x = 0; x < p->mesh->naxes; x++)
            if (n->rule.nl[0] && first.type[x] == TY_V) out.type[x] = TY_P;
    }
    Val *v = new_val(p, n->out, &out);
    v->diff = false;
    memcpy(v->group, p->val[in[0]].group, sizeof v->group);
    Step *s = new_step(p, ST_OP, PHASE_OPTIMIZER);
    s->node = n->id;
    s->nin = n->nin;
    memcpy(s->in, in, sizeof in);
    s->out = v->id;
    s->why = n->label;
    v->step = s->id;
    p->env[n->out] = p->first[n->out] = v->id;
}
void lower_optimizer(Program *p) {
    const Graph *g = p->graph;
    if (!g->nn_model) return;
    Lower l;
    open_lower(&l, p, p->assign);
    for (int t = 0; t < g->nt; t++) {
        if (g->t[t].kind == KIND_PARAM) p->env[t] = p->first[t];
        if (g->t[t].grad_of) p->env[t] = p->first[t] = p->grad[g->t[t].grad_of - 1];
    }
    for (int n = g->nn_model; n < g->nn; n++) lower_at_rest(&l, &g->node[n]);
}
