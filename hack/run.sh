#!/usr/bin/env bash
# Serves in the foreground, with a simulated cloud beside it, and keeps both in .cache/run between runs.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/.cache/run
mkdir -p "$work"
source hack/serve.sh
trap 'stop_all || true' EXIT
trap 'exit 0' INT TERM

start_cloud --state-file "$work/cloud.json"
start_server --secure-port "${PORT:-6443}"
cat <<END
Hykube serves $(server_url), and a simulated cloud $SIMCLOUD_ADDRESS. Both stop with Ctrl-C and are
found again by the next make run. The server's log is .cache/run/server.log.

In another terminal:

  export KUBECONFIG=$KUBECONFIG SIMCLOUD_ADDRESS=$SIMCLOUD_ADDRESS PATH=$bin:\$PATH
  hykube kubectl hykube apply -f examples/first     # plan, ask, record, apply
  hykube kubectl hykube get all -n first            # the resources
  hykube kubectl hykube ui                          # the runs, in the Temporal Web UI
  simcloud drift network main tags.team=rogue       # change the cloud behind Hykube's back
  hykube kubectl hykube plan --refresh=All -n first # and find it
  hykube kubectl hykube apply -f examples/hello     # two real providers, on this machine

With kubectl on your PATH, "kubectl hykube" does the same as "hykube kubectl hykube".
END
wait "$server_pid"
