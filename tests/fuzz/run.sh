#!/bin/sh
# Runs every fuzz target of a build folder for so many seconds. Seeds: the kept corpus and, by kind, the files of the
# repository. Fails if one target finds something; the input lies in FOLDER/found.
dir=${1:?folder} seconds=${2:?seconds}
shift 2
here=$(dirname "$0") bad=
mkdir -p "$dir/found" "$dir/seeds"
# traces to begin with: of small plans, made by the plain program
for p in plans/01-*.yaml plans/bugs/01-*.yaml; do
    [ ! -f "$p" ] || ./shardproof check "$p" --trace "$dir/seeds/$(basename "$p" .yaml).jsonl" > /dev/null 2>&1 || :
done
# files of frameworks, behind the byte that says which
n=0
for f in plan.py - train.toml megatron.txt specs.json; do
    for more in 0 195; do
        [ "$f" = - ] || { printf "\\$(printf %o $((more + n)))"; cat "examples/import/$f"; } > "$dir/seeds/import-$more-$f"
    done
    n=$((n + 1))
done
seeds() {
    case $1 in
    plan) echo plans/*.yaml plans/bugs/*.yaml ;;
    config) find tests/golden -name config.json ;;
    safetensors) find tests/golden -name '*.safetensors' -size -16k ;;
    trace) ls "$dir"/seeds/*.jsonl 2>/dev/null ;;
    rule | schedule) : ;;
    names) echo examples/import/names.json ;;
    import) ls "$dir"/seeds/import-* 2>/dev/null ;;
    esac
}
for t in ${*:-plan config import names safetensors schedule trace rule}; do
    work=$dir/work/$t
    mkdir -p "$work"
    for f in $(seeds "$t"); do cp "$f" "$work/$(echo "$f" | tr / _)"; done
    echo "== $t, $seconds s"
    dict=
    [ -f "$here/$t.dict" ] && dict=-dict=$here/$t.dict
    if ! "$dir/fuzz_$t" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="$dir/found/$t-" $dict "$work" "$here/corpus/$t" > "$dir/found/$t.log" 2>&1; then
        bad="$bad $t"
        tail -n 40 "$dir/found/$t.log"
    fi
    grep -E 'number_of_executed_units|new_units_added|average_exec' "$dir/found/$t.log"
done
[ -z "$bad" ] || { echo "found something:$bad"; exit 1; }
