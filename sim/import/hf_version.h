/* The names that transformers had for its parallel styles in one version or another (semantics.md
 * 2.7). Three generations: 4.50 to the end of 4, 5.0 to 5.19, and 5.23. Refuses to guess what lies
 * between and behind them. */
#ifndef SP_IMPORT_HF_VERSION_H
#define SP_IMPORT_HF_VERSION_H
#include <stdbool.h>

typedef enum {
    HF_NO_VERSION = 0, /* none that is known here */
    HF_GEN_1 = 1,
    HF_GEN_2 = 2,
    HF_GEN_3 = 4,
} HfGeneration;

/* What a style that the library had in some version was. */
typedef struct {
    const char *name;
    unsigned in;         /* HfGenerations that have it */
    const char *instead; /* what the others call what it does; NULL: they have nothing like it */
    const char *first;   /* how a plan says what it was in the first; NULL: by its name */
    /* why no plan can say what it was in the second, the third; NULL: by its name */
    const char *second_not, *third_not;
    const char *do_instead; /* what to do there */
    bool drops_line;        /* its line takes moves away and adds none, in the third */
    /* At a module whose pattern ends in `at`: the plan's style there, and the line that the module
     * `beside` it gets, which does what the style does to a part of the result. NULL: nowhere. */
    const char *at, *style, *beside, *line;
} HfStyle;

/* Of "4.57.1", "5.3" or "5.23"; HF_NO_VERSION for text that is none of the known ones. */
HfGeneration hf_generation(const char *version);
/* The row of a name, static; NULL: no version has it. */
const HfStyle *hf_style(const char *name);
const HfStyle *hf_styles(int *n);
#endif
