/* Which files a command reads and which it writes, so that none is both. Refuses to open an output:
 * base/file.c writes. */
#ifndef SP_CLI_FILES_H
#define SP_CLI_FILES_H
#include "cli/cli.h"

/* A file that `run` writes into its folder. */
typedef struct {
    const char *path;
    const RenderView *view; /* NULL: the trace */
    RenderFormat format;
} RunFile;
/* All of them, the trace first, for a plan of this name; in c->arena. A name that makes no file
 * name is altered. */
const RunFile *files_of_run(Cli *c, const char *dir, const char *name, int *n);

/* What the command line names is held against itself before anything runs: an output (-o, --trace,
 * --save-values) that is also an input or another output. False and E0212. */
bool files_check_words(Cli *c);
/* The same for a plan or trace that was read, with the files that it names (weights and their
 * shards, inputs, hf_config, hardware) and those that `run` will write; then whether the outputs
 * can be written at all (E0105). */
bool files_check(Cli *c, const Loaded *l);
#endif
