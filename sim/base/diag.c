/* Collecting and printing diagnostics, and finding the nearest known word.
 * Refuses to decide what is an error: callers bring code, place and words; the table in codes.c
 * brings the exit code.
 */
#include "base/diag.h"
#include "base/text.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const Loc diag_nowhere = {NULL, 0, 0};

enum {
    LINE_WIDTH = 120,  /* longer source lines are cut around the caret */
    MESSAGE = 600,     /* longer messages quote too much: their middle is left out */
    NAME_LONGEST = 96, /* longer words are no typing mistakes of ours */
};

struct DiagSource {
    struct DiagSource *next;
    const char *file, *text;
    size_t n;
};

/* ---- collecting ---- */

Diags *diags_new(Arena *arena) {
    Diags *d = ARENA_NEW(arena, Diags);
    d->arena = arena;
    return d;
}

void diags_source(Diags *d, const char *file, const char *text, size_t n) {
    struct DiagSource *s = d->sources;
    while (s && strcmp(s->file, file) != 0) s = s->next;
    if (!s) {
        s = ARENA_NEW(d->arena, struct DiagSource);
        s->file = arena_strdup(d->arena, file);
        s->next = d->sources;
        d->sources = s;
    }
    /* a byte order mark is not part of the first line */
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, n -= 3;
    s->text = arena_strndup(d->arena, text, n);
    s->n = n;
}

struct DiagOrigins {
    const char *file;
    const DiagOrigin *origin;
    int n;
};

void diags_origins(Diags *d, const char *file, const DiagOrigin *origin, int n) {
    d->origins = ARENA_NEW(d->arena, struct DiagOrigins);
    *d->origins = (struct DiagOrigins){arena_strdup(d->arena, file), origin, n};
}
void diags_words(Diags *d, DiagWords *words, const char *of) {
    d->words = words;
    d->words_of = of;
}
Loc diags_origin(const Diags *d, Loc made) {
    const struct DiagOrigins *o = d->origins;
    if (!o || !made.file || strcmp(made.file, o->file) != 0) return made;
    int first = 0, behind = o->n; /* the last one that does not stand behind it */
    while (first < behind) {
        int i = (first + behind) / 2;
        const DiagOrigin *x = &o->origin[i];
        if (x->line < made.line || (x->line == made.line && x->col <= made.col)) first = i + 1;
        else behind = i;
    }
    return first && o->origin[first - 1].from.file ? o->origin[first - 1].from : made;
}

const DiagCode *diag_code(const char *code) {
    for (int i = 0; i < n_diag_codes; i++)
        if (strcmp(diag_codes[i].code, code) == 0) return &diag_codes[i];
    return NULL;
}

/* Which exit code wins. Higher is more important; 0 for none. */
static int exit_rank(int code) {
    static const int order[] = {0, 1, 2, 3, 4, 5, 70};
    for (int i = 0; i < (int)(sizeof order / sizeof order[0]); i++)
        if (order[i] == code) return i;
    return 1;
}

static bool same_place(const Diag *a, const Diag *b) {
    return a->severity == b->severity && a->loc.line == b->loc.line && a->loc.col == b->loc.col &&
           strcmp(a->code, b->code) == 0 && text_same(a->loc.file, b->loc.file);
}

/* ---- the same of many layers ---- */

/* A line of a plan with a `*` is wrong in every layer that it names: said once, and counted. */
struct DiagFold {
    const char *first; /* its message */
    int64_t *index;    /* of the others, without repetition */
    int n, cap;
};

/* A whole number after a name and a dot, as in "layers.12": its value and end, or -1. */
static int64_t index_at(const char *text, const char *p, const char **end) {
    if (p - text < 2 || p[-1] != '.' || !(isalpha((unsigned char)p[-2]) || p[-2] == '_')) return -1;
    int64_t v = 0;
    const char *q = p;
    for (; isdigit((unsigned char)*q) && q - p < 12; q++) v = v * 10 + (*q - '0');
    *end = q;
    return q == p || isalnum((unsigned char)*q) ? -1 : v;
}
/* Is b what a says, with one index of a path replaced throughout? *was: where it stands in a; *is:
 * b's. */
static bool same_but_for_index(const char *a, const char *b, const char **was, int64_t *is) {
    int64_t from = -1, to = -1;
    *was = a;
    for (const char *p = a, *q = b;;) {
        const char *pe, *qe;
        int64_t x = index_at(a, p, &pe), y = index_at(b, q, &qe);
        if (x >= 0 && y >= 0 && (x != y || x == from)) {
            if (from < 0) from = x, to = y, *was = p;
            if (x != from || y != to) return false;
            p = pe, q = qe;
            continue;
        }
        if (*p != *q) return false;
        if (!*p) break;
        p++, q++;
    }
    *is = to;
    return from >= 0;
}
static bool fold(Arena *a, Diag *g, const char *message) {
    const char *first = g->fold ? g->fold->first : g->message, *at;
    int64_t index;
    if (g->fold && strcmp(first, message) == 0) return true;
    if (!same_but_for_index(first, message, &at, &index)) return false;
    if (!g->fold) {
        g->fold = ARENA_NEW(a, struct DiagFold);
        g->fold->first = first;
    }
    struct DiagFold *f = g->fold;
    bool known = false; /* they come in order, mostly */
    for (int i = f->n - 1; i >= 0 && !known && f->index[f->n - 1] >= index; i--)
        known = f->index[i] == index;
    if (known) return true;
    *ARENA_PUSH(a, f->index, f->n, f->cap) = index;
    int word = 0; /* "layers" */
    while (at - 2 - word >= first &&
           (isalnum((unsigned char)at[-2 - word]) || at[-2 - word] == '_'))
        word++;
    bool plural = word > 1 && at[-2] == 's';
    g->message = arena_printf(a, "%s, and %d more %s%.*s", first, f->n, plural ? "" : "of ",
                              plural && f->n == 1 ? word - 1 : word, at - 1 - word);
    return true;
}

static int importance(const Diag *g) { return (2 - (int)g->severity) * 100 + exit_rank(g->exit); }

/* A name of 4096 characters shall not bury the message that quotes it. */
static const char *shortened(Arena *a, char *s) {
    size_t n = strlen(s);
    if (n <= MESSAGE) return s;
    char *head = s + MESSAGE * 2 / 3, *tail = s + n - MESSAGE / 4;
    while (((unsigned char)*head & 0xC0) == 0x80) head--;
    while (((unsigned char)*tail & 0xC0) == 0x80) tail++;
    *head = 0;
    return arena_printf(a, "%s ... %s", s, tail);
}

/* Does something that the message quotes begin with a quote that a word processor has made? */
static bool typographic(const char *message) {
    static const char *const quotes[] = {"\u201C", "\u201D", "\u201E",
                                         "\u2018", "\u2019", "\u00AB"};
    for (const char *at = message; (at = strchr(at, '\'')); at++)
        for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++)
            if (!strncmp(at + 1, quotes[i], strlen(quotes[i]))) return true;
    return false;
}

void diag_add(Diags *d, DiagHead head, const char *fmt, ...) {
    const DiagCode *row = diag_code(head.code);
    assert(row && "a diagnostic code that the table does not know");
    Diag g = {.severity = head.severity, .loc = head.loc};
    g.code = row ? row->code : arena_strdup(d->arena, head.code);
    if (head.severity == DIAG_ERROR) g.exit = !row ? 70 : row->exit ? row->exit : 1;
    va_list ap;
    va_start(ap, fmt);
    g.message = shortened(d->arena, arena_vprintf(d->arena, fmt, ap));
    va_end(ap);
    for (int i = 0; i < d->n; i++)
        if (same_place(&d->item[i], &g) &&
            (strcmp(d->item[i].message, g.message) == 0 || fold(d->arena, &d->item[i], g.message)))
            return;
    if (head.severity == DIAG_ERROR && typographic(g.message))
        g.hint = "typographic quotes are part of the text here: write \" or none";
    else if (head.hint)
        g.hint = d->words ? d->words(d->arena, d->words_of, head.hint)
                          : arena_strdup(d->arena, head.hint);
    else if (row && head.severity == DIAG_ERROR) g.hint = row->help;
    if (head.loc.file) g.loc.file = arena_strdup(d->arena, head.loc.file);
    if (d->n < DIAG_KEEP) {
        *ARENA_PUSH(d->arena, d->item, d->n, d->cap) = g;
        return;
    }
    /* Full: an error must not be lost to notes, nor the exit code to a lesser one. */
    int least = d->n - 1;
    for (int i = d->n - 2; i >= 0; i--)
        if (importance(&d->item[i]) < importance(&d->item[least])) least = i;
    if (importance(&d->item[least]) < importance(&g)) d->item[least] = g;
    d->hidden++;
}

bool diag_knows_better(const Diag *g) {
    const DiagCode *row = diag_code(g->code);
    return g->hint && (!row || !row->help || strcmp(g->hint, row->help) != 0);
}

int diags_errors(const Diags *d) {
    int n = 0;
    for (int i = 0; i < d->n; i++) n += d->item[i].severity == DIAG_ERROR;
    return n;
}

int diags_exit(const Diags *d) {
    int best = 0;
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR && exit_rank(d->item[i].exit) > exit_rank(best))
            best = d->item[i].exit;
    return best;
}

/* ---- printing ---- */

/* Text that came from a file goes to a terminal: control characters are shown, never sent. */
static void put_text(FILE *out, Arena *a, const char *s) {
    char *flat = arena_strdup(a, s);
    for (char *p = flat; *p; p++)
        if (*p == '\n' || *p == '\t') *p = ' ';
    fputs(text_visible(a, flat), out);
}
/* A source line as it is shown: what is hostile as an escape, so that the character of the caret
 * moves. Tabs stay. */
static const char *shown_line(Arena *a, const char *line, size_t *n, int *col) {
    Str out = str_new(a);
    int at = 1, moved = *col;
    for (size_t i = 0, k; i < *n; i += k, at++) {
        int32_t code;
        size_t before = out.n;
        k = utf8_char(line + i, *n - i, &code);
        if (!utf8_is_hostile(code) || code == '\t') {
            str_addn(&out, line + i, k);
            continue;
        }
        text_add_escape(&out, line + i, k, code);
        if (at < *col) moved += (int)(out.n - before) - 1;
    }
    *n = out.n;
    *col = moved;
    return out.s;
}

/* Of a line that may be a whole file the part that can be shown: so many characters on both sides
 * of `col`, which is moved, that what is cut off beyond them changes nothing. */
static const char *near_part(const char *line, size_t *n, int *col) {
    enum { SIDE = 2 * LINE_WIDTH };
    size_t from = 0, to = 0, i = 0;
    int at = 1, first = *col > SIDE ? *col - SIDE : 1, last = (*col > 0 ? *col : 1) + SIDE;
    int32_t code;
    for (; i < *n && at <= last; at++) {
        if (at == first) from = i;
        i += (unsigned char)line[i] < 0x80 ? 1 : utf8_char(line + i, *n - i, &code);
        to = i;
    }
    *n = to - from;
    if (*col > 0) *col -= first - 1;
    return line + from;
}
bool diags_line(const Diags *d, const char *file, int at, const char **line, size_t *n) {
    for (struct DiagSource *s = d->sources; s; s = s->next) {
        if (!file || strcmp(s->file, file) != 0) continue;
        const char *p = s->text, *end = s->text + s->n;
        for (int i = 1; i < at; i++) {
            p = memchr(p, '\n', (size_t)(end - p));
            if (!p) return false;
            p++;
        }
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        *line = p;
        *n = (size_t)((stop ? stop : end) - p);
        if (*n && p[*n - 1] == '\r') --*n;
        return true;
    }
    return false;
}

/* What begins and ends a colour; "" where there is none. */
typedef struct {
    const char *on, *off;
} Tint;

/* Prints the part of a line around character `col` (from 1) that fits in `width` columns (0:
 * LINE_WIDTH characters), and the caret under it. */
static void print_source(FILE *out, const char *line, size_t n, int col, int width, Tint tint) {
    enum { AROUND = 2 + 3 + 3 }; /* the indentation, "..." on both sides */
    size_t chars = 0, room = width <= 0 || width > LINE_WIDTH + AROUND ? LINE_WIDTH
                             : width > 2 * AROUND                      ? (size_t)width - AROUND
                                                                       : AROUND;
    int32_t code;
    for (size_t i = 0; i < n; chars++) i += utf8_char(line + i, n - i, &code);
    size_t at = col > 0 ? (size_t)col - 1 : 0, first = 0, last = chars;
    if (at > chars) at = chars;
    if (chars > room) {
        first = at > room / 2 ? at - room / 2 : 0;
        if (first + room > chars) first = chars - room;
        last = first + room;
    }
    /* the caret's line repeats the tabs, so that both lines are expanded alike; where they must
     * fit, a tab is a space */
    char pad[LINE_WIDTH + 8];
    size_t npad = 0, c = 0;
    fputs("  ", out);
    if (first) fputs("...", out), npad = 3, memcpy(pad, "   ", 3);
    for (size_t i = 0; i < n; c++) {
        size_t k = utf8_char(line + i, n - i, &code);
        if (c >= first && c < last) {
            bool tab = line[i] == '\t';
            fwrite(tab && width > 0 ? " " : line + i, 1, k, out);
            if (c < at) pad[npad++] = tab && width <= 0 ? '\t' : ' ';
        }
        i += k;
    }
    fprintf(out, "%s\n", last < chars ? "..." : "");
    if (col > 0) fprintf(out, "  %.*s%s^%s\n", (int)npad, pad, tint.on, tint.off);
}

const char *const severity_words[N_SEVERITIES] = {"error", "warning", "note"};

const char *diag_help(Arena *arena, const Diag *g) {
    bool replacement = g->hint && g->hint[0] && !strchr(g->hint, ' ');
    return replacement ? arena_printf(arena, "did you mean '%s'?", g->hint) : g->hint;
}
static void print_one(const Diags *d, const Diag *g, FILE *out, bool color, int width) {
    static const char *const tint[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
    const char *bold = color ? "\033[1m" : "", *on = color ? tint[g->severity] : "",
               *off = color ? "\033[0m" : "";
    fputs(bold, out);
    put_text(out, d->arena, g->loc.file ? g->loc.file : "shardproof");
    if (g->loc.file && g->loc.line > 0) fprintf(out, ":%d", g->loc.line);
    if (g->loc.file && g->loc.line > 0 && g->loc.col > 0) fprintf(out, ":%d", g->loc.col);
    fprintf(out, ":%s %s%s:%s ", off, on, severity_words[g->severity], off);
    put_text(out, d->arena, g->message);
    fprintf(out, " [%s]\n", g->code);
    const char *line;
    size_t n;
    int col = g->loc.col;
    if (g->loc.line > 0 && diags_line(d, g->loc.file, g->loc.line, &line, &n)) {
        line = near_part(line, &n, &col);
        line = shown_line(d->arena, line, &n, &col);
        print_source(out, line, n, col, width, (Tint){on, off});
    }
    if (!g->hint) return;
    fputs("  = help: ", out);
    put_text(out, d->arena, diag_help(d->arena, g));
    fputs("\n", out);
}

/* In one write: the standard error has no buffer, and a launcher that brings the words of several
 * processes together would put another's between two parts of a line. */
static void print_whole(const Diags *d, const Diag *g, FILE *out, bool color, int width) {
    char *text = NULL;
    size_t n = 0;
    FILE *all = open_memstream(&text, &n);
    print_one(d, g, all ? all : out, color, width);
    if (!all) return;
    if (fclose(all) == 0) fwrite(text, 1, n, out);
    else print_one(d, g, out, color, width);
    free(text);
}

/* Position of a file among those that occur, so that files keep the order of their first
 * diagnostic. */
static int file_order(const Diags *d, const char *file) {
    for (int i = 0; i < d->n; i++)
        if (text_same(d->item[i].loc.file, file)) return i;
    return d->n;
}

void diags_print(const Diags *d, FILE *out, bool color) { diags_print_fit(d, out, color, 0); }
void diags_print_fit(const Diags *d, FILE *out, bool color, int width) {
    int order[DIAG_KEEP], file[DIAG_KEEP];
    for (int i = 0; i < d->n; i++) {
        file[i] = file_order(d, d->item[i].loc.file);
        int j = i;
        for (; j > 0; j--) {
            const Loc *a = &d->item[order[j - 1]].loc, *b = &d->item[i].loc;
            int fa = file[order[j - 1]];
            bool after = fa != file[i]        ? fa > file[i]
                         : a->line != b->line ? a->line > b->line
                                              : a->col > b->col;
            if (!after) break;
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
    for (int i = 0; i < d->n; i++) print_whole(d, &d->item[order[i]], out, color, width);
    if (d->hidden) fprintf(out, "shardproof: %d more of these are not shown\n", d->hidden);
}

/* ---- nearest word ---- */

static int min3(int a, int b, int c) { return a < b ? (a < c ? a : c) : (b < c ? b : c); }

/* Edit distance with transpositions of neighbours (optimal string alignment). */
static int distance(const char *a, size_t na, const char *b, size_t nb, bool fold) {
    int row[3][NAME_LONGEST + 1];
    for (size_t j = 0; j <= nb; j++) row[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int x = (unsigned char)a[i - 1], y = (unsigned char)b[j - 1];
            int px = i > 1 ? (unsigned char)a[i - 2] : 0, py = j > 1 ? (unsigned char)b[j - 2] : 0;
            if (fold) x = tolower(x), y = tolower(y), px = tolower(px), py = tolower(py);
            now[j] = min3(up[j] + 1, now[j - 1] + 1, up[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == py && px == y && up2[j - 2] + 1 < now[j])
                now[j] = up2[j - 2] + 1;
        }
    }
    return row[na % 3][nb];
}

/* The shortest name that goes on where the word ends: h100, h100-sxm. NULL: none. */
static const char *begun(const char *word, size_t n, const char *const *names) {
    const char *best = NULL;
    for (; n >= 3 && *names; names++)
        if (!strncasecmp(word, *names, n) && (*names)[n] && strchr("-_.", (*names)[n]) &&
            (!best || strlen(*names) < strlen(best)))
            best = *names;
    return best;
}
/* How many edits a word of n letters may be away from what was meant. */
static int farthest(size_t n) {
    int limit = (int)(n / 3);
    return limit < 1 ? 1 : limit > 4 ? 4 : limit;
}
int diag_nearest_all(const char *word, const char *const *names, const char **out, int most) {
    const size_t n = strlen(word);
    int best = n && n <= NAME_LONGEST ? farthest(n) : -1, found = 0;
    for (; *names && best >= 0; names++) {
        const size_t m = strlen(*names);
        if (m > NAME_LONGEST || m + (size_t)best < n || n + (size_t)best < m) continue;
        const int folded = distance(word, n, *names, m, true);
        if (folded > best) continue;
        if (folded < best) found = 0;
        best = folded;
        bool had = found == most;
        for (int i = 0; i < found && !had; i++) had = !strcmp(out[i], *names);
        if (!had) out[found++] = *names;
    }
    return found;
}
const char *diag_nearest(const char *word, const char *const *names) {
    const char *const *all = names;
    size_t n = strlen(word);
    if (!n || n > NAME_LONGEST) return NULL;
    const int limit = farthest(n);
    const char *best = NULL;
    int best_folded = limit + 1, best_exact = 0;
    for (; *names; names++) {
        size_t m = strlen(*names);
        if (m > NAME_LONGEST || m + (size_t)limit < n || n + (size_t)limit < m) continue;
        int folded = distance(word, n, *names, m, true);
        if (folded > best_folded || folded > limit) continue;
        if (folded && (size_t)folded >= n && (size_t)folded >= m) continue; /* b for a */
        int exact = distance(word, n, *names, m, false);
        if (folded == best_folded && best && exact >= best_exact) continue;
        best = *names;
        best_folded = folded;
        best_exact = exact;
    }
    return best ? best : begun(word, n, all);
}
