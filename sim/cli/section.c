/* Surgery on the lines of a plan's `expect` section. It reads no YAML: a key begins a line at the
 * section's indentation and owns what follows it and is indented deeper, and the comments above it.
 */
#include "cli/section.h"
#include <ctype.h>
#include <string.h>

typedef struct {
    const char *s;
    size_t n;
} Text;

static size_t line_end(Text t, size_t at) {
    const char *nl = memchr(t.s + at, '\n', t.n - at);
    return nl ? (size_t)(nl - t.s) + 1 : t.n;
}
/* Does a top-level key, or the end of the document, begin at this line? Blank lines, comments,
 * indented lines and closing brackets do not. */
static bool is_key_line(Text t, size_t at) {
    return at < t.n &&
           (isalpha((unsigned char)t.s[at]) || strchr("_\"'", t.s[at]) ||
            (t.n - at >= 3 && (!strncmp(t.s + at, "---", 3) || !strncmp(t.s + at, "...", 3))));
}
static size_t indent_of(Text t, size_t at) {
    size_t i = at;
    while (i < t.n && t.s[i] == ' ') i++;
    return i - at;
}
static bool is_blank_or_comment(Text t, size_t at) {
    size_t i = at + indent_of(t, at);
    return i >= t.n || strchr("#\n\r", t.s[i]) != NULL;
}
/* Where the comment of a line begins: '#' at its start or behind a blank, and not in quotes.
 * SIZE_MAX: none. */
static size_t comment_at(Text t, size_t at) {
    char quote = 0;
    for (size_t i = at, end = line_end(t, at); i < end; i++) {
        char c = t.s[i];
        if (quote == '"' && c == '\\') i++;
        else if (quote) quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'') quote = c;
        else if (c == '#' && (i == at || t.s[i - 1] == ' ' || t.s[i - 1] == '\t')) return i;
    }
    return SIZE_MAX;
}
/* The comments of some lines, each on a line of its own. */
static void add_comments(Str *out, Text t, size_t from, size_t to) {
    for (size_t at = from; at < to; at = line_end(t, at)) {
        size_t c = comment_at(t, at), end = line_end(t, at);
        if (c == SIZE_MAX) continue;
        while (end > c && isspace((unsigned char)t.s[end - 1])) end--;
        str_add(out, "  ");
        str_addn(out, t.s + c, end - c);
        str_add(out, "\n");
    }
}

/* ---- where the section is ---- */
/* The line of `expect:` (*from; t.n: there is none) and the end of what belongs to it. Comments and
 * blank lines before the next key are that key's, unless they are indented. */
static void find_section(Text t, size_t *from, size_t *to) {
    *from = *to = t.n;
    for (size_t at = 0; at < t.n && *from == t.n; at = line_end(t, at)) {
        size_t bom = at == 0 && t.n >= 3 && memcmp(t.s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        if (t.n - at - bom >= 7 && strncmp(t.s + at + bom, "expect:", 7) == 0) *from = at + bom;
    }
    if (*from == t.n) return;
    *to = line_end(t, *from);
    for (size_t at = *to; at < t.n && !is_key_line(t, at);) {
        size_t next = line_end(t, at);
        if (!is_blank_or_comment(t, at) || (t.s[at] == ' ' && comment_at(t, at) != SIZE_MAX))
            *to = next;
        at = next;
    }
}
/* Nothing but a comment behind `expect:`. */
static bool is_block(Text t, size_t from) {
    size_t at = from + 7, end = line_end(t, from);
    while (at < end && strchr(" \t\r\n", t.s[at])) at++;
    return at >= end || t.s[at] == '#';
}

/* ---- its keys ---- */
typedef struct {
    Text t;
    size_t at, key, end,
        to; /* the comments above a key, its line, its end; the end of the section */
    size_t indent;
} Keys;
/* The next key of the section; false at its end. `at`..`end` are what is left then. */
static bool next_key(Keys *k) {
    k->at = k->end;
    for (k->key = k->at; k->key < k->to && is_blank_or_comment(k->t, k->key);)
        k->key = line_end(k->t, k->key);
    k->end = k->to;
    if (k->key >= k->to) return false;
    if (!k->indent) k->indent = indent_of(k->t, k->key);
    size_t last = line_end(k->t, k->key); /* behind the last line that is the key's for sure */
    for (size_t at = last; at < k->to; at = line_end(k->t, at)) {
        size_t deep = indent_of(k->t, at);
        if (is_blank_or_comment(k->t, at) && deep <= k->indent) continue;
        if (deep <= k->indent && !strchr("]}-", k->t.s[at + deep])) break;
        last = line_end(k->t, at);
    }
    k->end = last;
    return true;
}
static int index_of(const Keys *k, const SectionKey *keys, int n) {
    const char *s = k->t.s + k->key + indent_of(k->t, k->key);
    size_t room = k->to - (size_t)(s - k->t.s);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(keys[i].key);
        if (room > len && strncmp(s, keys[i].key, len) == 0 && strchr(": ", s[len])) return i;
    }
    return -1;
}
/* Which of ours are there. False if another stays that cannot stand beside them. */
static bool mark_old(Keys k, const SectionKey *keys, int n, bool *old) {
    while (next_key(&k)) {
        int i = index_of(&k, keys, n);
        if (i < 0 && k.indent != 2) return false;
        if (i >= 0) old[i] = true;
    }
    return true;
}
static void add_new(Str *out, const SectionKey *keys, int from, int n, const bool *old) {
    for (int i = from; i < n && !old[i]; i++)
        if (keys[i].text) str_add(out, keys[i].text);
}
/* The keys that were there, in their order, each followed by the new ones that come after it in the
 * list. */
static void add_keys(Str *out, Keys *k, const SectionKey *keys, int n, const bool *old) {
    add_new(out, keys, 0, n, old);
    while (next_key(k)) {
        int i = index_of(k, keys, n);
        const char *text = i < 0 ? NULL : keys[i].text;
        size_t len = text ? strlen(text) : 0;
        bool holds = len && len == k->end - k->key && memcmp(text, k->t.s + k->key, len) == 0;
        if (i < 0 || holds) str_addn(out, k->t.s + k->at, k->end - k->at);
        else add_comments(out, k->t, k->at, k->end);
        if (out->s[out->n - 1] != '\n') str_add(out, "\n");
        if (text && !holds) str_add(out, text);
        if (i >= 0) add_new(out, keys, i + 1, n, old);
    }
    str_addn(out, k->t.s + k->at, k->to - k->at);
}
/* Are all keys of a section in braces listed? Braces and brackets in quotes or comments do not
 * count. */
static bool flow_is_listed(Text t, size_t from, size_t to, const SectionKey *keys, int n) {
    int depth = 0;
    char quote = 0;
    for (size_t i = from; i < to; i++) {
        char c = t.s[i];
        if (quote == '"' && c == '\\') i++;
        else if (quote) quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'') quote = c;
        else if (c == '#' && isspace((unsigned char)t.s[i - 1])) i = line_end(t, i) - 1;
        else depth += strchr("{[", c) ? 1 : strchr("}]", c) ? -1 : 0;
        if (depth != 1 || quote || !strchr("{,", c)) continue;
        Keys k = {.t = t, .key = i + 1, .to = to};
        while (k.key < to && isspace((unsigned char)t.s[k.key])) k.key++;
        if (k.key < to && t.s[k.key] != '}' && index_of(&k, keys, n) < 0) return false;
    }
    return true;
}
const char *section_replace(Arena *arena, const char *plan, size_t n, const SectionKey *keys,
                            int n_keys) {
    Text t = {plan, n};
    size_t from, to;
    find_section(t, &from, &to);
    bool *old = ARENA_ARRAY(arena, bool, n_keys), block = from < n && is_block(t, from);
    size_t body = from < n ? line_end(t, from) : n;
    Str s = str_new(arena);
    if (!block && !flow_is_listed(t, from, to, keys, n_keys)) return NULL;
    str_addn(&s, plan, from);
    if (from == n && n && plan[n - 1] != '\n') str_add(&s, "\n");
    if (block) str_addn(&s, plan + from, body - from);
    else str_add(&s, "expect:\n");
    if (block && s.s[s.n - 1] != '\n') str_add(&s, "\n");
    if (!block) add_comments(&s, t, from, to);
    Keys k = {.t = t, .end = block ? body : to, .to = to};
    if (block && !mark_old(k, keys, n_keys, old)) return NULL;
    add_keys(&s, &k, keys, n_keys, old);
    str_addn(&s, plan + to, n - to);
    return s.s;
}
