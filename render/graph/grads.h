/* Gradients of parameters as pictures of a backward pass tell them: which step makes one, which
 * collectives finish it, in whose it travels, and its name. Knows no op by name. */
#ifndef SP_RENDER_GRADS_H
#define SP_RENDER_GRADS_H
#include "render/graph/block_graph.h"

enum { GRADS_CHAIN = 4, GRADS_UNITS = 2 };

/* A gradient of a parameter and the collectives that finish it. */
typedef struct ParamGrad {
    const TraceParam *param;
    const TraceCompute *made;
    bool term; /* of a weight used several times: the last term, where their sum is done, has the
                  collectives */
    int n;
    const TraceCollective *coll[GRADS_CHAIN];
    int n_unit; /* collectives of other parameters in which it travels (a layer's or the model's;
                   HSDP has two) */
    const TraceCollective *unit[GRADS_UNITS];
} ParamGrad;

/* The parameter whose gradient the subject is; NULL: it is no such gradient. */
const TraceParam *grads_param(const Trace *t, Subject s);
/* Does step b add gradients of several uses of one value, that of `step` among them? */
bool grads_sums(const TraceCompute *b, const char *name, int step);
/* The gradient that step b makes, as the graph's rank sees it. */
ParamGrad grads_read(const BlockGraph *g, const TraceCompute *b);
/* What is left of it after its collectives, before an optimizer takes it; NULL: no record. */
const TraceValue *grads_end_value(const Trace *t, const ParamGrad *w);
/* Do two gradients end alike: by the same collectives over the same axes? */
bool grads_same_end(const ParamGrad *x, const ParamGrad *y);
/* "layers.0.attention.wq.weight" as the plan calls it. */
const char *grads_path(const TraceParam *p);
/* "wq" of the path of its weight or its bias. */
const char *grads_weight(Arena *a, const char *path);
/* What the plan calls a parameter that is a list of numbers, behind the label of the op that reads
 * it: "attention_norm" behind "RMSNorm"; "" where the label says as much: "sink" of "sinks". */
const char *grads_note(Arena *a, const TraceParam *list, const char *label);
/* What a gradient's parameter is called in the box that multiplies with it: "wq", "shared w2". */
const char *grads_leaf(Arena *a, const ParamGrad *w);
/* The same in a list, as words_weight_next. */
const char *grads_leaf_next(Arena *a, const ParamGrad *w, const char **group);
/* Is it that of a bias? */
bool grads_is_bias(const ParamGrad *w);
/* "dwq dwk" of "wq wk", but "d q_proj k_proj"; with `bias`, " + bias" behind it. */
const char *grads_words(Arena *a, const char *names, bool bias);
#endif
