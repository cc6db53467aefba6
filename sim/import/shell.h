/* A shell's script as words: what its literals decide, with the places where they stand. Arrays and
 * variables that assignments set, strings, `$(( ))` over them, branches whose tests compare such
 * values, comments, line ends behind `\`. Runs nothing: what a command, a condition, the caller or
 * the environment decides is a word with a reason, `why`, and an error only where somebody needs
 * its value. */
#ifndef SP_IMPORT_SHELL_H
#define SP_IMPORT_SHELL_H
#include "import/scan.h"

typedef struct {
    const char *s;   /* as it would be passed on; as it was written, where `why` says something */
    Loc loc;         /* where its first character was written: in the assignment, if it came so */
    const char *why; /* what decides it, or NULL: literals do */
    bool first;      /* of a command */
} ShellWord;
typedef struct {
    int n, cap;
    ShellWord *word;
    Str defaults; /* of the environment's variables that were taken: "TP: 8, PP: 1" */
} ShellWords;

/* The words of all commands but those that only prepare (cd, echo, export and so on), in their
 * order. At most VALUE_PAIRS of them (E0704). False and a diagnostic where a script does more than
 * this reads. */
bool shell_words(Scan *s, ShellWords *out);
#endif
