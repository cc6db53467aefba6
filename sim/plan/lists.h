/* Losses and optimizers by name, one word each: what a plan may say. What each does is a row of
 * model/loss.c and model/optimizer.c, which do not compile without it. (Activations are ops: their
 * words are those of ops/list.h.) */
#ifndef SP_PLAN_LISTS_H
#define SP_PLAN_LISTS_H

#define LOSSES(L) L(cross_entropy) L(dot) L(sum) L(var) L(mse)
#define OPTIMIZERS(O) O(sgd) O(adamw)

#define LOSS_KIND(name) LOSS_##name,
#define OPTIMIZER_KIND(name) OPTIMIZER_##name,
typedef enum { LOSSES(LOSS_KIND) N_LOSSES } LossKind;
typedef enum { OPTIMIZERS(OPTIMIZER_KIND) N_OPTIMIZERS } OptimizerKind;
#undef LOSS_KIND
#undef OPTIMIZER_KIND
#endif
