/* A plan as YAML text, line by line, with a comment and the place in the framework's file that each
 * piece comes from. The ordinary parser reads it; what is found in it is shown where it comes from.
 */
#ifndef SP_IMPORT_WRITE_H
#define SP_IMPORT_WRITE_H
#include "base/diag.h"

typedef struct {
    Arena *a;
    Str s;
    int line, col; /* of the next character */
    DiagOrigin *origin;
    int n_origin, cap_origin;
} PlanWriter;

/* A writer with an empty text in the arena. */
PlanWriter write_start(Arena *a);
/* Text as it is: YAML of our own, ASCII. */
void write_text(PlanWriter *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A scalar of theirs: quoted where YAML would read it otherwise. */
void write_scalar(PlanWriter *w, const char *text);
/* What follows comes from there. */
void write_from(PlanWriter *w, Loc from);
/* Ends the line, with a comment behind it (may be NULL) that names the line it comes from. */
void write_end(PlanWriter *w, const char *comment, Loc from);
/* A whole line of comment; text of theirs in it is made visible. */
void write_comment(PlanWriter *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
