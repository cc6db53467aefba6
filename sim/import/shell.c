/* The reader of a shell's words. A word is a row of segments, each with its place: a blank within
 * quotes is a segment of its own, so that a string that is passed on without quotes comes apart
 * into words that know where they stand. */
#include "import/shell.h"
#include "base/text.h"
#include "import/shell_number.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 1 << 18, LONGEST_WORD = 4096 }; /* of a file; bytes of a word */

typedef struct {
    const char *s;
    Loc at;
    const char *why;
    bool blank, unset; /* of a variable that nothing here sets */
    const ShellChoice *choice;
    int branch;
} Segment;
typedef struct {
    Segment *seg;
    int n, cap;
} Field;
typedef struct {
    Field *field;
    int n, cap;
    bool open; /* what is added belongs to the last one */
} Fields;
typedef struct {
    const char *name;
    bool array;
    Fields value;
    const char *why;           /* not decided here, */
    const ShellChoice *choice; /* but where all branches of this one set it alike: */
    int set_by;                /* the first so many do so far */
    Loc given;                 /* the environment's: where it stands; */
    bool read, lost;           /* asked for; set anew before anybody asked */
} Var;
/* Whether a branch is taken, ordered by how little is known of it. */
typedef enum { TAKEN, LEFT, PERHAPS } Branch;
typedef struct {
    const char *opener;
    Loc at;
    Branch branch;
    Branch before; /* of the branches before this one: was one taken? */
    ShellChoice *choice;
} Block;
typedef struct {
    Scan *s;
    ShellWords *out;
    Var *var;
    int n_vars, cap_vars;
    int spent;
    int depth; /* of if, for, case, functions */
    Block block[VALUE_DEPTH];
    Str functions;    /* their names */
    bool behind;      /* && or ||: perhaps not done */
    bool asks;        /* between `if` and `then`: */
    Fields condition; /* its words, "&&", "||" and ";" between commands */
} Shell;

/* ---- words in the making ---- */
static void add(Shell *sh, Fields *to, Segment seg) {
    Scan *s = sh->s;
    if (to->open && !*seg.s && !seg.why) return; /* "" is a word, but no piece of one */
    if (sh->spent++ > SEGMENTS)
        scan_error(s, "E0704", seg.at, NULL, "more than %d pieces of words", SEGMENTS);
    if (s->failed) return;
    if (!to->open) {
        if (to->n == VALUE_PAIRS) {
            scan_error(s, "E0704", seg.at, NULL, "more than %d words", VALUE_PAIRS);
            return;
        }
        *ARENA_PUSH(s->a, to->field, to->n, to->cap) = (Field){0};
        to->open = true;
    }
    Field *f = &to->field[to->n - 1];
    *ARENA_PUSH(s->a, f->seg, f->n, f->cap) = seg;
}
static void add_literal(Shell *sh, Fields *to, const char *from, Loc at) {
    const char *text = arena_strndup(sh->s->a, from, (size_t)(sh->s->p - from));
    add(sh, to, (Segment){.s = text, .at = at});
}
static void add_undecided(Shell *sh, Fields *to, const char *from, Loc at, const char *why) {
    const char *text = arena_strndup(sh->s->a, from, (size_t)(sh->s->p - from));
    add(sh, to, (Segment){.s = text, .at = at, .why = why});
}
/* A value in this place; unless it stands in quotes, its blanks end words. */
static void add_value(Shell *sh, Fields *to, const Fields *value, bool quoted) {
    for (int i = 0; i < value->n && !sh->s->failed; i++) {
        const Field *f = &value->field[i];
        if (i) to->open = false;
        for (int k = 0; k < f->n; k++) {
            if (f->seg[k].blank && !quoted) to->open = false;
            else if (*f->seg[k].s || quoted) add(sh, to, f->seg[k]);
        }
    }
}
/* A word's text; NULL and an error if it is longer than any should be. */
static const char *text_of(Shell *sh, const Field *f, const char **why) {
    Str text = str_new(sh->s->a);
    *why = NULL;
    for (int i = 0; i < f->n; i++) {
        str_add(&text, f->seg[i].s);
        if (!*why) *why = f->seg[i].why;
        if (text.n > LONGEST_WORD) {
            scan_error(sh->s, "E0704", f->seg[0].at, NULL, "a word of more than %d bytes",
                       LONGEST_WORD);
            return NULL;
        }
    }
    return text.s;
}

/* What the blocks around this place say; why, where it is PERHAPS, and the one block that says so.
 */
static Branch branch_of(const Shell *sh, const char **why, const Block **by) {
    Branch found = TAKEN;
    *why = NULL, *by = NULL;
    for (int i = 0; i < sh->depth && found != LEFT; i++) {
        const Block *b = &sh->block[i];
        if (b->branch == PERHAPS) *by = *why ? NULL : b;
        if (b->branch == PERHAPS && !*why)
            *why = arena_printf(sh->s->a, "'%s' in line %d decides it", b->opener, b->at.line);
        if (b->branch != TAKEN) found = b->branch;
    }
    if (sh->behind) *by = NULL;
    if (found == TAKEN && sh->behind) {
        *why = "whether what stands before it succeeds decides it";
        return PERHAPS;
    }
    return *why && found != LEFT ? PERHAPS : found;
}

/* ---- variables ---- */
static Var *var_of(const Shell *sh, const char *name) {
    for (int i = 0; i < sh->n_vars; i++)
        if (strcmp(sh->var[i].name, name) == 0) return &sh->var[i];
    return NULL;
}
/* Whose value is asked for. */
static const Var *var_read(Shell *sh, const char *name) {
    Var *v = var_of(sh, name);
    if (v) v->read = true;
    return v;
}
/* What decides its value, or NULL: literals do. */
static const char *var_why(const Var *v) {
    const ShellChoice *c = v->choice;
    return c && c->whole && v->set_by == c->branches ? NULL : v->why;
}
static Var *var_make(Shell *sh, const char *name) {
    Var *v = var_of(sh, name);
    if (v) return v;
    if (sh->n_vars == VALUE_PAIRS) {
        scan_error(sh->s, "E0704", scan_loc(sh->s), NULL, "more than %d variables", VALUE_PAIRS);
        return &sh->var[0];
    }
    v = ARENA_PUSH(sh->s->a, sh->var, sh->n_vars, sh->cap_vars);
    *v = (Var){.name = name};
    return v;
}
static const char *number_text(void *of, const char *name) {
    const Var *v = var_read(of, name);
    const char *why, *text;
    if (!v || var_why(v) || v->value.n != 1) return NULL;
    text = text_of(of, &v->value.field[0], &why);
    return why ? NULL : text;
}
static const char *name_at(const Scan *s, size_t from) {
    size_t n = 0;
    for (char c; (c = scan_peek(s, from + n)) &&
                 (isalpha((unsigned char)c) || c == '_' || (n && isdigit((unsigned char)c)));)
        n++;
    return n ? arena_strndup(s->a, s->p + from, n) : NULL;
}

/* ---- what stands behind $ ---- */
/* A variable's name or the digit of what the caller gives, which variables are called too. */
static const char *parameter_at(const Scan *s, size_t from) {
    const char *name = name_at(s, from);
    bool digit = !name && isdigit((unsigned char)scan_peek(s, from));
    return digit ? arena_strndup(s->a, s->p + from, 1) : name;
}
static void tell_default(Shell *sh, const char *name, const char *what, size_t n) {
    Str *told = &sh->out->defaults;
    const char *why;
    const Block *by;
    if (branch_of(sh, &why, &by) == LEFT) return;
    str_addf(told, "%s%s%s: %.*s", told->n ? ", " : "", isdigit((unsigned char)*name) ? "$" : "",
             name, (int)(n < 59 ? n : 59), what);
}
static void quoted_text(Shell *sh, Fields *to, char end, bool quoted);
/* Past what is in brackets, quotes in it as they are; the cursor stands behind the first. */
static void past(Shell *sh, char open, char close, Loc at) {
    Scan *s = sh->s;
    int depth = 1;
    char quote = 0;
    for (char c; depth && (c = scan_peek(s, 0)); scan_take(s, 1)) {
        if (c == '\\' && quote != '\'') scan_take(s, 1);
        else if (quote) quote = c == quote ? 0 : quote;
        else if (c == '\'' || c == '"') quote = c;
        else if (c == open) depth++;
        else if (c == close) depth--;
    }
    if (depth) scan_error(s, "E0110", at, NULL, "'%c' is missing", close);
}
/* `all`: of all words of an array; its bare name is the first. */
static void put_var(Shell *sh, Fields *to, Segment raw, const char *name, bool quoted, bool all) {
    const Var *v = name ? var_read(sh, name) : NULL;
    raw.unset = name && !v && !isdigit((unsigned char)*name);
    raw.why = raw.unset    ? "nothing in this file sets it"
              : !v         ? "whoever calls the script decides it"
              : var_why(v) ? var_why(v)
                           : NULL;
    if (raw.why) {
        add(sh, to, raw);
        return;
    }
    Fields value = v->value;
    if (v->array && !all && value.n) value.n = 1;
    add_value(sh, to, &value, quoted);
}
/* `${`, the cursor behind it. */
static void braced(Shell *sh, Fields *to, bool quoted, const char *from, Loc at) {
    Scan *s = sh->s;
    const char *name = parameter_at(s, 0);
    scan_take(s, name ? strlen(name) : 0);
    bool all = scan_starts(s, "[@]}") || scan_starts(s, "[*]}");
    if (all) scan_take(s, 3);
    bool colon = scan_peek(s, 0) == ':' && scan_peek(s, 1) && strchr("-=", scan_peek(s, 1));
    if (name && scan_peek(s, 0) == '}') {
        scan_take(s, 1);
        const char *raw = arena_strndup(s->a, from, (size_t)(s->p - from));
        put_var(sh, to, (Segment){.s = raw, .at = at}, name, quoted, all);
    } else if (name && !all && (colon || scan_peek(s, 0) == '-')) {
        Fields other = {0};
        const Var *v = var_read(sh, name);
        scan_take(s, colon + 1u);
        const char *text = s->p;
        quoted_text(sh, &other, '}', false);
        if (s->failed) return;
        bool set = v && (v->value.n || var_why(v) || !colon);
        if (!v) tell_default(sh, name, text, (size_t)(s->p - text) - 1);
        if (set && var_why(v)) add_undecided(sh, to, from, at, var_why(v));
        else add_value(sh, to, set ? &v->value : &other, quoted);
    } else {
        past(sh, '{', '}', at);
        add_undecided(sh, to, from, at, "only names and their defaults are read");
    }
}
/* The names in $((..)) are asked for, whether there is a number at the end or not. */
static void asked_in(Shell *sh, const char *text, size_t n) {
    for (size_t i = 0, len = 1; i < n; i += len) {
        for (len = 0;
             i + len < n && (isalnum((unsigned char)text[i + len]) || text[i + len] == '_');)
            len++;
        if (len) var_read(sh, arena_strndup(sh->s->a, text + i, len));
        len += !len;
    }
}
static void expand(Shell *sh, Fields *to, bool quoted) {
    Scan *s = sh->s;
    Loc at = scan_loc(s);
    const char *from = s->p, *name = parameter_at(s, 1);
    char c = scan_peek(s, 1);
    int64_t v;
    if (scan_starts(s, "$((")) {
        scan_take(s, 3);
        const char *inside = s->p;
        past(sh, '(', ')', at);
        size_t n = (size_t)(s->p - inside);
        if (s->failed) return;
        scan_take(s, scan_peek(s, 0) == ')');
        asked_in(sh, inside, n - 1);
        if (shell_number(arena_strndup(s->a, inside, n - 1), number_text, sh, &v))
            add(sh, to, (Segment){.s = arena_printf(s->a, "%lld", (long long)v), .at = at});
        else add_undecided(sh, to, from, at, "no numbers of this file decide it");
    } else if (c == '(') {
        scan_take(s, 2);
        past(sh, '(', ')', at);
        add_undecided(sh, to, from, at, "a command decides it, and none is run");
    } else if (c == '{') {
        scan_take(s, 2);
        if (scan_deeper(s)) braced(sh, to, quoted, from, at), s->depth--;
    } else if (name || (c && strchr("0123456789@*#?!$-", c))) {
        scan_take(s, 1 + (name ? strlen(name) : 1));
        const char *raw = arena_strndup(s->a, from, (size_t)(s->p - from));
        put_var(sh, to, (Segment){.s = raw, .at = at}, name, quoted, false);
    } else {
        scan_take(s, 1);
        if (c != '"' && c != '\'') add_literal(sh, to, from, at);
    }
}
/* Up to `end`, which is taken: of "..." with `quoted`, of ${X:-...} without. */
static void quoted_text(Shell *sh, Fields *to, char end, bool quoted) {
    Scan *s = sh->s;
    Loc opened = scan_loc(s);
    for (char c; !s->failed && (c = scan_peek(s, 0)) != end;) {
        const char *from = s->p;
        Loc at = scan_loc(s);
        if (!c) {
            scan_error(s, "E0110", opened, NULL, "this text is not closed: '%c' is missing", end);
        } else if (c == '$') {
            expand(sh, to, quoted);
        } else if (c == '`') {
            scan_take(s, 1);
            while ((c = scan_peek(s, 0)) && c != '`') scan_take(s, 1);
            scan_take(s, 1);
            add_undecided(sh, to, from, at, "a command decides it, and none is run");
        } else if (c == '\\' && scan_peek(s, 1)) {
            scan_take(s, 1);
            c = scan_peek(s, 0);
            from = c && strchr("$`\"\\", c) ? from + 1 : from;
            scan_take(s, 1);
            if (c != '\n') add_literal(sh, to, from, at);
        } else if (!quoted && (c == '"' || c == '\'')) {
            scan_take(s, 1);
        } else if (isspace((unsigned char)c)) {
            while ((c = scan_peek(s, 0)) && c != end && isspace((unsigned char)c)) scan_take(s, 1);
            Segment blank = {.s = " ", .at = at, .blank = true};
            add(sh, to, blank);
        } else {
            while ((c = scan_peek(s, 0)) && c != end && !strchr("$`\\\"'", c) &&
                   !isspace((unsigned char)c))
                scan_take(s, 1);
            if (s->p == from) scan_take(s, 1); /* a quote of the other kind */
            add_literal(sh, to, from, at);
        }
    }
    scan_take(s, 1);
}
static void single_quotes(Shell *sh, Fields *to) {
    Scan *s = sh->s;
    Loc opened = scan_loc(s);
    scan_take(s, 1);
    for (char c; (c = scan_peek(s, 0)) != '\'' && !s->failed;) {
        const char *from = s->p;
        Loc at = scan_loc(s);
        bool blank = c && isspace((unsigned char)c);
        if (!c)
            scan_error(s, "E0110", opened, NULL, "this text is not closed: its quote is missing");
        while ((c = scan_peek(s, 0)) && c != '\'' && blank == !!isspace((unsigned char)c))
            scan_take(s, 1);
        const char *text = arena_strndup(s->a, from, (size_t)(s->p - from));
        add(sh, to, (Segment){.s = text, .at = at, .blank = blank});
    }
    scan_take(s, 1);
}
static bool ends_word(char c) { return !c || strchr(" \t\r\n;&|()<>", c); }
/* One word as it is written, which may be none or many; a blank without quotes ends it. */
static void read_word(Shell *sh, Fields *to) {
    Scan *s = sh->s;
    for (char c; !s->failed && !ends_word(c = scan_peek(s, 0));) {
        const char *from = s->p;
        Loc at = scan_loc(s);
        if (c == '\'') {
            single_quotes(sh, to);
            if (!to->open) add(sh, to, (Segment){.s = "", .at = at});
        } else if (c == '"') {
            bool nothing = scan_peek(s, 1) == '"';
            scan_take(s, 1);
            quoted_text(sh, to, '"', true);
            if (nothing) add(sh, to, (Segment){.s = "", .at = at});
        } else if (c == '$' || c == '`') {
            if (c == '$') expand(sh, to, false);
            else {
                scan_take(s, 1);
                while ((c = scan_peek(s, 0)) && c != '`') scan_take(s, 1);
                scan_take(s, 1);
                add_undecided(sh, to, from, at, "a command decides it, and none is run");
            }
        } else if (c == '\\') {
            bool goes_on = scan_peek(s, 1) == '\n' || scan_starts(s, "\\\r\n");
            scan_take(s, goes_on && scan_peek(s, 1) == '\r' ? 3 : 2);
            if (!goes_on && s->p > from + 1)
                add(sh, to, (Segment){.s = arena_strndup(s->a, from + 1, 1), .at = at});
        } else {
            while (!ends_word(c = scan_peek(s, 0)) && !strchr("'\"$`\\", c)) scan_take(s, 1);
            add_literal(sh, to, from, at);
        }
    }
}

/* ---- statements ---- */
/* Past blanks, lines that go on and comments; over line ends too, if wanted. */
static void blanks(Scan *s, bool lines) {
    for (char c; (c = scan_peek(s, 0));) {
        if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) scan_take(s, 1);
        else if (c == '\\' && (scan_peek(s, 1) == '\n' || scan_starts(s, "\\\r\n")))
            scan_take(s, scan_peek(s, 1) == '\r' ? 3 : 2);
        else if (c == '#')
            while ((c = scan_peek(s, 0)) && c != '\n') scan_take(s, 1);
        else break;
    }
}
/* NAME=, NAME+=: how many bytes, or 0. */
static size_t assignment_head(const Scan *s) {
    const char *name = name_at(s, 0);
    size_t n = name ? strlen(name) : 0;
    if (!n) return 0;
    return scan_peek(s, n) == '='                                 ? n + 1
           : scan_peek(s, n) == '+' && scan_peek(s, n + 1) == '=' ? n + 2
                                                                  : 0;
}
/* One word each, of literals alone, and the same. */
static bool alike(Shell *sh, const Fields *a, const Fields *b) {
    const char *why_a, *why_b, *x, *y;
    if (a->n != 1 || b->n != 1) return false;
    x = text_of(sh, &a->field[0], &why_a);
    y = text_of(sh, &b->field[0], &why_b);
    return x && y && !why_a && !why_b && strcmp(x, y) == 0;
}
static void assign(Shell *sh, size_t head) {
    Scan *s = sh->s;
    const char *name = parameter_at(s, 0);
    bool more = s->p[head - 2] == '+';
    Fields value = {0};
    scan_take(s, head);
    bool array = scan_peek(s, 0) == '(';
    if (array) {
        Loc at = scan_loc(s);
        for (scan_take(s, 1), blanks(s, true); !s->failed && scan_peek(s, 0) != ')';
             blanks(s, true)) {
            if (!scan_peek(s, 0)) scan_error(s, "E0110", at, NULL, "')' is missing");
            else if (ends_word(scan_peek(s, 0)))
                scan_error(s, "E0110", scan_loc(s), NULL, "'%c' in a list of words",
                           scan_peek(s, 0));
            else read_word(sh, &value);
            value.open = false;
        }
        scan_take(s, 1);
    } else {
        Fields word = {0};
        read_word(sh, &word);
        for (int i = 0; i < word.n; i++) { /* an assignment cuts nothing */
            Field *f = &word.field[i];
            Segment blank = {.s = " ", .at = f->seg[0].at, .blank = true};
            if (i) add(sh, &value, blank);
            for (int k = 0; k < f->n; k++) add(sh, &value, f->seg[k]);
        }
    }
    if (s->failed) return;
    const char *why;
    const Block *by;
    if (branch_of(sh, &why, &by) == LEFT) return;
    const Var *had = var_of(sh, name);
    if (why && !more && !array && had && !had->array && alike(sh, &had->value, &value)) {
        if (!var_why(had)) return; /* it stays what it is, whether this is done or not */
        if (by && had->choice == by->choice && had->set_by + 1 == by->choice->branches) {
            var_make(sh, name)->set_by++;
            return;
        }
    }
    Var *v = var_make(sh, name);
    for (int i = 0; why && more && array && i < value.n; i++)
        for (int k = 0; k < value.field[i].n; k++) {
            Segment *seg = &value.field[i].seg[k];
            if (seg->why) continue;
            seg->why = why;
            if (by) seg->choice = by->choice, seg->branch = by->choice->branches;
        }
    bool first = why && by && !more && !array && by->choice->branches == 1;
    v->choice = first ? by->choice : NULL, v->set_by = 1;
    if (!more || (why && !array)) v->why = why; /* words that are perhaps appended know it each */
    if (!more) v->value = (Fields){0}, v->array = array;
    v->array |= array;
    v->lost |= v->given.file && !v->read && !more && !why;
    v->value.open = !v->array && v->value.n; /* a text grows, an array has one more */
    add_value(sh, &v->value, &value, true);
    v->value.open = false;
}
/* ---- branches ---- */
static Branch negated(Branch b) { return b == PERHAPS ? b : b == TAKEN ? LEFT : TAKEN; }
static Branch truth(bool b) { return b ? TAKEN : LEFT; }
/* Of numbers: -eq and the like. */
static Branch compared(const char *a, const char *by, const char *b) {
    static const char *const ops[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    char *end_a, *end_b;
    errno = 0; /* a number that no 64 bits hold is an error of the shell's, not the largest */
    long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
    int op = 0;
    while (op < 6 && strcmp(ops[op], by) != 0) op++;
    if (op == 6 || errno || !*a || !*b || *end_a || *end_b) return PERHAPS;
    const bool is[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    return truth(is[op]);
}
/* [ .. ] or [[ .. ]] of n words. */
static Branch tested(const char *const *w, int n) {
    if (n > 2 && strcmp(w[1], "!") == 0) {
        const char *rest[8] = {w[0]};
        for (int i = 2; i < n && i < 8; i++) rest[i - 1] = w[i];
        return n <= 8 ? negated(tested(rest, n - 1)) : PERHAPS;
    }
    bool closed = n > 1 && (strcmp(w[0], "[") == 0 || strcmp(w[0], "[[") == 0);
    if (closed && n == 3) return truth(*w[1]);
    if (closed && n == 4 && strcmp(w[1], "-n") == 0) return truth(*w[2]);
    if (closed && n == 4 && strcmp(w[1], "-z") == 0) return truth(!*w[2]);
    if (!closed || n != 5 || strpbrk(w[3], "*?[")) return PERHAPS;
    if (strcmp(w[2], "=") == 0 || strcmp(w[2], "==") == 0) return truth(strcmp(w[1], w[3]) == 0);
    if (strcmp(w[2], "!=") == 0) return truth(strcmp(w[1], w[3]) != 0);
    return compared(w[1], w[2], w[3]);
}
/* A variable that only the environment may set, and nothing else. */
static bool is_unset(const Field *f) { return f->n == 1 && f->seg[0].unset; }
/* The condition that was read: tests with && and || between. An environment that is asked whether
 * it has a variable is taken as one that has not, as defaults are taken. */
static Branch asked(Shell *sh) {
    const Fields *c = &sh->condition;
    Branch all = PERHAPS;
    const char *joint = NULL, *word[8];
    int n = 0;
    for (int i = 0; i <= c->n && !sh->s->failed; i++) {
        const char *why = NULL, *text = i < c->n ? text_of(sh, &c->field[i], &why) : ";";
        bool ends = i == c->n || c->field[i].seg[0].blank; /* what separates is kept as blank */
        if (!text) return PERHAPS;
        if (!ends) {
            const char *before = n ? word[n - 1] : "";
            bool whether_set = strcmp(before, "-z") == 0 || strcmp(before, "-n") == 0;
            if (why && whether_set && is_unset(&c->field[i])) {
                size_t skip = 1 + (text[1] == '{'), len = strcspn(text + skip, "}");
                tell_default(sh, arena_strndup(sh->s->a, text + skip, len), "not set", 7);
                text = "", why = NULL;
            }
            if (why || n == 8) return PERHAPS;
            word[n++] = text;
            continue;
        }
        if (!n) continue;
        Branch one = tested(word, n);
        bool both = joint && strcmp(joint, "&&") == 0, either = joint && strcmp(joint, "||") == 0;
        if (joint && !both && !either) return PERHAPS;
        if (!joint) all = one;
        else if (all == (both ? LEFT : TAKEN)) continue;
        else if (all == PERHAPS) all = one == (both ? LEFT : TAKEN) ? one : PERHAPS;
        else all = one;
        joint = text, n = 0;
    }
    return all;
}
static void open_block(Shell *sh, const char *word, Loc at) {
    if (sh->depth == VALUE_DEPTH) {
        scan_error(sh->s, "E0704", at, NULL, "more than %d blocks in one another", VALUE_DEPTH);
        return;
    }
    ShellChoice *choice = arena_alloc(sh->s->a, sizeof *choice);
    *choice = (ShellChoice){0};
    sh->block[sh->depth++] = (Block){word, at, PERHAPS, LEFT, choice};
    sh->asks = strcmp(word, "if") == 0;
    sh->condition = (Fields){0};
}
/* then, elif, else of the innermost `if`. */
static void next_branch(Shell *sh, const char *word) {
    Block *b = sh->depth ? &sh->block[sh->depth - 1] : NULL;
    if (!b || strcmp(b->opener, "if") != 0) return;
    if (strcmp(word, "elif") == 0) {
        b->branch = PERHAPS, sh->asks = true;
        sh->condition = (Fields){0};
        return;
    }
    Branch here = strcmp(word, "else") == 0 ? TAKEN : asked(sh);
    sh->asks = false;
    b->branch = b->before == TAKEN || here == LEFT ? LEFT : b->before == PERHAPS ? PERHAPS : here;
    if (b->branch == PERHAPS) b->choice->branches++, b->choice->whole = here == TAKEN;
    if (b->before != TAKEN && here != LEFT) b->before = b->before == PERHAPS ? PERHAPS : here;
}
/* if .. fi and the like: what is set within is perhaps decided by more than literals. */
static bool keyword(Shell *sh, const char *word, Loc at) {
    static const char opens[] = " if for while until case select { ", closes[] = " fi done esac } ",
                      between[] = " then else elif do ! ";
    if (text_has_word(opens, word)) {
        open_block(sh, word, at);
    } else if (text_has_word(closes, word)) {
        if (!sh->depth) scan_error(sh->s, "E0110", at, NULL, "'%s' closes nothing", word);
        else sh->depth--;
    } else if (text_has_word(between, word)) {
        next_branch(sh, word);
    } else {
        return false;
    }
    return true;
}
static const char prepares[] =
    " function set echo printf cd pushd popd mkdir rm cp mv ln ls cat tee touch chmod source . "
    "module unset "
    "pip pip3 conda sleep wait trap ulimit shopt exit return shift test [ [[ ]] true false : date "
    "hostname nvidia-smi ray kill read git wget curl break continue umask alias ";
static const char declares[] = " export declare local readonly typeset ",
                  hands_on[] = " eval exec nohup time command ";
/* Behind > or <: a file. */
static void redirection(Shell *sh) {
    Scan *s = sh->s;
    Fields file = {0};
    Loc at = scan_loc(s);
    if (scan_starts(s, "<<") || scan_peek(s, 1) == '(')
        scan_error(s, "E0217", at, "write the arguments that it stands for",
                   "a script that feeds itself text is not read");
    while (scan_peek(s, 0) && strchr("<>&|", scan_peek(s, 0))) scan_take(s, 1);
    blanks(s, false);
    read_word(sh, &file);
}
typedef struct {
    bool first, quiet, declares;
    int put; /* words of it */
} Command;
static void put_word(Shell *sh, ShellWord w) {
    if (sh->out->n == VALUE_PAIRS)
        scan_error(sh->s, "E0704", w.loc, NULL, "more than %d words", VALUE_PAIRS);
    else *ARENA_PUSH(sh->s->a, sh->out->word, sh->out->n, sh->out->cap) = w;
}
static void take_words(Shell *sh, Command *c, const Fields *fs) {
    Scan *s = sh->s;
    for (int i = 0; i < fs->n && !s->failed; i++) {
        const char *why, *whether, *text = text_of(sh, &fs->field[i], &why);
        const Block *by;
        const Segment *begin = &fs->field[i].seg[0];
        Loc at = begin->at;
        if (!text) return;
        bool body = strcmp(text, "{") == 0; /* behind `function name` too */
        if ((c->first || body) && !why && !(sh->asks && *text == '!') && keyword(sh, text, at)) {
            c->first |= body, c->quiet &= !body;
            continue;
        }
        if (sh->asks) {
            Fields one = {.field = &fs->field[i], .n = 1};
            sh->condition.open = false;
            add_value(sh, &sh->condition, &one, true);
            c->first = false;
            continue;
        }
        if (c->first && !why && text_has_word(hands_on, text)) continue;
        if (c->first && !why) {
            c->declares = text_has_word(declares, text);
            c->quiet = c->declares || text_has_word(prepares, text) ||
                       text_has_word(sh->functions.s, text);
        }
        Branch branch = branch_of(sh, &whether, &by);
        bool starts = strcmp(text, "torchrun") == 0 || strncmp(text, "--tensor-model-par", 18) == 0;
        if (sh->depth && branch == PERHAPS && starts && !c->quiet)
            scan_error(s, "E0217", at, "paste the command that is run, or the arguments alone",
                       "whether this is run: %s", whether);
        if (!c->quiet && branch != LEFT && !(sh->depth && branch == PERHAPS))
            put_word(sh, (ShellWord){text, at, why, c->first, begin->choice, begin->branch}),
                c->put++;
        c->first = false;
    }
}
/* What stands between words, other than blanks. */
static void separator(Shell *sh, Command *c) {
    Scan *s = sh->s;
    char here = scan_peek(s, 0);
    if (here == '<' || here == '>' || (here == '&' && scan_peek(s, 1) == '>')) {
        redirection(sh);
    } else if (here == '(' && scan_peek(s, 1) == ')') { /* name(): a function follows */
        if (c->put) {                                   /* to call it prepares, too */
            ShellWord *name = &sh->out->word[sh->out->n -= c->put];
            str_addf(&sh->functions, " %s ", name->s);
        }
        scan_take(s, 2);
        *c = (Command){.first = true};
    } else if (here == '(' && !sh->depth && !c->quiet) {
        scan_error(s, "E0217", scan_loc(s), "paste the command that is run",
                   "a shell within the shell is not read");
    } else {
        Loc at = scan_loc(s);
        const char *from = s->p;
        sh->behind = scan_starts(s, "&&") || scan_starts(s, "||");
        scan_take(s, sh->behind ? 2 : 1);
        if (sh->asks) {
            const char *text = sh->behind ? arena_strndup(s->a, from, 2) : ";";
            sh->condition.open = false;
            add(sh, &sh->condition, (Segment){.s = text, .at = at, .blank = true});
        }
        *c = (Command){.first = true};
    }
}
static void statements(Shell *sh) {
    Scan *s = sh->s;
    Command c = {.first = true};
    for (blanks(s, false); scan_peek(s, 0) && !s->failed; blanks(s, false)) {
        size_t head = c.first || c.declares ? assignment_head(s) : 0;
        if (head) {
            assign(sh, head);
        } else if (ends_word(scan_peek(s, 0))) {
            separator(sh, &c);
        } else {
            Fields fs = {0};
            const char *from = s->p;
            read_word(sh, &fs);
            bool number = fs.n == 1 && scan_peek(s, 0) && strchr("<>", scan_peek(s, 0)) &&
                          isdigit((unsigned char)*from) && s->p == from + 1;
            if (!number) take_words(sh, &c, &fs);
        }
    }
}
/* Of a script that runs nothing: what another would hand on of it. */
static void take_variables(Shell *sh) {
    Str *taken = &sh->out->taken;
    for (int i = 0; i < sh->n_vars && !sh->s->failed; i++) {
        Var *v = &sh->var[i];
        const Field *f = v->value.n && !var_why(v) ? &v->value.field[0] : NULL;
        int k = 0;
        while (f && k < f->n && f->seg[k].blank) k++;
        if (!f || k == f->n || strncmp(f->seg[k].s, "--", 2) != 0) continue;
        Fields words = {0};
        Command c = {0};
        v->read = true;
        add_value(sh, &words, &v->value, false);
        take_words(sh, &c, &words);
        str_addf(taken, "%s%s", taken->n ? " " : "", v->name);
    }
}
/* NAME=VALUE at the beginning of `args`: what the environment says. */
static void environment(Shell *sh) {
    Scan *s = sh->s;
    for (blanks(s, true); !s->failed; blanks(s, true)) {
        bool digit = isdigit((unsigned char)scan_peek(s, 0)) && scan_peek(s, 1) == '=';
        size_t head = digit ? 2 : assignment_head(s);
        if (!head) return;
        const char *name = parameter_at(s, 0);
        Loc at = scan_loc(s);
        assign(sh, head);
        Var *v = s->failed ? NULL : var_of(sh, name);
        if (v) v->given = at, v->read = false;
    }
}
/* What the environment says and the script does not ask for would be left out in silence. */
static void unasked(const Shell *sh, Scan *args) {
    for (int i = 0; i < sh->n_vars && !args->failed; i++) {
        const Var *v = &sh->var[i];
        bool digit = isdigit((unsigned char)*v->name);
        if (!v->given.file || (v->read && !v->lost)) continue;
        scan_error(args, "E0201", v->given,
                   v->lost ? "leave it out, or change the script's own line"
                           : "the spelling is the script's: $NAME, ${NAME:-default}, $1",
                   v->lost ? "the script sets %s%s itself before it asks for it"
                           : "nothing in the script asks for %s%s",
                   digit ? "$" : "", v->name);
    }
}
bool shell_words(Scan *s, Scan *args, ShellWords *out) {
    Shell sh = {.s = s, .out = out, .functions = str_new(s->a)};
    *out = (ShellWords){.defaults = str_new(s->a), .taken = str_new(s->a)};
    if (args) {
        sh.s = args;
        environment(&sh);
        sh.s = s;
    }
    statements(&sh);
    if (sh.depth)
        scan_error(s, "E0110", sh.block[0].at, NULL, "'%s' is not closed", sh.block[0].opener);
    if (!out->n && !s->failed) take_variables(&sh);
    sh.depth = 0, sh.behind = sh.asks = false;
    if (args && !s->failed && !args->failed) {
        Command c = {.first = !out->n}; /* they go on where the script's command ended */
        Fields words = {0};
        sh.s = args;
        for (blanks(args, true); scan_peek(args, 0) && !args->failed; blanks(args, true)) {
            if (ends_word(scan_peek(args, 0)))
                scan_error(args, "E0217", scan_loc(args), NULL, "'%c' between arguments",
                           scan_peek(args, 0));
            else read_word(&sh, &words);
            words.open = false;
        }
        take_words(&sh, &c, &words);
        // cppcheck-suppress varFuncNullUB ; the last typed one is behind it, the format
        if (sh.depth) scan_error(args, "E0110", (Loc){args->file, 1, 1}, NULL, "a block is opened");
        unasked(&sh, args);
    }
    return !s->failed && !(args && args->failed);
}
