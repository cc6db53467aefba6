#!/bin/sh
# Installs the Debian packages named on the command line that are missing. Without root, or
# after --say, it prints the command and stops.
say=
[ "$1" != --say ] || { say=1; shift; }
missing=
for p in "$@"; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
cmd="apt-get install -y --no-install-recommends$missing"
if [ -n "$say" ] || [ "$(id -u)" != 0 ]; then
    echo "shardproof needs these packages; run:  sudo $cmd" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && $cmd >/dev/null
