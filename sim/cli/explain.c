/* explain: one diagnostic code, or everything a trace says about one module, value, parameter or
 * step. */
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/suffix.h"
#include "cli/fold.h"
#include "cli/hooks.h"
#include "cli/told.h"
#include "cli/words.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOCALS = 8, MAX_NAMES = 20000 };

/* ---- a code ---- */
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
        const char *near = diag_nearest(code, names);
        diag_error(c->d, "E0209", diag_nowhere, near ? near : "`shardproof list codes` has all",
                   "no diagnostic has the code %s", code);
        return 3;
    }
    if (!strcmp(c->format, "json")) {
        Told told = {.a = c->arena};
        told_section(&told, "code", row->code, row->title);
        told_field(&told, TOLD_LINE, "text", row->text);
        if (row->exit)
            told_field(&told, TOLD_LINE, "exit code", arena_printf(c->arena, "%d", row->exit));
        told_document(c, &told, NULL, NULL);
        return 0;
    }
    cli_paint(c, "1", arena_printf(c->arena, "%s: %s", row->code, row->title));
    str_add(&c->text, "\n\n");
    cli_wrapped(c, row->text, 0);
    if (row->exit) str_addf(&c->text, "\nExit code %d.\n", row->exit);
    return 0;
}

/* ---- a name in a trace ---- */
typedef struct {
    Cli *c;
    const Trace *t;
    StepIndex x;
    Told told;
    bool both_ways; /* a pipeline that is entered at both ends */
} Ex;
static const char *or_empty(const char *s) { return s ? s : ""; }

static void field(Ex *e, const char *name, const char *text) {
    told_field(&e->told, TOLD_COLUMN, name, text);
}
static void title(Ex *e, const char *kind, const char *name, const char *text) {
    told_section(&e->told, kind, name, text);
}
static const char *shape_of(const Ex *e, const int64_t *v, int n) {
    return cell_shape(e->c->arena, v, n).text;
}

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
            field(e, "",
                  arena_printf(a, "and %d more rank classes: --rank R", s->n_local - MAX_LOCALS));
            break;
        }
        field(e, "",
              arena_printf(a, "%s  %s  on %s", shape_of(e, l->shape, s->nd),
                           bytes_text(l->bytes, a), rankset_words(&l->ranks, a)));
    }
    field(e, "layout", layout.s);
    if (s->pending)
        field(e, "pending", arena_printf(a, "a sum over %s is still to be added up", s->pending));
}
static const char *line_text(const Ex *e, const char *file, int line) {
    return line > 0 ? arena_printf(e->c->arena, "%s:%d", or_empty(file), line) : NULL;
}
/* The collective of a step. One that its FSDP unit carries has no record of its own: the unit's
 * stands at its first step. */
static const TraceCollective *collective_at(const Ex *e, int step) {
    const FoundStep *f = step >= 0 && step < e->x.n ? &e->x.step[step] : NULL;
    if (!f || f->collective) return f ? f->collective : NULL;
    if (f->compute || f->move || !f->value) return NULL;
    for (int i = e->t->n_collectives - 1; i >= 0; i--) {
        const TraceCollective *k = &e->t->collectives[i];
        if (k->step < step && k->layer == f->value->layer && k->why &&
            strstr(k->why, "of one unit travel together") && k->pass == f->value->pass)
            return k;
    }
    return NULL;
}
static const char *axes_of(const TraceCollective *k) {
    return or_empty(k->axis ? k->axis : k->axes);
}
/* "step 9, all_gather(sp), forward" */
static const char *step_text(const Ex *e, int step) {
    Arena *a = e->c->arena;
    const FoundStep *f = step >= 0 && step < e->x.n ? &e->x.step[step] : NULL;
    if (!f) return "given: an input or a parameter";
    if (f->collective)
        return arena_printf(
            a, "step %d, %s(%s), %s", step, or_empty(f->collective->op),
            or_empty(f->collective->axis ? f->collective->axis : f->collective->axes),
            phase_text(f->collective->pass));
    if (f->move)
        return arena_printf(a, "step %d, %s(%s), %s", step, or_empty(f->move->op),
                            or_empty(f->move->axes), phase_text(f->move->pass));
    if (f->compute)
        return arena_printf(a, "step %d, %s of %s, %s", step,
                            f->compute->label ? f->compute->label : or_empty(f->compute->op),
                            or_empty(f->compute->module ? f->compute->module : f->compute->output),
                            phase_text(f->compute->pass));
    const TraceCollective *k = collective_at(e, step);
    if (k)
        return arena_printf(a, "step %d, in the %s(%s) of step %d, %s", step, or_empty(k->op),
                            axes_of(k), k->step, phase_text(k->pass));
    return arena_printf(a, "step %d", step);
}
static void checks_of(Ex *e, const char *value, int step) {
    Arena *a = e->c->arena;
    for (int i = 0; i < e->t->n_checks; i++) {
        const TraceCheck *k = &e->t->checks[i];
        if (k->step != step || !k->value || strcmp(k->value, value) != 0) continue;
        const char *off = k->projections > 0 ? arena_printf(a, "off by %.3g in %d projections",
                                                            k->max_abs, k->projections)
                                             : arena_printf(a, "error %.3g", k->max_abs);
        field(e, "check",
              arena_printf(a, "level %d on %s: %s, %s, bound %.3g%s%s", k->level,
                           rankset_words(&k->ranks, a), or_empty(k->verdict), off, k->bound,
                           k->cause ? "; " : "", or_empty(k->cause)));
    }
}
static bool is_identity(const FoundStep *f) {
    return f->move && f->move->op && strcmp(f->move->op, "identity") == 0;
}

/* Inputs are there once for each way of a pipeline that is entered at both ends, and no step made
 * them that would tell the two apart. */
static bool other_way(const FoundStep *f, const TraceValue *v) {
    return v && v->step < 0 && f->value && !f->value->once && f->value->way != v->way;
}
/* What reads the value made by `step`; a step that only changes its type is looked through. `v` is
 * its record; NULL: a parameter's, which both ways have. */
static void readers_of(Ex *e, const char *value, int step, const TraceValue *v) {
    for (int s = 0; s < e->x.n; s++) {
        const FoundStep *f = &e->x.step[s];
        if (other_way(f, v)) continue;
        bool reads = f->collective && f->collective->value_step == step &&
                     strcmp(or_empty(f->collective->value), value) == 0;
        reads = reads || (f->move && f->move->value_step == step &&
                          strcmp(or_empty(f->move->value), value) == 0);
        for (int i = 0; f->compute && i < f->compute->n_inputs && !reads; i++)
            reads = strcmp(or_empty(f->compute->inputs[i]), value) == 0 &&
                    (!f->compute->input_step || f->compute->input_step[i] == step);
        if (reads && is_identity(f) && s > step) readers_of(e, value, s, v);
        else if (reads) field(e, "read by", step_text(e, s));
    }
}
/* The mistake that the plan plants at a step; NULL: none. */
static const char *planted_text(const Ex *e, const FoundStep *f) {
    const TraceCollective *k = f->collective;
    if (!k) return f->move ? f->move->planted : f->compute ? f->compute->planted : NULL;
    return !k->planted ? NULL
                       : arena_printf(e->c->arena, "%s%s%s%s", k->planted,
                                      k->skipped ? ": the step does nothing" : "",
                                      k->declared ? "; due: " : "", or_empty(k->declared));
}
static void explain_value(Ex *e, const TraceValue *v) {
    title(e, "value", v->shape.name,
          arena_printf(e->c->arena, "%s  (%s%s%s)", or_empty(v->shape.name),
                       v->kind ? value_role_words[v->kind] : "value", v->pass ? ", " : "",
                       phase_text(v->pass)));
    shape_fields(e, &v->shape);
    if (e->both_ways && !trace_param(e->t, v->shape.name)) /* copies serve both */
        field(e, "way",
              v->once  ? "both: made once a step, of what the micro-batches of both ways gave"
              : v->way ? "of micro-batches that enter at the last rank"
                       : "of micro-batches that enter at the first rank");
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
    field(e, "planted", f ? planted_text(e, f) : v->planted);
    readers_of(e, or_empty(v->shape.name), v->step, v);
    checks_of(e, or_empty(v->shape.name), v->step);
}

/* ---- gradients ---- */
/* Where a value lies on an axis: "partial", "shard(1)"; NULL if the axis is not there. */
static const char *place_of(const TraceShape *s, const char *axis) {
    for (int i = 0; i < s->n_places; i++)
        if (strcmp(or_empty(s->place[i].axis), axis) == 0) return s->place[i].place;
    return NULL;
}
static bool is_partial(const char *place) { return place_pending(place) != PENDING_NONE; }
/* The dim that a placement cuts, or -1. */
static int cut_dim(const char *place) {
    int dim = -1;
    place_cut(place, &dim);
    return dim;
}
/* What a rank has of its own where this dim is cut: "tokens". */
static const char *share_words(const Ex *e, const char *symbol) {
    static const struct {
        const char *symbol, *words;
    } rows[] = {{"B", "sequences"},
                {"S", "tokens"},
                {"T", "tokens"},
                {"H", "heads"},
                {"K", "heads"},
                {"G", "heads"},
                {"V", "part of the vocabulary"},
                {"F", "columns of the hidden layer"}};
    size_t n = strcspn(symbol, "/*");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].symbol) == n && strncmp(symbol, rows[i].symbol, n) == 0)
            return rows[i].words;
    return arena_printf(e->c->arena, "part of %.*s", (int)n, symbol);
}
/* In what the ranks of an axis differ when they make their terms of a sum: the gradient that a step
 * starts from is cut over the axis, or it is such a sum itself. NULL: not to be seen from here. */
static const char *own_share(const Ex *e, const char *name, const char *axis, int depth) {
    const char *later = NULL;
    for (int i = 0; i < e->t->n_computes; i++) {
        const TraceCompute *k = &e->t->computes[i];
        if (!k->n_inputs || strcmp(or_empty(k->output), name) != 0 ||
            strcmp(or_empty(k->inputs[0]), name) == 0)
            continue;
        const TraceValue *v =
            lookup_operand(e->t, k->inputs[0], k->input_step ? k->input_step[0] : -1);
        int dim = v ? cut_dim(place_of(&v->shape, axis)) : -1;
        if (dim >= 0 && dim < v->shape.nd && v->shape.dim_symbol[dim])
            return share_words(e, v->shape.dim_symbol[dim]);
        if (v && !later && depth < 8 && is_partial(place_of(&v->shape, axis)))
            later = own_share(e, k->inputs[0], axis, depth + 1);
    }
    return later;
}
/* Does the collective run over this mesh axis? `axes` is "tp" or "dp*cp". */
static bool runs_over(const TraceCollective *k, const char *axis) {
    size_t n = strlen(axis);
    for (const char *p = or_empty(k->axes); *p; p += strcspn(p, "*"), p += *p == '*')
        if (strcspn(p, "*") == n && strncmp(p, axis, n) == 0) return true;
    return false;
}
/* One collective on a gradient: over what, why, and what would be wrong without it. */
static void gradient_collective(Ex *e, const TraceValue *before, const TraceValue *v,
                                const TraceCollective *k) {
    Arena *a = e->c->arena;
    Str own = str_new(a);
    bool sum = k->reduce != NULL, due = !before;
    const char *did = sum ? "summed over" : "gathered";
    field(e, k->planted ? sum ? "should sum" : "should gather" : did,
          arena_printf(a, "%s%s, by %s", k->planted && sum ? "over " : "", or_empty(k->axes),
                       step_text(e, v->step)));
    if (k->planted)
        field(e, "planted",
              arena_printf(a, "'%s': %s", k->planted,
                           k->skipped
                               ? "the step does nothing, every rank goes on with its own part"
                               : "the step does something else than its layouts ask for"));
    field(e, "why", k->why);
    if (undeclared_collective(e->t, k))
        field(e, "undeclared",
              "no line of the plan asks for this sum; the note N0008 says which would (explain "
              "N0008)");
    field(e, "plan line", line_text(e, k->file, k->line));
    for (int i = 0; i < v->shape.n_places; i++) {
        const char *axis = v->shape.place[i].axis, *words = NULL;
        if (!axis || !runs_over(k, axis)) continue;
        const char *lay = before ? place_of(&before->shape, axis) : NULL;
        int dim = cut_dim(lay);
        due = due || is_partial(lay);
        if (sum) words = own_share(e, or_empty(v->shape.name), axis, 0);
        else if (dim >= 0 && dim < before->shape.nd)
            words = share_words(e, or_empty(before->shape.dim_symbol[dim]));
        if (words && !strstr(own.s ? own.s : "", words))
            str_addf(&own, "%s%s", own.n ? " and " : "", words);
    }
    const char *what = own.n ? arena_printf(a, "its own %s", own.s) : "its own uses of it";
    if (sum && !due)
        field(e, "otherwise",
              arena_printf(
                  a, "every rank had all of it before: this sum makes it %lld times too large",
                  (long long)groups_size(&k->groups)));
    else if (sum)
        field(e, "otherwise",
              arena_printf(a,
                           "%s every rank %s only what %s give%s; a second sum would make it %lld "
                           "times too large",
                           k->skipped ? "as it is" : "without this sum",
                           k->skipped ? "holds" : "would hold", what,
                           own.n && strncmp(own.s, "part", 4) == 0 ? "s" : "",
                           (long long)groups_size(&k->groups)));
    else
        field(e, "otherwise",
              arena_printf(a, "without this gather every rank would know the gradient of %s only",
                           what));
}
/* How a gradient comes about: the steps that make its terms, the sums over ranks, and the axes that
 * need none. */
static bool explain_gradient(Ex *e, const char *name) {
    Arena *a = e->c->arena;
    const TraceValue *last = NULL;
    for (int i = 0; i < e->t->n_values; i++)
        if (strcmp(or_empty(e->t->values[i].shape.name), name) == 0) last = &e->t->values[i];
    if (!subject_is_gradient(subject_of(name)) || !last) return false;
    title(e, "gradient", name, arena_printf(a, "%s  (how this gradient comes about)", name));
    bool moved[TRACE_MAX_AXES] = {false};
    for (int s = 0; s < e->x.n; s++) {
        const FoundStep *f = &e->x.step[s];
        if (!f->value || strcmp(or_empty(f->value->shape.name), name) != 0) continue;
        const TraceCollective *k = collective_at(e, s);
        if (f->compute) {
            bool again = f->compute->n_inputs && strcmp(or_empty(f->compute->inputs[0]), name) == 0;
            const char *from = f->compute->n_inputs ? or_empty(f->compute->inputs[0]) : "";
            field(e, again ? "added up" : "from",
                  again ? arena_printf(a, "%s: it is used more than once", step_text(e, s))
                        : arena_printf(a, "%s, by %s", from, step_text(e, s)));
        }
        if (!k) continue;
        const TraceValue *before = k->step == s ? lookup_operand(e->t, name, k->value_step) : NULL;
        gradient_collective(e, before, f->value, k);
        for (int i = 0; i < last->shape.n_places && i < TRACE_MAX_AXES; i++)
            moved[i] |= runs_over(k, or_empty(last->shape.place[i].axis));
    }
    for (int i = 0; i < last->shape.n_places && i < TRACE_MAX_AXES; i++) {
        const char *axis = or_empty(last->shape.place[i].axis), *place = last->shape.place[i].place;
        int64_t size = 0;
        for (int x = 0; x < e->t->n_axes; x++)
            if (strcmp(or_empty(e->t->axes[x].name), axis) == 0) size = e->t->axes[x].size;
        if (moved[i] || size == 1) continue;
        if (is_partial(place))
            field(e, "pending",
                  arena_printf(
                      a, "the sum over %s: what reads it is linear in it and adds up later", axis));
        else if (cut_dim(place) >= 0)
            field(e, "no sum",
                  arena_printf(a,
                               "over %s: every rank holds the whole gradient of its own block; a "
                               "sum would mix blocks",
                               axis));
        else
            field(e, "no sum",
                  arena_printf(a,
                               "over %s: every rank has computed all of it; a sum would make it %s "
                               "times too large",
                               axis, size ? arena_printf(a, "%lld", (long long)size) : axis));
    }
    return true;
}
static void explain_param(Ex *e, const TraceParam *p) {
    Arena *a = e->c->arena;
    const char *name = p->plan_name ? p->plan_name : or_empty(p->compute.name);
    title(e, "parameter", name, arena_printf(a, "%s  (parameter)", name));
    if (p->compute.name && strcmp(p->compute.name, name) != 0)
        field(e, "checkpoint", p->compute.name);
    shape_fields(e, &p->compute);
    field(e, "placements", cell_texts(a, p->placements, p->n_placements).text);
    if (p->rest.symbolic && strcmp(p->rest.symbolic, or_empty(p->compute.symbolic)) != 0)
        field(e, "at rest", p->rest.symbolic);
    field(e, "per rank", bytes_text(p->bytes, a));
    field(e, "style", p->style);
    if (e->t->pass != PASS_FORWARD)
        field(e, "gradient",
              p->summed
                  ? arena_printf(a, "the plan declares its sum over %s, where it is due", p->summed)
                  : "no line of the plan declares a sum of it");
    field(e, "plan line",
          p->line > 0 ? line_text(e, p->file, p->line)
                      : "no line names it: every rank holds all of it");
    field(e, "planted", p->planted);
    readers_of(e, p->plan_name ? p->plan_name : "", -1, NULL);
    if (p->compute.name && strcmp(p->compute.name, name) != 0)
        readers_of(e, p->compute.name, -1, NULL);
}
/* What the step takes on a rank; one line for each class of ranks where they differ (causal
 * attention, uneven shapes). */
static void explain_work(Ex *e, const TraceCompute *first) {
    Arena *a = e->c->arena;
    const Trace *t = e->t;
    bool differs = false, told = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t->n_computes; i++) {
            const TraceCompute *k = &t->computes[i];
            if (k->step != first->step) continue;
            if (!pass) differs |= k->flops != first->flops || k->bytes != first->bytes;
            if (!pass || (told && !differs) ||
                (e->c->o.rank >= 0 && !rankset_has(&k->ranks, e->c->o.rank)))
                continue;
            const char *where =
                differs ? arena_printf(a, " on %s", rankset_words(&k->ranks, a)) : "";
            field(e, told ? "" : "work",
                  arena_printf(a, "%s FLOP, %s per rank%s", count_text(k->flops, a),
                               bytes_text(k->bytes, a), where));
            told = true;
        }
}
static void explain_step(Ex *e, int step) {
    const FoundStep *f = &e->x.step[step];
    Arena *a = e->c->arena;
    title(e, "step", arena_printf(a, "%d", step), step_text(e, step));
    told_step(&e->told, step);
    if (f->compute) {
        const TraceCompute *k = f->compute;
        for (int i = 0; i < k->n_inputs; i++) {
            int from = k->input_step ? k->input_step[i] : -1;
            field(e, "reads",
                  arena_printf(a, "%s, %s", or_empty(k->inputs[i]), step_text(e, from)));
        }
        field(e, "makes", k->output);
        field(e, "style", k->style);
        explain_work(e, k);
    }
    if (f->collective) {
        const TraceCollective *k = f->collective;
        field(e, "moves",
              arena_printf(a, "%s, %s", or_empty(k->value), step_text(e, k->value_step)));
        field(e, "why", k->why);
        field(e, "plan line", line_text(e, k->file, k->line));
        if (k->inferred) field(e, "inferred", "no style asked for this move");
        field(e, "groups",
              arena_printf(a, "%lld of %lld ranks over %s", (long long)groups_count(&k->groups),
                           (long long)groups_size(&k->groups), or_empty(k->axes)));
        field(e, "bytes",
              arena_printf(a, "%s in, %s out, %s sent per rank", bytes_text(k->bytes_in, a),
                           bytes_text(k->bytes_out, a), bytes_text(lookup_sent(k, -1), a)));
        for (int i = 0; i < k->n_local; i++)
            field(e, i ? "" : "unequal groups",
                  arena_printf(
                      a, "%s: %s in, %s out, %s sent", rankset_words(&k->local[i].ranks, a),
                      bytes_text(k->local[i].bytes_in, a), bytes_text(k->local[i].bytes_out, a),
                      bytes_text(k->local[i].bytes_sent, a)));
    }
    if (f->move) {
        field(
            e, "moves",
            arena_printf(a, "%s, %s", or_empty(f->move->value), step_text(e, f->move->value_step)));
        field(e, "why", f->move->why);
        field(e, "plan line", line_text(e, f->move->file, f->move->line));
        field(e, "bytes", "none: a local move");
    }
    field(e, "planted", planted_text(e, f));
    if (f->value) explain_value(e, f->value);
}
/* All steps and parameters of a module; false if nothing belongs to it. */
static bool explain_module(Ex *e, const char *name) {
    size_t n = strlen(name);
    bool any = false;
    for (int s = 0; s < e->x.n; s++) {
        const FoundStep *f = &e->x.step[s];
        const char *m = f->compute      ? f->compute->module
                        : f->collective ? f->collective->module
                                        : NULL;
        if (!m || strncmp(m, name, n) != 0 || (m[n] && m[n] != '.')) continue;
        if (!any) title(e, "module", name, arena_printf(e->c->arena, "%s  (module)", name));
        any = true;
        const TraceValue *v = f->value;
        told_step(&e->told, s);
        told_field(&e->told, TOLD_LINE, "step", step_text(e, s));
        if (v && v->shape.n_local)
            told_field(&e->told, TOLD_DEEP, "makes",
                       arena_printf(e->c->arena, "%s  %s  %s", or_empty(v->shape.name),
                                    or_empty(v->shape.symbolic),
                                    shape_of(e, v->shape.local[0].shape, v->shape.nd)));
        if (f->collective) told_field(&e->told, TOLD_DEEP, "why", f->collective->why);
    }
    for (int i = 0; i < e->t->n_params; i++) {
        const TraceParam *p = &e->t->params[i];
        if (!p->module || strncmp(p->module, name, n) != 0 || (p->module[n] && p->module[n] != '.'))
            continue;
        explain_param(e, p);
        any = true;
    }
    return any;
}
static bool explain_values(Ex *e, const char *name) {
    bool any = explain_gradient(e, name);
    for (int i = 0; i < e->t->n_values; i++)
        if (e->t->values[i].shape.name && strcmp(e->t->values[i].shape.name, name) == 0) {
            explain_value(e, &e->t->values[i]);
            any = true;
        }
    return any;
}
/* What to try where nothing has the name: those that end so, the nearest of any scheme, or the word
 * by itself. */
static const char *name_hint(const Ex *e, const char *name, const char *near) {
    if (near) return near;
    if (is_code(name) || words_know(e->c, name))
        return arena_printf(e->c->arena,
                            "`shardproof explain %s`, without a plan, explains the word", name);
    return "`shapes` lists the values of a plan, `params` its parameters, `list names` the modules "
           "of all schemes";
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
/* The nearest module that has a hook: of values and parameters none runs. */
static const char *hook_hint(const Ex *e, const char *name, const char *ends) {
    if (ends) return ends;
    Table t = table_hooks(e->c, e->t, NULL);
    const char **modules = ARENA_ARRAY(e->c->arena, const char *, t.n_rows + 1);
    for (int i = 0; i < t.n_rows; i++) modules[i] = t.row[i][0].text;
    modules[t.n_rows] = NULL;
    const char *near = diag_nearest(name, modules);
    return near ? near
                : "`explain PLAN --hooks`, without a name, lists the modules that have hooks";
}
/* Every hook, or those of one module. */
static bool explain_hooks(Ex *e, const char *name, const Diags *d) {
    Table t = table_hooks(e->c, e->t, name);
    if (!t.n_rows && name) return false;
    if (!t.n_rows)
        str_add(&t.notes, "no line of the plan speaks of a module: nothing runs before or after\n");
    else str_add(&t.notes, hooks_legend);
    if (strcmp(e->c->format, "json")) t = fold_layers(&t);
    if (strcmp(e->c->format, "json")) cli_table(e->c, &t);
    else document_table(e->c, &t, d, NULL);
    return true;
}
/* An option that is for a plan, where a word or a code is explained; NULL: none is given. */
static const char *idle_option(const CliOptions *o) {
    return o->of_plan ? o->of_plan : o->rank >= 0 ? "rank" : o->trace ? "trace" : NULL;
}
static int explain_alone(Cli *c, const char *word) {
    bool code = is_code(word);
    const char *idle = idle_option(&c->o);
    if (!code && access(word, F_OK) == 0 && !words_know(c, word)) {
        diag_error(c->d, "E0212", diag_nowhere,
                   arena_printf(c->arena,
                                "shardproof explain %s NAME; `shapes` lists the values of a "
                                "plan, `params` its parameters",
                                word),
                   "`explain` of a plan or trace wants a name in it too");
        return 2;
    }
    if (idle) {
        diag_error(c->d, "E0212", diag_nowhere, "explain PLAN NAME, or leave it out",
                   "--%s is for a plan, and '%s' is explained without one", idle, word);
        return 2;
    }
    if (code) return explain_code(c, word);
    return explain_word(c, word) ? 0 : 3;
}
int cmd_explain(Cli *c) {
    if (c->o.n_operands == 1 && !c->o.hooks) return explain_alone(c, c->o.operands[0]);
    PipelineOptions o = cli_pipeline(c);
    Loaded l;
    bool ok = cli_load(c, c->o.operands[0], &o, false, &l) && !cli_idle_options(c, &l);
    cli_diagnostics(c, l.d, false);
    Ex e = {.c = c, .t = l.trace, .told = {.a = c->arena}};
    bool json = !strcmp(c->format, "json");
    if (!ok) {
        if (json && !l.refused) told_document(c, &e.told, NULL, l.d);
        return l.exit;
    }
    if (c->o.trace) trace_write(l.trace, c->d, c->o.trace);
    e.x = lookup_steps(l.trace, c->arena);
    e.both_ways = trace_both_ways(l.trace);
    const char *name = c->o.n_operands > 1 ? c->o.operands[1] : NULL;
    if (c->o.hooks && explain_hooks(&e, name, l.d)) return l.exit;
    bool found = !c->o.hooks && explain_name(&e, name);
    const char *hint = NULL,
               *whole = found ? NULL
                              : suffix_find(c->arena, l.trace, name,
                                            c->o.hooks ? SUFFIX_MODULES : SUFFIX_ALL, &hint);
    if (whole && c->o.hooks && explain_hooks(&e, whole, l.d)) return l.exit;
    if (whole && !c->o.hooks) found = explain_name(&e, whole);
    const char *apart[SUFFIX_APART];
    bool several = false;
    int n_apart = found || c->o.hooks ? 0 : suffix_apart(c->arena, l.trace, name, apart, &several);
    for (int i = 0; i < n_apart && !several; i++) found |= explain_name(&e, apart[i]);
    if (!found)
        diag_error(c->d, "E0209", diag_nowhere,
                   c->o.hooks ? hook_hint(&e, name, hint) : name_hint(&e, name, hint),
                   c->o.hooks ? "nothing runs before or after a module '%s'"
                              : "no module, value, parameter or step is called '%s'",
                   name);
    if (json) told_document(c, &e.told, l.trace, l.d);
    else told_text(c, &e.told);
    return found ? l.exit : cli_worse(l.exit, 3);
}
