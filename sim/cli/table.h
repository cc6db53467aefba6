/* One small table for every list that users get: columns, rows of cells, five ways to write it. A cell knows how it
 * reads for people, for a spreadsheet and for a program. Refuses to know what it shows. */
#ifndef SP_CLI_TABLE_H
#define SP_CLI_TABLE_H
#include "base/arena.h"

typedef struct {
    const char *text;  /* for people; NULL: empty */
    const char *plain; /* csv */
    const char *json;  /* a JSON value; NULL: `plain` as a string, or null if that is NULL too */
} Cell;
typedef struct {
    const char *key;   /* machine formats */
    const char *title; /* text and md */
    bool right;        /* numbers */
    bool optional;     /* text and md leave the column out where all its cells are empty or equal */
} Column;
typedef struct {
    Arena *arena;
    const char *record; /* `type` of its records in jsonl */
    int n_cols;
    const Column *col;
    int n_rows, cap_rows;
    Cell **row;
    Str notes; /* lines under the table; text and md */
} Table;

Table table_new(Arena *arena, const char *record, const Column *col, int n_cols);
/* A new last row; its cells are to be filled in. */
Cell *table_row(Table *t);

Cell cell_text(const char *s); /* NULL: empty */
Cell cell_int(Arena *a, int64_t v);
Cell cell_real(Arena *a, double v);
Cell cell_bytes(Arena *a, int64_t v); /* "16 MiB" for people, bytes for programs */
Cell cell_bool(bool b);               /* "yes" or empty */
Cell cell_shape(Arena *a, const int64_t *v, int n);
Cell cell_texts(Arena *a, const char *const *s, int n); /* joined by ", " */

typedef struct {
    int width; /* columns of the terminal; 0: never truncate */
    bool color;
} TableLook;
/* `format` is one of text, json, jsonl, csv, md. */
const char *table_render(const Table *t, const char *format, TableLook look, Arena *arena);
/* The columns that a text takes on a terminal. */
int table_text_width(const char *s);
/* `s` without control characters, at most `width` columns (0: all), cut with an ellipsis. */
const char *table_clean(const char *s, int width, Arena *arena);
#endif
