/* Measures text with the fonts that the Cairo painter paints with. Lengths are units of the canvas.
 */
#ifndef SP_RENDER_FONTS_H
#define SP_RENDER_FONTS_H
#include "render/scene/theme.h"

typedef struct Fonts Fonts;

enum { REGULAR = 400, MEDIUM = 500, SEMIBOLD = 600, BOLD = 700 };

/* A piece of a text with one look. */
typedef struct {
    const char *s;
    int weight;
    Role role;
    bool underline, italic;
} Run;

/* The fonts of this process, loaded on first use; never NULL. fonts_cleanup releases them. */
Fonts *fonts_shared(void);
/* Ends the run (exit 5) if text is not measured as it was when the fonts were loaded: a library
 * lost letters for lack of memory. */
void fonts_intact(Fonts *f);
/* Advance width of a text in units. */
double fonts_width(Fonts *f, const Run *run, int n, double size);
/* Characters of the text that no font at hand has. */
int fonts_unknown(Fonts *f, const Run *run, int n, double size);
/* Are they the fonts that the program looks for (free to give away), and not the machine's? */
bool fonts_own(const Fonts *f);
/* Releases what the libraries keep; fonts_shared loads them again. */
void fonts_cleanup(void);
#endif
