#!/bin/sh
# What only a machine with a GPU can show, in parts of some minutes: see `parts`. Every plan must end with the exit
# code, the verdict and the first wrong value that it has on the host. In a checkout or in a bundle (make CUDA=1 bundle).
#     sh tests/gpu.sh [--emulated] PART [PLAN...]
# --emulated: with the plug-in of the tests, whose GPU is the process, and less of everything: it shows this script,
# not a GPU. Exit 1 if anything differs.
# nccl and ends start a process for each rank: on GPUs of their own where there are enough, else several on one
# (--cuda=share); emulated, with the NCCL of the tests.
set -u
cd "$(dirname "$0")/.." || exit 2
parts="machine ops plans bugs bf16 diff timings nccl ends"
emulated=
[ "${1:-}" = --emulated ] && emulated=1 && shift
part=${1:-}
[ $# -gt 0 ] && shift
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
program=./shardproof
if [ $emulated ]; then # SHARDPROOF_EMULATED: a folder that has the program and the plug-in already
    if [ -z "${SHARDPROOF_EMULATED:-}" ]; then
        cp shardproof "$out/" && cp build/tests/gpu.so "$out/shardproof-cuda.so" || exit 2
        cp build/tests/nccl.so "$out/shardproof-nccl.so" && cp build/tests/fake_nccl.so "$out/" || exit 2
    fi
    export SHARDPROOF_NCCL=fake_nccl.so FAKE_GPUS=1
    program=${SHARDPROOF_EMULATED:-$out}/shardproof
fi
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -z "${SHARDPROOF_CUBLASLT:-}" ]; then # it may lie inside a Python package
    for f in /usr/local/cuda*/lib64/libcublasLt.so.1[23] \
        /usr/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[23] \
        /usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[23] \
        /opt/conda/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so.1[23]; do
        [ -e "$f" ] && export SHARDPROOF_CUBLASLT="$f"
    done
fi
bad=0
# The verdict and the first wrong value of a trace.
verdict() {
    grep -ho '"verdict": *"[a-z]*"' "$1" 2>/dev/null | tail -1
    grep -ho '"first_wrong": *"[^"]*"' "$1" 2>/dev/null | tail -1
}
# Each plan on the host and on the GPU, with options in `with`; with `records` 1 their records are compared too.
compare() { # plans
    ran=0
    for plan in "$@"; do
        ran=$((ran + 1))
        rm -f "$out/host.jsonl" "$out/gpu.jsonl"
        timeout 120 $program check "$plan" $with --trace "$out/host.jsonl" >/dev/null 2>&1
        host=$?
        timeout 120 $program check "$plan" $with $how -v --trace "$out/gpu.jsonl" >/dev/null 2>"$out/err"
        gpu=$?
        differs=
        [ $host = $gpu ] || differs="exit $host on the host, $gpu on the GPU"
        [ "$(verdict "$out/host.jsonl")" = "$(verdict "$out/gpu.jsonl")" ] || differs="$differs verdicts differ"
        grep -q N0017 "$out/err" && differs="$differs $(grep -h N0017 "$out/err" | head -1)"
        if [ -s "$out/host.jsonl" ] && [ "$records" ]; then
            $program diff "$out/host.jsonl" "$out/gpu.jsonl" >"$out/diff" 2>&1
            grep -q '^no difference' "$out/diff" || differs="$differs $(head -3 "$out/diff")"
        fi
        if [ "$differs" ]; then
            echo "DIFFERS $plan $with $how: $differs"
            head -5 "$out/err"
            bad=1
        else
            echo "same    $plan $with $how (exit $gpu)"
        fi
    done
    [ $ran -gt 0 ] || bad=1
}
# Every all-gather, reduce-scatter and sum of blocks whose sizes no number of ranks divides.
primes() { # ranks, dtype
    printf '%s\n' "name: primes-$1-$2" \
        "model: {kind: mlp, sizes: [17, 509, 251, 1021, 13], bias: true, activation: silu}" \
        "data: {rows: $((37 * $1)), dtype: $2, seed: 1}" "mesh: {dp: $1}" \
        "data_parallel: {mode: fsdp, axis: dp, unit: parameter}" "pass: backward" >"$out/primes-$1-$2.yaml"
    echo "$out/primes-$1-$2.yaml"
}
# A rank that gets a signal in the middle: all end with code 5 within the deadline and 2 s, and it is named.
ends() { # signal
    $program check plans/18*.yaml plans/19*.yaml plans/18*.yaml plans/19*.yaml plans/18*.yaml plans/19*.yaml \
        --cuda=share --deadline 10 >/dev/null 2>"$out/err" &
    run=$!
    ranks=
    for turn in $(seq 400); do
        ranks=$(cat "/proc/$run/task/$run/children" 2>/dev/null)
        [ "$(echo "$ranks" | wc -w)" = 4 ] && break
        sleep 0.02
    done
    sleep "$after"
    begin=$(date +%s)
    kill "-$1" "$(echo "$ranks" | cut -d' ' -f3)" 2>/dev/null || echo "too late for $1: give fewer seconds"
    wait "$run"
    code=$?
    took=$(($(date +%s) - begin))
    left=0
    for p in $ranks; do kill -0 "$p" 2>/dev/null && left=$((left + 1)); done
    if [ $code = 5 ] && [ $took -le 13 ] && [ $left = 0 ] && grep -q 'rank 2 .*E0605' "$out/err"; then
        echo "ended   rank 2 got $1: $took s, $(grep -m 1 E0605 "$out/err")"
    else
        echo "WRONG   rank 2 got $1: exit $code after $took s, $left processes left"
        head -5 "$out/err"
        bad=1
    fi
}
with='' records='' how='--cuda=virtual'
# Plans that together ask for every op, forward, backward and with an optimizer.
features="plans/02-*.yaml plans/1[0-9]-*.yaml plans/2[0-9]-*.yaml plans/3[0-9]-*.yaml plans/4[0-9]-*.yaml"
case $part in
machine)
    [ $emulated ] || nvidia-smi || bad=1
    echo "cuBLASLt: ${SHARDPROOF_CUBLASLT:-by the linker}"
    $program check plans/01-column-row-mlp.yaml --cuda=virtual || bad=1
    ;;
ops)
    for with in '' '--set data.dtype=f64'; do compare ${@:-$features}; done
    ;;
plans) compare ${@:-plans/[0-9]*.yaml} ;;
bugs) compare ${@:-plans/bugs/*.yaml} ;;
bf16)
    with='--set data.dtype=bf16'
    compare ${@:-plans/[0-9]*.yaml}
    ;;
diff)
    records=1
    compare ${@:-plans/0[1-9]-*.yaml plans/1*-*.yaml plans/bugs/0*.yaml plans/bugs/3*.yaml}
    ;;
timings)
    $program calibrate --cuda -o "$out/gpu.yaml" && cat "$out/gpu.yaml" || bad=1
    # one block of Llama-3-8B on one rank, in bf16: products, attention, the rest
    sequence=2048 shrink=1
    [ $emulated ] && sequence=32 shrink=32
    cat >"$out/block.yaml" <<END
model: {preset: llama3-8b, layers: 1, shrink: $shrink}
data: {batch: 1, sequence: $sequence, dtype: bf16}
mesh: {tp: 1}
END
    $program check "$out/block.yaml" --check quick --cuda=virtual --trace "$out/block.jsonl" || bad=1
    $program times "$out/block.jsonl" --hardware "$out/gpu.yaml" || bad=1
    for plan in ${@:-plans/18-llama3-8b-backward.yaml plans/33-qwen3-30b-a3b-ep.yaml}; do
        $program check "$plan" --cuda=virtual --trace "$out/plan.jsonl" || bad=1
        $program times "$out/plan.jsonl" --hardware "$out/gpu.yaml" || bad=1
    done
    ;;
nccl)
    for how in '--cuda=share' '--cuda=share --sum engine'; do
        if [ $# -gt 0 ]; then
            compare "$@"
            continue
        fi
        for n in 2 4 8; do compare "$(primes $n f32)" "$(primes $n f64)"; done
        compare plans/0[4-9]-*.yaml plans/19-*.yaml plans/2[0-2]-*.yaml plans/bugs/0[1-4]-*.yaml
    done
    ;;
ends) # the seconds after which, in place of plans
    after=${1:-2}
    ends KILL
    ends STOP
    ;;
*)
    echo "usage: sh tests/gpu.sh [--emulated] PART [PLAN...], PART one of: $parts" >&2
    exit 2
    ;;
esac
exit $bad
