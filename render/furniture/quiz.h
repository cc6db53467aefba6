/* Figures with blanks to fill in, and the page with what belongs into them. */
#ifndef SP_RENDER_QUIZ_H
#define SP_RENDER_QUIZ_H
#include "render/furniture/furniture.h"

/* What is left blank, by name; NULL-terminated. */
const char *const *quiz_names(void);
/* Leaves that blank in n pages of a figure: a numbered box where it stood, in reading order over
 * all pages; titles, legends and footers get boxes without a number, tooltips go. Writes the pages
 * of the key to key[0 .. max) and returns their number; 0: the figure shows nothing of the kind.
 * `kind` is one of quiz_names. */
int quiz_pages(const ViewCall *c, const char *kind, Scene *const *page, int n, Scene **key,
               int max);
#endif
