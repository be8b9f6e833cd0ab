package registry

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestChangesTable(t *testing.T) {
	for reason, test := range map[string]struct {
		change          v1alpha1.PlanChange
		action, address string
	}{
		"update":                  {v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate}, "Update", "sim_network.main"},
		"replace":                 {v1alpha1.PlanChange{Action: v1alpha1.ActionReplace}, "Replace", "sim_network.main"},
		"create before destroy":   {v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, CreateBeforeDestroy: true}, "Replace (creates first)", "sim_network.main"},
		"forget before create":    {v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, Forget: true}, "Replace (forgets the old one)", "sim_network.main"},
		"import alone":            {v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, Importing: &v1alpha1.PlanImport{ID: "1"}}, "Import", "sim_network.main"},
		"import and update":       {v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Importing: &v1alpha1.PlanImport{ID: "1"}}, "Import, Update", "sim_network.main"},
		"move":                    {v1alpha1.PlanChange{Action: v1alpha1.ActionNoOp, PreviousAddress: "sim_network.old"}, "Move", "sim_network.main (was sim_network.old)"},
		"destroy of what is left": {v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Deposed: "0a1b2c3d"}, "Delete", "sim_network.main (deposed 0a1b2c3d)"},
	} {
		test.change.Address = "sim_network.main"
		cells := changesTable(&v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{test.change}}).Rows[0].Cells
		if cells[1] != test.action || cells[2] != test.address {
			t.Errorf("%s: %v, want %q of %q", reason, cells, test.action, test.address)
		}
	}
}

// TestTablesOfWhatIsDeleted expects the tables of Providers and ProviderConfigs to show a deletion, and what it waits
// for.
func TestTablesOfWhatIsDeleted(t *testing.T) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConfigured, Message: "It is accepted."}
	inUse := metav1.Condition{Type: v1alpha1.ConditionInUse, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSomeResourcesRemain, Message: "A resource needs it."}
	marked := metav1.ObjectMeta{Name: "one", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"a/b", "c/d"}}
	for reason, test := range map[string]struct {
		meta       metav1.ObjectMeta
		conditions []metav1.Condition
		want       string
	}{
		"alive":                  {metav1.ObjectMeta{Name: "one"}, []metav1.Condition{ready}, "True Configured It is accepted."},
		"needed by a resource":   {marked, []metav1.Condition{ready, inUse}, "True Terminating A resource needs it."},
		"kept by other programs": {marked, []metav1.Condition{ready}, "True Terminating It is being deleted, and waits for its finalizers: a/b, c/d."},
	} {
		config := providerConfigTable.cells(&v1alpha1.ProviderConfig{ObjectMeta: test.meta, Status: v1alpha1.ProviderConfigStatus{Conditions: test.conditions}})
		if got := fmt.Sprint(config[2], " ", config[3], " ", config[5]); got != test.want {
			t.Errorf("%s: the ProviderConfig says %q, want %q", reason, got, test.want)
		}
		provider := providerTable.cells(&v1alpha1.Provider{ObjectMeta: test.meta, Status: v1alpha1.ProviderStatus{Conditions: test.conditions}})
		if got := fmt.Sprint(provider[4], " ", provider[5], " ", provider[7]); got != test.want {
			t.Errorf("%s: the Provider says %q, want %q", reason, got, test.want)
		}
	}
}

func TestQueryTable(t *testing.T) {
	table, err := queryTable{}.ConvertToTable(t.Context(), &v1alpha1.Query{Status: v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{
		{DisplayName: "one", Identity: &runtime.RawExtension{Raw: []byte(`{"id":"1"}`)}, ManagedBy: "sim_network.main"},
		{DisplayName: "two\u009b2J", ID: "2"},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]any
	for _, r := range table.Rows {
		got = append(got, r.Cells)
	}
	if diff := cmp.Diff([][]any{{"one", `{"id":"1"}`, "sim_network.main"}, {`two\u009b2J`, "2", ""}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
