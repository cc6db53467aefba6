/* What every figure has around its subject: title, subtitle, legend with only the marks in use,
 * footer with totals and the stamp; and the small things that several views draw alike: pills of
 * axes, maps of ranks. */
#ifndef SP_RENDER_FURNITURE_H
#define SP_RENDER_FURNITURE_H
#include "render/furniture/options.h"
#include "render/furniture/words.h"

/* One drawing request. */
typedef struct ViewCall {
    const Trace *t;   /* of collectives with unequal groups it says what the rank of *o does */
    const Trace *all; /* what every rank does: the trace as it was given */
    Diags *d;
    const RenderOptions *o;
    Phase pass; /* what o->pass asks for; PHASE_NONE: all that the trace has */
    Arena *arena;
    Fonts *fonts;
    Theme theme;
    const struct ViewCall *peer; /* whose figure stands beside this one, at its scale; NULL: none */
} ViewCall;

/* Columns of a view as text: 80; fewer, from 60 on, where the terminal is narrower. */
int furniture_columns(const RenderOptions *o);

/* Page presets. */
typedef enum { PRESET_WIDE, PRESET_COLUMN, PRESET_SLIDE, PRESET_A4, PRESET_COUNT } PresetKind;
typedef struct {
    const char *name;
    double w, h; /* h 0: as high as the content */
    double margin, min_size;
    int px;
} Preset;
extern const Preset presets[PRESET_COUNT];
/* False if there is no preset of that name; NULL is wide. */
bool furniture_preset(const char *name, PresetKind *out);
/* Where a stream of states begins or ends: a circle of radius r around `at` with the state's name,
 * its tooltip `tip`. Returns its group, for arrows. */
int furniture_state(Scene *s, Arena *arena, Pt at, double r, const char *name, const char *tip);

/* A scene with the preset's width, smallest text and PNG width, named after view and plan hash. */
Scene *figure_new(const ViewCall *c, const char *view, PresetKind preset);
/* Title (red if s->wrong) and subtitle from the top; returns the y under them. `sub` are the parts
 * between " · ", NULL-terminated; they are wrapped to width sub_w (0: that of the figure). */
double figure_head(Scene *s, PresetKind p, const char *title, const char *const *sub, double sub_w);
/* A4: portrait or landscape, whichever shows the scene larger, centred between margins of 20 pt. */
void figure_a4(Scene *s);
/* Fits the finished scene (height h) on the preset's page. */
void figure_page(Scene *s, PresetKind p, double h);
/* Fills a slide of height h: footer down, body enlarged (unless s->one_scale) and centred. Before
 * its pages are numbered. */
void slide_fill(Scene *s, double margin, double h);

/* What a page says of its figure, at the upper right or beside the stamp: its number if there are
 * several pages, and in red says[i] (says or an element NULL: nothing), of the first n_says pages.
 */
typedef struct {
    int n, n_says;
    const char *const *says;
} PageWords;
void figure_number(Scene *const *page, const PageWords *w);

/* Marks of the legend, a set of bits. */
typedef enum {
    LEGEND_COMPUTE,
    LEGEND_COLL,
    LEGEND_MESSAGE,
    LEGEND_EITHER, /* the two above in one: they are drawn alike */
    LEGEND_INFERRED,
    LEGEND_PARTIAL,
    LEGEND_WEIGHT,
    LEGEND_EXPERTS,
    LEGEND_SUMMED,
    LEGEND_MAP,
    LEGEND_CHANGED,
    LEGEND_WRONG,
    LEGEND_MOVE,
    LEGEND_MATMUL,
    LEGEND_GRADIENT,
    LEGEND_SMALL,
    LEGEND_EXPOSED,
    LEGEND_HIDDEN,
    LEGEND_BESIDE,
    LEGEND_OTHERS,
    LEGEND_WAIT,
    LEGEND_SAVED,
    LEGEND_AGAIN,
    LEGEND_UNLIKE,
    LEGEND_ALONE,
    LEGEND_LARGER,
    LEGEND_GOES_ON,
    LEGEND_COUNT
} LegendMark;
/* Where lines lie across a figure: from x, w wide, downwards from y. */
typedef struct {
    double x, w, y;
} Band;
/* How what one plan has stands to the other plan's (`diff A B`): it has the same, has it otherwise,
 * or has nothing that it could be held against. */
typedef enum { ALIKE, NOT_SO, ONLY_HERE } Likeness;
/* Of two things that are drawn as one: what is said of both. */
Likeness figure_likeness(Likeness a, Likeness b);
/* The line under what the other plan's figure does not show: from `at`, w px long, heavy where that
 * has it otherwise, double where it has it not at all, none where it is alike. */
void figure_unlike(Scene *s, Pt at, double w, Likeness how, unsigned *legend);
/* One entry of the legend with its left end at `at`, beside a key of the view's own; returns its
 * width. */
double figure_key(Scene *s, Pt at, int mark);
double figure_key_width(Scene *s, int mark);
/* The same inside a box, along its lower edge: `in` px from both sides. */
void figure_unlike_box(Scene *s, Area box, double in, Likeness how, unsigned *legend);
/* The legend of these marks (bits 1 << LEGEND_...) under a hairline at y; returns the y under it.
 * What the figure has in the colour of a product of axes is found among the marks that it has so
 * far. */
double figure_legend(Scene *s, Band at, unsigned marks);
/* The head of an arrow behind which a bar goes on: its tip at `tip`. */
void figure_goes_on(Scene *s, Pt tip);
/* A stretch of time in which a rank waits for another: empty, with a dashed outline. */
void figure_waiting(Scene *s, Area at);
/* Totals (black) and status (grey; the stamp in its colour), wrapped; returns the y under them. */
double figure_foot(Scene *s, const ViewCall *c, Band at, const char *totals, const char *extra);

/* The stamp (words_stamp) as it fits into w: its words in brackets, and what is behind the colon of
 * one that failed, give way. Sets its role. */
const char *figure_verdict(Scene *s, const ViewCall *c, double w, Role *role);
/* The stamp line alone, its baseline at y; returns the baseline of its last line. */
double figure_stamp(Scene *s, const ViewCall *c, Band at, const char *extra);

/* The pill of an axis with its left edge at x, centred on y; returns its width. */
double draw_pill(Scene *s, double x, double y, const char *text, const char *axes);
/* The width that draw_pill would return. */
double pill_width(Scene *s, const char *text);
/* Map of all ranks as the mesh; that of `rank` framed, its group filled in the colour of `axes`. */
typedef struct RankMap {
    const Trace *t;
    const RankGroups *groups; /* NULL: none is filled */
    int64_t rank;
    const char *axes;
} RankMap;
/* Its width, and its height to *height (0 if it has none): maps are of 2 to 16 ranks. */
double map_size(Scene *s, const RankMap *m, double *height);
/* Draws it with its top left corner at x, y; nothing where it has no width. */
void draw_map(Scene *s, const RankMap *m, double x, double y);
/* A dotted name cut to width w: leading parts go first ("…w3.weight", "grad…w3.weight"), then
 * "weight" ("grad…w3"). */
const char *fit_name(Scene *s, const char *name, double w, double size, int weight);
/* Adds a line "name: value" to a tooltip; nothing where there is no value. */
void tip_add(Str *s, const char *name, const char *value);
/* What a tooltip says of a collective that no line of the plan asks for; nothing of others. */
void tip_inferred(Str *s, const TraceCollective *c);
#endif
