/* The graph of `kind: mlp`: linear layers with an activation between them, as in the toy plans, and
 * a learned scale behind them where the plan says so.
 * Values: input [B, I], net1, act1, net2, ..., scaled; modules of the same names, and scale.
 * Letters: b rows, and one per width. */
#include "model/build.h"
#include <string.h>

/* Letters of the widths; b is taken, t and s mean positions elsewhere. */
static const char width_letters[] = "acdefghijklmnopqruvwxyz";
enum { MAX_WIDTHS = sizeof width_letters - 1 };

static void set_letters(Build *b) {
    const ModelDims *m = b->m;
    b->letter['b' - 'a'] = (LetterSize){"B", m->B, DIM_BATCH};
    for (int i = 0; i < m->n_sizes; i++) {
        const char *sym = i == 0                ? "I"
                          : i == m->n_sizes - 1 ? "O"
                          : m->n_sizes == 3     ? "F"
                                                : arena_printf(b->a, "F%d", i);
        b->letter[width_letters[i] - 'a'] = (LetterSize){sym, m->sizes[i], DIM_PLAIN};
    }
}

static const char *layer_name(const Build *b, int i) {
    return i < b->p->n_layer_names ? b->p->layer_names[i] : arena_printf(b->a, "net%d", i + 1);
}

/* The linear layer i (from 0): "ba,ca->bc". */
static void build_linear(Build *b, int i) {
    char in = width_letters[i], out = width_letters[i + 1];
    const char *name = layer_name(b, i);
    NodeRow row = {.out = name,
                   .op = "einsum",
                   .rule = arena_printf(b->a, "b%c,%c%c->b%c", in, out, in, out),
                   .in = {"@x", "@w"},
                   .shape = arena_printf(b->a, "b %c", out),
                   .module = name,
                   .kind = "linear",
                   .weight = arena_printf(b->a, "%c %c", out, in),
                   .part = "mlp",
                   .label = "linear",
                   .bias = FEATURE_MLP_BIAS};
    b->x = build_row(b, &row, (RowPlace){"", "", i, -1, NULL});
}

static void build_activation(Build *b, int i) {
    char c = width_letters[i + 1];
    const char *name = arena_printf(b->a, "act%d", i + 1);
    NodeRow row = {.out = name,
                   .rule = arena_printf(b->a, "b%c->b%c", c, c),
                   .in = {"@x"},
                   .shape = arena_printf(b->a, "b %c", c),
                   .module = name,
                   .kind = "activation",
                   .part = "mlp"};
    b->x = build_row(b, &row, (RowPlace){"", "", i, -1, NULL});
}

/* A factor for each number that flows out: "bc,c->bc", the parameter "scale". */
static void build_output_scale(Build *b) {
    char c = width_letters[b->m->n_sizes - 1];
    NodeRow row = {.out = "scaled",
                   .op = "einsum",
                   .rule = arena_printf(b->a, "b%c,%c->b%c", c, c, c),
                   .in = {"@x", "@w"},
                   .shape = arena_printf(b->a, "b %c", c),
                   .module = "scale",
                   .kind = "scale",
                   .weight = arena_printf(b->a, "%c", c),
                   .part = "mlp",
                   .label = "scale"};
    b->x = build_row(b, &row, (RowPlace){"", "", -1, -1, "scale"});
}

void build_mlp(Build *b) {
    const ModelDims *m = b->m;
    if (m->n_sizes > MAX_WIDTHS) {
        diag_error(b->d, "E0701", b->p->model_loc, NULL,
                   "an mlp of %d sizes; at most %d can be told apart by letters", m->n_sizes,
                   (int)MAX_WIDTHS);
        b->failed = true;
        return;
    }
    set_letters(b);
    b->x = build_tensor(b, "input", KIND_INPUT, arena_printf(b->a, "b %c", width_letters[0]),
                        b->p->input_gradient, false);
    for (int i = 0; i + 1 < m->n_sizes && !b->failed; i++) {
        build_linear(b, i);
        bool last = i + 2 == m->n_sizes;
        if (!last && m->activation && !b->failed) build_activation(b, i);
    }
    if (b->p->mlp_scale && !b->failed) build_output_scale(b);
}
