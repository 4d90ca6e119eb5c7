#!/bin/sh
# Blocks writes to lock files: a package manager writes them, and a hand-made edit breaks reproducible installs.
# A hook gets the call as JSON on its standard input. Exit 2 blocks it, and standard error is the reason the model sees;
# exit 0 without a word is no opinion.
set -eu
cat >/dev/null # the rule in vak.toml already chose which calls come here
echo "lock files are written by the package manager: run its install or update command instead of editing one" >&2
exit 2
