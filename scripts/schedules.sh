#!/bin/sh
# schedules.sh SEED SCHEDULES: so many short tortures with crashes and restarts, by
# the seeds from SEED on: of a hundred 60 on the reference store and 12 on SQLite, in
# bubbles, and in real time 20 on Redis, 4 on PostgreSQL's table and 4 on its advisory
# locks; fewer than a hundred: all on each. SEED 0 picks one and prints it.
set -eu
cd "$(dirname "$0")/.."
seed=$1
[ "$seed" != 0 ] || seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
echo "== schedules: make schedules SEED=$seed SCHEDULES=$2"
all=$2

run() ( # hundredths, package
	n=$all
	[ "$n" -lt 100 ] || n=$((all * $1 / 100))
	cd "$2"
	DIBS_TORTURE_SEED="$seed" DIBS_TORTURE_SCHEDULES="$n" go test -count=1 -timeout 24h -run '^TestSchedules$'
)

(run 20 redislock && run 4 pglock) & # these mostly wait
failed=0
(run 60 drivertest && run 12 sqlitelock) || failed=1
wait $! || failed=1
exit $failed
