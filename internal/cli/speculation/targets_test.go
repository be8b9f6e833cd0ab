package speculation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
)

const targetedFiles = `apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: front, labels: {tier: web}}
spec: {network_id: "${sim_network.main.id}"}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {cidr: 10.0.0.0/16}
lifecycle: {dependsOn: [sim_disk.data]}
---
apiVersion: sim.hykube.io/v1
kind: sim-disk
metadata: {name: data}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: other}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main, namespace: elsewhere}
---
apiVersion: sim.hykube.io/v1
kind: sim-password
metadata: {name: login}
---
apiVersion: hykube.io/v1alpha1
kind: ProviderConfig
metadata: {name: sim}
spec: {provider: sim, config: {token: "${sim_password.login.result}"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
`

// TestTargetedFiles expects the resources that --target and -l name, those to which they refer, also through the
// configuration of their provider, and all objects that are not resources.
func TestTargetedFiles(t *testing.T) {
	others := " ProviderConfig/sim ConfigMap/settings"
	needed := "sim-subnet/front sim-network/main sim-disk/data sim-password/login"
	for reason, tc := range map[string]struct {
		flags operation.PlanFlags
		want  string
		left  string
	}{
		"no flag keeps all":              {operation.PlanFlags{}, "sim-subnet/front sim-network/main sim-disk/data sim-network/other sim-network/main sim-password/login" + others, ""},
		"a target and what it refers to": {operation.PlanFlags{Targets: []string{"sim-subnet/front"}}, needed + others, "leave out 2 objects"},
		"a label":                        {operation.PlanFlags{Selector: "tier=web"}, needed + others, "leave out 2 objects"},
		"one that refers to nothing":     {operation.PlanFlags{Targets: []string{"sim_disk.data"}}, "sim-disk/data sim-password/login" + others, "leave out 4 objects"},
		"one that the files lack":        {operation.PlanFlags{Targets: []string{"sim_disk.recorded"}}, strings.TrimSpace(others), "leave out 6 objects"},
	} {
		t.Run(reason, func(t *testing.T) {
			f := clitest.New(t, clitest.Connect)
			var got []string
			_, errOut, _ := f.RunIn(func(s *session.Session) {
				s.Namespace = "default"
				ms, err := manifest.Read(t.Context(), s, &manifest.Flags{FilenameOptions: fileNames(clitest.Write(t, targetedFiles))})
				if err == nil {
					ms, err = SelectTargets(s, ms, &tc.flags)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range ms {
					got = append(got, m.Object.GetKind()+"/"+m.Object.GetName())
				}
			}, "")
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
			if !strings.Contains(errOut, tc.left) || tc.left == "" && strings.Contains(errOut, "leave out") {
				t.Error(errOut)
			}
		})
	}
}

func fileNames(names ...string) resource.FilenameOptions {
	return resource.FilenameOptions{Filenames: names}
}
