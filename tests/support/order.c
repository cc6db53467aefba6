/* Clocks of streams. See order.h. */
#include "order.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *p, *by; /* who wrote it */
    size_t n;
    int writer;
    unsigned wrote, read[ORDER_STREAMS];
} Block;
static struct {
    pthread_mutex_t lock;
    OrderClock seen[ORDER_STREAMS];
    int streams, n, cap;
    Block *block;
} W = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void join(OrderClock *to, const OrderClock *from) {
    for (int i = 0; i < ORDER_STREAMS; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}
int order_stream(void) {
    if (++W.streams == ORDER_STREAMS) abort();
    return W.streams;
}
OrderClock order_now(int stream) {
    pthread_mutex_lock(&W.lock);
    join(&W.seen[stream], &W.seen[ORDER_HOST]);
    OrderClock now = W.seen[stream];
    pthread_mutex_unlock(&W.lock);
    return now;
}
void order_behind(int stream, const OrderClock *clock) {
    pthread_mutex_lock(&W.lock);
    join(&W.seen[stream], clock);
    pthread_mutex_unlock(&W.lock);
}
/* FAKE_ORDER=events: as if the host never waited for anything. */
static bool events_alone(void) {
    const char *how = getenv("FAKE_ORDER");
    return how && !strcmp(how, "events");
}
void order_waited(int stream) {
    if (!events_alone()) order_behind(ORDER_HOST, &W.seen[stream]);
}
static Block *find(const void *p) {
    for (int i = W.n - 1; i >= 0; i--)
        if ((const char *)p >= W.block[i].p && (const char *)p <= W.block[i].p + W.block[i].n)
            return &W.block[i];
    return NULL;
}
static void touch(int stream, Block *b, bool writes, const char *what) {
    OrderClock *seen = &W.seen[stream];
    join(seen, &W.seen[ORDER_HOST]);
    seen->at[stream]++;
    int other = b->wrote > seen->at[b->writer] ? b->writer : -1;
    for (int i = 0; i < ORDER_STREAMS && writes; i++)
        if (b->read[i] > seen->at[i]) other = i;
    if (other >= 0) {
        bool wrote = other == b->writer && b->wrote > seen->at[other];
        fprintf(stderr, "no event orders what streams do: %s %s on stream %d what %s %s on %d\n",
                what, writes ? "writes" : "reads", stream, wrote ? b->by : "something",
                wrote ? "writes" : "reads", other);
        abort();
    }
    if (!writes) {
        b->read[stream] = seen->at[stream];
        return;
    }
    b->writer = stream;
    b->wrote = seen->at[stream];
    b->by = what;
}
void order_take(const void *p, size_t n) {
    pthread_mutex_lock(&W.lock);
    if (W.n == W.cap) W.block = realloc(W.block, (size_t)(W.cap = 2 * W.cap + 64) * sizeof(Block));
    W.block[W.n++] = (Block){.p = p, .n = n, .by = "takes", .writer = ORDER_HOST};
    touch(ORDER_HOST, &W.block[W.n - 1], true, "takes");
    pthread_mutex_unlock(&W.lock);
}
/* Whoever gives it back must know that nobody is at it. */
void order_give(const void *p) {
    pthread_mutex_lock(&W.lock);
    Block *b = p ? find(p) : NULL;
    if (b) {
        if (!events_alone()) touch(ORDER_HOST, b, true, "cudaFree");
        *b = W.block[--W.n];
    }
    pthread_mutex_unlock(&W.lock);
}
void order_touch(int stream, const void *p, bool writes, const char *what) {
    pthread_mutex_lock(&W.lock);
    Block *b = p && (stream != ORDER_HOST || !events_alone()) ? find(p) : NULL;
    if (b) touch(stream, b, writes, what);
    pthread_mutex_unlock(&W.lock);
}

/* ---- what may run at once ---- */
enum { KINDS = 256 };
typedef struct {
    int stream, kind;
    unsigned at; /* on its stream */
    OrderClock seen;
} Asked;
static struct {
    const char *kind[KINDS];
    long pairs[KINDS][KINDS];
    Asked *asked;
    size_t n, cap;
} A;
static int kind_of(const char *what) {
    int k = 0;
    while (k < KINDS && A.kind[k] && strcmp(A.kind[k], what) != 0) k++;
    if (k == KINDS) abort();
    A.kind[k] = what;
    return k;
}
void order_asked(int stream, const char *what) {
    if (!getenv("FAKE_BESIDE")) return;
    pthread_mutex_lock(&W.lock);
    OrderClock *seen = &W.seen[stream];
    join(seen, &W.seen[ORDER_HOST]);
    Asked now = {stream, kind_of(what), ++seen->at[stream], *seen};
    for (size_t i = 0; i < A.n; i++) /* it came before: does this one know of it? */
        A.pairs[A.asked[i].kind][now.kind] += A.asked[i].at > now.seen.at[A.asked[i].stream];
    if (A.n == A.cap) A.asked = realloc(A.asked, (A.cap = 2 * A.cap + 256) * sizeof *A.asked);
    A.asked[A.n++] = now;
    pthread_mutex_unlock(&W.lock);
}
__attribute__((destructor)) static void say_beside(void) {
    const char *file = getenv("FAKE_BESIDE");
    FILE *to = file ? fopen(file, "a") : NULL;
    for (int i = 0; to && i < KINDS; i++)
        for (int k = i + 1; k < KINDS && A.kind[k]; k++)
            if (A.pairs[i][k] + A.pairs[k][i])
                fprintf(to, "%s | %s: %ld\n", A.kind[i], A.kind[k], A.pairs[i][k] + A.pairs[k][i]);
    if (to) fclose(to);
}
