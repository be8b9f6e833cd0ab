package planning

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestBlockedChangeTellsNoValues checks that a blocked change has no planned values.
func TestBlockedChangeTellsNoValues(t *testing.T) {
	js := func() *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(`"planned"`)} }
	c := &ledger.Change{PlanChange: v1alpha1.PlanChange{
		Action: v1alpha1.ActionReplace, Before: js(), After: js(), AfterUnknown: js(), BeforeSensitive: js(), AfterSensitive: js(),
		ReplacePaths: js(), SecretsChanged: js(), Recorded: js(), RecordedSensitive: js(), Drift: []string{"planned"},
	}}
	block(c, "it may not", v1alpha1.Diagnostic{Summary: "Not now"})
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "planned") || c.Action != v1alpha1.ActionNoOp || c.State != v1alpha1.ChangeSkipped {
		t.Errorf("after the block: %s", text)
	}
}
