/* The one place where the call of a step's kernel is built: from what its operands are and how they
 * lie, whoever asks. The run asks on each rank, the check on the ranks' parts put together, the
 * records on a rank's sizes alone. It runs nothing and touches no data. */
#ifndef SP_EXEC_OPCALL_H
#define SP_EXEC_OPCALL_H
#include "exec/device.h"

/* What the call is made of. */
typedef struct OpcallSource {
    const Program *p;
    Dtype dtype;
    struct Pool *pool;
    int64_t rank;    /* for which `lies` speaks */
    int64_t part;    /* the micro-batch */
    bool sizes_only; /* tensors have no numbers to read, whatever their p says */
    Device *dev;     /* in whose memory tensors are; NULL: the host's */
    /* A value as a tensor with a dim for each letter; with p NULL only its sizes. */
    Tensor (*value)(const struct OpcallSource *f, int val);
    /* How that tensor lies. */
    Layout (*lies)(const struct OpcallSource *f, int val);
    const void *of; /* the asker's own */
} OpcallSource;
/* Two operands that disagree about a letter's local size. */
typedef struct OpcallClash {
    char letter;
    int64_t one, other;
} OpcallClash;

/* The call of step s (an op or an adjoint): operands, the sizes of its letters and of the output,
 * packed, with out.p NULL. False, with *clash, if the operands' sizes do not fit together (clash
 * NULL: the first counts); the call then holds the operands that were asked for so far. */
bool opcall_build(const OpcallSource *f, const Step *s, OpCall *c, OpcallClash *clash);
/* Gives a built call the index lists of the letters that its op asks for; they live in `arena`. */
void opcall_positions(const OpcallSource *f, const Step *s, OpCall *c, Arena *arena);
/* The values of a step's operands, -1: not read. */
const int *opcall_operands(const Step *s);
#endif
