/* Calls of kernels from steps. See opcall.h. */
#include "exec/opcall.h"
#include "exec/region.h"

const int *opcall_operands(const Step *s) { return s->kind == ST_ADJOINT ? s->in + 1 : s->in; }

static bool letter_size(OpCall *c, char ch, int64_t n, OpcallClash *clash) {
    int64_t *have = &c->local[ch - 'a'];
    if (*have >= 0 && *have != n) {
        if (!clash) return true;
        *clash = (OpcallClash){ch, *have, n};
        return false;
    }
    *have = n;
    return true;
}
/* Of letters that are no rows': those are only counted. */
static bool letter_sizes(OpCall *c, const char *letters, int nl, uint32_t listed, const Tensor *t,
                         OpcallClash *clash) {
    for (int d = 0; d < nl; d++) {
        if (listed & RULE_BIT(letters[d])) continue;
        if (!letter_size(c, letters[d], t->n[d], clash)) return false;
    }
    return true;
}
static bool operands(const OpcallSource *f, const Step *s, OpCall *c, OpcallClash *clash) {
    const Graph *g = f->p->graph;
    const GNode *n = &g->node[s->node];
    const int *in = opcall_operands(s);
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &g->t[n->in[i]];
        for (int d = 0; d < n->rule.nl[i]; d++) c->global[n->rule.in[i][d] - 'a'] = t->size[d];
        if (in[i] < 0) continue;
        c->in[i] = f->value(f, in[i]);
        c->in_int |= (uint32_t)t->is_int << i;
        if (!letter_sizes(c, n->rule.in[i], n->rule.nl[i], n->rule.listed[i], &c->in[i], clash))
            return false;
    }
    if (s->kind != ST_ADJOINT) return true;
    c->cot = f->value(f, s->in[0]);
    if (!letter_sizes(c, n->rule.out, n->rule.nout, n->rule.listed[RULE_MAX_IN], &c->cot, clash))
        return false;
    if (s->in[1 + n->nin] >= 0) c->fout = f->value(f, s->in[1 + n->nin]);
    return true;
}
/* The index list that the rows of the call follow, and the sizes of its letters. */
static void rows_of(const OpcallSource *f, const Step *s, OpCall *c) {
    int list = program_list(f->p, s);
    if (list < 0) return;
    const GTensor *t = &f->p->graph->t[f->p->val[list].tensor];
    for (int d = 0; d < t->nd; d++) {
        int64_t *have = &c->local[t->letter[d] - 'a'];
        Layout L = f->lies(f, list);
        c->global[t->letter[d] - 'a'] = t->size[d];
        if (*have < 0) *have = layout_dim_size(f->p->mesh, &L, d, t->size[d], f->rank);
    }
    if (list != s->out) {
        c->ids = f->value(f, list);
        c->rows = c->ids.n[0];
    }
    if (!c->op->rows) return;
    OpCall asked = f->dev && !f->sizes_only ? device_fetch(f->dev, c) : *c;
    if (f->sizes_only) asked.ids.p = NULL;
    c->rows = c->op->rows(&asked);
    if (f->dev && !f->sizes_only) device_fetched(f->dev, &asked);
}
/* After a planted mistake a rank may hold other rows than its list names: their kernels would read
 * what is not there. */
static bool rows_agree(const OpcallSource *f, const Step *s, const OpCall *c, OpcallClash *clash) {
    const GNode *n = &f->p->graph->node[s->node];
    const int *in = opcall_operands(s);
    int64_t rows = c->ids.nd ? c->ids.n[0] : c->rows; /* a list may be made of another one */
    if (!clash || program_list(f->p, s) < 0) return true;
    for (int i = 0; i <= n->nin; i++) {
        bool cot = i == n->nin;
        const Tensor *t = cot ? &c->cot : &c->in[i];
        bool read = cot ? s->kind == ST_ADJOINT : in[i] >= 0;
        if (!read || !n->rule.listed[cot ? RULE_MAX_IN : i] || t->n[0] == rows) continue;
        *clash = (OpcallClash){cot ? n->rule.out[0] : n->rule.in[i][0], rows, t->n[0]};
        return false;
    }
    return true;
}
bool opcall_build(const OpcallSource *f, const Step *s, OpCall *c, OpcallClash *clash) {
    const GNode *n = &f->p->graph->node[s->node];
    bool adj = s->kind == ST_ADJOINT;
    *c = (OpCall){.op = n->op,
                  .rule = &n->rule,
                  .at = &n->at,
                  .dtype = f->dtype,
                  .operand = s->operand,
                  .pool = f->pool};
    for (int k = 0; k < 26; k++) c->local[k] = c->global[k] = -1;
    if (!operands(f, s, c, clash)) return false;
    if (f->part && c->global['b' - 'a'] > 0) c->batch_from = f->part * c->global['b' - 'a'];
    rows_of(f, s, c);
    if (!rows_agree(f, s, c, clash)) return false;
    const char *letters = adj ? n->rule.in[s->operand] : n->rule.out;
    c->out.nd = adj ? n->rule.nl[s->operand] : n->rule.nout;
    const GTensor *t = &f->p->graph->t[f->p->val[s->out].tensor];
    uint32_t listed = n->rule.listed[adj ? s->operand : RULE_MAX_IN];
    for (int d = 0; d < c->out.nd; d++) {
        int64_t *have = &c->local[letters[d] - 'a'];
        if (*have < 0) { /* a letter that no operand has is as large as the layout says */
            Layout L = f->lies(f, s->out);
            *have = region_letters(f->p->mesh, t, &L, f->rank).n[d];
        }
        c->out.n[d] = !(listed & RULE_BIT(letters[d])) ? *have : d ? 1 : c->rows;
    }
    tensor_pack(&c->out);
    op_unread_sizes(c, n->nin);
    return true;
}

/* Index lists of the letters that the op asks for, as one value that has the letters lies. */
static void index_from(const OpcallSource *f, OpCall *c, const char *letters, int nl, int val,
                       Arena *arena) {
    if (val < 0 || !op_asks(c->op, c->rule, c->at)) return;
    Layout L = f->lies(f, val);
    const GTensor *t = &f->p->graph->t[f->p->val[val].tensor];
    for (int d = 0; d < nl; d++) {
        char ch = letters[d];
        if (!(op_asks(c->op, c->rule, c->at) & RULE_BIT(ch)) || c->index[ch - 'a'] || !L.n[d])
            continue;
        IndexList x = layout_index(f->p->mesh, &L, d, t->size[d], f->rank, arena);
        /* a false label may not fit: then positions are local */
        if (x.n == c->local[ch - 'a']) c->index[ch - 'a'] = x.at;
    }
}
/* From the operands; in an adjoint from the cotangent and the result too, which have the letters of
 * what is not read. */
void opcall_positions(const OpcallSource *f, const Step *s, OpCall *c, Arena *arena) {
    const GNode *n = &f->p->graph->node[s->node];
    const int *in = opcall_operands(s);
    for (int i = 0; i < n->nin; i++) index_from(f, c, n->rule.in[i], n->rule.nl[i], in[i], arena);
    if (s->kind != ST_ADJOINT) return;
    index_from(f, c, n->rule.out, n->rule.nout, s->in[0], arena);
    index_from(f, c, n->rule.in[s->operand], n->rule.nl[s->operand], s->out, arena);
}
