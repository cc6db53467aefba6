/* Two texts line by line. See facing.h. */
#include "render/furniture/facing.h"
#include "base/text.h"
#include <stdint.h>
#include <string.h>

enum { MOST_LINES = 3000 };

/* ---- lines ---- */

typedef struct {
    const char *text; /* of a box all its lines */
    int key;          /* bytes of what the line speaks of, its indent before them */
    bool content;     /* has letters or digits: no rule, no blank */
    bool boxed;       /* a box: it faces one that is the same, and no other */
} Line;

/* What stands before the first gap of two blanks; of a line under another its first word, with its
 * number ("rank 2"). */
static int key_of(const char *s) {
    const size_t indent = strspn(s, " ");
    const char *gap = indent ? strchr(s + indent, ' ') : strstr(s, "  ");
    if (indent && gap) gap += strspn(gap + 1, "0123456789") ? 1 + strspn(gap + 1, "0123456789") : 0;
    return (int)(gap ? (size_t)(gap - s) : strlen(s));
}
static Line *lines_of(Arena *arena, const char *text, int *n) {
    Line *line = NULL;
    int cap = 0;
    *n = 0;
    while (*text) {
        const size_t len = strcspn(text, "\n");
        const char *one = arena_strndup(arena, text, len);
        bool content = false;
        for (const char *c = one; *c; c++)
            content |=
                (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        static const char *const side[] = {"│", "┐", "┤", "┘", "║"};
        bool boxed = false;
        for (size_t i = 0; i < sizeof side / sizeof *side; i++)
            boxed |= text_before(one, side[i]) > 0;
        text += len + (text[len] == '\n');
        Line *up = *n ? &line[*n - 1] : NULL;
        if (boxed && up && up->boxed && !strstr(one, "┐"))
            up->text = arena_printf(arena, "%s\n%s", up->text, one);
        else *ARENA_PUSH(arena, line, *n, cap) = (Line){one, key_of(one), content, boxed};
    }
    return line;
}
/* How much it is worth that two lines face each other; 0: they must not. */
static int worth(const Line *x, const Line *y) {
    const bool same = !strcmp(x->text, y->text);
    if (x->boxed || y->boxed) return same ? 4 : 0;
    if (!x->content || !y->content) return same;
    if (same) return 4;
    return x->key == y->key && !strncmp(x->text, y->text, (size_t)x->key) ? 3 : 0;
}

/* ---- facing ---- */

static void put(Str *out, const char *edge, const char *text) {
    do {
        const int n = (int)strcspn(text, "\n");
        if (n) str_addf(out, "%s%.*s\n", edge, n, text);
        else str_add(out, "\n");
        text += n + (text[n] == '\n');
    } while (*text);
}
const char *facing_text(Arena *arena, const char *a, const char *b) {
    int n, m;
    const Line *x = lines_of(arena, a, &n), *y = lines_of(arena, b, &m);
    if (n > MOST_LINES || m > MOST_LINES) return NULL;
    Arena *own = arena_new();
    const size_t row = (size_t)m + 1;
    int32_t *best = ARENA_ARRAY(own, int32_t, ((size_t)n + 1) * row);
    for (int i = n - 1; i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            const int32_t down = best[(size_t)(i + 1) * row + (size_t)k],
                          right = best[(size_t)i * row + (size_t)k + 1], w = worth(&x[i], &y[k]),
                          both = w ? best[(size_t)(i + 1) * row + (size_t)k + 1] + w : 0;
            const int32_t more = down > right ? down : right;
            best[(size_t)i * row + (size_t)k] = both > more ? both : more;
        }
    Str out = str_new(arena);
    for (int i = 0, k = 0; i < n || k < m;) {
        const int32_t here = best[(size_t)i * row + (size_t)k];
        const int w = i < n && k < m ? worth(&x[i], &y[k]) : 0;
        if (w && here == best[(size_t)(i + 1) * row + (size_t)k + 1] + w) {
            const bool same = !strcmp(x[i].text, y[k].text);
            put(&out, same ? "  " : "A ", x[i++].text);
            if (!same) put(&out, "B ", y[k].text);
            k++;
        } else if (i < n && (k == m || here == best[(size_t)(i + 1) * row + (size_t)k]))
            put(&out, "A ", x[i++].text);
        else put(&out, "B ", y[k++].text);
    }
    arena_free(own);
    return out.s;
}
