/* YAML as located nodes: places, refusals, and hostile inputs in bounded time. */
#include "formats/yaml.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Arena *a;
    Diags *d;
} Fix;

static int setup(void **state) {
    Fix *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->d = diags_new(f->a);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    Fix *f = *state;
    arena_free(f->a);
    free(f);
    return 0;
}
static Yaml *parse(Fix *f, const char *text) {
    return yaml_parse(f->a, f->d, "p.yaml", text, strlen(text));
}

#define assert_loc(l, line_, col_)                                                                 \
    do {                                                                                           \
        assert_string_equal((l).file, "p.yaml");                                                   \
        assert_int_equal((l).line, (line_));                                                       \
        assert_int_equal((l).col, (col_));                                                         \
    } while (0)

static void test_nodes_and_places(void **state) {
    Fix *f = *state;
    Yaml *y = parse(f, "# first\nname: 'a b'\nmodel: {prä: x, n: [1, \"2\", ~]}\nplan:\n  "
                       "layers.*.w[qkv]: colwise\n  - x: 1\n");
    assert_null(y); /* a list item among keys */
    assert_string_equal(f->d->item[0].code, "E0104");
    f->d->n = 0;
    y = parse(f, "# first\nname: 'a b'\nmodel: {prä: x, n: [1, \"2\", ~]}\nplan:\n  "
                 "layers.*.w[qkv]: colwise\n");
    assert_non_null(y);
    assert_int_equal(f->d->n, 0);
    assert_int_equal(y->kind, YAML_MAP);
    assert_int_equal(y->n, 3);
    assert_loc(y->loc, 2, 1);
    assert_string_equal(y->pair[0].key, "name");
    assert_true(y->pair[0].value->quoted);
    assert_string_equal(y->pair[0].value->s, "a b");
    assert_loc(y->pair[0].value->loc, 2, 7);
    Yaml *m = yaml_get(y, "model");
    assert_int_equal(m->kind, YAML_MAP);
    assert_loc(m->loc, 3, 8);
    assert_string_equal(m->pair[0].key, "prä");
    assert_loc(m->pair[0].value->loc, 3, 14); /* characters, not bytes */
    Yaml *n = yaml_get(m, "n");
    assert_int_equal(n->kind, YAML_LIST);
    assert_int_equal(n->n, 3);
    assert_loc(n->item[1]->loc, 3, 24);
    assert_true(n->item[1]->quoted && !n->item[0]->quoted);
    assert_true(yaml_is_null(n->item[2]) && !yaml_is_null(n->item[0]));
    Yaml *p = yaml_get(y, "plan");
    assert_string_equal(p->pair[0].key, "layers.*.w[qkv]");
    assert_loc(p->pair[0].loc, 5, 3);
    assert_loc(p->pair[0].value->loc, 5, 20);
    assert_false(y->pair[0].used);
    assert_true(y->pair[1].used && y->pair[2].used && !p->pair[0].used);
    assert_null(yaml_get(y, "none"));
    assert_null(yaml_get(n, "1"));
    assert_null(yaml_get(NULL, "1"));
    yaml_get(p->pair[0].value, "x"); /* a scalar has no keys */
}

static void test_accepted(void **state) {
    Fix *f = *state;
    static const char *const ok[] = {"a: 1",
                                     ("\xEF\xBB\xBF"
                                      "a: 1"),
                                     "%YAML 1.1\n---\na: 1\n...\n", "---\na: 1\n",
                                     "a: 1\r\nb: 2\r\n", "[1, 2]", "word", "\"\"", "{}", "[]",
                                     "a:\n- b\n- c", "? a\n: b", "a: |\n  x\n  y\n",
                                     /* the ends of UTF-8's ranges */
                                     "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                                     "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBD"};
    for (size_t i = 0; i < sizeof ok / sizeof ok[0]; i++)
        if (!parse(f, ok[i]) || f->d->n) fail_msg("'%s' was refused", ok[i]);
    Yaml *y = parse(f, "\xEF\xBB\xBF"
                       "a: 1");
    assert_loc(y->pair[0].loc, 1, 1); /* the byte order mark is no column */
}

typedef struct {
    const char *text, *code;
    int line, col;
    const char *message, *hint; /* parts */
} Refusal;

static const Refusal refusals[] = {
    {"", "E0103", 1, 1, "empty", NULL},
    {"\n# only\n\n", "E0103", 1, 1, "comments", NULL},
    {"---\n", "E0103", 1, 1, "comments", NULL},
    {"~", "E0103", 1, 1, NULL, NULL},
    {"a: 1\n\tb: 2\n", "E0104", 2, 1, "tab", "not tabs"},
    {"a:\n\tb: 2\n", "E0104", 2, 1, "cannot start", "not tabs"},
    {"a: b: c\n", "E0104", 1, 5, "mapping values", "quote"},
    {"a: [1, 2\nb: 3\n", "E0104", 2, 2, "',' or ']'", "]"},
    {"a: {w[qkv]: colwise}\n", "E0104", 1, 6, "',' or '}'", "\"w[qkv]\""},
    {"a: \"x\n", "E0104", 1, 6, "unexpected end", "quote"},
    {"*.wq: colwise\n", "E0104", 1, 2, "alias", "\"*.wq\""},
    {"a: 1\n b: 2\n", "E0104", 2, 3, NULL, NULL},
    {"a: 1\nb\n \n", "E0104", 2, 2, "':'", "colon"},
    {"a: \x07", "E0104", 1, 4, "control", "control"},
    {"%YAML 3.0\n---\na: 1", "E0104", 1, 1, "incompatible", NULL},
    {"a: !foo!bar 1", "E0104", 1, 4, "tag", NULL},
    {"a: &x 1\n", "E0108", 1, 4, "&x", NULL},
    {"a: *x\n", "E0108", 1, 4, "*x", "\"*.wq\""},
    {"a: [&x 1, *x]\n", "E0108", 1, 5, "&x", NULL},
    {"&x [1, *x]\n", "E0108", 1, 1, "&x", NULL},
    {"a: !!int 1\n", "E0108", 1, 4, "int", NULL},
    {"a: ! 1\n", "E0108", 1, 4, "tag", NULL},
    {"a: !!map {}\n", "E0108", 1, 4, "map", NULL},
    {"a: 1\n<<: {b: 1}\n", "E0108", 2, 1, "<<", NULL},
    {"[a]: 1\n", "E0108", 1, 1, "a list cannot be a key", "quotes"},
    {"{a: {{b: 1}: 2}}\n", "E0108", 1, 6, "a mapping cannot be a key", NULL},
    {"a: 1\n---\nb: 2\n", "E0108", 2, 1, "second document", "---"},
    {"a: 1\n---\n", "E0108", 2, 1, "second document", NULL},
    {"%TAG ! tag:x,2000:\n---\na: 1", "E0108", 1, 1, "%TAG", NULL},
    {"a: \xC3\xA4 \xFF", "E0106", 1, 6, "0xFF", "UTF-8"},
    {"a: 1\nb: \xC0\xAF", "E0106", 2, 4, "0xC0", NULL},   /* overlong */
    {"a: \xED\xA0\x80", "E0106", 1, 4, "0xED", NULL},     /* surrogate */
    {"a: \xF4\x90\x80\x80", "E0106", 1, 4, "0xF4", NULL}, /* beyond U+10FFFF */
    {"a: \xE2\x82", "E0106", 1, 4, "0xE2", NULL},         /* cut off */
    {"\xFF\xFE"
     "a",
     "E0106", 1, 1, "UTF-16", "UTF-8"},
    {"\xFE\xFF"
     "a",
     "E0106", 1, 1, "UTF-16", NULL},
    {"a: \"\\0\"", "E0106", 1, 4, "NUL", NULL},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const Refusal *t = &refusals[i];
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        if (yaml_parse(a, d, "p.yaml", t->text, strlen(t->text)))
            fail_msg("'%s' was accepted", t->text);
        assert_int_equal(d->n, 1);
        const Diag *g = &d->item[0];
        if (strcmp(g->code, t->code) != 0 || g->loc.line != t->line || g->loc.col != t->col)
            fail_msg("'%s': %s at %d:%d, '%s'", t->text, g->code, g->loc.line, g->loc.col,
                     g->message);
        if (t->message && !strstr(g->message, t->message))
            fail_msg("'%s': message '%s'", t->text, g->message);
        if (t->hint && (!g->hint || !strstr(g->hint, t->hint)))
            fail_msg("'%s': hint '%s'", t->text, g->hint);
        arena_free(a);
    }
}

/* A blank that is missing behind a colon is told once at each place, and the rest is read. */
static void test_missing_blanks(void **state) {
    Fix *f = *state;
    Yaml *y = parse(f, "m: {dp:2, tp: 4,x: {a:b:c}}\nn: 1\n");
    assert_non_null(y);
    assert_int_equal(f->d->n, 2);
    assert_string_equal(f->d->item[0].code, "E0104");
    assert_loc(f->d->item[0].loc, 1, 5);
    assert_string_equal(f->d->item[0].hint, "put a blank behind the colon: dp: 2");
    assert_loc(f->d->item[1].loc, 1, 21);
    assert_string_equal(yaml_get(yaml_get(y, "m"), "dp")->s, "2");
    assert_loc(yaml_get(yaml_get(y, "m"), "dp")->loc, 1, 8);
    assert_string_equal(yaml_get(y, "n")->s, "1");
    f->d->n = 0; /* what is quoted, or has nothing behind the colon, is a key as it stands */
    assert_non_null(parse(f, "{\"a:b\", 'c:d': , e: }"));
    assert_int_equal(f->d->n, 0);
}

static void test_nul_bytes_and_utf32(void **state) {
    Fix *f = *state;
    assert_null(yaml_parse(f->a, f->d, "p.yaml", "a: 1\nb: \0x", 10));
    assert_string_equal(f->d->item[0].code, "E0106");
    assert_loc(f->d->item[0].loc, 2, 4);
    f->d->n = 0;
    assert_null(yaml_parse(f->a, f->d, "p.yaml", "\xFF\xFE\0\0a\0\0\0", 8));
    assert_non_null(strstr(f->d->item[0].message, "UTF-32"));
}

static void test_duplicate_keys(void **state) {
    Fix *f = *state;
    Yaml *y = parse(f, "a: 1\nb: {x: 1, y: 2, x: 3}\nc: 4\na: 5\na: 6\n");
    assert_non_null(y); /* the rest can be checked too */
    assert_int_equal(f->d->n, 3);
    assert_string_equal(f->d->item[0].code, "E0107");
    assert_loc(f->d->item[0].loc, 2, 17);
    assert_loc(f->d->item[1].loc, 4, 1);
    assert_non_null(strstr(f->d->item[1].message, "'a' is given twice (first in line 1)"));
    assert_non_null(strstr(f->d->item[0].hint, "line 2, column 5"));
    assert_loc(f->d->item[2].loc, 5, 1);
    assert_int_equal(y->n, 3);
    assert_string_equal(yaml_get(y, "a")->s, "1");
    assert_string_equal(yaml_get(yaml_get(y, "b"), "x")->s, "1");
    assert_string_equal(yaml_get(y, "c")->s, "4");
}

static void test_limits_are_exact(void **state) {
    Fix *f = *state;
    char t[8192];
    for (int depth = 31; depth <= 34; depth++) {
        memset(t, '[', (size_t)depth);
        memset(t + depth, ']', (size_t)depth);
        t[2 * depth] = 0;
        assert_int_equal(parse(f, t) != NULL, depth <= 32);
    }
    assert_int_equal(f->d->n, 1); /* the second is the same as the first */
    assert_string_equal(f->d->item[0].code, "E0704");
    assert_loc(f->d->item[0].loc, 1, 33);
    for (int n = 4095; n <= 4097; n++) {
        memset(t, 'x', (size_t)n);
        t[n] = 0;
        assert_int_equal(parse(f, t) != NULL, n <= 4096);
    }
    assert_int_equal(f->d->n, 2);
    /* 100,000 events: stream, document, list and n items */
    Str s = str_new(f->a);
    str_add(&s, "[x");
    for (int i = 1; i < 99994; i++) str_add(&s, ",x");
    char *more = arena_printf(f->a, "%s,x]", s.s);
    str_add(&s, "]");
    assert_non_null(parse(f, s.s));
    assert_null(parse(f, more));
    assert_string_equal(f->d->item[2].code, "E0704");
    /* 1 MiB */
    char *big = arena_alloc(f->a, (1 << 20) + 2);
    memset(big, ' ', 1 << 20);
    memcpy(big, "a: 1\n#", 6);
    assert_non_null(yaml_parse(f->a, f->d, "p.yaml", big, 1 << 20));
    assert_null(yaml_parse(f->a, f->d, "p.yaml", big, (1 << 20) + 1));
    assert_int_equal(diags_exit(f->d), 5);
}

static void test_fragments(void **state) {
    Fix *f = *state;
    Loc at = {"p.yaml", 7, 11};
    const char *t = "{a: [1, x\n]}";
    Yaml *y = yaml_parse_value(f->a, f->d, at, t, strlen(t));
    assert_loc(y->loc, 7, 11);
    assert_loc(y->pair[0].value->item[1]->loc, 7, 19);
    y = yaml_parse_value(f->a, f->d, at, "", 0);
    assert_true(yaml_is_null(y));
    assert_null(yaml_parse_value(f->a, f->d, at, "[a", 2));
    assert_loc(f->d->item[0].loc, 7, 13);
}

/* ---- hostile inputs ---- */

typedef struct {
    const char *head, *unit;
    int times;
    const char *code;
} Hostile;

static const Hostile hostile[] = {
    {"", "[", 10000, "E0704"},
    {"", "[", 100000, "E0704"},
    {"", "[", 1000000, "E0704"},
    {"", "{a: ", 10000, "E0704"},
    {"", "{a: ", 100000, "E0704"},
    {"", "[a,", 349000, "E0704"},
    {"", "[?", 200000, "E0108"},
    {"", "- ", 100000, "E0704"},
    {"", "? ", 100000, "E0108"},
    {"", "- &a x\n", 100000, "E0108"},
    {"a: &a [x]\n", "b: [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", 10, "E0108"},
    {"", "a: 1\n", 200000, "E0704"},
    {"", "--- a\n", 170000, "E0108"},
    {"", "#", 1000000, "E0103"},
    {"", "\n", 1000000, "E0103"},
    {"", "\t", 1000000, "E0104"},
    {"\"", "x", 1000000, "E0104"},
    {"", "a ", 500000, "E0704"},
    {"", "'", 100001, "E0104"},
    {"&", "a", 1000000, "E0108"},
    {"*", "a", 1000000, "E0108"},
    {"!<", "a", 1000000, "E0104"},
    {"%", "a", 1000000, "E0104"},
    {"", "%TAG !a! tag:x\n", 60000, "E0108"},
    {"a: |\n", " xxxxxxxx\n", 100000, "E0704"},
    {"", "? a\n", 200000, "E0704"},
    {"", "]", 100000, "E0104"},
    {"{", ",", 100000, "E0104"},
    {"\xFF\xFE", "a", 100000, "E0106"},
    {"", "|\n", 100000, "E0104"},
    {"a: >", "\n", 1000000, NULL},
};

static void test_hostile_inputs_are_refused_at_once(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        const Hostile *h = &hostile[i];
        size_t nh = strlen(h->head), nu = strlen(h->unit), n = nh + nu * (size_t)h->times;
        assert_true(n <= 1 << 20);
        char *t = malloc(n + 1);
        memcpy(t, h->head, nh);
        for (int j = 0; j < h->times; j++) memcpy(t + nh + nu * (size_t)j, h->unit, nu);
        for (Timed at_once = within(100); timed(&at_once);) {
            if (at_once.tries > 1) print_message("%zu: '%s' x %d\n", i, h->unit, h->times);
            Arena *a = arena_new();
            Diags *d = diags_new(a);
            Yaml *y = yaml_parse(a, d, "p.yaml", t, n);
            const char *code = d->n ? d->item[0].code : "none";
            if (h->code && (y || strcmp(code, h->code) != 0))
                fail_msg("%zu: %s instead of %s", i, code, h->code);
            arena_free(a);
        }
        free(t);
    }
}

static void test_deep_blocks(void **state) {
    Fix *f = *state;
    Str s = str_new(f->a);
    for (int i = 0; i < 1400; i++) str_addf(&s, "%*sa:\n", i, "");
    for (Timed t = within(100); timed(&t);) {
        f->d = diags_new(f->a);
        assert_null(parse(f, s.s));
    }
    assert_string_equal(f->d->item[0].code, "E0704");
    assert_loc(f->d->item[0].loc, 33, 33);
}

static void test_many_duplicates(void **state) {
    Fix *f = *state;
    Str s = str_new(f->a);
    for (int i = 0; i < 49000; i++) str_add(&s, "key: 1\n");
    Yaml *y = NULL;
    for (Timed t = within(100); timed(&t);) {
        f->d = diags_new(f->a);
        y = parse(f, s.s);
    }
    assert_int_equal(y->n, 1);
    assert_int_equal(f->d->n, 50);
    assert_int_equal(f->d->hidden, 49000 - 1 - 50);
    /* and as many different ones */
    Str u = str_new(f->a);
    for (int i = 0; i < 49000; i++) str_addf(&u, "k%d: 1\n", i);
    for (Timed t = within(100); timed(&t);) {
        f->d = diags_new(f->a);
        y = parse(f, u.s);
    }
    assert_int_equal(y->n, 49000);
    assert_string_equal(y->pair[48999].key, "k48999");
}

int main(void) {
#define FIX(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        FIX(test_nodes_and_places),
        FIX(test_accepted),
        FIX(test_missing_blanks),
        FIX(test_refusals),
        FIX(test_nul_bytes_and_utf32),
        FIX(test_duplicate_keys),
        FIX(test_limits_are_exact),
        FIX(test_fragments),
        FIX(test_hostile_inputs_are_refused_at_once),
        FIX(test_deep_blocks),
        FIX(test_many_duplicates),
    };
    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
