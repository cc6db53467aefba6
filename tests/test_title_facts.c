/* What the titles of the other views count, held against the records: memory, mesh, timeline,
 * storyboard, and the parts of a block; every plan that is shipped, those too large to execute, and
 * every recipe. test_titles.c has overview, block and shards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/words.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "render/mesh/mesh.h"
#include "support/fact.h"
#include "support/records.h"
#include "support/support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int memory, mesh, timeline, storyboard, part, here;
    int wide;     /* kernels in lines of the timeline that are drawn wider than others */
    int staged;   /* timelines of pipelines */
    int waiting;  /* titles of timelines that say who waits for others */
    int messages; /* records of messages between stages */
    int rounded;  /* times that were held to be rounded by themselves */
} Held;           /* how often each was looked at */

static void says(const char *words, const char *what, const char *fact) {
    if (!strstr(words, fact)) fail_msg("%s: '%s' is not in\n%s", what, fact, words);
}
/* The first page, NULL if the plan has nothing for the view. */
static Scene *page_of(Arena *a, const Trace *t, const char *view, const char *pass,
                      const char *part) {
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = view, .pass = pass, .part = part, .layer = -1};
    return render_pages(t, diags_new(a), &o, a, page) ? page[0] : NULL;
}
static bool takes_part(const TraceCollective *c, int64_t rank) {
    return record_member(c, rank) && !c->skipped;
}

/* ---- memory: "holds X at the peak" ---- */
static void check_memory(Arena *a, const Trace *t, const char *path, Held *h) {
    Scene *s = page_of(a, t, "memory", NULL, NULL);
    if (!s) return;
    int64_t most = 0;
    for (int i = 0; i < t->n_memory; i++) {
        int64_t n = records_peak(t, rankset_first(&t->memory[i].ranks));
        if (t->memory[i].step >= 0) break; /* all classes have said what lies at rest */
        if (n > most) most = n;
    }
    says(picture_fact(s), path, arena_printf(a, "holds %s at the peak", bytes_text(most, a)));
    h->memory++;
}

/* ---- mesh: what rank 0 sends in the groups of each axis, and in those of two of its ranks ---- */
static bool of_two(const Trace *t, const TraceCollective *c) {
    int64_t all = 1;
    for (int i = 0; i < t->n_axes; i++)
        if (mesh_axes(t, c->axes) >> i & 1) all *= t->axes[i].size;
    return strcmp(c->op, "send") != 0 && groups_size(&c->groups) < all;
}
static void check_mesh(Arena *a, const Trace *t, const char *path, Held *h) {
    Scene *s = page_of(a, t, "mesh", NULL, NULL);
    if (!s) return;
    const char *words = page_words(a, s, NULL);
    for (int i = 0; i < t->n_collectives; i++) {
        int64_t bytes = 0;
        for (int k = 0; k < t->n_collectives; k++) {
            const TraceCollective *c = &t->collectives[k];
            if (!strcmp(c->axes, t->collectives[i].axes) && takes_part(c, 0) &&
                of_two(t, c) == of_two(t, &t->collectives[i]))
                bytes += collective_on(c, 0).bytes_sent;
        }
        if (!bytes) continue;
        says(words, path, arena_printf(a, "sends %s", bytes_text(bytes, a)));
        h->mesh++;
    }
}

/* ---- timeline: "compute waits X of the time, Y of communication is hidden"; "Busiest, rank 3:
 * compute waits X of the time, rank 0 waits Y for others" ---- */
/* How many times as wide as the others a line says that it is drawn. */
static int times_said(const Scene *s, const Group *line) {
    int n = 1;
    for (int i = line->first; i < line->last; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++) {
            const char *x = strstr(s->marks[i].run[k].s, "drawn ");
            if (x) assert_int_equal(sscanf(x, "drawn %d× as wide", &n), 1);
        }
    return n;
}
/* Does the step of the event take as long on every class of ranks? */
static bool as_long_on_all(const Trace *t, const TraceEvent *e) {
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *x = &t->events[i];
        if (x->step == e->step &&
            fabs(x->end - x->start - (e->end - e->start)) > 1e-3 * (e->end - e->start))
            return false;
    }
    return true;
}
/* Kernels are as wide as they last, in all lines at one scale or at the number of times it that the
 * line says; none longer than the longest line of all. */
static int check_scales(const Scene *s, const Trace *t, const char *path) {
    double one = 0;
    int wide = 0;
    for (int g = 0; g < s->n_groups; g++) {
        const Group *event = &s->groups[g],
                    *line = &s->groups[event->parent >= 0 ? event->parent : 0];
        const char *id = strstr(event->id, "event-");
        if (strcmp(event->what, "compute") || !id || strcmp(line->what, "line")) continue;
        int step = atoi(id + 6), times = times_said(s, line);
        double w = 0;
        bool fits = false;
        for (int i = event->first; i < event->last; i++)
            if (s->marks[i].kind == MARK_RECT) w = fmax(w, s->marks[i].w);
        for (int i = 0; i < t->n_events; i++) {
            const TraceEvent *e = &t->events[i];
            double per = w / (e->end - e->start) / times;
            if (e->step != step || strcmp(e->kind, "compute")) continue;
            if (one <= 0 && w > 20 && as_long_on_all(t, e)) one = per;
            fits |= w <= 20 || one <= 0 || fabs(per - one) < 0.02 * one;
        }
        if (!fits) fail_msg("%s: step %d is %g px wide, %d times", path, step, w, times);
        wide += times > 1;
    }
    return wide;
}
static void near_share(const char *path, const char *title, double got, double part, double whole) {
    double share = whole > 0 ? 100 * part / whole : 0;
    if (fabs(got - share) > 0.0501) fail_msg("%s: %s, and it is %g", path, title, share);
}
/* "0.1" of "0.1 %", "< 0.1 %"; below 0: there is no share. */
static double share_at(const char *s) {
    double got;
    if (!strncmp(s, "no ", 3)) return 0;
    if (!strncmp(s, "< 0.1 %", 7)) return 0.05;
    return sscanf(s, "%lf %%", &got) == 1 ? got : -1;
}
/* The title's rank is one that the others wait for: none ends later, none that ends with it waits
 * less; another one that it names waits longest. */
static void check_whose(Arena *a, const Trace *t, const Scene *s, const char *path, int64_t told,
                        int64_t most) {
    const RecordTime of = records_time(a, t, told), longest = records_time(a, t, most);
    for (int i = 0; i < t->n_events; i++) {
        int64_t r = rankset_first(&t->events[i].ranks);
        bool known = false;
        for (int k = 0; k < i && !known; k++) known = rankset_has(&t->events[k].ranks, r);
        if (known) continue;
        RecordTime x = records_time(a, t, r);
        if (x.span > of.span * (1 + 1e-9) ||
            (x.span > of.span * (1 - 1e-9) && x.waiting < of.waiting - 1e-6 * x.span))
            fail_msg("%s: %s, and others wait for rank %lld", path, picture_fact(s), (long long)r);
        if (most != told && x.waiting > longest.waiting + 1e-6 * x.span)
            fail_msg("%s: %s, and rank %lld waits longer", path, picture_fact(s), (long long)r);
    }
}
/* Of whom the sentence under the picture speaks. */
static int64_t told_of(const Scene *s) {
    static const char *const who[] = {"The busiest, rank", "The last to end, rank"};
    for (int i = 0; i < 2; i++) {
        const char *x = strstr(s->desc, who[i]);
        if (x) return strtoll(x + strlen(who[i]) + strspn(x + strlen(who[i]), "s "), NULL, 10);
    }
    return 0;
}
/* "353 µs" in seconds. */
static double seconds_at(const char *x) {
    char *unit;
    double n = strtod(x, &unit);
    return n * (unit[1] == 's' ? 1 : unit[1] == 'm' ? 1e-3 : unit[1] == 'n' ? 1e-9 : 1e-6);
}
/* Is the coordinate among "all stages", "pp 0 to 2, 5"? */
static bool among(const char *places, int coord) {
    bool in = strstr(places, "all stages") != NULL;
    for (const char *x = places + strcspn(places, " "); !in && *x;) {
        char *end;
        long from = strtol(x + strspn(x, ", "), &end, 10), to = from;
        if (!strncmp(end, " to ", 4)) to = strtol(end + 4, &end, 10);
        in = from <= coord && coord <= to;
        x = end + strcspn(end, ",");
    }
    return in;
}
/* A pipeline's lines, each as often as it says, make up what a rank of each stage computes for one
 * micro-batch. */
static void check_lines(Arena *a, const Trace *t, const Scene *s, const char *path) {
    int64_t stride = 1;
    int size = 0;
    for (int i = t->n_axes - 1; i >= 0 && !size; i--) {
        if (!strcmp(t->axes[i].name, t->schedule_axis)) size = (int)t->axes[i].size;
        else stride *= t->axes[i].size;
    }
    for (int coord = 0; coord < size; coord++) {
        RecordStep of = records_step(a, t, coord * stride);
        double least = 0, most = 0;
        for (int g = 0; g < s->n_groups; g++) {
            const char *sum = strcmp(s->groups[g].what, "sums") ? NULL : s->groups[g].tip, *often;
            const Group *line = &s->groups[s->groups[g].parent >= 0 ? s->groups[g].parent : 0];
            if (!sum) continue;
            for (int i = line->first; i < line->last; i++)
                for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++) {
                    int n[2] = {1, 1};
                    if (!(often = strstr(s->marks[i].run[k].s, " micro-batch"))) continue;
                    const char *x = strstr(often, "× "), *to = x ? strstr(x, " to ") : NULL,
                               *places = strrchr(often, '\xb7') + 2;
                    if (x) n[0] = n[1] = atoi(x + strlen("× "));
                    if (to && to < places) n[1] = atoi(to + 4);
                    if (!among(places, coord)) continue;
                    double one = seconds_at(strstr(sum, "compute ") + 8);
                    least += n[0] * one, most += n[1] * one;
                }
        }
        if (of.compute < 0.99 * of.times * least || of.compute > 1.01 * of.times * most)
            fail_msg("%s: lines of %d make up %g to %g s of %g s", path, coord, least, most,
                     of.compute / of.times);
    }
}
/* The messages between stages as the log has them: each kind with its bytes and its time, and how
 * many there are in the step. Returns the records that are messages. */
static int check_messages(Arena *a, const Trace *t, const Scene *s, const char *path) {
    const char *words = page_words(a, s, NULL);
    int n = 0, times = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->op, "send") != 0 || c->skipped) continue;
        n++, times += collective_per_step(c);
        const int64_t one = groups_member(&c->groups, 0, 0), two = groups_member(&c->groups, 0, 1);
        const bool back = collective_on(c, one).bytes_sent == 0;
        const int64_t bytes = collective_on(c, back ? two : one).bytes_sent;
        says(words, path, arena_printf(a, ", %s each, ", bytes_text(bytes, a)));
        const char *tip = NULL;
        for (int g = 0; g < s->n_groups; g++)
            if (!strncmp(s->groups[g].id, "message-", 8) && strstr(s->groups[g].tip, c->value))
                tip = s->groups[g].tip;
        if (!tip) fail_msg("%s: message of %s is not drawn", path, c->value);
    }
    if (n) says(words, path, arena_printf(a, "Messages between stages %d in the step", times));
    return n;
}
static Scene *timeline_of(Arena *a, const Trace *t) {
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1};
    return render_pages(t, diags_new(a), &o, a, page) ? page[0] : NULL;
}
/* The number behind `word` in a sentence is that of seconds, rounded to the digits that it has.
 * Returns it, 0 where the word is not there. */
static double rounded(Arena *a, const char *path, const char *words, const char *word,
                      double exact) {
    const char *x = strstr(words, word);
    if (!x) return 0;
    char *end;
    const double got = strtod(x + strlen(word), &end);
    const char *point = memchr(x + strlen(word), '.', (size_t)(end - x) - strlen(word));
    const double unit = seconds_at(arena_printf(a, "1%.4s", end)),
                 tick = pow(10, point ? -(double)(end - point - 1) : 0);
    if (fabs(got - exact / unit) > tick * (0.5 + 1e-6))
        fail_msg("%s: '%s%g%.4s', and it is %g s, in\n%s", path, word, got, end, exact, words);
    return got * unit;
}
/* One quantity is read as one number: the parts of a step in the timeline, compute in the roofline.
 * Each is rounded by itself, and what is read adds up. Returns how many there are. */
static int check_rounded(Arena *a, const Trace *t, const Scene *s, int64_t told, const char *path) {
    const RecordTime of = records_time(a, t, told);
    const double part[] = {rounded(a, path, s->desc, " = compute ", of.span - of.still),
                           rounded(a, path, s->desc, " + exposed ", of.exposed),
                           rounded(a, path, s->desc, " + waiting for other ranks ", of.waiting)};
    const char *sum = strstr(s->desc, " = compute ");
    if (!sum) fail_msg("%s: no sum in '%s'", path, s->desc);
    for (int blanks = 0; blanks < 2; blanks += *sum == ' ') sum--;
    const double whole = seconds_at(sum + 1);
    if (fabs(whole - part[0] - part[1] - part[2]) > 1e-7 * whole)
        fail_msg("%s: does not add up: %s", path, s->desc);
    RenderOptions o = {.view = "roofline", .rank = told, .layer = -1};
    Scene *page[VIEW_MAX_PAGES];
    return (part[0] > 0) + (part[1] > 0) + (part[2] > 0) +
           (render_pages(t, diags_new(a), &o, a, page) &&
            rounded(a, path, page[0]->desc, "Compute ", of.span - of.still) > 0);
}
static void check_timeline(Arena *a, const Trace *t, const char *path, Held *h) {
    Scene *s = timeline_of(a, t);
    if (!s || t->n_events > 4000) return; /* below looks at all events for each span */
    bool staged = false;                  /* a pipeline whose plan breaks no rule */
    for (int g = 0; g < s->n_groups; g++) staged |= !strcmp(s->groups[g].what, "schedule");
    if (staged) {
        check_lines(a, t, s, path);
        h->wide += check_scales(s, t, path);
        h->staged++;
        h->messages += check_messages(a, t, s, path);
        return;
    }
    int64_t told = told_of(s), most = told;
    RecordTime of = records_time(a, t, told);
    h->rounded += check_rounded(a, t, s, told, path);
    const char *x = strstr(picture_fact(s), "ompute waits ");
    if (x) {
        near_share(path, picture_fact(s), share_at(x + 13), of.still, of.span);
        x = strstr(picture_fact(s), " of the time, ") + 14;
        const char *other = strstr(x, " for others"), *own = strstr(x, " for other ranks");
        if (other) {
            most = strtoll(x + strcspn(x, "0123456789"), NULL, 10);
            RecordTime w = records_time(a, t, most);
            x = strstr(x, " wait") + 5;
            near_share(path, picture_fact(s), share_at(x + strspn(x, "s ")), w.waiting, w.span);
        } else if (own) near_share(path, picture_fact(s), share_at(x), of.waiting, of.span);
        else near_share(path, picture_fact(s), share_at(x), of.hidden, of.comm);
        h->waiting += other || own;
    } else {
        says(picture_fact(s), path,
             of.comm > 0 ? "all communication is hidden" : "nothing is communicated");
        assert_true(of.still <= 1e-6 * of.span);
    }
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; s->marks[i].kind == MARK_TEXT && k < s->marks[i].n_run; k++)
            assert_null(strstr(s->marks[i].run[k].s, "0.00 ns")); /* a difference of equal sums */
    check_whose(a, t, s, path, told, most);
    h->timeline++;
    h->wide += check_scales(s, t, path);
}

/* ---- storyboard: "Ring ReduceScatter of V, n ranks", "Ring attention over A: n ranks, h hops …"
 * ---- */
/* The axis is so long, and every layer sends so often: keys and values, or what both are made of.
 */
static void check_hops(const Trace *t, const char *path, const Scene *s) {
    char axis[32];
    int n, hops, size = 0, sent = 0, layer = -1;
    if (sscanf(picture_fact(s), "Ring attention over %31[^:]: %d ranks, %d hop", axis, &n, &hops) !=
        3)
        fail_msg("%s: '%s'", path, picture_fact(s));
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axes[i].name, axis)) size = (int)t->axes[i].size;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (strcmp(c->op, "shift") != 0 || phase_or_forward(c->pass) != PHASE_FORWARD) continue;
        if (layer < 0) layer = c->layer;
        sent += c->layer == layer && groups_size(&c->groups) == size;
    }
    if (n != size || hops != n - 1 || sent != 2 * hops)
        fail_msg("%s: '%s', the axis has %d ranks, a layer %d hops", path, picture_fact(s), size,
                 sent);
}
static void check_storyboard(Arena *a, const Trace *t, const char *path, Held *h) {
    Scene *s = page_of(a, t, "storyboard", NULL, NULL);
    const char *of = s ? strstr(picture_fact(s), " of ") : NULL;
    if (s && !of) of = strstr(picture_fact(s), " after ");
    if (of && !strncmp(picture_fact(s), "Ring attention", 14)) {
        check_hops(t, path, s);
        h->storyboard++;
        return;
    }
    if (!of || strncmp(picture_fact(s), "Ring ", 5) != 0) return;
    if (!strncmp(picture_fact(s), "Ring attention", 14))
        return; /* test_title_sweep.c: several hops */
    bool found = false;
    for (int i = 0; i < t->n_collectives && !found; i++) {
        const TraceCollective *c = &t->collectives[i];
        const char *with = c->n_with ? arena_printf(a, " and %d more", c->n_with) : "", *module,
                   *before = words_value_path(a, t, c->value, &module), /* or as records */
                       *end = arena_printf(a, "%s, %lld ranks", with,
                                           (long long)groups_size(&c->groups)),
                   *name[] = {arena_printf(a, " of %s%s", c->value, end),
                              arena_printf(a, " %s%s%s", before, module, end),
                              arena_printf(a, " of the %s%s%s", before, module, end)};
        for (int k = 0; k < 3 && takes_part(c, 0); k++)
            found = found || !strncmp(of, name[k], strlen(name[k]));
    }
    if (!found) fail_msg("%s: no collective is what '%s' says", path, picture_fact(s));
    h->storyboard++;
}

/* ---- parts of a block ---- */
typedef struct {
    double count, bytes;
} Needs;
/* "... needs N collectives and sends X", or "needs no communication"; false: it says neither. */
static bool needs(const char *title, Needs *out) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const char *at = strstr(title, " needs "), *sends = strstr(title, " sends ");
    char unit[8];
    Needs x = {0};
    if (!at) return false;
    if (sends) {
        double messages = 0;
        const char *also = strstr(at, " and ");
        assert_int_equal(sscanf(at, " needs %lf ", &x.count), 1);
        if (also && sscanf(also, " and %lf message", &messages) == 1) x.count += messages;
        assert_int_equal(sscanf(sends, " sends %lf %3[BKMGTi]", &x.bytes, unit), 2);
        for (int u = 0; u < 5; u++)
            if (!strcmp(unit, units[u])) x.bytes *= pow(1024, u);
    } else if (!strstr(at, "no communication")) {
        return false;
    }
    out->count += x.count, out->bytes += x.bytes;
    return true;
}
/* Does the layer of the block's picture have that part? By itself `--part` finds the first one that
 * does. */
static bool of_that_layer(const Trace *t, const char *part) {
    int layer = -1;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *x = &t->computes[i];
        if (x->layer >= 0 && (layer < 0 || x->layer < layer)) layer = x->layer;
    }
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].layer == layer && t->computes[i].part &&
            !strcmp(t->computes[i].part, part))
            return true;
    return false;
}
/* The pictures of the parts of a layer add up to that of the block (which test_titles holds against
 * the records), and those of what lies outside the layers to the records of no layer: nothing is
 * told twice, and nothing by none. Bytes are rounded in each title. */
static void check_parts(Arena *a, const Trace *t, const char *path, Held *h) {
    static const char *const layer[] = {"attention", "mlp", "moe"}, *const outside[] = {
                                                                        "embedding", "norm", "head",
                                                                        "loss"};
    Needs whole = {0}, parts = {0}, beside = {0}, recorded = {0};
    Scene *s = page_of(a, t, "block", "forward", NULL);
    if (!s || !strstr(picture_fact(s), "a Transformer block needs ") ||
        !needs(picture_fact(s), &whole))
        return;
    for (int i = 0; i < 3; i++)
        if (of_that_layer(t, layer[i]) && (s = page_of(a, t, "block", "forward", layer[i])))
            needs(picture_fact(s), &parts);
    if (parts.count != whole.count || fabs(parts.bytes - whole.bytes) > 0.01 * whole.bytes)
        fail_msg("%s: parts need %g collectives and %g bytes, the block %g and %g", path,
                 parts.count, parts.bytes, whole.count, whole.bytes);
    for (int i = 0; i < 4; i++)
        if ((s = page_of(a, t, "block", "forward", outside[i]))) needs(picture_fact(s), &beside);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!record_in_pass(t, c, "forward") || c->layer >= 0 || !takes_part(c, 0)) continue;
        recorded.count += (double)collective_times(c);
        recorded.bytes += (double)collective_on(c, 0).bytes_sent;
    }
    h->part++;
    if (beside.count != recorded.count ||
        fabs(beside.bytes - recorded.bytes) > 0.01 * recorded.bytes)
        fail_msg("%s: outside the layers %g collectives and %g bytes in titles, %g and %g recorded",
                 path, beside.count, beside.bytes, recorded.count, recorded.bytes);
}

/* ---- backward beside forward: "only" and "nothing" are of the whole, or "here" ---- */
static void check_only(Arena *a, const Trace *t, const char *preset, const char *path, Held *h) {
    static const char *const only[] = {
        "The backward pass mirrors the forward pass: nothing is sent",
        "The backward pass mirrors the forward pass: only gradients of weights travel"};
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = {.view = "block", .preset = preset, .rank = -1, .layer = -1};
    int n = render_pages(t, diags_new(a), &o, a, page);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            if (!strstr(picture_fact(page[i]), only[k])) continue;
            for (int c = 0; c < t->n_collectives; c++) {
                const TraceCollective *x = &t->collectives[c];
                bool of_weights = x->pass == PHASE_GRADIENTS || x->pass == PHASE_OPTIMIZER;
                if (takes_part(x, 0) && !(k && of_weights) && x->pass != PHASE_OPTIMIZER)
                    fail_msg("%s, page %d: '%s', and step %d is a %s", path, i + 1,
                             picture_fact(page[i]), x->step, x->op);
            }
        }
    for (int i = 0; i < n; i++)
        h->here += strstr(picture_fact(page[i]), ": here ") ||
                   strstr(picture_fact(page[i]), ": in the layer ");
    for (int i = 0; i < n; i++) {
        if (!strstr(picture_fact(page[i]), "every gradient is summed")) continue;
        if (strstr(page_words(a, page[i], NULL), "nothing to add"))
            fail_msg("%s: '%s', and one is not", path, picture_fact(page[i]));
    }
}

static void check(Arena *a, const char *name, const char *text, Held *h) {
    PipelineOptions o = {.events = true, .threads = 1};
    const Trace *t = plan_run_with(a, name, text, &o).t;
    if (!t) return;
    check_memory(a, t, name, h);
    check_mesh(a, t, name, h);
    check_timeline(a, t, name, h);
    check_storyboard(a, t, name, h);
    check_parts(a, t, name, h);
    check_only(a, t, "slide", name, h);
    check_only(a, t, "wide", name, h);
}
static void check_files(const char *pattern, Held *h) {
    for (PlanFiles f = plan_files(pattern, NULL); plan_files_next(&f);)
        check(f.a, f.path, f.text, h);
}
static void enough(Held h, int least) {
    print_message("here %d\n", h.here);
    print_message("memory %d, mesh %d, timeline %d, storyboard %d, parts %d\n", h.memory, h.mesh,
                  h.timeline, h.storyboard, h.part);
    assert_true(h.memory >= least && h.mesh >= least && h.timeline >= least && h.part >= least);
}
static void test_plans(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/*.yaml", &h);
    assert_true(h.storyboard >= 20 && h.wide >= 20 && h.here >= 5 && h.staged >= 8);
    assert_true(h.rounded >= 100 && h.messages >= 30);
    enough(h, 30);
}
static void test_bugs_and_models(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/bugs/*.yaml", &h);
    check_files("plans/models/*.yaml", &h);
    enough(h, 25); /* the title of many a bug is the rule that it breaks, not a number */
}
/* Plan 41's ring at full size: in contiguous order the last rank computes for all others, which
 * wait for it; in the two other orders nobody does. */
static void test_ring_orders(void **state) {
    (void)state;
    Arena *a = arena_new();
    static const char *const order[] = {"contiguous", "zigzag", "striped"};
    for (int i = 0; i < 2 * 3; i++) { /* gathered, forward: nobody waits, the last rank is last */
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1}\ndata: {batch: 1, sequence: 65536}\n"
            "mesh: {cp: 4}\npass: %s\ncontext_parallel: {mode: %s, order: %s}\n",
            i < 3 ? "backward" : "forward", i < 3 ? "ring" : "all_gather", order[i % 3]);
        const Trace *t =
            plan_run_with(a, "ring.yaml", text, &(PipelineOptions){.events = true, .threads = 1}).t;
        assert_non_null(t);
        Held h = {0};
        check_timeline(a, t, order[i % 3], &h);
        const Scene *s = timeline_of(a, t);
        if (i % 3 == 0) says(picture_fact(s), order[0], "Busiest, rank 3: compute waits ");
        if (i == 0) says(picture_fact(s), order[i], ", rank 0 waits 62");
        assert_int_equal(h.waiting, i == 0);
    }
    arena_free(a);
}
static void test_too_large_to_execute(void **state) {
    (void)state;
    Held h = {0};
    check_files("plans/shape-only/*.yaml", &h);
    assert_true(h.memory >= 2 && h.mesh >= 2);
}
/* Every recipe of the table, on models with experts and without: what it cannot lay out is left. */
static void test_recipes(void **state) {
    (void)state;
    static const char *const models[] = {"llama3-8b", "mixtral-8x7b", "llama4-scout"};
    static const char *const passes[] = {"forward", "backward", "train"};
    int n, ran = 0;
    const RecipeRow *rows = plan_recipes(&n);
    Held all = {0};
    for (int i = 0; i < n; i++) {
        int before = all.mesh;
        for (int k = 0; k < 9; k++) {
            Arena *a = arena_new();
            const char *text = recipe_plan(a, models[k / 3], rows[i].name,
                                           plan_names_text(rows[i].names), passes[k % 3]);
            check(a, arena_printf(a, "%s, %s", rows[i].name, passes[k % 3]), text, &all);
            arena_free(a);
        }
        if (all.mesh == before)
            print_message("NOT HELD: %s runs with none of them\n", rows[i].name);
        ran += all.mesh > before;
    }
    enough(all, 10);
    assert_true(ran >= 6);
}

/* Slides of a timeline: the first says what holds of the step, each other one what it shows, with
 * the share that its line has at the right. */
static void test_slides_of_a_timeline(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *path = "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml";
    size_t size;
    const char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &size);
    assert_non_null(text);
    PlanRun r = plan_run_with(a, path, text, &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1, .preset = "slide"};
    Scene *page[VIEW_MAX_PAGES];
    int n = render_pages(r.t, r.d, &o, a, page), alone = 0;
    assert_true(n > 3);
    for (int i = 0; i < n; i++) {
        const char *title = picture_fact(page[i]), *words = page_words(a, page[i], NULL),
                   *share = strstr(title, "compute waits ");
        for (int k = 0; k < i; k++) assert_string_not_equal(title, picture_fact(page[k]));
        assert_int_equal(i == 0, strstr(title, " of the time") != NULL);
        int lines = 0;
        for (int g = 0; g < page[i]->n_groups; g++)
            lines += !strcmp(page[i]->groups[g].what, "line");
        if (i == 0 || lines > 1 || !share) continue;
        share += strlen("compute waits ");
        says(words, "slides",
             arena_printf(a, "%.*s exposed", (int)(strchr(share, '%') + 1 - share), share));
        says(words, "slides", arena_strndup(a, title, (size_t)(strchr(title, ':') - title)));
        alone++;
    }
    assert_true(alone > 1);
    arena_free(a);
}
/* The bar of the nth message that is drawn. */
static const Mark *message_bar(const Scene *s, int nth) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_RECT || m->group < 0) continue;
        if (strstr(s->groups[m->group].id, "message-") && nth-- == 0) return m;
    }
    return NULL;
}
/* Messages are drawn at the scale of the lines, of two plans at that of both; on a slide, where no
 * line is beside them, they say that their scale is their own. The slide behind has its own title.
 */
static void test_messages_at_scale(void **state) {
    (void)state;
    static const char *const plan[] = {"plans/45-llama3-8b-pp4-1f1b.yaml",
                                       "plans/47-llama3-8b-pp2-dp2-tp2.yaml"},
                             own[] = "bars at a scale of their own";
    Arena *a = arena_new();
    PlanRun r[2];
    Scene *page[VIEW_MAX_PAGES];
    for (int k = 0; k < 2; k++) {
        size_t size;
        const char *text = file_read(a, diags_new(a), plan[k], 1 << 20, (Loc){0}, &size);
        r[k] = plan_run_with(a, plan[k], text, &(PipelineOptions){.events = true});
        assert_non_null(r[k].t);
        RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1, .preset = "slide"};
        assert_true(render_pages(r[k].t, r[k].d, &o, a, page) > 2);
        says(page_words(a, page[0], NULL), plan[k], own);
        for (int i = 1; i < 3; i++) {
            assert_null(strstr(page_words(a, page[i], NULL), own));
            if (strncmp(picture_fact(page[i]), "Forward, ", 9) != 0)
                fail_msg("%s, slide %d: %s", plan[k], i + 1, picture_fact(page[i]));
        }
        o.preset = "wide";
        assert_int_equal(render_pages(r[k].t, r[k].d, &o, a, page), 1);
        assert_null(strstr(page_words(a, page[0], NULL), own));
    }
    RenderOptions both = {.view = "timeline", .rank = -1, .layer = -1, .with = r[1].t};
    both.preset = "column";
    assert_true(render_pages(r[0].t, r[0].d, &both, a, page) > 0);
    const Mark *left = message_bar(page[0], 0), *right = message_bar(page[0], 2);
    assert_true(left && right && right->x > left->x + left->w);
    /* 5.02 and 5.01 µs, of plans whose longest lines last 60 and 70 */
    assert_true(fabs(left->w / right->w - 1) < 0.01);
    both.preset = "slide"; /* of two plans all slides have one scale */
    assert_true(render_pages(r[0].t, r[0].d, &both, a, page) > 2);
    assert_null(strstr(page_words(a, page[0], NULL), own));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_at_scale),    cmocka_unit_test(test_plans),
        cmocka_unit_test(test_bugs_and_models),      cmocka_unit_test(test_ring_orders),
        cmocka_unit_test(test_too_large_to_execute), cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_slides_of_a_timeline)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
