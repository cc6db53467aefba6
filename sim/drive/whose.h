/* Whose part is a tensor of a file that says it is a rank's, where it is not that rank's? Of
 * another rank, or it is the whole value. Refuses to guess: every number must be equal. */
#ifndef SP_DRIVE_WHOSE_H
#define SP_DRIVE_WHOSE_H
#include "drive/values.h"

enum { WHOSE_RANKS = 64 }; /* the first of the mesh are asked */

/* What fits all tensors of a rank that were not its own. */
typedef struct Whose {
    int n; /* how many those are */
    const char *first;
    uint64_t ranks; /* bit R: they are what rank R holds */
    int whole;      /* so many are whole values */
    int asked;      /* of so many, for which there were whole values */
} Whose;

/* A tensor of the file: what it says it is, its n numbers, and how far off equal ones may be. */
typedef struct WhoseTensor {
    ValueKey key;
    const char *name;
    const double *x;
    int64_t n;
    double allowed;
} WhoseTensor;

/* Lays one more tensor over it. */
void whose_add(Whose *w, const ValueSet *s, const WhoseTensor *t);
/* Are all of them whole values? */
bool whose_whole(const Whose *w);
/* "what rank 1 holds", "whole values"; NULL: of nobody, or of several ranks here and there. */
const char *whose_text(Arena *a, const Whose *w);
#endif
