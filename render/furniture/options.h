/* What a picture is asked for: the words of the command line, as the views read them. */
#ifndef SP_RENDER_OPTIONS_H
#define SP_RENDER_OPTIONS_H
#include "trace/trace.h"

enum { VIEW_MAX_PAGES = 32 };  /* a view draws no more */
enum { VIEW_MAX_BESIDE = 11 }; /* others in one figure */

/* The plan of a trace as it would be with another batch or on another mesh: asked by a view that
 * shows several. What it gives lives until the next is asked for; NULL: that breaks a rule, or
 * leaves ranks with nothing. */
typedef struct {
    void *of;
    const Trace *(*with_batch)(void *of, int64_t batch);
    const Trace *(*with_mesh)(void *of, const int64_t *size); /* of each axis */
    int64_t batch;                                            /* its own */
    bool rows; /* a batch is told in rows of a matrix, not in sequences */
    /* told how many meshes are asked for from here on; 0: nothing more is */
    void (*expect)(void *of, int meshes);
    int n_axes;
    const char *const *axis;
    const int64_t *size; /* its own */
} PlanOthers;

typedef struct RenderOptions {
    const char *view;       /* "block", "timeline", ...; NULL: the first */
    const char *preset;     /* "wide" (default), "column", "slide", "a4" */
    const char *theme;      /* "light" (default), "dark", "print" */
    int64_t rank;           /* focus rank; -1: first */
    int64_t layer;          /* -1: the first */
    const char *part;       /* "attention", "mlp", NULL: all */
    const char *part_hint;  /* where nobody knew it: a name that is near, or words; or NULL */
    const char *pass;       /* "forward", "backward", "both" or NULL: what there is */
    bool measured;          /* timeline: what was measured on the rank, beside the model */
    const Trace *with;      /* another plan's trace, drawn beside the first; NULL: none */
    const char *difference; /* what tells the two apart, for their title; NULL: nobody says */
    int64_t page;           /* which page of several, from 1; 0: the first, in a PDF all */
    int *pages;             /* told how many the figure has; NULL: nobody asks */
    bool build;             /* one step after the other: in a PDF a page each, an SVG plays */
    const char *quiz;       /* what is left blank (quiz_names), with a key behind; NULL: nothing */
    int width_px;           /* PNG width; 0: 1600 (column: 900) */
    int columns;            /* of text: 60 to 80; 0: 80 */
    const Trace *
        beside; /* errors: a run to compare with, of the same model on the same ranks; NULL: none */
    bool beside_planted; /* that run is the same plan without the mistake it plants */
    int n_several;       /* pipeline: other schedules, on the same axis of time */
    const Trace *several[VIEW_MAX_BESIDE];
    const PlanOthers *others; /* sweep: NULL: it is a trace, and nobody can ask */
} RenderOptions;

/* What a view asks of a trace, and where it stands among the views. */
enum {
    VIEW_RUN = 1,       /* shows what only a run knows */
    VIEW_SAMPLES = 2,   /* gains by a run's numbers (`sample` records) but can do without */
    VIEW_TIMES = 4,     /* shows modelled times or the machine */
    VIEW_BESIDE = 8,    /* may stand beside another run */
    VIEW_FIRST = 16,    /* what people look at first: `run` draws it as PNG, too */
    VIEW_CHROME = 32,   /* shows the events of which FORMAT_CHROME is made */
    VIEW_FAR = 64,      /* shows how far values are from the unsharded model (`distance` records) */
    VIEW_SEVERAL = 128, /* may show several schedules on one axis */
    VIEW_JSON = 256,    /* what it shows can be had as FORMAT_JSON */
    VIEW_PARTS = 512,   /* `part` is one of a layer: "attention" */
    VIEW_MODULES = 1024, /* `part` is a module */
    VIEW_MOVED = 2048,   /* `part` is something that is moved */
    VIEW_OTHERS = 4096 /* shows the plan with other batches and meshes: nothing of a trace alone */
};
#endif
