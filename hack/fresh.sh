#!/usr/bin/env bash
# Generates everything anew in a copy of the tree, and ends with an error and the difference when that is not what is here.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/is"
tar -cf - --exclude=./.git --exclude=./bin --exclude=./dist --exclude=./.cache . | tar -xf - -C "$work/is"
cp -R "$work/is" "$work/should"
"$work/should/hack/generate.sh" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
cd "$work"
diff -r -u is should
