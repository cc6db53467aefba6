/* The optimizer as nodes: SGD with momentum, AdamW, clipping by the global gradient norm. Every
 * node is element-wise on what a rank holds at rest, but the norm, whose sums over cut letters fall
 * out like any other contraction. */
#include "model/model.h"
#include "plan/lists.h"
#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct {
    Arena *a;
    const Plan *p;
    Graph *g;
    double weight_decay;
} Opt;

static int push_tensor(Opt *o, const GTensor *like, const char *name, ValueKind kind) {
    GTensor t = *like;
    t.id = o->g->nt;
    t.name = name;
    t.plan_name = NULL;
    t.alias = NULL;
    t.kind = kind;
    t.diff = false;
    t.producer = t.module = -1;
    t.grad_of = t.state_of = t.next_of = 0;
    *ARENA_PUSH(o->a, o->g->t, o->g->nt, o->g->cap_t) = t;
    return o->g->nt - 1;
}
static int scalar(Opt *o, const char *name) {
    GTensor t = {.module = -1};
    return push_tensor(o, &t, name, KIND_ACTIVATION);
}
/* An op, and what the node is called if not by it. */
typedef struct {
    const char *op, *label;
} Kind;

/* A node over operands that all have the letters of the first, or none ("": a scalar); as many as
 * the rule has. Returns `out`. */
static int push_node(Opt *o, Kind kind, const char *rule, const int *in, int out, Attrs at) {
    GNode n = {.id = o->g->nn,
               .op = op_find(kind.op),
               .out = out,
               .at = at,
               .module = -1,
               .layer = -1,
               .part = "optimizer"};
    const char *error;
    int pos;
    n.label = kind.label ? kind.label : n.op->label;
    bool parsed = rule_parse(rule, &n.rule, &error, &pos);
    assert(parsed && "the rules of optimizers are ours");
    (void)parsed;
    n.nin = n.rule.nin;
    memcpy(n.in, in, sizeof(int) * (size_t)n.nin);
    o->g->t[out].producer = n.id;
    *ARENA_PUSH(o->a, o->g->node, o->g->nn, o->g->cap_n) = n;
    return out;
}
static const char *letters_rule(Opt *o, int tensor, int nin, const char *out) {
    static const char names[] =
        "abcdefgh"; /* a rule's letters are its own: a parameter's d and a norm's d need not meet */
    char l[LAYOUT_MAX_DIMS + 1] = {0};
    memcpy(l, names, (size_t)o->g->t[tensor].nd);
    Str s = str_new(o->a);
    for (int i = 0; i < nin; i++) str_addf(&s, "%s%s", i ? "," : "", l);
    str_addf(&s, "->%s", out ? out : l);
    return s.s;
}
static int state(Opt *o, int param, const char *what) {
    const GTensor *p = &o->g->t[param];
    int t = push_tensor(o, p, arena_printf(o->a, "%s.%s", p->name, what), KIND_PARAM);
    o->g->t[t].plan_name = arena_printf(o->a, "%s.%s", o->g->t[param].plan_name, what);
    o->g->t[t].state_of = param + 1;
    return t;
}
static int next_value(Opt *o, int of) {
    int t = push_tensor(o, &o->g->t[of], arena_printf(o->a, "%s.next", graph_name(&o->g->t[of])),
                        KIND_ACTIVATION);
    o->g->t[t].next_of = of + 1;
    return t;
}
static int like(Opt *o, int of, const char *name) {
    return push_tensor(o, &o->g->t[of], name, KIND_ACTIVATION);
}

/* The clip factor from all gradients: one sum of squares each, added, square root inside. */
static int clip_factor(Opt *o, const int *grad, int n) {
    int total = -1;
    for (int i = 0; i < n; i++) {
        int sq = scalar(o, arena_printf(o->a, "%s.sumsq", o->g->t[grad[i]].name));
        push_node(o, (Kind){"sumsq", NULL}, letters_rule(o, grad[i], 1, ""), &grad[i], sq,
                  (Attrs){0});
        if (total < 0) total = sq;
        else
            total = push_node(
                o, (Kind){"add", "add"}, ",->", (int[]){total, sq},
                scalar(o, i + 1 == n ? "grad_norm_squared" : arena_printf(o->a, "grad_norm.%d", i)),
                (Attrs){0});
    }
    return push_node(o, (Kind){"clip", NULL}, "->", &total, scalar(o, "clip_factor"),
                     (Attrs){.a = o->p->optimizer.clip});
}
static int scaled(Opt *o, int grad, int factor) {
    int t = like(o, grad, arena_printf(o->a, "%s.clipped", o->g->t[grad].name));
    const char *one = letters_rule(o, grad, 1, NULL), *arrow = strstr(one, "->");
    push_node(o, (Kind){"einsum", "clip"},
              arena_printf(o->a, "%.*s,%s", (int)(arrow - one), one, arrow), (int[]){grad, factor},
              t, (Attrs){0});
    o->g->node[o->g->nn - 1].in_place = true;
    return t;
}
static void sgd(Opt *o, int param, int g) {
    double lr = o->p->optimizer.lr, mu = o->p->optimizer.momentum, wd = o->weight_decay;
    const char *two = letters_rule(o, param, 2, NULL);
    if (wd != 0)
        g = push_node(o, (Kind){"axpby", "weight decay"}, two, (int[]){g, param},
                      like(o, param, arena_printf(o->a, "%s.decayed", o->g->t[g].name)),
                      (Attrs){.a = 1, .b = wd});
    if (mu != 0) {
        int buf = state(o, param, "momentum_buffer");
        g = push_node(o, (Kind){"axpby", "momentum"}, two, (int[]){buf, g}, next_value(o, buf),
                      (Attrs){.a = mu, .b = 1});
    }
    push_node(o, (Kind){"axpby", "SGD"}, two, (int[]){param, g}, next_value(o, param),
              (Attrs){.a = 1, .b = -lr});
}
static void adamw(Opt *o, int param, int g) {
    double b1 = o->p->optimizer.beta1, b2 = o->p->optimizer.beta2;
    const char *two = letters_rule(o, param, 2, NULL);
    int m = state(o, param, "exp_avg"), v = state(o, param, "exp_avg_sq");
    int m1 = push_node(o, (Kind){"axpby", "first moment"}, two, (int[]){m, g}, next_value(o, m),
                       (Attrs){.a = b1, .b = 1 - b1});
    int v1 = push_node(o, (Kind){"ema_square", NULL}, two, (int[]){v, g}, next_value(o, v),
                       (Attrs){.a = b2, .b = 1 - b2});
    Attrs at = {.lr = o->p->optimizer.lr,
                .beta1 = b1,
                .beta2 = b2,
                .eps = o->p->optimizer.eps,
                .decay = o->weight_decay,
                .step = 1};
    push_node(o, (Kind){"adamw", NULL}, letters_rule(o, param, 3, NULL), (int[]){param, m1, v1},
              next_value(o, param), at);
}
/* An optimizer: its word in plan/lists.h, and one row here. */
typedef struct {
    void (*update)(Opt *o, int param, int grad);
    double weight_decay; /* where the plan gives none: PyTorch's default */
} OptimizerRow;
static const OptimizerRow optimizer_sgd = {sgd, 0}, optimizer_adamw = {adamw, 0.01};
#define ROW(name) {#name, &optimizer_##name},
static const struct {
    const char *name;
    const OptimizerRow *row;
} optimizers[] = {OPTIMIZERS(ROW)};
#undef ROW

/* NULL: none is named; words that do not exist are refused where the plan is read. */
static const OptimizerRow *find_optimizer(const char *name) {
    for (int i = 0; name && i < N_OPTIMIZERS; i++)
        if (!strcmp(name, optimizers[i].name)) return optimizers[i].row;
    return NULL;
}
bool model_add_optimizer(Arena *arena, Diags *d, const Plan *p, Model *m) {
    if (p->pass != PASS_TRAIN) return true;
    const OptimizerRow *row = find_optimizer(p->optimizer.name);
    if (!row) {
        diag_error(d, "E0208", p->pass_loc, "optimizer: {name: adamw, lr: 0.001}",
                   "`pass: train` needs an optimizer");
        return false;
    }
    Opt o = {arena, p, &m->g,
             isnan(p->optimizer.weight_decay) ? row->weight_decay : p->optimizer.weight_decay};
    int n = 0, *param = ARENA_ARRAY(arena, int, m->g.nt + 1),
        *grad = ARENA_ARRAY(arena, int, m->g.nt + 1);
    m->g.nn_model = m->g.nn;
    for (int t = 0; t < m->g.nt; t++)
        if (m->g.t[t].kind == KIND_PARAM && m->g.t[t].diff) param[n++] = t;
    for (int i = 0; i < n; i++) {
        grad[i] =
            like(&o, param[i], arena_printf(arena, "optimizer.grad.%s", m->g.t[param[i]].name));
        m->g.t[grad[i]].grad_of = param[i] + 1;
    }
    int factor = p->optimizer.clip > 0 ? clip_factor(&o, grad, n) : -1;
    for (int i = 0; i < n; i++) {
        int g = factor >= 0 ? scaled(&o, grad[i], factor) : grad[i];
        int from = m->g.nn;
        row->update(&o, param[i], g);
        for (int k = from; k < m->g.nn; k++) m->g.node[k].updates = param[i] + 1;
    }
    return true;
}
