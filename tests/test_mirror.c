/* Tests of "backward beside forward" against the trace records: what an arrow brings a box is read
 * by it, and a label speaks of what its edge carries, each value in its own shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/graph/block_read.h"
#include "render/graph/unlike.h"
#include "render/mirror/mirror.h"
#include "render/mirror/mirror_draw.h"
#include "render/render.h"
#include "support/ground.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The trace of a plan; "plan.yaml|tp: 2|tp: 1": of it with other words there. */
static const Trace *plan_trace(Ground *g, const char *file) {
    const char *old = strchr(file, '|');
    if (!old) return ground_trace(g, file, "", false);
    const char *new = strchr(old + 1, '|');
    size_t n;
    const char *text = file_read(g->a, g->d, arena_strndup(g->a, file, (size_t)(old - file)),
                                 1 << 20, (Loc){0}, &n);
    assert_true(text && new);
    old = arena_strndup(g->a, old + 1, (size_t)(new - old - 1));
    text = arena_strndup(g->a, text, n);
    const char *at = strstr(text, old);
    assert_non_null(at);
    PlanRun r = plan_run_with(
        g->a, file,
        arena_printf(g->a, "%.*s%s%s", (int)(at - text), text, new + 1, at + strlen(old)),
        &(PipelineOptions){0});
    assert_non_null(r.t);
    return r.t;
}
static const Mirror *mirror_of(Ground *g, const Trace *t) {
    RenderOptions *o = ARENA_NEW(g->a, RenderOptions);
    *o = (RenderOptions){.view = "block", .rank = -1, .layer = -1};
    ViewCall *call = ARENA_NEW(g->a, ViewCall);
    *call = (ViewCall){.t = t, .d = g->d, .o = o, .arena = g->a};
    const Mirror *m = mirror_new(block_read_trace(call));
    assert_non_null(m);
    return m;
}

static const char *const file[] = {
    "plans/18-llama3-8b-backward.yaml", "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
    "plans/30-mixtral-8x7b-ep-dp-cp.yaml", "plans/34-llama4-scout-torchtitan.yaml",
    "plans/41-llama3-8b-ring4-zigzag.yaml", "plans/42-llama3-8b-usp.yaml",
    "plans/54-deepseek-v3-latent-ring4.yaml", "plans/56-gpt-oss-20b-tp2-ep2.yaml",
    "plans/38-llama4-scout-reorderer.yaml", "plans/33-qwen3-30b-a3b-ep.yaml",
    /* axes of one rank, whose moves do nothing */
    "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml|tp: 2|tp: 1",
    "plans/30-mixtral-8x7b-ep-dp-cp.yaml|tp: 2|tp: 1", "plans/42-llama3-8b-usp.yaml|up: 2|up: 1",
    "plans/41-llama3-8b-ring4-zigzag.yaml|cp: 4|cp: 1"};
enum { N_FILES = sizeof file / sizeof *file };

/* Does row r bring up that gradient of a lower row: makes it, or, no box, hands it on? */
static bool brings(const MirrorStrip *s, int r, const char *grad, int step) {
    const char *of = subject_of(grad).of;
    bool on = false;
    for (int k = 0; k < s->row[r].n_out; k++) on |= of && !strcmp(s->row[r].out[k], of);
    for (int q = r; q < s->n && (q == r || (on && s->row[r].kind != ROW_OPS)); q++)
        if (mirror_makes_grad(&s->row[q], grad, step)) return true;
    return false;
}
/* Does a step of the box, no sum behind it, read what row `from` brings? */
static bool box_reads(const MirrorStrip *s, int r, int from) {
    const MirrorRow *row = &s->row[r];
    for (int i = 0; i < row->n_back + row->n_grad; i++) {
        const TraceCompute *c = i < row->n_back ? row->back[i].f : row->grad[i - row->n_back].made;
        bool sum = true;
        for (int k = 0; k < c->n_inputs; k++) sum &= !strcmp(c->inputs[k], c->output);
        for (int k = 0; k < c->n_inputs && !sum && c->input_step; k++)
            if (brings(s, from, c->inputs[k], c->input_step[k])) return true;
    }
    return false;
}
/* A straight arrow leads into a box that reads what it brings: what is only added to what the box
 * makes comes to a sum above it. */
static void terms_are_added_behind(void **state) {
    Ground *g = *state;
    int held = 0, sums = 0;
    for (int i = 0; i < N_FILES; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, file[i]));
        for (int k = 0; k < m->n; k++) {
            const MirrorStrip *s = &m->strip[k];
            for (int r = 0; r + 1 < s->n && !s->plain; r++) {
                const MirrorRow *row = &s->row[r];
                sums += mirror_sums(s, r);
                if (row->kind != ROW_OPS || row->fed[1] == FED_UNKNOWN || row->fed[1] == FED_NOT)
                    continue;
                int next = r + 1;
                while (next < s->n && !s->row[next].acts) next++;
                held++;
                if (next < s->n && !box_reads(s, r, next))
                    fail_msg("%s: nothing that comes to row %d of %s is read by its box", file[i],
                             r, s->strip->title);
            }
        }
    }
    assert_true(held > 50 && sums > 5);
}

/* The letters of a shape, in order of the alphabet: "B H d" of [B, H*d]. */
static const char *letters(Arena *a, const char *shape) {
    const char *word[32], *in = "BCDEFGHIKLMNOPRSTVWXbcdefhiklnmoprstuvwxyz_0123456789";
    int n = 0;
    for (size_t k; *shape; shape += k + !k) {
        if (!(k = strspn(shape, in)) || n == 32) continue;
        int at = n++;
        const char *w = arena_strndup(a, shape, k);
        for (; at > 0 && strcmp(word[at - 1], w) > 0; at--) word[at] = word[at - 1];
        word[at] = w;
    }
    Str s = str_new(a);
    for (int i = 0; i < n; i++) str_addf(&s, "%s ", word[i]);
    return s.n ? s.s : "";
}

/* Every value of a label stands in the line of its own layout: those that lie alike in one, and no
 * other with them, though its sizes be the same. */
static void a_line_is_one_layout(void **state) {
    Ground *g = *state;
    int several = 0;
    for (int i = 0; i < N_FILES; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, file[i]));
        MirrorPen pen = {.c = ARENA_NEW(g->a, ViewCall), .m = m, .s = NULL};
        *(ViewCall *)(uintptr_t)pen.c = (ViewCall){.t = m->g->t, .d = g->d, .arena = g->a};
        for (int k = 0; k < m->n; k++)
            for (int r = -1; r < m->strip[k].n; r++)
                for (int back = 0; back < 2; back++) {
                    const MirrorStrip *s = &m->strip[k];
                    const TraceValue *v[MIRROR_FLOW];
                    const MirrorLabel l = mirror_label(&pen, s, r, back);
                    const int n = mirror_flow(m, s, r, back, v, MIRROR_FLOW);
                    for (int x = 0; x < n; x++)
                        for (int y = 0; y < l.n; y++) {
                            const char *is =
                                arena_printf(g->a, "%s, step %d", v[x]->shape.name, v[x]->step);
                            if (!strstr(l.tip[y], is) || !v[x]->shape.nd) continue;
                            several += l.n > 1;
                            const char *shape = strchr(l.line[y], '[');
                            if (!shape || strcmp(letters(g->a, shape),
                                                 letters(g->a, v[x]->shape.symbolic)) != 0)
                                fail_msg("%s: %s is %s, in the line '%s'", file[i], is,
                                         v[x]->shape.symbolic, l.line[y]);
                        }
                }
    }
    assert_true(several > 20);
}

/* The edge into a collective is labelled with what this takes, where no line parts from it. */
static void a_collective_takes_its_label(void **state) {
    Ground *g = *state;
    int held = 0;
    for (int i = 0; i < N_FILES; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, file[i]));
        MirrorPen pen = {.c = ARENA_NEW(g->a, ViewCall), .m = m, .s = NULL};
        *(ViewCall *)(uintptr_t)pen.c = (ViewCall){.t = m->g->t, .d = g->d, .arena = g->a};
        for (int k = 0; k < m->n; k++)
            for (int r = 0; r + 1 < m->strip[k].n; r++) {
                const MirrorStrip *s = &m->strip[k];
                const MirrorRow *row = &s->row[r];
                if (s->plain || !row->n_conj || mirror_parts(s, r + 1, true) ||
                    row->fed[1] == FED_NOT || !s->row[r + 1].acts || mirror_breaks(s, r))
                    continue;
                int takes = 0, told = 0;
                const MirrorLabel l = mirror_label(&pen, s, r, true);
                for (int q = 0; q < row->n_conj + row->n_back_move; q++) {
                    const int move = q - row->n_conj;
                    const char *is =
                        move < 0 ? arena_printf(g->a, "%s, step %d", row->conj[q]->value,
                                                row->conj[q]->value_step)
                                 : arena_printf(g->a, "%s, step %d", row->back_move[move]->value,
                                                row->back_move[move]->value_step);
                    for (int y = 0; y < l.n; y++) takes += strstr(l.tip[y], is) != NULL;
                }
                for (int y = 0; y < l.n; y++)
                    for (const char *at = l.tip[y]; at; at = strchr(at + 1, '\n')) told++;
                held += takes;
                if (takes && told != takes)
                    fail_msg("%s: %s, row %d: %d of %d values are for the collective", file[i],
                             s->strip->title, r, takes, told);
            }
    }
    assert_true(held > 10);
}

/* A dot from which a line parts stands clear of the head of the arrow that goes on, and what is
 * told beside the edge is told before it: behind it not all of that flows. */
static void dots_stand_behind_labels(void **state) {
    Ground *g = *state;
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    int dots = 0;
    for (int i = 0; i < N_FILES; i++)
        for (int k = 0; k < 4; k++) {
            const Trace *t = plan_trace(g, file[i]);
            RenderOptions o = {.view = "block", .rank = -1, .layer = -1, .preset = preset[k]};
            Scene *page[VIEW_MAX_PAGES];
            const int n = render_pages(t, g->d, &o, g->a, page);
            for (int q = 0; q < n; q++)
                for (int d = 0; d < page[q]->n_marks; d++) {
                    const Scene *s = page[q];
                    const Mark *dot = &s->marks[d];
                    if (dot->kind != MARK_CIRCLE || dot->r > 2.7 || dot->group < 0 ||
                        strcmp(s->groups[dot->group].what, "edge"))
                        continue;
                    double near = 1e9, tip = 0;
                    for (int a = 0; a < s->n_arrows; a++) {
                        const Pt p = s->arrows[a].tip;
                        if (fabs(p.x - dot->x) > 0.5 || fabs(p.y - dot->y) > near) continue;
                        near = fabs(p.y - dot->y), tip = p.y;
                    }
                    dots++;
                    if (near < 8 + dot->r + 1)
                        fail_msg("%s, %s: an arrow ends %g from a dot", file[i], preset[k], near);
                    for (int l = 0; l < s->n_marks && near < 40; l++) {
                        const Mark *x = &s->marks[l];
                        if (x->kind != MARK_TEXT || x->group < 0 ||
                            strcmp(s->groups[x->group].what, "label") ||
                            fabs(fabs(x->x - dot->x) - MIRROR_LABEL) > 0.5)
                            continue;
                        if ((x->y - 4.3 - dot->y) * (x->y - 4.3 - tip) < 0)
                            fail_msg("%s, %s: '%s' stands behind a dot", file[i], preset[k],
                                     x->run[0].s);
                    }
                }
        }
    assert_true(dots > 20);
}

/* Of a ring of four ranks beside one of two, the step after the last hop is no other step, and the
 * hops that the smaller has not are: steps are known by the results they make, the last by being
 * the last. */
static void the_last_hop_is_the_last(void **state) {
    Ground *g = *state;
    const Trace *t[2] = {plan_trace(g, "plans/41-llama3-8b-ring4-zigzag.yaml"),
                         plan_trace(g, "plans/42-llama3-8b-usp.yaml")};
    static const struct {
        const char *label, *output;
        bool unlike[2]; /* in the ring of four, in that of two */
    } row[] = {{"without lse", "grad.layers.0.attn_merge.3", {false, false}},
               {"without lse", "grad.layers.0.attn_merge.1", {false, false}},
               {"without lse", "layers.0.attn_context", {false, false}},
               {"merge", "layers.0.attn_merge.1", {false, false}},
               {"merge", "layers.0.attn_merge.2", {true, false}},
               {"merge", "layers.0.attn_merge.3", {false, false}}};
    int held = 0;
    for (int k = 0; k < 2; k++) {
        ViewCall far = {.t = t[1 - k], .d = g->d, .arena = g->a},
                 call = {.t = t[k], .d = g->d, .arena = g->a, .peer = &far};
        for (int i = 0; i < t[k]->n_computes; i++)
            for (size_t q = 0; q < sizeof row / sizeof *row; q++) {
                const TraceCompute *c = &t[k]->computes[i];
                if (strcmp(c->output, row[q].output) || strcmp(c->label, row[q].label)) continue;
                held++;
                if ((unlike_compute(&call, 0, c) != ALIKE) != row[q].unlike[k])
                    fail_msg("plan %d: step %d (%s makes %s)", k, c->step, c->label, c->output);
            }
    }
    assert_true(held == 8);
}

/* What tells two plans apart stands over the figure of both, as whoever asks says it; and slides,
 * which have room for one figure, stand under each other with letters of their size. */
static void two_plans_say_what_differs(void **state) {
    Ground *g = *state;
    static const char *const preset[] = {"column", "slide", "a4"};
    const char *says = "7 differences. B against A, of a rank: less sent", *report;
    for (int k = 0; k < 3; k++) {
        RenderOptions o = {.view = "block",
                           .rank = -1,
                           .layer = -1,
                           .preset = preset[k],
                           .with = plan_trace(g, "plans/42-llama3-8b-usp.yaml"),
                           .difference = says};
        Scene *page[VIEW_MAX_PAGES];
        const Trace *t = plan_trace(g, "plans/41-llama3-8b-ring4-zigzag.yaml");
        const int n = render_pages(t, g->d, &o, g->a, page);
        assert_true(n > 0);
        for (int i = 0; i < n && k == 2; i++) /* on paper a sheet for each, of letters to be read */
            if (page[i]->scale * page[i]->min_size < 6.9)
                fail_msg("page %d: letters of %.2g pt", i + 1, page[i]->scale * page[i]->min_size);
        if (k == 2) assert_true(strstr(page[1]->title, says) == NULL && n % 2 == 0);
        const Scene *s = page[0];
        int said = 0;
        for (int i = 0; i < s->n_marks; i++)
            said += s->marks[i].kind == MARK_TEXT && s->marks[i].n_run &&
                    !strcmp(s->marks[i].run[0].s, says);
        assert_int_equal(said, 1);
        assert_non_null(strstr(s->title, says));
        if (k < 2 && scene_lint(s, g->a, &report)) fail_msg("%s: %s", preset[k], report);
        if (k == 1 && (s->px_width > 1920 || 12 * s->px_width / s->w < 24))
            fail_msg("a slide of two plans: %d px for %g units", s->px_width, s->w);
    }
}

/* Boxes with one word for one value say what each makes of it. */
static void namesakes_say_what_they_make(void **state) {
    Ground *g = *state;
    RenderOptions o = {.view = "block", .rank = -1, .layer = -1, .pass = "forward"};
    const Trace *t = plan_trace(g, "plans/54-deepseek-v3-latent-ring4.yaml");
    Scene *page[VIEW_MAX_PAGES];
    int said = 0, all = 0;
    assert_true(render_pages(t, g->d, &o, g->a, page) > 0);
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->kind != MARK_TEXT || !m->n_run) continue;
        said += !strcmp(m->run[0].s, "split: kv_c") || !strcmp(m->run[0].s, "split: k_pe");
        all += strchr(m->run[0].s, ':') && !strncmp(m->run[0].s, "split", 5);
    }
    assert_int_equal(said, 2);
    assert_int_equal(all, 2);
}

/* A gradient that is complete only above a sum leaves the line there; one that its box makes alone
 * leaves by the box's side. */
static void sums_leave_above_themselves(void **state) {
    Ground *g = *state;
    const Trace *t = plan_trace(g, "plans/54-deepseek-v3-latent-ring4.yaml");
    RenderOptions o = {.view = "block", .rank = -1, .layer = -1, .preset = "slide"};
    Scene *page[VIEW_MAX_PAGES];
    assert_true(render_pages(t, g->d, &o, g->a, page) > 2);
    const Scene *s = page[1];
    double dk = 0, dq = 0, low = 0; /* heights of their words, and of the lower sum's */
    bool left = false, right = false;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT || !m->n_run) continue;
        if (!strcmp(m->run[0].s, "d k_rope  [1, 16, 8]")) dk = m->y, left = m->align == ALIGN_RIGHT;
        if (!strcmp(m->run[0].s, "dq  [1, 16, 2048]")) dq = m->y, right = m->align == ALIGN_LEFT;
        if (!strcmp(m->run[0].s, "d k_rope, d q_rope, d q_nope")) low = m->y;
    }
    assert_true(left && right && dk > 0 && dq > 0 && low > 0);
    assert_true(dk < low - 8);
}

/* A move of the backward pass that changes nothing one can see has no row of its own, as forward
 * has none for such: over an axis of one rank a gather is none. */
static void nothing_done_has_no_row(void **state) {
    Ground *g = *state;
    int hidden = 0;
    for (int i = 0; i < N_FILES; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, file[i]));
        for (int k = 0; k < m->n; k++)
            for (int r = 0; r < m->strip[k].n; r++) {
                const MirrorRow *row = &m->strip[k].row[r];
                bool shows = row->kind != ROW_BACK || row->n_conj > 0;
                for (int q = 0; q < row->n_back_move; q++) {
                    const TraceLocalMove *b = row->back_move[q];
                    shows |= !block_same_shape(m->g, trace_value(m->g->t, b->value, b->value_step),
                                               trace_value(m->g->t, b->value, b->step));
                }
                hidden += row->n_silent;
                if (!shows)
                    fail_msg("%s: %s, row %d shows %s, which does nothing", file[i],
                             m->strip[k].strip->title, r, row->back_move[0]->op);
            }
    }
    assert_true(hidden > 10);
}

/* What a strip begins with is not called as a weight that it has: with layers folded the head reads
 * the output of the last one, and has a weight `output`. */
static void no_value_is_called_as_a_weight(void **state) {
    Ground *g = *state;
    static const char *const folded[] = {"plans/20-llama3-8b-fsdp-tp.yaml",
                                         "plans/48-llama3.2-1b-pp2-tied.yaml",
                                         "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml"};
    int others = 0;
    for (int i = 0; i < 3; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, folded[i]));
        const Trace *t = m->g->t;
        for (int k = 0; k < m->n; k++) {
            if (!m->strip[k].from) continue;
            const char *name = mirror_value(m->g, m->strip[k].from, false),
                       *back = mirror_value(m->g, m->strip[k].from, true);
            others += !strcmp(name, "y of layer 1") && !strcmp(back, "dy of layer 1");
            for (int q = 0; q < t->n_params; q++)
                if (t->params[q].module && !strcmp(words_leaf(t->params[q].module), name))
                    fail_msg("%s: %s begins with a value that is called %s, as a weight", folded[i],
                             m->strip[k].strip->title, name);
        }
    }
    assert_int_equal(others, 1);
}

/* The collectives that bring weights can be counted: those beside the boxes before, as many as the
 * line below says are not again for backward. */
static void fetches_can_be_counted(void **state) {
    Ground *g = *state;
    static const struct {
        const char *file;
        int least;
    } row[] = {{"plans/19-llama3-8b-fsdp4.yaml", 9},
               {"plans/33-qwen3-30b-a3b-ep.yaml", 12},
               {"plans/bugs/18-fsdp-wrong-shard.yaml", 9},
               {"plans/20-llama3-8b-fsdp-tp.yaml", 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const Mirror *m = mirror_of(g, plan_trace(g, row[i].file));
        MirrorPen pen = {.c = ARENA_NEW(g->a, ViewCall), .m = m, .s = NULL};
        *(ViewCall *)(uintptr_t)pen.c = (ViewCall){.t = m->g->t, .d = g->d, .arena = g->a};
        int drawn = 0, before = 0, again = 0, all = 0, said = 0;
        for (int k = 0; k < m->n; k++)
            for (int r = 0; r < m->strip[k].n; r++) {
                const TraceParam *w[MIRROR_FLOW];
                const char *name[MIRROR_FLOW];
                const int n = mirror_states(&pen, &m->strip[k].row[r], w, name);
                for (int q = 0; q < n; q++)
                    drawn += mirror_fetches(&pen, &m->strip[k].row[r], w[q]);
            }
        for (int q = 0; q < m->g->t->n_collectives; q++) {
            const TraceCollective *c = &m->g->t->collectives[q];
            const bool here = c->layer < 0 || c->layer == m->g->layer;
            if (!trace_param(m->g->t, c->value) || !here) continue;
            *(c->step < m->first_back ? &before : &again) += 1;
        }
        const char *line = mirror_totals(m, 0, m->n, false), *of = strstr(line, "; weights ");
        assert_non_null(of);
        assert_non_null(strstr(of, " in "));
        if (sscanf(strstr(of, " in "), " in %d, %d of them", &all, &said) != 2) {
            const char *at = strstr(of, " of these "); /* over several axes */
            assert_non_null(at);
            while (at[-1] >= '0' && at[-1] <= '9') at--;
            assert_int_equal(sscanf(at, "%d of these %d again", &said, &all), 2);
        }
        assert_int_equal(drawn, before);
        if (all - said != drawn || said != again)
            fail_msg("%s: %d drawn, '%s'", row[i].file, drawn, line);
        assert_true(drawn >= row[i].least);
    }
}

/* What norms give is called by one rule in a figure: each after its norm, or all "after the norm".
 */
static void norms_are_told_alike(void **state) {
    Ground *g = *state;
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    int brief = 0, named = 0;
    for (int i = 0; i < N_FILES * 4; i++) {
        const Trace *t = plan_trace(g, file[i / 4]);
        RenderOptions o = {.view = "block", .rank = -1, .layer = -1, .preset = preset[i % 4]};
        Scene *page[VIEW_MAX_PAGES];
        const int n = render_pages(t, g->d, &o, g->a, page);
        for (int p = 0; p < n; p++) {
            const char *as[2] = {NULL, NULL};
            for (int k = 0; k < page[p]->n_marks; k++) {
                const Mark *m = &page[p]->marks[k];
                for (int r = 0; r < m->n_run && m->kind == MARK_TEXT; r++) {
                    if (m->run[r].weight == SEMIBOLD) continue;
                    const char *at = strstr(m->run[r].s, "after "), *end = at ? at + 6 : NULL;
                    if (!at) continue;
                    while (*end == '_' || (*end >= 'a' && *end <= 'z')) end++;
                    if (!strncmp(at, "after the norm", 14)) as[0] = m->run[r].s;
                    else if (end - at > 10 && !strncmp(end - 5, "_norm", 5)) as[1] = m->run[r].s;
                }
            }
            brief += as[0] != NULL, named += as[1] != NULL;
            if (as[0] && as[1])
                fail_msg("%s %s, page %d: '%s' and '%s'", file[i / 4], preset[i % 4], p + 1, as[0],
                         as[1]);
        }
    }
    assert_true(brief > 5 && named > 5);
}

/* What is kept is named, or counted where names have no room, and never cut off; a value without
 * dims is one number beside its box, too. */
static void kept_values_are_not_cut_off(void **state) {
    Ground *g = *state;
    static const char *const wrong[] = {"plans/bugs/80-load-balance-of-each-rank-alone.yaml",
                                        "plans/bugs/82-balance-loss-times-tp.yaml"};
    int kept = 0, ones = 0;
    for (int f = 0; f < N_FILES + 2; f++) {
        const Trace *t = plan_trace(g, f < N_FILES ? file[f] : wrong[f - N_FILES]);
        RenderOptions o = {.view = "block", .rank = -1, .layer = -1};
        Scene *page[VIEW_MAX_PAGES];
        assert_true(render_pages(t, g->d, &o, g->a, page) > 0);
        for (int i = 0; i < page[0]->n_marks; i++) {
            const Mark *m = &page[0]->marks[i];
            if (m->kind != MARK_TEXT || !m->n_run || m->group < 0) continue;
            const char *what = page[0]->groups[m->group].what, *word = m->run[0].s;
            if (!strcmp(what, "saved")) {
                kept++;
                if (strstr(word, "…")) fail_msg("plan %d: %s", f, word);
            }
            if (strcmp(what, "input") != 0) continue;
            ones += !strcmp(word, "one number");
            if (strstr(word, "[]")) fail_msg("plan %d: %s", f, word);
        }
    }
    assert_true(kept > 50 && ones > 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, ground_new, ground_gone)
static const struct CMUnitTest tests[] = {
    T(terms_are_added_behind),       T(a_line_is_one_layout),
    T(a_collective_takes_its_label), T(dots_stand_behind_labels),
    T(the_last_hop_is_the_last),     T(two_plans_say_what_differs),
    T(namesakes_say_what_they_make), T(sums_leave_above_themselves),
    T(nothing_done_has_no_row),      T(no_value_is_called_as_a_weight),
    T(fetches_can_be_counted),       T(norms_are_told_alike),
    T(kept_values_are_not_cut_off)};
int main(void) {
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
