#!/usr/bin/env bash
# Looks for what tests do not see, and ends with an error when there is something. Tools come at the versions below.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.8.0

export CGO_ENABLED=1
failed=0
step() { printf '== %s\n' "$1"; }
fail() {
	printf 'FAILED: %s\n' "$1" >&2
	failed=1
}

step "gofmt"
unformatted=$(gofmt -l activities api cmd examples hack internal sdk server tests workflows)
[[ -z $unformatted ]] || fail "not formatted, run gofmt -w: $unformatted"

source hack/modules.sh
staticcheck=$(hack/tool.sh "$staticcheck")
for module in "${modules[@]}"; do
	pushd "$module" >/dev/null
	step "go vet in $module, the analyzers that go test does not run"
	go vet -atomic=false -bool=false -buildtag=false -directive=false -errorsas=false -ifaceassert=false -nilfunc=false \
		-printf=false -stringintconv=false -tests=false ./... || fail "go vet in $module"

	step "go mod tidy in $module"
	go mod tidy -diff || fail "go.mod or go.sum in $module is not tidy, run go mod tidy"

	step "staticcheck in $module"
	"$staticcheck" ./... || fail "staticcheck in $module"
	popd >/dev/null
done

step "generated code"
hack/fresh.sh || fail "generated code is stale, run make generate"

step "govulncheck"
vulnerable=$(hack/tool.sh "$govulncheck")
# A small package first: it tells at once whether the database of vulnerabilities can be reached.
if said=$("$vulnerable" ./internal/cron 2>&1) || (($? == 3)); then
	"$vulnerable" ./cmd/... || fail "govulncheck"
elif [[ $said == *"fetching vulnerabilities"* ]]; then
	cat >&2 <<END
WARNING: govulncheck DID NOT RUN: its database cannot be reached from here, so nothing is known about vulnerabilities.
  $said
END
else
	fail "govulncheck: $said"
fi

((failed == 0)) || exit 1
echo "nothing found"
