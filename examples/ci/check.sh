#!/bin/sh
# What CI runs: every plan must hold. Here one holds and one is broken on purpose, so the script shows both outcomes and
# itself succeeds only if the broken one is caught. The tests compare its output with expected.txt.
set -u
started=$PWD # what the caller names lies from there
cd "$(dirname "$0")" || exit 1
case ${SHARDPROOF:-} in /*) ;; */*) SHARDPROOF=$started/$SHARDPROOF ;; esac
shardproof=${SHARDPROOF:-../../shardproof}
command -v "$shardproof" >/dev/null || shardproof=shardproof # installed

echo "# plan.yaml"
"$shardproof" check plan.yaml || exit 1

echo "# broken.yaml"
"$shardproof" check broken.yaml 2>&1
code=$?
echo "exit $code"

echo "# the same as annotations for a pull request"
"$shardproof" check --format github broken.yaml 2>/dev/null

[ "$code" = 1 ]
