#!/bin/sh
# Two instances of the job runner on different ports over one store. Both are asked
# to send the invoices at the same moment: one does, the other says who is at it.
#
#   sh examples/invoices/run.sh
#
# DIBS is the program, built here if it isn't given; DIBS_STORE_URL the store, a
# SQLite file in a temporary directory if it isn't given.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
one= two=
finish() {
	for pid in $one $two; do kill -TERM "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$work"
}
trap finish EXIT

if [ -z "${DIBS:-}" ]; then
	DIBS=$work/dibs
	(cd "$here/../../cmd" && go build -o "$DIBS" ./dibs)
fi
export DIBS_STORE_URL="${DIBS_STORE_URL:-sqlite://$work/locks.db}"
export BUSY=$work/busy # the job sends while this is there
: >"$BUSY"

# serve NAME starts an instance that logs to NAME.log.
serve() {
	"$DIBS" serve -c "$here/dibs.yaml" --listen 127.0.0.1:0 2>"$work/$1.log" &
}
# address NAME waits until it serves, and prints where.
address() {
	tries=0
	until sed -n 's/.*msg=serving listen=\([^ ]*\).*/\1/p' "$work/$1.log" | grep .; do
		tries=$((tries + 1))
		if [ $tries -gt 600 ]; then
			cat "$work/$1.log" >&2
			exit 1
		fi
		sleep 0.1
	done
}
serve A; one=$!
serve B; two=$!
a=$(address A) b=$(address B)
echo "A serves at http://$a, B at http://$b; both are asked at once:"
echo

# ask NAME ADDRESS asks for a run, and waits for its end. Who is told that the other
# is at it has its answer first, and lets the job end.
ask() {
	code=0
	"$DIBS" trigger invoices --server "http://$2" --wait 30s >"$work/$1.out" 2>&1 || code=$?
	echo "exit $code" >>"$work/$1.out"
	rm -f "$BUSY"
}
ask A "$a" & asked=$!
ask B "$b"
wait $asked
for name in A B; do sed "s/^/$name answers: /" "$work/$name.out"; done

echo
echo "what they log:"
for name in A B; do
	grep -hE 'msg=(attempt|contention|completion)' "$work/$name.log" | sed "s/^time=[^ ]* level=[A-Z]* /$name  /"
done
echo
echo "what the run says:"
run=$(sed -n 's/^\([0-9a-f-]*\) succeeded$/\1/p' "$work/A.out" "$work/B.out" | head -n 1)
"$DIBS" logs "$run" --server "http://$a" | sed 's/^/   /'
