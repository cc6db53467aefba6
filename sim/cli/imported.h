/* A framework's own file in place of a plan. */
#ifndef SP_CLI_IMPORTED_H
#define SP_CLI_IMPORTED_H
#include "cli/cli.h"
#include "import/import.h"

/* What the command line and a file give to the reader of `framework`. */
ImportInput imported_input(const Cli *c, const char *framework, const char *path, const char *text,
                           size_t n);
/* The exit code for what was found: a wrong option is wrong usage, whatever else is wrong. */
int imported_exit(const Diags *d);
#endif
