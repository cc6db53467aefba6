#!/bin/sh
# A lesson of ten minutes: one layer pair, one block, one figure, one bug. Run it from any folder: sh teacher.sh
# It prints what expected.txt holds; the tests compare the two. Figures stay in figures/ (FIGURES=folder: there).
# On a terminal it waits for Enter before an answer.
set -u
started=$PWD # what the caller names lies from there
cd "$(dirname "$0")" || exit 1
case ${SHARDPROOF:-} in /*) ;; */*) SHARDPROOF=$started/$SHARDPROOF ;; esac
case ${FIGURES:-} in /* | '') ;; *) FIGURES=$started/$FIGURES ;; esac
shardproof=${SHARDPROOF:-../../shardproof}
[ -x "$shardproof" ] || shardproof=shardproof # installed
plans=../../plans
figures=${FIGURES:-figures}
mkdir -p "$figures" || { echo "say where the figures go: FIGURES=folder sh teacher.sh"; exit 1; }
COLUMNS=200
export COLUMNS

step() { printf '\n# %s\n' "$1"; }
think() { [ ! -t 0 ] || [ ! -t 1 ] || { printf '\n(Enter shows the answer) '; read -r _; }; }
must() { "$@" 2>&1 || { echo "exit $? from: $*"; exit 1; }; }

step "1. A column layer and a row layer on four ranks: what does each rank hold?"
must "$shardproof" shapes $plans/01-column-row-mlp.yaml
step "   Four ranks, one collective. Why is it there?"
must "$shardproof" comms $plans/01-column-row-mlp.yaml
step "   Is it right? Every value of every rank is compared with the unsharded model."
must "$shardproof" check $plans/01-column-row-mlp.yaml

step "2. A Llama block: what changes when the sequence is cut too?"
must "$shardproof" comms $plans/04-llama3-8b-tp4.yaml
must "$shardproof" comms $plans/05-llama3-8b-tp4-sp.yaml

step "3. The figure for the blackboard"
must "$shardproof" draw $plans/05-llama3-8b-tp4-sp.yaml --view block -o "$figures/block.svg"
test -s "$figures/block.svg" && echo "block.svg is drawn"

step "4. Question: the second all-reduce is left out. Which value is wrong first, and on which ranks?"
"$shardproof" check lesson.yaml 2>/dev/null
think
"$shardproof" check lesson.yaml --set 'faults=[{at: layers.0.mlp.down, do: drop}]' 2>/dev/null
echo "exit $?"

step "5. Homework: the same for averaging, for a wrong block and for a bias that is added on every rank"
must "$shardproof" check $plans/bugs/05-averaged-instead-of-summed.yaml $plans/bugs/04-wrong-block.yaml \
    $plans/bugs/02-bias-on-every-rank.yaml
