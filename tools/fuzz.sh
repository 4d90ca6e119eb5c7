#!/bin/bash
# Runs every fuzz target of the module, as many at once as there are cores, each on one core.
# Usage: tools/fuzz.sh [FUZZTIME]
set -euo pipefail
cd "$(dirname "$0")/.."

# one FUZZTIME FILE TARGET: prints one line, or the whole log when the target fails.
one() {
	local time=$1 pkg=./${2%/*} target=$3 log
	log=$(mktemp)
	if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 1 "$pkg" >"$log" 2>&1; then
		echo "fuzz $pkg $target: $(tail -n 1 "$log")"
		rm -f "$log"
		return 0
	fi
	cat "$log"
	rm -f "$log"
	echo "fuzz target $target of $pkg failed; its input is under $pkg/testdata/fuzz/$target" >&2
	return 1
}
export -f one

targets=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -noE '^func Fuzz[A-Za-z0-9_]+' /dev/null |
	sed -E 's/^([^:]+):[0-9]+:func (Fuzz.*)$/\1 \2/' | sort)
xargs -P "$(nproc)" -L 1 bash -c 'one "$0" "$1" "$2"' "${1:-10s}" <<<"$targets"
echo "$(wc -l <<<"$targets") fuzz targets, ${1:-10s} each"
