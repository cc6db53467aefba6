/* See torch_given.h. Names and defaults are those of torchtitan 0.1.0 to 0.2.2: its ParallelDims,
 * and what stands in its JobConfig. */
#include "import/torch_given.h"
#include "import/python.h"
#include "import/scan.h"
#include <string.h>

static Value *value(Draft *x, DatumKind kind) {
    Value *v = ARENA_NEW(x->a, Value);
    v->kind = kind;
    v->loc = (Loc){x->file, 1, 1};
    return v;
}
static Value *truth(Draft *x, bool b) {
    Value *v = value(x, V_BOOL);
    v->b = b;
    return v;
}
static Value *number(Draft *x, int64_t i) {
    Value *v = value(x, V_INT);
    v->i = i;
    v->r = (double)i;
    return v;
}

/* ---- --args ---- */
bool torch_given(TorchGiven *g, Torch *t) {
    Draft *x = t->x;
    Scan s;
    *g = (TorchGiven){.t = t, .defaults = str_new(x->a)};
    if (!x->in->args) return true;
    g->said = value(x, V_DICT);
    if (!scan_start(&s, x->a, x->d, "--args", x->in->args, strlen(x->in->args))) return false;
    while (scan_peek(&s, 0)) {
        while (scan_peek(&s, 0) == ' ') scan_take(&s, 1);
        if (!scan_peek(&s, 0)) break;
        Loc at = scan_loc(&s);
        size_t n = strcspn(s.p, " "), name = strcspn(s.p, "= ");
        const char *key = arena_strndup(x->a, s.p, name),
                   *text = arena_strndup(x->a, s.p + name, n - name);
        Value *v = *text && name ? python_expression(x->a, x->d, at, text + 1) : NULL;
        if (!*text || !name)
            diag_error(x->d, "E0110", at, "loss_parallel=True job_config.compile.enable=False",
                       "of a Python file --args is NAME=VALUE");
        if (!v) return false;
        if (value_is_code(x->d, v) || !scan_pair(&s, g->said, key, at, v)) return false;
        scan_take(&s, n);
    }
    return true;
}

/* ---- parallel_dims ---- */
static int64_t size(const Draft *x, const char *axis) {
    int64_t n = draft_axis_size(x, axis);
    return n ? n : 1;
}
/* The axis that FSDP cuts parameters over; NULL: there is none. */
static const char *shard_axis(const Draft *x) {
    static const char *const names[] = {"dp_shard", "fsdp", "dp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (draft_axis_size(x, names[i])) return names[i];
    return NULL;
}
static int64_t degree(const Draft *x, const char *name) {
    const char *shard = shard_axis(x);
    if (strcmp(name, "dp_shard") == 0) return shard ? size(x, shard) : 1;
    return size(x, name);
}
/* Which degrees, above 1, make a switch true. */
static const struct {
    const char *name, *of[3];
} switches[] = {
    {"tp_enabled", {"tp"}},
    {"cp_enabled", {"cp"}},
    {"pp_enabled", {"pp"}},
    {"ep_enabled", {"ep"}},
    {"etp_enabled", {"etp"}},
    {"dp_enabled", {"dp_replicate", "dp_shard"}},
    {"dp_replicate_enabled", {"dp_replicate"}},
    {"dp_shard_enabled", {"dp_shard"}},
    {"dp_cp_enabled", {"dp_replicate", "dp_shard", "cp"}},
    {"fsdp_enabled", {"dp_shard", "cp"}},
};
static Value *of_dims(Draft *x, const char *name) {
    static const char *const degrees[] = {"dp_replicate", "dp_shard", "cp", "tp", "pp", "ep"};
    if (!x->n_axes) return NULL;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        bool on = false;
        for (int k = 0; k < 3 && switches[i].of[k]; k++) on |= degree(x, switches[i].of[k]) > 1;
        if (strcmp(switches[i].name, name) == 0) return truth(x, on);
    }
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        if (strcmp(degrees[i], name) == 0) return number(x, degree(x, name));
    return NULL;
}
/* "fsdp", or dp_shard_cp before 0.2.1, is the axis of FSDP, with that of the sequence where there
 * is one. */
const char *torch_given_axis(TorchGiven *g, const char *name, Loc at) {
    Draft *x = g->t->x;
    const char *shard = shard_axis(x);
    bool asked = strcmp(name, "fsdp") == 0 || strcmp(name, "dp_shard_cp") == 0;
    if (!asked || (*name == 'd' && draft_axis_size(x, name))) return name;
    if (size(x, "cp") == 1) return shard ? shard : name;
    if (!shard) return "cp";
    const char *both = arena_printf(x->a, "%s_cp", shard);
    return draft_axis_size(x, both) || draft_group(x, both, arena_printf(x->a, "%s*cp", shard), at)
               ? both
               : NULL;
}
int torch_given_mesh(TorchGiven *g, const Value *call, const char *axis[2]) {
    const char *name = call->kind == V_CALL ? value_last_name(call->item[0]) : NULL;
    bool asks = name && (strcmp(name, "get_mesh") == 0 || strcmp(name, "get_optional_mesh") == 0);
    const Value *list = asks && call->n == 2 && !call->n_pairs ? call->item[1] : NULL;
    bool several = list && (list->kind == V_LIST || list->kind == V_TUPLE);
    int n = several ? list->n : list != NULL;
    for (int i = 0; i < n && i < 2; i++) {
        const Value *one = several ? list->item[i] : list;
        axis[i] = one->kind == V_STRING ? torch_given_axis(g, one->s, one->loc) : NULL;
        if (!axis[i]) return -1;
    }
    return n == 0 || n > 2 ? -1 : n;
}

/* ---- job_config ---- */
/* What the switches are that these files ask for, where no TOML says otherwise. */
static const struct {
    const char *name;
    DatumKind kind; /* V_BOOL: false; V_LIST: of no item */
    const char *text;
    bool loss; /* its training loop then enters loss_parallel */
} defaults[] = {
    {"parallelism.disable_loss_parallel", V_BOOL, NULL, true},
    {"parallelism.enable_async_tensor_parallel", V_BOOL, NULL, false},
    {"parallelism.fsdp_reshard_after_forward", V_STRING, "default", false},
    {"parallelism.expert_parallel_comm_backend", V_STRING, "standard", false},
    {"model.converters", V_LIST, NULL, false},
    {"quantize.linear.float8.recipe_name", V_NONE, NULL, false},
    {"float8.recipe_name", V_NONE, NULL, false},
    {"compile.enable", V_BOOL, NULL, false},
    {"training.compile", V_BOOL, NULL, false}, /* until 0.1 */
    {"parallelism.enable_compiled_autograd", V_BOOL, NULL, false},
    {"activation_checkpoint.mode", V_STRING, "selective", false},
    {"training.enable_cpu_offload", V_BOOL, NULL, false},
};
/* `said`: of --args, or NULL. */
static Value *of_config(TorchGiven *g, const char *name, Loc at, Value *said) {
    Draft *x = g->t->x;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (strcmp(defaults[i].name, name) != 0) continue;
        Value *v = said ? said : value(x, defaults[i].kind);
        if (!said) v->s = defaults[i].text, v->loc = at;
        if (defaults[i].loss && v->kind == V_BOOL && !v->b && size(x, "tp") > 1) {
            g->t->loss_parallel = true;
            g->t->loss_loc = at;
        }
        if (said) return said;
        const char *shown = v->kind == V_BOOL   ? "False"
                            : v->kind == V_LIST ? "[]"
                            : v->kind == V_NONE ? "None"
                                                : v->s;
        const char *row = arena_printf(x->a, "job_config.%s=%s", name, shown);
        if (!strstr(g->defaults.s, row))
            str_addf(&g->defaults, "%s%s", g->defaults.n ? ", " : "", row);
        return v;
    }
    return said;
}

Value *torch_given_value(TorchGiven *g, const Value *v) {
    static const char dims[] = "parallel_dims.", config[] = "job_config.";
    Draft *x = g->t->x;
    const char *name = value_dotted(x->a, v);
    Value *said = name && g->said ? value_get(g->said, name) : NULL;
    if (name && strncmp(name, config, sizeof config - 1) == 0)
        return of_config(g, name + sizeof config - 1, v->loc, said);
    if (said || !name) return said;
    if (strcmp(name, "parallel_dims.loss_parallel_enabled") == 0 && x->n_axes) {
        static const char off[] = "parallelism.disable_loss_parallel";
        const char *key = arena_printf(x->a, "%s%s", config, off);
        const Value *disabled = of_config(g, off, v->loc, g->said ? value_get(g->said, key) : NULL);
        return truth(x, size(x, "tp") > 1 && !(disabled->kind == V_BOOL && disabled->b));
    }
    if (strncmp(name, dims, sizeof dims - 1) == 0) return of_dims(x, name + sizeof dims - 1);
    return NULL;
}
void torch_given_end(TorchGiven *g) {
    Draft *x = g->t->x;
    if (g->defaults.n)
        draft_remark(x, "unless the TOML says otherwise (--args NAME=VALUE): %s", g->defaults.s);
    for (int i = 0; g->said && i < g->said->n_pairs; i++)
        if (!g->said->pair[i].used)
            diag_error(x->d, "E0201", g->said->pair[i].loc,
                       "a name that the file itself assigns "
                       "is not asked for",
                       "nothing in the file asks for `%s`", g->said->pair[i].key);
}
