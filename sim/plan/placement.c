/* Placements as written: their words, a text as one of them, and what another spelling of one
 * means. Refuses to know whose placement it is (place.c) and whether a dim exists (the model
 * decides). */
#include "plan/read.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *word;
    RawKind kind;
    bool dim; /* takes (d) */
    bool letter;
    const char *theirs; /* PyTorch's way to write it, for a hint */
    const char *what;
} PlaceRow;
static const PlaceRow places[] = {
    {"replicate", RP_REPLICATE, false, false, "Replicate", "every rank holds the whole tensor"},
    {"shard", RP_SHARD, true, true, "Shard",
     "the ranks hold parts of one dim: shard(0) the first, shard(-1) the last, shard(f) the letter "
     "f of the op, block by block where several lie in one dim"},
    {"partial", RP_PARTIAL, false, false, "Partial",
     "each rank holds a share of a sum over the axis that is still to be made"},
    {"invariant", RP_INVARIANT, false, false, NULL,
     "whole on every rank and used alike by all: its gradient is no sum over the axis"},
    {"varying_use", RP_VARYING, false, false, NULL,
     "whole on every rank, each uses it differently: its gradient is a sum over the axis"},
    {"contiguous", RP_CONTIGUOUS, true, false, NULL,
     "a stored dim cut as it lies in memory, across the blocks that are packed in it"},
    {"local", RP_LOCAL, false, false, NULL,
     "left as the ranks' own results are and taken for whole: nothing is moved"},
    {"tokens", RP_TOKENS, false, false, NULL,
     "the flat list of tokens (batch times sequence) in parts: a cut of the batch where the axis "
     "divides it, of the sequence where there is only one"},
    {"home", RP_HOME, false, false, NULL,
     "a result lies as what entered the module did, and stays a sum where the block around it says "
     "that its own is one"},
    {"null", RP_NONE, false, false, NULL, "nothing is said: the value stays as it lies"},
};
enum { N_PLACES = sizeof places / sizeof places[0] };
const PlaceWord *plan_place_words(Arena *a, int *n) {
    PlaceWord *w = ARENA_ARRAY(a, PlaceWord, N_PLACES);
    for (int i = 0; i < N_PLACES; i++)
        w[i] =
            (PlaceWord){places[i].dim ? arena_printf(a, "%s(d)", places[i].word) : places[i].word,
                        places[i].theirs, places[i].what};
    *n = N_PLACES;
    return w;
}

static const char *const all_places = "placements: replicate, shard(0), shard(-1), shard(f), "
                                      "partial, invariant, varying_use, contiguous(0), local, "
                                      "tokens, home";

/* A stored dim (0, -1) or, where allowed, a letter. */
static bool place_arg(const PlaceRow *row, const char *arg, RawPlace *out) {
    const char *digits = arg[0] == '-' ? arg + 1 : arg;
    size_t n = strspn(digits, "0123456789");
    if (n && !digits[n] && n <= 4) {
        out->dim = atoi(arg);
        return true;
    }
    if (row->letter && arg[0] >= 'a' && arg[0] <= 'z' && !arg[1]) {
        out->letter = arg[0];
        return true;
    }
    return false;
}
/* "1" of " 1 " and of "dim = 1": the dim that is said in brackets. */
static const char *dim_said(Arena *a, const char *arg) {
    arg += strspn(arg, " ");
    if (!strncmp(arg, "dim", 3) && arg[3 + strspn(arg + 3, " ")] == '=')
        arg = strchr(arg, '=') + 1, arg += strspn(arg, " ");
    size_t n = strlen(arg);
    while (n && arg[n - 1] == ' ') n--;
    return arena_strndup(a, arg, n);
}
/* The placement of that row as it is written here, with the dim that another spelling says: in
 * brackets, or a number at the end of `word`. NULL: it says none that can be one. */
static const char *place_written(Arena *a, const PlaceRow *row, const char *word, const char *arg) {
    RawPlace any;
    const char *end = word + strlen(word);
    if (!row->dim) return row->word;
    while (!arg && end > word && strchr("-0123456789", end[-1])) end--;
    const char *said = dim_said(a, arg ? arg : end);
    return place_arg(row, said, &any) ? arena_printf(a, "%s(%s)", row->word, said) : NULL;
}
/* "Shard" and "S" of PyTorch, "shard" of "shard1": the row of that word; NULL: no word like it. */
static const PlaceRow *place_spelt(const char *word) {
    const size_t n = strcspn(word, " _-0123456789");
    for (int i = 0; i < N_PLACES; i++) {
        const char *own = places[i].word, *theirs = places[i].theirs;
        if (n && strlen(own) == n && !strncasecmp(own, word, n)) return &places[i];
        if (theirs && n == 1 && *word == *theirs) return &places[i];
    }
    return NULL;
}
const char *plan_place_meant(Arena *a, const char *text) {
    const char *open = strchr(text, '('), *close = open ? strrchr(open, ')') : NULL;
    const char *word = open ? arena_strndup(a, text, (size_t)(open - text)) : text;
    const PlaceRow *row = place_spelt(word);
    const char *arg = open && close ? arena_strndup(a, open + 1, (size_t)(close - open - 1)) : NULL;
    return row ? place_written(a, row, word, arg) : NULL;
}
static const char *dim_wanted(const PlaceRow *row) {
    return row->letter ? "write shard(0), shard(-1), or shard(f) with the letter of an atomic dim"
                       : "write contiguous(0) or contiguous(-1)";
}
static const char *place_hint(Arena *a, const char *text, const char *word, const char *arg) {
    const char *bare = read_bare_key(a, word), *meant = plan_place_meant(a, text);
    if (*word && !word[strspn(word, "-0123456789")]) return arena_printf(a, "shard(%s)", word);
    if (!strcmp(bare, "allreduce") || !strcmp(bare, "allgather") || !strcmp(bare, "reducescatter"))
        return arena_printf(a, "say how it lies, the collective follows: `%s`",
                            *bare == 'r' ? "shard(1)" : "replicate");
    const char *names[N_PLACES + 1] = {NULL};
    for (int i = 0; i < N_PLACES; i++) names[i] = places[i].word;
    const PlaceRow *row = meant ? NULL : place_spelt(word);
    const char *near = meant ? NULL : row ? row->word : diag_nearest(word, names);
    for (int i = 0; near && i < N_PLACES; i++) {
        if (strcmp(places[i].word, near)) continue;
        meant = place_written(a, &places[i], word, arg);
        if (!meant && !arg) meant = arena_printf(a, "%s(0)", near);
        if (!meant) meant = dim_wanted(&places[i]);
    }
    return meant ? meant : all_places;
}

bool plan_parse_place(Arena *arena, Diags *d, const char *text, Loc loc, RawPlace *out) {
    memset(out, 0, sizeof *out);
    out->loc = loc;
    const char *open = strchr(text, '('), *close = open ? strrchr(open, ')') : NULL;
    size_t n = open ? (size_t)(open - text) : strlen(text);
    while (n && text[n - 1] == ' ') n--;
    const char *word = arena_strndup(arena, text, n);
    const char *arg =
        open && close ? arena_strndup(arena, open + 1, (size_t)(close - open - 1)) : NULL;
    bool form = !open || (close && close[1] == 0);
    for (int i = 0; form && i < N_PLACES; i++) {
        const PlaceRow *row = &places[i];
        if (strcmp(row->word, word) != 0) continue;
        out->kind = row->kind;
        if (!row->dim && !arg) return true;
        if (row->dim && arg && place_arg(row, arg, out)) return true;
        if (!row->dim)
            diag_error(d, "E0206", loc, row->word, "'%s' takes nothing in brackets", row->word);
        else {
            const char *meant = plan_place_meant(arena, text);
            diag_error(d, "E0206", loc, meant ? meant : dim_wanted(row), "'%s' needs a dim: %s",
                       row->word, text);
        }
        return false;
    }
    diag_error(d, "E0206", loc, place_hint(arena, text, word, arg), "unknown placement '%s'", text);
    return false;
}
