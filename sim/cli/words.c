/* `explain WORD`: one word, looked up in every table that has words. Each table says what it knows;
 * refuses to know more than they. */
#include "cli/words.h"
#include "cli/told.h"
#include "cost/cost.h"
#include "lower/program.h"
#include <ctype.h>
#include <string.h>

/* What a word is: of terms what their table says (TermKind), else which table has it. */
typedef enum {
    WORD_STYLE = TERM_BOX + 1,
    WORD_PLACE,
    WORD_KEY,
    WORD_FAULT,
    WORD_RECIPE,
    WORD_MODEL,
    WORD_SCHEME,
    WORD_HARDWARE,
    WORD_VIEW,
    WORD_CHOICE,
    WORD_OP
} WordKind;
static const struct {
    const char *article, *name;
} kinds[] = {
    [TERM_WORD] = {"a", "term"},
    [TERM_LETTER] = {"a", "letter of shapes"},
    [TERM_COLLECTIVE] = {"a", "collective"},
    [TERM_BOX] = {"a", "word of figures"},
    [WORD_STYLE] = {"a", "style"},
    [WORD_PLACE] = {"a", "placement"},
    [WORD_KEY] = {"a", "key of plans"},
    [WORD_FAULT] = {"a", "fault (--fault)"},
    [WORD_RECIPE] = {"a", "recipe"},
    [WORD_MODEL] = {"a", "model (model: NAME)"},
    [WORD_SCHEME] = {"a", "scheme of names (names:)"},
    [WORD_HARDWARE] = {"a", "hardware profile (--hardware)"},
    [WORD_VIEW] = {"a", "view (draw --view)"},
    [WORD_CHOICE] = {"a", "word for "}, /* and the key (WordEntry.of) */
    [WORD_OP] = {"an", "op"},
};
/* An entry of some table: what the word is, and what it means. */
typedef struct {
    const char *name;
    int kind;       /* a TermKind or a WordKind */
    const char *of; /* what the words of `kind` end in; NULL: nothing */
    const char *also, *what;
} WordEntry;
typedef struct {
    Arena *a;
    Diags *d; /* of what is read from files */
    WordEntry *e;
    int n, cap;
} WordEntries;
static void add(WordEntries *all, const char *name, int kind, const char *also, const char *what) {
    *ARENA_PUSH(all->a, all->e, all->n, all->cap) = (WordEntry){name, kind, NULL, also, what};
}

/* "all-gather", "All_Gather" and "all gather" are one word; a letter is not: D and d differ. */
static bool same_word(const char *a, const char *b, size_t nb) {
    if (strlen(a) != nb) return false;
    if (nb == 1) return *a == *b;
    for (size_t i = 0; i < nb; i++) {
        char x = a[i], y = b[i];
        x = x == '-' || x == ' ' ? '_' : (char)tolower((unsigned char)x);
        y = y == '-' || y == ' ' ? '_' : (char)tolower((unsigned char)y);
        if (x != y) return false;
    }
    return true;
}

/* ---- the tables ---- */
static void add_terms(WordEntries *all) {
    const Term *const tables[] = {cli_terms, cli_boxes};
    for (int i = 0; i < 2; i++)
        for (const Term *t = tables[i]; t->name; t++) add(all, t->name, t->kind, t->also, t->what);
}
static void add_styles(WordEntries *all) {
    int n;
    const StyleRow *s = style_rows(&n);
    for (int i = 0; i < n; i++)
        add(all, s[i].style.name, WORD_STYLE, s[i].aliases,
            arena_printf(all->a, "%s.%s", s[i].what,
                         s[i].style.sums ? " Its system sums the gradients of its parameters."
                                         : ""));
}
static void add_keys(WordEntries *all) {
    int n;
    const KeyRow *k = plan_key_rows(all->a, &n);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(k[i].path, '.');
        add(all, k[i].path, WORD_KEY, dot ? dot + 1 : NULL,
            arena_printf(all->a, "%s%s%s", k[i].what, *k[i].what && *k[i].takes ? "; takes " : "",
                         k[i].takes));
    }
}
static void add_places(WordEntries *all) {
    int n;
    const PlaceWord *p = plan_place_words(all->a, &n);
    for (int i = 0; i < n; i++) {
        const char *bare = arena_strndup(all->a, p[i].word, strcspn(p[i].word, "("));
        const char *also = p[i].theirs ? arena_printf(all->a, "%s %s", bare, p[i].theirs) : bare;
        add(all, p[i].word, WORD_PLACE, also, p[i].what);
    }
}
static void add_faults(WordEntries *all) {
    const char *const *what, *const *name = fault_names(all->a, &what);
    for (int i = 0; name[i]; i++) add(all, name[i], WORD_FAULT, NULL, what[i]);
}
static void add_recipes(WordEntries *all) {
    int n;
    const RecipeRow *r = plan_recipes(&n);
    for (int i = 0; i < n; i++)
        if (r[i].lines) add(all, r[i].name, WORD_RECIPE, NULL, r[i].what);
}
static void add_models(WordEntries *all) {
    int n;
    const Preset *p = model_presets(&n);
    for (int i = 0; i < n; i++)
        add(all, p[i].name, WORD_MODEL, NULL,
            arena_printf(all->a, "%s: D %lld, %lld layers, %lld heads, %lld KV heads", p[i].what,
                         (long long)p[i].D, (long long)p[i].L, (long long)p[i].H,
                         (long long)p[i].K));
}
/* A scheme is known by its names; one row with a layer shows them. */
static void add_schemes(WordEntries *all) {
    int n, row = 0;
    const NamesRow *rows = names_table(&n);
    while (row + 1 < n && strcmp(rows[row].what, "query") != 0) row++;
    for (int k = 0; k < NAMES_COUNT; k++)
        add(all, plan_names_text((Names)k), WORD_SCHEME, NULL,
            arena_printf(all->a, "modules are called as in `%s`; `list names` has all of them",
                         rows[row].name[k]));
}
static void add_hardware(WordEntries *all) {
    static const char *const dirs[] = {"plans/hardware", NULL};
    for (const char *const *name = hardware_names(); *name; name++) {
        const Hardware *h = hardware_find(all->a, all->d, *name, dirs, diag_nowhere);
        if (h) add(all, *name, WORD_HARDWARE, NULL, h->what);
    }
}
static void add_views(WordEntries *all) {
    int n;
    const RenderView *v = render_views(&n);
    for (int i = 0; i < n; i++) add(all, v[i].name, WORD_VIEW, NULL, v[i].what);
}
/* The words that keys take: adamw of optimizer.name. */
static void add_choices(WordEntries *all) {
    int n;
    const KeyRow *k = plan_key_rows(all->a, &n);
    for (int i = 0; i < n; i++) {
        if (!k[i].choices) continue;
        for (const char *w = k[i].takes; *w;) {
            size_t len = strcspn(w, ",");
            const char *what =
                *k[i].what ? k[i].what : arena_printf(all->a, "one of %s", k[i].takes);
            add(all, arena_strndup(all->a, w, len), WORD_CHOICE, NULL, what);
            all->e[all->n - 1].of = k[i].path;
            w += len + strspn(w + len, ", ");
        }
    }
}
/* An op by its name, and by what figures and tables call it; of one label the first. */
static void add_ops(WordEntries *all) {
    for (int i = 0; i < n_ops; i++) {
        const Op *op = op_list[i];
        const char *rule = op->rule ? op->rule : op->typical,
                   *what = arena_printf(all->a,
                                        "%s%s%s: what it reads and what it gives, a letter "
                                        "for each dim (`list ops` tells them)",
                                        op->label ? op->label : "", op->label ? "; " : "", rule);
        bool known = !op->label || same_word(op->label, op->name, strlen(op->name));
        for (int k = 0; k < i && !known; k++)
            known = op_list[k]->label && !strcmp(op_list[k]->label, op->label);
        add(all, op->name, WORD_OP, NULL, what);
        if (!known) add(all, op->label, WORD_OP, NULL, what);
    }
}
static WordEntries all_entries(Arena *a, Diags *d) {
    WordEntries all = {.a = a, .d = d};
    static void (*const tables[])(WordEntries *) = {
        add_terms, add_styles, add_places,  add_keys,     add_faults,  add_recipes,
        add_views, add_models, add_schemes, add_hardware, add_choices, add_ops};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) tables[i](&all);
    return all;
}

/* ---- looking up ---- */
static bool names(const WordEntry *e, const char *word) {
    if (same_word(word, e->name, strlen(e->name))) return true;
    for (const char *w = e->also; w && *w;) {
        size_t n = strcspn(w, " ");
        if (same_word(word, w, n)) return true;
        w += n + (w[n] == ' ');
    }
    return false;
}
/* Its other name is the end of its own. */
static bool is_key(const WordEntry *e) { return e->kind == WORD_KEY; }
/* Into `told` for a document, else as text. */
static void tell(Cli *c, Told *told, const WordEntry *e) {
    const char *kind = arena_printf(c->arena, "%s%s", kinds[e->kind].name, e->of ? e->of : "");
    if (!strcmp(c->format, "json")) {
        told_section(told, kind, e->name, e->name);
        told_field(told, TOLD_LINE, "also", e->also);
        told_field(told, TOLD_LINE, "text", e->what);
        return;
    }
    if (c->text.n) str_add(&c->text, "\n");
    cli_paint(c, "1", e->name);
    str_addf(&c->text, ", %s %s", kinds[e->kind].article, kind);
    bool key = is_key(e), figures = e->kind == TERM_BOX;
    int said = 0;
    for (const char *w = e->also; w && *w && !key;) {
        size_t n = strcspn(w, " ");
        if (strncmp(w, e->name, n) || e->name[n]) {
            char *also = arena_strndup(c->arena, w, n);
            for (char *p = also; figures && *p; p++) /* they are written with blanks */
                if (*p == '_') *p = ' ';
            str_addf(&c->text, "%s%s", said++ ? ", " : "; also ", also);
        }
        w += n + (w[n] == ' ');
    }
    str_add(&c->text, "\n");
    cli_wrapped(c, e->what, 2);
}
const char *words_plain(Arena *a, Diags *d) {
    WordEntries all = all_entries(a, d);
    Str s = str_new(a);
    for (int i = 0; i < all.n; i++) {
        const char *name = all.e[i].name;
        bool plain = true;
        for (const char *p = name; *p; p++)
            plain &= isalnum((unsigned char)*p) || strchr("_-.", *p);
        if (plain) str_addf(&s, "%s%s", s.n ? " " : "", name);
    }
    for (int i = 0; i < n_diag_codes; i++) str_addf(&s, " %s", diag_codes[i].code);
    return s.s;
}
/* "SiLU′", the backward of an op: its name without the mark. */
static const char *without_mark(Arena *a, const char *word) {
    static const char *const mark[] = {"′", "'"};
    const size_t n = strlen(word);
    for (size_t i = 0; i < sizeof mark / sizeof *mark; i++) {
        const size_t m = strlen(mark[i]);
        if (n > m && !strcmp(word + n - m, mark[i])) return arena_strndup(a, word, n - m);
    }
    return word;
}
static bool any_names(const WordEntries *all, const char *word) {
    for (int i = 0; i < all->n; i++)
        if (names(&all->e[i], word)) return true;
    return false;
}
/* The word as some table has it: itself, or without the "s" of several; NULL: none has. */
static const char *as_known(Arena *a, const WordEntries *all, const char *word) {
    const size_t n = strlen(word);
    if (any_names(all, word)) return word;
    const char *one = n > 3 && word[n - 1] == 's' ? arena_strndup(a, word, n - 1) : NULL;
    return one && any_names(all, one) ? one : NULL;
}
bool words_know(Cli *c, const char *word) {
    WordEntries all = all_entries(c->arena, c->d);
    return as_known(c->arena, &all, without_mark(c->arena, word)) != NULL;
}
/* Every word that is known, and the other ones for it but the ends of keys. Ends with NULL. */
static const char **known_words(Arena *a, const WordEntries *all) {
    int n = 0, cap = 0;
    const char **word = NULL;
    for (int i = 0; i < all->n; i++) *ARENA_PUSH(a, word, n, cap) = all->e[i].name;
    for (int i = 0; i < all->n; i++)
        for (const char *w = is_key(&all->e[i]) ? NULL : all->e[i].also; w && *w;
             w += strspn(w, " ")) {
            size_t length = strcspn(w, " ");
            *ARENA_PUSH(a, word, n, cap) = arena_strndup(a, w, length);
            w += length;
        }
    *ARENA_PUSH(a, word, n, cap) = NULL;
    return word;
}
enum { MOST_PHRASE = 12 };
/* The longest run of words of the phrase, from the i-th of n on, that is a word of some table; how
 * many words it has, 0: there is none. */
static int known_run(Arena *a, const WordEntries *all, const char *const *word, int i, int n,
                     const char **run) {
    for (int k = n - i; k > 0; k--) {
        Str s = str_new(a);
        for (int j = i; j < i + k; j++) str_addf(&s, "%s%s", j > i ? " " : "", word[j]);
        *run = as_known(a, all, s.s);
        if (*run) return k;
    }
    return 0;
}
/* Is it a number, or one letter, as in "rank 0" and "F forward"? */
static bool is_mark(const char *word) { return !word[1] || !word[strspn(word, "0123456789")]; }
/* A phrase of a figure, "Σ tp pending": what each of its words is, as far as they are known, or
 * with `each` only if all are. False: it is one word, or none is. */
static bool tell_phrase(Cli *c, Told *told, const WordEntries *all, const char *phrase, bool each) {
    static const char between[] = " ,;:()/";
    const char *word[MOST_PHRASE], *run;
    int n = 0;
    bool any = false, *said = ARENA_ARRAY(c->arena, bool, all->n);
    for (const char *p = phrase + strspn(phrase, between); *p && n < MOST_PHRASE;) {
        const size_t k = strcspn(p, between);
        word[n++] = arena_strndup(c->arena, p, k);
        p += k + strspn(p + k, between);
    }
    for (int i = 0, k; each && i < n; i += k ? k : 1) {
        k = known_run(c->arena, all, word, i, n, &run);
        if (!k && !is_mark(word[i])) return false;
    }
    for (int i = 0, k; n > 1 && i < n; i += k ? k : 1) {
        k = known_run(c->arena, all, word, i, n, &run);
        for (int e = 0; k && e < all->n; e++) {
            if (said[e] || !names(&all->e[e], run)) continue;
            tell(c, told, &all->e[e]);
            any = said[e] = true;
        }
    }
    return any;
}
bool explain_word(Cli *c, const char *word) {
    WordEntries all = all_entries(c->arena, c->d);
    const char **known = known_words(c->arena, &all);
    word = without_mark(c->arena, word);
    /* "shard(0)" and "Shard(dim=0)" are the word shard, "partial at(0,3)" is partial */
    const size_t open = strcspn(word, "("),
                 bare[] = {strlen(word), open, word[open] ? strcspn(word, " (") : 0};
    bool any = false;
    Told told = {.a = c->arena};
    for (int pass = 0; pass < 3 && !any && bare[pass]; pass++) {
        const char *sought = arena_strndup(c->arena, word, bare[pass]);
        for (int i = 0; i < all.n; i++) {
            if (!names(&all.e[i], sought)) continue;
            tell(c, &told, &all.e[i]);
            any = true;
        }
    }
    const char *one = any ? NULL : as_known(c->arena, &all, word); /* of several */
    for (int i = 0; one && i < all.n; i++) {
        if (!names(&all.e[i], one)) continue;
        tell(c, &told, &all.e[i]);
        any = true;
    }
    const char *near = any ? NULL : diag_nearest(word, known);
    if (!any) any = tell_phrase(c, &told, &all, word, near != NULL);
    if (near && strchr(near, ' ')) /* of one word it is said where it is printed */
        near = arena_printf(c->arena, "did you mean '%s'?", near);
    if (!any)
        diag_error(c->d, "E0209", diag_nowhere,
                   near ? near : "`shardproof list terms`, or a plan and a name in it",
                   "no table explains '%s'", word);
    if (!strcmp(c->format, "json")) told_document(c, &told, NULL, NULL);
    return any;
}

/* ---- lists ---- */
void list_keys(Cli *c) {
    static const Column col[] = {{"key", "key", false, 0},
                                 {"takes", "takes", false, COL_WRAP},
                                 {"what", "what it means", false, COL_WRAP}};
    Table t = table_new(c->arena, "key", col, 3);
    int n;
    const KeyRow *k = plan_key_rows(c->arena, &n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(k[i].path);
        r[1] = cell_text(k[i].takes);
        r[2] = cell_text(k[i].what);
    }
    cli_table(c, &t);
}
void list_placements(Cli *c) {
    static const Column col[] = {{"placement", "placement", false, 0},
                                 {"torch", "in PyTorch", false, 0},
                                 {"what", "what it means", false, COL_WRAP}};
    Table t = table_new(c->arena, "placement", col, 3);
    int n;
    const PlaceWord *p = plan_place_words(c->arena, &n);
    for (int i = 0; i < n; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(p[i].word);
        r[1] = cell_text(p[i].theirs ? p[i].theirs : "");
        r[2] = cell_text(p[i].what);
    }
    cli_table(c, &t);
}
void list_terms(Cli *c) {
    static const Column col[] = {{"term", "term", false, 0},
                                 {"what", "what it means", false, COL_WRAP}};
    Table t = table_new(c->arena, "term", col, 2);
    for (const Term *w = cli_terms; w->name; w++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(w->name);
        r[1] = cell_text(w->what);
    }
    cli_table(c, &t);
}
