/* explain: one diagnostic code, or everything a trace says about one module, value, parameter or step. */
#include "cli/cli.h"
#include "cli/find.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOCALS = 8, MAX_NAMES = 20000 };
static const Loc nowhere = {NULL, 0, 0};

/* ---- a code ---- */
/* Text wrapped at 80 columns, indented. */
static void wrapped(Str *s, const char *text, int indent) {
    int col = 0;
    while (*text) {
        size_t k = strcspn(text, " ");
        if (col && col + (int)k + 1 > 80) {
            str_add(s, "\n");
            col = 0;
        }
        if (!col) {
            str_addf(s, "%*s", indent, "");
            col = indent;
        } else {
            str_add(s, " ");
            col++;
        }
        str_addn(s, text, k);
        col += (int)k;
        text += k + strspn(text + k, " ");
    }
    str_add(s, "\n");
}
static bool is_code(const char *s) {
    if (!strchr("ENWenw", s[0]) || strlen(s) != 5) return false;
    for (int i = 1; i < 5; i++)
        if (!isdigit((unsigned char)s[i])) return false;
    return true;
}
static int explain_code(Cli *c, const char *word) {
    char code[6];
    snprintf(code, sizeof code, "%c%s", toupper((unsigned char)word[0]), word + 1);
    const DiagCode *row = diag_code(code);
    if (!row) {
        const char **names = ARENA_ARRAY(c->arena, const char *, n_diag_codes + 1);
        for (int i = 0; i < n_diag_codes; i++) names[i] = diag_codes[i].code;
        diag_error(c->d, "E0209", nowhere, diag_nearest(code, names), "no diagnostic has the code %s", code);
        return 3;
    }
    cli_paint(c, "1", arena_printf(c->arena, "%s: %s", row->code, row->title));
    str_add(&c->text, "\n\n");
    wrapped(&c->text, row->text, 0);
    if (row->exit) str_addf(&c->text, "\nExit code %d.\n", row->exit);
    return 0;
}

/* ---- a name in a trace ---- */
typedef struct {
    Cli *c;
    const Trace *t;
    StepIndex x;
    Str *s;
} Ex;
static const char *or_empty(const char *s) { return s ? s : ""; }

static void field(Ex *e, const char *name, const char *text) {
    if (text && *text) str_addf(e->s, "  %-12s %s\n", name, table_clean(text, 0, e->c->arena));
}
static void title(Ex *e, const char *text) {
    if (e->s->n) str_add(e->s, "\n");
    cli_paint(e->c, "1", table_clean(text, 0, e->c->arena));
    str_add(e->s, "\n");
}
static const char *shape_of(const Ex *e, const int64_t *v, int n) { return cell_shape(e->c->arena, v, n).text; }

static void shape_fields(Ex *e, const TraceShape *s) {
    Arena *a = e->c->arena;
    Str layout = str_new(a);
    for (int i = 0; i < s->n_places; i++)
        str_addf(&layout, "%s%s: %s", i ? ", " : "", s->place[i].axis, or_empty(s->place[i].place));
    field(e, "global", shape_of(e, s->global_shape, s->nd));
    field(e, "local", s->symbolic);
    for (int i = 0, shown = 0; i < s->n_local; i++) {
        const TraceLocal *l = &s->local[i];
        if (e->c->o.rank >= 0 && !rankset_has(&l->ranks, e->c->o.rank)) continue;
        if (shown++ == MAX_LOCALS) {
            field(e, "", arena_printf(a, "and %d more rank classes: --rank R", s->n_local - MAX_LOCALS));
            break;
        }
        field(e, "",
              arena_printf(a, "%s  %s  on ranks %s", shape_of(e, l->shape, s->nd), bytes_text(l->bytes, a),
                           rankset_text(&l->ranks, a)));
    }
    field(e, "layout", layout.s);
    if (s->pending) field(e, "pending", arena_printf(a, "a sum over %s is still to be added up", s->pending));
}
static const char *line_text(const Ex *e, const char *file, int line) {
    return line > 0 ? arena_printf(e->c->arena, "%s:%d", or_empty(file), line) : NULL;
}
/* "step 9, all_gather(sp), forward" */
static const char *step_text(const Ex *e, int step) {
    Arena *a = e->c->arena;
    const FoundStep *f = step >= 0 && step < e->x.n ? &e->x.step[step] : NULL;
    if (!f) return "given: an input or a parameter";
    if (f->collective)
        return arena_printf(a, "step %d, %s(%s), %s", step, or_empty(f->collective->op),
                            or_empty(f->collective->axis ? f->collective->axis : f->collective->axes),
                            or_empty(f->collective->pass));
    if (f->move)
        return arena_printf(a, "step %d, %s(%s), %s", step, or_empty(f->move->op), or_empty(f->move->axes),
                            or_empty(f->move->pass));
    if (f->compute)
        return arena_printf(
            a, "step %d, %s of %s, %s", step, f->compute->label ? f->compute->label : or_empty(f->compute->op),
            or_empty(f->compute->module ? f->compute->module : f->compute->output), or_empty(f->compute->pass));
    return arena_printf(a, "step %d", step);
}
static void checks_of(Ex *e, const char *value, int step) {
    Arena *a = e->c->arena;
    for (int i = 0; i < e->t->n_checks; i++) {
        const TraceCheck *k = &e->t->checks[i];
        if (k->step != step || !k->value || strcmp(k->value, value) != 0) continue;
        field(e, "check",
              arena_printf(a, "level %d on ranks %s: %s, error %.3g, bound %.3g%s%s", k->level,
                           rankset_text(&k->ranks, a), or_empty(k->verdict), k->max_abs, k->bound, k->cause ? "; " : "",
                           or_empty(k->cause)));
    }
}
static bool is_identity(const FoundStep *f) { return f->move && f->move->op && strcmp(f->move->op, "identity") == 0; }

/* What reads the value made by `step`; a step that only changes its type is looked through. */
static void readers_of(Ex *e, const char *value, int step) {
    for (int s = 0; s < e->x.n; s++) {
        const FoundStep *f = &e->x.step[s];
        bool reads =
            f->collective && f->collective->value_step == step && strcmp(or_empty(f->collective->value), value) == 0;
        reads = reads || (f->move && f->move->value_step == step && strcmp(or_empty(f->move->value), value) == 0);
        for (int i = 0; f->compute && i < f->compute->n_inputs && !reads; i++)
            reads = strcmp(or_empty(f->compute->inputs[i]), value) == 0 &&
                    (!f->compute->input_step || f->compute->input_step[i] == step);
        if (reads && is_identity(f) && s > step)
            readers_of(e, value, s);
        else if (reads)
            field(e, "read by", step_text(e, s));
    }
}
static void explain_value(Ex *e, const TraceValue *v) {
    title(e, arena_printf(e->c->arena, "%s  (%s%s%s)", or_empty(v->shape.name), v->kind ? v->kind : "value",
                          v->pass ? ", " : "", or_empty(v->pass)));
    shape_fields(e, &v->shape);
    field(e, "made by", step_text(e, v->step));
    const FoundStep *f = v->step >= 0 && v->step < e->x.n ? &e->x.step[v->step] : NULL;
    if (f && f->collective) {
        field(e, "why", f->collective->why);
        field(e, "plan line", line_text(e, f->collective->file, f->collective->line));
        if (f->collective->inferred) field(e, "inferred", "no style asked for this move");
    }
    if (f && f->move) {
        field(e, "why", f->move->why);
        field(e, "plan line", line_text(e, f->move->file, f->move->line));
    }
    readers_of(e, or_empty(v->shape.name), v->step);
    checks_of(e, or_empty(v->shape.name), v->step);
}
static void explain_param(Ex *e, const TraceParam *p) {
    Arena *a = e->c->arena;
    const char *name = p->plan_name ? p->plan_name : or_empty(p->compute.name);
    title(e, arena_printf(a, "%s  (parameter)", name));
    if (p->compute.name && strcmp(p->compute.name, name) != 0) field(e, "checkpoint", p->compute.name);
    shape_fields(e, &p->compute);
    field(e, "placements", cell_texts(a, p->placements, p->n_placements).text);
    if (p->rest.symbolic && strcmp(p->rest.symbolic, or_empty(p->compute.symbolic)) != 0)
        field(e, "at rest", p->rest.symbolic);
    field(e, "per rank", bytes_text(p->bytes, a));
    field(e, "style", p->style);
    field(e, "plan line",
          p->line > 0 ? line_text(e, p->file, p->line) : "no line names it: every rank holds all of it");
    readers_of(e, p->plan_name ? p->plan_name : "", -1);
    if (p->compute.name && strcmp(p->compute.name, name) != 0) readers_of(e, p->compute.name, -1);
}
static void explain_step(Ex *e, int step) {
    const FoundStep *f = &e->x.step[step];
    Arena *a = e->c->arena;
    title(e, step_text(e, step));
    if (f->compute) {
        const TraceCompute *k = f->compute;
        for (int i = 0; i < k->n_inputs; i++) {
            int from = k->input_step ? k->input_step[i] : -1;
            field(e, "reads", arena_printf(a, "%s, %s", or_empty(k->inputs[i]), step_text(e, from)));
        }
        field(e, "makes", k->output);
        field(e, "style", k->style);
        field(e, "work", arena_printf(a, "%s FLOP, %s per rank", count_text(k->flops, a), bytes_text(k->bytes, a)));
    }
    if (f->collective) {
        const TraceCollective *k = f->collective;
        field(e, "moves", arena_printf(a, "%s, %s", or_empty(k->value), step_text(e, k->value_step)));
        field(e, "why", k->why);
        field(e, "plan line", line_text(e, k->file, k->line));
        if (k->inferred) field(e, "inferred", "no style asked for this move");
        field(e, "groups",
              arena_printf(a, "%lld of %lld ranks over %s", (long long)groups_count(&k->groups),
                           (long long)groups_size(&k->groups), or_empty(k->axes)));
        field(e, "bytes",
              arena_printf(a, "%s in, %s out, %s sent per rank", bytes_text(k->bytes_in, a),
                           bytes_text(k->bytes_out, a), bytes_text(k->bytes_sent, a)));
    }
    if (f->move) {
        field(e, "moves", arena_printf(a, "%s, %s", or_empty(f->move->value), step_text(e, f->move->value_step)));
        field(e, "why", f->move->why);
        field(e, "plan line", line_text(e, f->move->file, f->move->line));
        field(e, "bytes", "none: a local move");
    }
    if (f->value) explain_value(e, f->value);
}
/* All steps and parameters of a module; false if nothing belongs to it. */
static bool explain_module(Ex *e, const char *name) {
    size_t n = strlen(name);
    bool any = false;
    for (int s = 0; s < e->x.n; s++) {
        const FoundStep *f = &e->x.step[s];
        const char *m = f->compute ? f->compute->module : f->collective ? f->collective->module : NULL;
        if (!m || strncmp(m, name, n) != 0 || (m[n] && m[n] != '.')) continue;
        if (!any) title(e, arena_printf(e->c->arena, "%s  (module)", name));
        any = true;
        const TraceValue *v = f->value;
        str_addf(e->s, "  %s\n", step_text(e, s));
        if (v && v->shape.n_local)
            str_addf(e->s, "      %s  %s  %s\n", or_empty(v->shape.name), or_empty(v->shape.symbolic),
                     shape_of(e, v->shape.local[0].shape, v->shape.nd));
        if (f->collective && f->collective->why) str_addf(e->s, "      %s\n", f->collective->why);
    }
    for (int i = 0; i < e->t->n_params; i++) {
        const TraceParam *p = &e->t->params[i];
        if (!p->module || strncmp(p->module, name, n) != 0 || (p->module[n] && p->module[n] != '.')) continue;
        explain_param(e, p);
        any = true;
    }
    return any;
}
static bool explain_values(Ex *e, const char *name) {
    bool any = false;
    for (int i = 0; i < e->t->n_values; i++)
        if (e->t->values[i].shape.name && strcmp(e->t->values[i].shape.name, name) == 0) {
            explain_value(e, &e->t->values[i]);
            any = true;
        }
    return any;
}
static const char *nearest_name(const Ex *e, const char *name) {
    const Trace *t = e->t;
    int n = 0, max = t->n_values + 2 * t->n_params + t->n_computes;
    if (max > MAX_NAMES) max = MAX_NAMES;
    const char **names = ARENA_ARRAY(e->c->arena, const char *, max + 1);
    for (int i = 0; i < t->n_params && n + 1 < max; i++) {
        if (t->params[i].plan_name) names[n++] = t->params[i].plan_name;
        if (t->params[i].module) names[n++] = t->params[i].module;
    }
    for (int i = 0; i < t->n_values && n < max; i++)
        if (t->values[i].shape.name) names[n++] = t->values[i].shape.name;
    for (int i = 0; i < t->n_computes && n < max; i++)
        if (t->computes[i].module) names[n++] = t->computes[i].module;
    names[n] = NULL;
    return diag_nearest(name, names);
}
static bool explain_name(Ex *e, const char *name) {
    char *end;
    long step = strtol(name, &end, 10);
    if (isdigit((unsigned char)*name) && !*end) {
        bool known = step < e->x.n;
        if (known) explain_step(e, (int)step);
        return known;
    }
    /* a module and its result may have one name: both are meant */
    bool any = explain_values(e, name);
    const TraceParam *p = lookup_param(e->t, name);
    if (p) explain_param(e, p);
    any = explain_module(e, name) || any || p;
    const TraceValue *v = any ? NULL : lookup_value(e->t, name);
    if (v) explain_value(e, v);
    return any || v;
}
int cmd_explain(Cli *c) {
    if (c->o.n_operands == 1) {
        if (is_code(c->o.operands[0])) return explain_code(c, c->o.operands[0]);
        diag_error(c->d, "E0212", nowhere, NULL, "`explain` wants a code, or a plan and a name");
        return 2;
    }
    PipelineOptions o = cli_pipeline(c);
    Loaded l;
    bool ok = cli_load(c, c->o.operands[0], &o, false, &l);
    cli_diagnostics(c, l.d, false);
    if (!ok) return l.exit;
    if (c->o.trace) trace_write(l.trace, c->d, c->o.trace);
    Ex e = {c, l.trace, lookup_steps(l.trace, c->arena), &c->text};
    if (explain_name(&e, c->o.operands[1])) return l.exit;
    diag_error(c->d, "E0209", nowhere, nearest_name(&e, c->o.operands[1]),
               "no module, value, parameter or step is called '%s'", c->o.operands[1]);
    return cli_worse(l.exit, 3);
}
