#!/usr/bin/env bash
# Runs the tests of the packages that its arguments name, by default all. If at most five tests failed, it repeats these alone, at
# most twice. The last lines list the flaky tests: those that failed and then passed.
set -euo pipefail
cd "$(dirname "$0")/.."

gotestsum=$(hack/tool.sh gotest.tools/gotestsum@v1.13.0)
report=.cache/repeated-tests
rm -f "$report"
code=0
"$gotestsum" --format pkgname-and-test-fails --format-hide-empty-pkg --no-color --rerun-fails=2 --rerun-fails-max-failures=5 \
	--rerun-fails-report="$report" --packages="${*:-./...}" -- -timeout 30m || code=$?
if ((code == 0)) && [[ -s $report ]]; then
	echo "Flaky tests. Mend them, and list them in docs/development.md until then:"
	sed 's/^/  /' "$report"
fi
exit "$code"
