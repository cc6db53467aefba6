#!/bin/sh
# What CI runs: every plan must hold. Here one holds and one is broken on purpose, so the script shows both outcomes and
# itself succeeds only if the broken one is caught. The tests compare its output with expected.txt.
set -u
shardproof=${SHARDPROOF:-../../shardproof}

echo "# plan.yaml"
"$shardproof" check plan.yaml || exit 1

echo "# broken.yaml"
"$shardproof" check broken.yaml 2>&1
code=$?
echo "exit $code"

echo "# the same as annotations for a pull request"
"$shardproof" check --format github broken.yaml 2>/dev/null

[ "$code" = 1 ]
