#!/bin/sh
# Runs every test program of a folder and sums up. Fails if one fails, or if there is none. RUN_UNDER: a program to run them under.
dir=${1:?folder}
passed=0 failed=0 bad=
for t in "$dir"/test_*; do
    case $t in *.o|*.d) continue ;; esac
    [ -x "$t" ] || continue
    echo "== ${t##*/}"
    if $RUN_UNDER "$t" > "$t.log" 2>&1; then :; else bad="$bad ${t##*/}"; fi
    grep -v -E '^\[ (RUN|      OK) ' "$t.log" | tail -n 40
    p=$(grep -c '^\[       OK ' "$t.log"); f=$(grep -c '^\[  FAILED  \] [a-z0-9_]*$' "$t.log")
    passed=$((passed + p)); failed=$((failed + f))
    if [ "$p" = 0 ]; then echo "no test was executed in $t"; bad="$bad ${t##*/}"; fi
done
if [ -n "$bad" ] && [ "$failed" = 0 ]; then failed=1; fi
[ -z "$bad" ] || echo "failing:$bad"
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ -z "$bad" ]
