#!/bin/sh
# What only a machine with a GPU can show, in parts of some minutes: machine, plans, bugs.
# Every plan must end with the exit code and the verdict that it has on the host. In a checkout or in
# a bundle (make CUDA=1 bundle). Exit 1 if anything differs.
set -u
cd "$(dirname "$0")/.." || exit 2
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -z "${SHARDPROOF_CUBLASLT:-}" ]; then # it may lie inside a Python package
    for f in /usr/local/cuda*/lib64/libcublasLt.so.1[23] \
        /usr/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[23] \
        /usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.1[23] \
        /opt/conda/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so.1[23]; do
        [ -e "$f" ] && export SHARDPROOF_CUBLASLT="$f"
    done
fi
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
bad=0
verdict() { grep -ho '"verdict": *"[a-z]*"' "$1"/*.jsonl 2>/dev/null | tail -1; }
compare() { # files
    for plan in "$@"; do
        timeout 120 ./shardproof run "$plan" -o "$out/host" >/dev/null 2>&1
        host=$?
        timeout 120 ./shardproof run "$plan" --cuda=virtual -o "$out/gpu" >/dev/null 2>"$out/err"
        gpu=$?
        if [ $host = $gpu ] && [ "$(verdict "$out/host")" = "$(verdict "$out/gpu")" ]; then
            echo "same    $plan (exit $gpu) $(grep -h N0017 "$out/err" | head -1)"
        else
            echo "DIFFERS $plan: exit $host on the host, $gpu on the GPU"
            head -5 "$out/err"
            bad=1
        fi
        rm -rf "$out/host" "$out/gpu"
    done
}
case ${1:-} in
machine)
    nvidia-smi || bad=1
    echo "cuBLASLt: ${SHARDPROOF_CUBLASLT:-by the linker}"
    ./shardproof run plans/01-column-row-mlp.yaml --cuda=virtual -o "$out/gpu" || bad=1
    ;;
plans) compare plans/[0-9]*.yaml ;;
bugs) compare plans/bugs/*.yaml ;;
*)
    echo "usage: sh tests/gpu.sh machine | plans | bugs" >&2
    exit 2
    ;;
esac
exit $bad
