package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hykube/hykube/tests/simcloud"
)

// deletionOrders is the number of random orders, in addition to the one of `helm uninstall`.
const deletionOrders = 4

// deletionSet is the content of a chart, or of a team's directory.
const deletionSet = `
apiVersion: v1
kind: Secret
metadata: {name: credentials}
stringData: {token: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {image: debian-13}
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: default}
spec: {provider: sim, secretRefs: [{argument: token, name: credentials, key: token}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: approvers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {name: PREFIX-main}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: front}
spec: {name: PREFIX-front, network_id: "${sim_network.main.id}", cidr: 10.0.1.0/24}
---
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: web}
spec: {name: PREFIX-web, subnet_id: "${sim_subnet.front.id}", image: "${configmap.settings.image}"}
`

// TestDeletionConverges deletes a namespace and its objects in the order of Helm, and in random orders, while their
// infrastructure exists. It approves one plan, which destroys. In the end, neither the server nor the cloud has any of
// it.
func TestDeletionConverges(t *testing.T) {
	objects := []string{
		"namespace/NS", "secret/credentials", "configmap/settings", "providerconfig/default", "rolebinding/approvers",
		"sim-network/main", "sim-subnet/front", "sim-instance/web",
	}
	orders := map[string][]string{
		"helm": {"rolebinding/approvers", "configmap/settings", "secret/credentials", "sim-instance/web", "sim-network/main", "sim-subnet/front", "providerconfig/default", "namespace/NS"},
	}
	for seed := range uint64(deletionOrders) {
		order := append([]string{}, objects...)
		rand.New(rand.NewPCG(seed, 7)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		orders[fmt.Sprintf("seed-%d", seed)] = order
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := "deletion-" + name
			run := func(args ...string) {
				t.Helper()
				if _, err := shared.Kubectl(t.Context(), "", args...); err != nil {
					t.Fatalf("order %v: %v", order, err)
				}
			}
			run("create", "namespace", ns)
			kubectlWith(t, strings.ReplaceAll(deletionSet, "PREFIX", ns), "apply", "-n", ns, "-f", "-")
			run("hykube", "apply", "--all", "--auto-approve", "-n", ns)
			for _, object := range order {
				if object == "namespace/NS" {
					run("delete", "namespace", ns, "--wait=false")
					continue
				}
				// If the namespace is deleted first, its resources are marked, too. An unused namespace is then already
				// removed.
				run("delete", object, "-n", ns, "--wait=false", "--ignore-not-found")
			}
			run("hykube", "destroy", "--all", "--auto-approve", "-n", ns)
			run("wait", "--for=delete", "namespace/"+ns, "--timeout=60s")
			for _, op := range []string{"create", "delete"} {
				n, err := cloud.CountCalls(t.Context(), simcloud.Filter{Name: ns + "-*", Op: op, Effect: true})
				if err != nil || n != 3 {
					t.Errorf("order %v: %d calls to %s, %v; want 3", order, n, op, err)
				}
			}
		})
	}
}
