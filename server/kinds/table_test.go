package kinds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestTableOfAnEditedObject edits objects after a plan judged them. A refused object then awaits a plan, and the status
// of the infrastructure stays.
func TestTableOfAnEditedObject(t *testing.T) {
	for reason, want := range map[string]string{
		v1alpha1.ReasonApplied: v1alpha1.ReasonAwaitingPlan, v1alpha1.ReasonBlocked: v1alpha1.ReasonAwaitingPlan,
		v1alpha1.ReasonCreateUnknown: v1alpha1.ReasonCreateUnknown, v1alpha1.ReasonTainted: v1alpha1.ReasonTainted,
	} {
		status := "False"
		if reason == v1alpha1.ReasonApplied {
			status = "True"
		}
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(5)}, "status": map[string]any{
			"observedGeneration": int64(4), "appliedGeneration": int64(3),
			"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": "m"}},
		}}}
		rows, err := table{mode: v1alpha1.ModeManaged}.ConvertToTable(t.Context(), u, &metav1.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if cells := rows.Rows[0].Cells; cells[1] != "False" || cells[2] != want {
			t.Errorf("%s: %v, want %s", reason, cells, want)
		}
	}
}

// TestTablesEscapeControlCharacters has an ID and a message of a provider that would move the cursor of a terminal.
func TestTablesEscapeControlCharacters(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(1)}, "status": map[string]any{
		"observedGeneration": int64(1), "attributes": map[string]any{"id": "a\u009b2Jb"},
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": v1alpha1.ReasonApplyFailed, "message": "x\u202ey\x1b[2Jz"}},
	}}}
	rows, err := table{mode: v1alpha1.ModeManaged}.ConvertToTable(t.Context(), u, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cells := rows.Rows[0].Cells; cells[3] != `a\u009b2Jb` || cells[5] != `x\u202ey\x1b[2Jz` {
		t.Errorf("cells %q", cells)
	}
}

// warnings collects the warnings of a request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// TestAListTellsWhereInstancesAre lists a kind of which ResourceSets have instances in the namespace "team".
func TestAListTellsWhereInstancesAre(t *testing.T) {
	printed := table{mode: v1alpha1.ModeManaged, kind: "sim-network", instances: func(namespace string) bool { return namespace == "team" || namespace == "" }}
	for name, tt := range map[string]struct {
		table           table
		verb, namespace string
		want            bool
	}{
		"of the namespace":     {printed, "list", "team", true},
		"of all namespaces":    {printed, "list", "", true},
		"of another namespace": {printed, "list", "other", false},
		"one object":           {printed, "get", "team", false},
		"a watch":              {printed, "watch", "team", false},
		"a kind without sets":  {table{mode: v1alpha1.ModeData}, "list", "team", false},
	} {
		got := &warnings{}
		ctx := warning.WithWarningRecorder(t.Context(), got)
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: tt.verb, Namespace: tt.namespace})
		if _, err := tt.table.ConvertToTable(ctx, &unstructured.UnstructuredList{}, nil); err != nil {
			t.Fatal(err)
		}
		if told := len(*got) == 1 && (*got)[0] == warningInstances(tt.namespace, "sim-network"); told != tt.want || len(*got) > 1 {
			t.Errorf("%s: warnings %q", name, *got)
		}
	}
}
