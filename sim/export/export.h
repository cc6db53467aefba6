/* Plans as other frameworks write them: the opposite direction of sim/import. What a framework
 * cannot say is an error at its place in the plan, all of them at once; nothing is left out. The
 * sizes of the model, data, optimizer and expectations are not part of such a table and stay in the
 * plan. */
#ifndef SP_EXPORT_EXPORT_H
#define SP_EXPORT_EXPORT_H
#include "assign/assign.h"

/* A plan that passed, as text of the framework `to` ("torch"), in the arena; NULL and errors in
 * `d`: E0212 for a framework that is not known, E0218 for what it cannot say. The plan is laid over
 * its model once more, without numbers. */
const char *export_plan(Arena *arena, Diags *d, const Plan *p, const char *to);
/* The frameworks, with a blank between. */
extern const char export_words[];

/* ---- between the door and the frameworks ---- */
typedef struct {
    Arena *a;
    Diags *d;
    const Plan *p;
    const Assign *as;
} Export;
/* parallelize_module, fully_shard and the mesh; NULL if there were errors. */
const char *export_torch(const Export *e);

/* One module's style as a call of PyTorch's, "ColwiseParallel(input_layouts=Shard(1))"; NULL and
 * errors. `axis`: the one that it acts on. */
const char *export_torch_style(const Export *e, int module, const char *axis);
/* "x\"y" as a string of Python. */
const char *export_python_text(Arena *a, const char *s);
/* Refuses the plan for what the passes before have said of it: moves and sums that no line asks
 * for, shards that DTensor raises for or gathers, claims that do not hold. */
void export_refuse_noted(const Export *e);
/* E0218 at a place of the plan. */
void export_refuse(const Export *e, Loc at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#endif
