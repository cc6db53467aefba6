/* How all exporters refuse: one code, at a place of the plan, with what comes nearest. */
#include "export/export.h"

void export_refuse(const Export *e, Loc at, const char *hint, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_error(e->d, "E0218", at, hint, "%s", arena_vprintf(e->a, fmt, ap));
    va_end(ap);
}
