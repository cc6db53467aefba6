/* Losses as nodes. Cross entropy is four ops and a weighted sum, so that a vocabulary cut over ranks needs no code
 * of its own: max, sum of exp and the target's logit are contractions of v. Weights are mask / N: sums everywhere,
 * no divisor. */
#include "model/build.h"
#include <string.h>

static const NodeRow cross_entropy_rows[] = {
    {"loss.max", "rowmax", "btv->bt", {"@x"}, "b t", "loss", NULL, NULL, .part = "loss"},
    {"loss.sumexp", "sumexp", "btv,bt->bt", {"@x", "loss.max"}, "b t", "loss", NULL, NULL, .part = "loss"},
    {"loss.target", "pick", "btv,bt->bt", {"@x", "labels"}, "b t", "loss", NULL, NULL, "loss", .at = AT_IGNORE},
    {"loss_per_token", "nll", "bt,bt,bt,bt->bt", {"loss.sumexp", "loss.max", "loss.target", "labels"}, "b t", "loss", NULL, NULL,
     .part = "loss", .at = AT_IGNORE},
    {"loss_mean", "einsum", "bt,bt->", {"loss_per_token", "loss_weights"}, "", "loss", NULL, NULL,
     .part = "loss", .label = "weighted sum"},
};

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
    m->input[m->n_input++] = build_tensor(b, "labels", KIND_INPUT, "b t", false, true);
    build_tensor(b, "loss_weights", KIND_INPUT, "b t", false, false);
    for (size_t i = 0; i < sizeof cross_entropy_rows / sizeof *cross_entropy_rows && !b->failed; i++)
        m->output = build_row(b, &cross_entropy_rows[i], "", "", -1, -1, NULL);
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
    row.rule = dot ? arena_printf(b->a, "%s,%s->", letters, letters) : arena_printf(b->a, "%s->", letters);
    if (dot) build_tensor(b, "cotangent", KIND_INPUT, shape_text(b->a, &b->g->t[b->x]), false, false);
    b->g->module[module].output = build_row(b, &row, "", "", -1, -1, NULL);
}

void build_loss(Build *b, int output, bool has_head) {
    const char *kind = b->p->loss_kind ? b->p->loss_kind : has_head ? "cross_entropy" : "dot";
    bool ce = !strcmp(kind, "cross_entropy"), dot = !strcmp(kind, "dot"), sum = !strcmp(kind, "sum");
    if (!ce && !dot && !sum) {
        diag_error(b->d, "E0214", b->p->loss_loc, "cross_entropy, dot and sum are there",
                   "this version has no loss '%s'", kind);
        b->failed = true;
        return;
    }
    if (ce && !has_head) {
        diag_error(b->d, "E0214", b->p->loss_loc, "add 'head' to model.parts, or use the loss 'dot'",
                   "a cross entropy needs logits, and this model has no head");
        b->failed = true;
        return;
    }
    if (ce && b->p->label_smoothing != 0) {
        diag_error(b->d, "E0214", b->p->loss_loc, "leave label_smoothing out", "this version has no label smoothing");
        b->failed = true;
        return;
    }
    b->x = output;
    int module = build_module(b, "loss", "loss", -1);
    b->g->module[module].input[0] = output;
    b->g->module[module].n_input = 1;
    if (ce)
        cross_entropy(b, module);
    else
        linear_loss(b, module, dot);
    b->g->loss = b->failed ? -1 : b->g->module[module].output;
}
