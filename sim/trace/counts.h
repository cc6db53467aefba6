/* How many collectives records are, in words: what a pipeline sends from stage to stage is a
 * message. One definition for tables, reports and pictures. Refuses to add up bytes. */
#ifndef SP_TRACE_COUNTS_H
#define SP_TRACE_COUNTS_H
#include "trace/trace.h"

/* Does it go from one rank to another, which only receives? */
bool collective_is_message(const TraceCollective *c);
/* "4 collectives", "2 messages", "28 collectives and 1 message" of `all`, messages among them. */
const char *counted_text(Arena *a, int64_t all, int64_t messages);
#endif
