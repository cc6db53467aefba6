/* A list of 0 and 1 as Megatron-LM's arguments.py evaluates it: lists, sums, multiples, brackets.
 * Refuses everything else of Python. */
#include "import/layer_freq.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *p;
    bool *out;
    int64_t n; /* made so far */
    int depth;
} Freq;
static char next(Freq *f) {
    while (isspace((unsigned char)*f->p)) f->p++;
    return *f->p;
}
static bool take(Freq *f, char c) {
    if (next(f) != c) return false;
    f->p++;
    return true;
}
static bool push(Freq *f, bool has) {
    if (f->n >= LAYER_FREQ_MOST) return false;
    f->out[f->n++] = has;
    return true;
}
static bool sum(Freq *f);
static bool list(Freq *f) {
    if (take(f, '(')) return f->depth++ < 16 && sum(f) && take(f, ')');
    if (!take(f, '[')) return false;
    do {
        char c = next(f);
        if ((c != '0' && c != '1') || isdigit((unsigned char)f->p[1]) || !push(f, c == '1'))
            return false;
        f->p++;
    } while (take(f, ','));
    return take(f, ']');
}
/* A list that stands n times one behind the other. */
static bool product(Freq *f) {
    int64_t from = f->n;
    if (!list(f)) return false;
    while (take(f, '*')) {
        if (!isdigit((unsigned char)next(f))) return false;
        char *end;
        long long times = strtoll(f->p, &end, 10);
        int64_t one = f->n - from;
        f->p = end;
        if (times < 1 || times > LAYER_FREQ_MOST) return false;
        for (int64_t i = one; i < times * one; i++)
            if (!push(f, f->out[from + i - one])) return false;
    }
    return true;
}
static bool sum(Freq *f) {
    do
        if (!product(f)) return false;
    while (take(f, '+'));
    return true;
}
const char *layer_freq_read(const char *text, int64_t n, bool experts[LAYER_FREQ_MOST]) {
    static const char wants[] = "wants a number of layers, or lists of 0 and 1: \"[0]*3+[1]*58\"";
    if (n > LAYER_FREQ_MOST) return "is read for 4096 layers at most";
    Freq f = {.p = text, .out = experts};
    if (isdigit((unsigned char)next(&f))) {
        char *end;
        long long every = strtoll(f.p, &end, 10);
        if (*end || every < 1 || every > LAYER_FREQ_MOST) return wants;
        for (int64_t i = 0; i < n; i++) experts[i] = i % every == 0;
        return NULL;
    }
    if (!sum(&f) || next(&f)) return wants;
    return f.n == n ? NULL : "is of another number of layers than --num-layers: Megatron stops";
}
