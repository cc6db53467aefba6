/* Whether what several streams do to one block of a GPU's memory is ordered, by events or by the
 * host: a clock for each, and what each has seen of the others' (Lamport; Fidge, 1988). It does not
 * depend on who happens to be first: what nothing orders ends the process, with both names. One
 * host thread asks. FAKE_ORDER=events: what the host waits for orders nothing, so that events must.
 */
#ifndef SP_TESTS_ORDER_H
#define SP_TESTS_ORDER_H
#include <stdbool.h>
#include <stddef.h>

enum { ORDER_HOST, ORDER_STREAMS = 48 };
typedef struct {
    unsigned at[ORDER_STREAMS];
} OrderClock;
/* A new stream's number. */
int order_stream(void);
/* What has been asked of a stream so far; behind that comes what is asked of another from now on.
 */
OrderClock order_now(int stream);
void order_behind(int stream, const OrderClock *clock);
/* The host has waited for all that was asked of it. */
void order_waited(int stream);
/* A block is there from now on; it is given back. */
void order_take(const void *p, size_t n);
void order_give(const void *p);
/* Something that is asked of a stream, or that the host does, reads or writes where p points. */
void order_touch(int stream, const void *p, bool writes, const char *what);
/* What a stream was just asked for, of which `what` is the kind. FAKE_BESIDE=FILE: for each pair of
 * different kinds that nothing orders, neither events nor the host, so that a GPU may do both at
 * once, how often there was one, when the process ends. */
void order_asked(int stream, const char *what);
#endif
