#include "cli/part.h"
#include "base/text.h"
#include "cli/find.h"
#include "cli/suffix.h"
#include <stdlib.h>
#include <string.h>

/* A place of the model: a module, or the module and part of the step that makes a value. */
typedef struct {
    const char *path, *part; /* path NULL: a step of no module; part NULL: that of its steps */
    int layer;               /* -1: none, or the name says none of several */
    bool several;            /* the other layers have it too */
} Place;

static bool of_forward(const TraceCompute *c) {
    return phase_or_forward(c->pass) == PHASE_FORWARD && !c->recompute;
}
/* The first forward step of the module, or inside it. */
static int first_step(const Trace *t, const char *path) {
    for (int i = 0; i < t->n_computes; i++)
        if (of_forward(&t->computes[i]) && lookup_inside(t->computes[i].module, path, strlen(path)))
            return i;
    return -1;
}
/* What the name is the end of: a module, a parameter (its module) or a value (its step). False: of
 * nothing, or of several. */
static bool find_place(Arena *a, const Trace *t, const char *name, Place *p, const char **hint) {
    static const unsigned kinds[] = {SUFFIX_MODULES, SUFFIX_PARAMS, SUFFIX_VALUES};
    const char *is = NULL, *why = NULL;
    size_t k = 0;
    for (*hint = NULL; k < sizeof kinds / sizeof *kinds; k++) {
        is = suffix_in_layers(a, t, name, kinds[k], &p->several, &why);
        if (!*hint) *hint = why;
        if (is) break;
    }
    if (!is) return false;
    const TraceParam *w = kinds[k] == SUFFIX_PARAMS ? lookup_param(t, is) : NULL;
    int step = -1;
    for (int i = 0; kinds[k] == SUFFIX_VALUES && step < 0 && i < t->n_computes; i++)
        if (of_forward(&t->computes[i]) && text_same(t->computes[i].output, is)) step = i;
    p->path = w ? w->module : step >= 0 ? t->computes[step].module : is;
    if (step < 0 && p->path) step = first_step(t, p->path);
    p->part = kinds[k] == SUFFIX_VALUES && step >= 0 ? trace_unit(t, step) : NULL;
    p->layer = p->several || step < 0 ? -1 : t->computes[step].layer;
    return step >= 0;
}

/* ---- what views call it ---- */
typedef const char *(*Call)(Arena *a, const Trace *t, const Place *p, const char **hint);

/* Of all steps inside, if that is one part. */
static const char *as_part(Arena *a, const Trace *t, const Place *p, const char **hint) {
    const char *part = p->part;
    for (int i = 0; !p->part && i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (!of_forward(c) || !lookup_inside(c->module, p->path, strlen(p->path))) continue;
        const char *is = trace_unit(t, i);
        if (part && is && strcmp(part, is) != 0) {
            *hint = arena_printf(a, "%s has several parts", p->path);
            return NULL;
        }
        part = is;
    }
    return part;
}
/* With its layer if the name says it; else what stands behind that. */
static const char *as_module(Arena *a, const Trace *t, const Place *p, const char **hint) {
    (void)a, (void)t, (void)hint;
    const char *from = p->several ? strpbrk(p->path, "0123456789") : NULL;
    const char *dot = from ? strchr(from, '.') : NULL;
    return dot ? dot + 1 : p->path;
}
/* The first that a collective moves there. */
static const char *as_moved(Arena *a, const Trace *t, const Place *p, const char **hint) {
    for (int i = 0; p->path && i < t->n_collectives; i++)
        if (lookup_inside(t->collectives[i].module, p->path, strlen(p->path)))
            return t->collectives[i].value;
    *hint = p->path ? arena_printf(a, "nothing is moved in %s", p->path) : NULL;
    return NULL;
}

/* ---- what they know themselves ---- */
typedef bool (*Knows)(const Trace *t, const char *name);

static bool knows_part(const Trace *t, const char *name) {
    bool known = strcmp(name, "weights") == 0;
    for (int i = 0; !known && i < t->n_computes; i++) known = text_same(t->computes[i].part, name);
    return known;
}
static bool knows_nothing(const Trace *t, const char *name) {
    (void)t, (void)name;
    return false;
}
/* An op, a step or a value; the ring of attention. */
static bool knows_moved(const Trace *t, const char *name) {
    char *end;
    (void)strtol(name, &end, 10);
    bool known = strcmp(name, "ring") == 0 || !*end;
    for (int i = 0; !known && i < t->n_collectives; i++)
        known = text_names(t->collectives[i].value, name);
    for (int i = 0; !known && i < t->n_moves; i++) known = text_names(t->moves[i].value, name);
    return known;
}

void part_resolve(Arena *a, const Trace *t, const RenderView *view, RenderOptions *o) {
    static const struct {
        unsigned asks;
        Knows knows;
        Call call;
        bool layer; /* the view takes one */
    } rows[] = {{VIEW_PARTS, knows_part, as_part, true},
                {VIEW_MODULES, knows_nothing, as_module, true},
                {VIEW_MOVED, knows_moved, as_moved, false}};
    for (size_t i = 0; o->part && i < sizeof rows / sizeof *rows; i++) {
        Place p = {0};
        if (!(view->asks & rows[i].asks) || rows[i].knows(t, o->part)) continue;
        if (!find_place(a, t, o->part, &p, &o->part_hint)) return;
        const char *is = rows[i].call(a, t, &p, &o->part_hint);
        if (is && p.layer >= 0 && o->layer >= 0 && p.layer != o->layer) {
            o->part_hint = arena_printf(a, "it is of layer %d", p.layer);
            return;
        }
        if (is) o->part = is;
        if (is && rows[i].layer && o->layer < 0) o->layer = p.layer;
        return;
    }
}
