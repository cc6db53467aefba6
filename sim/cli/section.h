/* The `expect` section in the text of a plan: some of its keys replaced, everything else as it was.
 * Refuses to know what an expectation means. */
#ifndef SP_CLI_SECTION_H
#define SP_CLI_SECTION_H
#include "base/arena.h"

typedef struct {
    const char *key;
    const char *text; /* its lines, indented by two: "  equivalent: true\n"; NULL: it goes */
} SectionKey;

/* The plan's text with the keys of its section replaced, or with a new section at its end. Keys
 * that are not listed, their order, the comments of all and the rest of the plan stay. NULL if the
 * section holds keys that are not listed and is not written one key a line. The result lives in
 * `arena`. */
const char *section_replace(Arena *arena, const char *plan, size_t n, const SectionKey *keys,
                            int n_keys);
#endif
