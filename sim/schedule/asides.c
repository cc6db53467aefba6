/* What a file says of FSDP's gathers and of gradients' reductions, held against its order as
 * PyTorch's _PipelineScheduleRuntime does when it runs one. Refuses to run any: those follow
 * `data_parallel`, which an assignment fills in from here where it is silent. See schedule.h. */
#include "schedule/schedule.h"

enum { MOST_FINDINGS = 50 /* more help nobody */ };
typedef enum {
    CUT,
    ASKED,  /* gathered, and not used yet */
    WHOLE,  /* gathered and used */
    ASSUMED /* used without; told once, and from there on as if it had been gathered */
} Hold;
/* A stage on the way through its rank's list. */
typedef struct {
    Hold hold;
    const Aside *gathered, *dropped; /* the last ones that did so */
    const Aside *reduced;            /* the first that reduced */
    bool released;                   /* by its reduction: a RESHARD that follows does nothing */
    const Action *last;              /* the last that makes gradients of its weights */
    int left;                        /* of those that are still to come */
} Way;
typedef struct {
    const Schedule *s;
    Diags *d;
    Arena *tmp;
    Way *way; /* per stage */
    bool gathers, reduces;
    int found;
} Holder;
/* Has something been found that is to be told? */
static bool finds(Holder *h) { return h->found++ < MOST_FINDINGS; }
#define FINDING(h, at, hint, ...)                                                                  \
    do {                                                                                           \
        if (finds(h)) diag_error((h)->d, "E0310", at, hint, __VA_ARGS__);                          \
    } while (0)
static const char *text(Arena *a, const char *form, int stage) {
    return arena_printf(a, form, stage);
}
static const char *said(const Holder *h, const Action *a) { return action_text(a, h->tmp); }
static const char *place(const Holder *h, const Aside *b) {
    return arena_printf(h->tmp, "%d:%d", b->loc.line, b->loc.col);
}

/* ---- what stands in a list ---- */
static bool makes_gradients(const Action *a) { return a->kind == DO_B || a->kind == DO_W; }
/* Whatever else it is has been told by schedule_check. */
static bool is_here(const Schedule *s, int rank, const Action *a) {
    return action_computes(a->kind) && a->stage < s->stages && s->home[a->stage] == rank;
}
static void uses(Holder *h, const Action *a) {
    Way *w = &h->way[a->stage];
    w->left -= makes_gradients(a);
    if (!h->gathers) return;
    if (w->hold == ASKED) w->hold = WHOLE;
    if (w->hold != CUT) return;
    w->hold = ASSUMED;
    const char *before = arena_printf(h->tmp, "put %dUNSHARD before %s", a->stage, said(h, a));
    if (!w->dropped)
        FINDING(h, a->loc, before, "%s uses stage %d, which nothing has gathered", said(h, a),
                a->stage);
    else if (w->dropped->kind == ASIDE_REDUCE)
        FINDING(h, a->loc, before, "%s uses stage %d, which %dREDUCE_GRAD at %s has released",
                said(h, a), a->stage, a->stage, place(h, w->dropped));
    else
        FINDING(h, a->loc, arena_printf(h->tmp, "%s, or %dRESHARD behind it", before, a->stage),
                "%s uses stage %d, which %dRESHARD at %s has dropped", said(h, a), a->stage,
                a->stage, place(h, w->dropped));
}
static void unshard(Holder *h, const Aside *b) {
    Way *w = &h->way[b->stage];
    if (w->hold == ASKED || w->hold == WHOLE) {
        FINDING(h, b->loc,
                arena_printf(h->tmp, "leave it out, or put %dRESHARD before it", b->stage),
                "stage %d is gathered already, by %dUNSHARD at %s", b->stage, b->stage,
                place(h, w->gathered));
        return;
    }
    w->hold = w->hold == ASSUMED ? WHOLE : ASKED;
    w->gathered = b;
}
/* Nothing has come between a gather and its end. */
static void unused(Holder *h, const Way *w, const char *end) {
    FINDING(h, w->gathered->loc,
            arena_printf(h->tmp, "leave it out, or put it before what uses stage %d",
                         w->gathered->stage),
            "stage %d is gathered here, and nothing uses it before %s", w->gathered->stage, end);
}
static void reshard(Holder *h, const Aside *b) {
    Way *w = &h->way[b->stage];
    if (w->hold == CUT && !w->released)
        FINDING(h, b->loc,
                arena_printf(h->tmp, "leave it out, or put %dUNSHARD before what uses the stage",
                             b->stage),
                "stage %d is not gathered here", b->stage);
    w->released = false;
    if (w->hold == CUT) return;
    if (w->hold == ASKED) unused(h, w, "it is dropped");
    w->hold = CUT;
    w->dropped = b;
}
static void reduce(Holder *h, const Aside *b) {
    Way *w = &h->way[b->stage];
    if (w->reduced) {
        FINDING(h, b->loc, text(h->tmp, "%dREDUCE_GRAD once, behind the last backward", b->stage),
                "%dREDUCE_GRAD is done twice: first at %s", b->stage, place(h, w->reduced));
        return;
    }
    w->reduced = b;
    if (w->left) {
        FINDING(h, b->loc, arena_printf(h->tmp, "put it behind %s", said(h, w->last)),
                "%dREDUCE_GRAD comes before %s, whose gradients it leaves out", b->stage,
                said(h, w->last));
        return;
    }
    if (w->hold != WHOLE && w->hold != ASSUMED) return;
    w->hold = CUT;
    w->dropped = b;
    w->released = true;
}
static void stands(Holder *h, const Aside *b) {
    bool wait = b->kind == ASIDE_WAIT;
    if (wait && !h->way[b->stage].reduced)
        FINDING(h, b->loc, text(h->tmp, "put it behind %dREDUCE_GRAD", b->stage),
                "%dWAIT_REDUCE_GRAD waits for what has not begun", b->stage);
    if (b->kind == ASIDE_REDUCE) reduce(h, b);
    else if (!h->gathers || wait) return;
    else if (b->kind == ASIDE_UNSHARD) unshard(h, b);
    else reshard(h, b);
}

/* ---- all of them ---- */
static void go_through(Holder *h, int rank) {
    const ActionList *l = &h->s->rank[rank];
    const AsideList *asides = &h->s->asides[rank];
    for (int i = 0; i < l->n; i++) {
        if (!is_here(h->s, rank, &l->a[i]) || !makes_gradients(&l->a[i])) continue;
        Way *w = &h->way[l->a[i].stage];
        w->left++;
        w->last = &l->a[i];
    }
    for (int i = 0, b = 0; i <= l->n; i++) {
        for (; b < asides->n && asides->a[b].at == i; b++) stands(h, &asides->a[b]);
        if (i < l->n && is_here(h->s, rank, &l->a[i])) uses(h, &l->a[i]);
    }
}
static void end_of(Holder *h, int stage) {
    const Way *w = &h->way[stage];
    if (w->hold == ASKED) unused(h, w, "the step ends");
    if (!h->reduces || w->reduced || !w->last) return;
    FINDING(h, w->last->loc,
            arena_printf(h->tmp, "put %dREDUCE_GRAD behind %s", stage, said(h, w->last)),
            "the file reduces gradients of other stages, and has no %dREDUCE_GRAD", stage);
}
bool schedule_check_asides(const Schedule *s, Diags *d, bool gathers) {
    Arena *tmp = arena_new();
    bool unshards = schedule_aside(s, ASIDE_UNSHARD, false) != NULL,
         reshards = schedule_aside(s, ASIDE_RESHARD, false) != NULL;
    Holder h = {.s = s,
                .d = d,
                .tmp = tmp,
                .way = ARENA_ARRAY(tmp, Way, s->stages + 1),
                .gathers = gathers && (unshards || reshards),
                .reduces = schedule_aside(s, ASIDE_REDUCE, false) != NULL};
    for (int r = 0; s->asides && r < s->ranks; r++) go_through(&h, r);
    for (int g = 0; s->asides && g < s->stages; g++) end_of(&h, g);
    if (h.found > MOST_FINDINGS)
        diag_error(d, "E0310", (Loc){.file = s->name}, "mend these first",
                   "%d more findings about gathers and reductions", h.found - MOST_FINDINGS);
    arena_free(tmp);
    return !h.found;
}
const Aside *schedule_aside(const Schedule *s, AsideKind k, bool again) {
    Arena *tmp = arena_new();
    bool *seen = ARENA_ARRAY(tmp, bool, s->stages + 1);
    const Aside *found = NULL;
    for (int r = 0; s->asides && r < s->ranks; r++)
        for (int i = 0; i < s->asides[r].n && !found; i++) {
            const Aside *b = &s->asides[r].a[i];
            if (b->kind != k) continue;
            if (!again || seen[b->stage]) found = b;
            seen[b->stage] = true;
        }
    arena_free(tmp);
    return found;
}
