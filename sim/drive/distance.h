/* How far each value that the ranks hold after a run is from the unsharded float64 model's: what
 * the check of single steps leaves out, which goes by the inputs that the ranks have. It refuses to
 * judge: a distance above its bound is a fault of the run only where the check has found one. */
#ifndef SP_DRIVE_DISTANCE_H
#define SP_DRIVE_DISTANCE_H
#include "drive/endtoend.h"

/* Adds a record `distance` for each value of the last micro-batch and training step that has one:
 * not for choices of routers, pending maxima, what is added up over micro-batches (but for the sums
 * themselves), and what training has replaced since. The ranks and `e->ref` have kept all. */
void distance_record(const EndToEnd *e);
#endif
