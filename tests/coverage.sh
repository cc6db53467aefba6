#!/bin/sh
# Line and branch coverage per room, from the counts that a --coverage build left: coverage.sh FOLDER [LINES BRANCHES]
# A branch counts when it was taken at least once. Fails if sim/ as a whole is below LINES or BRANCHES per cent.
dir=${1:?folder} want_lines=${2:-0} want_branches=${3:-0}
find "$dir/sim" "$dir/render" -name '*.gcda' | sort | while read -r f; do gcov -b -n "$f" 2>/dev/null; done |
awk -v wl="$want_lines" -v wb="$want_branches" '
/^File / { file = substr($2, 2, length($2) - 2); ours = file ~ /^(sim|render)\// }
ours && match($0, /^Lines executed:/) { split($0, p, /[:% ]+/); add(lines, hit_lines, p) }
ours && match($0, /^Taken at least once:/) { sub(/Taken at least once/, "Taken"); split($0, p, /[:% ]+/); add(branches, hit_branches, p); ours = 0 }
ours && /^No branches/ { ours = 0 }
function add(all, hit, p,   n, percent, room, at) {
    percent = p[1] == "Lines" ? p[3] : p[2]; n = p[1] == "Lines" ? p[5] : p[4]
    split(file, at, "/"); room = at[1] == "sim" ? "sim/" at[2] : "render"
    all[room] += n; hit[room] += n * percent / 100; all[file] += n; hit[file] += n * percent / 100
    all[at[1] " (all)"] += n; hit[at[1] " (all)"] += n * percent / 100
    if (ENVIRON["FILES"]) names[file] = 1
    names[room] = 1; names[at[1] " (all)"] = 1
}
END {
    printf "%-34s %8s %8s %10s %8s\n", "", "lines", "run", "branches", "taken"
    for (x in names) printf "%-34s %8d %7.1f%% %10d %7.1f%%\n", x, lines[x], 100 * hit_lines[x] / lines[x], branches[x], branches[x] ? 100 * hit_branches[x] / branches[x] : 100 | "sort"
    close("sort")
    x = "sim (all)"
    if (!lines[x]) { print "nothing was counted"; exit 1 }
    if (100 * hit_lines[x] / lines[x] < wl || 100 * hit_branches[x] / branches[x] < wb) { printf "sim is below %s %% of lines or %s %% of branches\n", wl, wb; exit 1 }
}'
