#!/bin/bash
# Runs every fuzz target of the module, as many at once as there are cores, each on one core.
# Usage: tools/fuzz.sh [FUZZTIME]
set -euo pipefail
cd "$(dirname "$0")/.."

# attempt runs one target once.
attempt() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$1" -parallel 1 "$3" >"$4" 2>&1; }

# cut_short reports whether the engine ended a target at its time while an input was running, and found none that fails: it
# says "context deadline exceeded" then and names no input.
cut_short() { grep -q 'context deadline exceeded' "$1" && ! grep -q 'Failing input written' "$1"; }

# one FUZZTIME FILE TARGET: prints one line, or the whole log when the target fails. One that was cut short runs once more.
one() {
	local time=$1 pkg=./${2%/*} target=$3 log
	log=$(mktemp)
	if attempt "$time" "$target" "$pkg" "$log" || { cut_short "$log" && attempt "$time" "$target" "$pkg" "$log"; }; then
		echo "fuzz $pkg $target: $(tail -n 1 "$log")"
		rm -f "$log"
		return 0
	fi
	cat "$log"
	rm -f "$log"
	echo "fuzz target $target of $pkg failed; its input is under $pkg/testdata/fuzz/$target" >&2
	return 1
}
export -f one attempt cut_short

targets=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -noE '^func Fuzz[A-Za-z0-9_]+' /dev/null |
	sed -E 's/^([^:]+):[0-9]+:func (Fuzz.*)$/\1 \2/' | sort)
xargs -P "$(nproc)" -L 1 bash -c 'one "$0" "$1" "$2"' "${1:-10s}" <<<"$targets"
echo "$(wc -l <<<"$targets") fuzz targets, ${1:-10s} each"
