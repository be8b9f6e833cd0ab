# Starts and stops what the demo and `make run` need: the simulated cloud and the server. To be sourced; sets
# SIMCLOUD_ADDRESS and KUBECONFIG. Callers set $work, a directory for data and logs.

bin=$PWD/bin
cloud_pid= server_pid=

# kubectl is the one that is built into hykube, so that none has to be installed.
kubectl() { "$bin/hykube" kubectl "$@"; }

die() {
	echo "FAILED: $*" >&2
	exit 1
}

# wait_for SECONDS WHAT COMMAND... polls a command, and gives up when the process in $watched dies or the time is over.
wait_for() {
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if ! kill -0 "$watched" 2>/dev/null; then
			die "$what: it ended at once; the end of its log in $work:"$'\n'"$(tail -n 5 "$work"/*.log)"
		fi
		((SECONDS < deadline)) || die "$what: not there in time; see $work"
		sleep 0.1
	done
}

start_cloud() {
	rm -f "$work/cloud.address"
	"$bin/simcloud" serve --address-file "$work/cloud.address" "$@" >"$work/cloud.log" 2>&1 &
	cloud_pid=$! watched=$!
	wait_for 10 "start the simulated cloud" test -s "$work/cloud.address"
	SIMCLOUD_ADDRESS=$(<"$work/cloud.address")
	export SIMCLOUD_ADDRESS
}

start_server() {
	export KUBECONFIG=$work/data/admin.kubeconfig
	"$bin/hykube" server --data-dir "$work/data" --provider-mirror "$PWD/.cache/mirror" "$@" >"$work/server.log" 2>&1 &
	server_pid=$! watched=$!
	wait_for 60 "start the server" kubectl get --raw /readyz
}

server_url() { sed -n 's/^ *server: //p' "$KUBECONFIG"; }

# descendants PID prints the processes below one, of which provider plugins are the ones that matter.
descendants() {
	local stat pid parent
	for stat in /proc/[0-9]*/stat; do
		{ read -r pid _ _ parent _ <"$stat"; } 2>/dev/null || continue # it may end while we look
		if [[ $parent == "$1" ]]; then
			echo "$pid"
			descendants "$pid"
		fi
	done
}

# stop_all ends the server and the cloud, and tells about a process that is still there afterwards.
stop_all() {
	local pid left=() mine=()
	for pid in $server_pid $cloud_pid; do
		mapfile -t -O "${#mine[@]}" mine < <(echo "$pid"; descendants "$pid")
	done
	for pid in $server_pid $cloud_pid; do kill "$pid" 2>/dev/null || true; done
	for pid in $server_pid $cloud_pid; do wait "$pid" 2>/dev/null || true; done
	server_pid='' cloud_pid=''
	for pid in "${mine[@]}"; do
		if kill -0 "$pid" 2>/dev/null; then left+=("$pid"); fi
	done
	if ((${#left[@]})); then
		kill -9 "${left[@]}" 2>/dev/null || true
		echo "FAILED: processes were left behind and killed: ${left[*]}" >&2
		return 1
	fi
}
