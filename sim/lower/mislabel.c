/* Labels that lie (E0402): what a line says of a module's input or output, and how the value really
 * lies. One missing idea mislabels many modules; they are one finding, told at the end of lowering,
 * with who leaves the value so and what would mend it. Refuses to decide whether a label holds:
 * lowering did. */
#include "lower/mislabel.h"
#include <string.h>

void mislabel_add(Mislabels *all, Arena *a, Mislabel m) {
    *ARENA_PUSH(a, all->m, all->n, all->cap) = m;
}
const char *place_word(const Program *p, int tensor, const Layout *L, int axis) {
    int d = layout_where(L, axis);
    return d >= 0
               ? arena_printf(p->arena, "shard(%d)", program_stored_dim(&p->graph->t[tensor], L, d))
           : L->type[axis] == TY_P ? "partial"
                                   : "replicate";
}
/* The one placement over the axes in which the two layouts differ, of `of`; NULL: there is none. */
static const char *one_place(const Program *p, const Mislabel *m, const Layout *of) {
    const char *word = NULL;
    for (int x = 0; x < p->mesh->naxes; x++) {
        const char *a = place_word(p, m->tensor, &m->want, x),
                   *b = place_word(p, m->tensor, &m->have, x);
        if (p->mesh->axis[x].size < 2 || !strcmp(a, b)) continue;
        const char *one = place_word(p, m->tensor, of, x);
        if (word && strcmp(word, one) != 0) return NULL;
        word = one;
    }
    return word;
}
/* The module with a line that leaves the value so: the one that makes it, or for what enters the
 * first layer the one whose result leaves the last. -1: none. */
static int maker(const Program *p, const Mislabel *m) {
    int input = -1;
    if (p->graph->t[m->tensor].kind == KIND_INPUT) return assign_stream_module(p->assign);
    for (int k = 0; k < p->graph->nm; k++)
        if (p->graph->module[k].output == m->tensor && p->assign->use[k].style) input = k;
    return input;
}
static bool same_place(const Mislabel *a, const Mislabel *b) {
    return a->input == b->input && !a->instead == !b->instead && a->loc.line == b->loc.line &&
           a->loc.col == b->loc.col && a->loc.file && b->loc.file &&
           !strcmp(a->loc.file, b->loc.file) && !strcmp(a->want_text, b->want_text) &&
           !strcmp(a->have_text, b->have_text);
}
/* "layers.0.attention.wq, wk, wv and 3 more": those beside the first are named, the others counted.
 */
static const char *modules_text(const Program *p, const Mislabels *all, int first) {
    enum { NAMED = 4 };
    Str s = str_new(p->arena);
    const char *path = p->graph->module[all->m[first].module].path, *dot = strrchr(path, '.');
    size_t parent = dot ? (size_t)(dot - path) + 1 : 0;
    int named = 0, more = 0;
    for (int i = first; i < all->n; i++) {
        if (!same_place(&all->m[first], &all->m[i])) continue;
        const char *other = p->graph->module[all->m[i].module].path;
        bool beside = !strncmp(other, path, parent) && !strchr(other + parent, '.');
        if (i > first && (!beside || !parent || named == NAMED)) more++;
        else str_addf(&s, "%s%s", named++ ? ", " : "", i > first ? other + parent : other);
    }
    if (more) str_addf(&s, " and %d more", more);
    return s.s;
}
static const PlanLine *line_of(const Program *p, int module) {
    const ModuleUse *u = module >= 0 ? &p->assign->use[module] : NULL;
    return u && u->style && u->line >= 0 ? &p->assign->plan->lines[u->line] : NULL;
}
static const char *hint_of(const Program *p, const Mislabel *m) {
    const char *want = one_place(p, m, &m->want), *have = one_place(p, m, &m->have);
    int by = maker(p, m);
    const PlanLine *line = line_of(p, by);
    const char *see = "`trust: declared` shows what the mistake does";
    if (!m->own && line && by != m->module && want && strcmp(want, "partial") != 0)
        return arena_printf(p->arena,
                            line->style.output.set ? "let `output` say `%s` in the line `%s`; %s"
                                                   : "add `output: %s` to the line `%s`; %s",
                            want, line->pattern, see);
    if (m->input && want && have && strcmp(want, "partial") != 0)
        return arena_printf(p->arena,
                            "say how it lies and where it goes: `input: %s, desired_input: %s`; %s",
                            have, want, see);
    return arena_printf(p->arena, "declare how it really lies, or move it before; %s", see);
}
static const char *left_by(const Program *p, const Mislabel *m) {
    int by = maker(p, m);
    const PlanLine *line = line_of(p, by);
    if (!line || by == m->module) return "";
    bool enters = p->graph->t[m->tensor].kind == KIND_INPUT;
    return arena_printf(p->arena, ", as %s%s (%s %d) leaves it", enters ? "in the last layer " : "",
                        p->graph->module[by].path, line->from_recipe ? "the recipe's line" : "line",
                        p->assign->use[by].loc.line);
}
/* The enclosing module that prepares the value for this one, or -1. */
static int preparer(const Program *p, const Mislabel *m) {
    const GModule *all = p->graph->module;
    for (int up = all[m->module].parent; m->input && up >= 0; up = all[up].parent)
        for (int i = 0; p->assign->use[up].prepares && i < all[up].n_input; i++)
            if (all[up].input[i] == m->tensor) return up;
    return -1;
}
/* PyTorch asks the DTensor, so nothing is wrong; the line says what is not so. */
static void note_dtensor(const Program *p, const Mislabels *all, int i, Diags *d) {
    const Mislabel *m = &all->m[i];
    const char *have = one_place(p, m, &m->have), *key = m->input ? "input" : "output";
    int by = preparer(p, m);
    const char *who = by < 0 ? left_by(p, m)
                             : arena_printf(p->arena, ", as %s (line %d) hands it in",
                                            p->graph->module[by].path, p->assign->use[by].loc.line);
    diag_note(d, "N0013", m->loc,
              have ? arena_printf(p->arena, "`%s: %s` says how it lies", key, have) : NULL,
              "the %s of %s is said to lie as %s, but it is a DTensor and lies as %s%s: PyTorch "
              "goes by how it lies, %s",
              key, modules_text(p, all, i), m->want_text, m->have_text, who, m->instead);
}
/* "wq, wk, wv" of layers.0.attention: modules of which the same is said at one step; without their
 * layer, for all layers that are alike are told as one. */
static const char *leaves_text(const Program *p, const Mislabels *all, const Mislabel *m) {
    Str s = str_new(p->arena);
    for (int i = 0; i < all->n; i++) {
        const Mislabel *k = &all->m[i];
        const char *path = p->graph->module[k->module].path, *dot = strrchr(path, '.');
        if (k->step == m->step && !k->instead && same_place(k, m))
            str_addf(&s, "%s%s", s.n ? ", " : "", dot ? dot + 1 : path);
    }
    return s.s;
}
/* Pictures show the mistake where it happens, with both layouts. */
static void mark_step(Program *p, const Mislabels *all, const Mislabel *m) {
    if (m->step < 0 || m->step >= p->ns || p->step[m->step].wrong) return;
    p->step[m->step].wrong = arena_printf(
        p->arena, "the plan says that the %s of %s lies as %s, it lies as %s",
        m->input ? "input" : "result", leaves_text(p, all, m), m->want_text, m->have_text);
}
void mislabels_report(Program *p, const Mislabels *all, Diags *d) {
    for (int i = 0; i < all->n; i++) {
        const Mislabel *m = &all->m[i];
        bool told = false;
        if (!m->instead) mark_step(p, all, m);
        for (int k = 0; k < i && !told; k++) told = same_place(&all->m[k], m);
        if (!told && m->instead) note_dtensor(p, all, i, d);
        if (told || m->instead) continue;
        diag_error(d, "E0402", m->loc, hint_of(p, m),
                   "the %s of %s is said to lie as %s, but it lies as %s%s",
                   m->input ? "input" : "output", modules_text(p, all, i), m->want_text,
                   m->have_text, left_by(p, m));
    }
}
