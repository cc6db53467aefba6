#!/bin/sh
# Draws every shipped plan in every view that is there, into out/gallery, so that one can leaf through them.
# A view that cannot show a plan says so and is skipped; a plan that cannot be drawn at all is a failure.
set -u
shardproof=${SHARDPROOF:-./shardproof}
out=${1:-out/gallery}
mkdir -p "$out" || exit 4
views=$("$shardproof" list views --format csv | tail -n +2 | cut -d, -f1)
failed=0
for plan in plans/*.yaml plans/shape-only/*.yaml; do
    name=$(basename "$plan" .yaml) drawn=
    for view in $views; do
        if "$shardproof" draw "$plan" --view "$view" -o "$out/$name.$view.svg" 2>"$out/.err"; then drawn="$drawn $view"; fi
    done
    echo "$name:${drawn:- nothing}"
    if [ -z "$drawn" ]; then cat "$out/.err"; failed=$((failed + 1)); fi
done
rm -f "$out/.err"
echo "$out: $(ls "$out" | wc -l | tr -d ' ') figures"
[ "$failed" = 0 ]
