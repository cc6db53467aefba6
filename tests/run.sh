#!/bin/sh
# Runs every test program of a folder, JOBS (2) at a time, and sums up. Fails if one fails, or if there is none. What each
# says is told when it has ended, whole. RUN_UNDER: a program to run them under.
# LEAVE_OUT: names of test programs that make no sense there, WHY: the reason, which is printed.
dir=${1:?folder}
if [ "$2" = one ]; then # this program of it; its output lies in a file
    t=$3 begin=$(date +%s) code=0
    # whatever our own input is: a terminal, closed, a pipe that somebody else reads
    $RUN_UNDER "$t" > "$t.log" 2>&1 < /dev/null || code=$?
    echo "$code" > "$t.code"
    took=$(($(date +%s) - begin))
    tell() {
        echo "== ${t##*/}"
        grep -v -E '^\[ (RUN|      OK) ' "$t.log" | tail -n 40
        [ $took -lt 5 ] || echo "$took s"
    }
    said=$(tell)
    flock "$dir" printf '%s\n' "$said"
    exit 0
fi
# what the program asks its environment for: a CI service that wants colours, a terminal, a launcher around us
unset LC_ALL LC_CTYPE LANG NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK
# those that take longest come first, so that none is left alone at the end
first="test_mpi_ends test_nccl test_mpi test_gallery test_ranks test_device test_lives test_measured test_ops test_exact"
all= begin=$(date +%s)
for n in $first $(ls "$dir"); do
    case $n in *.*) continue ;; test_*) ;; *) continue ;; esac
    [ -x "$dir/$n" ] || continue
    case " $all " in *" $n "*) continue ;; esac
    case " $LEAVE_OUT " in *" $n "*) echo "== $n is left out: ${WHY:?}"; continue ;; esac
    rm -f "$dir/$n.code"
    all="$all $n"
done
for n in $all; do echo "$n"; done | xargs -P "${JOBS:-2}" -I '{}' sh "$0" "$dir" one "$dir/{}"
passed=0 failed=0 skipped=0 bad=
for n in $all; do
    t=$dir/$n
    [ "$(cat "$t.code")" = 0 ] || bad="$bad $n"
    p=$(grep -c '^\[       OK ' "$t.log"); f=$(grep '^\[  FAILED  \] [a-z0-9_]*$' "$t.log" | sort -u | grep -c .)
    s=$(grep '^\[  SKIPPED \] [a-z0-9_]*$' "$t.log" | sort -u | grep -c .); skipped=$((skipped + s))
    passed=$((passed + p)); failed=$((failed + f))
    # recorded values that are too large to be carried: the program says so, and its tests count as skipped
    if [ "$p" = 0 ] && [ "$s" -gt 0 ] && grep -q 'is not there: nothing compared$' "$t.log"; then continue; fi
    if [ "$p" = 0 ]; then echo "no test was executed in $t"; bad="$bad $n"; fi
done
if [ -n "$bad" ] && [ "$failed" = 0 ]; then failed=1; fi
[ -z "$bad" ] || echo "failing:$bad"
[ $skipped = 0 ] || echo "$skipped skipped"
echo "$(($(date +%s) - begin)) s in all"
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ -z "$bad" ]
