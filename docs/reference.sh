#!/bin/sh
# Writes docs/plan.md and docs/shardproof-plan.5 from the program's own tables, so that they say
# what it reads. `make docs` calls it; a test holds the files against what it writes.
#     reference.sh PROGRAM FOLDER
set -u
program=${1:?program} folder=${2:?folder}
table() { "$program" list "$1" --format md; }

{
    cat << 'END'
# Plans: the reference

Made by `make docs` from the program's own tables: do not edit. `shardproof explain WORD` says the
same in a terminal (`shardproof explain trust`, `explain colwise`, `explain "partial sum"`),
README.md has a plan with comments.

A plan is a YAML file. It has at least a `model` and a `mesh`; under `plan`, each line says how one
module (or all that match a pattern) is cut. One component of a pattern stands for one component of
a module's path: `layers.*.attention.w[qkv]`. The more exact line wins, then the later one.

```yaml
model: {preset: llama3-8b, layers: 1, shrink: 16}
mesh: {dp: 2, tp: 4}
plan:
  layers.*.attention.w[qkv]: colwise
  layers.*.attention.wo: {style: rowwise, output: replicate}
```

END
    for part in keys:Keys placements:Placements styles:Styles recipes:Recipes faults:Faults terms:"Letters and terms"; do
        printf '## %s\n\n' "${part#*:}"
        case ${part%%:*} in
        keys) printf '`plan.PATTERN.x` is a field of a style: in a line of `plan`, or of a style of your own\n'
            printf 'under `styles`.\n\n' ;;
        placements) printf 'A bare placement speaks of the axes of its style; `{dp: replicate, tp: shard(0)}` says\n'
            printf 'it axis by axis.\n\n' ;;
        terms) printf 'Shapes such as `[B/dp, S/(cp*sp), D]` are those of one rank: each size divided by the\n'
            printf 'axes that cut it.\n\n' ;;
        esac
        table "${part%%:*}"
        echo
    done
} > "$folder/plan.md" || exit 1

# The same tables as a manual page: first column the tag, the others its text.
page() {
    printf '.SH %s\n' "$2"
    table "$1" | awk -F' [|] ' 'NR > 2 {
        sub(/^[|] /, ""); sub(/ [|]$/, "")
        tag = $1; text = ""
        for (i = 2; i <= NF; i++) if ($i !~ /^ *[|]?$/) text = text (text == "" ? "" : "; ") $i
        line = ".TP\n.B " tag "\n" text
        gsub(/\\[|]/, "|", line); gsub(/\\_/, "_", line); gsub(/\\[*]/, "*", line)
        gsub(/\\</, "<", line); gsub(/\\`/, "`", line); gsub(/\\\[/, "[", line); gsub(/\\\]/, "]", line)
        gsub(/-/, "\\-", line); gsub(/\n'"'"'/, "\n\\(aq", line)
        print line }'
}
{
    printf '.TH SHARDPROOF\\-PLAN 5 "" "%s"\n' "shardproof $("$program" --version | sed -n '1s/shardproof //p')"
    printf '.SH NAME\nshardproof\\-plan \\- the language of sharding plans\n.SH DESCRIPTION\n'
    printf 'A plan is a YAML file with at least\n.B model\nand\n.BR mesh .\nUnder\n.B plan\neach line says how the modules that match its pattern are cut.\n'
    printf 'One component of a pattern stands for one component of a path; the more exact line wins, then the later one.\n'
    page keys KEYS
    page placements PLACEMENTS
    page styles STYLES
    page recipes RECIPES
    page faults FAULTS
    page terms TERMS
    printf '.SH SEE ALSO\n.BR shardproof (1)\n'
} > "$folder/shardproof-plan.5"
