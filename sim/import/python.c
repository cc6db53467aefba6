/* A strict small reader of the part of Python that plans are written in. Blocks by indentation,
 * brackets that join lines, comments. Refuses to know what an expression is worth (python_eval.c);
 * constructs whose value no literal decides are refused by name, with what to write instead. */
#include "import/python.h"
#include "import/python_eval.h"
#include "import/scan.h"
#include "formats/json.h"
#include <ctype.h>
#include <string.h>

typedef struct {
    Scan s;
    bool json;
    int open; /* brackets: line breaks inside are blanks */
} Reader;

/* ---- between tokens ---- */
static void skip_blanks(Reader *r) {
    for (;;) {
        char c = scan_peek(&r->s, 0);
        if (c == '#' && !r->json) {
            while ((c = scan_peek(&r->s, 0)) && c != '\n') scan_take(&r->s, 1);
        } else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && r->open)) {
            scan_take(&r->s, 1);
        } else if (c == '\\' && scan_peek(&r->s, 1) == '\n') {
            scan_take(&r->s, 2);
        } else if (c == '\\' && scan_peek(&r->s, 1) == '\r' && scan_peek(&r->s, 2) == '\n') {
            scan_take(&r->s, 3);
        } else {
            return;
        }
    }
}
static bool take(Reader *r, char c) {
    skip_blanks(r);
    if (scan_peek(&r->s, 0) != c) return false;
    scan_take(&r->s, 1);
    return true;
}
static bool word_ahead(Reader *r, const char *word) {
    skip_blanks(r);
    size_t n = strlen(word);
    char after = scan_peek(&r->s, n);
    return scan_starts(&r->s, word) && !isalnum((unsigned char)after) && after != '_';
}
static bool take_word(Reader *r, const char *word) {
    if (!word_ahead(r, word)) return false;
    scan_take(&r->s, strlen(word));
    return true;
}
/* What stands here instead, for messages. */
static const char *here(Reader *r) {
    skip_blanks(r);
    char c = scan_peek(&r->s, 0);
    if (!c) return "the end of the file";
    if (c == '\n') return "the end of the line";
    return arena_printf(r->s.a, isprint((unsigned char)c) ? "'%c'" : "a character", c);
}
static void expected(Reader *r, const char *what) {
    const char *found = here(r);
    scan_error(&r->s, "E0110", scan_loc(&r->s), NULL, "%s is expected here, not %s", what, found);
}

/* ---- expressions ---- */
static Value *expression(Reader *r);
static Value *binary(Reader *r, int least);
static Value *targets(Reader *r);

/* To the comma, bracket or line's end that ends this expression, whatever stands there. */
static void skip_expression(Reader *r) {
    for (int depth = 0;;) {
        skip_blanks(r);
        char c = scan_peek(&r->s, 0);
        if (!c || ((c == '\n' || c == ';') && !depth) || r->s.failed) return;
        if (strchr(")]}", c) && !depth--) return;
        if (c == ',' && !depth) return;
        if (strchr("([{", c)) depth++;
        if (c == '"' || c == '\'') scan_string(&r->s, false, true);
        else scan_take(&r->s, 1);
    }
}
/* What would have to be executed is kept as that: it is an error only if the plan needs it. */
static Value *code(Reader *r, Loc at, const char *why) {
    skip_expression(r);
    Value *v = scan_value(&r->s, V_CODE, at);
    if (v) v->s = why;
    return r->s.failed ? NULL : v;
}

static void close_bracket(Reader *r, char bracket) {
    bool closed = take(r, bracket);
    r->open--;
    r->s.depth--;
    if (!closed) expected(r, arena_printf(r->s.a, "',' or '%c'", bracket));
}
static bool open_bracket(Reader *r) {
    scan_take(&r->s, 1);
    if (!scan_deeper(&r->s)) return false;
    r->open++;
    return true;
}
static bool at_end_of(Reader *r, char bracket) {
    skip_blanks(r);
    return r->s.failed || scan_peek(&r->s, 0) == bracket;
}
/* An operator and what it is used on; NULL items are left out. */
static Value *op(Reader *r, const char *s, Loc at, Value *x, Value *y, Value *z) {
    Value *v = scan_value(&r->s, V_OP, at), *items[] = {x, y, z};
    if (!v || r->s.failed) return NULL;
    v->s = s;
    for (int i = 0; i < 3; i++) scan_push(&r->s, v, items[i]);
    return v;
}
/* `for k, v in x if c for ...` behind what each round makes: target, container, condition each. */
static Value *comprehension(Reader *r, const char *s, Loc at, Value *made) {
    Value *v = op(r, s, at, made, NULL, NULL);
    while (v && take_word(r, "for")) {
        Value *target = targets(r), *over, *c = scan_value(&r->s, V_BOOL, at);
        if (!r->s.failed && !take_word(r, "in")) expected(r, "'in'");
        over = r->s.failed ? NULL : binary(r, 1);
        if (over && c) c->b = true;
        while (over && take_word(r, "if")) c = op(r, "and", at, c, binary(r, 1), NULL);
        if (!over || !c || r->s.failed) return NULL;
        scan_push(&r->s, v, target);
        scan_push(&r->s, v, over);
        scan_push(&r->s, v, c);
    }
    return v;
}
/* (...) is what is in it, or a tuple. */
static Value *list(Reader *r, char bracket, Loc at) {
    Value *v = scan_value(&r->s, bracket == ']' ? V_LIST : V_TUPLE, at), *made = NULL;
    bool comma = false;
    if (!v || !open_bracket(r)) return NULL;
    while (!at_end_of(r, bracket)) {
        scan_push(&r->s, v, expression(r));
        if (v->n == 1 && !r->json && word_ahead(r, "for"))
            made = comprehension(r, "for [", at, v->item[0]);
        if (!take(r, ',')) break;
        comma = true;
    }
    close_bracket(r, bracket);
    if (r->s.failed || made) return r->s.failed ? NULL : made;
    return bracket == ')' && v->n == 1 && !comma ? v->item[0] : v;
}
/* One entry of a dict; one whose key is no text in quotes goes to `made`: "{" of key, value, ... */
/* Is what was read a member of a set and no key? */
static bool is_member(Reader *r, const Value *v) {
    skip_blanks(r);
    char c = scan_peek(&r->s, 0);
    return v->n || (!v->n_pairs && (c == ',' || c == '}'));
}
static void entry(Reader *r, Value *v, Value **made) {
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    if (r->json && scan_peek(&r->s, 0) == '"') { /* no value of its own: there are many */
        const char *key = scan_string(&r->s, false, false);
        if (key && !take(r, ':')) expected(r, "':'");
        Value *x = r->s.failed ? NULL : expression(r);
        if (x) scan_pair(&r->s, v, key, at, x);
        return;
    }
    bool spread = !r->json && scan_starts(&r->s, "**");
    if (spread) scan_take(&r->s, 2);
    Value *k = spread ? scan_value(&r->s, V_NONE, at) : expression(r);
    if (!k || r->s.failed) return;
    if (!r->json && !spread && is_member(r, v)) { /* of a set, which is read as a list */
        v->kind = V_LIST;
        scan_push(&r->s, v, k);
        return;
    }
    bool computed = k->kind >= V_NAME || spread;
    if (!computed && k->kind != V_STRING)
        scan_error(&r->s, "E0110", at, "write the name of a module in quotes",
                   "a key of this dict is %s, not text", value_kind_text(k));
    if (!spread && !r->s.failed && !take(r, ':')) expected(r, "':'");
    Value *x = r->s.failed ? NULL : expression(r);
    if (!x) return;
    if (!r->json && !spread && word_ahead(r, "for")) {
        Value *pair = scan_value(&r->s, V_TUPLE, at);
        if (!pair) return;
        scan_push(&r->s, pair, k);
        scan_push(&r->s, pair, x);
        *made = comprehension(r, "for {", at, pair);
        return;
    }
    if (computed && !*made) {
        *made = op(r, "{", v->loc, NULL, NULL, NULL);
        for (int i = 0; *made && i < v->n_pairs; i++) {
            Value *key = scan_value(&r->s, V_STRING, v->pair[i].loc);
            if (key) key->s = v->pair[i].key;
            scan_push(&r->s, *made, key);
            scan_push(&r->s, *made, v->pair[i].value);
        }
    }
    if (*made) {
        scan_push(&r->s, *made, k);
        scan_push(&r->s, *made, x);
    } else scan_pair(&r->s, v, k->s, at, x);
}
static Value *dict(Reader *r, Loc at) {
    Value *v = scan_value(&r->s, V_DICT, at), *made = NULL;
    if (!v || !open_bracket(r)) return NULL;
    while (!at_end_of(r, '}')) {
        entry(r, v, &made);
        if (!take(r, ',')) break;
    }
    close_bracket(r, '}');
    return r->s.failed ? NULL : made ? made : v;
}
static bool is_quote(char c) { return c == '"' || c == '\''; }
/* An expression inside a text: "{name}" of an f-string. Its place is the text's. */
static Value *inside(Reader *r, Loc at, const char *text, size_t n) {
    Reader sub = {.s = r->s, .open = 1};
    sub.s.p = text;
    sub.s.end = text + n;
    sub.s.line = at.line;
    sub.s.col = at.col;
    Value *v = expression(&sub);
    skip_blanks(&sub);
    if (v && scan_peek(&sub.s, 0)) v = code(&sub, at, "a format in an f-string is not read here");
    r->s.values = sub.s.values;
    r->s.failed = sub.s.failed;
    r->s.spent = sub.s.spent;
    return v;
}
/* Texts and what stands in braces, one behind the other. */
static void fill(Reader *r, Loc at, const char *text, Value *into) {
    Str plain = str_new(r->s.a);
    for (const char *p = text; !r->s.failed; p++) {
        bool brace = *p == '{' && p[1] != '{';
        if (!*p || brace) {
            Value *v = scan_value(&r->s, V_STRING, at);
            if (v) v->s = plain.s;
            scan_push(&r->s, into, v);
            plain = str_new(r->s.a);
        }
        if (!*p) return;
        if (!brace) {
            str_addn(&plain, p, 1);
            p += (*p == '{' || *p == '}') && p[1] == *p;
            continue;
        }
        const char *end = strchr(p, '}');
        if (!end) {
            scan_error(&r->s, "E0110", at, NULL, "a brace of this f-string is not closed");
            return;
        }
        scan_push(&r->s, into, inside(r, at, p + 1, (size_t)(end - p - 1)));
        p = end;
    }
}
/* Adjacent strings are one: "..." r"..." f"{name}" b"...". */
static Value *string(Reader *r, Loc at) {
    static const char join[] = "f";
    Value *v = scan_value(&r->s, V_STRING, at), *parts = NULL;
    Str all = str_new(r->s.a);
    bool bytes = false;
    for (; v;) {
        char c = scan_peek(&r->s, 0), prefix = is_quote(c) ? 0 : (char)(c | 32);
        if (prefix) scan_take(&r->s, 1);
        const char *one = scan_string(&r->s, prefix == 'r', !r->json);
        if (!one) return NULL;
        bytes |= prefix == 'b';
        if (prefix == 'f' && !parts && (parts = op(r, join, at, v, NULL, NULL))) v->s = all.s;
        if (prefix == 'f' && parts) fill(r, at, one, parts);
        else if (parts && (v = scan_value(&r->s, V_STRING, at))) {
            v->s = one;
            scan_push(&r->s, parts, v);
        } else str_add(&all, one);
        if (r->json || r->s.failed) break;
        skip_blanks(r);
        c = scan_peek(&r->s, 0);
        if (!is_quote(c) && !(c && strchr("rRuUfFbB", c) && is_quote(scan_peek(&r->s, 1)))) break;
    }
    if (r->s.failed || bytes || parts)
        return r->s.failed ? NULL : bytes ? code(r, at, "bytes are no text") : parts;
    if (v) v->s = all.s;
    return v;
}
static Value *name(Reader *r, Loc at) {
    static const struct {
        const char *python, *json;
        DatumKind kind;
        bool b;
    } known[] = {{"None", "null", V_NONE, false},
                 {"True", "true", V_BOOL, true},
                 {"False", "false", V_BOOL, false}};
    static const char *const computes[] = {"await", "yield", "if", "else", NULL};
    const char *w = scan_word(&r->s, "");
    for (int i = 0; i < 3; i++)
        if (strcmp(w, r->json ? known[i].json : known[i].python) == 0) {
            Value *v = scan_value(&r->s, known[i].kind, at);
            if (v) v->b = known[i].b;
            return v;
        }
    for (int i = 0; computes[i]; i++)
        if (strcmp(w, computes[i]) == 0)
            return code(r, at, arena_printf(r->s.a, "'%s' would have to be executed", w));
    Value *v = scan_value(&r->s, V_NAME, at);
    if (v) v->s = w;
    return v;
}
static Value *atom(Reader *r) {
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    char c = scan_peek(&r->s, 0), next = scan_peek(&r->s, 1);
    if (c == '{') return dict(r, at);
    if (c == '[') return list(r, ']', at);
    if (c == '(' && !r->json) return list(r, ')', at);
    if (is_quote(c)) return string(r, at);
    if (c && strchr("rRuUfFbB", c) && is_quote(next) && !r->json) return string(r, at);
    bool sign = (c == '-' || c == '+') && (r->json ? isalnum(next) : isdigit(next) || next == '.');
    if (isdigit((unsigned char)c) || c == '.' || sign) return scan_number(&r->s);
    if (isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80) return name(r, at);
    expected(r, "a value");
    return NULL;
}
static bool named_argument(Reader *r) {
    Scan back = r->s;
    bool is = scan_word(&r->s, "") != NULL;
    skip_blanks(r);
    is = is && scan_peek(&r->s, 0) == '=' && scan_peek(&r->s, 1) != '=';
    r->s = back;
    return is;
}
static void arguments(Reader *r, Value *call) {
    if (!open_bracket(r)) return;
    while (!at_end_of(r, ')')) {
        skip_blanks(r);
        Loc at = scan_loc(&r->s);
        if (scan_starts(&r->s, "**")) { /* python_eval puts the pairs of the dict in its place */
            scan_take(&r->s, 2);
            Value *x = expression(r);
            if (x) value_add(r->s.a, call, (ValuePair){.key = "**", .loc = at, .value = x});
        } else if (scan_peek(&r->s, 0) == '*') {
            scan_error(&r->s, "E0217", at, "write the arguments out",
                       "`*` would have to be executed");
        } else if (named_argument(r)) {
            const char *key = scan_word(&r->s, "");
            take(r, '=');
            Value *x = expression(r);
            if (x) scan_pair(&r->s, call, key, at, x);
        } else {
            Value *x = expression(r);
            if (x && word_ahead(r, "for")) x = comprehension(r, "for [", at, x);
            scan_push(&r->s, call, x);
        }
        if (!take(r, ',')) break;
    }
    close_bracket(r, ')');
}
/* [i], ["a", "b"], [1:] */
static Value *subscript(Reader *r) {
    Loc at = scan_loc(&r->s);
    Value *v = scan_value(&r->s, V_LIST, at);
    if (!v || !open_bracket(r)) return NULL;
    while (!at_end_of(r, ']')) {
        if (scan_peek(&r->s, 0) != ':') scan_push(&r->s, v, expression(r));
        if (take(r, ':')) {
            Value *part = code(r, at, "a slice is not read here");
            v->n = 0;
            scan_push(&r->s, v, part);
        }
        if (!take(r, ',')) break;
    }
    close_bracket(r, ']');
    return r->s.failed ? NULL : v;
}
/* A name or a value with .attributes, [indices] and (arguments) behind it. */
static Value *trailers(Reader *r, Value *v) {
    while (v && !r->s.failed && !r->json && v->kind >= V_STRING) {
        skip_blanks(r);
        char c = scan_peek(&r->s, 0);
        Value *x = c == '.' || c == '[' || c == '(' ? scan_value(&r->s,
                                                                 c == '.'   ? V_ATTR
                                                                 : c == '[' ? V_INDEX
                                                                            : V_CALL,
                                                                 v->loc)
                                                    : NULL;
        if (!x) return v;
        scan_push(&r->s, x, v);
        if (c == '.') {
            scan_take(&r->s, 1);
            skip_blanks(r);
            x->s = scan_word(&r->s, "");
            if (!x->s) expected(r, "a name");
        } else if (c == '[') {
            Value *index = subscript(r);
            if (!index) return NULL;
            /* m["a", "b"] keeps its list, m["a"] is its one index */
            scan_push(&r->s, x, index->n == 1 ? index->item[0] : index);
        } else {
            arguments(r, x);
        }
        if (++r->s.depth > VALUE_DEPTH * 4) scan_deeper(&r->s);
        v = x;
    }
    return r->s.failed ? NULL : v;
}
/* Operators of two sides, longest first; those that bind tighter have a higher level. */
static const struct {
    const char *text;
    int level;
} operators[] = {{"or", 1}, {"and", 2}, {"not in", 4}, {"in", 4},  {"is not", 4},
                 {"is", 4}, {"==", 4},  {"!=", 4},     {"<<", 8},  {">>", 8},
                 {"<=", 4}, {">=", 4},  {"<", 4},      {">", 4},   {"|", 5},
                 {"^", 6},  {"&", 7},   {"//", 10},    {"**", 12}, {"*", 10},
                 {"/", 10}, {"%", 10},  {"@", 10},     {"+", 9},   {"-", 9}};
enum { COMPARES = 4, CHANGES = 5, POWER = 12 };

/* The operator that stands here, or -1; `+=` is none. */
static int operator_ahead(Reader *r) {
    skip_blanks(r);
    for (int i = 0; i < (int)(sizeof operators / sizeof *operators); i++) {
        const char *s = operators[i].text;
        size_t n = strlen(s);
        if (isalpha((unsigned char)*s) ? !word_ahead(r, s) : !scan_starts(&r->s, s)) continue;
        return operators[i].level >= CHANGES && scan_peek(&r->s, n) == '=' ? -1 : i;
    }
    return -1;
}
static Value *unary(Reader *r) {
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    char c = scan_peek(&r->s, 0), next = scan_peek(&r->s, 1);
    if (!r->json && word_ahead(r, "not") && scan_deeper(&r->s)) {
        take_word(r, "not");
        return op(r, "not", at, binary(r, COMPARES), NULL, NULL);
    }
    if (!r->json && (c == '~' || ((c == '-' || c == '+') && !isdigit(next) && next != '.')) &&
        scan_deeper(&r->s)) {
        scan_take(&r->s, 1);
        return op(r, c == '-' ? "minus" : c == '+' ? "plus" : "~", at, unary(r), NULL, NULL);
    }
    return trailers(r, atom(r));
}
/* Operators of this level and tighter ones, from the left; `**` from the right. */
static Value *binary(Reader *r, int least) {
    Value *left = unary(r);
    bool compared = false;
    for (int i; left && !r->s.failed && !r->json && (i = operator_ahead(r)) >= 0;) {
        int level = operators[i].level;
        const char *s = operators[i].text;
        if (level < least) break;
        if (++r->s.depth > VALUE_DEPTH * 4 && !scan_deeper(&r->s)) return NULL;
        Loc at = left->loc;
        scan_take(&r->s, strlen(s));
        Value *right = binary(r, level == POWER ? level : level + 1);
        left = op(r, compared && level == COMPARES ? "a chain of comparisons" : s, at, left, right,
                  NULL);
        compared = level == COMPARES;
    }
    return r->s.failed ? NULL : left;
}
static Value *name_value(Reader *r, const char *what, const char *more) {
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    const char *w = scan_word(&r->s, more);
    if (!w) {
        expected(r, what);
        return NULL;
    }
    Value *v = scan_value(&r->s, V_NAME, at);
    if (v) v->s = w;
    return v;
}
static Value *lambda(Reader *r, Loc at) {
    Value *name = NULL, *body = NULL;
    take_word(r, "lambda");
    if (!scan_deeper(&r->s)) return NULL;
    name = name_value(r, "the name of an argument", "");
    if (name && take(r, ',')) return code(r, at, "a lambda of several arguments is not read here");
    if (name && !take(r, ':')) expected(r, "':'");
    if (!r->s.failed) body = expression(r);
    return body ? op(r, "lambda", at, name, body, NULL) : NULL;
}
static Value *expression(Reader *r) {
    int depth = r->s.depth;
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    bool is_lambda = !r->json && word_ahead(r, "lambda");
    Value *v = is_lambda ? lambda(r, at) : binary(r, 1);
    if (v && !r->json && !is_lambda && take_word(r, "if") && scan_deeper(&r->s)) {
        Value *condition = binary(r, 1), *other = NULL;
        if (condition && !take_word(r, "else")) expected(r, "'else'");
        if (!r->s.failed) other = expression(r);
        v = other ? op(r, "if", at, condition, v, other) : NULL;
    }
    r->s.depth = depth;
    return r->s.failed ? NULL : v;
}
/* a, b: one value, or a tuple without brackets. */
static Value *expressions(Reader *r) {
    Value *v = expression(r), *all = NULL;
    while (v && take(r, ',')) {
        char c = (skip_blanks(r), scan_peek(&r->s, 0));
        if (!all && (all = scan_value(&r->s, V_TUPLE, v->loc))) scan_push(&r->s, all, v);
        if (!all || !c || c == '\n' || c == ';' || c == '=') break;
        if (!(v = expression(r))) return NULL;
        scan_push(&r->s, all, v);
    }
    return r->s.failed ? NULL : all ? all : v;
}
/* What a loop binds: `x`, `i, x`, `(i, x)`. */
static Value *targets(Reader *r) {
    Value *v = trailers(r, atom(r)), *all = NULL;
    while (v && take(r, ',')) {
        if (!all && (all = scan_value(&r->s, V_TUPLE, v->loc))) scan_push(&r->s, all, v);
        if (!all || word_ahead(r, "in")) break;
        if (!(v = trailers(r, atom(r)))) return NULL;
        scan_push(&r->s, all, v);
    }
    return r->s.failed ? NULL : all ? all : v;
}

/* ---- statements ---- */
static Statement *statement_new(Reader *r, StatementKind kind, Loc at) {
    Statement *x = ARENA_NEW(r->s.a, Statement);
    x->kind = kind;
    x->loc = at;
    return x;
}
static void add(Reader *r, Statement *block, Statement *x) {
    *ARENA_PUSH(r->s.a, block->body, block->n, block->cap) = x;
}
static void block(Reader *r, Statement *into, int indent);
static void statement(Reader *r, Statement *into, int indent);
static int next_indent(Reader *r);

/* From the colon on: the statements of the lines that stand deeper. */
static void body(Reader *r, Statement *x, int indent) {
    if (!take(r, ':')) {
        expected(r, "':'");
        return;
    }
    skip_blanks(r);
    if (scan_peek(&r->s, 0) != '\n') { /* if x: continue */
        do {
            skip_blanks(r);
            if (scan_peek(&r->s, 0) && scan_peek(&r->s, 0) != '\n') statement(r, x, indent);
        } while (!r->s.failed && take(r, ';'));
        return;
    }
    if (scan_deeper(&r->s)) {
        block(r, x, indent + 1);
        r->s.depth--;
    }
}
/* `import a.b`, `from a.b import c as d, e`: names that stand for others. */
static void import(Reader *r, Statement *into, Loc at, bool from) {
    if (from) {
        name_value(r, "a module", ".");
        if (!r->s.failed && !take_word(r, "import")) expected(r, "'import'");
    }
    bool bracket = from && take(r, '(');
    r->open += bracket;
    for (bool more = !r->s.failed; more;) {
        if (from && take(r, '*')) break;
        Statement *x = statement_new(r, PY_IMPORT, at);
        x->value = x->target = name_value(r, "a name", from ? "" : ".");
        if (take_word(r, "as")) x->target = name_value(r, "a name", "");
        if (r->s.failed) break;
        add(r, into, x);
        more = take(r, ',') && !(bracket && at_end_of(r, ')'));
    }
    if (bracket && !r->s.failed && !take(r, ')')) expected(r, "')'");
    r->open -= bracket;
}
static void loop(Reader *r, Statement *into, Loc at, int indent) {
    Statement *x = statement_new(r, PY_FOR, at);
    x->target = targets(r);
    if (!r->s.failed && !take_word(r, "in")) expected(r, "'in'");
    if (!r->s.failed) x->value = expressions(r);
    if (x->value) body(r, x, indent);
    if (x->value) add(r, into, x);
}
static void with(Reader *r, Statement *into, Loc at, int indent) {
    Statement *x = statement_new(r, PY_WITH, at);
    x->value = expression(r);
    if (x->value && take_word(r, "as")) x->target = name_value(r, "a name", "");
    if (!r->s.failed) body(r, x, indent);
    if (x->value) add(r, into, x);
}
/* if, elif and else: one statement, the rest of whose branches is its `otherwise`. */
static void branch(Reader *r, Statement *into, Loc at, int indent) {
    Statement *x = statement_new(r, PY_IF, at);
    x->value = expression(r);
    if (!x->value) return;
    body(r, x, indent);
    add(r, into, x);
    if (r->s.failed || next_indent(r) != indent) return;
    Loc other = scan_loc(&r->s);
    bool again = take_word(r, "elif");
    if (!again && !take_word(r, "else")) return;
    x->otherwise = statement_new(r, PY_IF, other);
    if (!scan_deeper(&r->s)) return;
    if (again) branch(r, x->otherwise, other, indent);
    else body(r, x->otherwise, indent);
    r->s.depth--;
}
/* `case "always" | "yes" if x`: when it is taken; a condition that holds of `_`. NULL: captures and
 * classes, which only an execution could match. */
static Value *matches(Reader *r, Value *subject) {
    Value *any = NULL;
    int depth = r->s.depth; /* each alternative nests those before it */
    do {
        if (++r->s.depth > VALUE_DEPTH * 4 && !scan_deeper(&r->s)) return NULL;
        skip_blanks(r);
        Loc at = scan_loc(&r->s);
        Value *x = word_ahead(r, "_") ? scan_value(&r->s, V_BOOL, at) : binary(r, CHANGES + 1);
        if (!x) return NULL;
        bool all = x->kind == V_BOOL && take_word(r, "_");
        bool literal = x->kind == V_STRING || x->kind == V_INT || x->kind == V_REAL ||
                       x->kind == V_BOOL || x->kind == V_NONE || x->kind == V_ATTR;
        if (!literal) {
            scan_error(&r->s, "E0217", at, "keep the branch that your run takes",
                       "a pattern that is no literal would have to be executed; this file is read "
                       "as data");
            return NULL;
        }
        if (all) x->b = true;
        else x = op(r, "==", at, subject, x, NULL);
        any = any ? op(r, "or", at, any, x, NULL) : x;
    } while (any && take(r, '|'));
    r->s.depth = depth;
    Loc at = scan_loc(&r->s);
    return any && take_word(r, "if") ? op(r, "and", at, any, expression(r), NULL) : any;
}
/* match and its cases: the same as if, elif and else. */
static void match(Reader *r, Statement *into, Loc at, int indent) {
    Value *subject = expression(r);
    int col = 0, depth = r->s.depth;
    if (subject && !take(r, ':')) expected(r, "':'");
    while (subject && !r->s.failed && next_indent(r) > indent && (!col || r->s.col == col)) {
        Statement *x = statement_new(r, PY_IF, (col = r->s.col, scan_loc(&r->s)));
        if (!take_word(r, "case")) expected(r, "'case'");
        if (r->s.failed || !scan_deeper(&r->s)) break;
        x->value = matches(r, subject);
        if (!x->value || r->s.failed) break;
        body(r, x, col);
        add(r, into, x);
        into = x->otherwise = statement_new(r, PY_IF, at);
    }
    if (!r->s.failed) r->s.depth = depth;
}
/* (model, tp_mesh: DeviceMesh, loss_parallel: bool = False, *, **more) */
static void parameters(Reader *r, Value *call) {
    if (scan_peek(&r->s, 0) != '(') expected(r, "'('");
    if (r->s.failed || !open_bracket(r)) return;
    while (!at_end_of(r, ')')) {
        bool more = take(r, '*') || take(r, '/');
        take(r, '*');
        Loc at = (skip_blanks(r), scan_loc(&r->s));
        const char *w = scan_word(&r->s, "");
        if (!w && !more) expected(r, "the name of an argument");
        if (w && take(r, ':')) expression(r);
        Value *x = NULL;
        if (w && !r->s.failed && take(r, '=')) x = expression(r);
        else if (w && !more && (x = scan_value(&r->s, V_CODE, at)))
            x->s = arena_printf(r->s.a, "`%s` is an argument of a function that is not called here",
                                w);
        if (x) scan_pair(&r->s, call, w, at, x);
        if (!take(r, ',')) break;
    }
    close_bracket(r, ')');
    skip_blanks(r);
    if (!r->s.failed && scan_starts(&r->s, "->")) scan_take(&r->s, 2), expression(r);
}
static void def(Reader *r, Statement *into, Loc at, int indent) {
    Statement *x = statement_new(r, PY_DEF, at);
    x->target = name_value(r, "a name", "");
    x->value = scan_value(&r->s, V_CALL, at);
    if (!r->s.failed && x->value) skip_blanks(r), parameters(r, x->value);
    skip_blanks(r);
    if (!r->s.failed) body(r, x, indent);
    add(r, into, x);
}
/* 1 + the operator of `+=`, or 0. */
static int changing_ahead(Reader *r) {
    skip_blanks(r);
    for (int i = 0; i < (int)(sizeof operators / sizeof *operators); i++) {
        size_t n = strlen(operators[i].text);
        if (operators[i].level >= CHANGES && scan_starts(&r->s, operators[i].text) &&
            scan_peek(&r->s, n) == '=')
            return i + 1;
    }
    return 0;
}
static void simple(Reader *r, Statement *into, Loc at) {
    Statement *x = statement_new(r, PY_EXPR, at);
    x->value = expressions(r);
    if (x->value && take(r, ':')) expression(r); /* a type */
    int i = r->s.failed ? 0 : changing_ahead(r);
    if (i > 0) {
        scan_take(&r->s, strlen(operators[i - 1].text) + 1);
        Value *more = expression(r);
        x->kind = PY_ASSIGN;
        x->target = x->value;
        x->value = more ? op(r, operators[i - 1].text, at, x->target, more, NULL) : NULL;
    } else if (!r->s.failed && take(r, '=')) {
        x->kind = PY_ASSIGN;
        x->target = x->value;
        x->value = expressions(r);
    }
    if (!r->s.failed && x->value) add(r, into, x);
}
/* Words that begin what only an execution could decide. */
static bool refused(Reader *r, Loc at) {
    static const struct {
        const char *word, *why;
    } rows[] = {{"elif", "keep the branch that your run takes"},
                {"else", "keep the branch that your run takes"},
                {"while", "write its rounds out"},
                {"try", "keep the lines that your run takes"},
                {"except", "keep the lines that your run takes"},
                {"finally", "keep the lines that your run takes"},
                {"class", "give the styles that the class makes as a dict"},
                {"async", "plain calls only"},
                {"@", "leave the decorator out"},
                {"del", "leave out what it deletes"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (word_ahead(r, rows[i].word)) {
            scan_error(&r->s, "E0217", at, rows[i].why,
                       "'%s' would have to be executed; this file is read as data", rows[i].word);
            return true;
        }
    return false;
}
/* return, continue, break, raise; assertions and declarations say nothing. */
static bool leaves(Reader *r, Statement *into, Loc at) {
    static const struct {
        const char *word;
        StatementKind kind; /* PY_EXPR: passed over */
    } rows[] = {{"return", PY_RETURN}, {"continue", PY_CONTINUE}, {"break", PY_BREAK},
                {"raise", PY_RAISE},   {"assert", PY_EXPR},       {"global", PY_EXPR},
                {"nonlocal", PY_EXPR}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!take_word(r, rows[i].word)) continue;
        char c = (skip_blanks(r), scan_peek(&r->s, 0));
        bool more = c && c != '\n' && c != ';';
        Statement *x = statement_new(r, rows[i].kind, at);
        if (rows[i].kind == PY_EXPR) skip_expression(r);
        else if (more && (x->value = expressions(r)) && take_word(r, "from")) expression(r);
        for (; rows[i].kind == PY_EXPR && take(r, ',');) skip_expression(r);
        if (rows[i].kind != PY_EXPR && !r->s.failed) add(r, into, x);
        return true;
    }
    return false;
}
/* `match x:`; elsewhere `match` is a name. */
static bool matching(Reader *r) {
    size_t n = 5;
    if (!word_ahead(r, "match")) return false;
    while (scan_peek(&r->s, n) == ' ') n++;
    return !strchr("=.,:)(+[", scan_peek(&r->s, n));
}
static void statement(Reader *r, Statement *into, int indent) {
    Loc at = scan_loc(&r->s);
    if (refused(r, at)) return;
    if (take_word(r, "import")) import(r, into, at, false);
    else if (take_word(r, "from")) import(r, into, at, true);
    else if (take_word(r, "for")) loop(r, into, at, indent);
    else if (take_word(r, "with")) with(r, into, at, indent);
    else if (take_word(r, "def")) def(r, into, at, indent);
    else if (take_word(r, "if")) branch(r, into, at, indent);
    else if (matching(r) && take_word(r, "match")) match(r, into, at, indent);
    else if (take_word(r, "pass")) return;
    else if (!leaves(r, into, at)) simple(r, into, at);
}
static void skip_line(Reader *r) {
    char c;
    while ((c = scan_peek(&r->s, 0)) && c != '\n') scan_take(&r->s, 1);
}
/* Blank lines and comments; the column of the next statement, or 0 at the end. */
static int next_indent(Reader *r) {
    for (;;) {
        skip_blanks(r);
        char c = scan_peek(&r->s, 0);
        if (!c || r->s.spent) return 0;
        if (c != '\n' && c != ';') return r->s.col;
        scan_take(&r->s, 1);
    }
}
/* After a mistake: to the next line that begins no deeper and closes nothing. */
static void recover(Reader *r, int indent) {
    r->s.failed = false;
    r->open = 0;
    for (int col; skip_line(r), (col = next_indent(r));)
        if (col <= indent && !strchr(")]}", scan_peek(&r->s, 0))) return;
}
/* Statements that begin in one column, which is `indent` or deeper. */
static void block(Reader *r, Statement *into, int indent) {
    int col = 0, depth = r->s.depth, line = 0;
    for (int at; (at = next_indent(r)) && at >= indent && (!col || at >= col);) {
        if (!col) col = at;
        bool same_line = line == r->s.line; /* behind a semicolon */
        if (at > col && !same_line)
            scan_error(&r->s, "E0110", scan_loc(&r->s), NULL,
                       "this line stands deeper than the one before it");
        else statement(r, into, col);
        skip_blanks(r);
        char c = scan_peek(&r->s, 0);
        line = c == ';' ? r->s.line : 0;
        bool nested = into->n && into->body[into->n - 1]->kind >= PY_FOR;
        if (!r->s.failed && c && c != '\n' && c != ';' && !nested) {
            const char *found = here(r);
            scan_error(&r->s, "E0110", scan_loc(&r->s), NULL, "%s is not expected here", found);
        }
        if (r->s.failed) {
            r->s.depth = depth;
            recover(r, col);
        }
    }
    if (!col && into->kind >= PY_FOR)
        scan_error(&r->s, "E0110", scan_loc(&r->s), NULL, "an indented line is expected here");
}

Statement *python_read(Arena *a, Diags *d, const char *file, const char *text, size_t n) {
    Reader r = {0};
    Statement *all = ARENA_NEW(a, Statement);
    if (!scan_start(&r.s, a, d, file, text, n)) return all;
    while (next_indent(&r)) {
        block(&r, all, 1);
        if (next_indent(&r) && !r.s.spent) { /* a line that stands less deep than the first */
            scan_error(&r.s, "E0110", scan_loc(&r.s), NULL,
                       "this line stands less deep than those before it");
            recover(&r, 1 << 20);
        }
    }
    return all;
}
Value *python_expression(Arena *a, Diags *d, Loc at, const char *text) {
    Reader r = {.s = {.a = a,
                      .d = d,
                      .file = at.file,
                      .p = text,
                      .end = text + strlen(text),
                      .line = at.line,
                      .col = at.col},
                .open = 1};
    Value *v = expression(&r);
    skip_blanks(&r);
    if (v && scan_peek(&r.s, 0)) {
        expected(&r, "the end of the text");
        return NULL;
    }
    return v ? python_value(a, d, v) : NULL;
}
/* From the reader's place on. */
static Value *json_read(Reader *r) {
    const char *error;
    int line, col;
    size_t left = (size_t)(r->s.end - r->s.p);
    Arena *a = arena_new(); /* of it is only kept that it is JSON */
    bool is = json_parse(a, r->s.p, left, &error, &line, &col);
    if (!is)
        diag_error(r->s.d, "E0109", ((Loc){r->s.file, line, col}), NULL, "this is not JSON: %s",
                   error);
    arena_free(a);
    return is ? expression(r) : NULL;
}
Value *json_values(Arena *a, Diags *d, const char *file, const char *text, size_t n) {
    Reader r = {.json = true, .open = 1};
    return scan_start(&r.s, a, d, file, text, n) ? json_read(&r) : NULL;
}
Value *json_names(Arena *a, Diags *d, const char *file, const char *text, size_t n) {
    Reader r = {.json = true, .open = 1};
    if (!scan_start(&r.s, a, d, file, text, n)) return NULL;
    r.s.names = true;
    return json_read(&r);
}
