/* A map from tuples of int64 to an int, for the length of one step: which combination of inputs was
 * met before? */
#ifndef SP_EXEC_TUPLEMAP_H
#define SP_EXEC_TUPLEMAP_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int width, cap, n;
    int64_t *keys;
    int *vals;
} TupleMap;

/* An empty map of tuples of `width` numbers; close it with tuplemap_close. */
void tuplemap_open(TupleMap *m, int width);
void tuplemap_close(TupleMap *m);
/* Where the value of a key is kept; *fresh: the key is new and its value -1. Valid until the next
 * call. */
int *tuplemap_find(TupleMap *m, const int64_t *key, bool *fresh);
#endif
