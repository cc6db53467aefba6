/* Diagnostics: what is wrong in the user's files and options, collected and printed together.
 * A diagnostic has a stable code, a severity, a message, a place (file:line:col, from 1, columns in
 * characters), and a hint that says how to mend it. The exit code of a run follows from the codes.
 * Refuses to print while collecting: the caller decides when. */
#ifndef SP_BASE_DIAG_H
#define SP_BASE_DIAG_H
#include "base/arena.h"
#include <stdio.h>

typedef struct {
    const char *file; /* NULL: no place */
    int line, col;    /* 0: unknown */
} Loc;
/* Of what stands in no file: a word of the command line, the machine, the whole plan. */
extern const Loc diag_nowhere;

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE, N_SEVERITIES } Severity;
extern const char *const severity_words[N_SEVERITIES]; /* "error", "warning", "note" */

typedef struct {
    const char *code; /* "E0203" */
    Severity severity;
    const char *message;
    const char *hint; /* how to mend it; NULL: a note or a warning without */
    Loc loc;
    int exit; /* exit code that an error of this kind asks for */
    struct DiagFold
        *fold; /* NULL, or the others that differ in an index only: `message` counts them */
} Diag;

typedef struct Diags {
    Arena *arena;
    Diag *item;
    int n, cap;
    struct DiagSource *sources;
    struct DiagOrigins *origins;
    const char *(*words)(Arena *a, const char *of, const char *hint); /* NULL: as they are */
    const char *words_of;
    int hidden; /* identical or surplus diagnostics that were not kept (at most DIAG_KEEP are) */
} Diags;
enum { DIAG_KEEP = 200 };

/* A row of the table of codes: what `list codes` and `explain CODE` print. */
typedef struct {
    const char *code;
    int exit; /* exit code for an error of this kind, 0 for notes */
    const char *title;
    const char *text; /* some sentences: what it means, why, how to mend it */
    const char *help; /* what to do, where a diagnostic says nothing more exact; NULL: of notes, and
                         of E0212 */
} DiagCode;
extern const DiagCode diag_codes[];
extern const int n_diag_codes;
/* The row of a code, or NULL. */
const DiagCode *diag_code(const char *code);

/* A new empty collection whose texts live in `arena`. */
Diags *diags_new(Arena *arena);
/* Remembers a file's text (copied), so that its lines can be shown under a diagnostic. */
void diags_source(Diags *d, const char *file, const char *text, size_t n);
/* Line `at` (from 1) of a remembered file, *n bytes of its text; false: there is none. */
bool diags_line(const Diags *d, const char *file, int at, const char **line, size_t *n);
/* A text that was made from another one (a plan from a framework's file): from this place of it on,
 * to the next entry, what is said of it is said of `from`; without a file there, of itself. */
typedef struct {
    int line, col;
    Loc from;
} DiagOrigin;
/* Remembers the origins of the text `file`, in the order of its lines and columns. The array is not
 * copied. */
void diags_origins(Diags *d, const char *file, const DiagOrigin *origin, int n);
/* Helps of errors and notes about such a text, in the words of the one that it was made from. */
typedef const char *DiagWords(Arena *a, const char *of, const char *hint);
/* Puts every help from here on in the words of `of`. */
void diags_words(Diags *d, DiagWords *words, const char *of);
/* Where a place comes from: itself, if its text was made from nothing else. */
Loc diags_origin(const Diags *d, Loc made);
/* What a diagnostic has beside its message; an error whose `hint` is NULL gets its code's help. */
typedef struct {
    Severity severity;
    const char *code; /* must be in the table */
    Loc loc;
    const char *hint;
} DiagHead;
/* Adds one; all texts are copied. Identical ones are kept once. Those of one place that say the
 * same of another index of a path (layers.0.x, layers.1.x) are one: "..., and 125 more layers". */
void diag_add(Diags *d, DiagHead head, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define DIAG(d, severity, code, loc, hint, ...)                                                    \
    diag_add((d), (DiagHead){(severity), (code), (loc), (hint)}, __VA_ARGS__)
/* Does it say more than its code's help? */
bool diag_knows_better(const Diag *g);
#define diag_error(d, code, loc, hint, ...) DIAG(d, DIAG_ERROR, code, loc, hint, __VA_ARGS__)
#define diag_warn(d, code, loc, hint, ...) DIAG(d, DIAG_WARNING, code, loc, hint, __VA_ARGS__)
#define diag_note(d, code, loc, hint, ...) DIAG(d, DIAG_NOTE, code, loc, hint, __VA_ARGS__)
/* Number of errors so far (of those kept: at most DIAG_KEEP). */
int diags_errors(const Diags *d);
/* The exit code the collected errors ask for: 0 if there is none, else the first of 70, 5, 4, 3, 2,
 * 1 that occurs. */
int diags_exit(const Diags *d);
/* Prints all, in the order of file and line for one file, with source line, caret and hint. */
void diags_print(const Diags *d, FILE *out, bool color);
/* The same for a terminal of `width` columns: source lines are cut to it, not messages. 0: any
 * width. */
void diags_print_fit(const Diags *d, FILE *out, bool color, int width);

/* What people read as help: a hint of one word is a replacement, "did you mean 'tp'?"; records of
 * the program's own formats carry it bare. NULL: there is none. */
const char *diag_help(Arena *arena, const Diag *g);

/* The nearest of `names` (NULL-terminated) to `word` by edit distance with transpositions, else the
 * shortest that goes on where the word ends (h100, h100-sxm), or NULL if none is near. */
const char *diag_nearest(const char *word, const char *const *names);
/* All that are as near as the nearest, each once, of more the first `most`; to `out`. Returns their
 * number. */
int diag_nearest_all(const char *word, const char *const *names, const char **out, int most);
#endif
