#!/bin/sh
# make sabotage: is every test that should notice a mistake still able to? Each row of list.txt plants
# one mistake in a copy of the tree, rebuilds what it touches, and runs the one test program that must
# fail, or die, in the test that the row names. A row whose text is not found exactly once, whose build fails
# or whose test passes is a failure of its own. Nothing outside the copy is changed.
#     run.sh FOLDER [ROW | FIRST-LAST]...     those rows, default all
set -u
folder=${1:?folder}
shift
[ $# -gt 0 ] || set -- 1-100000
here=$(cd "$(dirname "$0")/../.." && pwd) list=$here/tests/sabotage/list.txt
mkdir -p "$folder/tree" "$folder/log"
folder=$(cd "$folder" && pwd)
tree=$folder/tree log=$folder/log
# What tests look for beside the project stands beside its copy.
[ ! -d "$here/../shared" ] || ln -sfn "$(cd "$here/../shared" && pwd)" "$folder/shared"
for part in tests plans docs examples README.md; do
    cp -pRu "$here/$part" "$tree/"
done
# What has moved away here is not built there.
find "$tree/sim" "$tree/render" -type f 2>/dev/null | while IFS= read -r f; do
    [ -f "$here/${f#"$tree/"}" ] || rm -f "$f"
done
# By content: a run that was stopped may have left a mistake that is newer than its origin.
(cd "$here" && find sim render tests Makefile -name golden -prune -o -type f -print) | while IFS= read -r f; do
    cmp -s "$here/$f" "$tree/$f" || { mkdir -p "$tree/$(dirname "$f")" && cp "$here/$f" "$tree/$f"; }
done
build() { make -C "$tree" -j2 CFLAGS='-O1 -g0' "$@" > "$log/build" 2>&1; }

# Replaces $OLD by $NEW in $1, written to $2; fails unless it stands there exactly once.
edit() {
    awk 'BEGIN { o = ENVIRON["OLD"]; n = ENVIRON["NEW"] }
         { rest = $0; out = ""
           while ((i = index(rest, o)) > 0) {
               found++; out = out substr(rest, 1, i - 1) n; rest = substr(rest, i + length(o)) }
           print out rest }
         END { exit found != 1 }' "$1" > "$2"
}
# The row's text, tests and result; the number of rows that were not caught goes to $bad.
verdict() {
    printf '%3d %-9s %-26s %-18s %-34s %s\n' "$row" "$1" "$file" "$test" "$check" "${2:-}"
    case $1 in caught | left-out) ;; *) bad=$((bad + 1)) ;; esac
}
# Puts $1 in the file's place. What was built of it goes: clocks that are set back, or tick slowly, would
# let make take it for new.
take() {
    cp "$1" "$tree/$file"
    rm -f "$tree/build/${file%.c}.o"
}
try() {
    if [ ! -f "$tree/$file" ] || ! edit "$tree/$file" "$log/edited"; then
        verdict stale 'the old text is not there exactly once'
        return
    fi
    cp "$tree/$file" "$log/kept"
    take "$log/edited"
    # shellcheck disable=SC2086
    if ! build "build/tests/$test" $extra; then
        verdict broken "it does not build: $log/build"
    elif (cd "$tree" && timeout "$(cat "$log/$test.longest")" "build/tests/$test" > "$log/$row" 2>&1); then
        verdict SURVIVED
    elif grep -q "^\[  FAILED  \] $check\$" "$log/$row" || died_in "$check" "$log/$row"; then
        verdict caught
    else
        failed=$(sed -n 's/^\[  FAILED  \] \([a-z0-9_]*\)$/\1/p' "$log/$row" | sort -u | tr '\n' ' ')
        verdict elsewhere "by ${failed:-the end of the program}"
    fi
    take "$log/kept"
}
# Was it the last test that the program began, with no word of its end (a signal, an assertion)?
died_in() {
    awk -v want="$1" '/^\[ RUN      \] / { at = $4 } /^\[ +(OK|FAILED|PASSED) +\]/ { at = "" }
                      END { exit at != want }' "$2"
}
# What a test program starts or opens besides itself, by the words of its source: make must have built
# that too, of the row's mistake.
needs() {
    src=$tree/tests/$1.c
    ! grep -qE 'child_(run|program)\b|mpi_program|"\./shardproof' "$src" || echo shardproof
    ! grep -q 'NEEDS_MPI' "$src" || echo plugins
    grep -oE 'child_(beside|preload)\(\w+, "[a-z]+\.so"' "$src" | sed 's,.*"\(.*\)",build/tests/\1,' | sort -u
}

wanted() { # the row's number, what was asked for
    for range; do [ "$row" -ge "${range%-*}" ] && [ "$row" -le "${range#*-}" ] && return 0; done
    return 1
}

bad=0 row=0 rows=0 ready=
echo "== sabotage: each row must be caught by the test that it names"
while IFS= read -r line; do
    case $line in
    'file: '*) file=${line#file: } ;;
    'old: '*) OLD=${line#old: } ;;
    'new: '*) NEW=${line#new: } ;;
    'test: '*) test=${line#test: } ;;
    'check: '*)
        check=${line#check: } row=$((row + 1))
        wanted "$@" || continue
        rows=$((rows + 1)) extra=$(needs "$test" | tr '\n' ' ')
        export OLD NEW
        case " $ready " in
        *" $test "*) ;;
        *) # shellcheck disable=SC2086
            if ! build "build/tests/$test" $extra; then
                echo "$test does not build: $log/build"
                exit 1
            fi
            begin=$(date +%s)
            (cd "$tree" && timeout 6000 "build/tests/$test" > "$log/$test" 2>&1)
            echo $((300 + 10 * ($(date +%s) - begin))) > "$log/$test.longest"
            ready="$ready $test" ;;
        esac
        if grep -q "^\[  SKIPPED \] $check\$" "$log/$test"; then # what it holds is not here: ../shared
            rows=$((rows - 1))
            verdict left-out 'the test is skipped here'
            continue
        fi
        if ! grep -q "^\[       OK \] $check\$" "$log/$test"; then
            verdict unsound "it fails, or is not there, without a mistake: $log/$test"
            continue
        fi
        try ;;
    esac
done < "$list"
echo "$((rows - bad)) of $rows caught ($([ $rows -gt 0 ] && echo $((100 * (rows - bad) / rows)) || echo 0) %)"
[ $rows -gt 0 ] && [ $bad -eq 0 ]
