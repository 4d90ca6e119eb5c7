#!/bin/bash
# Fails when the committed generated code is not what the proto files give. Usage: tools/gen-diff.sh BUF
# It generates into a folder of its own, so that a dirty tree is neither needed nor made.
set -euo pipefail
cd "$(dirname "$0")/.."
buf=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$buf" format -d --exit-code
"$buf" generate -o "$out"
(cd "$out/messages" && find . -name '*.go' | sort) >"$out/want"
(cd messages && find . -name '*.pb.go' -o -name '*.connect.go' | sort) >"$out/have"
if ! diff -u "$out/have" "$out/want"; then
	echo "generated files are missing or left over: run 'make gen' and commit" >&2
	exit 1
fi
while read -r file; do
	diff -u "messages/$file" "$out/messages/$file" || {
		echo "messages/$file is not what its proto file gives: run 'make gen' and commit" >&2
		exit 1
	}
done <"$out/want"
echo "generated code is up to date: $(wc -l <"$out/want") files"
