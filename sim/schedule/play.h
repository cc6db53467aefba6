/* All ranks go through their lists, each as far as what it waits for is there: when each action
 * begins and ends, how much is in flight, and where it stands still for ever. Sends do not wait for
 * their receive, but for room: no more than `buffers` of them to one rank are on the way that it
 * has not begun to receive (strict rendezvous would stop 1F1B itself). */
#ifndef SP_SCHEDULE_PLAY_H
#define SP_SCHEDULE_PLAY_H
#include "schedule/schedule.h"

/* How long things take, in any unit. Per stage; a whole backward takes input + weight. */
typedef struct PlayTimes {
    const double *forward, *input, *weight;
    double together; /* a pair that runs together takes this share of both one after the other */
    double message;  /* from the send to the arrival */
    int buffers;     /* unreceived sends per rank, other rank and direction */
} PlayTimes;

typedef struct PlaySpan {
    double start, end; /* of messages: both when they are posted */
} PlaySpan;
/* An action in the order in which all ranks come to theirs. */
typedef struct PlayStep {
    int rank, at; /* at: place in the rank's list */
} PlayStep;
/* What an action waits for, in the order in which to ask: the first kind is not there because of
 * others. */
typedef enum {
    WAIT_NEXT,    /* an action before which another rank stands: that waits itself */
    WAIT_OTHER,   /* an action of another rank, which that has not come to */
    WAIT_ROOM,    /* for a message more */
    WAIT_OWN,     /* an action that stands later in the rank's own list */
    WAIT_CROSSED, /* messages are received in another order than sent */
    WAIT_ABSENT   /* an action that is in no list */
} PlayWait;
/* The first action that a rank cannot begin. */
typedef struct PlayBlocked {
    int rank, at; /* at -1: of messages that are crossed */
    PlayWait wait;
    const char *waits_for, *fix;
} PlayBlocked;
typedef struct Play {
    const Schedule *s;
    PlaySpan **span; /* per rank and action */
    double end;      /* of the last computation */
    double *busy;    /* per rank: time in computation */
    int *in_flight;  /* per rank: most (stage, micro-batch) pairs between their forward and the end
                        of  their backward, weights included */
    int n_steps;
    PlayStep *step; /* in order; messages too */
    int n_blocked;  /* 0: every rank came to the end of its list */
    PlayBlocked *blocked;
} Play;

/* Plays a schedule that has its messages. Everything lives in `arena`. */
Play *play_schedule(const Schedule *s, const PlayTimes *t, Arena *arena);
/* The same for all stages: F, I and W take so long each, messages nothing. */
PlayTimes play_even(const Schedule *s, double f, double i, double w, Arena *arena);
/* An error (E0311) that names for each blocked rank its action and what that waits for; its fix is
 * that of the rank that waits for the fewest others. */
void play_report(const Play *p, Diags *d, Loc loc);
#endif
