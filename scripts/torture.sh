#!/bin/sh
# torture.sh SEED FOR: every store and the job runner in turn, for FOR each. SEED 0 picks one and
# prints it; the same seed replays the run.
set -eu
cd "$(dirname "$0")/.."
seed=$1
[ "$seed" != 0 ] || seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export DIBS_TORTURE_SEED="$seed" DIBS_TORTURE_FOR="$2"
echo "== torture: make torture SEED=$seed FOR=$2"
for m in . sqlitelock redislock pglock fencetest cmd; do
	(cd $m && go test -count=1 -timeout 24h -v -run 'TestTorture' ./...) || exit 1
done
