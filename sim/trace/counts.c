/* Collectives and messages in words. See counts.h. */
#include "trace/counts.h"
#include "trace/collectives.h"

bool collective_is_message(const TraceCollective *c) {
    const CollWord *w = coll_word(c->op);
    return w && w->there;
}
static const char *of_kind(Arena *a, int64_t n, const char *word) {
    return arena_printf(a, "%lld %s%s", (long long)n, word, n == 1 ? "" : "s");
}
const char *counted_text(Arena *a, int64_t all, int64_t messages) {
    int64_t others = all - messages;
    if (!messages) return of_kind(a, all, "collective");
    if (!others) return of_kind(a, messages, "message");
    return arena_printf(a, "%s and %s", of_kind(a, others, "collective"),
                        of_kind(a, messages, "message"));
}
