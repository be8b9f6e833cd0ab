#!/usr/bin/env bash
# Runs the tests of the packages that its arguments name, by default all of each module. If at most five tests failed, it repeats these alone, at
# most twice. The last lines list the flaky tests: those that failed and then passed.
set -euo pipefail
cd "$(dirname "$0")/.."

source hack/modules.sh
[[ $# == 0 ]] || modules=(.)
packages="${*:-./...}"

gotestsum=$(hack/tool.sh gotest.tools/gotestsum@v1.13.0)
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
code=0
for module in "${modules[@]}"; do
	(cd "$module" && "$gotestsum" --format pkgname-and-test-fails --format-hide-empty-pkg --no-color --rerun-fails=2 \
		--rerun-fails-max-failures=5 --rerun-fails-report="$reports/flaky-${module//\//-}" --packages="$packages" -- -timeout 30m) || code=$?
done
if ((code == 0)) && flaky=$(cat "$reports"/* 2>/dev/null) && [[ -n $flaky ]]; then
	echo "Flaky tests. Mend them, and list them in docs/development.md until then:"
	sed 's/^/  /' <<<"$flaky"
fi
exit "$code"
