/* `import hf --names`: what a table of Hugging Face's library does to the recorded names of a
 * model, parameter by parameter, or of a folder of them, model by model. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/fold.h"
#include "cli/imported.h"
#include "import/named.h"
#include "import/recorded.h"
#include "model/model.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- one model ---- */
static const Column name_columns[] = {
    {"kind", "kind", false, COL_DROP},     {"name", "name", false, COL_PREFIX | COL_NAMES},
    {"rule", "rule", false, COL_LAST},     {"style", "style", false, 0},
    {"axis", "axis", false, COL_OPTIONAL}, {"placement", "placement", false, 0},
    {"shape", "shape", false, 0},          {"local", "local", false, 0},
};
enum { N_COLUMNS = sizeof name_columns / sizeof *name_columns };

static bool same_ranks(const NamedParam *p) {
    for (int k = 1; k < p->ranks; k++)
        if (memcmp(p->local[k], p->local[0], sizeof p->local[0]) != 0) return false;
    return true;
}
/* The shape that each rank has: once if it is the same on all, else rank by rank. */
static Cell local_cell(Arena *a, const NamedParam *p) {
    if (same_ranks(p)) return cell_shape(a, p->local[0], p->nd);
    Str text = str_new(a), json = str_new(a);
    for (int k = 0; k < p->ranks; k++) {
        Cell one = cell_shape(a, p->local[k], p->nd);
        str_addf(&text, "%s%s", k ? " " : "", one.text);
        str_addf(&json, "%s%s", k ? "," : "[", one.json);
    }
    str_add(&json, "]");
    return (Cell){text.s, text.s, json.s};
}
static void rule_cells(Cell *r, const NamedRule *rule) {
    if (!rule) return;
    r[2] = cell_text(rule->pattern);
    r[3] = cell_text(rule->style);
    r[4] = cell_text(rule->axis);
}
static Table names_rows(Cli *c, const NamedPlan *p, bool brief) {
    Table t = table_new(c->arena, "name", name_columns, N_COLUMNS);
    for (int i = 0; i < p->n_params; i++) {
        const NamedParam *x = &p->param[i];
        if (!x->local) continue;
        Cell *r = table_row(&t);
        r[0] = cell_text("parameter");
        r[1] = cell_text(x->name);
        table_place(&t, fold_place_first(x->name));
        rule_cells(r, x->rule);
        r[5] = x->placement ? cell_text(x->placement) : (Cell){"whole", NULL, NULL};
        r[6] = cell_shape(c->arena, x->shape, x->nd);
        r[7] = local_cell(c->arena, x);
    }
    for (int i = 0; i < p->n_modules; i++) {
        if (brief && p->module[i].rule->params) continue; /* its parameters say it */
        Cell *r = table_row(&t);
        r[0] = cell_text("module");
        r[1] = cell_text(p->module[i].name);
        table_place(&t, fold_place_first(p->module[i].name));
        rule_cells(r, p->module[i].rule);
    }
    return t;
}
static int parameters_cut(const NamedPlan *p) {
    int n = 0;
    for (int i = 0; i < p->n_params; i++)
        n += p->param[i].placement && *p->param[i].placement != 'R';
    return n;
}
static int rules_unused(const NamedPlan *p) {
    int n = 0;
    for (int i = 0; i < p->n_rules; i++) n += p->rule[i].unused;
    return n;
}
static void ranks_text(const Cli *c, Str *s) {
    if (c->o.tp > 0) str_addf(s, "tp %lld", (long long)c->o.tp);
    if (c->o.ep > 0) str_addf(s, "%sep %lld", c->o.tp > 0 ? ", " : "", (long long)c->o.ep);
}
/* What the library's own loads of that model type showed. */
static void add_recorded(Str *s, const char *model_type, const char *between) {
    const RecordedFault *f = import_recorded(model_type);
    if (f)
        str_addf(s, "%srecorded with transformers %s (%s), no fault of the plan: %s%s",
                 s->n ? between : "", f->version, f->where, f->what, *between ? "" : "\n");
}
static void one_model(Cli *c, const NamedPlan *p) {
    bool people = !strcmp(c->format, "text") || !strcmp(c->format, "md"),
         brief = people && !c->o.verbose;
    Table all = names_rows(c, p, brief), t = brief ? fold_layers(&all) : all;
    str_addf(&t.notes, "%s (%s), ", p->model_class ? p->model_class : "a model",
             p->model_type ? p->model_type : "no model_type");
    ranks_text(c, &t.notes);
    str_addf(&t.notes, ": %d rules, %d of them match nothing; %d of %d parameters cut\n",
             p->n_rules, rules_unused(p), parameters_cut(p), p->n_params);
    add_recorded(&t.notes, p->model_type, "");
    const char *lacks = import_lacking(p->model_type);
    if (lacks) str_addf(&t.notes, "placements only, it does not run here: %s\n", lacks);
    cli_table(c, &t);
}

/* ---- a folder of them ---- */
static const Column class_columns[] = {
    {"class", "class", false, 0},
    {"model_type", "model_type", false, 0},
    {"runs", "runs here", false, 0},
    {"parameters", "parameters", true, 0},
    {"tp_rules", "tp rules", true, 0},
    {"tp_cut", "cut by tp", true, 0},
    {"ep_rules", "ep rules", true, 0},
    {"ep_cut", "cut by ep", true, 0},
    {"unused", "match nothing", true, 0},
    {"says", "what is wrong", false, COL_WRAP},
    {"lacks", "what does not run", false, COL_WRAP},
};
static int by_name(const struct dirent **x, const struct dirent **y) {
    return strcmp((*x)->d_name, (*y)->d_name);
}
static int is_json(const struct dirent *e) {
    return *e->d_name != '.' && text_before(e->d_name, ".json");
}
/* The first error of a list, without the name of the file. */
static const char *first_error(const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR) return d->item[i].message;
    return NULL;
}
/* Adds one table's numbers of a class to its row. */
static void class_axis(Cli *c, Cell *r, const char *path, bool ep, Str *says, bool *known) {
    Diags *d = diags_new(c->arena);
    int64_t n = ep ? c->o.ep : c->o.tp;
    const NamedPlan *p = import_named(
        c->arena, d, path, (NamedTables){ep ? 0 : n, ep ? n : 0, c->o.tp_plan, c->o.ep_plan});
    const char *error = first_error(d);
    if (p) {
        *known = true;
        r[0] = cell_text(p->model_class ? p->model_class : path);
        r[1] = cell_text(p->model_type);
        r[2] = cell_bool(p->model_type && model_family_runs(p->model_type));
        r[3] = cell_int(c->arena, p->n_params);
        if (p->n_rules) r[ep ? 6 : 4] = cell_int(c->arena, p->n_rules);
        if (p->n_rules) r[ep ? 7 : 5] = cell_int(c->arena, parameters_cut(p));
        int unused = rules_unused(p) + (r[8].plain ? atoi(r[8].plain) : 0);
        if (unused) r[8] = cell_int(c->arena, unused);
    }
    if (error && (p || !says->n))
        str_addf(says, "%s%s%s", says->n ? "; " : "", !p ? "" : ep ? "ep: " : "tp: ", error);
}
/* False: there is no such folder. */
static bool folder(Cli *c, const char *path) {
    struct dirent **e;
    int n = scandir(path, &e, is_json, by_name);
    if (n < 0) return false;
    Table t = table_new(c->arena, "class", class_columns,
                        (int)(sizeof class_columns / sizeof *class_columns));
    int unread = 0;
    for (int i = 0; i < n; i++) {
        const char *file = file_join(c->arena, path, e[i]->d_name);
        Cell *r = table_row(&t);
        Str says = str_new(c->arena);
        bool known = false;
        r[0] = cell_text(arena_strndup(c->arena, e[i]->d_name, strlen(e[i]->d_name) - 5));
        if (c->o.tp > 0) class_axis(c, r, file, false, &says, &known);
        if (c->o.ep > 0) class_axis(c, r, file, true, &says, &known);
        add_recorded(&says, r[1].plain, "; ");
        r[10] = cell_text(import_lacking(r[1].plain));
        unread += !known;
        r[9] = cell_text(says.n ? says.s : NULL);
        free(e[i]);
    }
    free(e);
    str_addf(&t.notes, "%d models, %d of them without names and shapes: ", n, unread);
    ranks_text(c, &t.notes);
    str_add(&t.notes, "\n");
    cli_table(c, &t);
    return true;
}

int cmd_names(Cli *c) {
    Diags *d = diags_new(c->arena);
    struct stat s;
    const char *path = c->o.names;
    if (strcmp(c->o.operands[0], "hf") != 0 || c->o.n_operands > 1)
        diag_error(d, "E0212", diag_nowhere, "import hf --names FILE --tp 2",
                   "--names is a file of Hugging Face's names, and the only one");
    if (c->o.hf_version && strcmp(c->o.hf_version, "5.23") != 0)
        diag_error(d, "E0212", diag_nowhere, "leave --hf-version out",
                   "--names: how names find their rules is known of transformers 5.23 only");
    if (!c->o.format) c->format = "text";
    if (!strcmp(c->format, "yaml"))
        diag_error(d, "E0212", diag_nowhere, "text, json, jsonl, csv or md",
                   "--names gives a table, no plan");
    if (c->o.tp == 0 || c->o.ep == 0)
        diag_error(d, "E0212", diag_nowhere, "1: nothing is cut", "--tp and --ep want at least 1");
    if (!diags_errors(d) && !stat(path, &s) && S_ISDIR(s.st_mode)) {
        if (c->o.tp < 1 && c->o.ep < 1)
            diag_error(d, "E0208", diag_nowhere, "--tp 2 --ep 2", "how many ranks are there?");
        else if (!folder(c, path))
            diag_error(d, "E0101", diag_nowhere, NULL, "cannot read the folder '%s'", path);
    } else if (!diags_errors(d)) {
        const NamedPlan *p = import_named(
            c->arena, d, path, (NamedTables){c->o.tp, c->o.ep, c->o.tp_plan, c->o.ep_plan});
        if (p) one_model(c, p);
    }
    if (diags_errors(d) && !c->text.n) {
        c->o.output = NULL; /* an existing file stays */
        if (!strcmp(c->format, "json") && imported_exit(d) != 2) document_table(c, NULL, d, NULL);
    }
    cli_diagnostics(c, d, false);
    return imported_exit(d);
}
