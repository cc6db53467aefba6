/* Roles of things in pictures, and the colours they have in each theme. Views name roles; only
 * painters see colours. Refuses to know about views, marks or traces. */
#ifndef SP_RENDER_THEME_H
#define SP_RENDER_THEME_H
#include <stdbool.h>
#include <stdint.h>

/* Kinds of mesh axes that have a colour of their own: AXIS_PRODUCT is of several (dp*cp), every
 * other one is AXIS_USER. */
typedef enum {
    AXIS_TP,
    AXIS_DP,
    AXIS_PP,
    AXIS_CP,
    AXIS_EP,
    AXIS_USER,
    AXIS_PRODUCT,
    AXIS_KINDS
} AxisKind;

typedef enum {
    ROLE_NONE,
    ROLE_PAPER,
    ROLE_INK,     /* text and edges */
    ROLE_SECOND,  /* secondary text */
    ROLE_TICK,    /* axis ticks */
    ROLE_GRID,    /* hairlines, frames, cells that mean nothing special */
    ROLE_FAINT,   /* outline of cells in maps */
    ROLE_COMPUTE, /* compute on local data */
    ROLE_COMPUTE_LINE,
    ROLE_COMPUTE_NOTE, /* secondary text on compute */
    ROLE_COMPUTE_DARK, /* small kernels in a timeline */
    ROLE_COMPUTE_PALE, /* weight gradients in a timeline */
    ROLE_COLL,         /* collectives */
    ROLE_COLL_LINE,
    ROLE_COLL_PALE, /* hidden communication */
    ROLE_COLL_WORD, /* words about communication on paper */
    ROLE_BAND,      /* where compute waits */
    ROLE_WEIGHT_LINE,
    ROLE_WEIGHT_FILL,
    ROLE_WEIGHT_REST,
    ROLE_BYTES, /* bars of bytes */
    ROLE_BYTES_2,
    ROLE_PASS,
    ROLE_WARN,
    ROLE_FAIL,
    ROLE_SHARD, /* first of four, ordered by lightness */
    ROLE_SHARD_1,
    ROLE_SHARD_2,
    ROLE_SHARD_3,
    ROLE_SHARD_TEXT, /* text on the four */
    ROLE_SHARD_TEXT_1,
    ROLE_SHARD_TEXT_2,
    ROLE_SHARD_TEXT_3,
    ROLE_LIVE, /* activations in memory */
    ROLE_LIVE_TEXT,
    ROLE_LIVE_PALE, /* half of a backward: the gradient of the input */
    ROLE_EQUAL,     /* results: equal by bits, within rounding, suspect, first wrong, wrong later */
    ROLE_ROUNDED,
    ROLE_SUSPECT,
    ROLE_WRONG,
    ROLE_WRONG_TEXT,
    ROLE_WRONG_LATER,
    ROLE_WRONG_AFTER,                             /* right by itself, of wrong inputs */
    ROLE_PART_SUM,                                /* partial sums of a storyboard */
    ROLE_TARGET,                                  /* around the mark to which a link led */
    ROLE_AXIS,                                    /* + AxisKind: lines and pills */
    ROLE_AXIS_TEXT = ROLE_AXIS + AXIS_KINDS,      /* + AxisKind: words on paper */
    ROLE_AXIS_PILL = ROLE_AXIS_TEXT + AXIS_KINDS, /* + AxisKind: words on a pill */
    ROLE_AXIS_TINT = ROLE_AXIS_PILL + AXIS_KINDS, /* + AxisKind: pale areas */
    ROLE_COUNT = ROLE_AXIS_TINT + AXIS_KINDS
} Role;

typedef enum { THEME_LIGHT, THEME_DARK, THEME_PRINT, THEME_COUNT } Theme;

/* The theme of that name; false if there is none. NULL is light. */
bool theme_find(const char *name, Theme *out);
/* Names of the themes, NULL-terminated. */
const char *const *theme_names(void);
/* 0xRRGGBB. */
uint32_t theme_color(Theme t, Role r);
/* What is seen of two colours, one over the other: `opacity` of the upper one, the rest of the
 * lower. */
uint32_t theme_blend(uint32_t upper, uint32_t lower, double opacity);
/* The kind of an axis by its name: "tp", "dp_shard", "tp.0", "dp*cp" (the first counts). */
AxisKind theme_axis(const char *axes);
/* Dash pattern of an axis kind: lengths in px, *n of them (0: solid). */
const double *theme_axis_dash(AxisKind k, int *n);
/* WCAG contrast of two colours, 1 to 21. */
double theme_contrast(uint32_t a, uint32_t b);
#endif
