/* Memory over the course of a schedule. See flight.h. */
#include "exec/flight.h"
#include "exec/tasks.h"
#include <string.h>

/* The bytes of a value on one class of ranks. */
typedef struct {
    int klass;
    int64_t bytes;
} Share;
typedef struct {
    int n;
    Share *share; /* of the classes that hold any of it */
    int owner;    /* the value in whose buffer it is */
    int reads;    /* of an owner: by steps of one micro-batch, through views too */
    bool own;     /* has a buffer, of each micro-batch's own */
    bool fixed;   /* there as long as micro-batches are under way */
    bool made;    /* of what is made once: by a micro-batch before */
} Kept;
/* What one micro-batch has of each value. */
typedef struct {
    int *left; /* reads to come; NULL: not begun */
    bool *there;
} Instance;
typedef struct {
    const Footprint *f;
    const Program *p;
    Arena *tmp;
    const Tasks *tasks;
    Kept *kept; /* per value */
    int *come, *next_come, *go,
        *next_go;  /* copies that are gathered ahead, by the step before which they come; and what a
                      unit keeps longer than it is read, by the step after which it goes; -1 ends */
    Instance *of;  /* per micro-batch */
    Holding *now;  /* per class */
    Holding *most; /* [step][class]: at the moment that has most beside copies of parameters; the
                      copies are those of the moment that has most of them */
    bool *noted;   /* [step][class] */
    int n_classes, *place; /* per class: its coordinate on the pipeline's axis */
    TraceAction **last;    /* per coordinate: what it has done last; NULL: nothing yet */
} Flight;

/* ---- what is counted ---- */
static bool one_task(const Program *p, int a, int b) {
    const Step *x = &p->step[a], *y = &p->step[b];
    return x->stage == y->stage && tasks_kind(p, x) == tasks_kind(p, y) && !lives_deferred(p, y);
}
static int owner_of(const Program *p, int v) {
    while (p->val[v].step >= 0 && step_renames(p, &p->step[p->val[v].step]))
        v = p->step[p->val[v].step].in[0];
    return v;
}
static void find_shares(Flight *x, int v) {
    Kept *k = &x->kept[v];
    k->share = ARENA_ARRAY(x->tmp, Share, x->n_classes + 1);
    for (int c = 0; c < x->n_classes; c++) {
        int64_t bytes = footprint_bytes(x->f, v, c);
        if (bytes) k->share[k->n++] = (Share){c, bytes};
    }
}
static void put(int *head, int *next, int step, int v) {
    next[v] = head[step];
    head[step] = v;
}
/* A copy that is gathered ahead within its task, or stays until its unit goes. */
static void find_ahead(Flight *x, int v) {
    const TraceHeld *h = x->f->buffers[v];
    int step = x->p->val[v].step;
    bool ahead = h->from < step && one_task(x->p, step, h->from);
    put(x->come, x->next_come, ahead ? h->from : step, v);
    bool unit = x->p->val[v].kind == KIND_PARAM && !x->p->val[v].cot && h->until > step &&
                x->p->step[h->until].stage == x->p->step[step].stage; /* else they go apart */
    if (!unit || lives_deferred(x->p, &x->p->step[h->until])) return;
    put(x->go, x->next_go, h->until, v);
    x->kept[v].reads++;
}
static void find_kept(Flight *x) {
    const Program *p = x->p;
    for (int i = 0; i < p->ns; i++) {
        int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
        for (int k = 0; k < n && !lives_deferred(p, &p->step[i]); k++)
            x->kept[owner_of(p, r[k])].reads++;
    }
    for (int v = 0; v < p->nv; v++) {
        Kept *k = &x->kept[v];
        const Step *s = p->val[v].step < 0 ? NULL : &p->step[p->val[v].step];
        k->owner = owner_of(p, v);
        if (!x->f->buffers[v]) continue;
        find_shares(x, v);
        k->fixed = s && (lives_once(p, &p->val[v]) || lives_adds_up(p, s));
        k->own = !k->fixed && !(s && lives_deferred(p, s));
        if (k->own && s) find_ahead(x, v);
    }
}

/* ---- coming and going ---- */
static void change(Flight *x, int v, int sign) {
    for (int i = 0; i < x->kept[v].n; i++)
        footprint_add(x->p, &x->now[x->kept[v].share[i].klass], v,
                      sign * x->kept[v].share[i].bytes);
}
static void come(Flight *x, Instance *m, int v) {
    if (m->there[v]) return;
    m->there[v] = true;
    change(x, v, 1);
}
static void drop(Flight *x, Instance *m, int v) {
    if (!m->there[v]) return;
    m->there[v] = false;
    change(x, v, -1);
}
static Instance *begin(Flight *x, int part) {
    const Program *p = x->p;
    const Stages *stages = p->assign->stages;
    Instance *m = &x->of[part];
    if (m->left) return m;
    m->left = ARENA_ARRAY(x->tmp, int, p->nv + 1);
    m->there = ARENA_ARRAY(x->tmp, bool, p->nv + 1);
    for (int v = 0; v < p->nv; v++) {
        m->left[v] = x->kept[v].reads;
        bool here = stages_way_of(stages, p->val[v].stage) == stages_way(stages, part);
        if (x->kept[v].own && p->val[v].step < 0 && here) come(x, m, v);
    }
    return m;
}
/* The most that a class holds, and how much of that are copies. */
typedef struct {
    int64_t held, gathered;
} Most;
static Most most_of(const Holding *h) { return (Most){footprint_sum(h), h->bytes[HOLDS_GATHERED]}; }
static void note(Flight *x, const Step *s, int klass, Most *peak) {
    int64_t at = (int64_t)s->id * x->n_classes + klass;
    Most now = most_of(&x->now[klass]), most = most_of(&x->most[at]);
    bool more = !x->noted[at] || now.held - now.gathered > most.held - most.gathered;
    if (more) x->most[at] = x->now[klass];
    x->most[at].bytes[HOLDS_GATHERED] = now.gathered > most.gathered ? now.gathered : most.gathered;
    x->noted[at] = true;
    if (peak && now.held > peak->held) *peak = now;
}
/* What comes from another rank lies there from now on, behind what was done last. */
static void received(Flight *x, const Step *s, int klass) {
    note(x, s, klass, NULL);
    TraceAction *a = x->last[x->place[klass]];
    Most now = most_of(&x->now[klass]);
    if (a && now.held > a->kept) a->kept = now.held, a->kept_gathered = now.gathered;
}
/* On the ranks that do the step, and where its result comes to lie. */
static void note_all(Flight *x, const Step *s, Most *peak) {
    const Stages *stages = x->p->assign->stages;
    int home = stages->home[s->stage], both = lives_both(x->p, s) ? stages->n : 0,
        other = stages->home[s->stage + both]; /* the step is that of either copy of the stage */
    for (int c = 0; c < x->n_classes; c++)
        if (x->place[c] == home || x->place[c] == other) note(x, s, c, peak);
    for (int i = 0; i < x->kept[s->out].n; i++)
        if (x->place[x->kept[s->out].share[i].klass] != home)
            received(x, s, x->kept[s->out].share[i].klass);
}
static void read_once(Flight *x, Instance *m, int v) {
    if (--m->left[v] == 0) drop(x, m, v);
}
static void do_step(Flight *x, Instance *m, const Step *s, Most *peak) {
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    for (int k = 0; k < n; k++) { /* what it writes over has gone before */
        int o = x->kept[r[k]].owner;
        if (x->f->buffers[o] && x->f->buffers[o]->until < s->id) drop(x, m, o);
    }
    for (int v = x->come[s->id]; v >= 0; v = x->next_come[v]) come(x, m, v);
    if (!x->kept[s->out].made) note_all(x, s, peak);
    x->kept[s->out].made = lives_once(x->p, &x->p->val[s->out]);
    for (int k = 0; k < n; k++) read_once(x, m, x->kept[r[k]].owner);
    for (int v = x->go[s->id]; v >= 0; v = x->next_go[v]) read_once(x, m, v);
    if (tasks_unread(x->p, &x->p->val[s->out], x->kept[s->out].reads)) drop(x, m, s->out);
}

/* ---- the course ---- */
/* What a coordinate of the pipeline's axis holds now. */
static Most now_at(const Flight *x, int place) {
    Most m = {0};
    for (int c = 0; c < x->n_classes; c++)
        if (x->place[c] == place && footprint_sum(&x->now[c]) > m.held) m = most_of(&x->now[c]);
    return m;
}
static void fixed(Flight *x, bool copies, int sign) {
    for (int v = 0; v < x->p->nv; v++)
        if (x->kept[v].fixed && lives_once(x->p, &x->p->val[v]) == copies) change(x, v, sign);
}
static void play(Flight *x) {
    const Play *p = x->tasks->play;
    int *next = ARENA_ARRAY(x->tmp, int, p->s->ranks + 1);
    for (int r = 0; r + 1 < p->s->ranks; r++) {
        next[r + 1] = next[r];
        for (int i = 0; i < p->s->rank[r].n; i++)
            next[r + 1] += action_computes(p->s->rank[r].a[i].kind);
    }
    for (int i = 0; i < p->n_steps; i++) {
        const Action *a = &p->s->rank[p->step[i].rank].a[p->step[i].at];
        if (!action_computes(a->kind)) continue;
        Instance *m = begin(x, a->part);
        const TaskSteps *t = tasks_of(x->tasks, a);
        Most peak = {0};
        for (int k = 0; k < t->n; k++) do_step(x, m, t->step[k], &peak);
        TraceAction *said = &x->f->t->actions[next[p->step[i].rank]++];
        Most end = now_at(x, p->step[i].rank);
        said->held = peak.held, said->held_gathered = peak.gathered;
        said->kept = end.held, said->kept_gathered = end.gathered;
        x->last[p->step[i].rank] = said;
    }
}
/* What is done once, after the last micro-batch; of the others nothing is left. */
static void finish(Flight *x) {
    const Program *p = x->p;
    int *go = ARENA_ARRAY(x->tmp, int, p->ns + 1), *next = ARENA_ARRAY(x->tmp, int, p->nv + 1);
    int last = x->tasks->schedule->parts - 1, gone = 0;
    for (int k = 0; k < last; k++)
        for (int v = 0; v < p->nv && x->of[k].there; v++) drop(x, &x->of[k], v);
    for (int i = 0; i <= p->ns; i++) go[i] = -1;
    for (int v = 0; v < p->nv; v++)
        if (x->f->buffers[v] && !x->kept[v].own && !lives_once(p, &p->val[v]))
            put(go, next, x->f->buffers[v]->until, v);
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (!lives_deferred(p, s)) continue;
        for (; gone < i; gone++)
            for (int v = go[gone]; v >= 0; v = next[v]) change(x, v, -1);
        if (x->f->buffers[s->out]) change(x, s->out, 1);
        for (int c = 0; c < x->n_classes; c++) note(x, s, c, NULL);
    }
}
static void tell(const Flight *x) {
    for (int c = 0; c < x->n_classes; c++) footprint_at_rest(x->f, c);
    Holding *said = ARENA_ARRAY(x->tmp, Holding, x->n_classes + 1);
    for (int i = 0; i < x->p->ns; i++)
        for (int c = 0; c < x->n_classes; c++) {
            int64_t at = (int64_t)i * x->n_classes + c;
            if (x->noted[at]) footprint_tell(x->f, i, c, &x->most[at], &said[c]);
        }
}
static Flight open_flight(const Footprint *f, Arena *tmp) {
    const Program *p = f->p;
    int n = f->t->n_classes;
    size_t cells = base_mul((size_t)p->ns + 1, (size_t)n + 1);
    Flight x = {.f = f,
                .p = p,
                .tmp = tmp,
                .tasks = tasks_new(p, tmp),
                .kept = ARENA_ARRAY(tmp, Kept, p->nv + 1),
                .come = ARENA_ARRAY(tmp, int, p->ns + 1),
                .next_come = ARENA_ARRAY(tmp, int, p->nv + 1),
                .go = ARENA_ARRAY(tmp, int, p->ns + 1),
                .next_go = ARENA_ARRAY(tmp, int, p->nv + 1),
                .now = ARENA_ARRAY(tmp, Holding, n + 1),
                .most = ARENA_ARRAY(tmp, Holding, cells),
                .noted = ARENA_ARRAY(tmp, bool, cells),
                .n_classes = n,
                .place = ARENA_ARRAY(tmp, int, n + 1)};
    x.last = ARENA_ARRAY(tmp, TraceAction *, x.tasks->play->s->ranks + 1);
    x.of = ARENA_ARRAY(tmp, Instance, x.tasks->schedule->parts);
    for (int i = 0; i <= p->ns; i++) x.come[i] = x.go[i] = -1;
    for (int c = 0; c < n; c++)
        x.place[c] = (int)mesh_coord(p->mesh, f->rep[c], p->assign->stages->axis);
    return x;
}
void flight_record(const Footprint *f) {
    Arena *tmp = arena_new();
    Flight x = open_flight(f, tmp);
    find_kept(&x);
    fixed(&x, true, 1);
    fixed(&x, false, 1);
    play(&x);
    fixed(&x, true, -1);
    finish(&x);
    tell(&x);
    arena_free(tmp);
}
