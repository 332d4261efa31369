#!/bin/sh
# demo.sh DIBS: two runs of one job at once, on a store of their own. The first
# runs; the second is told who holds it (exit 75); a third waits its turn.
set -u
dibs=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export DIBS_STORE_URL="sqlite://$dir/locks.db"

echo '$ dibs run nightly -- sh -c "echo running; sleep 3" &'
"$dibs" run nightly -- sh -c 'echo running; touch "$0"; sleep 3' "$dir/up" &
while [ ! -e "$dir/up" ]; do sleep 0.05; done

echo '$ dibs run nightly -- echo "never printed"'
"$dibs" run nightly -- echo "never printed"
echo "exit code $?"

echo '$ dibs ls'
"$dibs" ls

echo '$ dibs run --wait nightly -- echo "my turn"'
"$dibs" run --wait nightly -- echo "my turn"
echo "exit code $?"
wait
