/* The views: each turns a trace into scenes (pages) and into text. To add one: write
 * NAME/view_NAME.c with view_NAME and view_NAME_text, and a row of VIEWS. Nothing else names a
 * view. */
#ifndef SP_RENDER_VIEWS_H
#define SP_RENDER_VIEWS_H
#include "render/furniture/furniture.h"

/* Options that mean something to a view only; the others are refused, because the reader would
 * believe in them. */
enum { BY_RANK = 1, BY_LAYER = 2, BY_PART = 4, BY_PASS = 8, BY_MEASURED = 16, BY_BUILD = 32 };
/* Beside that, what is no option: beside another plan that has no backward pass, the view shows the
 * forward pass of both. */
enum { ONE_PASS = 64 };

/* name, what, options (BY_...), what it asks of a trace and its place (VIEW_... of render.h), with
 * VIEW_JSON what it shows as one JSON object; NULL and a diagnostic if the trace has nothing for it
 */
#define VIEWS(V)                                                                                   \
    V(block, "one GPU's view of a block: compute, collectives, local shapes",                      \
      BY_RANK | BY_LAYER | BY_PART | BY_PASS | BY_BUILD | ONE_PASS, VIEW_FIRST | VIEW_PARTS, NULL) \
    V(timeline, "compute and communication streams per rank class, modelled time",                 \
      BY_RANK | BY_MEASURED, VIEW_FIRST | VIEW_TIMES | VIEW_CHROME | VIEW_JSON,                    \
      view_timeline_json)                                                                          \
    V(overview, "the whole model with repeated layers folded", BY_RANK | BY_PASS | BY_BUILD, 0,    \
      NULL)                                                                                        \
    V(shards, "which part of every weight and activation a rank holds",                            \
      BY_RANK | BY_LAYER | BY_PART, VIEW_MODULES, NULL)                                            \
    V(memory, "bytes per rank by category, and what is alive at the peak", BY_RANK,                \
      VIEW_TIMES | VIEW_JSON, view_memory_json)                                                    \
    V(errors, "where an executed run first differs, value by value on every rank", 0,              \
      VIEW_RUN | VIEW_BESIDE | VIEW_FAR, NULL)                                                     \
    V(storyboard, "one collective step by step, on numbers of the run",                            \
      BY_RANK | BY_PART | BY_BUILD, VIEW_SAMPLES | VIEW_TIMES | VIEW_MOVED, NULL)                  \
    V(routing, "rows that ranks send to experts: ribbons, matrix, load",                           \
      BY_RANK | BY_LAYER | BY_BUILD, VIEW_RUN, NULL)                                               \
    V(pipeline, "stages over time: cells of micro-batches, idle time, what is in flight",          \
      BY_BUILD, VIEW_TIMES | VIEW_SEVERAL | VIEW_JSON, view_pipeline_json)                         \
    V(roofline, "when it is compute-bound: FLOPs per byte against the machine", BY_RANK,           \
      VIEW_TIMES, NULL)                                                                            \
    V(sweep, "memory against the batch, and the same ranks cut in other ways", 0,                  \
      VIEW_TIMES | VIEW_OTHERS | VIEW_JSON, view_sweep_json)                                       \
    V(mesh, "ranks, axes and groups, for 1 to thousands of ranks", BY_RANK, VIEW_TIMES, NULL)

/* view_NAME fills page[] and returns the number of pages; 0 and a diagnostic if the trace has
 * nothing for the view. view_NAME_text: text in furniture_columns; NULL and a diagnostic. */
#define ROW(name, what, options, asks, json)                                                       \
    int view_##name(const ViewCall *c, Scene **page);                                              \
    const char *view_##name##_text(const ViewCall *c);
VIEWS(ROW)
#undef ROW
const char *view_memory_json(const ViewCall *c);
const char *view_timeline_json(const ViewCall *c);
const char *view_pipeline_json(const ViewCall *c);
const char *view_sweep_json(const ViewCall *c);
/* Chrome trace JSON of the events; NULL and a diagnostic if there are none. */
const char *chrome_text(const ViewCall *c);
#endif
