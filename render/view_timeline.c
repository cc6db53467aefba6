/* stub */
#include "render/views.h"
int view_timeline(const ViewCall *c, Scene **page) {
    (void)page;
    diag_error(c->d, "E0211", (Loc){0}, NULL, "view 'timeline' is not there yet");
    return 0;
}
const char *view_timeline_text(const ViewCall *c) {
    view_timeline(c, NULL);
    return NULL;
}
const char *chrome_text(const ViewCall *c) { return view_timeline_text(c); }
