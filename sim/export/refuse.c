/* How all exporters refuse: one code, at a place of the plan, with what comes nearest. */
#include "export/export.h"
#include <string.h>

void export_refuse(const Export *e, Loc at, const char *hint, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_error(e->d, "E0218", at, hint, "%s", arena_vprintf(e->a, fmt, ap));
    va_end(ap);
}

/* What makes a plan equivalent although no line of it says so, or keeps PyTorch from doing what it
 * says: the table alone would compute something else, or nothing. */
static const struct {
    const char *code, *why;
} noted[] = {
    {"N0001", "a table holds only what lines ask for"},
    {"N0008", "a table holds only what lines declare"},
    {"N0006", "PyTorch does not do this"},
    {"W0401", "this plan does not hold"},
};
void export_refuse_noted(const Export *e) {
    int n = e->d->n; /* those that are added here are not looked at */
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof noted / sizeof *noted; k++)
            if (strcmp(e->d->item[i].code, noted[k].code) == 0) {
                Diag said = e->d->item[i]; /* the list may move */
                export_refuse(e, said.loc, said.hint, "%s: %s", noted[k].why, said.message);
            }
}
