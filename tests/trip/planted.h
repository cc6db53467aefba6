/* What is planted in a run of several processes, for the libraries that stand in others' places
 * there: FAKE_FAULT="1 GroupEnd 3 remote; 2 rename 1 kill", on rank 1 at the third call of that
 * name what `remote` says there, on rank 2 SIGKILL. Each rank is one process, which RANK names.
 * "hold": it makes FAKE_DIR/held and goes on when somebody has taken that away. */
#ifndef SP_TESTS_PLANTED_H
#define SP_TESTS_PLANTED_H
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLANTED_TEXT = 64, PLANTED_MOST = 4 };
/* The words of one fault: "remote", or "returns" and what. */
typedef struct {
    char word[PLANTED_TEXT], what[PLANTED_TEXT];
} Planted;
/* Only this thread waits: whoever asks how the rank is hears from it. */
static inline void planted_hold(void) {
    char name[4096];
    const char *dir = getenv("FAKE_DIR");
    if (!dir || snprintf(name, sizeof name, "%s/held", dir) >= (int)sizeof name) abort();
    FILE *f = fopen(name, "w");
    if (!f || fclose(f)) abort();
    while (!access(name, F_OK)) usleep(1000);
}
/* As if somebody had sent this process a signal just here, or held it: false, the word is neither.
 */
static inline bool planted_signal(const char *word) {
    if (!strcmp(word, "hold")) {
        planted_hold();
        return true;
    }
    bool stop = !strcmp(word, "stop");
    if (!stop && strcmp(word, "kill") != 0) return false;
    raise(stop ? SIGSTOP : SIGKILL);
    return true;
}
/* Is one planted at this call? `seen` counts the calls, one number for each fault. */
static inline bool planted_at(const char *call, _Atomic int seen[PLANTED_MOST], Planted *p) {
    const char *text = getenv("FAKE_FAULT"), *rank = getenv("RANK");
    for (int i = 0; text && *text && i < PLANTED_MOST; i++) {
        char name[PLANTED_TEXT];
        int on, at;
        *p = (Planted){"", ""};
        if (sscanf(text, "%d %63s %d %63[a-z] %63[a-z]", &on, name, &at, p->word, p->what) < 4)
            abort();
        if (!strcmp(name, call) && rank && atoi(rank) == on &&
            atomic_fetch_add(&seen[i], 1) + 1 == at)
            return !planted_signal(p->word); /* who was stopped goes on */
        text = strchr(text, ';') ? strchr(text, ';') + 1 : NULL;
    }
    return false;
}
#endif
