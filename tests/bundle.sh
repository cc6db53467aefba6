#!/bin/sh
# A folder that runs on a machine without our libraries: the program, the plug-ins for CUDA and NCCL, what they
# are linked with but libc, libm and the loader, plans, and tests/gpu.sh. cuBLASLt and NCCL are looked for there.
set -eu
to=$1
rm -rf "$to"
mkdir -p "$to/lib" "$to/tests"
files="shardproof shardproof-cuda.so shardproof-nccl.so"
cp $files "$to/"
(cd "$to" && strip $files)
for f in $files; do ldd "$f"; done | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r lib; do cp -L "$lib" "$to/lib/"; done
cp -R plans "$to/"
cp tests/gpu.sh "$to/tests/"
size=$(find "$to" -type f -exec cat {} + | wc -c)
echo "$to: $size bytes"
[ "$size" -lt 30000000 ] || { echo "the bundle is larger than 30 MB" >&2; exit 1; }
