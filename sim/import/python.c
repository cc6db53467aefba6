/* A strict small reader of the part of Python that is data. Blocks by indentation, brackets that
 * join lines, comments; every construct that computes something is refused by name, with what to
 * write instead. */
#include "import/python.h"
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
/* (...) is what is in it, or a tuple. */
static Value *list(Reader *r, char bracket, Loc at) {
    Value *v = scan_value(&r->s, bracket == ']' ? V_LIST : V_TUPLE, at), *made = NULL;
    bool comma = false;
    if (!v || !open_bracket(r)) return NULL;
    while (!at_end_of(r, bracket)) {
        scan_push(&r->s, v, expression(r));
        if (word_ahead(r, "for")) made = code(r, at, "a comprehension would have to be executed");
        if (!take(r, ',')) break;
        comma = true;
    }
    close_bracket(r, bracket);
    if (r->s.failed || made) return r->s.failed ? NULL : made;
    return bracket == ')' && v->n == 1 && !comma ? v->item[0] : v;
}
/* One entry of a dict; false if the dict is code as a whole. */
static bool entry(Reader *r, Value *v) {
    skip_blanks(r);
    Loc at = scan_loc(&r->s);
    if (scan_starts(&r->s, "**")) return false;
    if (r->json && scan_peek(&r->s, 0) == '"') { /* no value of its own: there are many */
        const char *key = scan_string(&r->s, false, false);
        if (key && !take(r, ':')) expected(r, "':'");
        Value *x = r->s.failed ? NULL : expression(r);
        if (x) scan_pair(&r->s, v, key, at, x);
        return true;
    }
    Value *k = expression(r);
    if (r->s.failed) return true;
    if (k->kind != V_STRING && k->kind >= V_NAME) return false;
    if (k->kind != V_STRING)
        scan_error(&r->s, "E0110", at, "write the name of a module in quotes",
                   "a key of this dict is %s, not text", value_kind_text(k));
    if (!r->s.failed && !take(r, ':')) expected(r, "':'");
    Value *x = r->s.failed ? NULL : expression(r);
    if (x && word_ahead(r, "for")) return false;
    if (x) scan_pair(&r->s, v, k->s, at, x);
    return true;
}
static Value *dict(Reader *r, Loc at) {
    Value *v = scan_value(&r->s, V_DICT, at);
    if (!v || !open_bracket(r)) return NULL;
    while (!at_end_of(r, '}')) {
        if (!entry(r, v)) {
            v = code(r, scan_loc(&r->s),
                     "a dict made by `**`, a comprehension or with names for keys would have to be "
                     "executed");
            while (v && take(r, ',')) skip_expression(r);
            break;
        }
        if (!take(r, ',')) break;
    }
    close_bracket(r, '}');
    return r->s.failed ? NULL : v;
}
/* Adjacent strings are one. */
static Value *string(Reader *r, Loc at, bool raw) {
    Value *v = scan_value(&r->s, V_STRING, at);
    Str all = str_new(r->s.a);
    for (char c; v; raw = false) {
        const char *one = scan_string(&r->s, raw, !r->json);
        if (!one) return NULL;
        str_add(&all, one);
        if (r->json) break;
        skip_blanks(r);
        c = scan_peek(&r->s, 0);
        if (c != '"' && c != '\'') break;
    }
    if (v) v->s = all.s;
    return v;
}
static bool is_quote(char c) { return c == '"' || c == '\''; }
/* r"..." and u"..."; f"..." and b"..." are no data. */
static Value *prefixed(Reader *r, Loc at) {
    char c = (char)(scan_peek(&r->s, 0) | 32);
    if (c == 'f' || c == 'b')
        return code(r, at,
                    c == 'f' ? "an f-string would have to be executed" : "bytes are no text");
    scan_take(&r->s, 1);
    return string(r, at, c == 'r');
}
static Value *name(Reader *r, Loc at) {
    static const struct {
        const char *python, *json;
        DatumKind kind;
        bool b;
    } known[] = {{"None", "null", V_NONE, false},
                 {"True", "true", V_BOOL, true},
                 {"False", "false", V_BOOL, false}};
    static const char *const computes[] = {"lambda", "not", "await", "yield", "if", "else", NULL};
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
    if (is_quote(c)) return string(r, at, false);
    if (c && strchr("rRuUfFbB", c) && is_quote(next)) return prefixed(r, at);
    if (isdigit((unsigned char)c) || c == '.' || ((c == '-' || c == '+') && isalnum(next)))
        return scan_number(&r->s);
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
        if (scan_peek(&r->s, 0) == '*')
            scan_error(&r->s, "E0217", at, "write the arguments out",
                       "`*` would have to be executed");
        if (named_argument(r)) {
            const char *key = scan_word(&r->s, "");
            take(r, '=');
            Value *x = expression(r);
            if (x) scan_pair(&r->s, call, key, at, x);
        } else {
            scan_push(&r->s, call, expression(r));
        }
        if (!take(r, ',')) break;
    }
    close_bracket(r, ')');
}
/* A name with .attributes, [indices] and (arguments) behind it. */
static Value *trailers(Reader *r, Value *v) {
    while (v && !r->s.failed && !r->json && v->kind >= V_NAME) {
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
            Value *index = list(r, ']', scan_loc(&r->s));
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
static Value *expression(Reader *r) {
    int depth = r->s.depth;
    Value *v = trailers(r, atom(r));
    r->s.depth = depth;
    if (!v || r->json) return v;
    static const char *const computing[] = {"if", "and", "or", "in", "is", "not", NULL};
    Loc at = (skip_blanks(r), scan_loc(&r->s));
    for (int i = 0; computing[i]; i++)
        if (word_ahead(r, computing[i]) &&
            !(strcmp(computing[i], "in") == 0 && v->kind >= V_NAME)) /* of a loop */
            return code(r, at,
                        arena_printf(r->s.a, "an expression with '%s' would have to be executed",
                                     computing[i]));
    char c = scan_peek(&r->s, 0);
    if (c && (strchr("+-*/%|&^<>@~!", c) || scan_starts(&r->s, "=="))) {
        bool changes = strchr("+-*/%|&^@", c) && scan_peek(&r->s, 1) == '=';
        if (changes) {
            scan_error(&r->s, "E0217", at, "write the value that it has",
                       "'%c=' would have to be executed", c);
            return NULL;
        }
        return code(r, at,
                    arena_printf(r->s.a, "an expression with '%c' would have to be executed", c));
    }
    return v;
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

/* From the colon on: the statements of the lines that stand deeper. */
static void body(Reader *r, Statement *x, int indent) {
    if (!take(r, ':')) {
        expected(r, "':'");
        return;
    }
    skip_blanks(r);
    if (scan_peek(&r->s, 0) != '\n')
        scan_error(&r->s, "E0110", scan_loc(&r->s), "put it on a line of its own",
                   "a statement behind the colon is not read here");
    if (!r->s.failed && scan_deeper(&r->s)) {
        block(r, x, indent + 1);
        r->s.depth--;
    }
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
    x->target = expression(r);
    if (x->target && take(r, ',')) { /* for i, layer in enumerate(...): the last one is it */
        x->target = expression(r);
    }
    if (!r->s.failed && !take_word(r, "in")) expected(r, "'in'");
    if (!r->s.failed) x->value = expression(r);
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
/* A function's body is read as if it were called once. */
static void def(Reader *r, Statement *into, Loc at, int indent) {
    Statement *x = statement_new(r, PY_DEF, at);
    x->target = name_value(r, "a name", "");
    int depth = 0;
    for (char c; !r->s.failed; scan_take(&r->s, 1)) {
        c = scan_peek(&r->s, 0);
        if (c == '(' || c == '[' || c == '{') depth++;
        if (c == ')' || c == ']' || c == '}') depth--;
        if (!c || (c == ':' && depth <= 0)) break;
    }
    if (!r->s.failed) body(r, x, indent);
    add(r, into, x);
}
static void simple(Reader *r, Statement *into, Loc at) {
    Statement *x = statement_new(r, PY_EXPR, at);
    x->value = expression(r);
    if (x->value && take(r, ':')) expression(r); /* a type */
    if (x->value && take(r, ',')) {              /* a tuple without brackets, or several targets */
        scan_error(&r->s, "E0217", at, "write one assignment on each line",
                   "several values at once are not read here");
    }
    if (!r->s.failed && take(r, '=')) {
        x->kind = PY_ASSIGN;
        x->target = x->value;
        x->value = expression(r);
    }
    if (!r->s.failed && x->value) add(r, into, x);
}
/* Words that begin what only an execution could decide. */
static bool refused(Reader *r, Loc at) {
    static const struct {
        const char *word, *why;
    } rows[] = {{"if", "keep the branch that your run takes, without its `if`"},
                {"elif", "keep the branch that your run takes"},
                {"else", "keep the branch that your run takes"},
                {"while", "write its rounds out"},
                {"try", "keep the lines that your run takes"},
                {"except", "keep the lines that your run takes"},
                {"finally", "keep the lines that your run takes"},
                {"class", "give the styles that the class makes as a dict"},
                {"match", "keep the branch that your run takes"},
                {"async", "plain calls only"},
                {"@", "leave the decorator out"},
                {"del", "leave out what it deletes"},
                {"raise", "leave it out"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (word_ahead(r, rows[i].word)) {
            if (strcmp(rows[i].word, "match") == 0) { /* a name elsewhere */
                char c = scan_peek(&r->s, 5);
                if (c == '(' || c == '.' || c == '=' || scan_starts(&r->s, "match =")) continue;
            }
            scan_error(&r->s, "E0217", at, rows[i].why,
                       "'%s' would have to be executed; this file is read as data", rows[i].word);
            return true;
        }
    return false;
}
static void statement(Reader *r, Statement *into, int indent) {
    Loc at = scan_loc(&r->s);
    if (refused(r, at)) return;
    if (take_word(r, "import")) import(r, into, at, false);
    else if (take_word(r, "from")) import(r, into, at, true);
    else if (take_word(r, "for")) loop(r, into, at, indent);
    else if (take_word(r, "with")) with(r, into, at, indent);
    else if (take_word(r, "def")) def(r, into, at, indent);
    else if (take_word(r, "pass") || take_word(r, "return")) {
        skip_blanks(r);
        char c = scan_peek(&r->s, 0);
        if (c && c != '\n' && c != ';') simple(r, into, at);
    } else if (word_ahead(r, "assert") || word_ahead(r, "global")) {
        char c;
        while ((c = scan_peek(&r->s, 0)) && c != '\n') scan_take(&r->s, 1);
    } else {
        simple(r, into, at);
    }
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
    return v;
}
/* From the reader's place on. */
static Value *json_read(Reader *r) {
    const char *error;
    int line, col;
    size_t left = (size_t)(r->s.end - r->s.p);
    if (!json_parse(r->s.a, r->s.p, left, &error, &line, &col)) {
        diag_error(r->s.d, "E0109", ((Loc){r->s.file, line, col}), NULL, "this is not JSON: %s",
                   error);
        return NULL;
    }
    return expression(r);
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
