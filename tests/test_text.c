/* No control and no bidirectional character of a plan, a trace or a file name reaches a terminal,
 * an annotation, a report or a file name, whatever the command, format and view. Generated: a plan
 * whose every free name is hostile, and a trace for each key of text that records have, with
 * hostile text behind all its values. A line that is refused is held to the same. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "formats/json.h"
#include "support/sandbox.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ESC (a title, a clipboard, hidden text), BEL, C1 CSI, DEL, RLO, LRI, RLM, ALM, line separator,
 * U+FFFE. */
#define RAW                                                                                        \
    "\033]52;c;x\007\033["                                                                         \
    "8m\302\233\177\342\200\256\342\201\246\342\200\217\330\234\342\200\250\357\277\276"
#define IN_JSON                                                                                    \
    "\\u001b]52;c;x\\u0007\\u001b[8m\\u009b\\u007f\\u202e\\u2066\\u200f\\u061c\\u2028\\ufffe"
#define IN_YAML "\\e]52;c;x\\a\\e[8m\\x9B\\x7F\\u202E\\u2066\\u200F\\u061C\\u2028"

/* ---- the functions ---- */
static void test_visible(void **state) {
    (void)state;
    static const struct {
        const char *raw, *visible, *json;
    } row[] = {{"plain", "plain", "\"plain\""},
               {"ä€😀", "ä€😀", "\"ä€😀\""},
               {"a\033[31mb", "a\\x1b[31mb", "\"a\\u001b[31mb\""},
               {"\n\t\r", "\\x0a\\x09\\x0d", "\"\\n\\t\\u000d\""},
               {"\302\233", "\\x9b", "\"\\u009b\""},
               {"\342\200\256", "\\u202e", "\"\\u202e\""},
               {"\330\234", "\\u061c", "\"\\u061c\""},
               {"\377x\300\200", "\\xffx\\xc0\\x80", "\"\357\277\275x\357\277\275\357\277\275\""},
               {"\355\240\200", "\\xed\\xa0\\x80", "\"\357\277\275\357\277\275\357\277\275\""},
               {"\"\\", "\"\\", "\"\\\"\\\\\""}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_string_equal(text_visible(arena, row[i].raw), row[i].visible);
        Str s = str_new(arena);
        text_add_json(&s, row[i].raw);
        assert_string_equal(s.s, row[i].json);
    }
    const char *lines = "a\r\n\tb\033[1;31mc\re\n";
    assert_string_equal(text_visible_lines(arena, lines, strlen(lines)),
                        "a\r\n\tb\\x1b[1;31mc\\x0de\n");
    Str s = str_new(arena);
    text_add_xml(&s, "<\"&\033\357\277\276");
    assert_string_equal(s.s, "&lt;&quot;&amp;\\x1b\\ufffe");
    assert_null(text_visible(arena, NULL));
}
static void test_endings(void **state) {
    (void)state;
    static const struct {
        const char *s, *end;
        size_t before;
        bool names;
    } row[] = {{"a.safetensors", ".safetensors", 1, false},
               {".yaml", ".yaml", 0, true},
               {"wo", "attention.wo", 0, false},
               {"layers.0.attention.wo", "wo", 19, true},
               {"layers.0.attention.wo", "attention.wo", 9, true},
               {"layers.0.attention.wo", "o", 20, false},
               {"wo", "wo", 0, true},
               {"a.", "", 2, false},
               {"", "", 0, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(text_before(row[i].s, row[i].end), row[i].before);
        assert_int_equal(text_names(row[i].s, row[i].end), row[i].names);
    }
    assert_false(text_names(NULL, "wo"));
}
/* The line under a diagnostic shows escapes, and the caret stays under its character. */
static void test_caret(void **state) {
    (void)state;
    Diags *d = diags_new(arena);
    const char *text = "a: \"\342\200\256\302\233\" b\n";
    diags_source(d, "f\033", text, strlen(text));
    diag_error(d, "E0104", ((Loc){"f\033", 1, 8}), "say so", "bad \302\233");
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    diags_print(d, f, false);
    fclose(f);
    assert_string_equal(out, "f\\x1b:1:8: error: bad \\x9b [E0104]\n  a: \"\\u202e\\x9b\" b\n      "
                             "           ^\n  = help: say so\n");
    free(out);
}

/* ---- all outputs ---- */
/* Our own colours: none of them is 8 (hidden text). */
static size_t own_color(const char *s) {
    static const char *const own[] = {"0",    "1",    "4",    "1;4", "2",  "1;31", "1;32",
                                      "1;33", "1;35", "1;36", "31",  "32", "33"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        size_t k = strlen(own[i]);
        if (strncmp(s, "\033[", 2) == 0 && strncmp(s + 2, own[i], k) == 0 && s[2 + k] == 'm')
            return k + 3;
    }
    return 0;
}
static void expect_tame(const char *s, size_t n, bool color, const char *what) {
    for (size_t i = 0, k; i < n; i += k) {
        int32_t code;
        k = utf8_char(s + i, n - i, &code);
        if (!utf8_is_hostile(code) || code == '\n' || code == '\t') continue;
        if (code == '\r' && i + 1 < n && s[i + 1] == '\n') continue;
        if (color && own_color(s + i)) {
            k = own_color(s + i);
            continue;
        }
        size_t from = i > 60 ? i - 60 : 0, to = i + 60 < n ? i + 60 : n;
        fail_msg("%s: U+%04X at %zu: ...%s...", what, (unsigned)code, i,
                 text_visible(arena, arena_strndup(arena, s + from, to - from)));
    }
}
static int n_runs;
static void run(const char *const *words, const char *format, bool color) {
    char *argv[32] = {(char *)(uintptr_t) "shardproof"}, *out = NULL, *err = NULL;
    int argc = 1;
    Str what = str_new(arena);
    for (; *words; words++) {
        str_addf(&what, " %s", text_visible(arena, *words));
        argv[argc++] = (char *)(uintptr_t)*words;
    }
    size_t n, m;
    FILE *fo = open_memstream(&out, &n), *fe = open_memstream(&err, &m);
    int code = cli_main(argc, argv, fo, fe);
    fclose(fo);
    fclose(fe);
    n_runs++;
    expect_tame(out, n, color, arena_printf(arena, "out of%s", what.s));
    expect_tame(err, m, color, arena_printf(arena, "err of%s", what.s));
    if (code == 70) fail_msg("%s: %s", what.s, err);
    bool json =
        !strstr(what.s, "--dump") && (strcmp(format, "json") == 0 || strcmp(format, "sarif") == 0 ||
                                      strcmp(format, "chrome") == 0);
    if (json && n && code == 0) {
        const char *error;
        int line, col;
        if (!json_parse(arena, out, n, &error, &line, &col))
            fail_msg("%s: no JSON, %d:%d: %s", what.s, line, col, error);
    }
    free(out);
    free(err);
}
/* Every format of a command, coloured and not. */
static void run_formats(const char *command, const char *const *more) {
    for (int i = 0; i < n_cli_commands; i++) {
        if (strcmp(cli_commands[i].name, command) != 0) continue;
        char *formats = arena_strdup(arena, cli_commands[i].formats), *at;
        for (char *f = strtok_r(formats, " ", &at); f; f = strtok_r(NULL, " ", &at)) {
            if (strcmp(f, "png") == 0 || strcmp(f, "pdf") == 0) continue; /* no text */
            for (int color = 0; color < 2; color++) {
                const char *words[16] = {command, "--format", f,
                                         color ? "--color=always" : "--color=never"};
                for (int k = 0; more[k]; k++) words[4 + k] = more[k];
                run(words, f, color);
            }
        }
    }
}
#define MORE(...) ((const char *const[]){__VA_ARGS__, NULL})
static void run_views(const char *path) {
    int n;
    const RenderView *view = render_views(&n);
    for (int i = 0; i < n; i++) run_formats("draw", MORE("--view", view[i].name, path));
}

/* A key of records that holds texts, found by looking at all lines. */
static bool is_new(const char **keys, int n, const char *key) {
    for (int i = 0; i < n; i++)
        if (strcmp(keys[i], key) == 0) return false;
    return true;
}
/* "key":"text" and "key":["text", ...]: names of the keys, at most `most`. */
static int text_keys(const char *trace, const char **keys, int most) {
    int n = 0;
    for (const char *s = trace; (s = strstr(s, "\":")) && n < most; s += 2) {
        const char *from = s;
        if (s[2] != '"' && strncmp(s + 2, "[\"", 2) != 0) continue;
        while (from > trace && from[-1] != '"') from--;
        const char *key = arena_strndup(arena, from, (size_t)(s - from));
        if (is_new(keys, n, key)) keys[n++] = key;
    }
    return n;
}
/* The trace with hostile text at the end of every value of the key. */
static const char *spoiled(const char *trace, const char *key) {
    const char *name = arena_printf(arena, "\"%s\":", key);
    Str s = str_new(arena);
    for (const char *at; (at = strstr(trace, name)); trace = at) {
        at += strlen(name);
        bool list = *at == '[';
        at += list;
        str_addn(&s, trace, (size_t)(at - trace));
        while (*at == '"') {
            const char *end = at + 1;
            while (*end != '"') end += *end == '\\' ? 2 : 1;
            str_addn(&s, at, (size_t)(end - at));
            str_add(&s, IN_JSON "\"");
            at = end + 1;
            if (list && *at == ',') str_addn(&s, at++, 1);
        }
    }
    str_add(&s, trace);
    return s.s;
}
static void test_plan(void **state) {
    (void)state;
    const char *plan = arena_printf(
        arena, "name: \"small" IN_YAML "\"\n"
               "model: {kind: mlp, sizes: [6, 10, 3], bias: false, layer_names: [\"up" IN_YAML
               "\", \"down" IN_YAML "\"]}\n"
               "data: {rows: 5, dtype: f32, seed: 1}\n"
               "mesh: {tp: 2}\n"
               "plan:\n"
               "  \"up" IN_YAML "\": colwise\n"
               "  \"down" IN_YAML "\": rowwise\n");
    const char *wrong =
        arena_printf(arena, "%sfaults: [{at: \"down" IN_YAML "\", do: drop}]\n", plan);
    const char *broken = arena_printf(
        arena, "%s\"key" IN_YAML "\": 1\nfaults: [{at: \"no" IN_YAML "\", do: drop}]\n", plan);
    const char *texts[] = {plan, wrong, broken};
    for (int i = 0; i < 3; i++) {
        /* a path of our own, one that is hostile itself, and one that is no UTF-8 */
        const char *path[] = {put(arena_printf(arena, "p%d.yaml", i), texts[i]),
                              put(arena_printf(arena, "p%d" RAW ".yaml", i), texts[i]),
                              put(arena_printf(arena, "p%d\377.yaml", i), texts[i])};
        for (int k = 0; k < 3; k++) {
            const char *out = arena_printf(arena, "%s/o%d", dir, k);
            run_formats("check", MORE(path[k]));
            run_formats("check", MORE(path[k], path[0], "-v"));
            run_formats("shapes", MORE(path[k]));
            run_formats("params", MORE(path[k]));
            run_formats("comms", MORE(path[k]));
            run_formats("explain", MORE(path[k], "up" RAW));
            run_formats("explain", MORE(path[k], "none" RAW));
            run_formats("diff", MORE(path[k], path[0]));
            run_formats("check", MORE(path[k], "--dump", "lower"));
            run_formats("check", MORE(arena_printf(arena, "%s.none", path[k])));
            run_formats("check", MORE(path[0], "--against", path[k]));
            run_formats("check", MORE(path[0], "--hardware", path[k]));
            run_formats("run", MORE(path[k], "-o", out));
            if (k == 0) run_views(path[k]);
            DIR *h = opendir(out);
            for (struct dirent *e; h && (e = readdir(h));)
                expect_tame(e->d_name, strlen(e->d_name), false, "a file's name");
            if (h) closedir(h);
        }
    }
    run_formats("check", MORE(put("p.yaml", plan), "--set", RAW "=1"));
    run_formats("check", MORE(put("p.yaml", plan), "--" RAW));
    run_formats("list", MORE("st" RAW));
}
static void test_traces(void **state) {
    (void)state;
    static const char plan[] = "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\n"
                               "data: {rows: 5, dtype: f32, seed: 1}\n"
                               "mesh: {tp: 2}\n"
                               "pass: backward\n"
                               "plan: {net1: colwise, net2: rowwise}\n"
                               "faults: [{at: net2, do: drop}]\n";
    const char *path = put("p.yaml", plan), *to = arena_printf(arena, "%s/t.jsonl", dir),
               *keys[200];
    run(MORE("check", path, "--trace", to), "text", false);
    size_t n;
    const char *trace = file_read(arena, diags_new(arena), to, 1 << 24, (Loc){0}, &n);
    assert_non_null(trace);
    int k = text_keys(trace, keys, 200), all = getenv("SHARDPROOF_SAMPLE") ? 6 : k;
    assert_true(k > 30);
    for (int i = 0; i < all; i++) {
        const char *bad = put("bad.jsonl", spoiled(trace, keys[i]));
        run_formats("shapes", MORE(bad));
        run_formats("params", MORE(bad));
        run_formats("comms", MORE(bad));
        run_formats("explain", MORE(bad, "3"));
        run_formats("explain", MORE(bad, "net2"));
        run_formats("diff", MORE(bad, to));
        run_views(bad);
    }
    print_message("%d keys, %d runs\n", all, n_runs);
}

/* A file with one tensor that no model has. */
static const char *put_tensor(const char *name) {
    static const char header[] =
        "{\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char bytes[8 + sizeof header - 1 + 4] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    assert_true(file_write(diags_new(arena), in(name), bytes, sizeof bytes));
    return in(name);
}
/* A stranger's plan may name any file of the machine: what is no file of the kind asked for is not
 * quoted, in no format. */
static void test_other_files(void **state) {
    (void)state;
    static const char *const texts[] = {"root:SECRET:19000:0:99999:7:::\nSECRET:x\n",
                                        "SECRET: SECRET\n",
                                        "{\"SECRET\": \"SECRET\"}\n",
                                        "SECRET: {\n",
                                        "[\"SECRET\", SECRET]\n",
                                        "{\"SECRET\": 1, \"SECRET\": 2}\n",
                                        "{\"a\": SECRET}\n"};
    static const char *const mlp =
        "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\ndata: {rows: 5}\nmesh: {tp: 2}\n";
    static const char *const plans[] = {
        "model: {hf_config: other}\nmesh: {tp: 2}\n",
        "model: {kind: mlp, sizes: [6, 10, 3], bias: false, weights: other}\n"
        "data: {rows: 5}\nmesh: {tp: 2}\n",
        "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\n"
        "data: {rows: 5, inputs: other}\nmesh: {tp: 2}\n",
        "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\n"
        "data: {rows: 5}\nmesh: {tp: 2}\nhardware: ./other\n"};
    static const char *const formats[] = {"text", "jsonl", "junit", "github", "sarif", "gitlab"};
    static const char *const options[] = {"-v",        "-v",         "-v",   "-v",
                                          "--against", "--hardware", "--map"};
    enum {
        N_FORMATS = sizeof formats / sizeof *formats,
        N_WAYS = sizeof options / sizeof *options
    };
    const char *plain = put("mlp.yaml", mlp), *odd = put_tensor("odd.safetensors");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *other = put("other", texts[i]);
        for (size_t k = 0; k < N_FORMATS * N_WAYS; k++) {
            size_t way = k / N_FORMATS;
            const char *f = formats[k % N_FORMATS],
                       *p = way < 4 ? put("p.yaml", plans[way]) : plain, *option = options[way];
            char *argv[] = {(char *)(uintptr_t) "shardproof",
                            (char *)(uintptr_t) "check",
                            (char *)(uintptr_t)p,
                            (char *)(uintptr_t) "--format",
                            (char *)(uintptr_t)f,
                            (char *)(uintptr_t)option,
                            (char *)(uintptr_t)other,
                            (char *)(uintptr_t) "--against",
                            (char *)(uintptr_t)odd,
                            NULL},
                 *out = NULL;
            size_t n;
            FILE *to = open_memstream(&out, &n);
            int code = cli_main(way < 4 ? 6 : way < 6 ? 7 : 9, argv, to, to);
            fclose(to);
            if (code == 0 || strstr(out, "SECRET"))
                fail_msg("text %zu, case %zu, %s: exit %d\n%s", i, way, f, code, out);
            free(out);
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sandbox_new, sandbox_gone)
int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_visible), TEST(test_endings),
                                       TEST(test_caret),   TEST(test_plan),
                                       TEST(test_traces),  TEST(test_other_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
