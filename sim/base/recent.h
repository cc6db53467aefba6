/* What was found out lately, as rows of one kind. Who asks about one layer after the other asks in
 * the same order, so the row behind the one that answered last is looked at first. Refuses to know
 * what a row says. */
#ifndef SP_BASE_RECENT_H
#define SP_BASE_RECENT_H
#include "base/arena.h"

typedef struct {
    char *row;
    size_t size; /* of a row */
    int most;    /* rows that are kept: the newest take the places of the oldest */
    int n;       /* that were ever added */
    int last;    /* that answered */
} Recent;
/* Does the row say what is wanted? */
typedef bool RecentSame(const void *row, const void *want);

/* Of at most `most` rows of `size` bytes; they live in the arena. */
Recent recent_new(Arena *arena, int most, size_t size);
/* The row that says what is wanted, good until it is replaced; or NULL. */
void *recent_find(Recent *r, RecentSame *same, const void *want);
/* Keeps a copy of the row, and returns it. */
void *recent_add(Recent *r, const void *row);
#endif
