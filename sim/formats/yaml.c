/* YAML events to located nodes. The only file that knows libyaml, and only its event interface: the
 * document interface follows aliases into cycles and takes a second document for none. Refuses
 * everything a plan does not need (anchors, tags, merge keys, several documents) and whatever
 * exceeds the limits of yaml.h, before libyaml can spend time on it. */
#include "formats/yaml.h"
#include <stdlib.h>
#include <string.h>
/* libyaml's own kinds of events bear the names of ours */
#include <yaml.h>

enum {
    MAX_BYTES = 1 << 20,
    MAX_DEPTH = 32,
    MAX_EVENTS = 100000,
    MAX_SCALAR = 4096,
    MAX_TWICE = 50, /* duplicate keys that are reported one by one */
};

/* One open list or mapping. */
typedef struct {
    Yaml *node;
    int cap;
    const char *key; /* the key that waits for its value */
    Loc key_loc;
    bool key_quoted;
} Frame;

typedef struct {
    Arena *a;
    Diags *d;
    Loc start; /* place of the first character */
    const char *text;
    size_t n;
    Frame stack[MAX_DEPTH];
    int depth, events, twice;
    Yaml *root;
} Reader;

static Loc loc_at(const Reader *r, size_t line, size_t col) {
    Loc l = {r->start.file, r->start.line + (int)line, (int)col + (line ? 1 : r->start.col)};
    return diags_origin(r->d, l);
}
static Loc loc_of(const Reader *r, yaml_mark_t m) { return loc_at(r, m.line, m.column); }

static Loc loc_of_byte(const Reader *r, size_t at) {
    size_t line = 0, col = 0;
    for (size_t i = 0; i < at && i < r->n; i++) {
        if (r->text[i] == '\n') line++, col = 0;
        else if (((unsigned char)r->text[i] & 0xC0) != 0x80) col++;
    }
    return loc_at(r, line, col);
}

/* ---- before libyaml sees it: encoding ---- */

/* Offset of the first byte that is not part of well-formed UTF-8 (a NUL is none either), or n. */
static size_t utf8_bad(const unsigned char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        unsigned char c = s[i];
        size_t k = c && c < 0x80           ? 1
                   : c >= 0xC2 && c < 0xE0 ? 2
                   : c >= 0xE0 && c < 0xF0 ? 3
                   : c >= 0xF0 && c < 0xF5 ? 4
                                           : 0;
        if (!k || i + k > n) return i;
        for (size_t j = 1; j < k; j++)
            if ((s[i + j] & 0xC0) != 0x80) return i;
        if ((c == 0xE0 && s[i + 1] < 0xA0) || (c == 0xED && s[i + 1] >= 0xA0) ||
            (c == 0xF0 && s[i + 1] < 0x90) || (c == 0xF4 && s[i + 1] >= 0x90))
            return i;
        i += k;
    }
    return n;
}

static bool check_encoding(Reader *r) {
    static const struct {
        const char *mark;
        size_t n;
        const char *name;
    } other[] = {{"\xFF\xFE\0\0", 4, "UTF-32"},
                 {"\0\0\xFE\xFF", 4, "UTF-32"},
                 {"\xFF\xFE", 2, "UTF-16"},
                 {"\xFE\xFF", 2, "UTF-16"}};
    for (int i = 0; i < 4; i++)
        if (r->n >= other[i].n && memcmp(r->text, other[i].mark, other[i].n) == 0) {
            diag_error(r->d, "E0106", loc_at(r, 0, 0), "save the file as UTF-8",
                       "the text is %s, not UTF-8", other[i].name);
            return false;
        }
    size_t bad = utf8_bad((const unsigned char *)r->text, r->n);
    if (bad == r->n) return true;
    unsigned char c = (unsigned char)r->text[bad];
    if (c)
        diag_error(r->d, "E0106", loc_of_byte(r, bad), "save the file as UTF-8",
                   "byte 0x%02X is not UTF-8", c);
    else
        diag_error(r->d, "E0106", loc_of_byte(r, bad), "is this a text file?",
                   "the text contains a NUL byte");
    return false;
}

/* Bytes up to the next line break; libyaml takes a lone carriage return for one. */
static size_t line_bytes(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && s[i] != '\n' && s[i] != '\r') i++;
    return i;
}

/* Tag directives are refused before libyaml sees them: it compares each with all before it. */
static bool check_directives(Reader *r) {
    for (size_t i = 0; i < r->n;) {
        if (r->n - i >= 5 && memcmp(r->text + i, "%TAG", 4) == 0 &&
            (r->text[i + 4] == ' ' || r->text[i + 4] == '\t')) {
            diag_error(r->d, "E0108", loc_of_byte(r, i), "remove the line",
                       "%%TAG directives are not accepted");
            return false;
        }
        i += line_bytes(r->text + i, r->n - i) + 1;
    }
    return true;
}

/* ---- errors of libyaml in the words of a plan's author ---- */

typedef struct {
    const char *problem, *context, *hint; /* parts of libyaml's texts; NULL: any */
} Advice;
static const Advice advice[] = {
    {NULL, "scanning an alias", "a pattern that starts with * needs quotes: \"*.wq\": colwise"},
    {"tab character", NULL, "indent with blanks, not tabs"},
    {"character that cannot start any token", NULL,
     "indent with blanks, not tabs; text that starts with %, @ or ` needs quotes"},
    {"mapping values are not allowed", NULL,
     "a blank stands behind each colon; quote text that contains ': '; keys of one mapping have "
     "one "
     "indentation"},
    {"',' or '}'", NULL,
     "inside {...} text with [ ] , needs quotes: {\"w[qkv]\": colwise}; or the } is missing"},
    {"',' or ']'", NULL, "inside [...] text with , or : needs quotes; or the ] is missing"},
    {"expected ':'", NULL, "every key is followed by a colon and a blank: KEY: VALUE"},
    {"did not find expected key", NULL, "keys of one mapping have one indentation"},
    {"expected <document start>", NULL, "one mapping per file: all keys start in the same column"},
    {"unexpected end of stream", NULL, "a closing quote is missing"},
    {"did not find expected '-' indicator", NULL,
     "all items of a list start with '- ' in the same column"},
    {"control characters", NULL, "the text contains a control character: remove it"},
};

/* libyaml puts the end of the text on a line of its own; behind the last word is the better place.
 */
static Loc problem_loc(const Reader *r, yaml_mark_t m) {
    size_t end = r->n;
    Loc last = loc_of_byte(r, end), l = loc_of(r, m);
    if (l.line < last.line || (l.line == last.line && l.col < last.col)) return l;
    while (end && strchr(" \t\r\n", r->text[end - 1])) end--;
    return loc_of_byte(r, end);
}

/* Does the text begin as Python does: a name and =, import, from, def, class or @? */
static bool is_program(const Reader *r) {
    static const char *const begins[] = {"import ", "from ", "def ", "class ", "@"};
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const char *s = arena_strndup(r->a, r->text, r->n);
    while (*s && strchr(" \t\r\n#", *s)) s += *s == '#' ? strcspn(s, "\n") : 1;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(s, begins[i], strlen(begins[i]))) return true;
    const char *end = s + strspn(s, name);
    end += strspn(end, " ");
    return end > s && *end == '=' && end[1] != '=';
}
static void libyaml_error(Reader *r, const yaml_parser_t *p) {
    if (p->error == YAML_MEMORY_ERROR) base_die(5, "out of memory in the YAML reader [E0701]");
    const char *problem = p->problem ? p->problem : "the text cannot be read", *hint = NULL;
    bool reader = p->error == YAML_READER_ERROR;
    Loc l = reader ? loc_of_byte(r, p->problem_offset) : problem_loc(r, p->problem_mark);
    for (size_t i = 0; !hint && i < sizeof advice / sizeof advice[0]; i++)
        if ((!advice[i].problem || strstr(problem, advice[i].problem)) &&
            (!advice[i].context || (p->context && strstr(p->context, advice[i].context))))
            hint = advice[i].hint;
    if (is_program(r))
        hint =
            "this is a program, and a plan is YAML; what a framework runs is read by `shardproof "
            "import` (torch, hf, torchtitan, megatron, jax)";
    if (p->context && !reader && p->context_mark.line != p->problem_mark.line)
        diag_error(r->d, "E0104", l, hint, "not YAML: %s (%s that began in line %d)", problem,
                   p->context, loc_of(r, p->context_mark).line);
    else
        diag_error(r->d, "E0104", l, hint, "not YAML: %s%s%s", problem, p->context ? " " : "",
                   p->context ? p->context : "");
}

/* ---- building ---- */

/* A new node takes its place in the innermost open one; false if a key is no plain text. */
/* {dp:2}, which YAML reads as a key `dp:2` that has no value: told, and read on as it was meant, so
 * that nothing that follows from it is told too. The value has the place of what is behind the
 * colon. */
static void divide_key(Reader *r, Frame *f, Yaml *y) {
    const char *colon = f->key_quoted ? NULL : strchr(f->key, ':');
    if (!colon || colon == f->key || !colon[1] || y->kind != YAML_SCALAR || y->quoted || *y->s)
        return;
    diag_error(r->d, "E0104", f->key_loc,
               arena_printf(r->a, "put a blank behind the colon: %.*s: %s", (int)(colon - f->key),
                            f->key, colon + 1),
               "'%s' is a name without a value", f->key);
    y->s = colon + 1;
    y->loc = f->key_loc;
    y->loc.col += (int)(colon + 1 - f->key);
    f->key = arena_strndup(r->a, f->key, (size_t)(colon - f->key));
}
static bool attach(Reader *r, Yaml *y) {
    if (!r->depth) {
        r->root = y;
        return true;
    }
    Frame *f = &r->stack[r->depth - 1];
    if (f->node->kind == YAML_LIST) {
        *ARENA_PUSH(r->a, f->node->item, f->node->n, f->cap) = y;
        return true;
    }
    if (f->key) {
        divide_key(r, f, y);
        YamlPair *pair = ARENA_PUSH(r->a, f->node->pair, f->node->n, f->cap);
        pair->key = f->key;
        pair->loc = f->key_loc;
        pair->value = y;
        f->key = NULL;
        return true;
    }
    if (y->kind != YAML_SCALAR) {
        diag_error(r->d, "E0108", y->loc,
                   "keys are plain text; a pattern that starts with [ or { needs quotes",
                   "%s cannot be a key", yaml_kind_text(y));
        return false;
    }
    if (!y->quoted && strcmp(y->s, "<<") == 0) {
        diag_error(r->d, "E0108", y->loc, "write the keys out", "merge keys (<<) are not accepted");
        return false;
    }
    f->key = y->s;
    f->key_loc = y->loc;
    f->key_quoted = y->quoted;
    return true;
}

static uint64_t text_hash(const char *s) {
    uint64_t h = 14695981039346656037u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

/* Reports keys that occur twice and keeps the first of each. A table, not pairs of keys: a mapping
 * may have 50,000. */
static void drop_duplicates(Reader *r, Yaml *map) {
    if (map->n < 2) return;
    size_t size = 4;
    while (size < (size_t)map->n * 2) size *= 2;
    int *slot = base_malloc(base_mul(size, sizeof *slot)), kept = 0;
    for (size_t i = 0; i < size; i++) slot[i] = -1;
    for (int i = 0; i < map->n; i++) {
        size_t h = text_hash(map->pair[i].key) & (size - 1);
        while (slot[h] >= 0 && strcmp(map->pair[slot[h]].key, map->pair[i].key) != 0)
            h = (h + 1) & (size - 1);
        if (slot[h] < 0) {
            map->pair[kept] = map->pair[i];
            slot[h] = kept++;
            continue;
        }
        const YamlPair *first = &map->pair[slot[h]];
        if (r->twice++ < MAX_TWICE)
            diag_error(r->d, "E0107", map->pair[i].loc,
                       arena_printf(r->a, "remove one: the first '%s' is at line %d, column %d",
                                    first->key, first->loc.line, first->loc.col),
                       "'%s' is given twice (first in line %d)", first->key, first->loc.line);
    }
    map->n = kept;
    free(slot);
}

/* Anchors and tags are refused wherever they stand. */
static bool plain_node(Reader *r, Loc l, const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor)
        diag_error(r->d, "E0108", l,
                   "write the value where it is used; text that starts with & needs quotes",
                   "anchors (&%.40s) are not accepted", (const char *)anchor);
    else if (tag)
        diag_error(r->d, "E0108", l, "leave the tag out; text that starts with ! needs quotes",
                   "tags (%.40s) are not accepted", (const char *)tag);
    return !anchor && !tag;
}

static bool on_scalar(Reader *r, const yaml_event_t *e) {
    Loc l = loc_of(r, e->start_mark);
    const char *s = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    if (!plain_node(r, l, e->data.scalar.anchor, e->data.scalar.tag)) return false;
    if (n > MAX_SCALAR) {
        diag_error(r->d, "E0704", l, NULL, "a text of %zu bytes; the limit is %d", n, MAX_SCALAR);
        return false;
    }
    if (strlen(s) != n) {
        diag_error(r->d, "E0106", l, NULL, "the text contains a NUL character");
        return false;
    }
    Yaml *y = ARENA_NEW(r->a, Yaml);
    y->kind = YAML_SCALAR;
    y->loc = l;
    y->s = arena_strndup(r->a, s, n);
    y->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return attach(r, y);
}

static bool on_open(Reader *r, const yaml_event_t *e) {
    bool map = e->type == YAML_MAPPING_START_EVENT;
    Loc l = loc_of(r, e->start_mark);
    if (!plain_node(r, l, map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor,
                    map ? e->data.mapping_start.tag : e->data.sequence_start.tag))
        return false;
    if (r->depth == MAX_DEPTH) {
        diag_error(r->d, "E0704", l, NULL, "nested deeper than %d", MAX_DEPTH);
        return false;
    }
    Yaml *y = ARENA_NEW(r->a, Yaml);
    y->kind = map ? YAML_MAP : YAML_LIST;
    y->loc = l;
    if (!attach(r, y)) return false;
    Frame *f = &r->stack[r->depth++];
    memset(f, 0, sizeof *f);
    f->node = y;
    return true;
}

static bool on_close(Reader *r, const yaml_event_t *e) {
    (void)e;
    Yaml *y = r->stack[--r->depth].node;
    if (y->kind == YAML_MAP) drop_duplicates(r, y);
    return true;
}

static bool on_document(Reader *r, const yaml_event_t *e) {
    Loc l = loc_of(r, e->start_mark);
    if (r->root) {
        diag_error(r->d, "E0108", l, "one file holds one document; remove the '---'",
                   "a second document begins here");
        return false;
    }
    return true;
}

static bool on_alias(Reader *r, const yaml_event_t *e) {
    diag_error(r->d, "E0108", loc_of(r, e->start_mark),
               "a pattern that starts with * needs quotes: \"*.wq\": colwise",
               "aliases (*%.40s) are not accepted", (const char *)e->data.alias.anchor);
    return false;
}

static bool on_nothing(Reader *r, const yaml_event_t *e) {
    (void)r, (void)e;
    return true;
}

/* What to do with each kind of event; false ends the reading. */
static bool (*const handler[])(Reader *, const yaml_event_t *) = {
    [YAML_NO_EVENT] = on_nothing,           [YAML_STREAM_START_EVENT] = on_nothing,
    [YAML_STREAM_END_EVENT] = on_nothing,   [YAML_DOCUMENT_START_EVENT] = on_document,
    [YAML_DOCUMENT_END_EVENT] = on_nothing, [YAML_ALIAS_EVENT] = on_alias,
    [YAML_SCALAR_EVENT] = on_scalar,        [YAML_SEQUENCE_START_EVENT] = on_open,
    [YAML_SEQUENCE_END_EVENT] = on_close,   [YAML_MAPPING_START_EVENT] = on_open,
    [YAML_MAPPING_END_EVENT] = on_close,
};

static bool read_events(Reader *r) {
    yaml_parser_t p;
    if (!yaml_parser_initialize(&p)) base_die(5, "out of memory in the YAML reader [E0701]");
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)r->text, r->n);
    bool ok = true, done = false;
    while (ok && !done) {
        yaml_event_t e;
        if (!yaml_parser_parse(&p, &e)) {
            libyaml_error(r, &p);
            ok = false;
            break;
        }
        if (++r->events > MAX_EVENTS) {
            diag_error(r->d, "E0704", loc_of(r, e.start_mark), NULL, "more than %d items",
                       MAX_EVENTS);
            ok = false;
        } else {
            ok = handler[e.type](r, &e);
        }
        done = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&p);
    if (r->twice > MAX_TWICE) r->d->hidden += r->twice - MAX_TWICE;
    return ok;
}

static Yaml *parse(Arena *arena, Diags *d, Loc start, const char *text, size_t n) {
    Reader r = {.a = arena, .d = d, .start = start, .text = text, .n = n};
    if (n > MAX_BYTES) {
        diag_error(d, "E0702", start, NULL, "%zu bytes of YAML; the limit is 1 MiB", n);
        return NULL;
    }
    if (!check_encoding(&r) || !check_directives(&r) || !read_events(&r)) return NULL;
    if (!r.root) {
        r.root = ARENA_NEW(arena, Yaml);
        r.root->loc = start;
        r.root->s = "";
    }
    return r.root;
}

Yaml *yaml_parse(Arena *arena, Diags *d, const char *file, const char *text, size_t n) {
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, n -= 3;
    Loc start = {arena_strdup(arena, file), 1, 1};
    if (n <= MAX_BYTES) diags_source(d, file, text, n);
    Yaml *y = parse(arena, d, start, text, n);
    if (y && y->kind == YAML_SCALAR && yaml_is_null(y)) {
        diag_error(d, "E0103", start, NULL,
                   n ? "there is nothing in here but blanks and comments" : "the file is empty");
        return NULL;
    }
    return y;
}

Yaml *yaml_parse_value(Arena *arena, Diags *d, Loc start, const char *text, size_t n) {
    return parse(arena, d, start, text, n);
}

/* ---- looking at nodes ---- */

Yaml *yaml_get(Yaml *map, const char *key) {
    if (!map || map->kind != YAML_MAP) return NULL;
    for (int i = 0; i < map->n; i++)
        if (strcmp(map->pair[i].key, key) == 0) {
            map->pair[i].used = true;
            return map->pair[i].value;
        }
    return NULL;
}

bool yaml_is_null(const Yaml *y) {
    static const char *const null[] = {"", "~", "null", "Null", "NULL"};
    if (y->kind != YAML_SCALAR || y->quoted) return false;
    for (int i = 0; i < 5; i++)
        if (strcmp(y->s, null[i]) == 0) return true;
    return false;
}

const char *yaml_kind_text(const Yaml *y) {
    if (y->kind != YAML_SCALAR) return y->kind == YAML_MAP ? "a mapping" : "a list";
    return yaml_is_null(y) ? "nothing" : y->quoted ? "quoted text" : "a single value";
}
