#!/usr/bin/env bash
# tool.sh MODULE@VERSION builds a tool, once, and prints its path. `go run` would swallow the tool's exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/.cache/tools/${1##*@}
name=$(basename "${1%@*}")
[[ -x $dir/$name ]] || GOBIN=$dir go install "$1" >&2
echo "$dir/$name"
