/* explain --hooks as text and records. See hooks.h. */
#include "cli/hooks.h"
#include "cli/find.h"
#include "cli/fold.h"
#include <string.h>

enum { H_MODULE, H_HOOK, H_BY, H_STYLE, H_DOES, H_LINE, H_COLUMNS };
static const Column columns[H_COLUMNS] = {
    {"module", "module", false, COL_PREFIX | COL_NAMES},
    {"hook", "hook", false, 0},
    {"by", "by", false, 0},
    {"style", "style", false, COL_DROP},
    {"does", "what it does", false, COL_BELOW | COL_NAMES},
    {"line", "plan line", false, COL_OPTIONAL | COL_DROP | COL_PREFIX},
};
const char hooks_legend[] =
    "by: api is distribute_module of PyTorch, style one of its Prepare.. styles, fsdp\n"
    "fully_shard; transformers is Hugging Face's library; none: the module itself\n";
typedef struct {
    const Cli *c;
    const Trace *t;
    Arena *a;
    FoldWords words;
    Table *out;
    bool *told; /* per step: a row has it */
} Hooks;
static const char *or_empty(const char *s) { return s ? s : ""; }

/* "layers.0" of "layers.0.attention.wq" and of itself; and "attention", some of its components. */
static bool inside(const char *module, const char *name) {
    size_t n = strlen(name);
    for (const char *p = module; p; p = strchr(p, '.') ? strchr(p, '.') + 1 : NULL)
        if (!strncmp(p, name, n) && (!p[n] || p[n] == '.')) return true;
    return false;
}
static void row(Hooks *h, const TraceModule *m, const char *hook, const char *by,
                const char *does) {
    Cell *r = table_row(h->out);
    table_place(h->out, fold_place_named(&h->words, m->module));
    r[H_MODULE] = cell_text(m->module);
    r[H_HOOK] = cell_text(hook);
    r[H_BY] = cell_text(by);
    r[H_STYLE] = cell_text(m->style);
    r[H_DOES] = cell_text(does);
    if (m->line > 0) r[H_LINE] = cell_text(arena_printf(h->a, "%s:%d", or_empty(m->file), m->line));
}
static bool at(const char *module, const char *where, const TraceModule *m, const char *side) {
    return module && where && !strcmp(module, m->module) && !strcmp(where, side);
}
/* What is done, each once, in the order in which it is done first. */
typedef struct {
    Arena *a;
    int n, cap;
    struct Doing {
        const char *text;
        int times;
    } * x;
} Words;
static void and_also(Words *w, const char *text) {
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->x[i].text, text)) {
            w->x[i].times++;
            return;
        }
    *ARENA_PUSH(w->a, w->x, w->n, w->cap) = (struct Doing){text, 1};
}
static const char *words_text(const Words *w) {
    Str s = str_new(w->a);
    for (int i = 0; i < w->n; i++) {
        str_addf(&s, "%s%s", i ? "; " : "", w->x[i].text);
        if (w->x[i].times > 1) str_addf(&s, ", %d times", w->x[i].times);
    }
    return s.n ? s.s : "";
}

/* What the steps of one side of a module do: "all_gather(tp) of layers.0.input_norm". Empty:
 * nothing. */
static const char *moves_of(Hooks *h, const TraceModule *m, const char *side) {
    Words w = {.a = h->a};
    for (int i = 0; i < h->t->n_collectives; i++) {
        const TraceCollective *k = &h->t->collectives[i];
        if (!at(k->module, k->where, m, side)) continue;
        h->told[k->step] = true;
        and_also(&w, arena_printf(h->a, "%s(%s) of %s%s", or_empty(k->op), or_empty(k->axes),
                                  or_empty(k->value), k->skipped ? ", which is left out" : ""));
    }
    for (int i = 0; i < h->t->n_moves; i++) {
        const TraceLocalMove *k = &h->t->moves[i];
        const char *axes[TRACE_MAX_AXES];
        int n;
        if (!at(k->module, k->where, m, side) || !k->op || !strcmp(k->op, "identity")) continue;
        lookup_axes(h->t, or_empty(k->axes), true, axes, &n);
        if (!n) continue; /* over axes of one rank: the tensor as it is */
        bool claim = !strcmp(k->op, "claim");
        and_also(&w, arena_printf(h->a, claim ? "takes %s for what the line says" : "%s(%s) of %s",
                                  claim ? or_empty(k->value) : k->op, or_empty(k->axes),
                                  or_empty(k->value)));
    }
    return words_text(&w);
}
/* Gathered once more in the backward pass, where it was given back. */
static bool is_again(const Hooks *h, int at_collective) {
    const TraceCollective *k = &h->t->collectives[at_collective];
    for (int i = 0; i < at_collective; i++) {
        const TraceCollective *x = &h->t->collectives[i];
        if (x->pass == k->pass && x->value && k->value && !strcmp(x->value, k->value) && x->axes &&
            k->axes && !strcmp(x->axes, k->axes))
            return true;
    }
    return false;
}
/* The parameters that fully_shard gathers for a unit, in one collective for each set of axes. */
static const char *gathers_of(Hooks *h, const TraceModule *m) {
    Words w = {.a = h->a};
    for (int i = 0; i < h->t->n_collectives; i++) {
        const TraceCollective *k = &h->t->collectives[i];
        const TraceParam *p = lookup_param(h->t, or_empty(k->value));
        bool gather = k->pass == PHASE_PARAMETERS && !h->told[k->step] && p && p->module;
        bool root = !strcmp(m->module, TRACE_ROOT);
        if (!gather || is_again(h, i) || (root ? k->layer >= 0 : !inside(p->module, m->module)))
            continue;
        h->told[k->step] = true;
        and_also(&w, arena_printf(h->a, "%s(%s) of %s%s", or_empty(k->op), or_empty(k->axes),
                                  or_empty(k->value),
                                  k->n_with ? arena_printf(h->a, " and %d more", k->n_with) : ""));
    }
    return w.n ? words_text(&w) : "nothing moves";
}
static void module_rows(Hooks *h, const TraceModule *m) {
    static const struct {
        const char *side, *hook;
    } sides[] = {{"input", "before"}, {"body", "inside"}, {"output", "after"}};
    if (m->before && !strcmp(m->before, "fsdp")) {
        row(h, m, "before", m->before, gathers_of(h, m));
        row(h, m, "after", m->after, "gives back what was gathered, unless the plan keeps it");
        return;
    }
    for (int i = 0; i < 3; i++) {
        const char *by = i == 0   ? m->before
                         : i == 2 ? m->after
                                  : NULL,
                   *does = moves_of(h, m, sides[i].side);
        if (by || *does) row(h, m, sides[i].hook, by, *does ? does : "nothing moves");
    }
}
/* Moves of modules that no line speaks of. */
static void others(Hooks *h, const char *name) {
    for (int i = 0; i < h->t->n_collectives; i++) {
        const TraceCollective *k = &h->t->collectives[i];
        if (!k->module || !k->where || h->told[k->step] || (name && !inside(k->module, name)))
            continue;
        module_rows(h, &(TraceModule){.module = k->module});
    }
}
Table table_hooks(const Cli *c, const Trace *t, const char *name) {
    Table out = table_new(c->arena, "hook", columns, H_COLUMNS);
    int steps = 0;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step >= steps) steps = t->collectives[i].step + 1;
    Hooks h = {
        c, t, c->arena, fold_words(t, c->arena), &out, ARENA_ARRAY(c->arena, bool, steps + 1)};
    for (int i = 0; i < t->n_modules; i++)
        if (!name || inside(t->modules[i].module, name)) module_rows(&h, &t->modules[i]);
    others(&h, name);
    return out;
}
