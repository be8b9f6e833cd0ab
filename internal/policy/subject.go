package policy

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/terraformjson"
)

// Subject is a plan and the other data that rules can use.
type Subject struct {
	plan *v1alpha1.Plan
	// changes have the values without masks, and marks for unknown values. shown have masked values, for messages. Both
	// have no change if no rule uses the plan.
	changes, shown *terraformjson.Plan
	usesPlan       bool
	// mark and index: a string that starts with mark is an unknown value of the change with the index that follows.
	mark string
	// addresses has the addresses of the changes with unknown values, by their indexes.
	addresses map[int32]string
	counts    v1alpha1.PlanSummary
	providers []map[string]string

	// Requester is the user who created the plan, with the groups that he has now.
	Requester *v1alpha1.Identity
	// Contributors are the users who wrote what the changes follow from, with the groups that they have now.
	Contributors []v1alpha1.Identity
	// Approvals are the approvals of the plan, or those that it would have, with the groups that the users have now.
	Approvals []v1alpha1.PlanApproval
	// NamespaceLabels are the labels of the plan's namespace.
	NamespaceLabels map[string]string
	// Earlier are records of earlier plans of the namespace, latest first.
	Earlier []v1alpha1.PlanRecord
	// Now is the time of the evaluation.
	Now time.Time
}

// Values are the values of a change without masks. A nil one is that of the change itself. If that is masked, rules
// cannot know it.
type Values struct {
	Before, After, Recorded *runtime.RawExtension
	// AfterUnknown says what of After is unknown; nil for what the change says.
	AfterUnknown *runtime.RawExtension
	// Type is the canonical name of the type: a provider may have a deprecated name for the same type. Empty for that
	// of the change.
	Type string
}

// NewSubject returns the subject of a plan without its changes, for the rules of the set.
func (s *Set) NewSubject(p *v1alpha1.Plan) *Subject {
	subject := &Subject{plan: p, changes: terraformjson.New(p, false, nil), shown: terraformjson.New(p, false, nil),
		usesPlan: s.UsesPlan(),
		mark:     "unknown " + rand.Text() + " ", addresses: map[int32]string{}, Requester: p.Status.RequestedBy}
	for _, c := range p.Status.Contributors {
		if !c.More {
			subject.Contributors = append(subject.Contributors, c.Identity)
		}
	}
	return subject
}

// Add adds a change of the plan.
func (s *Subject) Add(c *v1alpha1.PlanChange, v Values) error {
	s.counts.Count(c)
	if c.Action != v1alpha1.ActionNoOp && c.Provider != "" &&
		!slices.ContainsFunc(s.providers, func(p map[string]string) bool { return p["source"] == c.Provider }) {
		s.providers = append(s.providers,
			map[string]string{"source": c.Provider, "name": terraformjson.ProviderName(c.Object)})
	}
	if !s.usesPlan {
		return nil
	}
	shown := *c
	shown.Type = cmp.Or(v.Type, c.Type)
	s.shown.Add(&shown)
	real := shown
	mark := s.mark + strconv.Itoa(int(c.Index))
	for _, part := range []struct {
		to              **runtime.RawExtension
		value           *runtime.RawExtension
		masked, unknown *runtime.RawExtension
	}{
		{&real.Before, v.Before, c.BeforeSensitive, nil},
		{&real.After, v.After, c.AfterSensitive, cmp.Or(v.AfterUnknown, c.AfterUnknown)},
		{&real.Recorded, v.Recorded, c.RecordedSensitive, nil},
	} {
		value, masked, unknown := *part.to, part.masked, part.unknown
		if part.value != nil {
			value, masked = part.value, nil
		}
		for _, flags := range []*runtime.RawExtension{masked, unknown} {
			marked, err := withFlags(value, flags, mark)
			if err != nil {
				return fmt.Errorf("convert values of %s: %w", c.Address, err)
			}
			if marked != value {
				value, s.addresses[c.Index] = marked, c.Address
			}
		}
		*part.to = value
	}
	s.changes.Add(&real)
	return nil
}

// unmark replaces the marks in a document by unknown values.
func (s *Subject) unmark(v any) any {
	switch v := v.(type) {
	case string:
		if index, ok := strings.CutPrefix(v, s.mark); ok {
			if i, err := strconv.ParseInt(index, 10, 32); err == nil {
				return unknownOf(int32(i))
			}
		}
	case map[string]any:
		for k, e := range v {
			if changed := s.unmark(e); isUnknown(changed) {
				v[k] = changed
			}
		}
	case []any:
		for i, e := range v {
			if changed := s.unmark(e); isUnknown(changed) {
				v[i] = changed
			}
		}
	}
	return v
}

func isUnknown(v any) bool {
	_, ok := v.(*types.Unknown)
	return ok
}

// undecided names the changes whose unknown values a rule depends on.
func (s *Subject) undecided(indexes []int32) *v1alpha1.PlanPolicyUndecided {
	out := &v1alpha1.PlanPolicyUndecided{}
	for _, i := range indexes {
		if len(out.Addresses) == maxUndecided {
			out.More++
			continue
		}
		out.Addresses = append(out.Addresses, s.addresses[i])
	}
	return out
}

// variables returns the values of the variables in expressions, with one of the two forms of the plan.
func (s *Subject) variables(changes *terraformjson.Plan) (map[string]any, error) {
	plan, err := changes.Values()
	if err != nil {
		return nil, err
	}
	if changes == s.changes && len(s.addresses) > 0 {
		s.unmark(plan)
	}
	contributors := make([]any, 0, len(s.Contributors))
	for i := range s.Contributors {
		contributors = append(contributors, identity(&s.Contributors[i]))
	}
	plan["contributors"] = contributors
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
		"plan": plan, "spec": spec, "requester": identity(s.Requester), "approvers": approvers,
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
		"create": int64(s.Create), "update": int64(s.Update), "replace": int64(s.Replace), "delete": int64(s.Delete),
		"import": int64(s.Import),
		"move":   int64(s.Move), "forget": int64(s.Forget), "read": int64(s.Read), "invoke": int64(s.Invoke),
		"drifted": int64(s.Drifted),
		"removed": int64(s.Delete) + int64(s.Replace) + int64(s.Forget),
	}
}
