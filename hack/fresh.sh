#!/usr/bin/env bash
# Generates everything anew in a copy of the tree, and ends with an error and the difference when that is not what is here.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - --exclude=./.git --exclude=./bin --exclude=./.cache . | tar -xf - -C "$copy"
"$copy/hack/generate.sh" >"$copy/.generate.log" 2>&1 || {
	cat "$copy/.generate.log" >&2
	exit 1
}
rm "$copy/.generate.log"
diff -r -u --exclude=.git --exclude=bin --exclude=.cache . "$copy"
