/* Page of the view `mesh` for pipelines with two more axes: the ranks as a stack, a plane for each
 * coordinate of the pipeline, in it one axis to the right and the others into depth; what each rank
 * holds, and who talks to whom by which collective. Of many coordinates the first and the last are
 * drawn. Refuses meshes of fewer axes: they are no stack. */
#include "render/mesh/stack.h"
#include "render/mesh/mesh.h"
#include "trace/trace_way.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_SHOWN = 8, DEEP = 30, ROW = 40, BETWEEN = 58, INSET = 8 };

/* Coordinates that are drawn, -1 for those left out between. */
typedef struct {
    int n;
    int64_t at[STACK_SHOWN];
    int64_t size;
} Shown;
typedef struct {
    const ViewCall *c;
    Arena *a;
    const Trace *t;
    WordAxis pp, across;
    const char *deep; /* the axes that go into depth, "dp·cp" */
    int n_axes;
    WordAxis axis[TRACE_MAX_AXES];
    int64_t depth; /* coordinates in depth, together */
    Shown planes, columns, rows;
    Scene *s;
    PresetKind preset;
    double x, w, cell; /* of the planes; width of a cell */
    bool bytes;        /* there is room for them in a cell */
    int n_comm;
    MeshComm comm[MESH_MAX_COMMS];
} Stack;

static Shown some(int64_t size, int most) {
    Shown x = {.size = size};
    if (most > STACK_SHOWN) most = STACK_SHOWN;
    if (size <= most) {
        for (int64_t i = 0; i < size; i++) x.at[x.n++] = i;
        return x;
    }
    for (int i = 0; i < most - 2; i++) x.at[x.n++] = i;
    x.at[x.n++] = -1;
    x.at[x.n++] = size - 1;
    return x;
}
static bool goes_deep(const Stack *k, const WordAxis *x) {
    return x->size > 1 && x->first != k->pp.first && x->first != k->across.first;
}
/* The rank at a coordinate of each side; depth counts through its axes, outermost first. */
static int64_t rank_at(const Stack *k, int64_t plane, int64_t row, int64_t column) {
    int64_t rank = plane * k->pp.stride + column * k->across.stride;
    for (int i = k->n_axes - 1; i >= 0; i--) {
        const WordAxis *x = &k->axis[i];
        if (!goes_deep(k, x)) continue;
        rank += row % x->size * x->stride;
        row /= x->size;
    }
    return rank;
}

bool stack_of(const Trace *t, Arena *a) {
    WordAxis ax[TRACE_MAX_AXES];
    int large = 0, n = words_axes(a, t, ax, TRACE_MAX_AXES);
    bool pipeline = false;
    for (int i = 0; i < n; i++) {
        large += ax[i].size > 1;
        pipeline |= ax[i].size > 1 && t->schedule_axis && !strcmp(ax[i].name, t->schedule_axis);
    }
    return pipeline && large >= 3;
}
static void stack_read(Stack *k, const ViewCall *c) {
    Str deep = str_new(c->arena);
    *k = (Stack){.c = c, .a = c->arena, .t = c->all, .depth = 1};
    k->n_axes = words_axes(k->a, k->t, k->axis, TRACE_MAX_AXES);
    for (int i = 0; i < k->n_axes; i++)
        if (!strcmp(k->axis[i].name, k->t->schedule_axis)) k->pp = k->axis[i];
    for (int i = 0; i < k->n_axes; i++) /* the innermost of the others */
        if (k->axis[i].size > 1 && k->axis[i].first != k->pp.first) k->across = k->axis[i];
    for (int i = 0; i < k->n_axes; i++) {
        const WordAxis *x = &k->axis[i];
        if (!goes_deep(k, x)) continue;
        k->depth *= x->size;
        str_addf(&deep, "%s%s", deep.n ? "·" : "", x->name);
    }
    k->deep = deep.s;
}

/* ---- what a rank holds and sends ---- */
static int64_t at_rest(const Trace *t, int64_t rank) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_memory; i++)
        if (t->memory[i].step < 0 && !strcmp(t->memory[i].category, "parameters") &&
            rankset_has(&t->memory[i].ranks, rank))
            bytes += t->memory[i].bytes;
    return bytes;
}
static void add_layers(Str *s, int from, int to) {
    if (from < 0) return;
    str_addf(s, "%slayer%s %d", s->n ? ", " : "", to > from ? "s" : "", from);
    if (to > from) str_addf(s, "-%d", to);
}
const char *stack_parts(Arena *a, const Trace *t, int64_t rank) {
    Str s = str_new(a);
    int from = -1, to = -1;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *x = &t->computes[i];
        bool forward = x->pass == PHASE_FORWARD || x->pass == PHASE_LOSS;
        if (!forward || x->recompute || !rankset_has(&x->ranks, rank)) continue;
        if (x->layer >= 0) {
            if (from >= 0 && x->layer != to && x->layer != to + 1) {
                add_layers(&s, from, to);
                from = -1;
            }
            if (from < 0) from = x->layer;
            to = x->layer;
            continue;
        }
        add_layers(&s, from, to);
        from = -1;
        if (!x->part || (s.n && strstr(s.s, x->part))) continue; /* DualPipe's has two ways */
        str_addf(&s, "%s%s", s.n ? ", " : "", x->part);
    }
    add_layers(&s, from, to);
    return s.n ? s.s : "nothing";
}
/* Sends from the ranks of one plane to those of another: of the two ranks at the same place. */
typedef struct {
    int n;
    int64_t bytes;
} Sends;
static Sends sends(const Stack *k, int64_t from, int64_t to) {
    Sends x = {0};
    int64_t a = rank_at(k, from, 0, 0), b = rank_at(k, to, 0, 0);
    for (int i = 0; i < k->t->n_collectives; i++) {
        const TraceCollective *c = &k->t->collectives[i];
        if (strcmp(c->op, "send") != 0 || c->skipped) continue;
        int64_t g = groups_with(&c->groups, a);
        if (g < 0 || g != groups_with(&c->groups, b)) continue;
        int64_t bytes = collective_on(c, a).bytes_sent;
        x.n += bytes > 0;
        x.bytes += bytes;
    }
    return x;
}
/* "3 Send of 12 KiB together" */
static const char *sends_text(const Stack *k, Sends x) {
    return arena_printf(k->a, "%d Send, %s", x.n, bytes_text(x.bytes, k->a));
}
static const char *plane_name(const Stack *k, int64_t plane) {
    return arena_printf(k->a, "%s%lld", k->pp.name, (long long)plane);
}
/* Of two planes that are no neighbours: a tied table, a pipeline that goes round. */
static const char *far_sends(const Stack *k) {
    Str s = str_new(k->a);
    enum { MOST_PAIRS = 64 };
    int64_t n = k->pp.size < MOST_PAIRS ? k->pp.size : MOST_PAIRS;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            Sends x = llabs(i - j) > 1 ? sends(k, i, j) : (Sends){0};
            if (x.n)
                str_addf(&s, "%s%s to %s: %s", s.n ? " · " : "", plane_name(k, i), plane_name(k, j),
                         sends_text(k, x));
        }
    return s.n ? s.s : NULL;
}
const char *stack_counts(Arena *a, const Trace *t) {
    long long parts = (long long)trace_microbatches(t);
    return parts < 2 ? ""
                     : arena_printf(a, "of %s of %lld, and what is done once a step",
                                    trace_way_one(trace_both_ways(t)), parts);
}

/* ---- drawing ---- */
static double plane_width(const Stack *k) { return k->cell * k->columns.n + DEEP * k->rows.n; }
static double plane_height(const Stack *k) { return (double)ROW * k->rows.n; }
/* The front left corner of a cell; y is the front edge of its plane. */
static Pt corner(const Stack *k, double y, int row, int column) {
    return (Pt){k->x + k->cell * column + DEEP * row, y - ROW * row};
}
/* The groups in which both ranks talk; NULL: in none. */
static const MeshComm *comm_of(const Stack *k, int64_t a, int64_t b) {
    for (int i = 0; i < k->n_comm; i++) {
        const MeshComm *c = &k->comm[i];
        int64_t g = words_group_of(&c->groups, a);
        if (g >= 0 && g == words_group_of(&c->groups, b) && strcmp(c->carries, "no collective"))
            return c;
    }
    return NULL;
}
static void draw_cell(Stack *k, double y, int row, int column, int64_t plane) {
    int64_t j = k->rows.at[row], i = k->columns.at[column];
    Pt p = corner(k, y, row, column);
    double inner = k->cell - INSET, lift = ROW - INSET, lean = DEEP * lift / ROW;
    double mid = p.x + (inner + lean) / 2;
    if (j < 0 || i < 0) {
        scene_text(k->s, mid, p.y - lift / 2 + 4, (TextLook){ALIGN_MIDDLE, 13, BOLD, ROLE_SECOND},
                   "…");
        return;
    }
    int64_t rank = rank_at(k, plane, j, i);
    const char *bytes = bytes_text(at_rest(k->t, rank), k->a);
    scene_begin(k->s, "stack-rank", arena_printf(k->a, "stack-%lld", (long long)rank),
                arena_printf(k->a, "rank %lld %s: %s of parameters at rest", (long long)rank,
                             words_coords(k->a, k->t, rank), bytes));
    Pt q[4] = {p, {p.x + inner, p.y}, {p.x + inner + lean, p.y - lift}, {p.x + lean, p.y - lift}};
    scene_poly(k->s, q, 4, (Look){ROLE_PAPER, ROLE_INK, 1.25});
    scene_textf(k->s, mid, p.y - lift / 2 + (k->bytes ? -2 : 5),
                (TextLook){ALIGN_MIDDLE, 13, BOLD, ROLE_INK}, "%lld", (long long)rank);
    if (k->bytes)
        scene_text(k->s, mid, p.y - lift / 2 + 12,
                   (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, bytes);
    scene_end(k->s);
}
/* The neighbours that place i and the next stand for, where one is left out too. */
static void neighbours(const Shown *x, int i, int64_t at[2]) {
    at[0] = x->at[i], at[1] = x->at[i + 1];
    if (at[0] < 0) at[0] = at[1] - 1;
    if (at[1] < 0) at[1] = at[0] + 1;
}
/* A short line between two cells of a plane whose ranks talk to each other. */
static void draw_link(Stack *k, Pt from, Pt to, int64_t a, int64_t b) {
    const MeshComm *c = comm_of(k, a, b);
    if (!c) return;
    scene_begin(k->s, "stack-link",
                arena_printf(k->a, "stack-link-%lld-%lld", (long long)a, (long long)b),
                arena_printf(k->a, "over %s: %s", c->name, c->carries));
    scene_segment(k->s, from, to, ROLE_AXIS + theme_axis(c->axes), 3);
    scene_end(k->s);
}
static void draw_links(Stack *k, double y, int row, int column, int64_t plane) {
    Pt p = corner(k, y, row, column);
    double inner = k->cell - INSET, lift = ROW - INSET, lean = DEEP * lift / ROW;
    Pt side = {p.x + inner + lean / 2, p.y - lift / 2}, top = {p.x + lean + inner / 4, p.y - lift};
    int64_t j = k->rows.at[row], i = k->columns.at[column], next[2];
    if (j >= 0 && column + 1 < k->columns.n) {
        neighbours(&k->columns, column, next);
        draw_link(k, side, (Pt){side.x + INSET, side.y}, rank_at(k, plane, j, next[0]),
                  rank_at(k, plane, j, next[1]));
    }
    if (i >= 0 && row + 1 < k->rows.n) {
        neighbours(&k->rows, row, next);
        draw_link(k, top, (Pt){top.x + (double)DEEP * INSET / ROW, top.y - INSET},
                  rank_at(k, plane, next[0], i), rank_at(k, plane, next[1], i));
    }
}
/* A pill and words, wrapped; returns the y under them. */
static double draw_words(Stack *k, Band at, const char *pill, const char *axes, const char *words) {
    const char *line[4];
    double in = pill ? draw_pill(k->s, at.x, at.y + 8, pill, axes) + 8 : 0;
    int n = scene_wrap(k->s, words, (TextColumn){at.w - in, 12, REGULAR, 4, NULL}, line);
    for (int i = 0; i < n; i++)
        scene_text(k->s, at.x + in, at.y + 12 + 16 * i,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, line[i]);
    return at.y + fmax(pill ? 22 : 0, 16 * n + 6);
}
/* What the groups inside a plane carry, of its first rank; returns the y under it. */
static double draw_talk(Stack *k, Band at, int64_t plane) {
    int64_t rank = rank_at(k, plane, 0, 0);
    const char *rest = k->bytes ? ""
                                : arena_printf(k->a, ", rank %lld has %s", (long long)rank,
                                               bytes_text(at_rest(k->t, rank), k->a));
    const char *title = arena_printf(k->a, "%s: %s%s", plane_name(k, plane),
                                     stack_parts(k->a, k->t, rank), rest),
               *line[2];
    scene_begin(k->s, "stack-talk", arena_printf(k->a, "talk-%lld", (long long)plane), title);
    int n = scene_wrap(k->s, title, (TextColumn){at.w, 13, SEMIBOLD, 2, NULL}, line);
    for (int i = 0; i < n; i++, at.y += 17)
        scene_text(k->s, at.x, at.y + 13, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, line[i]);
    at.y += 4;
    k->n_comm = mesh_comms(k->a, k->t, rank, k->comm);
    for (int i = 0; i < k->n_comm; i++) {
        const MeshComm *c = &k->comm[i];
        if (!strcmp(c->carries, "no collective") || !strcmp(c->axes, k->pp.name)) continue;
        int64_t g = words_group_of(&c->groups, rank);
        at.y = draw_words(
            k, at, c->name, c->axes,
            arena_printf(k->a, "%s: %s", mesh_spelled(k->a, &c->groups, g, 4), c->carries));
    }
    scene_end(k->s);
    return at.y;
}
static double draw_plane(Stack *k, double y, int64_t plane, double *front) {
    double right = k->x + plane_width(k) + 28, whole = k->s->w - presets[k->preset].margin, end = y;
    if (k->preset == PRESET_COLUMN) y = draw_talk(k, (Band){k->x, k->w, y}, plane);
    else end = draw_talk(k, (Band){right, whole - right, y}, plane);
    *front = y + plane_height(k);
    for (int row = k->rows.n - 1; row >= 0; row--)
        for (int column = 0; column < k->columns.n; column++) {
            draw_cell(k, *front, row, column, plane);
            draw_links(k, *front, row, column, plane);
        }
    return fmax(*front, end - 30);
}
/* Between plane i and the next: an arrow for each way in which something is sent; `from` is the
 * front edge of the plane. */
static double draw_sends(Stack *k, double from, double y, int i) {
    bool drawn = k->planes.at[i + 1] >= 0;
    int64_t a = k->planes.at[i], b = drawn ? k->planes.at[i + 1] : a + 1;
    const Sends down = sends(k, a, b), up = sends(k, b, a);
    double end = y + BETWEEN;
    Str s = str_new(k->a);
    if (down.n) str_addf(&s, "down: %s", sends_text(k, down));
    if (up.n) str_addf(&s, "%sup: %s", s.n ? " · " : "", sends_text(k, up));
    scene_begin(
        k->s, "stack-send", arena_printf(k->a, "send-%lld-%lld", (long long)a, (long long)b),
        arena_printf(k->a, "from each rank of %s to the one at its place in %s and back: %s",
                     plane_name(k, a), plane_name(k, b), s.n ? s.s : "nothing"));
    const ArrowLook look = {ROLE_INK, 1.5, false, false};
    /* to the rank in front, past those behind it; in a column there are words between */
    bool reach = drawn && k->preset != PRESET_COLUMN;
    double front = reach ? end + plane_height(k) : end;
    Pt d[2] = {{k->x + 6, from + 4}, {k->x + 6, front - 7 - (reach ? ROW * 6.0 / DEEP : 0)}},
       u[2] = {{k->x + 20, front - 4 - (reach ? ROW * 20.0 / DEEP : 0)}, {k->x + 20, from + 4}};
    if (down.n) scene_arrow(k->s, d, 2, look, -1);
    if (up.n) scene_arrow(k->s, u, 2, look, -1);
    if (s.n) {
        double pw = draw_pill(k->s, k->x + 40, y + BETWEEN / 2.0 - 2, k->pp.name, k->pp.name);
        scene_text(k->s, k->x + 48 + pw, y + BETWEEN / 2.0 + 2,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, s.s);
    }
    scene_end(k->s);
    return end;
}
static double draw_left_out(Stack *k, double y, int i) {
    long long a = (long long)k->planes.at[i - 1] + 1, b = (long long)k->planes.at[i + 1] - 1;
    scene_textf(k->s, k->x + 40, y + 16, (TextLook){ALIGN_LEFT, 12, MEDIUM, ROLE_SECOND},
                a == b ? "… %s%lld, not drawn" : "… %s%lld to %s%lld, not drawn", k->pp.name, a,
                k->pp.name, b);
    return y + 30;
}
static const char *directions(const Stack *k) {
    return arena_printf(k->a, "%s down, %s to the right, %s into depth", k->pp.name, k->across.name,
                        k->deep);
}
/* How much of it fits on the page. */
static void stack_fit(Stack *k) {
    bool slide = k->preset == PRESET_SLIDE;
    double whole = k->s->w - 2 * presets[k->preset].margin;
    k->planes = some(k->pp.size, slide ? 3 : 4);
    k->rows = some(k->depth, slide ? 3 : 4);
    k->w = k->preset == PRESET_COLUMN ? whole : whole * 0.55;
    int most = (int)((k->w - DEEP * k->rows.n) / 62);
    k->columns = some(k->across.size, most < 3 ? 3 : most);
    k->cell = fmin(150, (k->w - DEEP * k->rows.n) / k->columns.n);
    k->bytes = k->cell - INSET - DEEP - 8 >= scene_width(k->s, 12, REGULAR, "88.8 MiB");
}
Scene *stack_page(const ViewCall *c, PresetKind preset) {
    Stack *k = ARENA_NEW(c->arena, Stack);
    stack_read(k, c);
    Scene *s = k->s = figure_new(c, "mesh", preset);
    k->preset = preset;
    k->x = presets[preset].margin;
    stack_fit(k);
    const char *counts = stack_counts(k->a, k->t), *far = far_sends(k),
               *model = words_model(k->a, k->t);
    const char *sub[] = {model ? model : "",
                         words_layers(k->a, k->t),
                         words_mesh(k->a, k->t),
                         directions(k),
                         k->bytes ? "in a cell: the rank, its parameters at rest"
                                  : "in a cell: the rank; beside it what it has of parameters",
                         *counts ? arena_printf(k->a, "counts and bytes are %s", counts) : "",
                         words_shrink(k->a, k->t),
                         NULL};
    const char *title = arena_printf(k->a, "%lld ranks as a stack: %lld planes of %lld × %lld",
                                     (long long)k->t->ranks, (long long)k->pp.size,
                                     (long long)k->depth, (long long)k->across.size);
    double y = figure_head(s, preset, title, sub, 0) + 12, front = y;
    for (int i = 0; i < k->planes.n; i++) {
        if (k->planes.at[i] < 0) {
            y = draw_left_out(k, y, i);
            continue;
        }
        y = draw_plane(k, y, k->planes.at[i], &front);
        if (i + 1 < k->planes.n) y = draw_sends(k, front, y, i);
    }
    y += 18;
    if (far) {
        scene_begin(s, "stack-far", "stack-far", far);
        y = draw_words(k, (Band){k->x, s->w - 2 * k->x, y}, k->pp.name, k->pp.name, far);
        scene_end(s);
    }
    y = figure_foot(s, c, (Band){k->x, s->w - 2 * k->x, y + 2}, NULL, NULL);
    s->desc = arena_printf(k->a, "The ranks as a stack: %s.", directions(k));
    figure_page(s, preset, y);
    return s;
}

void stack_text(const ViewCall *c, Str *out, int w) {
    Stack *k = ARENA_NEW(c->arena, Stack);
    stack_read(k, c);
    const char *counts = stack_counts(k->a, k->t), *far = far_sends(k);
    str_addf(out, "\nThe stack: %s\n", directions(k));
    if (*counts) words_paragraph(out, "", arena_printf(k->a, "counts and bytes are %s", counts), w);
    for (int64_t i = 0; i < k->pp.size; i++) {
        int64_t rank = rank_at(k, i, 0, 0);
        words_paragraph(out, "  ",
                        arena_printf(k->a, "%s: %s; rank %lld has %s of parameters",
                                     plane_name(k, i), stack_parts(k->a, k->t, rank),
                                     (long long)rank, bytes_text(at_rest(k->t, rank), k->a)),
                        w);
        if (i + 1 == k->pp.size) break;
        Sends down = sends(k, i, i + 1), up = sends(k, i + 1, i);
        if (down.n || up.n)
            words_paragraph(
                out, "    ",
                arena_printf(k->a, "down: %s; up: %s", sends_text(k, down), sends_text(k, up)), w);
    }
    if (far) words_paragraph(out, "  ", far, w);
    str_add(out, "\n");
}
