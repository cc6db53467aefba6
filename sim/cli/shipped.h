/* Plans that ship with the program, by name. */
#ifndef SP_CLI_SHIPPED_H
#define SP_CLI_SHIPPED_H
#include "cli/cli.h"

/* The folder of the plans that ship, or NULL: there is none beside the program. */
const char *shipped_folder(Arena *a);
struct dirent;
/* The order of names in a folder, the same in every locale (for scandir). */
int shipped_by_name(const struct dirent **x, const struct dirent **y);
/* The path of the shipped plan that `name` means ("05-llama3-8b-tp4-sp", "bugs/03-...", with or
 * without "plans/" and ".yaml"), in the arena; NULL if a file of that path is there, or no such
 * plan ships. */
const char *shipped_plan(Arena *a, const char *name);
/* Adds what to write instead to the error that a plan `path` cannot be read: the shipped plan whose
 * name begins so, or, for a folder, the command that takes folders. */
void shipped_suggest(Arena *a, const char *path, Diags *d);
/* Operands of a command that reads plans: names of shipped plans become their paths. */
void shipped_operands(Cli *c);
/* Tables of `list plans` and `list recipes`; a diagnostic in c->d (E0101) where the plans are not
 * found. */
void list_plans(Cli *c);
void list_recipes(Cli *c);
#endif
