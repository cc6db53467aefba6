/* The files of a MoE block that stands alone. See moe_block.h. */
#include "moe_block.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

double *pad_blocks(Arena *a, const double *x, Pad p) {
    double *y = ARENA_ARRAY(a, double, p.blocks *p.rows1 *p.cols1 + 1);
    for (int64_t b = 0; b < p.blocks; b++)
        for (int64_t i = 0; i < p.rows; i++)
            memcpy(y + (b * p.rows1 + i) * p.cols1, x + (b * p.rows + i) * p.cols,
                   (size_t)p.cols * sizeof *y);
    return y;
}
double *first_columns(Arena *a, const double *x, int64_t rows, int cols1, int cols) {
    double *y = ARENA_ARRAY(a, double, rows *cols + 1);
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + i * cols, x + i * cols1, (size_t)cols * sizeof *y);
    return y;
}
static double square(const MoeBlock *b, int64_t token) {
    double s = 0;
    for (int d = 0; d < b->D; d++) s += b->x[token * b->D + d] * b->x[token * b->D + d];
    return s;
}
/* The square of the length that all tokens get by their last number. */
static double square_length(const MoeBlock *b) {
    double top = 0;
    for (int64_t t = 0; t < b->B * b->S; t++) top = fmax(top, square(b, t));
    return top + 1;
}
const char *moe_block_inputs(const MoeBlock *b) {
    int64_t tokens = b->B * b->S;
    Pad wider = {1, tokens, b->D, tokens, b->D + 1};
    double c = square_length(b), *in = pad_blocks(b->a, b->x, wider);
    for (int64_t t = 0; t < tokens; t++) in[t * (b->D + 1) + b->D] = sqrt(c - square(b, t));
    NewTensor t[2] = {
        {.name = "layers.0.input", .nd = 3, .shape = {b->B, b->S, b->D + 1}, .x = in},
        {.name = "cotangent",
         .nd = 3,
         .shape = {b->B, b->S, b->D + 1},
         .x = pad_blocks(b->a, b->dy, wider)},
    };
    return write_tensors(b->a, "block-inputs.safetensors", t, 2);
}
const char *moe_block_weights(const MoeBlock *b, const char *plan) {
    PlanRun shapes = plan_run(b->a, "block.yaml", plan, false);
    if (!shapes.t) run_print(&shapes);
    assert_non_null(shapes.t);
    NewTensor *t = ARENA_ARRAY(b->a, NewTensor, shapes.t->n_params);
    double length = sqrt(square_length(b) / (b->D + 1) + b->eps);
    for (int i = 0; i < shapes.t->n_params; i++) {
        const TraceShape *p = &shapes.t->params[i].rest;
        int64_t n = 1;
        t[i] = (NewTensor){.name = shapes.t->params[i].plan_name, .nd = p->nd};
        for (int d = 0; d < p->nd; d++) n *= t[i].shape[d] = p->global_shape[d];
        double *x = ARENA_ARRAY(b->a, double, n);
        for (int64_t k = 0; k < n && !strcmp(t[i].name, b->norm); k++) x[k] = length;
        t[i].x = x;
        for (int k = 0; k < b->n; k++)
            if (!strcmp(t[i].name, b->weight[k].name))
                t[i].x = pad_blocks(b->a, b->weight[k].x, b->weight[k].pad);
    }
    return write_tensors(b->a, "block-weights.safetensors", t, shapes.t->n_params);
}
