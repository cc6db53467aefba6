/* The writers of table.h: aligned text, Markdown, CSV (RFC 4180), JSON, JSON Lines. */
#include "cli/table.h"
#include "trace/trace.h"
#include "json/json.h"
#include <string.h>

enum { GUTTER = 2, NARROWEST = 6 };

Table table_new(Arena *arena, const char *record, const Column *col, int n_cols) {
    return (Table){.arena = arena, .record = record, .n_cols = n_cols, .col = col, .notes = str_new(arena)};
}
Cell *table_row(Table *t) {
    Cell *c = ARENA_ARRAY(t->arena, Cell, t->n_cols);
    *ARENA_PUSH(t->arena, t->row, t->n_rows, t->cap_rows) = c;
    return c;
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
Cell cell_bool(bool b) { return (Cell){b ? "yes" : NULL, b ? "true" : "false", b ? "true" : "false"}; }
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
    const unsigned char *u = (const unsigned char *)s;
    int n = u[0] < 0x80 ? 1 : u[0] >= 0xC2 && u[0] < 0xE0 ? 2 : u[0] >= 0xE0 && u[0] < 0xF0 ? 3 : u[0] >= 0xF0 ? 4 : 0;
    uint32_t c = n == 1 ? u[0] : n == 2 ? u[0] & 0x1Fu : n == 3 ? u[0] & 0x0Fu : u[0] & 0x07u;
    for (int i = 1; i < n; i++) {
        if ((u[i] & 0xC0) != 0x80)
            n = 0;
        else
            c = c << 6 | (u[i] & 0x3Fu);
    }
    *bytes = n ? n : 1;
    return n ? c : 0xFFFD;
}
/* wcwidth without a locale: combining marks 0, East Asian and emoji blocks 2. */
static int char_width(uint32_t c) {
    static const struct {
        uint32_t from, to;
        int width;
    } range[] = {{0x300, 0x36F, 0},   {0x200B, 0x200F, 0},   {0x1100, 0x115F, 2},  {0x2E80, 0xA4CF, 2},
                 {0xAC00, 0xD7A3, 2}, {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},  {0xFE30, 0xFE6F, 2},
                 {0xFF00, 0xFF60, 2}, {0x1F300, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2}};
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
    Str out = str_new(arena);
    int w = 0, n, full = table_text_width(s);
    for (; *s; s += n) {
        uint32_t c = decode(s, &n);
        w += char_width(c);
        if (width && full > width && w > width - 1) {
            str_add(&out, "…");
            break;
        }
        if (c < 0x20 || (c >= 0x7F && c < 0xA0))
            str_add(&out, "?");
        else if (c == 0xFFFD)
            str_add(&out, "\xEF\xBF\xBD");
        else
            str_addn(&out, s, (size_t)n);
    }
    return out.s;
}

/* ---- text and Markdown ---- */
static bool hidden(const Table *t, int col) {
    if (!t->col[col].optional) return false;
    const char *first = t->n_rows ? t->row[0][col].text : NULL;
    for (int r = 0; r < t->n_rows; r++) {
        const char *s = t->row[r][col].text;
        bool empty = !s || !*s, first_empty = !first || !*first;
        if (empty != first_empty || (!empty && strcmp(s, first) != 0)) return false;
    }
    return t->n_rows != 1 || !first || !*first; /* one row: shown if it says something */
}
static const char *shown(const Cell *c) { return c->text ? c->text : ""; }

/* Narrows the widest columns until the line fits. */
static void fit(int *width, const bool *hide, const Table *t, int limit) {
    for (;;) {
        int sum = -GUTTER, widest = -1;
        for (int c = 0; c < t->n_cols; c++) {
            if (hide[c]) continue;
            sum += width[c] + GUTTER;
            if (!t->col[c].right && (widest < 0 || width[c] > width[widest])) widest = c;
        }
        if (sum <= limit || widest < 0 || width[widest] <= NARROWEST) return;
        width[widest]--;
    }
}
static void pad(Str *s, int n) {
    while (n-- > 0) str_add(s, " ");
}
static void put_cell(Str *s, const char *text, int width, bool right, bool last) {
    int w = table_text_width(text);
    if (right) pad(s, width - w);
    str_add(s, text);
    if (!right && !last) pad(s, width - w);
}
static const char *render_text(const Table *t, TableLook look, Arena *a) {
    int *width = ARENA_ARRAY(a, int, t->n_cols), last = 0;
    bool *hide = ARENA_ARRAY(a, bool, t->n_cols);
    for (int c = 0; c < t->n_cols; c++) {
        hide[c] = hidden(t, c);
        if (!hide[c]) last = c;
        width[c] = table_text_width(t->col[c].title);
        for (int r = 0; r < t->n_rows; r++) {
            int w = table_text_width(shown(&t->row[r][c]));
            if (w > width[c]) width[c] = w;
        }
    }
    if (look.width) fit(width, hide, t, look.width);
    Str s = str_new(a);
    for (int r = -1; r < t->n_rows; r++) {
        if (r < 0 && look.color) str_add(&s, "\033[1;4m");
        for (int c = 0; c < t->n_cols; c++) {
            if (hide[c]) continue;
            const char *text = r < 0 ? t->col[c].title : shown(&t->row[r][c]);
            put_cell(&s, table_clean(text, width[c], a), width[c], t->col[c].right,
                     c == last && !(r < 0 && look.color));
            if (c != last) pad(&s, GUTTER);
        }
        if (r < 0 && look.color) str_add(&s, "\033[0m");
        while (s.n && s.s[s.n - 1] == ' ') s.s[--s.n] = 0;
        str_add(&s, "\n");
    }
    str_add(&s, t->notes.s);
    return s.s;
}
static void md_cell(Str *s, const char *text) {
    for (; *text; text++) {
        if (*text == '|' || *text == '\\' || *text == '*' || *text == '_' || *text == '<' || *text == '`')
            str_addn(s, "\\", 1);
        if (*text == '\n' || *text == '\r')
            str_addn(s, " ", 1);
        else
            str_addn(s, text, 1);
    }
}
static const char *render_md(const Table *t, Arena *a) {
    Str s = str_new(a);
    for (int r = -2; r < t->n_rows; r++) {
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
    }
    if (t->notes.n) str_addf(&s, "\n%s", t->notes.s);
    return s.s;
}

/* ---- for programs ---- */
static void csv_field(Str *s, const char *text) {
    if (!text) return;
    if (!strpbrk(text, ",\"\r\n") && *text != ' ') {
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
static void json_row(JsonWriter *w, const Table *t, int r) {
    for (int c = 0; c < t->n_cols; c++) {
        const Cell *cell = &t->row[r][c];
        if (cell->json)
            json_raw(w, t->col[c].key, cell->json);
        else
            json_str(w, t->col[c].key, cell->plain);
    }
}
static const char *render_json(const Table *t, Arena *a) {
    Str s = str_new(a);
    str_add(&s, "[");
    for (int r = 0; r < t->n_rows; r++) {
        JsonWriter w = json_writer(a);
        json_open(&w, NULL, '{');
        json_row(&w, t, r);
        json_close(&w, '}');
        str_addf(&s, "%s\n  %s", r ? "," : "", w.s.s);
    }
    str_add(&s, t->n_rows ? "\n]\n" : "]\n");
    return s.s;
}
static const char *render_jsonl(const Table *t, Arena *a) {
    JsonWriter w = json_writer(a);
    for (int r = 0; r < t->n_rows; r++) {
        json_open(&w, NULL, '{');
        json_str(&w, "schema", "shardproof/1");
        json_str(&w, "type", t->record);
        json_row(&w, t, r);
        json_close(&w, '}');
        json_newline(&w);
    }
    return w.s.s;
}
const char *table_render(const Table *t, const char *format, TableLook look, Arena *arena) {
    if (strcmp(format, "json") == 0) return render_json(t, arena);
    if (strcmp(format, "jsonl") == 0) return render_jsonl(t, arena);
    if (strcmp(format, "csv") == 0) return render_csv(t, arena);
    if (strcmp(format, "md") == 0) return render_md(t, arena);
    return render_text(t, look, arena);
}
