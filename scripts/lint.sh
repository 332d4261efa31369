#!/bin/sh
# lint.sh MODULE...: what can be told without running the program. The tools'
# versions are pinned in tools/go.mod.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
mkdir -p bin
(cd tools && GOWORK=off go build -o ../bin/ tool)
failed=0
say() { echo "== lint $*"; }
bad() { echo "lint: $*" >&2; failed=1; }

say "format (gofumpt)"
out=$(git ls-files '*.go' | xargs -r bin/gofumpt -l)
[ -z "$out" ] || bad "not formatted, run bin/gofumpt -w: $out"

for m in "$@"; do
	cd "$root/$m"
	say "$m: vet, staticcheck, modernizers, tidiness"
	go vet ./... || bad "$m: go vet"
	"$root/bin/staticcheck" ./... || bad "$m: staticcheck"
	out=$(go fix -diff ./... 2>&1) || true
	[ -z "$out" ] || { echo "$out" >&2; bad "$m: go fix"; }
	out=$(GOWORK=off go mod tidy -diff 2>&1) || { echo "$out" >&2; bad "$m: go mod tidy"; }
done

cd "$root"
for os in darwin windows; do
	say "$os: compiles"
	GOOS=$os CGO_ENABLED=0 go build ./... ./cmd/... || bad "does not compile for $os"
done
exit $failed
