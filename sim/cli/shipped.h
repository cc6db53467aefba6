/* Plans that ship with the program, by name. */
#ifndef SP_CLI_SHIPPED_H
#define SP_CLI_SHIPPED_H
#include "cli/cli.h"

/* The path of the shipped plan that `name` means ("05-llama3-8b-tp4-sp", "bugs/03-...", with or
 * without "plans/" and ".yaml"), in the arena; NULL if a file of that path is there, or no such
 * plan ships. */
const char *shipped_plan(Arena *a, const char *name);
/* Operands of a command that reads plans: names of shipped plans become their paths. */
void shipped_operands(Cli *c);
/* Tables of `list plans` and `list recipes`; a diagnostic in c->d (E0101) where the plans are not
 * found. */
void list_plans(Cli *c);
void list_recipes(Cli *c);
#endif
