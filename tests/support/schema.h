/* JSON values held against a JSON Schema, as far as docs/shardproof.schema.json goes. Refuses a
 * schema that uses a word it does not know, so that nothing is held by half. */
#ifndef SP_TESTS_SCHEMA_H
#define SP_TESTS_SCHEMA_H
#include "formats/json.h"

/* NULL if `value` is what `root`'s definition `name` says, else what is not, with its place. In
 * `arena`. */
const char *schema_wrong(Arena *arena, const Json *root, const char *name, const Json *value);
#endif
