/* Losses as nodes. Cross entropy is four ops and a weighted sum, so that a vocabulary cut over
 * ranks needs no code of its own: max, sum of exp and the target's logit are contractions of v.
 * Weights are mask / N: sums everywhere, no divisor. Variance is a mean, a difference and a sum of
 * squares: each sum over all elements may be pending. The mean squared error is the same without
 * the mean. */
#include "model/build.h"
#include "plan/lists.h"
#include <string.h>

/* The negative log likelihood of "target": that of the label, or the mean of all ids. */
#define NLL(name, target)                                                                          \
    {                                                                                              \
        name, "nll", "bt,bt,bt,bt->bt", {"loss.sumexp", "loss.max", target, "labels"}, "b t",      \
            "loss", NULL, NULL, .part = "loss", .at = AT_IGNORE                                    \
    }
static const NodeRow row_max = {"loss.max", "rowmax", "btv->bt",      {"@x"},
                                "b t",      "loss",   .part = "loss", .at = AT_VOCAB};
static const NodeRow row_sumexp = {"loss.sumexp", "sumexp", "btv,bt->bt",   {"@x", "loss.max"},
                                   "b t",         "loss",   .part = "loss", .at = AT_VOCAB};
static const NodeRow row_target = {"loss.target", "pick", "btv,bt->bt",   {"@x", "labels"},
                                   "b t",         "loss", .part = "loss", .at = AT_IGNORE};
static const NodeRow row_nll = NLL("loss_per_token", "loss.target");
static const NodeRow row_mean = {
    "loss_mean", "einsum", "bt,bt->",      {"loss_per_token", "loss_weights"},
    "",          "loss",   .part = "loss", .label = "weighted sum"};
/* With label smoothing a, instead of row_nll: (1 - a) times that of the label, a times that of the
 * mean of all ids. */
static const NodeRow row_label = NLL("loss.label", "loss.target");
static const NodeRow row_logit_sum = {
    "loss.logit_sum", "rowsum", "btv->bt", {"@x"}, "b t", "loss", .part = "loss", .at = AT_VOCAB};
static const NodeRow row_uniform = NLL("loss.uniform", "loss.logit_mean");
static const NodeRow row_smooth = {
    "loss_per_token", "add",         "bt,bt->bt", {"loss.label_share", "loss.uniform_share"}, "b t",
    "loss",           .part = "loss"};

static int add_row(Build *b, const NodeRow *row) {
    return b->failed ? -1 : build_row(b, row, (RowPlace){"", "", -1, -1, NULL});
}

/* `out` = factor times `in`, of the shape "b t", or whatever `shape` and `letters` say. */
static int add_scale(Build *b, const char *out, double factor, const char *in, const char *letters,
                     const char *shape) {
    NodeRow row = {
        .out = out, .op = "scale", .in = {in}, .shape = shape, .module = "loss", .part = "loss"};
    row.rule = arena_printf(b->a, "%s->%s", letters, letters);
    int t = add_row(b, &row);
    if (t >= 0) b->g->node[b->g->t[t].producer].at.factor = factor;
    return t;
}

/* The value's own shape text, "b t d", and its letters, "btd". */
static const char *shape_text(Arena *a, const GTensor *t) {
    Str s = str_new(a);
    for (int i = 0, l = 0; i < t->nstored; l += t->stored[i++]) {
        if (i) str_add(&s, " ");
        str_addn(&s, t->letter + l, t->stored[i]);
    }
    return s.s;
}

/* [B, S, V] logits to a scalar, with labels [B, S] and weights [B, S]. */
static void cross_entropy(Build *b, int module) {
    GModule *m = &b->g->module[module];
    double a = b->p->label_smoothing;
    m->input[m->n_input++] = build_tensor(b, "labels", KIND_INPUT, "b t", false, true);
    build_tensor(b, "loss_weights", KIND_INPUT, "b t", false, false);
    add_row(b, &row_max);
    add_row(b, &row_sumexp);
    add_row(b, &row_target);
    if (a == 0) {
        add_row(b, &row_nll);
    } else {
        add_row(b, &row_label);
        add_row(b, &row_logit_sum);
        add_scale(b, "loss.logit_mean", 1 / (double)b->m->vocab, "loss.logit_sum", "bt", "b t");
        add_row(b, &row_uniform);
        add_scale(b, "loss.label_share", 1 - a, "loss.label", "bt", "b t");
        add_scale(b, "loss.uniform_share", a, "loss.uniform", "bt", "b t");
        add_row(b, &row_smooth);
    }
    m->output = add_row(b, &row_mean);
}

/* A target like the output, and the difference of the two, "loss.diff", in rows of these letters
 * and shape. */
static void difference(Build *b, int module, const char *letters, const char *shape) {
    GModule *m = &b->g->module[module];
    m->input[m->n_input++] = build_tensor(b, "target", KIND_INPUT, shape, false, false);
    NodeRow diff = {.out = "loss.diff",
                    .op = "add",
                    .in = {"@x", "loss.minus_target"},
                    .shape = shape,
                    .module = "loss",
                    .rule = arena_printf(b->a, "%s,%s->%s", letters, letters, letters),
                    .part = "loss",
                    .label = "difference"};
    add_scale(b, "loss.minus_target", -1, "target", letters, shape);
    add_row(b, &diff);
}
/* The sum of the squares of a value of these letters, "loss.squares". */
static void sum_of_squares(Build *b, const char *of, const char *letters) {
    NodeRow squares = {.out = "loss.squares",
                       .op = "einsum",
                       .in = {of, of},
                       .shape = "",
                       .module = "loss",
                       .rule = arena_printf(b->a, "%s,%s->", letters, letters),
                       .part = "loss",
                       .label = "sum of squares"};
    add_row(b, &squares);
}
static double elements(const Build *b) { return (double)graph_elements(&b->g->t[b->x]); }

/* The unbiased variance of all elements of output - target, as torch's (output - target).var(). */
static void variance(Build *b, int module) {
    const GTensor *x = &b->g->t[b->x];
    const char *letters = arena_strdup(b->a, x->letter), *shape = shape_text(b->a, x);
    double n = elements(b);
    if (n < 2) {
        diag_error(b->d, "E0214", b->p->loss_loc, NULL,
                   "the variance of one number is not defined");
        b->failed = true;
        return;
    }
    if (b->p->microbatches > 1) {
        diag_error(b->d, "E0214", b->p->loss_loc, "loss: {kind: mse}, or leave `microbatches` out",
                   "the variance of a batch is no sum over its micro-batches");
        b->failed = true;
        return;
    }
    NodeRow sum = {.out = "loss.sum",
                   .op = "einsum",
                   .in = {"loss.diff"},
                   .shape = "",
                   .module = "loss",
                   .rule = arena_printf(b->a, "%s->", letters),
                   .part = "loss",
                   .label = "sum"};
    NodeRow centred = {.out = "loss.centred",
                       .op = "add",
                       .in = {"loss.diff", "loss.minus_mean"},
                       .shape = shape,
                       .module = "loss",
                       .rule = arena_printf(b->a, "%s,->%s", letters, letters),
                       .part = "loss",
                       .label = "minus the mean"};
    difference(b, module, letters, shape);
    add_row(b, &sum);
    add_scale(b, "loss.minus_mean", -1 / n, "loss.sum", "", "");
    add_row(b, &centred);
    sum_of_squares(b, "loss.centred", letters);
    b->g->module[module].output = add_scale(b, "loss", 1 / (n - 1), "loss.squares", "", "");
}
/* The mean of the squares of output - target over all elements of the whole batch, as torch's
 * mse_loss: a micro-batch has its terms of that mean. */
static void mean_square(Build *b, int module) {
    const GTensor *x = &b->g->t[b->x];
    const char *letters = arena_strdup(b->a, x->letter), *shape = shape_text(b->a, x);
    double n = elements(b);
    if (b->p->whole_batch) n *= (double)b->p->whole_batch / (double)b->m->B;
    difference(b, module, letters, shape);
    sum_of_squares(b, "loss.diff", letters);
    b->g->module[module].output = add_scale(b, "loss", 1 / n, "loss.squares", "", "");
}

/* sum of y, or of y * g with a cotangent g that is given. */
static void linear_loss(Build *b, int module, bool dot) {
    const char *letters = b->g->t[b->x].letter;
    NodeRow row = {.out = "loss",
                   .op = "einsum",
                   .in = {"@x", dot ? "cotangent" : NULL},
                   .shape = "",
                   .module = "loss",
                   .part = "loss",
                   .label = dot ? "dot" : "sum"};
    row.rule =
        dot ? arena_printf(b->a, "%s,%s->", letters, letters) : arena_printf(b->a, "%s->", letters);
    if (dot)
        build_tensor(b, "cotangent", KIND_INPUT, shape_text(b->a, &b->g->t[b->x]), false, false);
    b->g->module[module].output = build_row(b, &row, (RowPlace){"", "", -1, -1, NULL});
}

static void dot_loss(Build *b, int module) { linear_loss(b, module, true); }
static void sum_loss(Build *b, int module) { linear_loss(b, module, false); }

/* A loss: its word in plan/lists.h, and one row here. */
typedef struct {
    void (*build)(Build *b, int module);
    bool logits; /* takes logits and labels; else it stands in for a loss */
} LossRow;
static const LossRow loss_cross_entropy = {cross_entropy, true}, loss_dot = {dot_loss, false},
                     loss_sum = {sum_loss, false}, loss_var = {variance, false},
                     loss_mse = {mean_square, false};
#define ROW(name) {#name, &loss_##name},
static const struct {
    const char *name;
    const LossRow *row;
} losses[] = {LOSSES(ROW)};
#undef ROW

static const LossRow *find_loss(const char *name, Arena *arena, const char **all) {
    Str s = str_new(arena);
    for (int i = 0; i < N_LOSSES; i++) {
        if (!strcmp(losses[i].name, name)) return losses[i].row;
        str_addf(&s, "%s%s", i == 0 ? "" : i + 1 < N_LOSSES ? ", " : " and ", losses[i].name);
    }
    *all = s.s;
    return NULL;
}
static void refuse(Build *b, const char *code, Loc loc, const char *hint, const char *why) {
    diag_error(b->d, code, loc, hint, "%s", why);
    b->failed = true;
}
void build_loss(Build *b, int output, bool has_head) {
    const char *kind = b->p->loss_kind ? b->p->loss_kind
                       : has_head      ? "cross_entropy"
                                       : "dot",
               *all = "";
    const LossRow *loss = find_loss(kind, b->a, &all);
    if (!loss)
        refuse(b, "E0214", b->p->loss_loc, arena_printf(b->a, "%s are there", all),
               arena_printf(b->a, "this version has no loss '%s'", kind));
    else if (output < 0)
        refuse(b, "E0208", b->p->parts_loc, "parts: [blocks, loss]",
               "there is nothing to take the loss of: `parts` names only the loss");
    else if (loss->logits && !has_head)
        refuse(b, "E0214", b->p->loss_loc, "add 'head' to model.parts, or use the loss 'dot'",
               "a cross entropy needs logits, and this model has no head");
    else if (!loss->logits && b->p->label_smoothing != 0)
        refuse(b, "E0214", b->p->loss_loc, "leave label_smoothing out",
               arena_printf(b->a, "the loss '%s' has no labels to smooth", kind));
    if (b->failed) return;
    b->x = output;
    int module = build_module(b, "loss", loss->logits ? "loss" : LOSS_STAND_IN, -1);
    b->g->module[module].vocab = true;
    b->g->module[module].input[0] = output;
    b->g->module[module].n_input = 1;
    loss->build(b, module);
    b->g->module[module].output = build_terms(b, b->g->module[module].output);
    b->g->loss = b->failed ? -1 : b->g->module[module].output;
}
