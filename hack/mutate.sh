#!/usr/bin/env bash
# Changes conditions and arithmetic of packages, one at a time, and lists the changes that the tests of the package do not notice (LIVED).
# The arguments name the packages; without arguments, the day draws one whose tests are quick. One package takes about ten minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=(activities/changes internal/{contributor,cron,diag,diff,fair,graph,lang,ledger,module,plan,policy,query,resourceset,template})
[[ $# != 0 ]] || set -- "${quick[$((10#$(date +%j) % ${#quick[@]}))]}"
gremlins=$(hack/tool.sh github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0)
for package in "$@"; do
	echo "== $package"
	"$gremlins" unleash "./${package#./}" --workers 1 --timeout-coefficient 10 --output-statuses lt
done
