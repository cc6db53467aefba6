/* The writers of table.h: aligned text, Markdown, CSV (RFC 4180), JSON, JSON Lines. */
#include "cli/table.h"
#include "base/text.h"
#include "trace/trace.h"
#include "formats/json.h"
#include <ctype.h>
#include <string.h>

enum { GUTTER = 2, NARROWEST = 6, SHORTEST = 8, NARROWEST_WRAP = 16, BELOW = 6 };

Table table_new(Arena *arena, const char *record, const Column *col, int n_cols) {
    return (Table){
        .arena = arena, .record = record, .n_cols = n_cols, .col = col, .notes = str_new(arena)};
}
Cell *table_row(Table *t) {
    Cell *c = ARENA_ARRAY(t->arena, Cell, t->n_cols);
    *ARENA_PUSH_LARGE(t->arena, t->row, t->n_rows, t->cap_rows) = c;
    return c;
}
void table_place(Table *t, RowPlace place) {
    *ARENA_PUSH_LARGE(t->arena, t->place, t->n_places, t->cap_places) = place;
}

/* ---- cells ---- */
Cell cell_text(const char *s) { return (Cell){s, s, NULL}; }
Cell cell_int(Arena *a, int64_t v) {
    const char *s = arena_printf(a, "%lld", (long long)v);
    return (Cell){s, s, s};
}
Cell cell_real(Arena *a, double v) {
    JsonWriter w = json_writer(a);
    json_real(&w, NULL, v);
    return (Cell){arena_printf(a, "%.3g", v), w.s.s, w.s.s};
}
Cell cell_bytes(Arena *a, int64_t v) {
    const char *s = arena_printf(a, "%lld", (long long)v);
    return (Cell){bytes_text(v, a), s, s};
}
Cell cell_bool(bool b) {
    return (Cell){b ? "yes" : NULL, b ? "true" : "false", b ? "true" : "false"};
}
Cell cell_shape(Arena *a, const int64_t *v, int n) {
    Str s = str_new(a);
    str_add(&s, "[");
    for (int i = 0; i < n; i++) str_addf(&s, "%s%lld", i ? ", " : "", (long long)v[i]);
    str_add(&s, "]");
    return (Cell){s.s, s.s, s.s};
}
Cell cell_texts(Arena *a, const char *const *s, int n) {
    Str all = str_new(a);
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '[');
    for (int i = 0; i < n; i++) {
        str_addf(&all, "%s%s", i ? ", " : "", s[i] ? s[i] : "-");
        json_str(&w, NULL, s[i]);
    }
    json_close(&w, ']');
    return (Cell){all.s, all.s, w.s.s};
}

/* ---- widths ---- */
/* Code point of the UTF-8 character at s and its bytes; a byte that is none counts as U+FFFD. */
static uint32_t decode(const char *s, int *bytes) {
    int32_t code;
    *bytes = (int)utf8_char(s, strnlen(s, 4), &code);
    return code < 0 ? 0xFFFD : (uint32_t)code;
}
/* wcwidth without a locale: combining marks 0, East Asian and emoji blocks 2. */
static int char_width(uint32_t c) {
    static const struct {
        uint32_t from, to;
        int width;
    } range[] = {{0x300, 0x36F, 0},     {0x200B, 0x200F, 0},  {0x1100, 0x115F, 2},
                 {0x2E80, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},  {0xF900, 0xFAFF, 2},
                 {0xFE00, 0xFE0F, 0},   {0xFE30, 0xFE6F, 2},  {0xFF00, 0xFF60, 2},
                 {0x1F300, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i].from && c <= range[i].to) return range[i].width;
    return 1;
}
int table_text_width(const char *s) {
    int w = 0, n;
    for (; *s; s += n) w += char_width(decode(s, &n));
    return w;
}
const char *table_clean(const char *s, int width, Arena *arena) {
    s = text_visible(arena, s);
    if (!width || table_text_width(s) <= width) return s;
    int w = 0, n = 0;
    const char *end = s;
    for (; *end; end += n) {
        w += char_width(decode(end, &n));
        if (w > width - 1) break;
    }
    return arena_printf(arena, "%.*s…", (int)(end - s), s);
}

static bool hidden(const Table *t, int col) {
    if (t->col[col].how & COL_EMPTY) {
        for (int r = 0; r < t->n_rows; r++)
            if (t->row[r][col].text && *t->row[r][col].text) return false;
        return true;
    }
    if (!(t->col[col].how & COL_OPTIONAL)) return false;
    const char *first = t->n_rows ? t->row[0][col].text : NULL;
    for (int r = 0; r < t->n_rows; r++) {
        const char *s = t->row[r][col].text;
        bool empty = !s || !*s, first_empty = !first || !*first;
        if (empty != first_empty || (!empty && strcmp(s, first) != 0)) return false;
    }
    return t->n_rows != 1 || !first || !*first; /* one row: shown if it says something */
}
static const char *shown(const Cell *c) { return c->text ? c->text : ""; }

/* ---- text that has to fit a terminal ---- */
/* A table on its way to a terminal: its texts may get shorter and its columns move before they are
 * cut. */
typedef struct {
    const Table *t;
    Arena *a;
    int limit;
    const char **text; /* of row r and column c: [r * n_cols + c] */
    int *width;
    bool *hide, *below;
    size_t *prefix; /* bytes that all cells of a column begin with and that are left out */
} Fit;
static const char **cell_at(const Fit *f, int r, int c) { return &f->text[r * f->t->n_cols + c]; }
static void measure(Fit *f, int c) {
    f->width[c] = table_text_width(f->t->col[c].title);
    for (int r = 0; r < f->t->n_rows; r++) {
        int w = table_text_width(*cell_at(f, r, c));
        if (w > f->width[c]) f->width[c] = w;
    }
}
static bool in_line(const Fit *f, int c) { return !f->hide[c] && !f->below[c]; }
static bool fits(const Fit *f) {
    int sum = -GUTTER;
    for (int c = 0; c < f->t->n_cols; c++)
        if (in_line(f, c)) sum += f->width[c] + GUTTER;
    return sum <= f->limit;
}
/* What all cells of a column begin with, up to its last separator; 0: nothing, or one cell is no
 * more than that. */
static size_t common_prefix(const Fit *f, int c) {
    const char *first = NULL;
    size_t n = 0;
    int rows = 0;
    for (int r = 0; r < f->t->n_rows; r++) {
        const char *s = *cell_at(f, r, c);
        if (!*s) continue;
        if (!first) n = strlen(first = s);
        for (size_t k = 0; k < n; k++)
            if (s[k] != first[k]) n = k;
        rows++;
    }
    while (n && !strchr(".:/", first[n - 1])) n--;
    for (int r = 0; r < f->t->n_rows && n; r++)
        if (strlen(*cell_at(f, r, c)) == n) n = 0;
    return rows > 1 ? n : 0;
}
/* "grad.layers.3.q_proj" -> "grad.3.q_proj": a number begins no other name. */
static const char *without_layers(const char *s, Arena *a) {
    const char *at = strstr(s, "layers.");
    if (!at || (at > s && at[-1] != '.') || !isdigit((unsigned char)at[7])) return s;
    return arena_printf(a, "%.*s%s", (int)(at - s), s, at + 7);
}
static void shorten_names(Fit *f) {
    for (int c = 0; c < f->t->n_cols && !fits(f); c++) {
        if (!(f->t->col[c].how & COL_PREFIX) || f->hide[c]) continue;
        size_t n = f->prefix[c] = common_prefix(f, c);
        for (int r = 0; r < f->t->n_rows; r++) {
            const char **s = cell_at(f, r, c);
            if (**s) *s = n ? *s + n : without_layers(*s, f->a);
        }
        measure(f, c);
    }
}
static void drop_columns(Fit *f) {
    for (int c = f->t->n_cols - 1; c >= 0 && !fits(f); c--)
        if (f->t->col[c].how & COL_DROP) f->hide[c] = true;
}
/* Some columns go below their rows; what was left out may have room then. */
static void put_columns_below(Fit *f) {
    for (int c = 0; c < f->t->n_cols; c++)
        if (f->t->col[c].how & COL_BELOW && !f->hide[c]) f->below[c] = true;
    for (int c = 0; c < f->t->n_cols; c++) {
        if (!(f->t->col[c].how & COL_DROP) || !f->hide[c] || hidden(f->t, c)) continue;
        f->hide[c] = false;
        f->hide[c] = !fits(f);
    }
}
/* What the table does not show any more. */
static void add_left_out(Str *s, const Fit *f) {
    const Table *t = f->t;
    Str names = str_new(f->a);
    for (int c = 0; c < t->n_cols; c++) {
        const char *whole = NULL;
        for (int r = 0; f->prefix[c] && !f->hide[c] && r < t->n_rows && !whole; r++)
            if (*shown(&t->row[r][c])) whole = shown(&t->row[r][c]);
        if (whole) str_addf(s, "%s: without %.*s\n", t->col[c].title, (int)f->prefix[c], whole);
        if (f->hide[c] && !hidden(t, c))
            str_addf(&names, "%s%s", names.n ? ", " : "", t->col[c].title);
    }
    if (names.n) {
        const char *text = arena_printf(
            f->a, "left out, as the terminal is narrow: %s (--format csv has all)", names.s);
        str_addf(s, "%s\n", table_wrap(text, f->limit, 0, f->a));
    }
}
/* Narrows the widest of the columns with the flag until the line fits or they are as narrow as
 * `least`. */
static void narrow(Fit *f, int flag, int least) {
    while (!fits(f)) {
        int widest = -1;
        for (int c = 0; c < f->t->n_cols; c++) {
            if (!in_line(f, c) || f->t->col[c].right || (flag && !(f->t->col[c].how & flag)))
                continue;
            if (widest < 0 || f->width[c] > f->width[widest]) widest = c;
        }
        if (widest < 0 || f->width[widest] <= least) return;
        f->width[widest]--;
    }
}
static void make_fit(Fit *f) {
    shorten_names(f);
    drop_columns(f);
    narrow(f, COL_SHORT, SHORTEST);
    if (!fits(f)) {
        for (int c = 0; c < f->t->n_cols; c++)
            if (f->t->col[c].how & COL_SHORT) measure(f, c);
        put_columns_below(f);
        narrow(f, COL_SHORT, SHORTEST);
    }
    narrow(f, COL_WRAP, NARROWEST_WRAP);
    for (int c = f->t->n_cols - 1; c >= 0 && !fits(f); c--)
        if (f->t->col[c].how & COL_LAST) f->hide[c] = true;
    narrow(f, 0, NARROWEST);
}

/* ---- text and Markdown ---- */
static void pad(Str *s, int n) {
    while (n-- > 0) str_add(s, " ");
}
static void put_cell(Str *s, const char *text, int width, bool right, bool last) {
    int w = table_text_width(text);
    if (right) pad(s, width - w);
    str_add(s, text);
    if (!right && !last) pad(s, width - w);
}
/* "reduce_scatter(tp)" in 14 columns: "reduce_sc…(tp)". */
static const char *cut(const char *s, int width, bool keep_end, Arena *a) {
    const char *end = keep_end ? strrchr(s, '(') : NULL;
    int w = end ? table_text_width(end) : 0;
    if (!end || table_text_width(s) <= width || w + 4 > width) return table_clean(s, width, a);
    const char *head = arena_strndup(a, s, (size_t)(end - s));
    return arena_printf(a, "%s%s", table_clean(head, width - w, a), table_clean(end, 0, a));
}
const char *table_wrap(const char *s, int width, int indent, Arena *arena) {
    Str out = str_new(arena);
    int room = width - indent < 1 ? 1 : width - indent, col = 0;
    s = table_clean(s, 0, arena);
    for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
        const char *word = arena_strndup(arena, s, strcspn(s, " "));
        int w = table_text_width(word);
        s += strlen(word);
        if (col && col + 1 + w > room) {
            str_add(&out, "\n");
            col = 0;
        } else if (col) {
            str_add(&out, " ");
            col++;
        }
        for (int n; *word; word += n) {
            int k = char_width(decode(word, &n));
            if (col && col + k > room) {
                str_add(&out, "\n");
                col = 0;
            }
            if (!col) pad(&out, indent);
            str_addn(&out, word, (size_t)n);
            col += k;
        }
    }
    return out.s;
}
/* Bytes of an escape sequence at s (ESC [ ... letter), or 0. */
static size_t escape(const char *s) {
    if (s[0] != '\033' || s[1] != '[') return 0;
    size_t n = 2 + strspn(s + 2, "0123456789;");
    return n + (s[n] != 0);
}
static int columns(const char *s, size_t n) {
    int w = 0, k;
    for (const char *end = s + n; s < end; s += k) {
        if ((k = (int)escape(s))) continue;
        uint32_t c = decode(s, &k);
        w += char_width(c);
    }
    return w;
}
static void fold_line(Str *out, const char *s, size_t n, int width) {
    size_t lead = strspn(s, " "), hang = lead + 2;
    /* what follows the first gap, if enough room is left there */
    for (size_t i = lead; i + 2 < n; i++) {
        if (s[i] != ' ' || s[i + 1] != ' ') continue;
        i += strspn(s + i, " ");
        int at = columns(s, i);
        if (at <= width / 2) hang = (size_t)at;
        break;
    }
    if ((int)hang > width / 2) hang = 2;
    int col = 0;
    for (size_t i = 0; i < n;) {
        size_t gap = strspn(s + i, " "), word = strcspn(s + i + gap, " \n");
        if (i + gap + word > n) word = n - i - gap;
        int w = columns(s + i + gap, word);
        size_t to =
            (int)hang + w <= width ? hang : lead + 2; /* a long word: further left, if that helps */
        if (i && gap && col > (int)to && col + (int)gap + w > width) {
            str_add(out, "\n");
            pad(out, (int)to);
            col = (int)to;
        } else {
            pad(out, (int)gap);
            col += (int)gap;
        }
        str_addn(out, s + i + gap, word);
        col += w;
        i += gap + word;
    }
}
const char *table_fold(const char *s, int width, Arena *arena) {
    Str out = str_new(arena);
    while (*s) {
        size_t n = strcspn(s, "\n");
        if (columns(s, n) > width) fold_line(&out, s, n, width);
        else str_addn(&out, s, n);
        if (s[n]) str_add(&out, "\n");
        s += n + (s[n] != 0);
    }
    return out.s;
}
/* The line of a row; cells that are wrapped have more of it in further lines. `rest` gets what is
 * left of each cell. */
static void put_line(Str *s, const Fit *f, const char **rest, int last, bool filled) {
    const Table *t = f->t;
    for (int c = 0; c < t->n_cols; c++) {
        if (!in_line(f, c)) continue;
        size_t n = strcspn(rest[c], "\n");
        put_cell(s, arena_strndup(f->a, rest[c], n), f->width[c], t->col[c].right,
                 c == last && !filled);
        rest[c] += n + (rest[c][n] == '\n');
        if (c != last) pad(s, GUTTER);
    }
}
static void trim(Str *s) {
    while (s->n && s->s[s->n - 1] == ' ') s->s[--s->n] = 0;
}
static void put_below(Str *s, const Fit *f, int r) {
    const Table *t = f->t;
    int title = 0;
    Str line = str_new(f->a);
    for (int c = 0; c < t->n_cols; c++)
        if (f->below[c] && t->col[c].how & COL_TITLED && table_text_width(t->col[c].title) > title)
            title = table_text_width(t->col[c].title);
    for (int c = 0; c < t->n_cols; c++) {
        const char *text = f->below[c] ? *cell_at(f, r, c) : "";
        if (!*text) continue;
        if (!(t->col[c].how & COL_TITLED)) {
            str_addf(&line, "%s%s", line.n ? "; " : "", text);
            continue;
        }
        pad(s, GUTTER);
        put_cell(s, t->col[c].title, title + GUTTER, false, false);
        str_addf(s, "%s\n",
                 table_clean(text,
                             f->limit > title + 3 * GUTTER ? f->limit - title - 2 * GUTTER : 0,
                             f->a));
    }
    if (line.n) str_addf(s, "%s\n", table_wrap(line.s, f->limit, BELOW, f->a));
}
/* The next of the lines after a row; *rest: where the one after it begins, NULL: it is the last. */
static const char *line_after(const char **rest, Arena *a) {
    const char *from = *rest, *end = strchr(from, '\n');
    *rest = end ? end + 1 : NULL;
    return table_clean(end ? arena_strndup(a, from, (size_t)(end - from)) : from, 0, a);
}
static void put_after(Str *s, const Fit *f, int r) {
    for (const char *rest = f->t->after ? f->t->after[r] : NULL; rest;) {
        const char *line = line_after(&rest, f->a);
        if (f->limit) str_addf(s, "%s\n", table_wrap(line, f->limit, GUTTER, f->a));
        else str_addf(s, "  %s\n", line);
    }
}
static const char *render_text(const Table *t, TableLook look, Arena *a) {
    Fit f = {.t = t, .a = a, .limit = look.width};
    f.text = ARENA_ARRAY(a, const char *, (int64_t)t->n_rows * t->n_cols + 1);
    f.width = ARENA_ARRAY(a, int, t->n_cols);
    f.hide = ARENA_ARRAY(a, bool, t->n_cols);
    f.below = ARENA_ARRAY(a, bool, t->n_cols);
    f.prefix = ARENA_ARRAY(a, size_t, t->n_cols);
    for (int r = 0; r < t->n_rows; r++)
        for (int c = 0; c < t->n_cols; c++)
            *cell_at(&f, r, c) = table_clean(shown(&t->row[r][c]), 0, a);
    for (int c = 0; c < t->n_cols; c++) {
        f.hide[c] = hidden(t, c);
        measure(&f, c);
    }
    if (look.width && !fits(&f)) make_fit(&f);
    int last = 0;
    for (int c = 0; c < t->n_cols; c++)
        if (in_line(&f, c)) last = c;
    const char **rest = ARENA_ARRAY(a, const char *, t->n_cols);
    Str s = str_new(a);
    for (int r = t->n_rows ? -1 : 0; r < t->n_rows; r++) { /* no head of nothing */
        bool head = r < 0 && look.color, more = false;
        for (int c = 0; c < t->n_cols; c++) {
            const char *text = r < 0 ? t->col[c].title : *cell_at(&f, r, c);
            bool wrap = r >= 0 && t->col[c].how & COL_WRAP && table_text_width(text) > f.width[c];
            rest[c] = !in_line(&f, c) ? ""
                      : wrap          ? table_wrap(text, f.width[c], 0, a)
                                      : cut(text, f.width[c], t->col[c].how & COL_SHORT, a);
        }
        if (head) str_add(&s, "\033[1;4m");
        put_line(&s, &f, rest, last, head);
        if (head) str_add(&s, "\033[0m");
        trim(&s);
        str_add(&s, "\n");
        do {
            more = false;
            for (int c = 0; c < t->n_cols; c++) more = more || *rest[c];
            if (!more) break;
            put_line(&s, &f, rest, last, false);
            trim(&s);
            str_add(&s, "\n");
        } while (more);
        if (r >= 0) put_below(&s, &f, r);
        if (r >= 0) put_after(&s, &f, r);
    }
    str_add(&s, text_visible_lines(a, t->notes.s, t->notes.n));
    add_left_out(&s, &f);
    return s.s;
}
static void md_cell(Str *s, const char *text) {
    char *flat = arena_strdup(s->a, text);
    for (char *p = flat; *p; p++)
        if (*p == '\n' || *p == '\r') *p = ' ';
    for (text = text_visible(s->a, flat); *text; text++) {
        if (*text == '|' || *text == '\\' || *text == '*' || *text == '_' || *text == '<' ||
            *text == '`')
            str_addn(s, "\\", 1);
        str_addn(s, text, 1);
    }
}
/* Lines after a row, in the first column that is shown. */
static void md_after(Str *s, const Table *t, int r) {
    for (const char *rest = r >= 0 && t->after ? t->after[r] : NULL; rest;) {
        const char *line = line_after(&rest, t->arena);
        for (int c = 0; c < t->n_cols; c++) {
            if (hidden(t, c)) continue;
            str_add(s, "| ");
            md_cell(s, line);
            str_add(s, " ");
            line = "";
        }
        str_add(s, "|\n");
    }
}
static const char *render_md(const Table *t, Arena *a) {
    Str s = str_new(a);
    for (int r = t->n_rows ? -2 : 0; r < t->n_rows; r++) {
        str_add(&s, "|");
        for (int c = 0; c < t->n_cols; c++) {
            if (hidden(t, c)) continue;
            if (r == -1) {
                str_add(&s, t->col[c].right ? " ---: |" : " --- |");
                continue;
            }
            str_add(&s, " ");
            md_cell(&s, r < 0 ? t->col[c].title : shown(&t->row[r][c]));
            str_add(&s, " |");
        }
        str_add(&s, "\n");
        md_after(&s, t, r);
    }
    if (t->notes.n)
        str_addf(&s, "%s%s", t->n_rows ? "\n" : "", text_visible_lines(a, t->notes.s, t->notes.n));
    return s.s;
}

/* ---- for programs ---- */
static void csv_field(Str *s, const char *text) {
    if (!text) return;
    text = text_visible_lines(s->a, text, strlen(text));
    if (!strpbrk(text, ",\"\n") && *text != ' ') {
        str_add(s, text);
        return;
    }
    str_add(s, "\"");
    for (; *text; text++) str_addn(s, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    str_add(s, "\"");
}
static const char *render_csv(const Table *t, Arena *a) {
    Str s = str_new(a);
    for (int r = -1; r < t->n_rows; r++) {
        for (int c = 0; c < t->n_cols; c++) {
            if (c) str_add(&s, ",");
            csv_field(&s, r < 0 ? t->col[c].key : t->row[r][c].plain);
        }
        str_add(&s, "\r\n");
    }
    return s.s;
}
void table_json_row(JsonWriter *w, const Table *t, int r) {
    for (int c = 0; c < t->n_cols; c++) {
        const Cell *cell = &t->row[r][c];
        if (cell->json) json_raw(w, t->col[c].key, cell->json);
        else json_str(w, t->col[c].key, cell->plain);
    }
}
static const char *render_jsonl(const Table *t, Arena *a) {
    JsonWriter w = json_writer(a);
    for (int r = 0; r < t->n_rows; r++) {
        json_open(&w, NULL, '{');
        json_str(&w, "schema", "shardproof/1");
        json_str(&w, "type", t->record);
        table_json_row(&w, t, r);
        json_close(&w, '}');
        json_newline(&w);
    }
    return w.s.s;
}
const char *table_render(const Table *t, const char *format, TableLook look, Arena *arena) {
    if (strcmp(format, "jsonl") == 0) return render_jsonl(t, arena);
    if (strcmp(format, "csv") == 0) return render_csv(t, arena);
    if (strcmp(format, "md") == 0) return render_md(t, arena);
    return render_text(t, look, arena);
}
