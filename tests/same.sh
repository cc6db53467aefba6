#!/bin/sh
# Builds of several compilers and levels of optimization, each with every instruction set and 1 or 2 threads: three plans must give
# the same bytes of trace and of `check` output. Stops at the first difference.
set -eu
plans="plans/03-llama3-8b-tp2.yaml plans/09-llama3-8b-dp2-cp2-tp2.yaml plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml"
out=$(mktemp -d) first= n=0
trap 'rm -rf "$out"' EXIT
build() { # name, compiler, flags
    ${MAKE:-make} --no-print-directory -s -j2 BUILD="build-same-$1" BIN="build-same-$1/shardproof" CC="$2" CFLAGS="$3" "build-same-$1/shardproof"
}
hold() { # name, instruction set, threads
    for plan in $plans; do
        SHARDPROOF_ISA=$2 "build-same-$1/shardproof" check "$plan" --threads "$3" --trace "$out/trace" --set data.sequence=32 > "$out/check" 2>&1
        cat "$out/trace" "$out/check" > "$out/now"
        name=$(basename "$plan" .yaml)
        if [ ! -e "$out/$name" ]; then mv "$out/now" "$out/$name"; first="$1 $2, $3 threads"; continue; fi
        n=$((n + 1))
        cmp "$out/$name" "$out/now" || { echo "$plan: $1, $2, $3 threads differs from $first"; exit 1; }
    done
    echo "same: $1, $2, $3 threads"
}
for b in "gcc-O0 gcc -O0" "gcc-O2 gcc -O2" "gcc-O3 gcc -O3" "clang-O2 clang -O2"; do
    set -- $b
    command -v "$2" > /dev/null || { echo "$2 is not there: left out"; continue; }
    build "$1" "$2" "$3"
    for isa in generic avx2 avx512; do # one that the processor has not counts as the best that it has
        for threads in 1 2; do hold "$1" "$isa" "$threads"; done
    done
done
echo "$n comparisons, all bytes the same"
[ "$n" -gt 0 ]
