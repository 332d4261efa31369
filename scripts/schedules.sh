#!/bin/sh
# schedules.sh SEED SCHEDULES: so many short tortures with crashes and restarts, by
# the seeds from SEED on: half of them on the reference store, a fifth on SQLite, a
# tenth each on Redis, PostgreSQL's table and its advisory locks; if there are fewer
# than ten, all on each. SEED 0 picks one and prints it.
set -eu
cd "$(dirname "$0")/.."
seed=$1
[ "$seed" != 0 ] || seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
echo "== schedules: make schedules SEED=$seed SCHEDULES=$2"
all=$2

run() ( # tenths, package
	n=$all
	[ "$n" -lt 10 ] || n=$((all * $1 / 10))
	cd "$2"
	DIBS_TORTURE_SEED="$seed" DIBS_TORTURE_SCHEDULES="$n" go test -count=1 -timeout 24h -run '^TestSchedules$'
)

(run 1 redislock && run 1 pglock) & # these mostly wait
failed=0
(run 5 drivertest && run 2 sqlitelock) || failed=1
wait $! || failed=1
exit $failed
