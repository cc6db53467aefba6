/* How a run ends before its time: for lack of memory, by a signal, by a bug. Whatever the reason,
 * what was registered here is undone first (half-written files, folders made for nothing, a
 * progress line), so nothing is left behind. Refuses to go on after that: no function here lets the
 * caller try again. */
#ifndef SP_BASE_ENDS_H
#define SP_BASE_ENDS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Prints "shardproof: MESSAGE" on stderr, runs the clean-ups and ends the process with `code`, from
 * any thread and without allocating: exit() would run the destructors of libraries while other
 * threads still work. */
_Noreturn void base_die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same but for the end, which the caller brings about: of all processes of a run. Written like
 * an error that is a diagnostic, with a line of help below. */
void base_last_words(const char *help, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* From now on one process speaks of those that share `word` (0 at first, mapped as long as they
 * live): base_last_words returns in silence where another has had its last words, when those are
 * written; so whoever ends all of them behind it takes no word away. */
void base_one_speaks(_Atomic int32_t *word);

/* `fn(arg)` runs once if the run ends early, the latest first. It runs inside a signal handler: it
 * may call only what signal-safety(7) allows, and whatever `arg` points to must be complete when it
 * is pushed. At most 32 at a time; pop it with the same two. */
void base_cleanup_push(void (*fn)(void *), void *arg);
void base_cleanup_pop(void (*fn)(void *), void *arg);
/* Runs what is registered, the latest first, each once: what an early end does before it ends. */
void base_run_cleanups(void);

/* The process as the program wants it; called once, by main. SIGINT, SIGTERM and SIGHUP clean up
 * and exit with 128 + n, SIGXCPU with 5; a crash or an abort (of a library, too) cleans up and then
 * dies of its signal as it would have. SIGPIPE and SIGXFSZ are ignored: they come back as errors of
 * write. What the parent ignores stays ignored. */
void base_catch_signals(void);
/* A standard stream that was closed (`>&-`) is opened on /dev/null the wrong way round, so that
 * using it is an error and no file of ours gets its number. */
void base_guard_streams(void);
#endif
