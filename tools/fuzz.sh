#!/bin/bash
# Runs every fuzz target of the module, one after the other. Usage: tools/fuzz.sh [FUZZTIME]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
count=0
while IFS=: read -r file target; do
	pkg=./$(dirname "$file")
	echo "fuzz $pkg $target"
	log=$(mktemp)
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg" >"$log" 2>&1; then
		cat "$log"
		rm -f "$log"
		echo "fuzz target $target of $pkg failed; its input is under $(dirname "$file")/testdata/fuzz/$target" >&2
		exit 1
	fi
	tail -n 1 "$log"
	rm -f "$log"
	count=$((count + 1))
done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -noE '^func Fuzz[A-Za-z0-9_]+' /dev/null |
	sed -E 's/^([^:]+):[0-9]+:func (Fuzz.*)$/\1:\2/' | sort)
echo "$count fuzz targets, $time each"
