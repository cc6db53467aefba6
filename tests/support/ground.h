/* What tests of pictures stand on: an arena that ends with the test, and traces of plans. */
#ifndef SP_TESTS_GROUND_H
#define SP_TESTS_GROUND_H
#include "support.h"

typedef struct {
    Arena *a;
    Diags *d;
} Ground;
/* For cmocka_unit_test_setup_teardown: *state is a Ground. */
int ground_new(void **state);
int ground_gone(void **state);
/* The shape-only trace of a plan's file, with `more` added to its text; `events`: and its modelled
 * times. In the ground's arena; a plan that gives none fails the test. */
const Trace *ground_trace(Ground *g, const char *file, const char *more, bool events);
#endif
