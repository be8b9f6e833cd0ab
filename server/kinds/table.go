package kinds

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diff"
)

// table prints an object for kubectl get: its readiness, its ID at the provider, and the reason.
type table struct {
	mode v1alpha1.Mode
	// kind is the name of the kind.
	kind string
	// instances reports whether ResourceSets have instances of the kind in a namespace, or in any one if that is empty.
	// Nil reports none.
	instances func(namespace string) bool
}

// warningInstances tells a user of kubectl get how to list the instances of a kind, which a list of the kind omits. An
// empty namespace means all.
func warningInstances(namespace, kind string) string {
	where := "-A"
	if namespace != "" {
		where = "-n " + namespace
	}
	return fmt.Sprintf("the list omits the instances of ResourceSets; this lists them, too: kubectl get resources %s --field-selector kind=%s", where, kind)
}

// identified reports whether objects of the mode have an ID attribute.
func (t table) identified() bool {
	return t.mode == v1alpha1.ModeManaged || t.mode == v1alpha1.ModeData
}

func (t table) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "list" && t.instances != nil &&
		t.instances(info.Namespace) {
		warning.AddWarning(ctx, "", warningInstances(info.Namespace, t.kind))
	}
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = t.columns()
	}
	if l, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = l.GetResourceVersion(), l.GetContinue(),
			l.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		out.ResourceVersion = m.GetResourceVersion()
	}
	rows, err := metatable.MetaToTableRow(obj,
		func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("print %T: not an object of a provider's kind", obj)
			}
			status, _ := u.Object["status"].(map[string]any)
			ready := readiness(u, t.mode)
			row := []any{name, text(ready["status"]), text(ready["reason"])}
			if t.identified() {
				row = append(row, identity(status))
			}
			row = append(row, age, text(ready["message"]))
			for i, cell := range row {
				row[i] = diff.Clean(cell.(string), true) // kubectl prints most control characters as they are
			}
			return row, nil
		})
	out.Rows = rows
	return out, err
}

// readiness returns the condition Ready of an object. A condition about an earlier spec is replaced, because kstatus
// and kubectl wait treat it in the same way.
func readiness(u *unstructured.Unstructured, mode v1alpha1.Mode) map[string]any {
	status, _ := u.Object["status"].(map[string]any)
	ready := condition.Find(u, v1alpha1.ConditionReady)
	observed, _, _ := unstructured.NestedInt64(status, "observedGeneration")
	if observed != u.GetGeneration() && v1alpha1.OutdatedByEdit(text(ready["reason"]), ready["status"] == "True") {
		return map[string]any{"status": "False", "reason": v1alpha1.ReasonAwaitingPlan,
			"message": messageChanged(mode, status)}
	}
	return ready
}

func (t table) columns() []metav1.TableColumnDefinition {
	ready := map[v1alpha1.Mode]string{
		v1alpha1.ModeManaged:   "Whether the infrastructure matches the spec.",
		v1alpha1.ModeData:      "Whether it was read with the current spec.",
		v1alpha1.ModeEphemeral: "Whether plans can use it.",
		v1alpha1.ModeAction:    "Whether it was run with the current spec.",
	}[t.mode]
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
		{Name: "Ready", Type: "string", Description: ready},
		{Name: "Reason", Type: "string", Description: "Reason of the condition Ready."},
	}
	if t.identified() {
		columns = append(columns, metav1.TableColumnDefinition{Name: "ID", Type: "string",
			Description: "ID of the resource at the provider."})
	}
	return append(columns,
		metav1.TableColumnDefinition{Name: "Age", Type: "date",
			Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		metav1.TableColumnDefinition{Name: "Message", Type: "string", Priority: 1,
			Description: "Message of the condition Ready."},
	)
}

func identity(status map[string]any) string {
	attributes, _ := status["attributes"].(map[string]any)
	return text(attributes["id"])
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// messageChanged returns the message for an object whose condition Ready is about an earlier spec.
func messageChanged(mode v1alpha1.Mode, status map[string]any) string {
	if applied, found, _ := unstructured.NestedInt64(status, "appliedGeneration"); found && applied == 0 {
		return "The spec was changed after it was planned; make a new Plan."
	}
	switch mode {
	case v1alpha1.ModeData:
		return "The spec was changed after it was read; make a Plan to read it again."
	case v1alpha1.ModeAction:
		return "The spec was changed after it was run; make a Plan to run it again."
	default:
		return "The spec was changed after it was applied; make a Plan to apply the change."
	}
}
