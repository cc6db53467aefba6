/* What follows from a mistake and is none of its own. A word that was not understood leaves its
 * field as it was, and then a key seems to be missing beside it, or not to go with the mode that it
 * has by default. Only errors of these two kinds go, and only within one section of the plan:
 * mistakes beside each other are all told. */
#include "plan/read.h"
#include <string.h>

static bool same(Loc a, Loc b) {
    return a.file && b.file && a.line == b.line && a.col == b.col && !strcmp(a.file, b.file);
}
static bool stands_in(const Yaml *y, Loc at) {
    if (!y) return false;
    if (same(y->loc, at)) return true;
    for (int i = 0; i < y->n && y->kind == YAML_LIST; i++)
        if (stands_in(y->item[i], at)) return true;
    for (int i = 0; i < y->n && y->kind == YAML_MAP; i++)
        if (same(y->pair[i].loc, at) || stands_in(y->pair[i].value, at)) return true;
    return false;
}
/* The key of the plan under which a place stands; -1: none. */
static int section_of(const Yaml *root, Loc at) {
    for (int i = 0; i < root->n; i++)
        if (same(root->pair[i].loc, at) || stands_in(root->pair[i].value, at)) return i;
    return -1;
}
static bool may_follow(const Diag *g) {
    return g->severity == DIAG_ERROR && (!strcmp(g->code, "E0208") || !strcmp(g->code, "E0215"));
}
void read_drop_consequences(Diags *d, const Yaml *root, int first, int asked) {
    int kept = asked;
    for (int i = asked; i < d->n; i++) {
        int section = may_follow(&d->item[i]) ? section_of(root, d->item[i].loc) : -1;
        bool follows = false;
        for (int k = first; section >= 0 && k < asked; k++)
            follows |=
                d->item[k].severity == DIAG_ERROR && section_of(root, d->item[k].loc) == section;
        if (!follows) d->item[kept++] = d->item[i];
    }
    d->n = kept;
}
