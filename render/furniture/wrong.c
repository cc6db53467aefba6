/* Sentences and flags about wrong steps. See wrong.h. */
#include "render/furniture/wrong.h"
#include "base/text.h"
#include <limits.h>
#include <math.h>
#include <string.h>

/* One wrong step, and the words that tell whether two are alike. */
typedef struct {
    int step;
    const char *what, *value, *why;
    bool after;       /* the value is what a weight makes: "after wo" */
    const char *rule; /* of a label that is false: what is said and what is; NULL: no label is */
    const char *broken, *planted; /* of what is planted: the rule that it breaks; NULL: no rule
                                     says it; and what was planted */
    const char *file;             /* of the plan, with a line above 0 */
    int line;
    bool missing;        /* a step that is not done */
    const char *left_by; /* the module that leaves the value so; NULL: none */
    int maker;           /* its last step, which is to be mended; none: -1 */
} Found;

typedef struct {
    Arena *a;
    const Trace *t;
    int n, cap;
    Found *found;
} Finds;

bool wrong_skipped(const TraceCollective *c) { return c->skipped; }

const char *wrong_right_key(const char *planted) { return term_right_line(planted); }
const char *wrong_asked(Arena *a, const char *planted) {
    return arena_printf(a, wrong_right_key(planted) ? "the plan's %s" : "planted: %s", planted);
}

/* "dw2" of "grad.param.layers.0.feed_forward.w2.weight", "w2" of what becomes of it; "after wo" of
 * what a weight makes, as other figures have it; the leaf of any other name. */
static const char *short_value(Arena *a, const Trace *t, Subject s) {
    const char *name = words_updated(a, s.of), *dot = strrchr(name, '.');
    if (s.role == OF_ITSELF && !trace_param(t, name)) return words_value(a, t, s.of);
    const ValueName made = words_value_name(a, t, subject_name(a, s));
    if (made.gradient && made.after)
        return arena_printf(a, "dy %s", made.brief); /* of what w2 makes */
    bool weight = dot && !strcmp(dot, ".weight");
    const char *leaf = words_leaf(weight ? arena_strndup(a, name, (size_t)(dot - name)) : name);
    return arena_printf(a, "%s%s",
                        !subject_is_gradient(s) ? ""
                        : strlen(leaf) > 3      ? "d "
                                                : "d",
                        leaf);
}

/* Is that "after wo"? */
static bool is_after(Arena *a, const Trace *t, Subject s) {
    return s.role == OF_ITSELF && !trace_param(t, words_updated(a, s.of)) &&
           words_value_name(a, t, s.of).after;
}
/* The same of what the step itself makes: "wo". */
static const char *made_by(Arena *a, const Trace *t, Subject s) {
    return is_after(a, t, s) ? words_value_name(a, t, s.of).brief : short_value(a, t, s);
}

/* A value of the optimizer by what it is of: "d norm" of "optimizer.grad.model.norm.weight.sumsq",
 * "norm" of what becomes of the weight itself. What is said of it names the op. */
static const char *optimizer_value(Arena *a, const char *name) {
    static const char own[] = "optimizer.", weight[] = ".weight";
    Subject s = subject_of(strncmp(name, own, sizeof own - 1) ? name : name + sizeof own - 1);
    const char *end = s.of ? strstr(s.of, weight) : NULL;
    if (!end) return name;
    return arena_printf(a, "%s%s", subject_is_gradient(s) ? "d " : "",
                        words_leaf(arena_strndup(a, s.of, (size_t)(end - s.of))));
}

/* What becomes of the value if a collective does not happen. */
static const char *left_undone(Finds *f, const TraceCollective *c) {
    const char *axis = words_axis_list(f->a, f->t, c->axis);
    const CollWord *w = coll_word(c->op);
    if (w && w->undone) return w->undone;
    if (!c->reduce) return "every rank goes on with its own part";
    if (!strcmp(c->reduce, "max"))
        return arena_printf(f->a, "the largest over %s is never looked for", axis);
    return arena_printf(f->a, "the terms on the ranks of %s are never added", axis);
}

/* Steps that a picture has no place for say when they are done: "again in backward: AllGather". */
static const char *when(Finds *f, Phase pass, bool again, const char *what) {
    const char *time = pass == PHASE_OPTIMIZER ? "in the optimizer: "
                       : again                 ? "again in backward: "
                                               : "";
    return arena_printf(f->a, "%s%s", time, what);
}

/* What a step breaks, if the check knows more of it than what was planted; NULL: it does not. */
static const char *broken_rule(const char *wrong, const char *planted) {
    return wrong && !(planted && strstr(wrong, planted)) ? wrong : NULL;
}

static void coll_found(Finds *f, const TraceCollective *c) {
    const CollWord *w = coll_word(c->op);
    bool again = c->pass == PHASE_BACKWARD && !subject_is_gradient(c->subject);
    const char *name = when(f, c->pass, again,
                            arena_printf(f->a, "%s over %s", w ? w->name : c->op,
                                         words_axis_list(f->a, f->t, c->axis)));
    const char *why = c->wrong;
    if (c->skipped)
        why =
            arena_printf(f->a, "is missing (%s), so %s",
                         wrong_asked(f->a, c->planted ? c->planted : "dropped"), left_undone(f, c));
    else if (c->planted && c->wrong && strstr(c->wrong, c->planted))
        why =
            arena_printf(f->a, "is not what the layouts need (%s)", wrong_asked(f->a, c->planted));
    else if (c->planted && c->wrong)
        why = arena_printf(f->a, "is not what the layouts need (%s): %s",
                           wrong_asked(f->a, c->planted), c->wrong);
    else if (c->planted)
        why = arena_printf(f->a, "is not what it should be (%s)", wrong_asked(f->a, c->planted));
    else why = arena_printf(f->a, "is wrong: %s", c->wrong);
    *ARENA_PUSH(f->a, f->found, f->n, f->cap) =
        (Found){.maker = -1,
                .step = c->step,
                .what = name,
                .value = short_value(f->a, f->t, c->subject),
                .after = is_after(f->a, f->t, c->subject),
                .why = why,
                .missing = c->skipped,
                .broken = c->skipped ? NULL : broken_rule(c->wrong, c->planted),
                .planted = c->planted,
                .file = c->file,
                .line = c->line};
}

static const char *planted_words(Finds *f, const char *planted) {
    return arena_printf(f->a, "is not what it should be (%s)", wrong_asked(f->a, planted));
}

static const char *move_why(Finds *f, const TraceLocalMove *m) {
    if (!m->wrong) return planted_words(f, m->planted);
    if (!m->planted) return arena_printf(f->a, "does not hold: %s", m->wrong);
    return arena_printf(f->a, "is not what the layouts need (%s): %s",
                        wrong_asked(f->a, m->planted), m->wrong);
}

/* A parameter or input that is planted has no step: the first shown op that reads it speaks of it.
 */
static void source_found(Finds *f, const char *what, const char *name, const char *planted,
                         bool (*shows)(const void *, int), const void *of) {
    for (int i = 0; planted && i < f->t->n_computes; i++) {
        const TraceCompute *c = &f->t->computes[i];
        bool reads = false;
        for (int k = 0; k < c->n_inputs; k++) reads |= !strcmp(c->inputs[k], name);
        if (!reads || !shows(of, c->step)) continue;
        *ARENA_PUSH(f->a, f->found, f->n, f->cap) =
            (Found){.maker = -1,
                    .step = c->step,
                    .what = what,
                    .value = short_value(f->a, f->t, (Subject){OF_ITSELF, name}),
                    .after = is_after(f->a, f->t, (Subject){OF_ITSELF, name}),
                    .why = planted_words(f, planted)};
        return;
    }
}

static void read_sources(Finds *f, bool (*shows)(const void *, int), const void *of) {
    const Trace *t = f->t;
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *p = &t->params[i];
        source_found(f, "shard", p->plan_name ? p->plan_name : p->compute.name, p->planted, shows,
                     of);
    }
    for (int i = 0; i < t->n_values; i++)
        source_found(f, "data", t->values[i].shape.name, t->values[i].planted, shows, of);
}

/* The last step that the module computes; -1: none. */
static int last_step(const Trace *t, const char *module) {
    int last = -1;
    for (int i = 0; module && i < t->n_computes; i++)
        if (text_same(t->computes[i].module, module) && t->computes[i].step > last)
            last = t->computes[i].step;
    return last;
}
static void read_trace(Finds *f, bool (*shows)(const void *, int), const void *of) {
    const Trace *t = f->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if ((c->wrong || c->planted) && shows(of, c->step)) coll_found(f, c);
    }
    for (int i = 0; i < t->n_moves; i++) {
        const TraceLocalMove *m = &t->moves[i];
        if (!m->wrong && !m->planted) continue;
        int maker = last_step(t, m->left_by);
        if (!shows(of, m->step) && !(maker >= 0 && shows(of, maker))) continue;
        *ARENA_PUSH(f->a, f->found, f->n, f->cap) =
            (Found){.step = m->step,
                    .what = words_declares(m) ? "declaration" : m->op,
                    .value = short_value(f->a, f->t, m->subject),
                    .after = is_after(f->a, f->t, m->subject),
                    .why = move_why(f, m),
                    .rule = m->planted ? NULL : m->wrong,
                    .broken = m->planted ? broken_rule(m->wrong, m->planted) : NULL,
                    .planted = m->planted,
                    .left_by = m->left_by,
                    .maker = maker,
                    .file = m->file,
                    .line = m->line};
    }
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        bool again = f->n && f->found[f->n - 1].step == c->step; /* one record per rank class */
        bool of_input = words_of_label(c->wrong);
        if ((!c->wrong && !c->planted) || again || !shows(of, c->step)) continue;
        *ARENA_PUSH(f->a, f->found, f->n, f->cap) =
            (Found){.maker = -1,
                    .step = c->step,
                    .what = when(f, c->pass, c->recompute, c->label ? c->label : c->op),
                    .value = c->pass == PHASE_OPTIMIZER ? optimizer_value(f->a, c->output)
                                                        : made_by(f->a, f->t, c->makes),
                    .why = c->wrong ? arena_printf(f->a, "is not allowed: %s", c->wrong)
                                    : planted_words(f, c->planted),
                    .rule = of_input ? c->wrong : NULL,
                    .broken = of_input ? NULL : c->wrong};
    }
    read_sources(f, shows, of);
}

static bool alike(const Found *x, const Found *y) {
    return !strcmp(x->what, y->what) && !strcmp(x->why, y->why);
}

/* "dw2, dw3, dw1 and 4 more" */
static const char *names(Finds *f, int first, int *step, int *n) {
    Str s = str_new(f->a);
    int said = 0, more = 0;
    for (int i = first; i < f->n; i++) {
        if (!alike(&f->found[first], &f->found[i])) continue;
        step[(*n)++] = f->found[i].step;
        if (said < 6) str_addf(&s, "%s%s", said++ ? ", " : "", f->found[i].value);
        else more++;
    }
    if (more) str_addf(&s, " and %d more", more);
    return s.s;
}

static bool any_step(const void *of, int step) {
    (void)of, (void)step;
    return true;
}

/* "AllReduce over tp of q", "AllReduce over tp after wo" */
static const char *done_to(Arena *a, const Found *x, const char *values) {
    return arena_printf(a, "%s%s %s", words_capital(a, x->what), x->after ? "" : " of", values);
}

/* "The plan says that the input of wo lies as [B, S/tp, D], it lies as [B, S, D]"; "w2 lies as ..
 * but is taken for .."; "After wo: a sum over tp is pending, .."; "AllReduce over tp after wo: the
 * reduction is done twice"; of what is missing the sentence without what comes of it. */
static const char *head_of(Finds *f, const Found *x, const char *values, const char *text) {
    if (words_of_label(x->rule)) return words_symbol(f->a, words_capital(f->a, x->rule));
    bool verb = x->rule && !strncmp(x->rule, "lies ", strlen("lies ")) && !strchr(values, ',');
    if (x->rule)
        return words_symbol(f->a, arena_printf(f->a, "%s%s %s",
                                               x->after ? words_capital(f->a, values) : values,
                                               verb ? "" : ":", x->rule));
    if (x->broken)
        return words_symbol(f->a,
                            arena_printf(f->a, "%s: %s", done_to(f->a, x, values), x->broken));
    if (x->missing)
        return words_symbol(f->a, arena_printf(f->a, "%s is missing", done_to(f->a, x, values)));
    return text;
}

/* "; w2 is in line 17": where the module that left the value so has its line. */
static const char *maker_line(const Finds *f, const Found *x) {
    for (int i = 0; i < f->t->n_params; i++) {
        const TraceParam *p = &f->t->params[i];
        if (text_same(p->module, x->left_by) && p->line > 0)
            return arena_printf(f->a, "; %s is in line %d", words_leaf(x->left_by), p->line);
    }
    return "";
}

/* What is to be said under the head: the step, and the line of the plan. NULL: the sentence itself,
 * which says more. */
static const char *where_of(Finds *f, const Found *x, const WrongNote *note, const char *values) {
    const char *who = x->rule ? arena_printf(f->a, "%s, step", done_to(f->a, x, values)) : "Step",
               *at = x->line > 0 ? arena_printf(f->a, ", line %d of %s", x->line,
                                                x->file ? words_file(x->file) : "the plan")
                                 : "",
               *left = x->left_by ? maker_line(f, x) : "",
               *planted = x->broken && x->planted
                              ? arena_printf(f->a, " (%s)", wrong_asked(f->a, x->planted))
                              : "";
    if (x->missing) return NULL;
    return words_symbol(f->a, arena_printf(f->a, "%s %d%s%s%s%s", who, x->step,
                                           note->n > 1 ? " first" : "", at, left, planted));
}

/* The mistake that comes first in the program is the title. */
static const char *title_of(Arena *a, const WrongList *l) {
    const WrongNote *first = l->note;
    for (int i = 1; i < l->n; i++)
        if (l->note[i].step[0] < first->step[0]) first = &l->note[i];
    if (l->n < 2) return l->n ? first->head : NULL;
    return arena_printf(a, "%s, and %d more mistake%s", first->head, l->n - 1,
                        l->n == 2 ? "" : "s");
}

const WrongList *wrong_find(Arena *a, const Trace *t, bool (*shows)(const void *of, int step),
                            const void *of) {
    Finds f = {.a = a, .t = t};
    WrongList *l = ARENA_NEW(a, WrongList);
    read_trace(&f, shows ? shows : any_step, of);
    WrongNote *all = ARENA_ARRAY(a, WrongNote, f.n + 1);
    l->note = all;
    for (int i = 0; i < f.n; i++) {
        bool said = false;
        for (int k = 0; k < i && !said; k++) said = alike(&f.found[k], &f.found[i]);
        if (said) continue;
        int like = 1; /* and room for the step of its maker */
        for (int k = i; k < f.n; k++) like += alike(&f.found[i], &f.found[k]);
        int *step = ARENA_ARRAY(a, int, like);
        WrongNote *note = &all[l->n++];
        const char *values = names(&f, i, step, &note->n);
        note->step = step;
        note->text = words_symbol(
            a, arena_printf(a, "%s %s", done_to(a, &f.found[i], values), f.found[i].why));
        note->head = head_of(&f, &f.found[i], values, note->text);
        note->where = where_of(&f, &f.found[i], note, values);
        if (f.found[i].maker >= 0) step[note->n++] = f.found[i].maker;
    }
    l->title = title_of(a, l);
    return l;
}

const char *wrong_title(const WrongList *l) { return l ? l->title : NULL; }

int wrong_number(const WrongList *l, int step) {
    for (int i = 0; l && i < l->n; i++)
        for (int k = 0; k < l->note[i].n; k++)
            if (l->note[i].step[k] == step) return i + 1;
    return 0;
}

/* ---- drawing ---- */

enum { LINES = 4, PITCH = 17, INDENT = 22, SENTENCES = 24, MOST_NUMBER = 99 };
static const char notes_id[] = "wrong-notes"; /* the group of the sentences: no flag */

/* Under a title that is the rule itself only where it is broken. */
static const char *said_of(const Scene *s, const WrongList *l, const WrongNote *n) {
    bool told = l->n == 1 && n->where && s->title && !strcmp(s->title, n->head);
    return told ? n->where : n->text;
}
static int wrap_note(Scene *s, const char *text, double w, int max, const char **line) {
    return scene_wrap(s, text, (TextColumn){w - INDENT, 12.5, SEMIBOLD, max, NULL}, line);
}

/* Lines that note i may have, so that `max` suffices for all. */
static int lines_of(const WrongList *l, int i, int max) {
    if (max <= 0) return i < SENTENCES ? LINES : 0;
    int each = max / l->n;
    return each < 1 ? (i < max) : each > LINES ? LINES : each;
}

double wrong_height(Scene *s, const WrongList *l, double w, int max) {
    const char *line[LINES];
    double h = 0;
    for (int i = 0; l && i < l->n; i++)
        if (lines_of(l, i, max) > 0)
            h += PITCH * wrap_note(s, said_of(s, l, &l->note[i]), w, lines_of(l, i, max), line);
    return h;
}

/* A red disc with a white sign, wider for a number of two digits; half of its width. */
static double disc(Scene *s, double x, double y, const char *sign) {
    const double r = 7.5, half = sign[1] ? scene_width(s, 12, BOLD, sign) / 2 + 3 : r;
    if (sign[1])
        scene_rect(s, (Area){x - half, y - r, 2 * half, 2 * r}, r,
                   (Look){ROLE_FAIL, ROLE_PAPER, 1});
    else scene_circle(s, x, y, r, (Look){ROLE_FAIL, ROLE_PAPER, 1});
    scene_text(s, x, y + 4.3, (TextLook){ALIGN_MIDDLE, 12, BOLD, ROLE_PAPER}, sign);
    return half;
}

static const char *sign_of(Scene *s, const WrongList *l, int number) {
    return l->n > 1 && number <= MOST_NUMBER ? arena_printf(s->arena, "%d", number) : "!";
}

static double draw_notes(Scene *s, const WrongList *l, Band at, int max, const char *what) {
    const char *line[LINES];
    double x = at.x, w = at.w, y = at.y;
    if (!l || !l->n) return y;
    scene_begin(s, "wrong", notes_id, what);
    for (int i = 0; i < l->n; i++) {
        int most = lines_of(l, i, max),
            n = most > 0 ? wrap_note(s, said_of(s, l, &l->note[i]), w, most, line) : 0;
        if (n) disc(s, x + 8, y + 7.7, sign_of(s, l, i + 1));
        for (int k = 0; k < n; k++, y += PITCH)
            scene_text(s, x + INDENT, y + 12, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_FAIL},
                       line[k]);
    }
    scene_end(s);
    return y;
}
double wrong_notes(Scene *s, const WrongList *l, double x, double w, double y, int max) {
    return draw_notes(s, l, (Band){x, w, y}, max,
                      "what the check found: the discs stand at these steps");
}
double wrong_banner(Scene *s, const ViewCall *c, Band at) {
    enum { MOST_LINES = 2 };
    const WrongList *l = wrong_find(c->arena, c->t, NULL, NULL);
    if (!l->n) return at.y;
    at.y -= 6; /* close to the lines above, which are of the plan too */
    return draw_notes(s, l, at, MOST_LINES, "what is wrong with the plan, wherever it stands") + 8;
}

/* Has the page a flag, at a step, a weight or a row? */
static bool shows_mistake(const Scene *s) {
    for (int i = 0; i < s->n_groups; i++) {
        const Group *g = &s->groups[i];
        if (!strcmp(g->what, "wrong") && g->id && strcmp(g->id, notes_id) != 0) return true;
    }
    return false;
}
/* "on page 2", "on pages 1 and 3", "on pages 1, 2, 3 and more": of those that show one; NULL: none.
 */
static const char *pages_words(Arena *a, Scene *const *page, int n) {
    enum { NAMED = 3 };
    int at[NAMED + 1], found = 0;
    for (int i = 0; i < n && found <= NAMED; i++)
        if (shows_mistake(page[i])) at[found++] = i + 1;
    if (found < 2) return found ? arena_printf(a, "on page %d", at[0]) : NULL;
    Str s = str_new(a);
    bool more = found > NAMED;
    int named = more ? NAMED : found;
    for (int i = 0; i < named; i++)
        str_addf(&s, "%s%d", !i ? "on pages " : i + 1 < named || more ? ", " : " and ", at[i]);
    return more ? arena_printf(a, "%s and more", s.s) : s.s;
}
const char **wrong_elsewhere(const ViewCall *c, Scene *const *page, int n) {
    Arena *a = c->arena;
    const WrongList *l = wrong_find(a, c->t, NULL, NULL);
    const char **says = l->n ? ARENA_ARRAY(a, const char *, n) : NULL;
    const char *where = l->n ? pages_words(a, page, n) : NULL, *said;
    int first = INT_MAX;
    for (int i = 0; i < l->n; i++)
        if (l->note[i].step[0] < first) first = l->note[i].step[0];
    if (where) said = arena_printf(a, "%s %s", l->n > 1 ? "mistakes are" : "the mistake is", where);
    else if (l->n > 1)
        said = arena_printf(a, "%d mistakes, first step %d, are not drawn here", l->n, first);
    else said = arena_printf(a, "the mistake, step %d, is not drawn here", first);
    for (int i = 0; says && i < n; i++) says[i] = shows_mistake(page[i]) ? NULL : said;
    return says;
}

void wrong_border(Mark *border, unsigned *legend) {
    border->stroke = ROLE_FAIL;
    border->line = 3;
    *legend |= 1u << LEGEND_WRONG;
}
void wrong_flag(Scene *s, const WrongList *l, int step, double x, double y) {
    int number = wrong_number(l, step);
    if (!number) return;
    scene_begin(s, "wrong", arena_printf(s->arena, "wrong-%d", step), l->note[number - 1].text);
    double half = 1.5 + disc(s, x, y, sign_of(s, l, number));
    scene_frame(s, x - half, y - 9, 2 * half,
                18); /* it overlaps the border of the box that it is about */
    scene_end(s);
}

void wrong_text(Str *out, const WrongList *l, int w) {
    for (int i = 0; l && i < l->n && i < SENTENCES; i++)
        words_paragraph(out, "",
                        l->n > 1 ? arena_printf(out->a, "✗ %d. %s", i + 1, l->note[i].text)
                                 : arena_printf(out->a, "✗ %s", l->note[i].text),
                        w);
    if (l && l->n > SENTENCES)
        words_paragraph(out, "", arena_printf(out->a, "✗ and %d more", l->n - SENTENCES), w);
}
