/* JSON behind one file: reading through jansson, writing as a stream. Nothing else includes
 * jansson. */
#ifndef SP_FORMATS_JSON_H
#define SP_FORMATS_JSON_H
#include "base/diag.h"
/* jansson, which is linked behind this, exports functions of these two names: ours are called
 * otherwise to the linker. */
#define json_real sp_json_real
#define json_null sp_json_null
typedef enum {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_REAL,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} JsonKind;
typedef struct Json Json;
struct Json {
    JsonKind kind;
    bool b;
    int64_t i;     /* JSON_INT */
    double r;      /* JSON_REAL, and JSON_INT as double */
    const char *s; /* JSON_STRING, UTF-8, without NUL */
    int n;
    Json **item;      /* array */
    const char **key; /* object */
    Json **value;
};
/* Parses into `arena`. NULL and *error (static or arena text), *line, *col if it is not JSON, is
 * deeper than 64 or has duplicate keys. Numbers beyond int64 become reals. */
Json *json_parse(Arena *arena, const char *text, size_t n, const char **error, int *line, int *col);
Json *json_get(const Json *object, const char *key); /* NULL if absent or not an object */

/* A writer onto a growing text in the arena, `s.s`; commas and quotes are its business. `key` NULL
 * inside arrays. At most 64 deep: what writes knows its own depth.
 * Doubles are written with the fewest digits that read back the same; NaN and infinity as strings
 * "nan", "inf", "-inf". */
typedef struct {
    Str s;
    int depth;
    bool first[64];
} JsonWriter;
JsonWriter json_writer(Arena *arena);
void json_open(JsonWriter *w, const char *key, char bracket); /* '{' or '[' */
void json_close(JsonWriter *w, char bracket);
void json_str(JsonWriter *w, const char *key, const char *value); /* NULL value: null */
void json_int(JsonWriter *w, const char *key, int64_t value);
void json_real(JsonWriter *w, const char *key, double value);
void json_bool(JsonWriter *w, const char *key, bool value);
void json_null(JsonWriter *w, const char *key);
void json_raw(JsonWriter *w, const char *key, const char *json); /* already JSON */
void json_newline(JsonWriter *w);                                /* after a whole record */
void json_break(JsonWriter *w); /* the next item of the array at hand begins a line of its own */
#endif
