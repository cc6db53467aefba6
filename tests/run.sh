#!/bin/sh
# Runs every test program of a folder, JOBS (2) at a time, and sums up. Fails if one fails, or if there is none. What each
# says is told when it has ended, whole. RUN_UNDER: a program to run them under.
# LEAVE_OUT: names of test programs that make no sense there, WHY: the reason, which is printed.
dir=${1:?folder}
if [ "$2" = these ]; then # programs of it, one after the other; the output of each lies in a file
    shift 2
    for n; do
        t=$dir/$n begin=$(date +%s) code=0
        # whatever our own input is: a terminal, closed, a pipe that somebody else reads
        $RUN_UNDER "$t" > "$t.log" 2>&1 < /dev/null || code=$?
        echo "$code" > "$t.code"
        took=$(($(date +%s) - begin))
        said=$(echo "== $n"
               grep -v -E '^\[ (RUN|      OK) ' "$t.log" | tail -n 40
               [ $took -lt 5 ] || echo "$took s")
        flock "$dir" printf '%s\n' "$said"
    done
    exit 0
fi
# what the program asks its environment for: a CI service that wants colours, a terminal, a launcher around us
unset LC_ALL LC_CTYPE LANG NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK
# those that start many processes and look at the clock never run beside each other: one lane's work, from the start
ends="test_mpi_ends test_nccl test_mpi test_ranks test_measured test_guard test_boot test_claim test_progress test_hostile"
# those that take longest come first, so that none is left alone at the end
first="test_gallery test_device test_lives test_ops test_exact"
all= lane= begin=$(date +%s)
for n in $ends $first $(ls "$dir"); do
    case $n in *.*) continue ;; test_*) ;; *) continue ;; esac
    [ -x "$dir/$n" ] || continue
    case " $all " in *" $n "*) continue ;; esac
    case " $LEAVE_OUT " in *" $n "*) echo "== $n is left out: ${WHY:?}"; continue ;; esac
    rm -f "$dir/$n.code"
    all="$all $n"
    case " $ends " in *" $n "*) lane="$lane $n" ;; esac
done
for n in "$lane" $all; do
    case " $lane " in *" $n "*) [ "$n" = "$lane" ] || continue ;; esac
    [ -z "$n" ] || echo "$n"
done | xargs -r -P "${JOBS:-2}" -L 1 sh "$0" "$dir" these
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
