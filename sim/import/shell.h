/* A shell's script as words: what its literals decide, with the places where they stand. Arrays and
 * variables that assignments set, strings, `$(( ))` over them, branches whose tests compare such
 * values, comments, line ends behind `\`. Runs nothing: what a command, a condition, the caller or
 * the environment decides is a word with a reason, `why`, and an error only where somebody needs
 * its value. What the caller may know beside the script, `args`, is read as a shell reads it:
 * variables that are set before the script, and words behind those of its command. */
#ifndef SP_IMPORT_SHELL_H
#define SP_IMPORT_SHELL_H
#include "import/scan.h"

/* An `if` that nothing here decides: words may stand in each of its branches. */
typedef struct {
    int branches; /* that may be taken */
    bool whole;   /* one of them is */
} ShellChoice;
typedef struct {
    const char *s;   /* as it would be passed on; as it was written, where `why` says something */
    Loc loc;         /* where its first character was written: in the assignment, if it came so */
    const char *why; /* what decides it, or NULL: literals do */
    bool first;      /* of a command */
    const ShellChoice *choice; /* that alone decides whether it is there, or NULL */
    int branch;                /* of it, from 1 */
} ShellWord;
typedef struct {
    int n, cap;
    ShellWord *word;
    Str defaults; /* of the environment's variables that were taken: "TP: 8, PP: not set" */
    Str taken;    /* variables whose words these are, where the script runs nothing: "MODEL_ARGS" */
} ShellWords;

/* The words of all commands but those that only prepare (cd, echo, export and so on), in their
 * order; of a script that runs nothing the arguments that its variables hold. At most VALUE_PAIRS
 * of them (E0704). `args`: `NAME=VALUE ..` of the environment ("1=VALUE": the first argument), then
 * words that go on after those of the script; NULL: none. False and a diagnostic where a script
 * does more than this reads. */
bool shell_words(Scan *s, Scan *args, ShellWords *out);
#endif
