/* Where `moe:` says that experts are, as groups of axes and a line of the plan: `axis` is the group
 * `ep`, `etp` the group `etp`, and how rows get to their experts is a matter of how tokens enter
 * and where results go. So a plan that says it there and one that says it in a line for `experts`
 * are one plan. Refuses to know how tokens lie: what contradicts that is found in lowering. */
#include "plan/read.h"
#include "plan/sharding.h"
#include <string.h>

void read_part_axes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    const char *name = k->arg, *text = read_axes_text(r, k->name, pair->value), *have = NULL;
    if (!text) return;
    *(const char **)((char *)base + k->at) = text;
    text = read_expand_axes(r, text);
    for (int i = 0; i < p->n_axes; i++)
        if (!strcmp(p->axes[i].name, name)) have = name;
    for (int i = 0; i < p->n_groups; i++)
        if (!strcmp(p->groups[i].key, name)) have = p->groups[i].text;
    if (have && strcmp(have, text) != 0)
        diag_error(r->d, "E0215", pair->value->loc, arena_printf(r->a, "leave `%s` out", k->name),
                   "`moe: {%s: %s}` is another thing than the plan's `%s`, which is %s", k->name,
                   text, name, strcmp(have, name) ? have : "an axis");
    if (have) return;
    PlanPair *all = ARENA_ARRAY(r->a, PlanPair, p->n_groups + 1);
    if (p->n_groups) memcpy(all, p->groups, (size_t)p->n_groups * sizeof *all);
    all[p->n_groups++] = (PlanPair){name, text, pair->loc, pair->value->loc};
    p->groups = all;
}

static bool has_axes(const Plan *p, const char *name) {
    for (int i = 0; i < p->n_axes; i++)
        if (strcmp(p->axes[i].name, name) == 0) return true;
    for (int i = 0; i < p->n_groups; i++)
        if (strcmp(p->groups[i].key, name) == 0) return true;
    return false;
}
/* {ep: PLACE, etp: PLACE}, of those that there are; a letter is given for shard. */
static RawSpec on_parts(PlanReader *r, Loc loc, RawKind kind, const char letters[2]) {
    static const char *const parts[] = {"ep", "etp"};
    RawSpec s = {
        .set = true, .mapping = true, .on = ARENA_ARRAY(r->a, struct RawOn, 2), .loc = loc};
    for (int i = 0; i < 2; i++)
        if (letters[i] && has_axes(r->p, parts[i]))
            s.on[s.n++] = (struct RawOn){.axis = parts[i],
                                         .place = {.kind = kind, .letter = letters[i], .loc = loc},
                                         .loc = loc};
    return s;
}
/* Tokens, list and weights: gathered over `ep`. */
static RawList gathered(PlanReader *r, Loc loc) {
    enum { INPUTS = 3 };
    RawList l = {.set = true, .n = INPUTS, .arg = ARENA_ARRAY(r->a, RawSpec, INPUTS), .loc = loc};
    for (int i = 0; i < INPUTS; i++) l.arg[i] = on_parts(r, loc, RP_VARYING, "e");
    return l;
}
static void add_line(PlanReader *r, const PlanLine *line) {
    Plan *p = r->p;
    PlanLine *all = ARENA_ARRAY(r->a, PlanLine, p->n_lines + 1);
    if (p->n_lines) memcpy(all, p->lines, (size_t)p->n_lines * sizeof *all);
    all[p->n_lines++] = *line;
    p->lines = all;
}
void plan_place_experts(PlanReader *r) {
    Plan *p = r->p;
    const char *dispatch = p->moe.dispatch;
    Loc loc = dispatch ? p->moe.dispatch_loc : p->moe.axis ? p->moe.axis_loc : p->moe.etp_loc;
    if (!r->axes_known || !(dispatch || p->moe.axis || p->moe.etp)) return;
    if (has_axes(p, "ep") && has_axes(p, "etp"))
        read_check_disjoint(r, "ep", "etp", loc, "both the experts and each of them inside");
    if (dispatch && !has_axes(p, "ep")) {
        diag_error(r->d, "E0208", loc, arena_printf(r->a, "{dispatch: %s, axis: dp}", dispatch),
                   "`dispatch` says how rows get to experts on other ranks, and nothing is called "
                   "`ep`: `axis` says which ranks");
        return;
    }
    Style s = {.axis = has_axes(p, "ep") ? "ep" : "etp",
               .use_local_output = -1,
               .use_local_input = -1,
               .per_module = -1,
               .sums = true,
               .loc = loc};
    s.weight = on_parts(r, loc, RP_SHARD, "ew");
    if (dispatch && !strcmp(dispatch, "all_gather")) s.desired_input = gathered(r, loc);
    s.output = (RawList){.set = true, .n = 1, .arg = ARENA_ARRAY(r->a, RawSpec, 1), .loc = loc};
    s.output.arg[0] = on_parts(r, loc, RP_HOME, "ew");
    add_line(r, &(PlanLine){
                    .pattern = "moe", .kind = "experts", .style = s, .loc = loc, .style_loc = loc});
}
void plan_note_experts(PlanReader *r) {
    const Plan *p = r->p;
    bool room = p->moe.capacity_factor > 0, cut = plan_data_mode(p)->cuts_params;
    const struct {
        bool read;
        Loc loc;
        const char *key, *word, *why, *fix;
    } keys[] = {
        {room, p->moe.rule_loc, "capacity", p->moe.capacity, "every row is kept",
         "set `capacity_factor`, or leave it out"},
        {room, p->moe.priority_loc, "priority", p->moe.priority, "every row is kept",
         "set `capacity_factor`, or leave it out"},
        {cut, p->moe.fsdp_dim_loc, "fsdp_dim", p->moe.fsdp_dim, "no parameter is cut by fsdp",
         "data_parallel: {mode: fsdp}, or leave it out"},
    };
    if (diags_errors(r->d)) return; /* a word that is none says nothing of others */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].loc.file && !keys[i].read)
            diag_note(r->d, "N0018", keys[i].loc, keys[i].fix, "`%s: %s` changes nothing: %s",
                      keys[i].key, keys[i].word, keys[i].why);
}
