/* What a plan can say, as rows for people: every key with its path, what it takes and what it
 * means. Made from the tables that read plans, so it cannot drift from them. Refuses to know what a
 * key means. */
#include "plan/read.h"
#include <string.h>

/* What the reader of a key takes; words are listed from its table. */
static const struct {
    ReadFn *read;
    const char *takes;
} readers[] = {{read_text, "text"},
               {read_path, "a path, from the plan's folder"},
               {read_size, "a whole number from 1"},
               {read_seed, "a whole number from 0"},
               {read_signed, "a whole number"},
               {read_real, "a number"},
               {read_bool, "true or false"},
               {read_flag, "true or false"},
               {read_axes, "an axis or group, or a product: dp*cp"},
               {read_part_axes, "an axis or group, or a product: dp*cp"},
               {read_axis, "an axis or group"},
               {read_sub, "a mapping"},
               {read_spec, "a placement"}};

static const char *words_text(Arena *a, const Word *w) {
    Str s = str_new(a);
    for (; w && w->word; w++) str_addf(&s, "%s%s", s.n ? ", " : "", w->word);
    return s.s;
}
static bool has_choices(const Key *k) {
    return k->read == plan_read_activation || k->read == read_word_text ||
           k->read == read_word_int || k->read == read_word_bool;
}
static const char *takes(Arena *a, const Key *k) {
    if (has_choices(k))
        return words_text(a, k->read == plan_read_activation ? plan_activations(a) : k->arg);
    if (k->read == read_sub && ((const Sub *)k->arg)->shorthand)
        return arena_printf(a, "its `%s`, or a mapping", ((const Sub *)k->arg)->shorthand);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (k->read == readers[i].read) return readers[i].takes;
    return "";
}
typedef struct {
    Arena *a;
    KeyRow *row;
    int n, cap;
} Rows;
static void walk(Rows *r, const char *above, const Key *keys) {
    for (const Key *k = keys; k->name; k++) {
        if (k->read == read_later) continue;
        const char *path = *above ? arena_printf(r->a, "%s.%s", above, k->name) : k->name;
        *ARENA_PUSH(r->a, r->row, r->n, r->cap) =
            (KeyRow){path, takes(r->a, k), has_choices(k), k->doc ? k->doc : ""};
        if (k->read == read_sub) walk(r, path, ((const Sub *)k->arg)->keys);
        if (k->read == read_lines) walk(r, "plan.PATTERN", plan_style_keys);
        if (k->read == read_faults) walk(r, "faults.[]", plan_fault_keys);
        if (!strcmp(path, "expect")) walk(r, "expect", plan_expect_keys);
    }
}
const KeyRow *plan_key_rows(Arena *a, int *n) {
    Rows r = {.a = a};
    walk(&r, "", plan_keys);
    *n = r.n;
    return r.row;
}
