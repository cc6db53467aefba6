/* Attention of a ring as nodes: a part for each block of keys, in the order in which they come by,
 * and merges in between. The row of the whole is rewritten: its result keeps its name, module and
 * operands, so nothing else of a graph changes. Refuses to know who holds which block. */
#include "model/build.h"
#include <string.h>

bool model_ring(Diags *d, const Plan *p, const Mesh *mesh, int64_t *n) {
    AxisList ring = {0};
    const char *axis = p->context_parallel.ring;
    *n = 1;
    if (!mesh || !axis || !mesh_product(mesh, axis, &ring)) return true;
    *n = mesh_size(mesh, &ring);
    if (ring.n > 1)
        diag_error(d, "E0214", p->context_parallel.loc,
                   "mode: usp, with one axis for `ring` and the other for `ulysses`",
                   "a ring goes round one axis, and '%s' is %d", axis, ring.n);
    else if (*n > MODEL_MAX_RING)
        diag_error(d, "E0701", p->context_parallel.loc, "mode: usp, so that the ring is shorter",
                   "a ring of %lld ranks; the limit is %d", (long long)*n, MODEL_MAX_RING);
    return ring.n == 1 && *n <= MODEL_MAX_RING;
}

/* "btkgx!,bs!kx!,bs!kx!->btkgx" with s tied to t and a result one wider, p: "bs~t!", "btkgp". */
static const char *part_rule(Build *b, const char *rule) {
    Str s = str_new(b->a);
    for (const char *c = rule; *c; c++) {
        if (c[0] == 's' && c[1] == '!') str_add(&s, "s~t");
        else if (!c[1]) str_add(&s, "p");
        else str_addf(&s, "%c", *c);
    }
    return s.s;
}
/* The same text with another last letter: "b t kgx" and 'p'. */
static const char *ending_in(Build *b, const char *text, char last) {
    char *s = arena_strdup(b->a, text);
    s[strlen(s) - 1] = last;
    return s;
}
static int add(Build *b, const NodeRow *row, RowPlace at) {
    return b->failed ? -1 : build_row(b, row, at);
}
static GNode *maker(Build *b, int tensor) { return &b->g->node[b->g->t[tensor].producer]; }

static bool is_block(const Build *b, const char *name) {
    for (int i = 0; i < b->n_block; i++)
        if (!strcmp(b->block[i]->out, name)) return true;
    return false;
}
/* The rows that make keys and values of the latent, once more for the block that has come by j
 * hops; what they read of each other is of that block too. */
static void block_again(Build *b, RowPlace at, int j) {
    for (int i = 0; i < b->n_block && !b->failed; i++) {
        NodeRow row = *b->block[i];
        row.out = arena_printf(b->a, "%s.%d", row.out, j);
        row.kind = NULL; /* its module is there */
        for (int k = 0; k < RULE_OPERANDS && row.in[k]; k++)
            if (is_block(b, row.in[k])) row.in[k] = arena_printf(b->a, "%s.%d", row.in[k], j);
        int t = add(b, &row, at);
        if (t < 0) return;
        GNode *n = maker(b, t);
        n->block = true;
        n->hop = j;
        n->again = 1 + build_value(b, arena_printf(b->a, "%s%s", at.values, b->block[i]->out));
    }
}
static bool is_part(const Op *op) { return op->mixes && !op->part; }
/* `row` may be a part itself, of all keys: then the log of its sum stays with the result. */
static int ring_of(Build *b, const NodeRow *row, RowPlace at) {
    const Op *op = op_find(row->op);
    bool with_lse = is_part(op);
    if (with_lse) op = op_of_part(op);
    char last = row->shape[strlen(row->shape) - 1];
    LetterSize width = b->letter[last - 'a'];
    bool final =
        b->p->context_parallel.backward && strcmp(b->p->context_parallel.backward, "chain") != 0;
    const char *whole = ending_in(b, strchr(row->rule, '>') + 1, 'p');
    if (!with_lse)
        b->letter['p' - 'a'] =
            (LetterSize){arena_printf(b->a, "(%s+1)", width.sym), width.size + 1, width.role};
    NodeRow part = *row, merge = {.op = final ? op->join->name : op->merge->name,
                                  .rule = arena_printf(b->a, "%s!,%s!->%s", whole, whole, whole),
                                  .module = row->module,
                                  .part = row->part};
    part.op = op->part->name;
    part.rule = part_rule(b, row->rule);
    part.shape = merge.shape = ending_in(b, row->shape, 'p');
    int first = b->g->nn, sum = -1;
    for (int64_t j = 0; j < b->ring && !b->failed; j++) {
        if (j && b->n_block) block_again(b, at, (int)j);
        for (int k = 0; k < RULE_OPERANDS && j && row->in[k]; k++)
            if (is_block(b, row->in[k]))
                part.in[k] = arena_printf(b->a, "%s.%lld", row->in[k], (long long)j);
        part.out = arena_printf(b->a, "attn_part.%lld", (long long)j);
        int t = add(b, &part, at);
        if (t < 0) return -1;
        maker(b, t)->hop = maker(b, t)->at.hop = (int)j;
        maker(b, t)->at.blocks = (int)b->ring;
        part.kind = NULL; /* its module is there */
        merge.in[0] = j > 1 ? merge.out : "attn_part.0";
        merge.in[1] = part.out;
        merge.out = with_lse && j + 1 == b->ring
                        ? row->out
                        : arena_printf(b->a, "attn_merge.%lld", (long long)j);
        sum = j ? add(b, &merge, at) : t;
    }
    for (int n = first; final && !b->failed && n < b->g->nn; n++)
        if (b->g->node[n].op == op->part) b->g->node[n].final = 1 + sum;
    if (with_lse) return sum;
    NodeRow out = {.out = row->out,
                   .op = "split",
                   .rule = arena_printf(b->a, "%s!->%s", whole, ending_in(b, whole, last)),
                   .in = {merge.out},
                   .shape = row->shape,
                   .module = row->module,
                   .part = row->part,
                   .label = "without lse"};
    int t = add(b, &out, at);
    if (t >= 0) b->g->module[b->g->node[first].module].output = t;
    return t;
}

int build_in_parts(Build *b, const NodeRow *row, RowPlace at) {
    if (b->ring > 1 && row->op) {
        const Op *op = op_find(row->op);
        bool there = build_there(row, build_features(b));
        if (there && op && (op->part || is_part(op))) return ring_of(b, row, at);
    }
    int t = build_row(b, row, at);
    if (t < 0 || !row->block || !b->p->context_parallel.latent) return t;
    maker(b, t)->block = true;
    b->block[b->n_block++] = row;
    return t;
}
