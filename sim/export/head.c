/* How texts of other frameworks begin. A plan's name is text of its own: whatever it holds, it
 * stays inside of one comment. */
#include "export/export.h"
#include "import/write.h"

Str export_head(const Export *e, const char *what, const char *framework, const char *rest) {
    PlanWriter w = write_start(e->a);
    write_comment(&w, "%s as %s, written by `shardproof export --to %s`.",
                  e->p->name ? e->p->name : "A plan", what, framework);
    write_comment(&w, "%s", rest);
    return w.s;
}
