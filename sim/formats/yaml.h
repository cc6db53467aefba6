/* YAML as located nodes, read through libyaml's event interface with hard limits: at most 1 MiB,
 * depth 32, 100,000 events, scalars of 4096 bytes, one document, UTF-8, no tags, no anchors or
 * aliases, no duplicate keys. */
#ifndef SP_FORMATS_YAML_H
#define SP_FORMATS_YAML_H
#include "base/diag.h"
typedef enum { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlKind;
typedef struct Yaml Yaml;
typedef struct {
    const char *key;
    Loc loc;
    Yaml *value;
    bool used; /* set by whoever read it: what stays false is an unknown key */
} YamlPair;
struct Yaml {
    YamlKind kind;
    Loc loc;
    const char *s; /* scalar text */
    bool quoted;
    int n;
    Yaml **item;    /* list */
    YamlPair *pair; /* map */
};
/* Parses `text`; NULL and diagnostics if it is not one YAML document within the limits (an empty
 * one too). Keys that occur twice are reported (E0107) but do not make the result NULL: the first
 * one is kept, so that more can be found in one go. Remembers the text for diags_print. */
Yaml *yaml_parse(Arena *arena, Diags *d, const char *file, const char *text, size_t n);
/* Parses a piece of YAML whose first character stands at `start` (a value of --set, a row of a
 * recipe); nothing is remembered. Empty text is an empty scalar. NULL and diagnostics as above. */
Yaml *yaml_parse_value(Arena *arena, Diags *d, Loc start, const char *text, size_t n);
/* The value of a key of a map (marks it used), or NULL; of what is no map, or NULL, NULL. */
Yaml *yaml_get(Yaml *map, const char *key);
/* Is this scalar YAML's null: empty, ~ or null, without quotes? */
bool yaml_is_null(const Yaml *y);
/* "a mapping", "a list", "text", ...: for messages. */
const char *yaml_kind_text(const Yaml *y);
#endif
