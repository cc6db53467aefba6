/* The display list: what a picture consists of, in painting order, before anything is painted.
 * Views build it, painters paint it, the layout lint and the tests read it. Lengths are units of
 * the canvas (px at scale 1), y grows downwards. A scene knows no file format and no trace. */
#ifndef SP_RENDER_SCENE_H
#define SP_RENDER_SCENE_H
#include "base/arena.h"
#include "render/scene/fonts.h"

typedef struct {
    double x, y;
} Pt;

typedef struct {
    double x, y, w, h; /* its top left corner and its size */
} Area;

/* How an area is drawn; ROLE_NONE: no fill, no outline. */
typedef struct {
    Role fill, stroke;
    double line; /* width of the outline; 0: none */
} Look;

typedef enum { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT } Align;

/* How one line of text of one look is set. */
typedef struct {
    Align align; /* which point of the line stands at the place given */
    double size;
    int weight;
    Role role;
} TextLook;

/* The column into which a text is broken. */
typedef struct {
    double w, size;  /* its width, and the size of the text */
    int weight, max; /* at most so many lines */
    const char *sep; /* lines break after it; NULL: at spaces */
} TextColumn;

/* How an arrow is drawn. */
typedef struct {
    Role role;
    double line;
    bool big;     /* the head of the residual stream */
    bool partial; /* with the dashed companion of a pending sum at its right */
} ArrowLook;

typedef enum { MARK_RECT, MARK_POLY, MARK_LINE, MARK_CIRCLE, MARK_HATCH, MARK_TEXT } MarkKind;

typedef struct {
    MarkKind kind;
    int group; /* index of the group it belongs to */
    int step;  /* when it appears in a figure that builds up; 0: it is there from the start */
    Role fill, stroke; /* ROLE_NONE: none */
    double opacity;    /* of the fill: 1 hides what lies under it, less lets it through */
    double line;       /* width of the stroke */
    const double *dash;
    int n_dash;
    bool miter;        /* corners mitred instead of round */
    bool ground;       /* made to lie under texts and other marks: bands, grid lines, cells */
    double x, y, w, h; /* rect, hatch; circle: centre and r; text: reference point and width */
    double r;          /* corner radius; circle: radius */
    Pt *pt;            /* poly, line, hatch (pairs) */
    int n;
    double bend; /* line: radius of its corners */
    double size; /* text */
    Align align;
    Run *run;
    int n_run;
} Mark;

/* Marks that stand for one thing: a step, a value, a rank. Painters give it an id and its tooltip.
 */
typedef struct {
    const char *id;   /* unique in the scene */
    const char *what; /* class: "compute" "collective" "edge" "weight" "legend" ... */
    const char *tip;  /* tooltip; NULL: none */
    const char *href; /* link; NULL: none */
    const char *same; /* the thing that several groups show; NULL: one that has but one place */
    int parent;       /* -1: none */
    bool framed; /* x y w h is the border inside which its texts stay and on which arrows end */
    double x, y, w, h;
    int first, last; /* marks [first, last) while it was open */
} Group;

/* An arrow and the groups it claims to join, for the lint. -1: open end. */
typedef struct {
    int mark;
    Pt tip;
    int to;
} Arrow;

/* Where a part of a figure begins that nothing above reaches into, and what it is called: in a
 * figure beside another, parts of one name stand at one height. */
typedef struct {
    const char *name;
    double y;
} SceneRow;

typedef struct Scene {
    Arena *arena;
    Fonts *fonts;
    Theme theme;
    double w, h;
    /* page on which the scene lies: scene point p is at off + scale*p; by default the scene itself
     */
    double page_w, page_h, scale, off_x, off_y;
    bool points;      /* page lengths are points, not px */
    double min_size;  /* smallest text allowed */
    int px_width;     /* natural width of a PNG */
    bool one_scale;   /* figures of its kind are laid side by side: never enlarged to fill a page */
    const char *name; /* "block-1a2b3c4d": prefix of ids */
    const char *title, *desc;
    const char *fact; /* what the title tells of a plan with nothing wrong; NULL: it is the title */
    bool wrong;       /* the title says what is wrong with the plan, in red */
    int n_marks, cap_marks;
    Mark *marks;
    int n_groups, cap_groups;
    Group *groups;
    int n_ids, id_slots; /* ids that groups have: a table of which at most half is used */
    const char **ids;
    int n_arrows, cap_arrows;
    Arrow *arrows;
    int n_rows, cap_rows;
    SceneRow *rows;
    int open;    /* innermost open group, -1 */
    int step;    /* of the marks that are made next */
    bool builds; /* an SVG of it plays: marks appear step by step */
} Scene;

/* An empty scene of w by h units (0 or more) in the arena; its page is itself. It and all its marks
 * live as long as the arena. Nothing here fails: sizes that are no numbers are the caller's. */
Scene *scene_new(Arena *arena, Fonts *fonts, Theme theme, double w, double h);
/* A copy that may be an id: letters, digits, point, dash and underscore stay, everything else
 * becomes a dash. */
char *scene_clean_id(Arena *a, const char *id);
/* Opens a group inside the open one and returns its index; `id` is made unique. */
int scene_begin(Scene *s, const char *what, const char *id, const char *tip);
void scene_end(Scene *s);
/* The marks made from now on appear at this step (0: they are there from the start) of a figure
 * that builds up. Returns the step of those before, for the caller to go back to. */
int scene_at(Scene *s, int step);
/* A click on one of two groups of this scene leads to the other; nothing where one of them is -1.
 */
void scene_link(Scene *s, int a, int b);
/* The open group shows a thing (a module, a token) that others show too: in an SVG the pointer over
 * one of them, or a click, shows all. NULL or "": nothing. */
void scene_same(Scene *s, const char *thing);
/* Declares the border of the open group. */
void scene_frame(Scene *s, double x, double y, double w, double h);

/* Marks of the open group: a rectangle with corners of radius r, a circle with its centre. They may
 * be changed until the next mark is made. */
Mark *scene_rect(Scene *s, Area a, double r, Look look);
Mark *scene_circle(Scene *s, double x, double y, double r, Look look);
/* Elongated hexagon with points of 12 (0.4 h where it is lower than 30). */
Mark *scene_hexagon(Scene *s, Area a, Look look);
/* The closed polygon, the open polyline through n >= 2 points (copied), and that between two. */
Mark *scene_poly(Scene *s, const Pt *pt, int n, Look look);
Mark *scene_line(Scene *s, const Pt *pt, int n, Role stroke, double line);
Mark *scene_segment(Scene *s, Pt from, Pt to, Role stroke, double line);
/* 45 degree hatch of an area: lines of width `line`, `pitch` apart. */
Mark *scene_hatch(Scene *s, Area a, Role stroke, double pitch, double line);
/* A polyline of n >= 2 points whose last is the tip of an arrow head that touches group `to` (-1:
 * nothing in particular). */
void scene_arrow(Scene *s, const Pt *pt, int n, ArrowLook look, int to);

/* Text with its baseline at y; returns its width in units, 0 for NULL or an empty text (no mark is
 * made then). What a reader could not see in it is shown escaped. */
double scene_text(Scene *s, double x, double y, TextLook look, const char *text);
double scene_textf(Scene *s, double x, double y, TextLook look, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for pieces of several looks, one behind the other. */
double scene_runs(Scene *s, Pt at, Align align, double size, const Run *run, int n);
/* The width that scene_text would return. */
double scene_width(Scene *s, double size, int weight, const char *text);
/* Breaks a text into at most c.max lines, into line[0 .. c.max); the last one ends in an ellipsis
 * if there was more. A number stays with its unit. Returns the number of lines, 0 for "". The lines
 * lie in the scene's arena. */
int scene_wrap(Scene *s, const char *text, TextColumn c, const char **line);
/* The text, cut with an ellipsis to width w. */
const char *scene_fit(Scene *s, const char *text, double w, double size, int weight);

/* Puts figure b at the right of s, or under it, `gap` units away, both in their own size; b is used
 * up (its points are moved). s gets both titles and descriptions. */
void scene_beside(Scene *s, const Scene *b, double gap);
void scene_under(Scene *s, const Scene *b, double gap);
/* Moves all of a figure down by `by` units, and makes it as much longer; it has its own size. */
void scene_lower(Scene *s, double by);
/* A part called `name` begins at y. */
void scene_row(Scene *s, const char *name, double y);
/* Of two figures that stand beside each other: what is under the shorter head (groups "title") goes
 * down to where it begins under the other's, and so do rows that both have, in their order. */
void scene_level(Scene *a, Scene *b);

/* What a mark covers, its outline included. Text: from the ascent to the descent of its letters. */
typedef struct {
    double x0, y0, x1, y1;
} Box;
Box scene_box(const Mark *m);
/* Does the segment from p to q touch the box? */
bool box_crossed(Pt p, Pt q, Box b);
/* Do two boxes share more than `slack` either way (below 0: are they nearer than that)? */
static inline bool box_overlap(Box a, Box b, double slack) {
    return a.x0 < b.x1 - slack && b.x0 < a.x1 - slack && a.y0 < b.y1 - slack && b.y0 < a.y1 - slack;
}

/* Layout lint (visual.md 1.0.8): one line of text per finding in *report; returns their number. */
int scene_lint(const Scene *s, Arena *arena, const char **report);
#endif
