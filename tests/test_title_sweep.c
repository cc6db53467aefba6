/* Every number in a title, a subtitle, a footer and the words for a screen reader, of every view,
 * pass and part of every shipped plan and every recipe, held against the records. The table
 * `phrases` has each thing that pictures count and what recounts it; a number that stands in none
 * of them is one that nobody holds, and fails. Plans are not
 * executed here: what only a run says has test_title_runs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/furniture/words.h"
#include "render/memory/memory.h"
#include "render/render.h"
#include "support/records.h"
#include "base/text.h"
#include "support/support.h"
#include "trace/collectives.h"
#include "trace/trace_parts.h"
#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 16 };

/* One text of a picture. */
typedef struct {
    Arena *a;
    const Trace *t;
    RenderOptions o;
    const char *what; /* plan, view, pass, part, rank: for messages */
    int64_t rank;     /* whose picture it is */
    const Scene *s;
    int pages;
    const char *all;  /* title, footer and words for a screen reader */
    const char *text; /* of these the one that is looked at, */
    size_t at;        /* and where the phrase stands in it */
} Page;

static int n_traces, n_wrong, n_open, n_silent; /* all are told before the test fails */
static void wrong(const Page *p, const char *said, const char *fact) {
    n_wrong++;
    print_message("WRONG %s: '%s', and by the records it is %s, in\n%s\n", p->what, said, fact,
                  p->text);
}
static void is_text(const Page *p, const char *said, const char *fact) {
    if (strcmp(said, fact)) wrong(p, said, fact);
}
static void is_count(const Page *p, const char *said, int64_t n) {
    is_text(p, said, arena_printf(p->a, "%lld", (long long)n));
}
static void is_bytes(const Page *p, const char *said, int64_t n) {
    is_text(p, said, bytes_text(n, p->a));
}
/* "42.1 µs": parts of a sum are rounded so that what is read adds up, which may move the last digit
 * by one. */
static void is_time(const Page *p, const char *said, double seconds) {
    char *unit;
    double x = strtod(said, &unit), last = 1;
    const char *point = strchr(said, '.');
    for (const char *c = point ? point + 1 : unit; isdigit((unsigned char)*c); c++) last /= 10;
    double per = strstr(unit, "ns") ? 1e-9 : strstr(unit, "ms") ? 1e-3 : unit[1] == 's' ? 1 : 1e-6;
    if (fabs(x * per - seconds) > 1.01 * last * per) wrong(p, said, time_text(seconds, p->a));
}
static void is_share(const Page *p, const char *said, double part, double whole) {
    double x = strtod(said + strspn(said, "< "), NULL), share = whole > 0 ? 100 * part / whole : 0;
    if (*said == '<' ? share > x || share <= 0 : fabs(x - share) > 0.0501)
        wrong(p, said, arena_printf(p->a, "%g %%", share));
}
static double dim(const Page *p, const char *name, double without) {
    for (int i = 0; i < p->t->n_model; i++)
        if (!strcmp(p->t->model[i].name, name)) return p->t->model[i].value;
    return without;
}

/* ---- what all pictures say ---- */

/* An axis as people know it: tp.0 and tp.1 are one. Its size, and the rank's coordinate on it. */
static int64_t axis(const Page *p, const char *name, int64_t *coordinate) {
    int64_t size = 1, stride = 1;
    size_t n = strlen(name);
    bool seen = false;
    *coordinate = 0;
    for (int i = p->t->n_axes - 1; i >= 0; i--) {
        const struct TraceAxis *x = &p->t->axes[i];
        if (!strcmp(x->name, name) || (!strncmp(x->name, name, n) && x->name[n] == '.')) {
            *coordinate += p->rank / stride % x->size * size;
            size *= x->size;
            seen = true;
        }
        stride *= x->size;
    }
    return seen ? size : -1;
}
static void rank_and_place(const Page *p, char **m) {
    int64_t at, size;
    is_count(p, m[1], p->rank);
    for (char *save, *c = strtok_r(m[2], " ", &save); c; c = strtok_r(NULL, " ", &save)) {
        size_t n = strlen(c);
        while (n && isdigit((unsigned char)c[n - 1])) n--;
        size = axis(p, arena_strndup(p->a, c, n), &at);
        if (size < 0) wrong(p, c, "no axis");
        is_count(p, c + n, at);
    }
}
static void own_rank(const Page *p, char **m) { is_count(p, m[1], p->rank); }
/* "To rank 2", "From rank 0": a send goes between the two. */
static void message_with(const Page *p, char **m) {
    bool held = false;
    for (int i = 0; i < p->t->n_collectives && !held; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        const int64_t g = groups_with(&c->groups, p->rank);
        if (strcmp(c->op, "send") || g < 0 || groups_size(&c->groups) != 2) continue;
        const int64_t first = groups_member(&c->groups, g, 0);
        held =
            strtoll(m[2], NULL, 10) == (first == p->rank ? groups_member(&c->groups, g, 1) : first);
    }
    if (!held) is_count(p, m[2], -1);
}
static void sizes(const Page *p, char **m) {
    int64_t at;
    char *name = m[1];
    name[strcspn(name, "=")] = '\0';
    int64_t size = axis(p, name, &at);
    if (size >= 0) is_count(p, m[2], size);
    else is_count(p, m[2], (int64_t)dim(p, name, -1));
}
static void part_of_batch(const Page *p, char **m) {
    is_count(p, m[1], (int64_t)dim(p, "B", -1));
    is_count(p, m[2], (int64_t)(dim(p, "B", -1) * dim(p, "microbatches", 1)));
}
static void microbatches(const Page *p, char **m) {
    is_count(p, m[2], (int64_t)dim(p, "microbatches", 1));
}
static void shrunk(const Page *p, char **m) { is_count(p, m[1], (int64_t)dim(p, "shrink", 1)); }
static void all_ranks(const Page *p, char **m) { is_count(p, m[1], p->t->ranks); }
static int64_t class_size(const Page *p) {
    for (int i = 0; i < p->t->n_classes; i++)
        if (rankset_has(&p->t->classes[i], p->rank)) return rankset_count(&p->t->classes[i]);
    return p->t->ranks;
}
static void identical(const Page *p, char **m) {
    is_count(p, m[1], class_size(p));
    is_count(p, m[2], p->t->ranks);
}
static void others(const Page *p, char **m) { is_count(p, m[1], p->t->ranks - class_size(p)); }
/* The layers that there are steps of: the first, the last, and how many there are between. */
static int64_t layers(const Page *p, int64_t *first, int64_t *last) {
    *first = *last = -1;
    for (int i = 0; i < p->t->n_computes; i++) {
        int64_t l = p->t->computes[i].layer;
        if (l < 0) continue;
        if (*first < 0 || l < *first) *first = l;
        if (l > *last) *last = l;
    }
    return *first < 0 ? 0 : *last - *first + 1;
}
static void layer_of(const Page *p, char **m) {
    int64_t first, last, n = layers(p, &first, &last), own = atoll(m[1]);
    if (own < first || own > last) wrong(p, m[1], "none of these layers");
    is_count(p, m[2], *m[3] ? first : n);
    if (*m[3]) is_count(p, m[4], last);
}
/* Those that the rank computes, of all that the model has; where bytes are counted, all ranks'. */
static void layers_of(const Page *p, char **m) {
    bool seen[4096] = {false};
    int64_t n = 0;
    for (int i = 0; i < p->t->n_computes; i++) {
        const TraceCompute *x = &p->t->computes[i];
        if (x->layer < 0 || x->layer >= 4096 || x->pass != PHASE_FORWARD || seen[x->layer])
            continue;
        if (strcmp(p->o.view, "overview") || rankset_has(&x->ranks, p->rank))
            seen[x->layer] = true, n++;
    }
    is_count(p, m[1], n);
    is_count(p, m[2], (int64_t)dim(p, "L", -1));
}

/* Two pieces of each rank of the axis that cuts in zigzag. */
static void pieces(const Page *p, char **m) {
    int64_t size = 0;
    for (int i = 0; i < p->t->n_axes; i++)
        if (!strcmp(p->t->axes[i].name, m[2])) size = p->t->axes[i].size;
    is_count(p, m[1], 2 * size);
    is_count(p, m[3], 2 * size - 1);
}

/* ---- what is sent ---- */

/* Which layer a block's picture shows. */
static int drawn_layer(const Page *p) {
    const char *at = strstr(p->all, "layer ");
    for (; at; at = strstr(at + 1, "layer ")) {
        int layer;
        if (sscanf(at, "layer %d of ", &layer) == 1) return layer;
    }
    int64_t first, last;
    layers(p, &first, &last);
    return (int)first;
}
static bool same(const char *x, const char *y) { return x && y && !strcmp(x, y); }
static const char *part_at(const Trace *t, const TraceCompute *x) {
    if (x->part && !same(x->part, "norm")) return x->part;
    /* a norm belongs to what follows it, backward to what came before */
    bool back = x->pass == PHASE_BACKWARD || x->pass == PHASE_GRADIENTS;
    for (const TraceCompute *y = x; y >= t->computes && y < t->computes + t->n_computes;
         y += back ? -1 : 1)
        if (y->layer == x->layer && y->part && !same(y->part, "norm")) return y->part;
    return x->part;
}
/* The part that a collective works for: its parameter's, or that of the first step which reads
 * what it makes, or else of the step that made what it moves. */
static const char *part_of(const Page *p, const TraceCollective *c) {
    const Trace *t = p->t;
    static const char of_param[] = "grad.param.";
    bool gradient = !strncmp(c->value, of_param, strlen(of_param));
    const char *name = gradient ? c->value + strlen(of_param) : c->value;
    bool told = c->part && !same(c->part, "norm");
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *x = &t->computes[i];
        if (!gradient && x->step < c->step) continue;
        if (told && (!same(x->part, "norm") || x->layer != c->layer)) continue;
        for (int k = 0; k < x->n_inputs; k++)
            if (same(x->inputs[k], name) && (!told || x->input_step[k] == c->step))
                return part_at(t, x);
    }
    if (told) return c->part;
    for (int i = t->n_computes - 1; i >= 0; i--)
        if (t->computes[i].step <= c->value_step && same(t->computes[i].output, name) &&
            t->computes[i].part) /* a sum of gradients has none */
            return part_at(t, &t->computes[i]);
    return c->part;
}
/* The part that a sentence speaks of: a layer's, or one outside the layers. */
typedef struct {
    bool block, all;  /* a layer; whatever is drawn */
    const char *part; /* else */
} Scope;
static Scope scope_of(const char *words) {
    static const char *const part[][2] = {
        {"attention", "attention"}, {"the MLP", "mlp"},   {"the MoE layer", "moe"},
        {"the loss", "loss"},       {"the head", "head"}, {"the embedding", "embedding"},
        {"the norm", "norm"}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!strcmp(words, part[i][0])) return (Scope){.part = part[i][1]};
    return (Scope){.block = !strcmp(words, "a Transformer block"),
                   .all = strcmp(words, "a Transformer block") != 0};
}
/* A table that two stages read, each its own copy: the gradient works for the part that reads it on
 * this rank, too. */
static bool reads_here(const Page *p, const char *part, const TraceCollective *c) {
    bool reads = false;
    for (int i = 0; c->subject.role == OF_PARAM_GRADIENT && i < p->t->n_computes; i++) {
        const TraceCompute *x = &p->t->computes[i];
        for (int k = 0; k < x->n_inputs && rankset_has(&x->ranks, p->rank); k++)
            reads |= same(x->inputs[k], c->subject.of) && same(part_at(p->t, x), part);
    }
    return reads;
}
static bool in_scope(const Page *p, Scope s, const TraceCollective *c) {
    bool outside = s.part && !strstr("attention mlp moe", s.part);
    if (dim(p, "H", 0) < 1) return true; /* a chain of layers: it is drawn whole */
    if (s.all && c->layer >= 0) return c->layer == drawn_layer(p);
    if (s.all) { /* outside the layers: what the words for a screen reader name */
        const char *part = part_of(p, c);
        return !part || strstr(p->all, arena_printf(p->a, "%c%s:", toupper(*part), part + 1));
    }
    return c->layer == (outside ? -1 : drawn_layer(p)) &&
           (s.block || same(part_of(p, c), s.part) || (outside && reads_here(p, s.part, c)));
}
static void block_needs(const Page *p, char **m) {
    RecordSum s = {0}, messages = {0};
    Scope scope = scope_of(m[2]);
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        bool message = !strcmp(c->op, "send");
        if (!record_member(c, p->rank) || c->skipped) continue;
        if (!record_in_pass(p->t, c, *m[1] ? "backward" : "forward")) continue;
        if (!message && !in_scope(p, scope, c)) continue;
        record_add(message ? &messages : &s, c, p->rank);
    }
    /* of messages between stages those that stand beside what is drawn count, too */
    is_count(p, *m[6] ? m[6] : "0", s.count);
    if (atoll(m[9]) > messages.count) is_count(p, m[9], messages.count);
    if (!*m[9]) is_bytes(p, *m[10] ? m[10] : "0 B", s.bytes);
}

/* "the backward pass of a Transformer block receives 1 message": of those between stages that come
 * to the rank, and nothing else is drawn. */
static void only_receives(const Page *p, char **m) {
    RecordSum s = {0};
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        if (!record_member(c, p->rank) || c->skipped) continue;
        if (!record_in_pass(p->t, c, *m[1] ? "backward" : "forward")) continue;
        if (!strcmp(c->op, "send") || in_scope(p, scope_of(m[2]), c)) record_add(&s, c, p->rank);
    }
    if (s.count > s.messages || atoll(m[5]) > s.received) wrong(p, m[5], "it gets others");
}

/* "backward tp 24 KiB in 6": the kind that stands before the numbers. */
typedef enum { FORWARD, BACKWARD, GRADIENTS, WEIGHTS, AGAIN, AFTER, OPTIMIZER, KINDS } Kind;
static const char *const kinds[KINDS] = {"forward",  "backward",   "weight gradients",
                                         "weights",  "made again", "all parameters after",
                                         "optimizer"};
static Kind kind_at(const Page *p) {
    Kind kind = KINDS;
    size_t best = 0;
    for (int k = 0; k < KINDS; k++)
        for (const char *x = strstr(p->text, kinds[k]); x && (size_t)(x - p->text) < p->at;
             x = strstr(x + 1, kinds[k])) {
            size_t end = (size_t)(x - p->text) + strlen(kinds[k]);
            if (end > best) best = end, kind = (Kind)k;
        }
    return kind;
}
static Kind kind_of(const Page *p, const TraceCollective *c) {
    if (c->pass == PHASE_OPTIMIZER) return c->reduce ? OPTIMIZER : AFTER;
    if (c->subject.role == OF_PARAM_GRADIENT) return GRADIENTS;
    if (trace_param(p->t, c->value)) return WEIGHTS;
    if (subject_is_gradient(c->subject)) return BACKWARD;
    return c->pass == PHASE_BACKWARD ? AGAIN : FORWARD;
}
/* Sums of what the rank sends over the axes, of which kind and of which part. */
static RecordSum over_axes(const Page *p, const char *axes, const char *pass, Kind kind,
                           Scope scope) {
    RecordSum s = {0};
    bool overview = !strcmp(p->o.view, "overview");
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        Kind is = kind_of(p, c);
        if (overview && is == AGAIN) is = BACKWARD;
        if (overview && is == AFTER) is = OPTIMIZER;
        if (strcmp(words_axis_list(p->a, p->t, c->axis), axes) || c->skipped) continue;
        if (!record_member(c, p->rank) || !record_in_pass(p->t, c, pass)) continue;
        if (kind < KINDS && is != kind) continue;
        if (!overview && is != AFTER && !in_scope(p, scope, c)) continue;
        record_add(&s, c, p->rank);
    }
    return s;
}
static bool has_messages(const Page *p, const char *axes) {
    for (int i = 0; i < p->t->n_collectives; i++)
        if (!strcmp(p->t->collectives[i].op, "send") &&
            !strcmp(words_axis_list(p->a, p->t, p->t->collectives[i].axis), axes))
            return true;
    return false;
}
static bool has_units(const Page *p) {
    bool units = false;
    for (int i = 0; i < p->t->n_collectives; i++) units |= p->t->collectives[i].n_with > 0;
    return units;
}
/* "forward tp 24 KiB in 9 collectives" of a picture of several passes. */
static void sent_over(const Page *p, char **m) {
    bool overview = !strcmp(p->o.view, "overview"), one = p->t->pass == PASS_FORWARD;
    Scope scope = {.all = !p->o.part, .part = p->o.part};
    bool all = strstr(p->text, "all that is drawn") || !strstr(p->all, "a Transformer block needs");
    if (!overview && (strstr(p->text, "in one ") || strstr(p->text, "Not drawn")) && !p->o.part) {
        /* those that are drawn and those that are not, together */
        if (has_messages(p, m[1])) return; /* of stages: those beside what is drawn */
        scope = (Scope){.block = !all, .all = all};
        RecordSum s = over_axes(p, m[1], p->o.pass, KINDS, scope);
        if (atoll(m[3]) > s.count) is_count(p, m[3], s.count);
        return;
    }
    if (!overview && (p->pages > 1 || strstr(p->text, "in one "))) return; /* titles are held */
    RecordSum s = over_axes(p, m[1], p->o.pass, overview && one ? KINDS : kind_at(p), scope);
    if (!overview && has_messages(p, m[1])) return; /* those beside what is drawn */
    Kind kind = kind_at(p);
    if (p->o.part && (kind == GRADIENTS || kind == WEIGHTS) && has_units(p))
        return; /* a unit travels for several parts and is told of each */
    if (p->o.part && same(p->t->model_name, "attention"))
        return; /* the loss takes what it ends in */
    is_count(p, arena_printf(p->a, "%lld", atoll(m[3]) + atoll(m[6])), s.count - s.received);
    if (*m[4] || *m[5]) { /* in whose words */
        bool messages = strstr(m[4], "message") != NULL;
        is_count(p, messages ? m[3] : *m[6] ? m[6] : "0", s.messages - s.received);
    }
    is_bytes(p, m[2], s.bytes);
}
/* "8 of them again for backward", over several axes "11 of these 23": gathers of weights that come
 * after the first gradient is made, and all of them. */
static void gathered_again(const Page *p, char **m) {
    const Scope scope = {.all = !p->o.part, .part = p->o.part};
    int64_t again = 0, all = 0;
    int first = -1;
    for (int i = 0; i < p->t->n_computes; i++) {
        const TraceCompute *c = &p->t->computes[i];
        if (subject_is_gradient(c->makes) && (first < 0 || c->step < first)) first = c->step;
    }
    if (p->pages > 1 || (p->o.part && has_units(p))) return; /* as of what is sent */
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        if (kind_of(p, c) != WEIGHTS || c->skipped || !record_member(c, p->rank)) continue;
        if (in_scope(p, scope, c)) all++, again += c->step > first;
    }
    is_count(p, m[1], again);
    if (*m[3]) is_count(p, m[3], all);
}
/* "backward nothing over pp": where messages only come. */
static void sends_nothing(const Page *p, char **m) {
    bool one = p->t->pass == PASS_FORWARD;
    RecordSum s = over_axes(p, m[1], p->o.pass, one ? KINDS : kind_at(p), (Scope){.all = true});
    if (s.bytes || !s.count || s.count > s.received) wrong(p, m[1], "it sends");
}
/* "part 2 of attention": a step makes what is numbered so. */
static void part_of_attention(const Page *p, char **m) {
    const char *made = arena_printf(p->a, "attn_part.%s", m[1]);
    bool any = false;
    for (int i = 0; i < p->t->n_computes && !any; i++)
        any = text_same(words_leaf(p->t->computes[i].output), made);
    if (!any) wrong(p, m[1], "no such part");
}

/* "16 of 32 heads": as the shapes of some value say on this rank; all where none is cut. */
static void heads(const Page *p, char **m) {
    int64_t whole = (int64_t)dim(p, "H", -1), here = whole;
    for (int i = 0; i < p->t->n_values; i++) {
        const TraceShape *s = &p->t->values[i].shape;
        for (int d = 0; d < s->nd; d++) {
            if (s->global_shape[d] != whole || s->dim_symbol[d][0] != 'H') continue;
            if (s->dim_symbol[d][1] && s->dim_symbol[d][1] != '/') continue;
            for (int k = 0; k < s->n_local; k++)
                if (rankset_has(&s->local[k].ranks, p->rank) && s->local[k].shape[d] == atoll(m[1]))
                    here = atoll(m[1]);
        }
    }
    is_count(p, m[1], here);
    if (*m[2]) is_count(p, m[3], whole);
}
/* The rank's block; NULL: it has none. */
static const TraceLocal *held_here(const TraceShape *s, int64_t rank) {
    for (int k = 0; k < s->n_local; k++)
        if (rankset_has(&s->local[k].ranks, rank)) return &s->local[k];
    return NULL;
}
/* What steps of the backward pass read of the forward pass: kept, or (`again`) made once more. A
 * value that several read, and its views of the same shape, count once; blocks that go round a ring
 * have a buffer each, under one name. */
static int64_t read_back(const Page *p, bool again) {
    const Trace *t = p->t;
    const TraceValue *seen[1024];
    int n = 0, backward = records_backward(t);
    int64_t bytes = 0;
    Scope scope = {.all = !p->o.part, .part = p->o.part};
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *x = &t->computes[i];
        TraceCollective as = {.layer = x->layer, .part = part_at(t, x), .value = ""};
        bool back = subject_is_gradient(x->makes) && rankset_has(&x->ranks, p->rank);
        for (int k = 0; back && k < x->n_inputs; k++) {
            const TraceValue *v = NULL;
            if (subject_is_gradient(subject_of(x->inputs[k]))) continue;
            for (int j = 0; j < t->n_values && !v; j++)
                if (t->values[j].step == x->input_step[k] &&
                    same(t->values[j].shape.name, x->inputs[k]) &&
                    held_here(&t->values[j].shape, p->rank))
                    v = &t->values[j];
            if (!v || trace_param(t, v->shape.name) || n == 1024) continue;
            if ((v->step >= backward) != again) continue;
            if (!in_scope(p, scope, &as)) continue;
            bool known = false;
            for (int j = 0; j < n; j++)
                known |= seen[j] == v || ((!seen[j]->alive || !v->alive) &&
                                          same(seen[j]->shape.name, v->shape.name) &&
                                          same(seen[j]->shape.symbolic, v->shape.symbolic));
            if (known) continue;
            seen[n++] = v;
            bytes += held_here(&v->shape, p->rank)->bytes;
        }
    }
    return bytes;
}
static void kept(const Page *p, char **m) { is_bytes(p, m[1], read_back(p, false)); }
static void made_again(const Page *p, char **m) { is_bytes(p, m[1], read_back(p, true)); }
/* "AllReduce ×3": as many stand side by side, and no more than there are. */
static void side_by_side(const Page *p, char **m) {
    int64_t n = 0;
    for (int i = 0; i < p->t->n_collectives; i++)
        n += same(coll_word(p->t->collectives[i].op)->name, m[1]);
    if (atoll(m[2]) > n || atoll(m[2]) < 2) is_count(p, m[2], n);
}
/* "AllGather k, v ×2": one of each value, and as many as there are at least. A ring's first hop may
 * stand for all: "Shift k, v ×6" on four ranks, "Shift dk ×3". */
static void of_values(const Page *p, char **m) {
    int64_t values = 1, hops = 1, at;
    for (const char *q = m[2]; *q; q++) values += *q == ',';
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        if (same(c->op, "shift") && same(coll_word(c->op)->name, m[1]))
            hops = axis(p, c->axis, &at) - 1;
    }
    is_count(p, m[6], atoll(m[6]) == values ? values : values * hops);
    side_by_side(p, (char *[]){m[0], m[1], m[6]});
}
/* "slice ×3" */
static void slices(const Page *p, char **m) {
    int64_t n = 0;
    for (int i = 0; i < p->t->n_moves; i++) n += same(p->t->moves[i].op, "slice");
    if (atoll(m[1]) > n || atoll(m[1]) < 2) is_count(p, m[1], n);
}
/* ---- pipeline ---- */
typedef struct {
    double end, busy, least; /* least: of the rank that works least */
    int ranks, parts, most, fewest;
} Pipeline;
static Pipeline pipeline(const Page *p) {
    Pipeline x = {.ranks = 1, .least = 1e300, .fewest = 1 << 30};
    int64_t at;
    x.ranks = (int)axis(p, p->t->schedule_axis, &at);
    for (int i = 0; i < p->t->n_actions; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= p->t->actions[k].microbatch == p->t->actions[i].microbatch;
        x.parts += !again;
        x.end = fmax(x.end, p->t->actions[i].end);
    }
    for (int r = 0; r < x.ranks; r++) {
        double busy = records_busy(p->t, r);
        int n = records_in_flight(p->t, r);
        x.busy += busy, x.least = fmin(x.least, busy);
        x.most = n > x.most ? n : x.most, x.fewest = n < x.fewest ? n : x.fewest;
    }
    return x;
}
static void pipe_title(const Page *p, char **m) {
    Pipeline x = pipeline(p);
    is_count(p, m[1], x.ranks);
    is_count(p, m[2], x.parts);
    is_share(p, m[4], x.end * x.ranks - x.busy, x.end * x.ranks);
}
static void place_ranks(const Page *p, char **m) {
    is_count(p, m[1], p->t->ranks / pipeline(p).ranks);
}
static void pipe_end(const Page *p, char **m) { is_time(p, m[1], pipeline(p).end); }
static void pipe_idle(const Page *p, char **m) {
    Pipeline x = pipeline(p);
    is_time(p, m[1], x.end - x.least);
    is_time(p, m[2], x.end - x.busy / x.ranks);
}
static void pipe_even(const Page *p, char **m) { is_time(p, m[1], p->t->bubble); }
static void pipe_stages(const Page *p, char **m) { is_time(p, m[1], fabs(p->t->bubble_stages)); }
/* What a stage takes for one micro-batch by the actions that are drawn, by itself. */
static double stage_takes(const Trace *t, int stage) {
    double of[4] = {0}; /* F, B, I, W */
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *a = &t->actions[i];
        bool second = i && t->actions[i - 1].joined && t->actions[i - 1].rank == a->rank;
        if (a->stage != stage || a->joined || second) continue;
        of[strchr("FBIW", *a->kind) - "FBIW"] = a->end - a->start;
    }
    return of[0] + fmax(of[1], of[2] + of[3]);
}
static void pipe_slow(const Page *p, char **m) {
    double most = 0, sum = 0;
    for (int g = 0; g < p->t->stages; g++) {
        most = fmax(most, stage_takes(p->t, g));
        sum += stage_takes(p->t, g) / p->t->stages;
    }
    double said_mean = strtod(m[2], NULL);
    if (fabs(said_mean - most / sum) > 0.0051) wrong(p, m[2], arena_printf(p->a, "%g", most / sum));
    int named = 0, slow = 0;
    for (char *at = m[1], *end; *at; at = *end ? end + 1 : end) { /* "0 to 3, 7" */
        int from = (int)strtol(at, &end, 10), to = from;
        if (!strncmp(end, " to ", 4)) to = (int)strtol(end + 4, &end, 10);
        for (int g = from; g <= to; g++, named++)
            if (stage_takes(p->t, g) < 0.98 * most) is_count(p, at, -1);
    }
    for (int g = 0; g < p->t->stages; g++) slow += stage_takes(p->t, g) > 0.995 * most;
    if (named < slow) wrong(p, m[1], "more stages are as slow");
}
static void pipe_messages(const Page *p, char **m) {
    is_time(p, m[1], fabs(p->t->bubble_messages));
}
static void pipe_most(const Page *p, char **m) { is_count(p, m[1], pipeline(p).most); }
static void pipe_fewest(const Page *p, char **m) { is_count(p, m[1], pipeline(p).fewest); }

/* ---- overview ---- */
/* "3 of them no line of the plan asks for" */
static void not_asked(const Page *p, char **m) {
    int n = 0;
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        n += c->inferred && record_member(c, p->rank) && record_in_pass(p->t, c, p->o.pass);
    }
    is_count(p, m[1], n);
}
static void overview_needs(const Page *p, char **m) {
    const char *pass = *m[11] ? m[12] : NULL;
    RecordSum s = records_sent(p->t, p->rank, pass, -1);
    int64_t weights = records_weights(p->t, p->rank, -1, false);
    is_bytes(p, m[3], weights);
    is_count(p, *m[7] ? m[7] : "0", s.count - s.messages);
    is_count(p, *m[10] ? m[10] : "0", s.messages - s.received);
    if (*m[5]) is_bytes(p, m[5], s.bytes);
    if (*m[2]) is_count(p, m[2], p->rank);
    /* "a rank": each of them; of many some, by a step that no axis divides */
    for (int64_t r = 0; r < p->t->ranks && !*m[2]; r += 1 + p->t->ranks / 16 / 2 * 2) {
        RecordSum other = records_sent(p->t, r, pass, -1);
        bool same = records_weights(p->t, r, -1, false) == weights && other.bytes == s.bytes &&
                    other.count == s.count;
        if (!same)
            wrong(p, m[1], arena_printf(p->a, "rank %lld, others differ", (long long)p->rank));
    }
}

/* ---- timeline ---- */
/* The first rank of "3", "ranks 4-7", "dp=0:63 pp=0": a set of ranks that do the same. */
static int64_t rank_named(const Page *p, const char *x) {
    RankSet *part;
    int n = trace_parts(p->t, p->a, &part);
    for (int i = 0; i < n && !isdigit((unsigned char)*x); i++) {
        const char *name = rankset_text(&part[i], p->a);
        if (!strncmp(x, name, strlen(name))) return rankset_first(&part[i]);
    }
    return strtoll(x, NULL, 10);
}
static int64_t told_rank(const Page *p) {
    static const char *const who[] = {"On rank", "The busiest, rank", "The last to end, rank"};
    for (int i = 0; i < 3; i++) {
        const char *x = strstr(p->all, who[i]);
        if (x) return rank_named(p, x + strlen(who[i]) + strspn(x + strlen(who[i]), "s "));
    }
    return p->rank;
}
static void step_time(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, told_rank(p));
    const char *of = records_span(p->a, p->t);
    if (strcmp(m[1] + 1, of + 1)) wrong(p, m[1], of);
    is_time(p, m[2], x.span);
    is_time(p, m[3], x.compute);
    assert_int_equal(*m[4] != 0, x.comm > 0);
    if (*m[4]) is_time(p, m[5], x.exposed);
    if (*m[6]) is_time(p, m[7], x.waiting);
}
static void hidden_share(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, told_rank(p));
    is_time(p, m[1], x.comm);
    is_share(p, m[2], x.hidden, x.comm);
    is_share(p, *m[3] ? m[4] : "0 %", x.comm - x.exposed - x.hidden, x.comm);
}
static void waits(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, told_rank(p));
    is_share(p, m[1], x.still, x.span);
}

static void hidden_only(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, told_rank(p));
    is_share(p, m[1], x.hidden, x.comm);
}
static void waits_for_others(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, *m[1] ? rank_named(p, m[2]) : told_rank(p));
    is_share(p, m[3], x.waiting, x.span);
}
static void whose_wait(const Page *p, char **m) {
    RecordTime x = records_time(p->a, p->t, rank_named(p, m[2]));
    is_time(p, m[1], x.span);
    is_time(p, m[3], x.waiting);
}
/* "ranks 4-7 first": those that the sum is of are among them. */
static void told_first(const Page *p, char **m) {
    int64_t told = told_rank(p);
    if (!isdigit((unsigned char)*m[1])) {
        is_count(p, arena_printf(p->a, "%lld", (long long)rank_named(p, m[1])), told);
        return;
    }
    for (char *save, *c = strtok_r(m[1], ",", &save); c; c = strtok_r(NULL, ",", &save)) {
        const char *to = strchr(c, '-');
        if (told >= atoll(c) && told <= atoll(to ? to + 1 : c)) return;
    }
    wrong(p, m[1], arena_printf(p->a, "rank %lld", (long long)told));
}
/* ---- timeline of a pipeline ---- */
static int64_t staged_rank(const Page *p) {
    const char *x = strstr(p->all, "The busiest, "), *who = x ? strstr(x, ", rank") : NULL;
    return who ? rank_named(p, who + strcspn(who, "k") + 1 + strspn(strchr(who, 'k') + 1, "s "))
               : p->rank;
}
static void whole_step(const Page *p, char **m) {
    RecordStep x = records_step(p->a, p->t, staged_rank(p));
    is_count(p, m[1], (int64_t)dim(p, "microbatches", 1));
    is_time(p, m[3], x.span);
    is_time(p, m[4], x.compute);
    assert_int_equal(*m[5] != 0, x.comm > 0);
    if (*m[5]) is_time(p, m[6], x.exposed);
    if (*m[7]) is_time(p, m[8], x.waiting);
    is_time(p, m[9], x.idle);
}
static void step_hidden(const Page *p, char **m) {
    RecordStep x = records_step(p->a, p->t, staged_rank(p));
    is_time(p, m[1], x.comm);
    is_share(p, m[2], x.hidden, x.comm);
    is_share(p, *m[3] ? m[4] : "0 %", x.comm - x.exposed - x.hidden, x.comm);
}
static void once_a_step(const Page *p, char **m) {
    RecordStep x = records_step(p->a, p->t, staged_rank(p));
    is_time(p, *m[1] ? m[2] : "0 s", x.once_compute); /* what there is none of is not said */
    is_time(p, *m[3] ? m[5] : "0 s", x.once_comm);
    is_time(p, *m[3] ? m[6] : "0 s", x.once_exposed);
    assert_int_equal(*m[7] != 0, x.once_exposed < x.once_comm * (1 - 1e-9));
}
/* Who is busiest, who idles longest: of the first rank of each class. */
static void step_shares(const Page *p, char **m) {
    RankSet *part;
    RecordStep x = records_step(p->a, p->t, staged_rank(p)), least = x, most = x;
    for (int n = trace_parts(p->t, p->a, &part), i = 0; i < n; i++) {
        RecordStep y = records_step(p->a, p->t, rankset_first(&part[i]));
        if (y.idle < least.idle) least = y;
        if (y.idle > most.idle) most = y;
    }
    if (*m[2]) {
        is_count(p, m[3], x.coord);
        is_share(p, m[10], least.idle, x.span);
    }
    if (*m[4]) is_count(p, m[4], p->rank);
    is_share(p, m[5], x.compute, x.span);
    if (*m[6]) is_share(p, m[7], x.exposed, x.span);
    if (*m[8]) is_share(p, m[9], x.waiting, x.span);
    is_share(p, m[10], x.idle, x.span);
    if (*m[11]) is_share(p, m[14], most.idle, x.span);
    else if (most.idle > x.idle * (1 + 1e-6) + 1e-9 * x.span) wrong(p, m[0], "another idles more");
}
static void busiest_place(const Page *p, char **m) {
    is_count(p, m[2], records_step(p->a, p->t, staged_rank(p)).coord);
}
static void lines_drawn(const Page *p, char **m) {
    int n = 0;
    for (int i = 0; i < p->s->n_groups; i++) n += !strcmp(p->s->groups[i].what, "line");
    if (p->pages == 1) is_count(p, m[1], n);
    if (!*m[3] || p->pages > 1) return;
    int wide = 0, least = 1 << 30, most = 1; /* lines that say how wide they are drawn */
    for (int i = 0; i < p->s->n_marks; i++)
        for (int k = 0; k < p->s->marks[i].n_run; k++) {
            const char *said = strstr(p->s->marks[i].run[k].s, "drawn ");
            int times = said ? atoi(said + strlen("drawn ")) : 0;
            if (!times || strstr(said, "× to ")) continue;
            wide++;
            least = times < least ? times : least, most = times > most ? times : most;
        }
    is_count(p, m[3], wide < n ? 1 : least);
    is_count(p, m[4], most);
}

/* ---- memory ---- */
/* Where most lives beside gradients, on some rank. */
static void most_at(const Page *p, char **m, bool copies) {
    bool right = false;
    for (int64_t r = 0; r < p->t->ranks && !right; r++) {
        MemCourse c;
        int64_t most = -1;
        int step = -1;
        if (!memory_course(p->a, p->t, r, &c)) continue;
        for (int i = 0; i < c.n_steps; i++) {
            const int64_t all = (copies ? c.all[i] : c.live[i]) - c.grad[i];
            if (all > most) step = i, most = all;
        }
        right = step == atoi(m[1]);
    }
    if (!right) wrong(p, m[0], "no rank has most there");
}
static void most_beside(const Page *p, char **m) { most_at(p, m, false); }
static void most_gathered(const Page *p, char **m) { most_at(p, m, true); }
static void at_peak(const Page *p, char **m) {
    int64_t most = 0, ranks = 0;
    for (int64_t r = 0; r < p->t->ranks; r++) {
        int64_t n = records_peak(p->t, r);
        most = n > most ? n : most;
    }
    const char *as = bytes_text(most, p->a); /* ranks that hold as much as is printed */
    for (int64_t r = 0; r < p->t->ranks; r++)
        ranks += !strcmp(bytes_text(records_peak(p->t, r), p->a), as);
    is_count(p, *m[2] ? m[2] : *m[4] ? m[4] : "1", ranks);
    is_bytes(p, m[6], most);
}
static void capacity(const Page *p, char **m) {
    is_bytes(p, m[2], (int64_t)(strtod(m[1], NULL) * 1e9));
}
static void prefetched(const Page *p, char **m) { is_count(p, m[1], TRACE_PREFETCH); }
/* What does not fit is what is held at the peak beyond the capacity. */
static void too_much(const Page *p, char **m) {
    const char *gb = strstr(p->all, " GB = ");
    while (gb && gb > p->all && gb[-1] != ' ') gb--;
    int64_t most = 0;
    for (int64_t r = 0; r < p->t->ranks; r++) {
        int64_t n = records_peak(p->t, r);
        most = n > most ? n : most;
    }
    is_bytes(p, m[1], most - (int64_t)(gb ? strtod(gb, NULL) * 1e9 : 0));
}
/* More rows than are expected. */
static void beyond(const Page *p, char **m) {
    const char *at = strstr(p->all, "as expected: ");
    double unit[2] = {1, 1}, x[2];
    const char *both[2] = {at ? at + strlen("as expected: ") : m[1], m[1]};
    for (int i = 0; i < 2; i++) {
        char *end;
        x[i] = strtod(both[i], &end);
        const char *u = strchr(" KMGTP", end[1]);
        for (const char *k = " KMGTP"; u && k < u; k++) unit[i] *= 1024;
    }
    if (x[1] * unit[1] < 0.99 * x[0] * unit[0]) wrong(p, m[1], "more");
}
/* Live values of that name, and their gradients, at some step. */
/* m[2], m[4], m[6]: "gradients of", "values after", "and their gradients"; m[5]: of what. */
static void named(const Page *p, char **m) {
    bool is = false, grads = *m[2] || *m[6], own = !*m[2];
    for (int at = 0; at < p->t->n_values && !is; at++) {
        int64_t bytes = 0;
        for (int i = 0; i < p->t->n_values; i++) {
            const TraceValue *v = &p->t->values[i];
            const char *of = v->subject.of ? v->subject.of : v->shape.name,
                       *word = words_value(p->a, p->t, of);
            if (!v->alive || strcmp(!strncmp(word, "after ", 6) ? word + 6 : word, m[5])) continue;
            if (v->subject.role == OF_PARAM_GRADIENT) continue;
            if (p->t->values[at].step < v->alive->from || p->t->values[at].step > v->alive->until)
                continue;
            if (!(subject_is_gradient(v->subject) ? grads : own)) continue;
            for (int k = 0; k < v->shape.n_local; k++)
                if (rankset_has(&v->shape.local[k].ranks, p->rank))
                    bytes += v->shape.local[k].bytes;
        }
        is = !strcmp(bytes_text(bytes, p->a), m[1]);
    }
    if (!is) wrong(p, m[1], "no sum of such values");
}
static void alive(const Page *p, char **m) { is_bytes(p, m[1], records_live(p->t, atoll(m[2]))); }

/* ---- mesh ---- */
static void classes(const Page *p, char **m) { is_count(p, m[1], p->t->n_classes); }
/* "class 0 ranks 0-3 ×4 (embedding, layers 0-1)": who is in it, and the layers it computes. */
static void one_class(const Page *p, char **m) {
    int64_t k = atoll(m[1]);
    if (k >= p->t->n_classes) {
        wrong(p, m[1], "no such class");
        return;
    }
    const RankSet *of = &p->t->classes[k];
    is_text(p, m[2], rankset_text(of, p->a));
    is_count(p, m[3], rankset_count(of));
    for (const char *c = m[4]; *c; c += *c != '\0') {
        c += strcspn(c, "0123456789");
        char *end;
        bool computes = false;
        int layer = *c ? (int)strtol(c, &end, 10) : -1;
        for (int i = 0; *c && i < p->t->n_computes; i++)
            computes |= p->t->computes[i].layer == layer &&
                        rankset_has(&p->t->computes[i].ranks, rankset_first(of));
        if (*c && !computes) wrong(p, m[4], "another layer");
        if (*c) c = end - 1;
    }
}
/* Groups of different axes, or of pairs of them, in which the rank sends or gets anything, and the
 * axes that do not. */
static void in_groups(const Page *p, char **m) {
    int n = 0;
    is_count(p, m[1], p->rank);
    for (int i = 0; i < p->s->n_groups; i++) n += !strcmp(p->s->groups[i].what, "groups");
    if (p->pages == 1) is_count(p, m[2], n);
}
static void bars(const Page *p, char **m) {
    int n = 0;
    for (int i = 0; i < p->t->n_axes; i++) n += p->t->axes[i].size > 1;
    is_count(p, m[1], n);
    is_count(p, m[2], p->rank);
}
static void planes(const Page *p, char **m) {
    is_count(p, m[1], p->t->ranks);
    is_count(p, arena_printf(p->a, "%lld", atoll(m[2]) * atoll(m[3]) * atoll(m[4])), p->t->ranks);
}
/* "rank = tp + 2·(cp + 2·dp)", worked out for the last rank but one. */
static void formula(const Page *p, char **m) {
    Page q = *p;
    q.rank = p->t->ranks > 1 ? p->t->ranks - 2 : 0;
    int64_t times = 1, rank = 0, at;
    for (const char *c = m[1]; *c;) {
        size_t n = strspn(c, "abcdefghijklmnopqrstuvwxyz_.0123456789");
        char *word = arena_strndup(p->a, c, n);
        if (n && isdigit((unsigned char)*c)) times *= atoll(word);
        else if (n && axis(&q, word, &at) >= 0) rank += times * at;
        c += n ? n : 1;
    }
    if (rank != q.rank) wrong(p, m[1], arena_printf(p->a, "not rank %lld", (long long)q.rank));
}

/* ---- storyboard ---- */
static const TraceCollective *told_of(const Page *p) {
    const char *x = strstr(p->all, "In this plan: step ");
    int step = x ? atoi(x + strlen("In this plan: step ")) : -1;
    for (int i = 0; i < p->t->n_collectives; i++)
        if (p->t->collectives[i].step == step) return &p->t->collectives[i];
    return NULL;
}
static const char *told_value(const Page *p, char **m, const char *value) {
    const char *path = value;
    if (*m[2]) words_value_path(p->a, p->t, value, &path);
    return path;
}
static void story_step(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    for (int i = 0; i < p->t->n_moves && !c; i++)
        if (p->t->moves[i].step == atoi(m[1])) {
            is_text(p, m[4], told_value(p, m, p->t->moves[i].value));
            return;
        }
    if (!c) wrong(p, m[1], "no such collective");
    else is_text(p, m[4], told_value(p, m, c->value));
}
/* An FSDP unit's other tensors, which travel with the one that is named. */
static void story_more(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    is_count(p, m[1], c ? c->n_with : 0);
}
static void story_ranks(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    if (c) is_count(p, m[1], groups_size(&c->groups));
}
/* The whole that the ranks of a group hold together, or each of them. */
static void story_volume(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    if (!c) return;
    TraceTraffic x = collective_on(c, p->rank);
    int64_t n = x.bytes_in > x.bytes_out ? x.bytes_in : x.bytes_out;
    if (strcmp(m[1], bytes_text(n, p->a))) wrong(p, m[1], bytes_text(n, p->a));
}
static void story_steps(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    if (!c) return;
    int64_t n = groups_size(&c->groups), times = c->times ? c->times : 1;
    bool twice = !strncmp(m[3], "2(", 2), hop = !strncmp(m[3], "a hop", 5);
    is_count(p, *m[1] ? m[2] : "1", times);
    is_count(p, m[4], times * (hop ? 1 : (n - 1) * (twice ? 2 : 1)));
    if (twice != !strcmp(c->op, "all_reduce")) wrong(p, m[3], c->op);
}
static void story_sent(const Page *p, char **m) {
    const TraceCollective *c = told_of(p);
    if (!c) return;
    is_bytes(p, m[1], collective_on(c, p->rank).bytes_sent);
}
/* ---- a ring of attention ---- */
static void ring_size(const Page *p, char **m) {
    int64_t at, n = axis(p, m[1], &at);
    is_count(p, m[2], n);
    is_count(p, m[3], n - 1);
}
/* What the hops of one layer's forward pass bring on. */
static void ring_sent(const Page *p, char **m) {
    int64_t first, last, bytes = 0;
    layers(p, &first, &last);
    for (int i = 0; i < p->t->n_collectives; i++) {
        const TraceCollective *c = &p->t->collectives[i];
        if (!strcmp(c->op, "shift") && c->pass == PHASE_FORWARD && c->layer == first)
            bytes += collective_on(c, p->rank).bytes_sent;
    }
    is_bytes(p, m[1], bytes);
}
/* The position of token i of rank r, of n ranks with s tokens each. */
static int64_t position(const char *order, int64_t r, int64_t i, int64_t n, int64_t s) {
    if (!strcmp(order, "striped")) return i * n + r;
    if (!strcmp(order, "contiguous")) return r * s + i;
    return i < s / 2 ? r * (s / 2) + i : (2 * n - 1 - r) * (s / 2) + i - s / 2;
}
/* "all steps together last 1.75 times as long as with even shares": pairs of a query and a key that
 * it sees, of the busiest rank in each step. */
static void ring_slower(const Page *p, char **m) {
    static const char *const orders[] = {"contiguous", "zigzag", "striped"};
    const char *order = NULL;
    for (int i = 0; i < 3; i++)
        if (strstr(p->all, arena_printf(p->a, "%s order", orders[i]))) order = orders[i];
    int64_t n = 0, at, all = 0, slowest = 0, s = (int64_t)dim(p, "S", 0);
    const char *over = strstr(p->all, "attention over ");
    over += strlen("attention over ");
    n = axis(p, arena_strndup(p->a, over, strcspn(over, ":")), &at);
    bool other = strstr(p->all, "positions") || strstr(p->all, "packs") ||
                 strstr(p->all, "pack other") || strstr(p->all, "no mask");
    if (!order || n < 1 || s % (2 * n) || s > 1024 || other) return;
    s /= n;
    for (int64_t step = 0; step < n; step++) {
        int64_t busiest = 0;
        for (int64_t r = 0; r < n; r++) {
            int64_t pairs = 0;
            for (int64_t q = 0; q < s; q++)
                for (int64_t k = 0; k < s; k++)
                    pairs +=
                        position(order, (r + n - step) % n, k, n, s) <= position(order, r, q, n, s);
            all += pairs;
            busiest = pairs > busiest ? pairs : busiest;
        }
        slowest += busiest;
    }
    is_text(p, m[1], arena_printf(p->a, "%.2f", (double)(slowest * n) / (double)all));
}
static void ring_of(const Page *p, char **m) {
    for (int i = 0; i < p->t->n_collectives; i++)
        if (!strcmp(p->t->collectives[i].op, "shift")) {
            is_count(p, m[1], groups_count(&p->t->collectives[i].groups));
            return;
        }
    wrong(p, m[1], "no hop");
}
/* As many lengths as the picture lists are of documents: no more than a row has tokens. */
static void packed(const Page *p, char **m) {
    if (atoll(m[1]) < 2 || atoll(m[1]) > (int64_t)dim(p, "S", 0))
        wrong(p, m[1], "fewer than tokens");
}

/* ---- shards ---- */
static void shard_weights(const Page *p, char **m) {
    int layer = *m[3] ? atoi(m[4]) : -1;
    is_bytes(p, m[1], records_weights(p->t, p->rank, layer, false));
    is_bytes(p, m[2], records_weights(p->t, p->rank, layer, true));
}

/* Held beside it: the ranks that `told_rank` reads, classes that test_title_facts.c has. */
static void nothing_more(const Page *p, char **m) { (void)p, (void)m; }
static void in_groups_of(const Page *p, char **m) {
    is_count(p, m[1], p->t->ranks);
    in_groups(p, m + 1);
}
/* The size of an axis or of a group of axes by its name; -1: the plan has none. */
static int64_t named_size(const Page *p, const char *name) {
    int64_t at, size = axis(p, name, &at);
    for (int g = 0; g < p->t->n_groups && size < 0; g++) {
        if (strcmp(p->t->groups[g].name, name)) continue;
        size = 1;
        for (char *save, *c = strtok_r(arena_strdup(p->a, p->t->groups[g].axes), "*", &save); c;
             c = strtok_r(NULL, "*", &save))
            size *= named_size(p, c);
    }
    return size;
}
/* "dp 2 · tp 2": each axis as large as it is, all together the ranks; one of the experts' as many
 * as they have different ranks. */
static void one_mesh(const Page *p, const char *words, bool experts) {
    int64_t ranks = 1, apart = 1;
    bool among = false;
    for (int i = 0; i < p->t->n_params && apart == 1; i++) {
        const TraceShape *w = &p->t->params[i].compute;
        const TraceLocal *l = w->nd > 2 ? words_find_local(w, p->rank) : NULL;
        if (l && l->shape[0]) apart = w->global_shape[0] / l->shape[0];
    }
    for (char *save, *c = strtok_r(arena_strdup(p->a, words), "\xc2\xb7", &save); c;
         c = strtok_r(NULL, "\xc2\xb7", &save)) {
        char name[64], size[64];
        if (sscanf(c, " %63s %63[0-9]", name, size) != 2) {
            wrong(p, c, "an axis and its size");
            continue;
        }
        is_count(p, size, named_size(p, name));
        ranks *= atoll(size);
        among |= atoll(size) == apart;
    }
    if (ranks != p->t->ranks) wrong(p, words, "another number of ranks");
    if (experts && apart > 1 && !among) wrong(p, words, "another number of shares of experts");
}
static void two_meshes(const Page *p, char **m) {
    is_count(p, m[1], p->t->ranks);
    one_mesh(p, m[2], false);
    one_mesh(p, m[3], true);
}
static void in_bars(const Page *p, char **m) {
    is_count(p, m[1], p->t->ranks);
    bars(p, m + 1);
}
static void one_microbatch(const Page *p, char **m) {
    is_count(p, m[1], (int64_t)dim(p, "microbatches", 1));
}

static void more_classes(const Page *p, char **m) { is_count(p, m[1], p->t->n_classes - 6); }
static void copies_of(const Page *p, char **m) {
    int64_t n = 1, at;
    for (char *save, *c = strtok_r(m[2], "\xc2\xb7", &save); c;
         c = strtok_r(NULL, "\xc2\xb7", &save))
        n *= axis(p, c, &at);
    is_count(p, m[1], n);
}
static void experts_cut(const Page *p, char **m) { copies_of(p, (char *[]){m[0], m[2], m[1]}); }
/* Kinds of mistakes: records of one op (over the same axis) about which the same is said. */
static void things_wrong(const Page *p, char **m) {
    enum { MOST = 64 };
    Arena *a = arena_new();
    const Trace *t = p->t;
    const char *kind[MOST];
    int n = 0, all = t->n_collectives + t->n_moves + t->n_computes;
    for (int i = 0; i < all && n < MOST; i++) {
        int k = i - t->n_collectives, l = k - t->n_moves;
        const TraceCollective *c = k < 0 ? &t->collectives[i] : NULL;
        const TraceLocalMove *v = k >= 0 && l < 0 ? &t->moves[k] : NULL;
        const TraceCompute *x = l >= 0 ? &t->computes[l] : NULL;
        const char *wrong = c ? c->wrong : v ? v->wrong : x->wrong;
        const char *planted = c ? c->planted : v ? v->planted : x->planted;
        if (!wrong && !planted) continue;
        const char *op = c ? c->op : v ? v->op : x->label ? x->label : x->op;
        bool again = c   ? c->pass == PHASE_BACKWARD && !subject_is_gradient(c->subject)
                     : x ? x->recompute
                         : false;
        kind[n] = arena_printf(a, "%s/%s/%s/%s/%d", op, c ? c->axis : "", wrong ? wrong : "",
                               planted ? planted : "", again);
        int same = 0;
        while (strcmp(kind[same], kind[n])) same++;
        n += same == n;
    }
    is_count(p, m[1], n - 1); /* the first is told */
    arena_free(a);
}
/* "d output, d norm and 1 more": as many as one thing is wrong with. */
static void more_values(const Page *p, char **m) {
    int listed = 1;
    int n = 0;
    for (const char *c = m[1]; *c; c++) listed += *c == ',';
    for (int i = 0; i < p->t->n_collectives; i++)
        n += p->t->collectives[i].wrong || p->t->collectives[i].planted;
    is_count(p, m[2], n - listed);
}

/* ---- roofline ---- */

/* Whose kernels they are: all ranks', or those that the subtitle names. */
static int64_t roof_rank(const Page *p) {
    const char *title = page_words(p->a, p->s, "title");
    size_t longest = 0;
    int64_t rank = 0;
    RankSet *part;
    const int n = trace_parts(p->t, p->a, &part);
    if (p->o.rank >= 0) return p->o.rank;
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(p->a, "rank%s %s", rankset_count(&part[i]) == 1 ? "" : "s",
                                        rankset_text(&part[i], p->a));
        if (strlen(name) <= longest || !strstr(title, name)) continue;
        longest = strlen(name), rank = rankset_first(&part[i]);
    }
    return rank;
}
/* Counted once for a page: every phrase asks. */
static RecordRoof roof(const Page *p) {
    static const Scene *of;
    static RecordRoof r;
    if (of != p->s) r = records_roof(p->a, p->t, roof_rank(p));
    of = p->s;
    return r;
}
static int bound(const char *word) {
    return !strcmp(word, "compute")  ? RECORD_COMPUTE_BOUND
           : !strcmp(word, "memory") ? RECORD_MEMORY_BOUND
                                     : RECORD_LAUNCH_BOUND;
}
/* The kind that takes most of the time. */
static void roof_some(const Page *p, char **m) {
    RecordRoof r = roof(p);
    const int b = bound(m[4]);
    for (int k = 0; k < RECORD_BOUNDS; k++)
        if (r.took[k] > r.took[b] * (1 + 1e-9)) wrong(p, m[4], "another takes longer");
    is_count(p, m[1], r.of[b]), is_count(p, m[2], r.kernels);
    is_share(p, m[5], r.took[b], r.compute);
}
static void roof_every(const Page *p, char **m) {
    RecordRoof r = roof(p);
    if (*m[2]) is_count(p, m[2], r.kernels);
    else if (!strcmp(m[1], "Both kernels are")) is_count(p, "2", r.kernels);
    else is_count(p, "1", r.kernels);
    if (r.of[bound(m[3])] != r.kernels) wrong(p, m[3], "not all");
}
static void roof_longer(const Page *p, char **m) {
    RecordRoof r = roof(p);
    is_count(p, m[1], r.longer), is_count(p, m[2], r.colls);
}
static void roof_all_colls(const Page *p, char **m) {
    RecordRoof r = roof(p);
    is_count(p, *m[2] ? m[2] : *m[1] == 'b' ? "2" : "1", r.colls);
    is_count(p, *m[3] == 'o' ? arena_printf(p->a, "%d", r.colls) : "0", r.longer);
}
static void roof_compute(const Page *p, char **m) { is_time(p, m[1], roof(p).compute); }
static void roof_bound(const Page *p, char **m) {
    RecordRoof r = roof(p);
    is_time(p, m[2], r.took[bound(m[1])]), is_count(p, m[3], r.of[bound(m[1])]);
}
static void roof_sent(const Page *p, char **m) {
    RecordRoof r = roof(p);
    is_time(p, m[1], r.sent);
    is_count(p, *m[4] ? m[4] : "0", r.longer);
    if (*m[4]) is_time(p, m[3], r.sent_longer);
}
static void roof_alone(const Page *p, char **m) { is_count(p, m[1], roof(p).alone); }
static void roof_messages(const Page *p, char **m) { is_count(p, m[1], roof(p).messages); }
static void roof_bare(const Page *p, char **m) {
    int64_t rank = roof_rank(p), n = 0;
    for (int i = 0; i < p->t->n_events; i++) {
        const TraceEvent *e = &p->t->events[i];
        n += rankset_has(&e->ranks, rank) && !strcmp(e->kind, "compute") &&
             !(e->moved > 0 && e->work >= 0.01 * e->moved);
    }
    is_count(p, m[1], n);
}
static void roof_ridge(const Page *p, char **m) {
    is_text(p, m[1], count_text(p->t->flop_rate / p->t->memory_rate, p->a));
}

/* What a picture counts. `#` is a whole number, `@` bytes, `~` a time, `%` a share, `&`
 * a set of ranks. */
typedef struct {
    const char *view; /* NULL: any */
    const char *phrase;
    void (*check)(const Page *, char **m);
} Phrase;
#define BESIDE "(, and % is behind other communication)?"
static const Phrase phrases[] = {
    {"timeline", "(ranks? (&) waits? )?% for other(s| ranks)", waits_for_others},
    {"timeline", "Of its ~ ranks? (&) waits? ~ for others", whose_wait},
    {"timeline",
     "(On|The busiest,|The last to end,|Busiest,|Last to end,) ranks? &:", nothing_more},
    {"timeline", "The busiest, ([^ ]+) #, ranks? &: ", busiest_place},
    {"timeline", "ranks? (&) first", told_first},
    {"roofline", "# of # kernels (is|are) ([a-z]+)-bound: % of the compute time", roof_some},
    {"roofline", "(The kernel is|Both kernels are|All # kernels are) ([a-z]+)-bound", roof_every},
    {"roofline", "# of # collectives outlasts? (its|their) products", roof_longer},
    {"roofline",
     "(the collective|both collectives|all # collectives) (is shorter|are shorter|outlasts?)",
     roof_all_colls},
    {"roofline", "Compute ~:", roof_compute},
    {"roofline", "([a-z]+)-bound ~ in # kernels?", roof_bound},
    {"roofline",
     "Collectives with products ~, added one by one, (none of which outlasts|~ of it in # that "
     "outlasts?) them",
     roof_sent},
    {"roofline", "# more collectives? ha(s|ve) no product", roof_alone},
    {"roofline", "# messages? between stages (is|are) not drawn", roof_messages},
    {"roofline", "# kernels? with less than 0.01 FLOP per byte", roof_bare},
    {"roofline", "# collectives? with more than 1000 times", nothing_more},
    {"roofline", "ridge at ([0-9.]+( [kMG])?) FLOP per byte", roof_ridge},
    {"roofline", "Marks without room for a name: [^.]*", nothing_more},
    {"roofline", "Marks with a number(, some for a few side by side)?: [^.]*", nothing_more},
    {"roofline", "all # ranks alike", all_ranks},
    {"roofline", "ranks? &", nothing_more},
    {"mesh", "· # more", more_classes},
    {"mesh", "# copies of each, over ([^;]*)", copies_of},
    {NULL, "and # more mistakes?", things_wrong},
    {NULL, "\\(planted: [^)]*\\)", nothing_more},
    {NULL, "Sent by rank #", own_rank},
    {NULL, "rank # takes no part", nothing_more},
    {NULL, "lies as .* but is taken for \\[[^]]*\\]", nothing_more},
    {NULL, "over [^ ]+ (.*) and # more is", more_values},
    {"mesh", "class # ranks? ([^×]*) ×#( \\([^)]*\\))?", one_class},
    {NULL, "[Rr]ank # \\(([^)]*)\\)", rank_and_place},
    {NULL, "([a-z_][a-zA-Z_.0-9=]*)=#", sizes},
    {NULL, "B=# of #", part_of_batch},
    {NULL, "([BS])=#", sizes},
    {NULL, "(one|two) of # micro-batches", microbatches},
    {NULL, "widths ÷#", shrunk},
    {NULL, "identical on # of # ranks", identical},
    {NULL, "the other # ranks differ", others},
    {NULL, "layer # of #( to #)?", layer_of},
    {NULL, "# of # layers", layers_of},
    {"shards", "of # pieces ([^ ]+) i has those numbered i and # − i", pieces},
    {"block", "# (of # )?heads", heads},
    {"block", "([Tt]o|[Ff]rom) rank #", message_with},
    {"block", "part # of attention", part_of_attention},
    {"memory", "@ alive on rank #", alive},
    {"memory", "@ if as many come as can", beyond},
    {"memory",
     "@ of it (gradients? (of|after) )?(values after )?([^ .,]+)( and (its|their) gradients?)?",
     named},
    {"block", "Kept for backward: @ in all", kept},
    {"block", "Made again in backward: @", made_again},
    {"block", ", # of (them|these #) again for backward", gathered_again},
    {"block", "([A-Z][A-Za-z]+) ×#", side_by_side},
    {"block", "slice ×#", slices},
    {"block", "([A-Z][A-Za-z]+) ((d )?[^ ,]+(, (d )?[^ ,]+)*) ×#", of_values},
    {"overview", "# of them no line", not_asked},
    {"timeline", ", # with the same times folded", nothing_more},
    {"pipeline", "# ranks? of [a-z]+, # micro-batch(es)?, % of their time idle", pipe_title},
    {"pipeline", "the # ranks at one place of", place_ranks},
    {"pipeline", "~ from the first forward", pipe_end},
    {"pipeline", "idles at most ~, on average ~", pipe_idle},
    {"pipeline", "~ by the closed form", pipe_even},
    {"pipeline", "~ (more|less) as stages differ", pipe_stages},
    {"pipeline", "\\(stages? ([0-9, to]+) takes? ([0-9.]+) times the mean\\)", pipe_slow},
    {"pipeline", "~ (more|less) for messages", pipe_messages},
    {"pipeline", "In flight at most #", pipe_most},
    {"pipeline", "at least # on every rank", pipe_fewest},
    {"block",
     "(the backward pass of )?(a Transformer block|this model|what this page shows|attention and "
     "the MLP|attention|the [A-Za-z]+( layer)?) needs (no communication of its own|no "
     "communication|(# collectives?)?( and )?(# messages?)? and sends @)",
     block_needs},
    {"block",
     "(the backward pass of )?(a Transformer block|this model|what this page shows|attention and "
     "the MLP|attention|the [A-Za-z]+( layer)?) receives (# messages?) and sends nothing",
     only_receives},
    {"overview",
     "(a rank|rank #) holds @ of weights and sends (@ in (# collectives?)?( and )?(# messages?)?|"
     "nothing)( in ([a-z]+))?",
     overview_needs},
    {NULL, "([a-z][a-z_.0-9·]*) @ in #( collectives?| messages?)?( and # messages?)?", sent_over},
    {"overview", "nothing over ([a-z]([a-z_.0-9·]*[a-z_0-9])?)", sends_nothing},
    {"shards", "@ of @ of (layer #'s )?weights", shard_weights},
    {"shards", "[Rr]ank # holds", own_rank},
    {"timeline",
     "([Ss]tep|[Oo]ne micro-batch[a-z ]*,) ~ = compute ~( \\+ exposed ~)?( \\+ waiting for other "
     "ranks ~)?",
     step_time},
    {"timeline", "Communication ~ \\(overlaps counted once\\), of which % is hidden" BESIDE,
     hidden_share},
    {"timeline",
     "[Aa]ll # micro-batch(es)? ~ = compute ~( \\+ exposed ~)?( \\+ waiting for other ranks ~)? "
     "\\+ idle ~",
     whole_step},
    {"timeline",
     "Communication within its stages ~ \\(overlaps counted once\\), of which % is hidden" BESIDE,
     step_hidden},
    {"timeline",
     "once a step:( compute ~,?)?( communication( \\([A-Z0-9, ]*\\))? ~, ~ of it exposed( and the "
     "rest hidden behind compute| and the rest behind other communication|, ~ hidden behind "
     "compute and the rest behind other communication)?)?",
     once_a_step},
    {"timeline",
     "(Busiest, ([^ ]+) #: |On rank #: )?% compute(, % exposed communication)?(, % waiting for "
     "others)?, % idle(; ([^ ]+) # idles %)?",
     step_shares},
    {"timeline", "ompute waits % of the time", waits},
    {"timeline", "% of communication is hidden", hidden_only},
    {"timeline", "one of # classes", nothing_more},
    {"timeline", "all # ranks run", all_ranks},
    {"timeline",
     "# lines( at one scale|, each page at a scale of its own|, drawn #× to #× as wide)",
     lines_drawn},
    {"memory",
     "(Each of # ranks|The fullest rank, #,|Each of the # fullest ranks( \\([^)]*\\))?) holds @ at "
     "the peak",
     at_peak},
    {"memory", "([^ ]+) GB = @", capacity},
    {"memory", "# ahead", prefetched},
    {"memory", "the peak is at step #, which has most", most_beside},
    {"memory", "and has its peak at step #", most_gathered},
    {"memory", "experts are cut over ([^ ]*) alone, # ranks", experts_cut},
    {"memory", "does not fit: \\+@", too_much},
    {"mesh", "# ranks: rank # is in # groups", in_groups_of},
    {"mesh", "# ranks, two meshes: ([^,]*) for dense weights, ([^,.]*) for experts", two_meshes},
    {"mesh", "# ranks in # bars?: where rank # sits", in_bars},
    {"mesh", "# ranks as a stack: # planes of # × #", planes},
    {"mesh", "# ranks, all in one group", all_ranks},
    {"mesh", "All # ranks have", all_ranks},
    {"mesh", "# rank classes", classes},
    {"mesh", "rank # (is outlined|has )", own_rank},
    {"mesh", "rank = ([^ ]*( \\+ [^ ]*)*)", formula},
    {"mesh", "of one micro-batch of #", one_microbatch},
    {"storyboard", "Ring attention over ([^:]*): # ranks, # hops?", ring_size},
    {"storyboard", "Each rank sends @ of [a-z ]* forward", ring_sent},
    {"storyboard", "last ([0-9.]+) times as long as with even", ring_slower},
    {"storyboard", "the ring of ranks &, one of #", ring_of},
    {"storyboard", "The row packs # documents", packed},
    {"storyboard",
     "step #, (values after |the gradient (after|of) )?([^ ]+)( and [0-9]+ more)? over",
     story_step},
    {"storyboard", "and # more", story_more},
    {"storyboard", ", # ranks[,:]", story_ranks},
    {"storyboard", "of whose # ranks", story_ranks},
    {"storyboard", "\\(# chunks", story_ranks},
    {"storyboard", "term of # chunks", story_ranks},
    {"storyboard", "n = #", story_ranks},
    {"storyboard", "M = @", story_volume},
    {"storyboard", "(# × )?(2?\\(?n−1\\)?|a hop) = # steps?", story_steps},
    {"storyboard", "@ (expected to be )?sent per rank", story_sent},
};
enum { PHRASES = sizeof phrases / sizeof *phrases };
static regex_t compiled[PHRASES];
static int said[PHRASES];

static void compile_all(void) {
    static const char *const sign[][2] = {{"#", "([0-9]+)"},
                                          {"@", "([0-9.]+ [KMGTP]?i?B)"},
                                          {"~", "([0-9.]+ [nm\xc2\xb5]*s)"},
                                          {"%", "([<0-9. ]+ %)"},
                                          {"&", "[-,:0-9a-z_=. ]+"}};
    for (int i = 0; i < PHRASES; i++) {
        char re[1024] = "";
        for (const char *c = phrases[i].phrase; *c; c++) {
            const char *put = NULL;
            for (int k = 0; k < 5; k++)
                if (*c == *sign[k][0]) put = sign[k][1];
            size_t n = strlen(re);
            if (put) snprintf(re + n, sizeof re - n, "%s", put);
            else re[n] = *c, re[n + 1] = '\0';
        }
        if (regcomp(&compiled[i], re, REG_EXTENDED)) fail_msg("no expression: %s", re);
    }
}
/* Blanks what the phrase says wherever it stands, when it has been held. */
static void hold(Page *p, int i, char *left) {
    regmatch_t at[MAX_GROUPS];
    const Phrase *f = &phrases[i];
    if (f->view && strcmp(f->view, p->o.view)) return;
    for (size_t from = 0; !regexec(&compiled[i], left + from, MAX_GROUPS, at, 0);) {
        char *m[MAX_GROUPS];
        for (int k = 0; k < MAX_GROUPS; k++)
            m[k] = at[k].rm_so < 0 ? arena_strdup(p->a, "")
                                   : arena_strndup(p->a, left + from + at[k].rm_so,
                                                   (size_t)(at[k].rm_eo - at[k].rm_so));
        p->at = from + (size_t)at[0].rm_so;
        f->check(p, m);
        said[i]++;
        memset(left + from + at[0].rm_so, ' ', (size_t)(at[0].rm_eo - at[0].rm_so));
        from += (size_t)at[0].rm_eo;
    }
}
/* Texts that a picture quotes from the records, word for word. */
static void quote(char *left, const char *text) {
    size_t n = text ? strlen(text) : 0;
    for (char *x = n ? strstr(left, text) : NULL; x; x = strstr(x + n, text)) memset(x, ' ', n);
}
static bool letter(char c) { return isalpha((unsigned char)c) || c == '_'; }
/* A word with letters in it is a name; a word of digits alone is a number that nobody has held. */
static const char *not_held(Arena *a, const char *left) {
    for (const char *c = left; *c;) {
        size_t n = 0;
        bool digits = false, name = false;
        while (isalnum((unsigned char)c[n]) || (c[n] && strchr("._-", c[n]))) {
            digits |= isdigit((unsigned char)c[n]) != 0, name |= letter(c[n]);
            n++;
        }
        if (digits && !name) {
            const char *from = c - left > 40 ? c - 40 : left;
            return arena_strndup(a, from, strnlen(from, 80));
        }
        c += n ? n : 1;
    }
    return NULL;
}
/* Names of steps that have a number in them: `up + 1`. */
static void quote_steps(const Page *p, char *left) {
    for (int i = 0; i < p->t->n_computes; i++) {
        const char *label = p->t->computes[i].label;
        if (label && strpbrk(label, "0123456789") && strchr(label, ' ')) quote(left, label);
    }
}
static void look(Page *p, const char *text) {
    char *left = arena_strdup(p->a, text);
    p->text = text;
    quote(left, p->t->hardware), quote(left, p->t->plan), quote(left, p->t->title);
    quote(left, arena_strndup(p->a, p->t->hash, 8));
    quote(left, p->t->bubble_form), quote(left, p->t->bubble_unfit);
    quote_steps(p, left);
    for (int i = 0; i < p->t->n_events && !strcmp(p->o.view, "storyboard"); i++)
        quote(left, p->t->events[i].formula);
    for (int i = 0; i < PHRASES; i++) hold(p, i, left);
    const char *open = not_held(p->a, left);
    if (open) n_open++, print_message("NOT HELD %s|%s\n", p->what, open);
}
/* Sentences without a number: where it needs no communication, or nothing is sent, no collective is
 * drawn, of another rank's neither (one that is left out is drawn as missing), and no gradient
 * travels with others' but where that is said. */
static void hold_silence(const Page *p, const Scene *s, const char *title, const char *foot) {
    bool silent = strstr(title, "no communication") || strstr(foot, "Nothing is sent."),
         own = strstr(title, "no communication of its own") || strstr(foot, "gradients travel");
    int drawn = 0;
    bool travels = strstr(page_words(p->a, s, NULL), "travels with") != NULL;
    for (int i = 0; i < s->n_groups; i++) drawn += !strcmp(s->groups[i].what, "collective");
    for (int i = 0; i < p->t->n_collectives; i++) silent &= !p->t->collectives[i].skipped;
    if (!silent || strcmp(p->o.view, "block") != 0) return;
    n_silent++;
    if (!drawn && own == travels) return;
    n_wrong++;
    print_message("WRONG %s|%s|%s: %d collectives drawn%s\n", p->what, title, foot, drawn,
                  travels ? ", gradients that travel" : "");
}
static void look_page(Page *p, const Scene *s) {
    const char *title = page_words(p->a, s, "title"), *foot = page_words(p->a, s, "footer"),
               *desc = s->desc ? s->desc : "";
    p->s = s;
    p->all = arena_printf(p->a, "%s\n%s\n%s", title, foot, desc);
    look(p, title), look(p, foot), look(p, desc);
    hold_silence(p, s, title, foot);
}
static const char *const passes[] = {NULL, "forward", "backward"};
static const char *const parts[] = {NULL,   "attention", "mlp",       "moe",
                                    "norm", "head",      "embedding", "loss"};
enum { PASSES = 3, PARTS = 8 };
static void look_view(Arena *a, const Trace *t, const char *name, RenderOptions o) {
    Scene *page[VIEW_MAX_PAGES];
    int n = render_pages(t, diags_new(a), &o, a, page);
    for (int i = 0; i < n; i++) {
        Page p = {.a = a, .t = t, .o = o, .rank = o.rank < 0 ? 0 : o.rank, .pages = n};
        p.what = arena_printf(a, "%s %s pass=%s part=%s rank=%lld page=%d", name, o.view,
                              o.pass ? o.pass : "all", o.part ? o.part : "all", (long long)p.rank,
                              i + 1);
        look_page(&p, page[i]);
    }
}
static void look_trace(Arena *a, const Trace *t, const char *name) {
    int views, ranks = t->schedule && t->ranks <= 8 ? (int)t->ranks : 0;
    const RenderView *view = render_views(&views);
    for (int k = 1; k + 1 < ranks; k++) /* stages in the middle send and receive both ways */
        for (int i = 0; i < PASSES * PARTS; i++)
            look_view(a, t, name,
                      (RenderOptions){.view = "block",
                                      .pass = passes[i / PARTS],
                                      .part = parts[i % PARTS],
                                      .rank = k,
                                      .layer = -1});
    for (int v = 0; v < views; v++)
        for (int k = 0; k < PASSES * PARTS * 2; k++) {
            bool last = k % 2;
            if (last && t->ranks < 2) continue;
            look_view(a, t, name,
                      (RenderOptions){.view = view[v].name,
                                      .pass = passes[k / 2 / PARTS],
                                      .part = parts[k / 2 % PARTS],
                                      .rank = last ? t->ranks - 1 : -1,
                                      .layer = -1});
        }
}
static void look_plan(Arena *a, const char *name, const char *text) {
    PipelineOptions o = {.events = true, .threads = 1};
    const Trace *t = plan_run_with(a, name, text, &o).t;
    if (t) look_trace(a, t, name), n_traces++;
}
static void sweep_files(const char *pattern) {
    for (PlanFiles f = plan_files(pattern, NULL); plan_files_next(&f);)
        look_plan(f.a, f.path, f.text);
}
/* What was found since the last time. */
static void all_held(int least) {
    print_message("%d plans, %d numbers wrong, %d held by nobody\n", n_traces, n_wrong, n_open);
    int bad = n_wrong + n_open, plans = n_traces;
    n_traces = n_wrong = n_open = 0;
    assert_int_equal(bad, 0);
    assert_true(plans >= least);
}
static void test_plans(void **state) {
    (void)state;
    sweep_files("plans/*.yaml");
    all_held(50);
}
static void test_bugs_and_models(void **state) {
    (void)state;
    sweep_files("plans/bugs/*.yaml");
    sweep_files("plans/models/*.yaml");
    all_held(10);
}
static void test_too_large_to_execute(void **state) {
    (void)state;
    sweep_files("plans/shape-only/*.yaml");
    all_held(1);
}
static void test_recipes(void **state) {
    (void)state;
    static const char *const models[] = {"llama3-8b", "mixtral-8x7b", "llama4-scout"};
    int n;
    const RecipeRow *rows = plan_recipes(&n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 9; k++) {
            Arena *a = arena_new();
            const char *pass = pass_words[k % 3];
            look_plan(
                a, arena_printf(a, "%s of %s, %s", rows[i].name, models[k / 3], pass),
                recipe_plan(a, models[k / 3], rows[i].name, plan_names_text(rows[i].names), pass));
            arena_free(a);
        }
    all_held(6);
}
/* A phrase that no picture says is a row too many. */
static void test_every_phrase(void **state) {
    (void)state;
    int never = 0;
    for (int i = 0; i < PHRASES; i++)
        if (!said[i]) never++, print_message("nobody says: %s\n", phrases[i].phrase);
    assert_int_equal(never, 0);
    assert_true(n_silent > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans), cmocka_unit_test(test_bugs_and_models),
        cmocka_unit_test(test_too_large_to_execute), cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_every_phrase)};
    compile_all();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < PHRASES; i++) regfree(&compiled[i]);
    render_cleanup();
    return rc;
}
