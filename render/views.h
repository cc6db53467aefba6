/* The views: each turns a trace into scenes (pages), some also into text. To add one: write
 * view_NAME.c, declare its functions here, add a row to the table in render.c. */
#ifndef SP_RENDER_VIEWS_H
#define SP_RENDER_VIEWS_H
#include "render/furniture/furniture.h"

enum { VIEW_MAX_PAGES = 32 };

/* Fills page[] and returns the number of pages; 0 and a diagnostic if the trace has nothing for the
 * view. */
int view_block(const ViewCall *c, Scene **page);
int view_timeline(const ViewCall *c, Scene **page);
int view_mesh(const ViewCall *c, Scene **page);
int view_overview(const ViewCall *c, Scene **page);
int view_shards(const ViewCall *c, Scene **page);
int view_memory(const ViewCall *c, Scene **page);
int view_errors(const ViewCall *c, Scene **page);
int view_storyboard(const ViewCall *c, Scene **page);

/* Text in 80 columns; NULL and a diagnostic. */
const char *view_block_text(const ViewCall *c);
const char *view_timeline_text(const ViewCall *c);
const char *view_mesh_text(const ViewCall *c);
const char *view_overview_text(const ViewCall *c);
const char *view_shards_text(const ViewCall *c);
const char *view_memory_text(const ViewCall *c);
const char *view_errors_text(const ViewCall *c);
const char *view_storyboard_text(const ViewCall *c);
/* Chrome trace JSON of the events; NULL and a diagnostic if there are none. */
const char *chrome_text(const ViewCall *c);
#endif
