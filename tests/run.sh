#!/bin/sh
# Runs every test program of a folder and sums up. Fails if one fails, or if there is none. RUN_UNDER: a program to run them under.
# LEAVE_OUT: names of test programs that make no sense there, WHY: the reason, which is printed.
dir=${1:?folder}
# what the program asks its environment for: a CI service that wants colours, a terminal, a launcher around us
unset LC_ALL LC_CTYPE LANG NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK
passed=0 failed=0 skipped=0 bad=
for t in "$dir"/test_*; do
    case $t in *.o|*.d) continue ;; esac
    [ -x "$t" ] || continue
    case " $LEAVE_OUT " in *" ${t##*/} "*) echo "== ${t##*/} is left out: ${WHY:?}"; continue ;; esac
    echo "== ${t##*/}"
    begin=$(date +%s)
    # whatever our own input is: a terminal, closed, a pipe that somebody else reads
    if $RUN_UNDER "$t" > "$t.log" 2>&1 < /dev/null; then :; else bad="$bad ${t##*/}"; fi
    grep -v -E '^\[ (RUN|      OK) ' "$t.log" | tail -n 40
    p=$(grep -c '^\[       OK ' "$t.log"); f=$(grep '^\[  FAILED  \] [a-z0-9_]*$' "$t.log" | sort -u | grep -c .)
    s=$(grep '^\[  SKIPPED \] [a-z0-9_]*$' "$t.log" | sort -u | grep -c .); skipped=$((skipped + s))
    took=$(($(date +%s) - begin)); [ $took -lt 5 ] || echo "$took s"
    passed=$((passed + p)); failed=$((failed + f))
    # recorded values that are too large to be carried: the program says so, and its tests count as skipped
    if [ "$p" = 0 ] && [ "$s" -gt 0 ] && grep -q 'is not there: nothing compared$' "$t.log"; then continue; fi
    if [ "$p" = 0 ]; then echo "no test was executed in $t"; bad="$bad ${t##*/}"; fi
done
if [ -n "$bad" ] && [ "$failed" = 0 ]; then failed=1; fi
[ -z "$bad" ] || echo "failing:$bad"
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ -z "$bad" ]
