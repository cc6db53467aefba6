/* One small table for every list that users get: columns, rows of cells, and the ways to write it.
 * A cell knows how it reads for people, for a spreadsheet and for a program. Refuses to know what
 * it shows. */
#ifndef SP_CLI_TABLE_H
#define SP_CLI_TABLE_H
#include "base/arena.h"
#include "formats/json.h"

typedef struct {
    const char *text;  /* for people; NULL: empty */
    const char *plain; /* csv */
    const char *json;  /* a JSON value; NULL: `plain` as a string, or null if that is NULL too */
} Cell;
/* What happens to a column in text and Markdown; all but the first only in text on a terminal that
 * is too narrow, in this order. What is left then is cut, the widest first; numbers never are. */
enum {
    COL_OPTIONAL =
        1, /* left out where all its cells are empty or equal; `true` in a row of columns */
    COL_PREFIX =
        2, /* what all its cells begin with ("layers.0.", "plans/a.yaml:") is said once, below */
    COL_DROP = 4, /* left out, the last such column first; a line below the table says so */
    COL_SHORT =
        8, /* cut before others, down to SHORTEST, keeping what stands in brackets at its end */
    COL_BELOW = 16, /* on a line of its own below the row, with its title if COL_TITLED */
    COL_TITLED = 32,
    COL_WRAP = 64,   /* several lines */
    COL_EMPTY = 128, /* left out where all its cells are empty */
    COL_LAST = 256,  /* left out where nothing else makes the table fit */
    COL_PLACE = 512, /* says which ranks: where stages are compared, RowPlace.ranks stands for it */
    COL_PART = 1024, /* says which micro-batch: not asked where micro-batches are compared */
    COL_NAMES = 2048, /* its words may name layers and stages, whose numbers differ in rows that are
                         alike: others say the same to the letter */
};
typedef struct {
    const char *key;   /* machine formats */
    const char *title; /* text and md */
    bool right;        /* numbers */
    int how;           /* COL_... */
} Column;
/* Which layer a row is of, which ranks of a pipeline it speaks of, and in which micro-batch. */
typedef struct {
    int layer;         /* -1: none */
    int at;            /* the coordinate of the first of the ranks on the pipeline's axis */
    const char *ranks; /* all, as if each stood at coordinate 0; NULL: the row speaks of none */
    int part;          /* the micro-batch that it is listed in; -1: the table lists none */
} RowPlace;
typedef struct {
    Arena *arena;
    const char *record; /* `type` of its records in jsonl */
    int n_cols;
    const Column *col;
    int n_rows, cap_rows;
    Cell **row;
    int n_places, cap_places;
    RowPlace *place;    /* per row; NULL: nobody folds it */
    const char **after; /* text and md: lines after row r, or NULL; NULL: after none */
    Str notes;          /* lines under the table; text and md */
} Table;

/* An empty table in `arena`; `col` is kept, not copied. */
Table table_new(Arena *arena, const char *record, const Column *col, int n_cols);
/* A new last row; its cells are to be filled in. */
Cell *table_row(Table *t);
/* Where the last row is; of all rows or of none. */
void table_place(Table *t, RowPlace place);

Cell cell_text(const char *s); /* NULL: empty */
/* Cells of one kind each; their texts live in the arena. */
Cell cell_int(Arena *a, int64_t v);
Cell cell_real(Arena *a, double v);
Cell cell_bytes(Arena *a, int64_t v); /* "16 MiB" for people, bytes for programs */
Cell cell_bool(bool b);               /* "yes" or empty */
Cell cell_shape(Arena *a, const int64_t *v, int n);
Cell cell_texts(Arena *a, const char *const *s, int n); /* joined by ", " */

typedef struct {
    int width; /* columns of the terminal; 0: as wide as it comes */
    bool color;
} TableLook;
/* The cells of row r as members of the object that `w` is in. */
void table_json_row(JsonWriter *w, const Table *t, int r);
/* `format` is one of text, jsonl, csv, md; a JSON document is made of rows (document.h). */
const char *table_render(const Table *t, const char *format, TableLook look, Arena *arena);
/* The columns that a text takes on a terminal. */
int table_text_width(const char *s);
/* Lines wider than `width` go on in further ones, broken at spaces, under what follows their first
 * gap of two spaces (else two columns further in). Escape sequences take no room; a word that is
 * wider than the line stays whole, so that a path can be copied. */
const char *table_fold(const char *s, int width, Arena *arena);
/* Words filled into lines of at most `width` columns, each indented; a word that is longer is cut
 * into pieces. No newline at the end. */
const char *table_wrap(const char *s, int width, int indent, Arena *arena);
/* `s` without control characters, at most `width` columns (0: all), cut with an ellipsis. */
const char *table_clean(const char *s, int width, Arena *arena);
#endif
