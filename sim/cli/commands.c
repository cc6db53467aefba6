/* The commands of the command line. */
#include "cli/cli.h"

#define TABLES "text json jsonl csv md"
const Command cli_commands[] = {
    {"run", C_RUN, "PLAN", 1, 1, "text json jsonl chrome",
     "execute a plan, check every value, log and draw it",
     "shardproof run plans/03-llama3-8b-tp2.yaml\n"
     "shardproof run plan.yaml -o out/today --set mesh.tp=4\n",
     cmd_run},
    {"check", C_CHECK, "PLAN|FOLDER...", 1, 1 << 20, TABLES " junit sarif github gitlab",
     "static rules and execution without pictures: for CI",
     "shardproof check plans/*.yaml\n"
     "shardproof check plans/bugs --fail-on note\n"
     "shardproof check plan.yaml --against golden/values.safetensors\n"
     "shardproof check plan.yaml --update-expect\n",
     cmd_check},
    {"shapes", C_SHAPES, "PLAN|TRACE", 1, 1, TABLES,
     "every step with its local shape, symbolic and numeric",
     "shardproof shapes plan.yaml\n"
     "shardproof shapes plan.yaml --rank 3 --format csv\n",
     cmd_shapes},
    {"params", C_PARAMS, "PLAN|TRACE", 1, 1, TABLES,
     "every parameter: placements, local shape, bytes",
     "shardproof params plan.yaml --set model.layers=all\n", cmd_params},
    {"comms", C_COMMS, "PLAN|TRACE", 1, 1, TABLES,
     "every collective: group, bytes in, out and sent, and why",
     "shardproof comms plan.yaml --set pass=train --format md\n", cmd_comms},
    {"times", C_TIMES, "PLAN|TRACE", 1, 1, TABLES,
     "what each kernel and collective takes: modelled, measured",
     "shardproof times plan.yaml --hardware h200-sxm\n"
     "shardproof run plan.yaml --cuda=virtual --trace cuda.trace.jsonl\n"
     "shardproof times cuda.trace.jsonl --format md\n",
     cmd_times},
    {"explain", C_EXPLAIN, "PLAN|TRACE NAME | WORD | CODE", 1, 2, "text json",
     "a module, value or step by its name or end; a word; a code",
     "shardproof explain plan.yaml layers.0.attention.wo\n"
     "shardproof explain plan.yaml o_proj\n"
     "shardproof explain out/plan.trace.jsonl 12\n"
     "shardproof explain colwise\n"
     "shardproof explain \"partial sum\"\n"
     "shardproof explain E0403\n",
     cmd_explain},
    {"draw", C_DRAW, "PLAN|TRACE", 1, 1, "text svg png pdf json chrome", "one picture",
     "shardproof draw plan.yaml --view block\n"
     "shardproof draw out/plan.trace.jsonl --view timeline -o timeline.svg\n"
     "shardproof draw plan.yaml --view memory -o memory.json\n",
     cmd_draw},
    {"diff", C_DIFF, "A B", 2, 2, TABLES " svg png pdf",
     "two plans or traces: layouts, collectives, bytes, memory",
     "shardproof diff tp.yaml tp-sp.yaml\n"
     "shardproof diff tp.yaml tp-sp.yaml --view block -o both.svg\n"
     "shardproof diff out/virtual.trace.jsonl out/cuda.trace.jsonl\n",
     cmd_diff},
    {"list", C_LIST,
     "models|styles|recipes|plans|keys|placements|terms|ops|views|names|hardware|faults|codes", 1,
     1, TABLES, "what the program knows",
     "shardproof list styles\n"
     "shardproof list plans\n"
     "shardproof list codes --format md\n",
     cmd_list},
    {"completion", C_COMPLETION, "bash|zsh|fish", 1, 1, "text",
     "a script that completes commands, options and names",
     "shardproof completion bash > ~/.local/share/bash-completion/completions/shardproof\n",
     cmd_completion},
    {"import", C_IMPORT, "FRAMEWORK [FILE | -- ARGUMENT...]", 1, 1 << 12,
     "yaml json text jsonl csv md", "another's plan as ours: torch, torchtitan, megatron, jax, hf",
     "shardproof import torch plan.py --model llama3-8b --mesh tp=8 -o plan.yaml\n"
     "shardproof check plan.py --model llama3-8b --mesh tp=8\n"
     "shardproof import hf --names names.json --tp 2\n",
     cmd_import},
    {"calibrate", C_CALIBRATE, "", 0, 0, "yaml",
     "a hardware profile of this machine or its GPU, measured",
     "mpirun -n 4 shardproof calibrate --mpi -o machine.yaml\n"
     "shardproof calibrate --cuda -o gpu.yaml\n"
     "shardproof run plan.yaml --hardware ./machine.yaml\n",
     cmd_calibrate},
    {"export", C_EXPORT, "PLAN", 1, 1, "py json toml sh",
     "a plan that passed, for torch, hf, jax, megatron or torchtitan",
     "shardproof export plans/18-llama3-8b-backward.yaml --to torch -o plan.py\n"
     "shardproof check plan.py --model llama3-8b\n"
     "shardproof export plans/18-llama3-8b-backward.yaml --to torchtitan -o t.toml\n"
     "shardproof export plans/16-hf-llama-tp4.yaml --to hf -o tp_plan.json\n"
     "shardproof import hf --model llama3-8b --tp-plan tp_plan.json --tp 4\n",
     cmd_export},
};
const int n_cli_commands = (int)(sizeof cli_commands / sizeof *cli_commands);
