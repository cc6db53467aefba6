/* Auxiliary losses of routers as nodes: load balance, coef E / (k T^2) sum_e count_e sum_t p_te
 * (Switch Transformers, Fedus et al. 2021, eq. 4; GShard), and z, coef mean_t logsumexp(z_t)^2
 * (ST-MoE, Zoph et al. 2022, eq. 5). A count is of all rows that tokens ask for, dropped ones
 * included. Each sum over tokens is a contraction, so what ranks exchange follows: the counts,
 * which have no gradient, are added up first, and each rank's term is then a share of the loss.
 * With micro-batches the balance is each one's own, of its own tokens, and their mean is the loss,
 * as frameworks accumulate it; so the unsharded model, which has the whole batch, counts and sums
 * by sequence, and each sequence has the counts of its micro-batch.
 * Refuses the mean over layers before the product (Hugging Face's): it is another loss. */
#include "model/build.h"
#include <string.h>

static const NodeRow balance_rows[] = {
    {"moe.router_probs",
     "softmax",
     "bte!->bte",
     {"moe.router_logits"},
     "b t e",
     "moe",
     .part = "moe",
     .lack = FEATURE_SIGMOID},
    {"moe.router_probs",
     "normalise",
     "bte!->bte",
     {"moe.router_scores"},
     "b t e",
     "moe",
     .part = "moe",
     .need = FEATURE_SIGMOID},
    {"moe.counts",
     "einsum",
     "[ebt]->e",
     {"moe.list"},
     "e",
     "moe",
     .part = "moe",
     .label = "rows per expert"},
    {"moe.prob_sums",
     "einsum",
     "bte->e",
     {"moe.router_probs"},
     "e",
     "moe",
     .part = "moe",
     .label = "sum over tokens"},
    {"moe.balance",
     "einsum",
     "e,e->",
     {"moe.counts", "moe.prob_sums"},
     "",
     "moe",
     .part = "moe",
     .label = "load balance"},
};
/* The last three of these for a batch of several micro-batches: c_be of the micro-batch that
 * sequence b is in. The same values by name and number, so that both models have the same graph. */
static const NodeRow parted_rows[] = {
    {"moe.counts",
     "counts",
     "[eb!t!]->be",
     {"moe.list"},
     "b e",
     "moe",
     .part = "moe",
     .label = "rows per expert"},
    {"moe.prob_sums",
     "einsum",
     "bte->be",
     {"moe.router_probs"},
     "b e",
     "moe",
     .part = "moe",
     .label = "sum over tokens"},
    {"moe.balance",
     "einsum",
     "be,be->",
     {"moe.counts", "moe.prob_sums"},
     "",
     "moe",
     .part = "moe",
     .label = "load balance"},
};
static const NodeRow z_rows[] = {
    {"moe.logsumexp", "logsumexp", "bte!->bt", {"moe.router_logits"}, "b t", "moe", .part = "moe"},
    {"moe.z_squares",
     "einsum",
     "bt,bt->",
     {"moe.logsumexp", "moe.logsumexp"},
     "",
     "moe",
     .part = "moe",
     .label = "sum of squares"},
};
enum {
    N_BALANCE = sizeof balance_rows / sizeof *balance_rows,
    N_PARTED = sizeof parted_rows / sizeof *parted_rows,
    N_Z = sizeof z_rows / sizeof *z_rows
};

/* `out` = factor times `in`, both scalars of the layer; -1 on an error. */
static int add_scaled(Build *b, RowPlace at, const char *out, double factor, const char *in) {
    NodeRow scale = {.out = out,
                     .op = "scale",
                     .rule = "->",
                     .in = {in},
                     .shape = "",
                     .module = "moe",
                     .part = "moe"};
    int t = b->failed ? -1 : build_row(b, &scale, at);
    if (t >= 0) b->g->node[b->g->t[t].producer].at.factor = factor;
    return t;
}
/* The rows, the mean that the last of them is the sum of, and the mean times the plan's factor, a
 * term of the loss. */
typedef struct {
    const NodeRow *rows;
    int n;
    const char *mean, *term;
    double share, factor;
} Term;
static void add_term(Build *b, RowPlace at, const Term *x) {
    for (int i = 0; i < x->n && !b->failed; i++) {
        int t = build_row(b, &x->rows[i], at);
        if (t >= 0) b->g->node[b->g->t[t].producer].at.parts = b->p->microbatches;
    }
    add_scaled(b, at, x->mean, x->share, x->rows[x->n - 1].out);
    int t = add_scaled(b, at, x->term, x->factor, x->mean);
    if (t >= 0) *ARENA_PUSH(b->a, b->term, b->n_terms, b->cap_terms) = t;
}
/* The balance's rows; of the whole batch, where it is cut in micro-batches, the other ones. */
static void balance_of(bool parted, NodeRow *rows) {
    memcpy(rows, balance_rows, sizeof balance_rows);
    if (parted) memcpy(rows + N_BALANCE - N_PARTED, parted_rows, sizeof parted_rows);
}
void build_balance(Build *b, RowPlace at) {
    const Plan *p = b->p;
    const ModelDims *m = b->m;
    int64_t batch = p->whole_batch > 0 ? p->whole_batch : m->B;
    bool parted = p->microbatches > 1 && batch == m->B;
    double parts = (double)p->microbatches, all = (double)batch * (double)m->S,
           tokens = all / parts;
    NodeRow rows[N_BALANCE];
    balance_of(parted, rows);
    /* E sum_e f_e P_e, as Hugging Face reports it of a layer; the papers' has 1/k */
    Term balance = {.rows = rows,
                    .n = N_BALANCE,
                    .mean = "moe.aux_loss",
                    .term = "moe.aux_term",
                    .share = (double)m->E / (tokens * tokens) / (parted ? parts : 1),
                    .factor = p->moe.aux_coef / (double)m->top_k / (parted ? 1 : parts)};
    Term z = {.rows = z_rows,
              .n = N_Z,
              .mean = "moe.z_loss",
              .term = "moe.z_term",
              .share = 1 / all,
              .factor = p->moe.z_coef};
    if (m->balanced) add_term(b, at, &balance);
    if (p->moe.z_coef > 0) add_term(b, at, &z);
}

/* a + b, both scalars. */
static int add_scalars(Build *b, const char *out, const char *x, const char *y) {
    NodeRow row = {.out = out,
                   .op = "add",
                   .rule = ",->",
                   .in = {x, y},
                   .shape = "",
                   .module = "loss",
                   .part = "loss"};
    return b->failed ? -1 : build_row(b, &row, (RowPlace){"", "", -1, -1, NULL});
}
int build_terms(Build *b, int loss) {
    if (!b->n_terms || loss < 0) return loss;
    const char *sum = b->g->t[b->term[0]].name;
    for (int i = 1; i < b->n_terms; i++) {
        const char *out = arena_printf(b->a, "loss.terms_%d", i + 1);
        if (add_scalars(b, out, sum, b->g->t[b->term[i]].name) < 0) return -1;
        sum = out;
    }
    return add_scalars(b, "loss_total", b->g->t[loss].name, sum);
}
