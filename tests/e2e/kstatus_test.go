package e2e

import (
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/tests/harness"
)

// judgedWithin is the maximum time until waiting tools see the outcome on an object.
const judgedWithin = 5 * time.Second

// kstatus expects kstatus, with which Flux and Helm wait, to return a status for an object: kstatus STATUS KIND/NAME
// [REASON]. The reason is that of the condition Ready. It expects Argo CD to show the same.
func kstatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: kstatus STATUS KIND/NAME [REASON]")
	}
	ts.Check(harness.Within(judgedWithin, func() error {
		if err := ts.Exec("hykube", "kubectl", "get", args[1], "-o", "json"); err != nil {
			return err
		}
		text := ts.ReadFile("stdout")
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(text)); err != nil {
			return err
		}
		result, err := status.Compute(obj)
		if err != nil {
			return fmt.Errorf("compute status of %s: %w", args[1], err)
		}
		reason := readyReason(obj)
		if result.Status.String() != args[0] || len(args) == 3 && reason != args[2] {
			return fmt.Errorf("%s is %s with reason %s (%s), want %v", args[1], result.Status, reason, result.Message, args)
		}
		shown, err := argoHealth(obj)
		if err != nil {
			return fmt.Errorf("compute the health of %s for Argo CD: %w", args[1], err)
		}
		if shown.Status != argoHealthOf[args[0]] {
			return fmt.Errorf("%s is %s, and Argo CD shows %s (%s)", args[1], args[0], shown.Status, shown.Message)
		}
		return nil
	}))
}

func readyReason(obj *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == "Ready" {
			reason, _ := m["reason"].(string)
			return reason
		}
	}
	return ""
}
