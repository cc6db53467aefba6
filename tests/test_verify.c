/* The second opinion can disagree: a lowered program is changed in one place by hand, and verify
 * names that step and says what is wrong there. (That it keeps silent about right programs is the
 * business of every other test.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "lower/program.h"
#include "model/model.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

#define TINY                                                                                       \
    "model: {config: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "                \
    "num_attention_heads: 4, vocab_size: 8, head_dim: 4}}\n"
#define LINES                                                                                      \
    "plan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n  "            \
    "layers.*.feed_forward.w[13]: colwise\n"                                                       \
    "  layers.*.feed_forward.w2: rowwise\n"
/* more exact lines: sums end in reduce-scatters */
#define WHOLE "{style: prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n"
#define SEQUENCE                                                                                   \
    "  layers.0.attention_norm: sequence_parallel\n  layers.0.ffn_norm: sequence_parallel\n"       \
    "  layers.0.attention: " WHOLE "  layers.0.feed_forward: " WHOLE                               \
    "  layers.0.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.0.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
static Program *lowered(Arena *a, Diags *d, const char *text) {
    Plan *p = plan_parse(a, d, plan_text("plan.yaml", text));
    Mesh *mesh = assign_mesh(a, d, p);
    Model *m = model_build(a, d, p, mesh);
    Program *q = lower(a, assign_plan(a, d, p, mesh, m, NULL));
    if (p->pass != PASS_FORWARD) adjoint_program(q);
    if (diags_errors(d)) diags_print(d, stderr, false);
    assert_int_equal(diags_errors(d), 0);
    assert_int_equal(verify(q, d, false, NULL), 0);
    return q;
}
/* The step that makes a value first or, with `kind`, the first move of that kind that makes it. */
static Step *step_of(Program *p, const char *value, int kind) {
    for (int i = 0; i < p->ns; i++) {
        Step *s = &p->step[i];
        const GTensor *t = &p->graph->t[p->val[s->out].tensor];
        bool named = !strcmp(t->plan_name ? t->plan_name : t->name, value) && !p->val[s->out].cot;
        if (named &&
            (kind < 0 ? s->kind == ST_OP : s->kind == ST_MOVE && (int)s->move.kind == kind))
            return s;
    }
    fail_msg("no step makes %s", value);
    return NULL;
}
static int dim_of(const Program *p, const Step *s, char letter) {
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    return (int)((const char *)memchr(t->letter, letter, (size_t)t->nd) - t->letter);
}

/* What is done to the program; returns the step that must be named. */
static int uncut(Program *p) { /* a cut value is said to be whole */
    Step *s = step_of(p, "layers.0.mlp.gate", -1);
    layout_set_type(&p->val[s->out].L, 0, TY_I);
    memset(p->val[s->out].L.e, 0, sizeof p->val[s->out].L.e);
    memset(p->val[s->out].L.n, 0, sizeof p->val[s->out].L.n);
    return s->id;
}
static int
complete(Program *p) { /* a pending sum is said to be complete: no reduction follows from that */
    Step *s = step_of(p, "layers.0.o_proj", -1);
    p->val[s->out].L.type[0] = TY_I;
    return s->id;
}
static int elsewhere(Program *p) { /* a value is cut on another letter than the rule gives */
    Step *s = step_of(p, "layers.0.mlp.gate", -1);
    Layout L = layout_whole(p->mesh, 3, TY_I);
    layout_cut(&L, dim_of(p, s, 'b'), 0, CUT_CHUNK);
    p->val[s->out].L = L;
    return s->id;
}
static int other_order(Program *p) { /* cut as the operands are, but in another order of blocks */
    Step *s = step_of(p, "layers.0.mlp.act", -1);
    p->val[s->out].L.e[dim_of(p, s, 'f')][0].how = CUT_STRIPED;
    return s->id;
}
static int unshared(Program *p) { /* the norm's output takes part on every rank alike, its consumers
                                     differ: a missing I -> R */
    Step *s = step_of(p, "layers.0.mlp.gate", -1);
    int r = s->in[0];
    s->in[0] = p->step[p->val[r].step].in[0];
    return s->id;
}
static int hop_behind(Program *p) { /* a part takes the block of keys and values before its own */
    Step *part = step_of(p, "attn_part.2", -1);
    for (int i = 1; i < 3; i++) part->in[i] = p->step[p->val[part->in[i]].step].in[0];
    return part->id;
}
static int straight_on(Program *p) { /* the sum is left out: the residual takes the pending value */
    Step *move = step_of(p, "layers.0.o_proj", MOVE_ALL_REDUCE),
         *add = step_of(p, "layers.0.resid_attn", -1);
    for (int i = 0; i < add->nin; i++)
        if (add->in[i] == move->out) add->in[i] = move->in[0];
    return add->id;
}
static int into_norm(Program *p) { /* a pending sum enters a norm */
    Step *norm = step_of(p, "layers.0.post_attn_norm", -1), *o = step_of(p, "layers.0.o_proj", -1);
    norm->in[0] = o->out;
    return norm->id;
}
static int
other_source(Program *p) { /* a move that starts from another layout than its source has */
    Step *move = step_of(p, "layers.0.o_proj", MOVE_ALL_REDUCE);
    move->move.from.type[0] = TY_I;
    return move->id;
}
static int other_kind(Program *p) {
    Step *move = step_of(p, "layers.0.o_proj", MOVE_ALL_REDUCE);
    move->move.kind = MOVE_ALL_TO_ALL;
    return move->id;
}
static int other_group(Program *p) {
    Step *move = step_of(p, "layers.0.o_proj", MOVE_ALL_REDUCE);
    move->move.axes.a[0] = 1;
    return move->id;
}
/* What a move does, to be rewritten by hand; nobody writes down that it was. */
static Act *rewritten(Program *p, const char *value, int kind, int *step) {
    Step *s = step_of(p, value, kind);
    Act *a = ARENA_NEW(p->arena, Act);
    *a = act_of(s);
    s->act = a;
    *step = s->id;
    return a;
}
enum { SUM_OF_ROWS, GATHER_AT_REST, SCATTER, RECUT };
static Act *at(Program *p, int which, int *step) {
    static const struct {
        const char *value;
        MoveKind kind;
    } moves[] = {[SUM_OF_ROWS] = {"layers.0.o_proj", MOVE_ALL_REDUCE},
                 [GATHER_AT_REST] = {"layers.0.attention_norm.weight", MOVE_ALL_GATHER},
                 [SCATTER] = {"layers.0.mlp.down", MOVE_REDUCE_SCATTER},
                 [RECUT] = {"labels", MOVE_ALL_TO_ALL}};
    return rewritten(p, moves[which].value, moves[which].kind, step);
}
static int sum_left_out(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->times = 0;
    return i;
}
static int sum_twice(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->times = 2;
    return i;
}
static int mean_for_sum(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->combine = COMBINE_AVG;
    return i;
}
static int max_for_sum(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->combine = COMBINE_MAX;
    return i;
}
static int sum_elsewhere(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->axes = (AxisList){.n = 1, .a = {1}};
    return i;
}
static int sum_over_more(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->axes = (AxisList){.n = 2, .a = {0, 1}};
    return i;
}
static int sum_over_none(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->axes = (AxisList){0};
    return i;
}
static int gathered_sum(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->kind = MOVE_ALL_GATHER;
    return i;
}
static int kept_sum(Program *p) {
    int i;
    at(p, SUM_OF_ROWS, &i)->kind = MOVE_ID;
    return i;
}
static int scattered_sum(Program *p) { /* a reduce-scatter where an all-reduce is declared */
    int i;
    at(p, SUM_OF_ROWS, &i)->kind = MOVE_REDUCE_SCATTER;
    return i;
}
static int reduced_scatter(Program *p) { /* and the other way round */
    int i;
    at(p, SCATTER, &i)->kind = MOVE_ALL_REDUCE;
    return i;
}
static int sliced_scatter(Program *p) {
    int i;
    at(p, SCATTER, &i)->kind = MOVE_SLICE;
    return i;
}
static int scattered_dim(Program *p) {
    int i;
    at(p, SCATTER, &i)->dim = 2;
    return i;
}
static int gather_left_out(Program *p) {
    int i;
    at(p, GATHER_AT_REST, &i)->times = 0;
    return i;
}
static int gathered_elsewhere(Program *p) {
    int i;
    at(p, GATHER_AT_REST, &i)->axes = (AxisList){.n = 1, .a = {0}};
    return i;
}
static int gather_for_sum(Program *p) {
    int i;
    at(p, GATHER_AT_REST, &i)->kind = MOVE_ALL_REDUCE;
    return i;
}
static int recut_left_out(Program *p) { /* labels stay in another order than the tokens */
    int i;
    at(p, RECUT, &i)->times = 0;
    return i;
}
static int use_lost(
    Program *p) { /* the residual's gradient misses one of its uses: the sum's list is one short */
    for (int i = 0; i < p->ns; i++)
        if (p->step[i].kind == ST_SUM) {
            Val *v = &p->val[p->step[i].out];
            if (p->val[p->step[i].out].n_parts < 2) continue;
            v->n_parts--;
            return i;
        }
    fail_msg("no sum");
    return -1;
}
/* The first sum of an activation's gradients that goes back through the node that made it. */
static Step *residual_sum(Program *p) {
    for (int i = p->n_forward; i < p->ns; i++) {
        const Step *s = &p->step[i], *from = &p->step[p->val[s->in[0]].step];
        if (s->kind == ST_ADJOINT && from->kind == ST_SUM) return &p->step[from->id];
    }
    fail_msg("no sum of an activation's gradients");
    return NULL;
}
static int residual_dropped(Program *p, int term) { /* who reads the sum gets one term of it */
    const Step *sum = residual_sum(p);
    int first = -1;
    for (int i = 0; i < p->ns; i++) {
        Step *s = &p->step[i];
        if (s->kind != ST_ADJOINT || s->in[0] != sum->out) continue;
        s->in[0] = sum->in[term];
        if (first < 0) first = i;
    }
    if (first < 0) fail_msg("no adjoint reads the sum");
    return first;
}
static int first_term(Program *p) { return residual_dropped(p, 0); }
static int second_term(Program *p) { return residual_dropped(p, 1); }
static int other_uses(Program *p) { /* as many uses, but one of them twice and one not at all */
    Step *sum = residual_sum(p);
    Val *v = &p->val[sum->out];
    Part *list = arena_memdup(p->arena, v->parts, sizeof(Part) * (size_t)v->n_parts);
    list[0] = list[1];
    v->parts = list;
    return sum->id;
}
static int lost_on_the_way(Program *p) { /* a move says less than its source */
    for (int i = p->n_forward; i < p->ns; i++) {
        Val *v = &p->val[p->step[i].out];
        if (p->step[i].kind != ST_MOVE || !v->cot || v->n_parts < 2) continue;
        v->n_parts--;
        return i;
    }
    fail_msg("no move of a sum");
    return -1;
}
static int
of_another(Program *p) { /* the gradient through one operand is taken for that of another */
    for (int i = p->n_forward; i < p->ns; i++)
        if (p->step[i].kind == ST_ADJOINT && p->graph->node[p->step[i].node].nin == 2) {
            Part *one = ARENA_NEW(p->arena, Part);
            *one = (Part){.node = p->step[i].node, .operand = 1 - p->step[i].operand};
            p->val[p->step[i].out].parts = one;
            return i;
        }
    fail_msg("no adjoint");
    return -1;
}
static int use_twice(Program *p) { /* a weight's gradient counts its use twice */
    for (int t = 0; t < p->graph->nt; t++)
        if (p->graph->t[t].kind == KIND_PARAM && p->grad[t] >= 0) {
            Val *v = &p->val[p->grad[t]];
            Part *two = ARENA_ARRAY(p->arena, Part, 2);
            two[0] = two[1] = v->parts[0];
            v->parts = two;
            v->n_parts = 2;
            return v->step;
        }
    fail_msg("no gradient");
    return -1;
}
#define DOES(what)                                                                                 \
    "the step does '" what "', which does not lead from its layout to the declared one"
static const struct {
    const char *name;
    int (*change)(Program *p);
    const char *pass, *says;
} rows[] = {
    {"uncut", uncut, "forward", "over tp the rule gives a cut, the program says equal copies"},
    {"complete", complete, "forward",
     "over tp the rule gives a pending sum, the program says equal copies"},
    {"elsewhere", elsewhere, "forward", "over tp the rule gives a cut, the program says a cut"},
    {"other order", other_order, "forward", "letter f lies differently in its operands"},
    {"a hop behind", hop_behind, "ring", "round cp letter s must lie 2 places behind letter t"},
    {"unshared", unshared, "backward", "its gradient would miss a sum"},
    {"straight on", straight_on, "forward", "a pending sum over tp is added to a complete value"},
    {"into the norm", into_norm, "forward",
     "a pending sum over tp enters an op that is not linear in it"},
    {"other source", other_source, "forward",
     "does not lead from its source's layout to its result's"},
    {"other kind", other_kind, "forward", "kind and group do not follow from the layouts"},
    {"other group", other_group, "forward", "kind and group do not follow from the layouts"},
    {"a sum left out", sum_left_out, "forward", DOES("all_reduce(tp), sum left out")},
    {"a sum twice", sum_twice, "forward", "the second starts from a complete value"},
    {"a mean", mean_for_sum, "forward", DOES("all_reduce(tp), avg")},
    {"a maximum", max_for_sum, "forward", DOES("all_reduce(tp), max")},
    {"a sum elsewhere", sum_elsewhere, "forward", "the group is that of dp, the layouts ask"},
    {"a sum over more", sum_over_more, "forward", "the group is that of tp*dp, the layouts ask"},
    {"a sum over nothing", sum_over_none, "forward", "the group is that of , the layouts ask"},
    {"parts gathered", gathered_sum, "forward", DOES("all_gather(tp), sum")},
    {"parts kept", kept_sum, "forward", DOES("identity(tp), sum")},
    {"parts scattered", scattered_sum, "forward", DOES("reduce_scatter(tp), sum")},
    {"a scatter not cut", reduced_scatter, "sequence", DOES("all_reduce(tp), sum")},
    {"a scatter not summed", sliced_scatter, "sequence", DOES("slice(tp), sum")},
    {"a scatter of another dim", scattered_dim, "sequence", DOES("reduce_scatter(tp), sum")},
    {"a gather left out", gather_left_out, "fsdp", DOES("all_gather(dp) left out")},
    {"a gather elsewhere", gathered_elsewhere, "fsdp", "the group is that of tp, the layouts ask"},
    {"a sum of parts", gather_for_sum, "fsdp", DOES("all_reduce(dp)")},
    {"blocks not reordered", recut_left_out, "recut", DOES("all_to_all(tp) left out")},
    {"a use is lost", use_lost, "backward", "the uses of a sum are not the uses of its terms"},
    {"a use counts twice", use_twice, "backward", "counts its use in"},
    {"the residual's first term", first_term, "backward", "counts its use in"},
    {"the residual's second term", second_term, "backward", "counts its use in"},
    {"other uses", other_uses, "backward", "the uses of a sum are not the uses of its terms"},
    {"a use lost on the way", lost_on_the_way, "backward",
     "the uses of a gradient change in a move"},
    {"a use of another", of_another, "backward",
     "the gradient through one use is said to be that of another"},
};
/* A plan of a pass, or of sequence parallel or FSDP. */
static const char *plan_of(Arena *a, const char *pass) {
    if (!strcmp(pass, "recut"))
        return "model: {config: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, "
               "num_attention_heads: 4, vocab_size: 8, head_dim: 4}, parts: [embedding, norm, "
               "head, loss]}\n"
               "data: {batch: 2, sequence: 8, order: {labels: zigzag}}\nmesh: {tp: 2, dp: 2}\n"
               "context_parallel: {mode: all_gather, order: striped, axis: tp}\n";
    if (!strcmp(pass, "ring"))
        return "model: {kind: attention, heads: 2, head_dim: 4}\ndata: {batch: 2, sequence: 12}\n"
               "mesh: {cp: 3}\ncontext_parallel: {mode: ring}\n";
    bool sequence = !strcmp(pass, "sequence"), fsdp = !strcmp(pass, "fsdp");
    return arena_printf(
        a, TINY "data: {sequence: 4}\nmesh: {tp: 2, dp: 2}\npass: %s\n%s" LINES "%s",
        sequence ? "forward"
        : fsdp   ? "backward"
                 : pass,
        fsdp ? "data_parallel: {mode: fsdp, axis: dp}\n" : "", sequence ? SEQUENCE : "");
}
/* What the layouts do not say is no matter of this check: which block a rank gets, a factor, a tail
 * that is not there. And what differs in words only is no finding: the mean of a gather, the group
 * of an axis of one rank. */
static void test_silent(void **state) {
    (void)state;
    for (int k = 0; k < 5; k++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        Program *p = lowered(a, d, plan_of(a, k == 4 ? "fsdp" : "sequence"));
        int i;
        if (k == 0) at(p, SCATTER, &i)->shift = 1;
        if (k == 1) at(p, SCATTER, &i)->scale = 3;
        if (k == 2) at(p, SCATTER, &i)->floor = true;
        if (k == 3) at(p, SCATTER, &i); /* as declared, written out */
        if (k == 4) at(p, GATHER_AT_REST, &i)->combine = COMBINE_AVG;
        assert_int_equal(verify(p, d, false, NULL), 0);
        arena_free(a);
    }
}
static void test_findings(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int warn = 0; warn < 2; warn++) {
            Arena *a = arena_new();
            Diags *d = diags_new(a);
            Program *p = lowered(a, d, plan_of(a, rows[i].pass));
            int want = rows[i].change(p), first = -1, said = 0;
            int found = verify(p, d, warn, &first);
            for (int k = 0; k < d->n; k++)
                said += !strcmp(d->item[k].code, warn ? "W0401" : "E0404") &&
                        strstr(d->item[k].message, rows[i].says) != NULL;
            if (!found || first != want || !said) {
                print_error("%s: %d findings, the first at step %d instead of %d\n", rows[i].name,
                            found, first, want);
                diags_print(d, stderr, false);
                bad++;
            }
            assert_true(warn ? !diags_errors(d) : diags_errors(d) > 0);
            arena_free(a);
        }
    assert_int_equal(bad, 0);
}
/* The program as people read it: a line per step with the layout, the axes of moves, and what is
 * read. */
static void test_dump(void **state) {
    (void)state;
    Arena *a = arena_new();
    Program *p = lowered(a, diags_new(a),
                         TINY "data: {sequence: 4}\nmesh: {tp: 2, dp: 2}\npass: "
                              "backward\ndata_parallel: {mode: fsdp, axis: dp}\n" LINES);
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    program_dump(p, f);
    fclose(f);
    int lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, p->ns);
    static const char *const want[] = {
        "forward    op       layers.0.mlp.gate                          [b:dp,t,f:tp]",
        "[b:dp,t,d] tp:P  reads", /* the row product, pending */
        "forward    move     all_reduce of layers.0.o_proj              [b:dp,t,d] tp:I  over tp  "
        "reads",
        "parameters move     all_gather of layers.0.attention_norm.weight [d] tp:I dp:R  over dp  "
        "reads",
        "list:dp", /* heads of w_q at rest: the flat list cut by dp */
        "loss       seed     grad.loss",
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        if (!strstr(text, want[i])) fail_msg("'%s' is not in\n%s", want[i], text);
    free(text);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_findings),
                                       cmocka_unit_test(test_silent), cmocka_unit_test(test_dump)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
