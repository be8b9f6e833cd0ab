#!/bin/sh
# Generates the Go messages of the provider protocol from the .proto files beside them. The compiler and the generator
# are Go modules pinned in go.mod, so that nothing has to be installed.
set -eu
cd "$(dirname "$0")/.."
go run ./hack/protogen . sdk/batch/tfplugin6/tfplugin6.proto internal/provider/tfplugin5/tfplugin5.proto sdk/batch/batchv1/batch.proto
