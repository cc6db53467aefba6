/* Every shipped plan, damaged: bytes flipped, the end cut off, a line dropped or doubled, a value
 * swapped with another or replaced by what nobody expects. Whatever comes out, nothing crashes, the
 * exit code is one of 0 1 3 5, and what is refused says why. Shape-only, so that a plan that
 * survives costs nothing. A fixed sample; SHARDPROOF_SOAK sets how many per plan. */
#include "base/file.h"
#include "drive/pipeline.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t state;
static size_t draw(size_t below) { /* splitmix64 */
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return below ? (size_t)((z ^ z >> 31) % below) : 0;
}

/* A word of the text: what stands between blanks and punctuation. */
typedef struct {
    size_t at, n;
} Word;
static bool is_word(char c) { return c && !strchr(" \n\r\t:,{}[]\"#", c); }
static Word any_word(const char *s, size_t n) {
    Word w = {n ? draw(n) : 0, 0};
    while (w.at < n && !is_word(s[w.at])) w.at++;
    while (w.at > 0 && w.at < n && is_word(s[w.at - 1])) w.at--;
    while (w.at + w.n < n && is_word(s[w.at + w.n])) w.n++;
    return w;
}
static Word any_line(const char *s, size_t n) {
    Word w = {n ? draw(n) : 0, 0};
    while (w.at > 0 && s[w.at - 1] != '\n') w.at--;
    while (w.at + w.n < n && s[w.at + w.n] != '\n') w.n++;
    if (w.at + w.n < n) w.n++;
    return w;
}
static char *replaced(Arena *a, const char *s, size_t n, Word w, const char *by, size_t nby,
                      size_t *m) {
    Str o = str_new(a);
    str_addn(&o, s, w.at);
    str_addn(&o, by, nby);
    str_addn(&o, s + w.at + w.n, n - w.at - w.n);
    *m = o.n;
    return o.s;
}
static char *damaged(Arena *a, const char *s, size_t n, size_t *m) {
    static const char *const odd[] = {"0",
                                      "-1",
                                      "1",
                                      "3",
                                      "7",
                                      "2147483648",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "nan",
                                      ".inf",
                                      "1e3",
                                      "0x10",
                                      "[]",
                                      "[1, 2]",
                                      "{}",
                                      "{a: b}",
                                      "null",
                                      "~",
                                      "true",
                                      "\"\"",
                                      "shard(9)",
                                      "shard(-9)",
                                      "shard(z)",
                                      "partial",
                                      "local",
                                      "tp*tp",
                                      "dp",
                                      "*",
                                      "[",
                                      "all",
                                      "train",
                                      "colwise",
                                      "rowwise"};
    enum { N_ODD = sizeof odd / sizeof *odd };
    Word w = any_word(s, n), l = any_line(s, n);
    switch (draw(8)) {
    case 0: {
        char *t = arena_strndup(a, s, n);
        if (n) t[draw(n)] ^= (char)(1 << draw(8));
        return *m = n, t;
    }
    case 1: return *m = draw(n), arena_strndup(a, s, *m);
    case 2: return replaced(a, s, n, l, "", 0, m);
    case 3: return replaced(a, s, n, (Word){l.at, 0}, s + l.at, l.n, m);
    case 4: {
        Word v = any_word(s, n);
        return replaced(a, s, n, w, s + v.at, v.n, m);
    }
    default: {
        const char *by = odd[draw(N_ODD)];
        return replaced(a, s, n, w, by, strlen(by), m);
    }
    }
}
/* Many layers or ranks are slow and no other than a few. */
static bool quick(Arena *a, const char *file, const char *s, size_t n) {
    const Plan *p = plan_parse(a, diags_new(a), (PlanText){file, s, n, NULL, 0});
    double ranks = 1;
    for (int i = 0; i < p->n_axes; i++) ranks *= (double)p->axes[i].size;
    return p->layers_last >= 0 && p->layers_last - p->layers_first <= 4 &&
           (ranks <= 1024 || ranks > 1e7);
}
typedef struct {
    long made, refused, wrong, fine;
} Count;
static void one(const char *path, const char *s, size_t n, Count *count) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    size_t m;
    uint64_t seed = state;
    char *text = damaged(a, s, n, &m);
    if (draw(4) == 0) text = damaged(a, text, m, &m);
    if (quick(a, path, text, m)) {
        PipelineOptions o = {.events = true};
        PipelineReport r;
        Trace *t = pipeline_run(a, d, (PlanText){path, text, m, NULL, 0}, &o, &r);
        int code = diags_exit(d);
        bool known = code == 0 || code == 1 || code == 3 || code == 5,
             reason = t || diags_errors(d);
        if (!known || !reason || (t ? r.exit : code) != code)
            fail_msg("%s, seed %llu: exit %d, reported %d, %d errors\n%s", path,
                     (unsigned long long)seed, code, r.exit, diags_errors(d), text);
        count->made++;
        *(code == 0 ? &count->fine : code == 1 ? &count->wrong : &count->refused) += 1;
    }
    arena_free(a);
}
static void folder(const char *dir, long per_plan, Count *count) {
    Arena *a = arena_new();
    DIR *h = opendir(dir);
    assert_non_null(h);
    for (struct dirent *e; (e = readdir(h));) {
        size_t len = strlen(e->d_name), n;
        if (len < 5 || strcmp(e->d_name + len - 5, ".yaml")) continue;
        const char *path = file_join(a, dir, e->d_name);
        char *s = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
        assert_non_null(s);
        state = 0; /* the same damage whatever the order of the folder */
        for (size_t i = 0; i < len; i++) state = state * 131 + (unsigned char)e->d_name[i];
        for (long i = 0; i < per_plan; i++) one(path, s, n, count);
    }
    closedir(h);
    arena_free(a);
}
static void test_damaged_plans(void **unused) {
    (void)unused;
    const char *soak = getenv("SHARDPROOF_SOAK");
    long per_plan = soak ? atol(soak) : 60;
    Count c = {0};
    folder("plans", per_plan, &c);
    folder("plans/bugs", per_plan, &c);
    print_message("%ld damaged plans: %ld not understood, %ld broke a rule, %ld were plans still\n",
                  c.made, c.refused, c.wrong, c.fine);
    /* a damage that never is understood, or always refused, tests one pass only */
    assert_true(c.made > 1000 && c.refused > c.made / 10 && c.fine > c.made / 20 && c.wrong > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_plans)};
    return cmocka_run_group_tests_name("mutations", tests, NULL, NULL);
}
