#!/bin/sh
# servers.sh makes sure that the commands which the tests need are installed, and
# the npm packages beside the tests that use them.
#
# When nothing is missing it says so and is done. Else, as root on Debian, it
# installs the packages of the missing commands, and only those: to ask for a
# package that is there would upgrade it. Anywhere else it prints the command to
# run and exits 1.
set -eu
cd "$(dirname "$0")/.."

# command:Debian package:directories outside of PATH to look in (globs, or none);
# for a library, a file of it instead of a command
# internal/servers/binary.go says the same to the tests.
table='
redis-server:redis-server:
initdb:postgresql-15:/usr/lib/postgresql/*/bin
postgres:postgresql-15:/usr/lib/postgresql/*/bin
pg_basebackup:postgresql-15:/usr/lib/postgresql/*/bin
pgbouncer:pgbouncer:/usr/sbin
mariadb-install-db:mariadb-server:
mariadbd:mariadb-server:/usr/sbin
gcc:gcc libc6-dev:
redis-cli:redis-tools:
node:nodejs:
npm:npm:
promtool:prometheus:
__init__.py:python3-redis:/usr/lib/python3/dist-packages/redis
'

say() { printf 'servers: %s\n' "$*"; }

# have COMMAND DIRS: is the command in PATH, or in one of the directories?
have() {
	command -v "$1" >/dev/null 2>&1 && return 0
	for dir in $2; do # unquoted: a glob
		[ -e "$dir/$1" ] && return 0
	done
	return 1
}

commands='' packages=''
while IFS=: read -r command package dirs; do
	[ -n "$command" ] || continue
	have "$command" "$dirs" && continue
	commands="$commands $command"
	packages="$packages $package"
done <<EOF
$table
EOF

# The packages of a package.json go beside the tests, where nothing else sees them.
modules() {
	dir=bench/interop/testdata
	[ "$dir/node_modules/.package-lock.json" -nt "$dir/package-lock.json" ] && return 0
	say "npm ci in $dir"
	(cd "$dir" && npm ci --no-audit --no-fund --ignore-scripts)
}

if [ -z "$commands" ]; then
	modules
	say 'nothing is missing'
	exit 0
fi
say "missing:$commands"

install="apt-get install -y -q --no-install-recommends$packages"
if [ "$(id -u)" -ne 0 ] || [ ! -e /etc/debian_version ] || ! command -v apt-get >/dev/null 2>&1; then
	say 'to install them on Debian:' >&2
	printf '\n\tsudo apt-get update && sudo DEBIAN_FRONTEND=noninteractive %s\n\n' "$install" >&2
	exit 1
fi

say "$install"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # words, not one argument
apt-get install -y -q --no-install-recommends $packages

# Look again: a package may not hold what the table says.
while IFS=: read -r command package dirs; do
	[ -n "$command" ] || continue
	have "$command" "$dirs" || {
		say "$package is installed, and there is no $command" >&2
		exit 1
	}
done <<EOF
$table
EOF
modules
say 'done'
