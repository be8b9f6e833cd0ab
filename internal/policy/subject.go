package policy

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/terraformjson"
)

// Subject is a plan and the other data that rules can use.
type Subject struct {
	plan      *v1alpha1.Plan
	changes   *terraformjson.Plan
	counts    v1alpha1.PlanSummary
	providers []map[string]string

	// Approvals are the approvals of the plan, or those that it would have.
	Approvals []v1alpha1.PlanApproval
	// NamespaceLabels are the labels of the plan's namespace.
	NamespaceLabels map[string]string
	// Earlier are records of earlier plans of the namespace, latest first.
	Earlier []v1alpha1.PlanRecord
	// Now is the time of the evaluation.
	Now time.Time
}

// NewSubject returns the subject of a plan without its changes.
func NewSubject(p *v1alpha1.Plan) *Subject {
	return &Subject{plan: p, changes: terraformjson.New(p, false, nil)}
}

// Add adds a change of the plan.
func (s *Subject) Add(c *v1alpha1.PlanChange) {
	s.changes.Add(c)
	s.counts.Count(c)
	if c.Action == v1alpha1.ActionNoOp || c.Provider == "" {
		return
	}
	if !slices.ContainsFunc(s.providers, func(p map[string]string) bool { return p["source"] == c.Provider }) {
		s.providers = append(s.providers, map[string]string{"source": c.Provider, "name": terraformjson.ProviderName(c.Object)})
	}
}

// variables returns the values of the variables in expressions.
func (s *Subject) variables() (map[string]any, error) {
	plan, err := s.changes.Values()
	if err != nil {
		return nil, err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.plan.Spec)
	if err != nil {
		return nil, fmt.Errorf("convert spec of plan %q: %w", s.plan.Name, err)
	}
	earlier := make([]any, 0, len(s.Earlier))
	for i := range s.Earlier {
		record, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Earlier[i])
		if err != nil {
			return nil, fmt.Errorf("convert record of plan %q: %w", s.Earlier[i].Plan.Name, err)
		}
		earlier = append(earlier, record)
	}
	approvers := make([]any, 0, len(s.Approvals))
	for _, a := range s.Approvals {
		approvers = append(approvers, identity(a.By))
	}
	labels := map[string]any{}
	for k, v := range s.NamespaceLabels {
		labels[k] = v
	}
	return map[string]any{
		"plan": plan, "spec": spec, "requester": identity(s.plan.Status.RequestedBy), "approvers": approvers,
		"counts": counts(s.counts), "providers": s.providers, "earlier": earlier, "now": s.Now,
		"namespaceObject": map[string]any{"metadata": map[string]any{"name": s.plan.Namespace, "labels": labels}},
	}, nil
}

func identity(who *v1alpha1.Identity) map[string]any {
	if who == nil {
		who = &v1alpha1.Identity{}
	}
	groups := make([]any, len(who.Groups))
	for i, g := range who.Groups {
		groups[i] = g
	}
	return map[string]any{"username": who.Username, "groups": groups}
}

// counts returns every count of a summary, including those that are 0.
func counts(s v1alpha1.PlanSummary) map[string]int64 {
	return map[string]int64{
		"create": int64(s.Create), "update": int64(s.Update), "replace": int64(s.Replace), "delete": int64(s.Delete), "import": int64(s.Import),
		"move": int64(s.Move), "forget": int64(s.Forget), "read": int64(s.Read), "invoke": int64(s.Invoke), "drifted": int64(s.Drifted),
	}
}
