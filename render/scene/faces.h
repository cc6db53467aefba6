/* The fonts of a scene as small files: of each face only the letters that the scene's texts show,
 * so that a picture can carry its fonts with it. */
#ifndef SP_RENDER_FACES_H
#define SP_RENDER_FACES_H
#include "render/scene/scene.h"

typedef struct {
    const char *family;         /* "Inter", or "DejaVu Sans" for what Inter has not */
    int weight;                 /* as the texts ask for it */
    bool italic;                /* likewise */
    const unsigned char *bytes; /* an OpenType file */
    size_t n;
} Face;

/* The faces with which the scene's texts are painted, in the order of their looks; *face and all in
 * it live as long as the scene. Returns their number: 0 where there is no text, or where the fonts
 * are those of the machine, of which nobody knows whether they may be given away. Lack of memory
 * ends the run (exit 5). */
int scene_faces(const Scene *s, Face **face);
#endif
