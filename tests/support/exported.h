/* Plans as other frameworks' texts, for the tests of exports: each says of every shipped plan
 * whether it is written or with which words it is refused. */
#ifndef TESTS_SUPPORT_EXPORTED_H
#define TESTS_SUPPORT_EXPORTED_H
#include "support.h"

typedef struct {
    const char *text, *said; /* text NULL: refused */
    PlanRun run;
} Exported;
/* Lowers the plan, which must pass, and exports it. */
Exported export_to(Arena *a, const char *file, const char *text, const char *framework);
/* Fails unless the plan is refused with these words, a place and a help. */
void export_refused(Arena *a, const char *file, const char *text, const char *framework,
                    const char *why);
/* A file of the project. */
const char *shipped_text(Arena *a, const char *file);
/* Fails unless the files of `plans` are these n: file(i). */
void shipped_listed(const char *(*file)(int i), int n);
#endif
