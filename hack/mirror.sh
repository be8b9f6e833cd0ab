#!/usr/bin/env bash
# Lays out .cache/mirror as Terraform's filesystem mirror (unpacked), with the real plugins hashicorp/time, hashicorp/local
# and hashicorp/random, built from Go modules at pinned versions, and with the plugin of the simulated cloud.
set -euo pipefail
cd "$(dirname "$0")/.."

time_version=0.14.2
local_version=1.4.0
random_version=2.0.0
sim_version=${SIM_VERSION:-0.1.0}
platform=$(go env GOOS)_$(go env GOARCH)
mirror=.cache/mirror/registry.terraform.io

# place FILE NAMESPACE TYPE VERSION puts a plugin where a server looks for it. One that is the same stays as it is.
place() {
	local dir=$mirror/$2/$3/$4/$platform
	local plugin=$dir/terraform-provider-$3_v$4
	if cmp -s "$1" "$plugin"; then return; fi
	mkdir -p "$dir"
	cp "$1" "$plugin.new"
	chmod 755 "$plugin.new"
	mv "$plugin.new" "$plugin"
	echo "mirrored $2/$3 $4"
}

built=.cache/plugins/terraform-provider-time-$time_version
if [[ ! -x $built ]]; then
	tools=$PWD/.cache/plugins/new
	mkdir -p "$tools"
	GOBIN=$tools go install "github.com/hashicorp/terraform-provider-time@v$time_version"
	mv "$tools/terraform-provider-time" "$built"
fi
place "$built" hashicorp time "$time_version"
# These two are modules of their own below tests/plugins, which say why.
for plugin in "local:$local_version" "random:$random_version"; do
	name=${plugin%:*} version=${plugin#*:}
	built=.cache/plugins/terraform-provider-$name-$version
	[[ -x $built ]] || go -C "tests/plugins/$name" build -o "$PWD/$built" .
	place "$built" hashicorp "$name" "$version"
done
place bin/terraform-provider-sim hykube sim "$sim_version"
