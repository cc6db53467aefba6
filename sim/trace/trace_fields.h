/* The shape of every record, as data: one row per field, in the order in which it is written.
 * trace_write.c and trace_read.c walk these tables, so what one writes the other reads. A new field
 * of trace.h is one row here. */
#ifndef SP_TRACE_TRACE_FIELDS_H
#define SP_TRACE_TRACE_FIELDS_H
#include "trace/trace.h"

/* What stands at the field's offset. Both files have one function per kind, in tables indexed by
 * this. */
typedef enum {
    F_TEXT,    /* const char * */
    F_WORD,    /* an enum of terms.h: the list of its words is `normal`; 0 if it is absent */
    F_INT,     /* int */
    F_I64,     /* int64_t */
    F_REAL,    /* double */
    F_NUMBER,  /* double that is usually whole: written 4096, not 4096.0 */
    F_BOOL,    /* bool */
    F_RANKS,   /* RankSet */
    F_TEXTS,   /* const char **, int at count_at */
    F_CUTS,    /* const char *[TRACE_MAX_DIMS] */
    F_STEPS,   /* int *, as many as the int at count_at, which has been read before */
    F_NUMBERS, /* double *, int64_t at count_at */
    F_INDEX,   /* int64_t[TRACE_MAX_DIMS], int at count_at */
    F_GLOBAL,  /* TraceShape: its global shape; so F_PLACES its layout, F_DIMS its symbols, F_LOCALS
                  its local shapes */
    F_PLACES,
    F_DIMS,
    F_LOCALS,
    F_GROUPS,       /* RankGroups */
    F_TRAFFIC,      /* TraceCollective: bytes per class of ranks */
    F_WITH,         /* int *, int at count_at */
    F_HELD,         /* const TraceHeld * */
    F_ERRORS,       /* TraceCheck: error per rank */
    F_PARAM_NAME,   /* TraceParam: name, canonical, plan_name */
    F_MATCHED,      /* TraceParam: file and line */
    F_MESH,         /* Trace: axes */
    F_NAMED_GROUPS, /* Trace: groups */
    F_MODEL,        /* Trace: model */
    F_SETTINGS,     /* Trace: settings */
    F_CLASSES,      /* Trace: classes */
    F_WORST,        /* Trace: worst_value, worst_used */
    F_ENDS,         /* Trace: end_to_end, its off and bound */
    F_SEVERITY,     /* Severity */
    F_EVENT_RANK,   /* TraceEvent: first of its ranks */
    F_KINDS
} FieldKind;

/* The words of an enum, by its number. */
typedef struct {
    const char *const *word;
    int n;
} WordList;
enum { WORDS_PHASE, WORDS_PASS, WORDS_VALUE_ROLE, N_WORD_LISTS };
extern const WordList word_lists[N_WORD_LISTS];

typedef enum {
    OPTIONAL, /* left out while it has its normal value */
    ALWAYS,   /* written always; a foreign trace may lack it and means the normal value */
    REQUIRED  /* not a trace without it */
} FieldRule;

typedef struct {
    const char *key;
    FieldKind kind;
    FieldRule rule;
    size_t at, count_at; /* offsets into the record */
    int normal;          /* of F_INT and F_I64; F_WORD: which of word_lists */
} Field;

typedef struct {
    const char *type; /* "param" */
    const Field *field;
    int n;
    size_t size; /* of the struct */
    size_t items_at,
        count_at; /* in Trace; for run and verdict, which are the Trace itself, count_at is 0 */
    int step_at;  /* in the record; -1: no step */
} RecordType;

/* run first, verdict last; in between in the order that ties of steps are written in. */
enum {
    RECORD_RUN,
    RECORD_PARAM,
    RECORD_MODULE,
    RECORD_COMPUTE,
    RECORD_FIRST_STEPPED = RECORD_COMPUTE,
    RECORD_COLLECTIVE,
    RECORD_MOVE,
    RECORD_VALUE,
    RECORD_CHECK,
    RECORD_EVENT = 13,
    RECORD_MEASURED,
    RECORD_TIE,
    RECORD_AGAINST,
    RECORD_ACTION,
    RECORD_DIAG,
    RECORD_VERDICT,
    N_RECORD_TYPES
};
extern const RecordType record_types[N_RECORD_TYPES];

enum {
    TRACE_SPELLED = 64,       /* a set or group of more ranks is written as "first:stop:stride" */
    TRACE_GROUP_RANKS = 1024, /* collectives over more ranks show count and size instead of lists */
};
#define TRACE_SCHEMA "shardproof/1"
#endif
