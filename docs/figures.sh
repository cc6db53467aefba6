#!/bin/sh
# The README's figures, as the program draws them now: `make figures`.
# figures.sh PROGRAM FOLDER
# Where nothing is executed the model has its true sizes (--full); a run is of the plan's shrink, and says so.
set -eu
draw() { # NAME PLAN OPTION...
    name=$1 plan=$2
    shift 2
    "$program" draw "plans/$plan.yaml" "$@" -o "$out/$name.png"
}
program=$1 out=$2
draw block 05-llama3-8b-tp4-sp --view block --full
draw backward 22-llama3-8b-dp2-cp2-tp2-backward --view block --part attention --full
draw shards 13-qwen3-0.6b-tp4 --view shards --preset slide --full
draw timeline 06-llama3-8b-dp2-tp2-sp --view timeline --preset slide --full
draw errors bugs/03-missing-reduction --view errors
draw storyboard 05-llama3-8b-tp4-sp --view storyboard --part layers.0.o_proj
