#!/bin/sh
# A folder that runs on a machine without our libraries: the program, the plug-in for CUDA, what both
# are linked with but libc, libm and the loader, plans, and tests/gpu.sh. cuBLASLt is looked for there.
set -eu
to=$1
rm -rf "$to"
mkdir -p "$to/lib" "$to/tests"
cp shardproof shardproof-cuda.so "$to/"
strip "$to/shardproof" "$to/shardproof-cuda.so"
for f in shardproof shardproof-cuda.so; do ldd "$f"; done | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r lib; do cp -L "$lib" "$to/lib/"; done
cp -R plans "$to/"
cp tests/gpu.sh "$to/tests/"
size=$(find "$to" -type f -exec cat {} + | wc -c)
echo "$to: $size bytes"
[ "$size" -lt 30000000 ] || { echo "the bundle is larger than 30 MB" >&2; exit 1; }
