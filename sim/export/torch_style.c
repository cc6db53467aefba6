/* One module's style as PyTorch writes it: the style whose row of the plan's table is nearest, with
 * the arguments that differ from what it does by default. What a style of PyTorch's cannot say
 * (another weight, a letter, several axes at once) is an error at its place. */
#include "export/export.h"
#include "import/torch_args.h"
#include <string.h>

/* Built-in styles that are others with other arguments. */
static const char *const same_as[][2] = {
    {"colwise_gather_output", "colwise"},    {"rowwise_split_input", "rowwise"},
    {"embedding_rowwise", "rowwise"},        {"embedding_colwise", "colwise"},
    {"all_reduce", "prepare_module_output"}, {"replicate", "no_parallel"},
};
typedef struct {
    const Export *e;
    const Style *style, *base; /* the module's; that which PyTorch's name stands for */
    const TorchStyle *row;
    const char *axis;
    Loc at; /* of the style */
    Str out;
    int n; /* arguments so far */
} StyleWriter;

static const char *ours(const char *name) {
    for (size_t i = 0; i < sizeof same_as / sizeof *same_as; i++)
        if (strcmp(same_as[i][0], name) == 0) return same_as[i][1];
    return name;
}
static Loc place_of(const StyleWriter *w, Loc at) { return at.file ? at : w->at; }

/* ---- placements ---- */
/* "Shard(1)"; NULL: PyTorch has no such placement. */
static const char *place_text(Arena *a, const RawPlace *p) {
    if (p->kind == RP_NONE) return "None";
    if (p->kind == RP_REPLICATE) return "Replicate()";
    if (p->kind == RP_PARTIAL) return "Partial()";
    if (p->kind == RP_SHARD && !p->letter) return arena_printf(a, "Shard(%d)", p->dim);
    return NULL;
}
/* The placement on the style's axis; NULL and an error. */
static const char *spec_text(StyleWriter *w, const RawSpec *s) {
    const RawPlace *place = &s->bare;
    if (s->mapping) {
        if (s->n != 1 || !s->on[0].axis || strcmp(s->on[0].axis, w->axis) != 0) {
            export_refuse(w->e, place_of(w, s->loc),
                          "one placement; data parallelism is not part of a style",
                          "a style of PyTorch's places on one axis, here %s", w->axis);
            return NULL;
        }
        place = &s->on[0].place;
    }
    const char *text = place_text(w->e->a, place);
    if (!text)
        export_refuse(w->e, place_of(w, place->loc.file ? place->loc : s->loc),
                      "replicate, partial or shard(d) with the number of a dim",
                      "PyTorch has no placement for this");
    return text;
}
/* A list as a tuple, a single placement by itself unless `tuple`. */
static const char *list_text(StyleWriter *w, const RawList *l, bool tuple) {
    Str s = str_new(w->e->a);
    for (int i = 0; i < l->n; i++) {
        const char *one = spec_text(w, &l->arg[i]);
        if (!one) return NULL;
        str_addf(&s, "%s%s", i ? ", " : "", one);
    }
    if (!tuple && l->n == 1) return s.s;
    return arena_printf(w->e->a, "(%s%s)", s.s, l->n == 1 ? "," : "");
}

/* ---- arguments ---- */
static void argument(StyleWriter *w, const char *name, const char *text) {
    if (text) str_addf(&w->out, "%s%s=%s", w->n++ ? ", " : "", name, text);
}
/* Does this label or wish differ from what the style says by itself? */
static bool differs(StyleWriter *w, const RawList *mine, const RawList *base) {
    if (!mine->set) return base->set;
    if (!base->set || mine->n != base->n) return true;
    const char *a = list_text(w, mine, true), *b = list_text(w, base, true);
    return a && b && strcmp(a, b) != 0;
}
static const RawList *list_of(const Style *s, const char *field) {
    const struct {
        const char *name;
        const RawList *list;
    } lists[] = {{"input", &s->input},
                 {"desired_input", &s->desired_input},
                 {"output", &s->output},
                 {"desired_output", &s->desired_output}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].name, field) == 0) return lists[i].list;
    return NULL;
}
/* What PyTorch's layers need of their input is theirs to know: only `Prepare...` are told. */
static bool can_say(const StyleWriter *w, const char *field) {
    bool layer = strncmp(w->row->ours, "prepare", 7) != 0;
    if (layer && strncmp(field, "desired", 7) == 0) return false;
    for (int i = 0; i < TORCH_ARGS && w->row->arg[i].name; i++)
        if (w->row->arg[i].field && strcmp(w->row->arg[i].field, field) == 0) return true;
    return false;
}
/* ExpertParallel brings rows to where their tokens are, which is no argument of it. */
static bool comes_home(const StyleWriter *w, const RawList *output) {
    return w->row->experts == X_WHOLE && output == &w->style->output && output->n == 1 &&
           !output->arg[0].mapping && output->arg[0].bare.kind == RP_HOME;
}
static void layouts(StyleWriter *w) {
    static const char *const fields[] = {"input", "desired_input", "output", "desired_output"};
    for (int i = 0; i < 4; i++) {
        const RawList *mine = list_of(w->style, fields[i]), *base = list_of(w->base, fields[i]);
        if (!differs(w, mine, base) || comes_home(w, mine)) continue;
        if (!mine->set || !can_say(w, fields[i])) {
            export_refuse(w->e, place_of(w, mine->loc),
                          "move it with prepare_module_input or prepare_module_output",
                          mine->set ? "%s has no argument for `%s`" : "%s always has its `%s`",
                          w->row->name, fields[i]);
            continue;
        }
        for (int k = 0; k < TORCH_ARGS && w->row->arg[k].name; k++) {
            const TorchArg *arg = &w->row->arg[k];
            if (!arg->field || strcmp(arg->field, fields[i]) != 0 || arg->kind == A_KWARGS)
                continue;
            argument(w, arg->name, list_text(w, mine, arg->kind == A_LAYOUTS));
            break;
        }
    }
}
/* SequenceParallel knows one dim for input and result. */
static void sequence_dim(StyleWriter *w) {
    const Style *s = w->style;
    const RawList *all[] = {&s->input, &s->desired_input, &s->output};
    const char *dim = NULL;
    for (int i = 0; i < 3; i++) {
        const char *text = all[i]->n == 1 ? list_text(w, all[i], false) : NULL;
        if (all[i]->n == 1 && !text) return;
        if (!text || strncmp(text, "Shard(", 6) != 0 || (dim && strcmp(dim, text) != 0)) {
            export_refuse(w->e, place_of(w, all[i]->loc), "shard(1) for all three, or no_parallel",
                          "SequenceParallel cuts input and result on the same dim");
            return;
        }
        dim = text;
    }
    if (strcmp(dim, "Shard(1)") != 0)
        argument(w, "sequence_dim", arena_strndup(w->e->a, dim + 6, strlen(dim) - 7));
}
/* RowwiseParallel takes its input for cut on the last dim, of an embedding too: whole ids would be
 * read as n times as many. */
static void embedding_ids(StyleWriter *w, int module) {
    bool embedding = strcmp(w->e->as->model->g.module[module].kind, "embedding") == 0;
    if (embedding && strcmp(w->row->name, "RowwiseParallel") == 0 &&
        !differs(w, &w->style->input, &w->base->input))
        argument(w, "input_layouts", "Replicate()");
}
static void local_output(StyleWriter *w) {
    if (w->style->use_local_input >= 0)
        argument(w, "use_local_input", w->style->use_local_input ? "True" : "False");
    int mine = w->style->use_local_output;
    if (mine >= 0 && mine != w->base->use_local_output)
        argument(w, "use_local_output", mine ? "True" : "False");
}

/* ---- parameters ---- */
static void parameter(StyleWriter *w, const RawSpec *mine, const RawSpec *base, const char *what) {
    if (!mine->set && !base->set) return;
    const char *a = mine->set ? spec_text(w, mine) : "nothing",
               *b = base->set ? spec_text(w, base) : "nothing";
    if (a && b && strcmp(a, b) != 0)
        export_refuse(w->e, place_of(w, mine->loc),
                      "a style whose parameters lie like this: `shardproof list styles`",
                      "%s lays the %s as %s, not as %s", w->row->name, what, b, a);
}
static void parameters(StyleWriter *w, int module) {
    const Export *e = w->e;
    const GModule *m = &e->as->model->g.module[module];
    if (m->weight >= 0) parameter(w, &w->style->weight, &w->base->weight, "weight");
    if (m->bias >= 0) parameter(w, &w->style->bias, &w->base->bias, "bias");
    for (int i = 0; i < w->style->n_params; i++)
        export_refuse(e, w->style->params[i].loc, "leave it out",
                      "%s has no argument for the parameter '%s'", w->row->name,
                      w->style->params[i].name);
}

const char *export_torch_style(const Export *e, int module, const char *axis) {
    const ModuleUse *u = &e->as->use[module];
    const GModule *m = &e->as->model->g.module[module];
    const char *name = ours(u->style->name);
    StyleWriter w = {.e = e,
                     .style = u->style,
                     .row = torch_style_of(name),
                     .axis = axis,
                     .at = u->style->loc.file ? u->style->loc : u->loc,
                     .out = str_new(e->a)};
    const StyleRow *base = w.row ? style_builtin_for(name, m->kind) : NULL;
    int before = diags_errors(e->d);
    if (!base) {
        export_refuse(e, w.at,
                      "the styles that PyTorch has: colwise, rowwise, sequence_parallel, "
                      "prepare_module_*, replicate",
                      "no style of PyTorch's does what '%s' does", u->name ? u->name : name);
        return NULL;
    }
    w.base = &base->style;
    bool pair = strncmp(name, "prepare", 7) == 0;
    if (w.row->experts == X_WHOLE && e->p->data_parallel.loc.file)
        export_refuse(e, w.at, "experts cut inside (tensor_parallel), or no data_parallel",
                      "fully_shard and DistributedDataParallel would take the experts of different "
                      "ranks for copies");
    if (pair && (u->style->input.set != u->style->desired_input.set ||
                 u->style->output.set != u->style->desired_output.set))
        export_refuse(e, w.at, "write both: how it lies and how it is wanted",
                      "%s wants the layouts it finds and those it makes", w.row->name);
    if (strcmp(name, "sequence_parallel") == 0) sequence_dim(&w);
    else {
        embedding_ids(&w, module);
        layouts(&w);
    }
    local_output(&w);
    parameters(&w, module);
    if (diags_errors(e->d) > before) return NULL;
    return arena_printf(e->a, "%s(%s)", w.row->name, w.out.s);
}
