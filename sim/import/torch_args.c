/* The table of PyTorch's parallel styles and their arguments (semantics.md 2.2). Refuses to know
 * what an argument does: the plan's own table of styles does. */
#include "import/torch_args.h"
#include <string.h>

#define ONE_LAYOUT                                                                                 \
    {"input_layouts", "input", A_LAYOUT}, {"desired_input_layouts", "desired_input", A_LAYOUT},    \
        {"output_layouts", "output", A_LAYOUT}, {                                                  \
        "use_local_output", "use_local_output", A_BOOL                                             \
    }
#define INPUTS                                                                                     \
    {"input_layouts", "input", A_LAYOUTS}, {"desired_input_layouts", "desired_input", A_LAYOUTS},  \
        {"input_kwarg_layouts", "input", A_KWARGS},                                                \
        {"desired_input_kwarg_layouts", "desired_input", A_KWARGS}, {                              \
        "with_kwargs", NULL, A_IGNORED                                                             \
    }
#define OUTPUTS                                                                                    \
    {"output_layouts", "output", A_LAYOUTS},                                                       \
        {"desired_output_layouts", "desired_output", A_LAYOUTS}, {                                 \
        "use_local_output", "use_local_output", A_BOOL                                             \
    }
static const TorchStyle styles[] = {
    {"ColwiseParallel", "colwise", .arg = {ONE_LAYOUT}},
    {"RowwiseParallel", "rowwise", .arg = {ONE_LAYOUT}},
    {"SequenceParallel", "sequence_parallel",
     .arg = {{"sequence_dim", NULL, A_SEQUENCE},
             {"sequence_sharding", NULL, A_SHARDING},
             {"use_local_output", "use_local_output", A_BOOL}}},
    {"PrepareModuleInput", "prepare_module_input",
     .arg = {INPUTS, {"use_local_output", "use_local_output", A_BOOL}}, .hands_in = true},
    {"PrepareModuleOutput", "prepare_module_output", .arg = {OUTPUTS}},
    {"PrepareModuleInputOutput", "prepare_module_input_output",
     .arg = {INPUTS, OUTPUTS, {"use_local_input", "use_local_input", A_BOOL}}, .hands_in = true},
    {"NoParallel", "no_parallel",
     .arg = {{"input_layout", "input", A_LAYOUT},
             {"desired_input_layout", "desired_input", A_LAYOUT},
             {"output_layout", "output", A_LAYOUT},
             {"use_local_output", "use_local_output", A_BOOL}}},
    /* torchtitan's for experts, without arguments; torchtune's ExpertTensorParallel has some */
    {"ExpertParallel", "expert_parallel", .experts = X_WHOLE},
    {"TensorParallel", "tensor_parallel", .experts = X_INSIDE},
    {"ExpertTensorParallel", "expert_tensor_parallel",
     .arg = {{"input_layouts", "input", A_LAYOUTS},
             {"desired_input_layouts", "desired_input", A_LAYOUTS},
             {"output_layout", "output", A_LAYOUT},
             {"use_local_output", "use_local_output", A_BOOL}},
     .experts = X_BOTH},
    {"ReordererSequenceParallel", "reorderer_sequence_parallel", .experts = X_NONE},
};
enum { N_STYLES = sizeof styles / sizeof *styles };

const TorchStyle *torch_styles(int *n) {
    *n = N_STYLES;
    return styles;
}
const TorchStyle *torch_style_row(const char *name) {
    for (int i = 0; i < N_STYLES; i++)
        if (strcmp(styles[i].name, name) == 0) return &styles[i];
    return NULL;
}
const TorchStyle *torch_style_of(const char *ours) {
    for (int i = 0; i < N_STYLES; i++)
        if (strcmp(styles[i].ours, ours) == 0) return &styles[i];
    return NULL;
}
