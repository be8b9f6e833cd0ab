#!/usr/bin/env bash
# The whole journey on examples/first: written, planned, approved, applied, changed, drifted, destroyed. Everything runs on
# free ports of this machine in a fresh directory, and nothing of it stays. Any step that does not do what it says ends the
# demo with an error.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/hykube-demo.XXXXXX")
source hack/serve.sh

finish() {
	local code=$?
	trap - EXIT INT TERM
	stop_all || code=1
	if ((code)); then
		echo "The demo failed (exit code $code); data and logs are in $work" >&2
	else
		rm -rf "$work"
	fi
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi

title() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

# run WORDS... shows a command and runs it.
run() {
	printf '\n%s$ %s%s\n' "$bold" "${*@Q}" "$plain" | sed "s/'\([A-Za-z0-9_./:=,@-]*\)'/\1/g"
	"$@"
}

# expect WHAT WANT GOT checks what the provider and the cloud really did.
expect() { [[ $3 == "$2" ]] || die "$1: expected $2, got $3"; }

# newest_plan prints the name of the last plan of the namespace; planned FIELD what it counted.
newest_plan() { kubectl get plans -n first --sort-by=.metadata.creationTimestamp -o name | tail -n 1 | cut -d/ -f2; }
planned() { kubectl get plan "$(newest_plan)" -n first -o "jsonpath={.status.summary.$1}"; }
simcloud() { "$bin/simcloud" "$@"; }
objects() { simcloud list -o json | grep -c '"id":' || true; }

title "Start a simulated cloud and a server"
start_cloud --latency 50ms --jitter 100ms
start_server --secure-port 0
cat <<END
The server serves $(server_url)
  Web UI      $(server_url)/temporal/  (with your credentials: kubectl hykube ui)
  kubeconfig  $KUBECONFIG
"kubectl" below is bin/hykube kubectl: kubectl with the plugin built in.
END

# The files are copied, since the journey changes them.
mkdir "$work/first"
cp examples/first/* "$work/first"
cd "$work"

title "Namespace and providers first: no plan can be made without them"
run kubectl apply --server-side -f first/00-namespace.yaml -f first/10-providers.yaml
run kubectl wait --for=condition=Ready --timeout=60s provider/sim provider/time

title "Plan: what the files would do, and nothing is recorded"
run kubectl hykube plan -f first
expect "plan creates nothing yet" 0 "$(objects)"

title "Apply: the same plan, then the files are recorded and it is applied, in the order of the references"
run kubectl hykube apply -f first --auto-approve
run simcloud calls --op create
applied=$(objects)
((applied > 0)) || die "nothing exists in the cloud after the plan was applied"

title "Look: values that only the provider could know"
run kubectl get sim-networks,sim-instances,sim-disks -n first
run kubectl get sim-instance web -n first -o 'jsonpath={.status.attributes.id} {.status.attributes.public_ip}{"\n"}'

title "Change one argument in the file: an update in place"
run sed -i 's/size: small/size: medium/' first/30-servers.yaml
run kubectl hykube apply -f first --auto-approve
expect "changes of the plan that are updates" 1 "$(planned update)"

title "Change another: a replacement, with the reason"
run sed -i '0,/debian-13/s//ubuntu-24.04/' first/30-servers.yaml
run kubectl hykube apply -f first --auto-approve
expect "changes of the plan that are replacements" 1 "$(planned replace)"

title "The cloud changes behind our back: found, and put right"
run simcloud drift instance database size=huge
run kubectl hykube plan --refresh=All -n first
expect "changes of the plan that drifted" 1 "$(planned drifted)"
run kubectl hykube approve "$(newest_plan)" -n first

title "Destroy, in the reverse order"
run kubectl hykube destroy --all -n first --auto-approve
run simcloud calls --op delete
expect "objects in the cloud" 0 "$(objects)"

title "Who approved what"
run kubectl hykube history -n first

title "Done in $SECONDS s; the server, the cloud and the provider processes stop now"
echo "Next: make run, then read docs/concepts.md"
