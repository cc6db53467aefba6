#!/bin/sh
# Draws every view of every shipped plan, the planted bugs too, into out/gallery, with an index page that works offline.
# A view that cannot show a plan says so on the page; a plan that cannot be drawn at all is a failure, unless it is there to be
# refused (`expect: diagnostics`). What executes nothing is drawn of the model's true sizes; the run of errors and routing has the
# plan's shrink, and says so.
# gallery.sh [FOLDER [PLAN...]]
set -u
shardproof=${SHARDPROOF:-./shardproof}
out=${1:-out/gallery}
[ $# = 0 ] || shift
[ $# != 0 ] || set -- plans/*.yaml plans/bugs/*.yaml plans/models/*.yaml plans/shape-only/*.yaml
mkdir -p "$out" || exit 4
views=$("$shardproof" list views --format csv | tail -n +2 | cut -d, -f1)
escape() { sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' -e 's/"/\&quot;/g'; }
# what a picture says of itself; both stand on a line of their own, escaped
title_of() { sed -n 's|^<title id="[^"]*">\(.*\)</title>$|\1|p;/<\/title>/q' "$1"; }
desc_of() { sed -n 's|^<desc id="[^"]*">\(.*\)</desc>$|\1|p;/<\/desc>/q' "$1" | sed 's/"/\&quot;/g'; }
index=$out/index.html.part
cat >"$index" <<'HEAD'
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>
<title>shardproof: gallery</title>
<style>
body{font:15px/1.45 Inter,"DejaVu Sans",Arial,sans-serif;color:#1a1a1a;background:#fff;max-width:1180px;margin:2em auto;padding:0 1em}
h1{font-size:24px}h2{font-size:18px;margin:2.2em 0 .2em;border-top:1px solid #d9d9d9;padding-top:1em}p{margin:.3em 0;color:#595959}
nav{columns:3 16em;font-size:14px}nav a{display:block}a{color:#0b5cad}
.row{display:grid;grid-template-columns:repeat(auto-fill,minmax(260px,1fr));gap:16px;margin-top:.8em}
figure{margin:0}figure a{display:block;border:1px solid #d9d9d9;height:170px;overflow:hidden;background:#fff}
img{display:block;width:100%}figcaption{font-size:13px;color:#595959}figcaption b{color:#1a1a1a}
</style></head><body>
<h1>shardproof: gallery</h1>
<p>Every view of every shipped plan, drawn by <code>make gallery</code>. A picture opens in full; its marks have tooltips.</p>
HEAD
failed=0 figures=0 body=$out/.body nav=$out/.nav
: >"$body"; : >"$nav"
for plan in "$@"; do
    name=${plan#plans/}; name=$(printf %s "${name%.yaml}" | tr / -)
    about=$(sed -n '/^#/!q;s/^# *//p' "$plan" | tr '\n' ' ' | escape)
    drawn= missing=
    printf '<h2 id="%s">%s</h2>\n<p>%s</p>\n<div class="row">\n' "$name" "$name" "$about" >>"$body"
    printf '<a href="#%s">%s</a>\n' "$name" "$name" >>"$nav"
    for view in $views; do
        file=$name.$view.svg
        full=--full
        case $view in errors | routing | storyboard) full= ;; esac
        if "$shardproof" draw "$plan" --view "$view" $full -o "$out/$file" 2>"$out/.err"; then
            drawn="$drawn $view" figures=$((figures + 1))
            title=$(title_of "$out/$file")
            printf '<figure><a href="%s"><img loading="lazy" src="%s" alt="%s. %s"/></a>' "$file" "$file" \
                "$(printf %s "$title" | sed 's/"/\&quot;/g')" "$(desc_of "$out/$file")" >>"$body"
            printf '<figcaption><b>%s</b> %s</figcaption></figure>\n' "$view" "$title" >>"$body"
        else
            missing="$missing $view"
            rm -f "$out/$file"
        fi
    done
    printf '</div>\n' >>"$body"
    [ -z "$missing" ] || printf '<p>Nothing to draw in:%s.</p>\n' "$missing" >>"$body"
    echo "$name:${drawn:- nothing}"
    if [ -z "$drawn" ] && ! grep -q '^  diagnostics:' "$plan"; then cat "$out/.err"; failed=$((failed + 1)); fi
done
{ printf '<nav>\n'; cat "$nav"; printf '</nav>\n'; cat "$body"; printf '</body></html>\n'; } >>"$index"
mv "$index" "$out/index.html"
rm -f "$out/.err" "$body" "$nav"
echo "$out/index.html: $figures figures"
[ "$failed" = 0 ]
