#!/bin/sh
# Does a change of structure change what anybody sees? Runs two builds of the program on every plan
# that ships and compares, byte for byte, reports, JSON, traces and pictures of all views.
#     corpus.sh OLD NEW [PLAN]...      OLD and NEW are programs; default: all plans
# DROP="role instance": keys that traces of NEW may have and OLD's have not; they are taken out of
# both. Prints each pair that differs, with its first line, and fails if there is one.
set -u
old=$(realpath "${1:?old program}") new=$(realpath "${2:?new program}")
shift 2
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || set -- plans/*.yaml plans/bugs/*.yaml plans/shape-only/*.yaml tests/bench/*.yaml
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
views=$("$new" list views | sed '1d;s/ .*//')

# Takes the keys of DROP out of a trace: text, number, truth value, list without lists.
plain() {
    sed -E -i "$(for k in ${DROP:-}; do
        printf 's/,"%s":("[^"]*"|[-+.0-9e]+|true|false|null|\\[[^]]*\\])//g;' "$k"
    done)" "$1"
}
# Everything that one program ($1) says about one plan ($2), into the folder $3.
tell() {
    mkdir -p "$3"
    "$1" check --threads 2 --format json "$2" --trace "$3/trace" > "$3/check.json" 2> "$3/check.err"
    echo $? > "$3/check.code"
    "$1" check --threads 2 "$2" > "$3/check" 2>&1
    [ ! -f "$3/trace" ] || plain "$3/trace"
    for c in shapes params comms; do
        "$1" "$c" "$2" > "$3/$c" 2>&1
        "$1" "$c" "$2" --format json > "$3/$c.json" 2>&1
    done
    for v in $views; do "$1" draw "$2" --view "$v" -o "$3/$v.svg" > "$3/$v" 2>&1; done
    sed -i "s,$3/,,g" "$3"/*
}
bad=0 held=0
for plan; do
    tell "$old" "$plan" "$folder/old"
    tell "$new" "$plan" "$folder/new"
    for f in "$folder"/old/* "$folder"/new/*; do
        name=${f##*/} a=$folder/old/${f##*/} b=$folder/new/${f##*/}
        case $f in "$folder"/new/*) [ ! -f "$a" ] || continue ;; esac
        if cmp -s "$a" "$b"; then
            held=$((held + 1))
        else
            bad=$((bad + 1))
            echo "$plan: $name differs"
            diff "$a" "$b" 2>&1 | head -n "${LINES_SHOWN:-3}" | cut -c1-300
        fi
    done
    rm -rf "$folder/old" "$folder/new"
done
echo "$held outputs the same, $bad differ"
[ "$bad" = 0 ] && [ "$held" -gt 0 ]
