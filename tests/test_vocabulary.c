/* One vocabulary: a figure of a plan calls modules by the names of the plan's own scheme. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "model/model.h"
#include "render/render.h"
#include "support/pictures.h"
#include "support/support.h"
#include <string.h>

/* Is the word the end of a module's name in that scheme? */
static bool in_scheme(const char *word, size_t n, Names scheme) {
    int rows;
    const NamesRow *row = names_table(&rows);
    for (int i = 0; i < rows; i++) {
        const char *name = row[i].name[scheme], *dot = name ? strrchr(name, '.') : NULL;
        const char *leaf = dot ? dot + 1 : name;
        if (leaf && strlen(leaf) == n && !strncmp(leaf, word, n)) return true;
    }
    return false;
}
/* The first word of a text that names a module in another scheme than the plan's, or a value as
 * records do where the plan has a name for what makes it; NULL: none. */
static const char *foreign_word(Arena *a, const char *text, Names own) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    static const char *const records[] = {"input_norm", "post_attn_norm", "final_norm"};
    for (const char *p = text; *p;) {
        const size_t n = strspn(p, letters);
        bool name = n == 2 && *p == 'w' && strchr("qkvo123", p[1]);
        name |= memchr(p, '_', n) != NULL;
        bool foreign = false;
        for (int s = 0; name && s < NAMES_COUNT; s++) foreign |= in_scheme(p, n, (Names)s);
        foreign &= !in_scheme(p, n, own);
        for (int i = 0; i < 3; i++)
            foreign |= strlen(records[i]) == n && !strncmp(p, records[i], n);
        /* what w2 makes is mlp.down in records */
        foreign |= own == NAMES_TORCHTITAN && n == 3 && !strncmp(p, "mlp.down", 8);
        if (foreign) return arena_strndup(a, p, n);
        p += n ? n : 1;
    }
    return NULL;
}
static PlanRun run_of_file(Arena *a, const char *path) {
    size_t n;
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    return plan_run_with(a, path, text,
                         &(PipelineOptions){.threads = 1, .events = true, .execute = true});
}
/* A figure of a plan has the words of one scheme: the plan's own. */
static void one_vocabulary(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        Names own;
    } row[] = {{"plans/09-llama3-8b-dp2-cp2-tp2.yaml", NAMES_TORCHTITAN},
               {"plans/16-hf-llama-tp4.yaml", NAMES_HF},
               {"plans/20-llama3-8b-fsdp-tp.yaml", NAMES_TORCHTITAN},
               {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", NAMES_TORCHTITAN},
               {"plans/03-llama3-8b-tp2.yaml", NAMES_GGUF},
               {"plans/15-megatron-tp-sp.yaml", NAMES_MEGATRON},
               {"plans/30-mixtral-8x7b-ep-dp-cp.yaml", NAMES_TORCHTITAN},
               {"plans/56-gpt-oss-20b-tp2-ep2.yaml", NAMES_HF},
               {"plans/bugs/01-output-left-partial.yaml", NAMES_TORCHTITAN},
               {"plans/bugs/06-reduced-twice.yaml", NAMES_TORCHTITAN},
               {"plans/bugs/12-gradient-over-the-wrong-group.yaml", NAMES_TORCHTITAN},
               {"plans/bugs/25-packed-cut-as-one.yaml", NAMES_HF},
               {"plans/bugs/33-norm-over-own-columns.yaml", NAMES_TORCHTITAN}};
    static const char *const view[] = {"block", "timeline",   "overview", "shards", "memory",
                                       "mesh",  "storyboard", "routing",  "errors", "roofline"};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        PlanRun r = run_of_file(a, row[i].plan);
        for (size_t k = 0; k < sizeof view / sizeof *view; k++) {
            RenderOptions o = {.view = view[k], .rank = -1, .layer = -1};
            size_t n;
            const char *svg = render_text(r.t, diags_new(a), &o, FORMAT_SVG, a, &n);
            const char *word = svg ? foreign_word(a, svg_words(a, svg), row[i].own) : NULL;
            if (word) fail_msg("%s, %s: '%s' is no name of the plan", row[i].plan, view[k], word);
        }
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_vocabulary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
