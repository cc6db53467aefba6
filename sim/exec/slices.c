/* An op in slices. See slices.h. */
#include "exec/slices.h"
#include "exec/opcall.h"

int slices_tensors(const Step *s, const OpCall *c) {
    return c->rule->nin + (s->kind == ST_ADJOINT ? 2 : 0);
}
Tensor *slices_tensor(OpCall *c, int k) {
    int nin = c->rule->nin;
    return k < nin ? &c->in[k] : k == nin ? &c->cot : &c->fout;
}
int slices_value(const Step *s, const OpCall *c, int k) {
    int nin = c->rule->nin;
    return k < nin ? opcall_operands(s)[k] : s->in[k == nin ? 0 : 1 + nin];
}
static int dim_of(const Slices *x, int k, char letter) {
    const Rule *r = x->call.rule;
    return k < r->nin ? rule_find(r, k, letter) : rule_find_out(r, letter);
}
int slices_dim(const Slices *x, int k) { return dim_of(x, k, x->letter); }

bool slices_ranges(const Exec *e, int val, int dim) {
    const Program *p = e->p;
    const Val *o = &p->val[val];
    const Store *store = exec_store(e, val);
    Arena *tmp = arena_new();
    bool all = true;
    for (int k = 0; k < store->n && all; k++) {
        int64_t rank = store->l[k].rank;
        Region has = region_at(p->mesh, &p->graph->t[o->tensor], &o->L, rank, tmp);
        all = !has.outer && has.d[dim].range;
    }
    arena_free(tmp);
    return all;
}
/* How many elements of operands have the letter, -1: it cannot be sliced. */
static int64_t weight_of(const Joint *j, const Step *s, Slices *x, int dim) {
    const DimIndex *out = &x->box.d[dim];
    int64_t weight = 0;
    if (!out->range || !slices_ranges(j->c->e, s->out, dim)) return -1;
    Arena *tmp = arena_new();
    for (int k = 0; k < slices_tensors(s, &x->call) && weight >= 0; k++) {
        int val = slices_value(s, &x->call, k), d = dim_of(x, k, x->letter);
        if (val < 0 || d < 0) continue;
        Region box = assemble_region(j->c->e, val, j->X, j->rank, tmp);
        bool alike = !box.outer && box.d[d].range && box.d[d].lo == out->lo && box.n[d] == out->n;
        weight = alike ? weight + tensor_count(slices_tensor(&x->call, k)) : -1;
    }
    arena_free(tmp);
    return weight;
}
/* May the step's op be cut at all? */
static bool may_be_cut(const Joint *j, const Step *s) {
    const Exec *e = j->c->e;
    const GNode *n = &e->p->graph->node[s->node];
    OpBoundEach each = s->kind == ST_ADJOINT ? BOUND_EACH : BOUND_EACH_FORWARD;
    return n->op->bound_each >= each && !e->far && e->dtype == DT_F32 && !rule_listed(&n->rule) &&
           !n->rule.tied && !exec_is_int(e, s->out) && e->p->val[s->out].list < 0;
}
bool slices_of(const Joint *j, const Step *s, Slices *x, Arena *tmp) {
    if (!may_be_cut(j, s)) return false;
    Joint sizes = *j;
    sizes.sizes = true;
    if (!joint_call(&sizes, s, &x->call, &x->box, tmp) || x->box.outer || x->call.in_int)
        return false;
    const OpCall *c = &x->call;
    int64_t result = tensor_count(&c->out), all = result, best = -1, at;
    for (int k = 0; k < slices_tensors(s, c); k++)
        all += slices_value(s, c, k) < 0 ? 0 : tensor_count(slices_tensor(&x->call, k));
    if (all <= j->c->piece) return false;
    const char *letters = s->kind == ST_ADJOINT ? c->rule->in[s->operand] : c->rule->out;
    uint32_t means = c->rule->whole | op_asks(c->op, c->rule, c->at);
    for (int d = 0; d < c->out.nd; d++) {
        x->letter = letters[d];
        if (means & RULE_BIT(letters[d]) || c->out.n[d] < 2) continue;
        if ((at = weight_of(j, s, x, d)) > best) best = at, x->dim = d;
    }
    if (best < 0) return false;
    x->letter = letters[x->dim];
    x->n = c->out.n[x->dim];
    enum { TILE = 64 }; /* columns that kernels take together */
    int64_t each = j->c->piece / ((best + result) / x->n + 1), slices;
    if (each < 1) each = 1;
    slices = (x->n + each - 1) / each;
    x->each = (x->n + slices - 1) / slices;
    if (x->each > TILE) x->each = (x->each + TILE - 1) / TILE * TILE;
    return x->each < x->n;
}

static void cut(Tensor *t, int dim, int64_t n) {
    if (dim < 0) return;
    t->n[dim] = n;
    tensor_pack(t);
}
static int64_t slice_size(const Slices *x, int64_t lo) {
    return x->n - lo < x->each ? x->n - lo : x->each;
}
OpCall slices_call(const Slices *x, const Step *s, int64_t lo, Region *box) {
    OpCall c = x->call;
    int64_t n = slice_size(x, lo);
    for (int k = 0; k < slices_tensors(s, &c); k++) cut(slices_tensor(&c, k), slices_dim(x, k), n);
    cut(&c.out, x->dim, n);
    c.local[x->letter - 'a'] = n;
    *box = x->box;
    box->d[x->dim].lo += lo;
    box->d[x->dim].n = box->n[x->dim] = n;
    return c;
}
Tensor slices_part(const Joint *j, const Slices *x, const Step *s, int k, int64_t lo) {
    const Exec *e = j->c->e;
    int val = slices_value(s, &x->call, k), dim = slices_dim(x, k);
    Arena *tmp = arena_new();
    Region box = assemble_region(e, val, j->X, j->rank, tmp);
    if (dim >= 0) {
        box.d[dim].lo += lo;
        box.d[dim].n = box.n[dim] = slice_size(x, lo);
    }
    Tensor t = assemble_box(e, val, j->X, j->rank, &box);
    arena_free(tmp);
    return t;
}
