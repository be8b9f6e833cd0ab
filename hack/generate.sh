#!/usr/bin/env bash
# Makes what is generated anew: deep copies, OpenAPI definitions and model names of the API types, the messages of the
# provider protocol, and the reference of the plugin. Generators come at the versions that go.mod names. Run it after every
# change in api/v1alpha1, in a .proto file or in a command's help.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
kubernetes=$(go list -m -f '{{.Replace.Version}}' k8s.io/apimachinery)
openapi=$(go list -m -f '{{.Version}}' k8s.io/kube-openapi)
header=$(mktemp)
trap 'rm -f "$header"' EXIT

go run "k8s.io/code-generator/cmd/deepcopy-gen@$kubernetes" \
	--go-header-file "$header" \
	--output-file zz_generated.deepcopy.go \
	"$module/api/v1alpha1"

# The last three packages are named so that the generator reads how their models are called.
go run "k8s.io/kube-openapi/cmd/openapi-gen@$openapi" \
	--go-header-file "$header" \
	--output-dir server/registry \
	--output-pkg "$module/server/registry" \
	--output-file zz_generated.openapi.go \
	--output-model-name-file zz_generated.model_name.go \
	--report-filename /dev/null \
	--readonly-pkg k8s.io/apimachinery/pkg/apis/meta/v1 \
	--readonly-pkg k8s.io/apimachinery/pkg/runtime \
	--readonly-pkg k8s.io/apimachinery/pkg/util/intstr \
	"$module/api/v1alpha1" k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/util/intstr
gofmt -w server/registry/zz_generated.openapi.go api/v1alpha1/zz_generated.*.go

hack/generate-proto.sh
go run ./hack/clidocs docs/cli
