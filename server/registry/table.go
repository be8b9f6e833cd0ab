package registry

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// tableConvertor creates the table for `kubectl get`. cells returns the cells of an object for the columns.
type tableConvertor struct {
	columns []metav1.TableColumnDefinition
	cells   func(obj runtime.Object) []any
}

func (t tableConvertor) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := new(metav1.Table)
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		table.ColumnDefinitions = t.columns
	}
	row := func(o runtime.Object) error {
		table.Rows = append(table.Rows,
			metav1.TableRow{Cells: printable(t.cells(o)), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	if !meta.IsListType(obj) {
		if accessor, err := meta.Accessor(obj); err == nil {
			table.ResourceVersion = accessor.GetResourceVersion()
		}
		return table, row(obj)
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(),
			list.GetRemainingItemCount()
	}
	return table, meta.EachListItem(obj, row)
}

// printable escapes control characters in the cells of a row, because kubectl prints most of them as they are.
func printable(cells []any) []any {
	for i, c := range cells {
		if text, ok := c.(string); ok {
			cells[i] = diff.Clean(text, true)
		}
	}
	return cells
}

func column(name, kind, description string, priority int32) metav1.TableColumnDefinition {
	format := ""
	if name == "Name" {
		format = "name"
	}
	return metav1.TableColumnDefinition{Name: name, Type: kind, Format: format, Description: description,
		Priority: priority}
}

var (
	nameColumn   = column("Name", "string", "Name of the object.", 0)
	readyColumn  = column("Ready", "string", "Status of the condition Ready.", 0)
	reasonColumn = column("Reason", "string", "Reason of the condition Ready.", 0)
	ageColumn    = column("Age", "string", "Time since the object was created.", 0)
	whyColumn    = column("Message", "string", "Message of the condition Ready.", 1)
)

var providerTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Source", "string", "Address of the provider.", 0),
		column("Version", "string", "Version that is installed.", 0),
		column("Kinds", "integer", "Number of kinds that the provider serves.", 0),
		readyColumn, reasonColumn, ageColumn, whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		p := obj.(*v1alpha1.Provider)
		ready, reason, message := readinessCells(p, p.Status.Conditions)
		return []any{p.Name, p.Spec.Source, orNone(p.Status.Version), int64(p.Status.Kinds), ready, reason,
			age(p.CreationTimestamp), message}
	},
}

var providerConfigTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Provider", "string", "Provider that is configured.", 0),
		readyColumn, reasonColumn, ageColumn, whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		pc := obj.(*v1alpha1.ProviderConfig)
		ready, reason, message := readinessCells(pc, pc.Status.Conditions)
		return []any{pc.Name, pc.Spec.Provider, ready, reason, age(pc.CreationTimestamp), message}
	},
}

var planTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Summary", "string", "Number of changes, by kind.", 0),
		column("Approved", "string", "Whether the plan was approved.", 0),
		column("Status", "string", "State of the plan: the reason of the condition Ready.", 0),
		column("Progress", "string", "Number of applied changes, and of all changes.", 0),
		ageColumn,
		column("Requested By", "string", "User who created the plan.", 1),
		whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		p := obj.(*v1alpha1.Plan)
		ready, reason, message := readiness(p.Status.Conditions)
		if ready == string(metav1.ConditionTrue) && reason == "" {
			reason = ready
		}
		return []any{p.Name, summary(p), approved(p), reason, progress(p), age(p.CreationTimestamp),
			nameOf(p.Status.RequestedBy), message}
	},
}

// resourceTable shows the names of the objects, which are not the names of the Resources. So the column Name does not
// have the format "name", for which kubectl would add the kind Resource.
var resourceTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		column("Kind", "string", "Kind of the object.", 0),
		{Name: "Name", Type: "string", Description: "Name of the object."},
		readyColumn, reasonColumn,
		column("ID", "string", "ID of the resource at the provider.", 0),
		ageColumn, whyColumn,
		column("Provider", "string", "Provider of the kind.", 1),
		column("ProviderConfig", "string", "ProviderConfig that the object names.", 1),
	},
	cells: func(obj runtime.Object) []any {
		r := obj.(*v1alpha1.ResourceSummary)
		return []any{r.Object.Kind, r.Object.Name, string(r.Status.Ready), r.Status.Reason, r.Status.ID,
			age(r.CreationTimestamp),
			r.Status.Message, r.Provider, orNone(r.ProviderConfig)}
	},
}

var planPolicyTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Rules", "string", "Names and effects of the rules.", 0),
		ageColumn,
	},
	cells: func(obj runtime.Object) []any {
		var rules []v1alpha1.PlanPolicyRule
		switch p := obj.(type) {
		case *v1alpha1.PlanPolicy:
			rules = p.Spec.Rules
		case *v1alpha1.ClusterPlanPolicy:
			rules = p.Spec.Rules
		}
		var texts []string
		for _, r := range rules {
			texts = append(texts, fmt.Sprintf("%s (%s)", r.Name, r.Effect))
		}
		m := obj.(metav1.Object)
		return []any{m.GetName(), strings.Join(texts, ", "), age(m.GetCreationTimestamp())}
	},
}

var planRecordTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Plan", "string", "Plan that the record is about.", 0),
		column("Requested By", "string", "User who created the plan.", 0),
		column("Decided By", "string", "Who approved or discarded the plan.", 0),
		column("Summary", "string", "Number of planned changes, by kind.", 0),
		column("Outcome", "string", "How the plan ended.", 0),
		ageColumn,
		column("Message", "string", "Message of the decision.", 1),
	},
	cells: func(obj runtime.Object) []any {
		r := obj.(*v1alpha1.PlanRecord)
		text := ""
		if r.Summary != nil {
			text = r.Summary.Text
		}
		return []any{r.Name, r.Plan.Name, nameOf(r.RequestedBy), nameOf(r.Approval.By), text,
			cmp.Or(r.Outcome, v1alpha1.ReasonApplying), age(r.CreationTimestamp), r.Approval.Message}
	},
}

// changesTable returns the table of a page of changes, whose items are not objects.
func changesTable(list *v1alpha1.PlanChangeList) *metav1.Table {
	table := &metav1.Table{
		ListMeta: list.ListMeta,
		ColumnDefinitions: []metav1.TableColumnDefinition{
			column("Index", "integer", "Number of the change in its plan.", 0),
			column("Action", "string", "Action of the change.", 0),
			column("Address", "string", "Resource that is changed.", 0),
			column("State", "string", "State of the change.", 0),
			column("Message", "string", "Result of the change, or the reason why it waits.", 0),
		},
	}
	for _, c := range list.Items {
		table.Rows = append(table.Rows,
			metav1.TableRow{Cells: printable([]any{int64(c.Index), changeText(c), instanceText(c), string(c.State),
				c.Message})})
	}
	return table
}

// changeText returns a short text for the action of a change.
func changeText(c v1alpha1.PlanChange) string {
	text := string(c.Action)
	switch {
	case c.Action == v1alpha1.ActionReplace && c.Forget:
		text += " (forgets the old one)"
	case c.Action == v1alpha1.ActionReplace && c.CreateBeforeDestroy:
		text += " (creates first)"
	}
	var first []string
	if c.PreviousAddress != "" {
		first = append(first, "Move")
	}
	if c.Importing != nil {
		first = append(first, "Import")
	}
	if len(first) == 0 {
		return text
	}
	if c.Action != v1alpha1.ActionNoOp && c.Action != "" {
		first = append(first, text)
	}
	return strings.Join(first, ", ")
}

// instanceText returns the address of a change, with the deposed key or the previous address.
func instanceText(c v1alpha1.PlanChange) string {
	switch {
	case c.Deposed != "":
		return fmt.Sprintf("%s (deposed %s)", c.Address, c.Deposed)
	case c.PreviousAddress != "":
		return fmt.Sprintf("%s (was %s)", c.Address, c.PreviousAddress)
	}
	return c.Address
}

// queryTable creates the table of a query's result.
type queryTable struct{}

func (queryTable) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	q, ok := obj.(*v1alpha1.Query)
	if !ok {
		return nil, fmt.Errorf("make table of a query: unexpected type %T", obj)
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Found", "string", "Display name of the resource.", 0),
		column("Import By", "string", "ID, or identity, by which an import finds it.", 0),
		column("Managed By", "string", "Object that manages it already.", 0),
	}}
	for _, r := range q.Status.Results {
		by := r.ID
		if by == "" && r.Identity != nil {
			by = string(r.Identity.Raw)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: printable([]any{r.DisplayName, by, r.ManagedBy})})
	}
	return table, nil
}

// readiness returns the cells for the condition Ready.
func readiness(conditions []metav1.Condition) (ready, reason, message string) {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if c == nil {
		return string(metav1.ConditionUnknown), "", ""
	}
	return string(c.Status), c.Reason, c.Message
}

// readinessCells returns the cells for the readiness of an object. For an object that is being deleted but still works,
// the message says what it waits for.
func readinessCells(m metav1.Object, conditions []metav1.Condition) (ready, reason, message string) {
	ready, reason, message = readiness(conditions)
	if m.GetDeletionTimestamp() == nil {
		return ready, reason, message
	}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionInUse); c != nil {
		return ready, v1alpha1.ReasonTerminating, c.Message
	}
	return ready, v1alpha1.ReasonTerminating, "It is being deleted, and waits for its finalizers: " +
		strings.Join(m.GetFinalizers(), ", ") + "."
}

func summary(p *v1alpha1.Plan) string {
	s := p.Status.Summary
	switch {
	case s == nil:
		return "<none>"
	case s.Text != "":
		return s.Text
	}
	return fmt.Sprintf("+%d ~%d -/+%d -%d", s.Create, s.Update, s.Replace, s.Delete)
}

// approved returns "-" if there is nothing to decide.
func approved(p *v1alpha1.Plan) string {
	switch {
	case p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved:
		return "yes"
	case p.Status.Approval != nil:
		return "no"
	case p.Ended(), p.Status.StalledFor() == v1alpha1.ReasonPolicyDenied:
		return "-"
	case meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned):
		return "waiting"
	}
	return ""
}

func progress(p *v1alpha1.Plan) string {
	pr := p.Status.Progress
	if pr == nil {
		return ""
	}
	text := strconv.Itoa(int(pr.Done)) + "/" + strconv.Itoa(int(pr.Total+pr.Blocked))
	if pr.Blocked > 0 {
		text += fmt.Sprintf(" (%d blocked)", pr.Blocked)
	}
	if pr.Failed > 0 {
		text += fmt.Sprintf(" (%d failed)", pr.Failed)
	}
	return text
}

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
