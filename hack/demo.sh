#!/usr/bin/env bash
# demo.sh plans, applies, changes and destroys examples/first, and corrects drift in between. Everything runs on free ports of
# this machine in a temporary directory, which a successful demo removes. The demo fails as soon as a step does not do what
# its title says.
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

# expect NAME WANT GOT fails the demo unless both values are equal.
expect() { [[ $3 == "$2" ]] || die "$1: expected $2, got $3"; }

# newest_plan prints the name of the namespace's newest plan; planned FIELD prints a count of that plan's summary.
newest_plan() { kubectl get plans -n first --sort-by=.status.requestedAt -o name | tail -n 1 | cut -d/ -f2; }
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

# Later steps edit the files, so the demo works on a copy.
mkdir "$work/first"
cp examples/first/* "$work/first"
cd "$work"

title "Create the namespace and install the providers: every plan needs them"
run kubectl apply --server-side -f first/00-namespace.yaml -f first/10-providers.yaml
run kubectl wait --for=condition=Ready --timeout=60s provider/sim provider/time

title "Plan the files: Hykube shows the changes and records nothing"
run kubectl hykube plan -f first
expect "plan creates nothing yet" 0 "$(objects)"

title "Apply: Hykube makes the same plan, records the files and applies the plan in the order of the references"
run kubectl hykube apply -f first --auto-approve
run simcloud calls --op create
applied=$(objects)
((applied > 0)) || die "nothing exists in the cloud after the plan was applied"

title "Read the values that the provider returned"
run kubectl get resources -n first
run kubectl get sim-instance web -n first -o 'jsonpath={.status.attributes.id} {.status.attributes.public_ip}{"\n"}'

title "Change an argument that the provider can update in place"
run sed -i 's/size: small/size: medium/' first/30-servers.yaml
run kubectl hykube apply -f first --auto-approve
expect "changes of the plan that are updates" 1 "$(planned update)"

title "Change an argument that forces a replacement"
run sed -i '0,/debian-13/s//ubuntu-24.04/' first/30-servers.yaml
run kubectl hykube apply -f first --auto-approve
expect "changes of the plan that are replacements" 1 "$(planned replace)"

title "Correct drift: a change that was made outside of Hykube"
run simcloud drift instance database size=huge
run kubectl hykube plan --refresh=All -n first
expect "changes of the plan that drifted" 1 "$(planned drifted)"
run kubectl hykube approve "$(newest_plan)" -n first --digest "$(kubectl get plan "$(newest_plan)" -n first -o 'jsonpath={.status.digest}')"

title "Destroy everything, in reverse order"
run kubectl hykube destroy --all -n first --auto-approve
run simcloud calls --op delete
expect "objects in the cloud" 0 "$(objects)"

title "List the history: who asked for and approved each plan"
run kubectl hykube history -n first

title "Done in $SECONDS s; the server, the cloud and the provider processes stop now"
echo "Next: make run, then read docs/concepts.md"
