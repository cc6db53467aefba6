/* The tables of trace_fields.h. Keys are a contract with readers: never renamed, only added. */
#include "trace/trace_fields.h"
#include <stddef.h>

#define N(a) ((int)(sizeof(a) / sizeof *(a)))
const WordList word_lists[N_WORD_LISTS] = {
    [WORDS_PHASE] = {phase_words, N(phase_words)},
    [WORDS_PASS] = {pass_words, N(pass_words)},
    [WORDS_VALUE_ROLE] = {value_role_words, N(value_role_words)},
};
/* The offset of member m of the record type R that is being described. */
#define AT(m) offsetof(R, m)

#define R Trace
static const Field run_fields[] = {
    {"plan", F_TEXT, OPTIONAL, AT(plan), 0, 0},
    {"title", F_TEXT, OPTIONAL, AT(title), 0, 0},
    {"hash", F_TEXT, OPTIONAL, AT(hash), 0, 0},
    {"mesh", F_MESH, REQUIRED, 0, 0, 0},
    {"groups", F_NAMED_GROUPS, ALWAYS, 0, 0, 0},
    {"ranks", F_I64, REQUIRED, AT(ranks), 0, 1},
    {"model", F_MODEL, ALWAYS, 0, 0, 0},
    {"settings", F_SETTINGS, OPTIONAL, 0, 0, 0},
    {"model_name", F_TEXT, OPTIONAL, AT(model_name), 0, 0},
    {"model_kind", F_TEXT, OPTIONAL, AT(model_kind), 0, 0},
    {"names", F_TEXT, OPTIONAL, AT(names), 0, 0},
    {"pass", F_WORD, ALWAYS, AT(pass), 0, WORDS_PASS},
    {"dtype", F_TEXT, OPTIONAL, AT(dtype), 0, 0},
    {"executed_in", F_TEXT, OPTIONAL, AT(executed_in), 0, 0},
    {"backend", F_TEXT, OPTIONAL, AT(backend), 0, 0},
    {"version", F_TEXT, OPTIONAL, AT(version), 0, 0},
    {"executed", F_BOOL, ALWAYS, AT(executed), 0, 0},
    {"classes", F_CLASSES, OPTIONAL, 0, 0, 0},
    {"hardware", F_TEXT, OPTIONAL, AT(hardware), 0, 0},
    {"node_ranks", F_I64, OPTIONAL, AT(node_ranks), 0, 0},
    {"link_inside", F_TEXT, OPTIONAL, AT(links[0]), 0, 0},
    {"link_across", F_TEXT, OPTIONAL, AT(links[1]), 0, 0},
    {"flop_rate", F_REAL, OPTIONAL, AT(flop_rate), 0, 0},
    {"memory_rate", F_REAL, OPTIONAL, AT(memory_rate), 0, 0},
    {"launch", F_REAL, OPTIONAL, AT(launch), 0, 0},
    {"link_rate_inside", F_REAL, OPTIONAL, AT(link_rate[0]), 0, 0},
    {"link_rate_across", F_REAL, OPTIONAL, AT(link_rate[1]), 0, 0},
    {"schedule", F_TEXT, OPTIONAL, AT(schedule), 0, 0},
    {"schedule_axis", F_TEXT, OPTIONAL, AT(schedule_axis), 0, 0},
    {"stages", F_INT, OPTIONAL, AT(stages), 0, 0},
    {"bubble_form", F_TEXT, OPTIONAL, AT(bubble_form), 0, 0},
    {"bubble_unfit", F_TEXT, OPTIONAL, AT(bubble_unfit), 0, 0},
    {"bubble", F_REAL, OPTIONAL, AT(bubble), 0, 0},
    {"bubble_stages", F_REAL, OPTIONAL, AT(bubble_stages), 0, 0},
    {"bubble_messages", F_REAL, OPTIONAL, AT(bubble_messages), 0, 0},
    {"slow_stages", F_TEXT, OPTIONAL, AT(slow_stages), 0, 0},
    {"slow_times", F_REAL, OPTIONAL, AT(slow_times), 0, 0},
};
static const Field verdict_fields[] = {
    {"verdict", F_TEXT, ALWAYS, AT(verdict), 0, 0},
    {"worst", F_WORST, OPTIONAL, 0, 0, 0},
    {"pass", F_I64, ALWAYS, AT(n_pass), 0, 0},
    {"suspect", F_I64, ALWAYS, AT(n_suspect), 0, 0},
    {"fail", F_I64, ALWAYS, AT(n_fail), 0, 0},
    {"first_wrong", F_TEXT, OPTIONAL, AT(first_wrong), 0, 0},
    {"undeclared", F_TEXTS, ALWAYS, AT(undeclared), AT(n_undeclared), 0},
    {"unasked", F_TEXTS, ALWAYS, AT(unasked), AT(n_unasked), 0},
    {"end_to_end", F_ENDS, OPTIONAL, 0, 0, 0},
};
#undef R

#define R TraceParam
static const Field param_fields[] = {
    {"name", F_PARAM_NAME, REQUIRED, 0, 0, 0},
    {"global_shape", F_GLOBAL, REQUIRED, AT(compute), 0, 0},
    {"rest", F_PLACES, ALWAYS, AT(rest), 0, 0},
    {"compute", F_PLACES, ALWAYS, AT(compute), 0, 0},
    {"placements", F_TEXTS, ALWAYS, AT(placements), AT(n_placements), 0},
    {"symbolic", F_TEXT, OPTIONAL, AT(compute.symbolic), 0, 0},
    {"dims", F_DIMS, ALWAYS, AT(compute), 0, 0},
    {"pending", F_TEXT, OPTIONAL, AT(compute.pending), 0, 0},
    {"local", F_LOCALS, ALWAYS, AT(compute), 0, 0},
    {"bytes", F_I64, ALWAYS, AT(bytes), 0, 0},
    {"rest_name", F_TEXT, OPTIONAL, AT(rest.name), 0, 0},
    {"rest_shape", F_GLOBAL, ALWAYS, AT(rest), 0, 0},
    {"rest_symbolic", F_TEXT, OPTIONAL, AT(rest.symbolic), 0, 0},
    {"rest_dims", F_DIMS, ALWAYS, AT(rest), 0, 0},
    {"rest_pending", F_TEXT, OPTIONAL, AT(rest.pending), 0, 0},
    {"rest_local", F_LOCALS, ALWAYS, AT(rest), 0, 0},
    {"style", F_TEXT, OPTIONAL, AT(style), 0, 0},
    {"module", F_TEXT, OPTIONAL, AT(module), 0, 0},
    {"layer", F_INT, ALWAYS, AT(layer), 0, -1},
    {"cuts", F_CUTS, OPTIONAL, AT(cuts), 0, 0},
    {"on", F_TEXT, OPTIONAL, AT(on), 0, 0},
    {"summed", F_TEXT, OPTIONAL, AT(summed), 0, 0},
    {"planted", F_TEXT, OPTIONAL, AT(planted), 0, 0},
    {"planted_at", F_TEXT, OPTIONAL, AT(planted_at), 0, 0},
    {"matched_by", F_MATCHED, OPTIONAL, 0, 0, 0},
};
#undef R

#define R TraceModule
static const Field module_fields[] = {
    {"module", F_TEXT, REQUIRED, AT(module), 0, 0}, {"style", F_TEXT, OPTIONAL, AT(style), 0, 0},
    {"before", F_TEXT, OPTIONAL, AT(before), 0, 0}, {"after", F_TEXT, OPTIONAL, AT(after), 0, 0},
    {"file", F_TEXT, OPTIONAL, AT(file), 0, 0},     {"line", F_INT, OPTIONAL, AT(line), 0, 0},
};
#undef R

#define R TraceValue
static const Field value_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"name", F_TEXT, REQUIRED, AT(shape.name), 0, 0},
    {"pass", F_WORD, OPTIONAL, AT(pass), 0, WORDS_PHASE},
    {"global_shape", F_GLOBAL, REQUIRED, AT(shape), 0, 0},
    {"symbolic", F_TEXT, OPTIONAL, AT(shape.symbolic), 0, 0},
    {"layout", F_PLACES, ALWAYS, AT(shape), 0, 0},
    {"dims", F_DIMS, ALWAYS, AT(shape), 0, 0},
    {"pending", F_TEXT, OPTIONAL, AT(shape.pending), 0, 0},
    {"local", F_LOCALS, ALWAYS, AT(shape), 0, 0},
    {"kind", F_WORD, OPTIONAL, AT(kind), 0, WORDS_VALUE_ROLE},
    {"layer", F_INT, ALWAYS, AT(layer), 0, -1},
    {"way", F_INT, OPTIONAL, AT(way), 0, 0},
    {"once", F_BOOL, OPTIONAL, AT(once), 0, 0},
    {"planted", F_TEXT, OPTIONAL, AT(planted), 0, 0},
    {"planted_at", F_TEXT, OPTIONAL, AT(planted_at), 0, 0},
    {"list", F_INT, OPTIONAL, AT(list), 0, -1},
    {"most", F_I64, OPTIONAL, AT(most), 0, 0},
    {"room", F_TEXT, OPTIONAL, AT(room), 0, 0},
    {"alive", F_HELD, OPTIONAL, AT(alive), 0, 0},
    {"numbers", F_NUMBERS, OPTIONAL, AT(numbers), AT(n_numbers), 0},
};
#undef R

#define R TraceCompute
static const Field compute_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"op", F_TEXT, REQUIRED, AT(op), 0, 0},
    {"module", F_TEXT, OPTIONAL, AT(module), 0, 0},
    {"ranks", F_RANKS, ALWAYS, AT(ranks), 0, 0},
    {"inputs", F_TEXTS, ALWAYS, AT(inputs), AT(n_inputs), 0},
    {"input_step", F_STEPS, OPTIONAL, AT(input_step), AT(n_inputs), 0},
    {"output", F_TEXT, OPTIONAL, AT(output), 0, 0},
    {"flops", F_NUMBER, ALWAYS, AT(flops), 0, 0},
    {"bytes", F_I64, ALWAYS, AT(bytes), 0, 0},
    {"pass", F_WORD, OPTIONAL, AT(pass), 0, WORDS_PHASE},
    {"label", F_TEXT, OPTIONAL, AT(label), 0, 0},
    {"glyph", F_TEXT, OPTIONAL, AT(glyph), 0, 0},
    {"part", F_TEXT, OPTIONAL, AT(part), 0, 0},
    {"style", F_TEXT, OPTIONAL, AT(style), 0, 0},
    {"layer", F_INT, ALWAYS, AT(layer), 0, -1},
    {"iteration", F_INT, OPTIONAL, AT(iteration), 0, 0},
    {"iteration_text", F_TEXT, OPTIONAL, AT(iteration_text), 0, 0},
    {"microbatch", F_INT, OPTIONAL, AT(microbatch), 0, 0},
    {"recompute", F_BOOL, OPTIONAL, AT(recompute), 0, 0},
    {"attends", F_BOOL, OPTIONAL, AT(attends), 0, 0},
    {"product", F_BOOL, OPTIONAL, AT(product), 0, 0},
    {"mask", F_TEXT, OPTIONAL, AT(mask), 0, 0},
    {"wrong", F_TEXT, OPTIONAL, AT(wrong), 0, 0},
    {"planted", F_TEXT, OPTIONAL, AT(planted), 0, 0},
    {"planted_at", F_TEXT, OPTIONAL, AT(planted_at), 0, 0},
};
#undef R

#define R TraceCollective
static const Field collective_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"op", F_TEXT, REQUIRED, AT(op), 0, 0},
    {"axis", F_TEXT, OPTIONAL, AT(axis), 0, 0},
    {"axes", F_TEXT, OPTIONAL, AT(axes), 0, 0},
    {"groups", F_GROUPS, REQUIRED, AT(groups), 0, 0},
    {"dtype", F_TEXT, OPTIONAL, AT(dtype), 0, 0},
    {"reduce", F_TEXT, OPTIONAL, AT(reduce), 0, 0},
    {"bytes_in", F_I64, ALWAYS, AT(bytes_in), 0, 0},
    {"bytes_out", F_I64, ALWAYS, AT(bytes_out), 0, 0},
    {"bytes_sent", F_I64, ALWAYS, AT(bytes_sent), 0, 0},
    {"local", F_TRAFFIC, OPTIONAL, AT(local), AT(n_local), 0},
    {"row_bytes", F_I64, OPTIONAL, AT(row_bytes), 0, 0},
    {"most_in", F_I64, OPTIONAL, AT(most_in), 0, 0},
    {"most_out", F_I64, OPTIONAL, AT(most_out), 0, 0},
    {"most_sent", F_I64, OPTIONAL, AT(most_sent), 0, 0},
    {"times", F_INT, OPTIONAL, AT(times), 0, 0},
    {"shift", F_INT, OPTIONAL, AT(shift), 0, 0},
    {"alone", F_I64, OPTIONAL, AT(alone), 0, 0},
    {"per_step", F_INT, OPTIONAL, AT(per_step), 0, 0},
    {"with", F_WITH, OPTIONAL, AT(with), AT(n_with), 0},
    {"with_from", F_WITH, OPTIONAL, AT(with_from), AT(n_with_from), 0},
    {"held", F_HELD, OPTIONAL, AT(held), 0, 0},
    {"value", F_TEXT, OPTIONAL, AT(value), 0, 0},
    {"value_step", F_INT, ALWAYS, AT(value_step), 0, -1},
    {"dim", F_INT, ALWAYS, AT(dim), 0, -1},
    {"dim_symbol", F_TEXT, OPTIONAL, AT(dim_symbol), 0, 0},
    {"pass", F_WORD, OPTIONAL, AT(pass), 0, WORDS_PHASE},
    {"why", F_TEXT, OPTIONAL, AT(why), 0, 0},
    {"file", F_TEXT, OPTIONAL, AT(file), 0, 0},
    {"line", F_INT, OPTIONAL, AT(line), 0, 0},
    {"inferred", F_BOOL, ALWAYS, AT(inferred), 0, 0},
    {"module", F_TEXT, OPTIONAL, AT(module), 0, 0},
    {"where", F_TEXT, OPTIONAL, AT(where), 0, 0},
    {"part", F_TEXT, OPTIONAL, AT(part), 0, 0},
    {"layer", F_INT, ALWAYS, AT(layer), 0, -1},
    {"wrong", F_TEXT, OPTIONAL, AT(wrong), 0, 0},
    {"planted", F_TEXT, OPTIONAL, AT(planted), 0, 0},
    {"skipped", F_BOOL, OPTIONAL, AT(skipped), 0, 0},
    {"declared", F_TEXT, OPTIONAL, AT(declared), 0, 0},
    {"planted_at", F_TEXT, OPTIONAL, AT(planted_at), 0, 0},
};
#undef R

#define R TraceLocalMove
static const Field move_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"op", F_TEXT, REQUIRED, AT(op), 0, 0},
    {"value", F_TEXT, OPTIONAL, AT(value), 0, 0},
    {"value_step", F_INT, ALWAYS, AT(value_step), 0, -1},
    {"axes", F_TEXT, OPTIONAL, AT(axes), 0, 0},
    {"pass", F_WORD, OPTIONAL, AT(pass), 0, WORDS_PHASE},
    {"why", F_TEXT, OPTIONAL, AT(why), 0, 0},
    {"module", F_TEXT, OPTIONAL, AT(module), 0, 0},
    {"where", F_TEXT, OPTIONAL, AT(where), 0, 0},
    {"layer", F_INT, ALWAYS, AT(layer), 0, -1},
    {"file", F_TEXT, OPTIONAL, AT(file), 0, 0},
    {"line", F_INT, OPTIONAL, AT(line), 0, 0},
    {"wrong", F_TEXT, OPTIONAL, AT(wrong), 0, 0},
    {"left_by", F_TEXT, OPTIONAL, AT(left_by), 0, 0},
    {"planted", F_TEXT, OPTIONAL, AT(planted), 0, 0},
    {"planted_at", F_TEXT, OPTIONAL, AT(planted_at), 0, 0},
};
#undef R

#define R TraceCheck
static const Field check_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"value", F_TEXT, REQUIRED, AT(value), 0, 0},
    {"pass", F_WORD, OPTIONAL, AT(pass), 0, WORDS_PHASE},
    {"level", F_INT, ALWAYS, AT(level), 0, 0},
    {"ranks", F_RANKS, ALWAYS, AT(ranks), 0, 0},
    {"max_abs", F_REAL, ALWAYS, AT(max_abs), 0, 0},
    {"max_rel", F_REAL, ALWAYS, AT(max_rel), 0, 0},
    {"bound", F_REAL, ALWAYS, AT(bound), 0, 0},
    {"used", F_REAL, ALWAYS, AT(used), 0, 0},
    {"verdict", F_TEXT, REQUIRED, AT(verdict), 0, 0},
    {"iteration", F_INT, OPTIONAL, AT(iteration), 0, 0},
    {"microbatch", F_INT, OPTIONAL, AT(microbatch), 0, 0},
    {"count", F_I64, ALWAYS, AT(count), 0, 0},
    {"projections", F_INT, OPTIONAL, AT(projections), 0, 0},
    {"notice", F_REAL, OPTIONAL, AT(notice), 0, 0},
    {"index", F_INDEX, OPTIONAL, AT(index), AT(n_index), 0},
    {"got", F_REAL, OPTIONAL, AT(got), 0, 0},
    {"want", F_REAL, OPTIONAL, AT(want), 0, 0},
    {"shape", F_INDEX, OPTIONAL, AT(shape), AT(n_shape), 0},
    {"due", F_INDEX, OPTIONAL, AT(due), AT(n_due), 0},
    {"terms", F_NUMBERS, OPTIONAL, AT(terms), AT(n_terms), 0},
    {"term_ranks", F_NUMBERS, OPTIONAL, AT(term_ranks), AT(n_term_ranks), 0},
    {"cause", F_TEXT, OPTIONAL, AT(cause), 0, 0},
    {"errors", F_ERRORS, OPTIONAL, 0, 0, 0},
};
#undef R

#define R TraceMemory
static const Field memory_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"ranks", F_RANKS, ALWAYS, AT(ranks), 0, 0},
    {"category", F_TEXT, REQUIRED, AT(category), 0, 0},
    {"bytes", F_I64, REQUIRED, AT(bytes), 0, 0},
};
#undef R

#define R TraceDistance
static const Field distance_fields[] = {
    {"step", F_INT, ALWAYS, AT(step), 0, -1},       {"value", F_TEXT, REQUIRED, AT(value), 0, 0},
    {"max_abs", F_REAL, ALWAYS, AT(max_abs), 0, 0}, {"top", F_REAL, ALWAYS, AT(top), 0, 0},
    {"bound", F_REAL, ALWAYS, AT(bound), 0, 0},     {"ranks", F_RANKS, ALWAYS, AT(ranks), 0, 0},
};
#undef R

#define R TraceSample
static const Field sample_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"value", F_TEXT, OPTIONAL, AT(value), 0, 0},
    {"size", F_I64, REQUIRED, AT(size), 0, 0},
    {"first", F_I64, ALWAYS, AT(first), 0, 0},
    {"chunks", F_NUMBERS, ALWAYS, AT(chunks), AT(n_chunks), 0},
    {"before", F_NUMBERS, ALWAYS, AT(before), AT(n_before), 0},
    {"after", F_NUMBERS, ALWAYS, AT(after), AT(n_after), 0},
    {"at", F_TEXTS, ALWAYS, AT(at), AT(n_at), 0},
    {"rows", F_NUMBERS, OPTIONAL, AT(rows), AT(n_rows), 0},
    {"columns", F_NUMBERS, OPTIONAL, AT(columns), AT(n_columns), 0},
    {"whole", F_NUMBERS, OPTIONAL, AT(whole), AT(n_whole), 0},
    {"made", F_NUMBERS, OPTIONAL, AT(made), AT(n_made), 0},
};
#undef R

#define R TraceRouted
static const Field routed_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"value", F_TEXT, OPTIONAL, AT(value), 0, 0},
    {"experts", F_I64, REQUIRED, AT(experts), 0, 0},
    {"rows", F_NUMBERS, ALWAYS, AT(rows), AT(n_rows), 0},
    {"tokens", F_NUMBERS, OPTIONAL, AT(tokens), AT(n_tokens), 0},
    {"weights", F_NUMBERS, OPTIONAL, AT(weights), AT(n_weights), 0},
    {"weight_step", F_INT, OPTIONAL, AT(weight_step), 0, 0},
    {"scores", F_NUMBERS, OPTIONAL, AT(scores), AT(n_scores), 0},
    {"room", F_I64, OPTIONAL, AT(room), 0, 0},
};
#undef R

#define R TraceExchange
static const Field exchange_fields[] = {
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"value", F_TEXT, OPTIONAL, AT(value), 0, 0},
    {"size", F_I64, REQUIRED, AT(size), 0, 0},
    {"in", F_NUMBERS, ALWAYS, AT(in), AT(n_in), 0},
    {"out", F_NUMBERS, ALWAYS, AT(out), AT(n_out), 0},
    {"sent", F_NUMBERS, ALWAYS, AT(sent), AT(n_sent), 0},
    {"to", F_NUMBERS, OPTIONAL, AT(to), AT(n_to), 0},
    {"from", F_NUMBERS, OPTIONAL, AT(from), AT(n_from), 0},
};
#undef R

#define R TraceEvent
static const Field event_fields[] = {
    {"rank", F_EVENT_RANK, ALWAYS, 0, 0, 0},
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"stream", F_TEXT, REQUIRED, AT(stream), 0, 0},
    {"start", F_REAL, REQUIRED, AT(start), 0, 0},
    {"end", F_REAL, REQUIRED, AT(end), 0, 0},
    {"exposed", F_REAL, ALWAYS, AT(exposed), 0, 0},
    {"wait", F_REAL, OPTIONAL, AT(wait), 0, 0},
    {"wait_exposed", F_REAL, OPTIONAL, AT(wait_exposed), 0, 0},
    {"work", F_REAL, OPTIONAL, AT(work), 0, 0},
    {"moved", F_REAL, OPTIONAL, AT(moved), 0, 0},
    {"name", F_TEXT, OPTIONAL, AT(name), 0, 0},
    {"kind", F_TEXT, OPTIONAL, AT(kind), 0, 0},
    {"ranks", F_RANKS, ALWAYS, AT(ranks), 0, 0},
    {"formula", F_TEXT, OPTIONAL, AT(formula), 0, 0},
};
#undef R

#define R TraceMeasured
static const Field measured_fields[] = {
    {"rank", F_I64, REQUIRED, AT(rank), 0, -1},
    {"step", F_INT, REQUIRED, AT(step), 0, -1},
    {"start", F_REAL, REQUIRED, AT(start), 0, 0},
    {"end", F_REAL, REQUIRED, AT(end), 0, 0},
    {"wait", F_REAL, ALWAYS, AT(wait), 0, 0},
    {"wire_bytes", F_I64, OPTIONAL, AT(wire_bytes), 0, 0},
    {"sent", F_NUMBERS, OPTIONAL, AT(sent), AT(n_sent), 0},
};
#undef R

#define R TraceTie
static const Field tie_fields[] = {
    {"value", F_TEXT, REQUIRED, AT(value), 0, 0},
    {"taken", F_INDEX, ALWAYS, AT(taken), AT(n_taken), 0},
    {"left", F_INDEX, ALWAYS, AT(left), AT(n_left), 0},
    {"gap", F_REAL, ALWAYS, AT(gap), 0, 0},
    {"bound", F_REAL, ALWAYS, AT(bound), 0, 0},
    {"iteration", F_I64, OPTIONAL, AT(iteration), 0, 0},
};
#undef R

#define R TraceAgainst
static const Field against_fields[] = {
    {"name", F_TEXT, REQUIRED, AT(name), 0, 0},
    {"result", F_TEXT, REQUIRED, AT(result), 0, 0},
    {"count", F_I64, OPTIONAL, AT(count), 0, 0},
    {"max_abs", F_REAL, OPTIONAL, AT(max_abs), 0, 0},
    {"max_rel", F_REAL, OPTIONAL, AT(max_rel), 0, 0},
    {"tolerance", F_REAL, OPTIONAL, AT(tolerance), 0, 0},
    {"why", F_TEXT, OPTIONAL, AT(why), 0, 0},
};
#undef R

#define R TraceAction
static const Field action_fields[] = {
    {"rank", F_INT, REQUIRED, AT(rank), 0, 0},
    {"stage", F_INT, REQUIRED, AT(stage), 0, 0},
    {"kind", F_TEXT, REQUIRED, AT(kind), 0, 0},
    {"microbatch", F_INT, REQUIRED, AT(microbatch), 0, 0},
    {"joined", F_BOOL, OPTIONAL, AT(joined), 0, 0},
    {"start", F_REAL, OPTIONAL, AT(start), 0, 0},
    {"end", F_REAL, OPTIONAL, AT(end), 0, 0},
    {"held", F_I64, OPTIONAL, AT(held), 0, 0},
    {"held_gathered", F_I64, OPTIONAL, AT(held_gathered), 0, 0},
    {"kept", F_I64, OPTIONAL, AT(kept), 0, 0},
    {"kept_gathered", F_I64, OPTIONAL, AT(kept_gathered), 0, 0},
};
#undef R

#define R Diag
static const Field diag_fields[] = {
    {"code", F_TEXT, OPTIONAL, AT(code), 0, 0},
    {"severity", F_SEVERITY, REQUIRED, AT(severity), 0, 0},
    {"message", F_TEXT, OPTIONAL, AT(message), 0, 0},
    {"file", F_TEXT, OPTIONAL, AT(loc.file), 0, 0},
    {"line", F_INT, OPTIONAL, AT(loc.line), 0, 0},
    {"column", F_INT, OPTIONAL, AT(loc.col), 0, 0},
    {"hint", F_TEXT, OPTIONAL, AT(hint), 0, 0},
    {"exit", F_INT, OPTIONAL, AT(exit), 0, 0},
};
#undef R

#define R Trace
#define ROW(type, fields, T, items, count, step)                                                   \
    { type, fields, N(fields), sizeof(T), AT(items), AT(count), step }
const RecordType record_types[N_RECORD_TYPES] = {
    {"run", run_fields, N(run_fields), sizeof(Trace), 0, 0, -1},
    ROW("param", param_fields, TraceParam, params, n_params, -1),
    ROW("module", module_fields, TraceModule, modules, n_modules, -1),
    ROW("compute", compute_fields, TraceCompute, computes, n_computes,
        offsetof(TraceCompute, step)),
    ROW("collective", collective_fields, TraceCollective, collectives, n_collectives,
        offsetof(TraceCollective, step)),
    ROW("move", move_fields, TraceLocalMove, moves, n_moves, offsetof(TraceLocalMove, step)),
    ROW("value", value_fields, TraceValue, values, n_values, offsetof(TraceValue, step)),
    ROW("check", check_fields, TraceCheck, checks, n_checks, offsetof(TraceCheck, step)),
    ROW("distance", distance_fields, TraceDistance, distances, n_distances,
        offsetof(TraceDistance, step)),
    ROW("memory", memory_fields, TraceMemory, memory, n_memory, offsetof(TraceMemory, step)),
    ROW("sample", sample_fields, TraceSample, samples, n_samples, offsetof(TraceSample, step)),
    ROW("routed", routed_fields, TraceRouted, routed, n_routed, offsetof(TraceRouted, step)),
    ROW("exchange", exchange_fields, TraceExchange, exchanges, n_exchanges,
        offsetof(TraceExchange, step)),
    ROW("event", event_fields, TraceEvent, events, n_events, offsetof(TraceEvent, step)),
    ROW("measured", measured_fields, TraceMeasured, measured, n_measured,
        offsetof(TraceMeasured, step)),
    ROW("tie", tie_fields, TraceTie, ties, n_ties, -1),
    ROW("against", against_fields, TraceAgainst, against, n_against, -1),
    ROW("action", action_fields, TraceAction, actions, n_actions, -1),
    ROW("diagnostic", diag_fields, Diag, diags, n_diags, -1),
    {"verdict", verdict_fields, N(verdict_fields), sizeof(Trace), 0, 0, -1},
};
