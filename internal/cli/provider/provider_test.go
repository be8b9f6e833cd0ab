package provider_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/tests/clitest"
)

func TestProviderList(t *testing.T) {
	f := clitest.New(t, cli.Command)
	if _, errOut, code := f.Run("provider", "list"); code != 0 || !strings.Contains(errOut, "No providers") {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	out, _, code := f.Run("provider", "list")
	if code != 0 || !strings.Contains(out, "sim    hykube/sim   1.0.0") {
		t.Errorf("code %d: %q", code, out)
	}
	if out, _, _ = f.Run("provider", "list", "-o", "name"); out != "provider.hykube.io/sim\n" {
		t.Error(out)
	}
	if out, _, _ = f.Run("show", "plan-x7k2d", "-o", "name"); out != "plan.hykube.io/plan-x7k2d\n" {
		t.Error(out)
	}
}
