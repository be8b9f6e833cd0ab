package console_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestConsole(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Evaluating = func(e *v1alpha1.Evaluation) {
		switch e.Spec.Expression {
		case "bad":
			e.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Invalid reference", Detail: "Write it.", Attribute: "column 1"}}
		case "lines":
			e.Status.Value = "[\n  \x1b1,\n]"
		default:
			e.Status.Value = e.Namespace + " " + e.Spec.Expression
		}
	}
	for reason, test := range map[string]struct {
		in          string
		args        []string
		out, errOut string
		code        int
	}{
		"an expression a line":    {in: "\n# no\n a + 1\r\nlines", out: "default  a + 1\n[\n  \\x1b1,\n]\n"},
		"an error":                {in: "a\nbad\nb\n", out: "default a\ndefault b\n", errOut: "error: line 2, column 1: Invalid reference: Write it.\n", code: exit.Failed},
		"exit":                    {in: "a\nexit\nb\n", out: "default a\n"},
		"nothing":                 {},
		"an expression":           {args: []string{"-e", "a", "-n", "x"}, out: "x a\n"},
		"expressions, and a flaw": {args: []string{"-e", "bad", "-e", "a"}, out: "default a\n", errOut: "error: column 1: Invalid reference: Write it.\n", code: exit.Failed},
	} {
		out, errOut, code := f.RunIn(nil, test.in, append([]string{"console"}, test.args...)...)
		if out != test.out || errOut != test.errOut || code != test.code {
			t.Errorf("%s: code %d\n%q\n%q", reason, code, out, errOut)
		}
	}
	if _, errOut, code := f.Run("console", "sim_network.main"); code != exit.Failed || !strings.Contains(errOut, "-e EXPRESSION") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
