package state_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestTaint(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	out, errOut, code := f.Run("taint", "sim_network.main")
	if code != 0 || out != "sim-network.sim.hykube.io/main tainted\n" || !strings.Contains(errOut, "kubectl hykube plan -n default") || f.Object("main")["tainted"] != true {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	out, errOut, code = f.Run("untaint", "sim-networks/main", "-o", "name")
	if code != 0 || out != "sim-network.sim.hykube.io/main\n" || f.Object("main")["tainted"] != false {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"nothing is named", []string{"taint"}, "no resources are named to taint"},
		{"a data source is never broken", []string{"taint", "data.sim_image.base"}, "only resources can be named here"},
		{"no such kind", []string{"taint", "sim-netwrk/main"}, `did you mean "sim-network"?`},
		{"no such object", []string{"taint", "sim-network/other"}, "taint sim_network.other"},
		{"another namespace than -n", []string{"taint", "namespace.a.sim_network.main", "-n", "default"}, `is in namespace "a", and -n is "default"`},
	} {
		if _, errOut, code := f.Run(tc.args...); code != exit.Failed || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/taint") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	if _, _, code := f.Run("taint", "sim_network.main"); code != exit.Refused {
		t.Errorf("a taint that is refused exits with %d", code)
	}
}
