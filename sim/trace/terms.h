/* The words that steps and records are typed by, and the words that a trace spells them with.
 * Inside the program they are enums; text stands at its borders only: in a trace (trace_read.c,
 * trace_write.c), in a plan's `expect`, on the command line and in what people read. Refuses to
 * know records and programs. */
#ifndef SP_TRACE_TERMS_H
#define SP_TRACE_TERMS_H
#include "base/arena.h"

/* What a step belongs to. PHASE_NONE: a foreign trace does not say. */
typedef enum {
    PHASE_NONE,
    PHASE_FORWARD,
    PHASE_LOSS,
    PHASE_BACKWARD,
    PHASE_GRADIENTS,  /* sums of gradients of parameters, and what makes these */
    PHASE_PARAMETERS, /* parameters on their way from rest to use */
    PHASE_OPTIMIZER,
    N_PHASES
} Phase;

/* What a plan asks for: word and enumerator. */
#define PASSES(P) P(forward, FORWARD) P(backward, BACKWARD) P(train, TRAIN)
#define PASS_KIND(word, name) PASS_##name,
typedef enum { PASSES(PASS_KIND) N_PASSES } PassKind;
#undef PASS_KIND

/* What a value record is of. VALUE_NONE: a foreign trace does not say. */
typedef enum {
    VALUE_NONE,
    VALUE_INPUT,
    VALUE_ACTIVATION,
    VALUE_MOVED, /* a copy in another layout */
    VALUE_COTANGENT,
    VALUE_GRADIENT, /* of a parameter */
    VALUE_UPDATED,  /* a parameter or state, in place, by the optimizer */
    N_VALUE_ROLES
} ValueRole;

/* How a step's numbers are held. */
typedef enum {
    LEVEL_STRUCTURE, /* without numbers: owners and terms (`verify`) */
    LEVEL_BITS,      /* the same bits as the unsharded kernel makes of the run's own inputs */
    LEVEL_BOUND,     /* within the error bound of its sums */
    LEVEL_EXACT      /* integer data, equal in any order */
} CheckLevel;

/* What a name in a record speaks of: a value, parameter or state by its own name, or the gradient
 * of one. */
typedef enum { OF_ITSELF, OF_GRADIENT, OF_PARAM_GRADIENT } SubjectRole;
typedef struct {
    SubjectRole role;
    const char *of; /* "layers.0.q_proj", "layers.0.attention.wq.weight"; NULL: no name is given */
} Subject;
/* Its name in records: "layers.0.q_proj", "grad.layers.0.q_proj", "grad.param.W". In `arena`, or
 * the text itself. The one maker of such names; subject_of, the one reader, is its inverse. */
const char *subject_name(Arena *arena, Subject s);
/* `of` points into the name; of a NULL it is NULL. */
Subject subject_of(const char *name);
bool subject_is_gradient(Subject s);
/* Is it the gradient of the value (not of a parameter) of that name? */
bool subject_is_gradient_of(Subject s, const char *value);

/* The words of an enum by its number, N of them; NULL: this one has none. */
extern const char *const phase_words[N_PHASES];
extern const char *const pass_words[N_PASSES];
extern const char *const value_role_words[N_VALUE_ROLES];

/* What a placement of an axis says of a cut: "shard(1)", "zigzag(1)", "striped(1)". */
typedef enum { PLACE_WHOLE, PLACE_SHARD, PLACE_ZIGZAG, PLACE_STRIPED, N_PLACE_CUTS } PlaceCut;
extern const char *const place_cut_words[N_PLACE_CUTS];
/* How a placement cuts, and (not NULL) of which dim; PLACE_WHOLE of one that cuts nothing
 * ("replicate", "partial(max)", "at(0)") and of NULL. */
PlaceCut place_cut(const char *place, int *dim);

/* What a placement of an axis leaves to be done over it: "partial", "partial(max)"; with the ranks
 * between which it is, "partial at(0,3)". */
typedef enum { PENDING_NONE, PENDING_SUM, PENDING_MAX, N_PENDINGS } PlacePending;
extern const char *const place_pending_words[N_PENDINGS];
/* PENDING_NONE of one after which nothing is left to be done, and of NULL. */
PlacePending place_pending(const char *place);

/* The number of a word in such a list of n; -1: it stands not there. NULL stands nowhere. */
int term_of(const char *const *words, int n, const char *word);
/* "forward"; "" for PHASE_NONE. For people. */
const char *phase_text(Phase p);
/* The phase that a step is drawn and counted with where a trace does not say: forward. */
Phase phase_or_forward(Phase p);

/* Keys of a plan that may ask for what the unsharded model does not do: the word that is right in
 * place of such a word, and the line "normalise: global" in place of "normalise: local_mean", as
 * records have it. NULL: it asks for nothing wrong. */
const char *term_right_word(const char *key, const char *word);
const char *term_right_line(const char *line);

/* A part of a model, as records of computes name it, and what a reader must know of it: whoever
 * asks what a part is asks its row. */
typedef struct {
    const char *name;         /* "mlp" */
    const char *word, *whole; /* within a sentence: "MLP", "the MLP"; NULL: as it is named */
    bool norm;                /* belongs to what it stands before */
    bool attends, feeds;      /* branches of a layer: attention, the MLP or MoE; or both as one */
    bool embedding, head, loss;
} PartTerm;
/* Its row; one that says nothing of NULL and of a part that no model of ours has. */
const PartTerm *part_term(const char *part);
/* "MLP", "attention", "MoE". */
const char *part_term_word(const char *part);
#endif
