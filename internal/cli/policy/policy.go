// Package policy is the verbs below policy.
package policy

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/history"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/policy"
)

// New returns the command policy.
func New(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Test plan policies",
		Example: `  kubectl hykube policy test -f policy.yaml --plan plan-x7k2d`,
		Args:    cobra.ArbitraryArgs,
		RunE:    session.Group(nil),
	}
	cmd.AddCommand(newPolicyTest(s))
	return cmd
}

type policyTestOptions struct {
	*session.Session
	files manifest.Flags
	plans []string
}

func newPolicyTest(s *session.Session) *cobra.Command {
	o := &policyTestOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "test -f PATH [--plan PLAN ...]",
		Short: "Evaluate the policies in files for existing plans",
		Long: `Evaluate the PlanPolicies and ClusterPlanPolicies in files for existing plans, and show which rules hold. The command
records nothing, and approves and refuses no plan. Without --plan it evaluates them for each plan of the namespace.

The rules see the plan as it is stored, with the approvals that it has. A ClusterPlanPolicy is evaluated if its
namespaceSelector selects the namespace. You need "get" on plans/changes; for rules about the labels of the namespace or earlier
plans also "get" on the namespace and "list" on planrecords.

A rule that depends on a value that is masked, or not known before the apply, is undecided here. The server knows masked
values, and evaluates the rule with them.

The command exits with 3 if a rule refuses a plan, and with 1 if a policy has an error.`,
		Example: `  kubectl hykube policy test -f policy.yaml --plan plan-x7k2d -n prod

  # for every plan of the namespace that the server still has
  kubectl hykube policy test -f policy.yaml -n prod`,
		Args: session.NoNames("--plan PLAN names the plans"),
		RunE: session.Run(o),
	}
	o.files.AddFilenames(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.plans, "plan", nil, "Plan to evaluate the policies for; repeatable")
	_ = cmd.RegisterFlagCompletionFunc("plan", planapi.Complete(s, planapi.Planned))
	return cmd
}

func (o *policyTestOptions) Validate() error {
	if !o.files.Given() {
		return errors.New("policy test: name the files of the policies with -f PATH")
	}
	return nil
}

func (o *policyTestOptions) Run(ctx context.Context) error {
	namespaced, cluster, err := o.policies(ctx)
	if err != nil {
		return err
	}
	plans, err := o.chosen(ctx)
	if err != nil {
		return err
	}
	var labels map[string]string
	if policy.UsesLabels(namespaced, cluster) { // a user may lack the right to read the namespace
		if labels, err = o.namespaceLabels(ctx); err != nil {
			return err
		}
	}
	set := policy.NewSet(namespaced, cluster, labels)
	var earlier []v1alpha1.PlanRecord
	if set.UsesEarlier() {
		if earlier, err = (&history.Options{Session: o.Session}).Records(ctx); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PLAN\tEFFECT\tRULE\tMESSAGE")
	refused := false
	for _, p := range plans {
		verdict, err := o.evaluate(ctx, set, p, labels, earlier)
		if err != nil {
			return err
		}
		for _, r := range verdict.Results {
			effect, message := string(r.Effect), r.Message
			if r.Undecided != nil {
				effect += " (undecided)"
				message = fmt.Sprintf("depends on values of %s that are masked, which the server knows, or not known before the apply", r.Undecided.List())
			}
			refused = refused || r.Effect == v1alpha1.PolicyDeny && r.Undecided == nil
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, effect, r.Rule, diff.Clean(message, false))
		}
		if len(verdict.Results) == 0 {
			fmt.Fprintf(w, "%s\t-\t-\tno rule matches\n", p.Name)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if refused {
		return exit.Silent(exit.Refused)
	}
	return nil
}

// policies reads the policies in the files.
func (o *policyTestOptions) policies(ctx context.Context) (namespaced []v1alpha1.PlanPolicy,
	cluster []v1alpha1.ClusterPlanPolicy, err error) {
	ms, err := manifest.Read(ctx, o.Session, &o.files)
	if err != nil {
		return nil, nil, err
	}
	var bad []error
	for _, m := range ms {
		decode := func(into any) field.ErrorList {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m.Object.Object, into,
				true); err != nil {
				return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())}
			}
			return nil
		}
		var errs field.ErrorList
		switch m.Object.GroupVersionKind() {
		case v1alpha1.SchemeGroupVersion.WithKind("PlanPolicy"):
			var p v1alpha1.PlanPolicy
			if errs = decode(&p); len(errs) == 0 {
				errs = policy.Validate(p.Spec, field.NewPath("spec"))
			}
			namespaced = append(namespaced, p)
		case v1alpha1.SchemeGroupVersion.WithKind("ClusterPlanPolicy"):
			var p v1alpha1.ClusterPlanPolicy
			if errs = decode(&p); len(errs) == 0 {
				errs = policy.Validate(p.Spec.PlanPolicySpec, field.NewPath("spec"))
			}
			cluster = append(cluster, p)
		default:
			errs = field.ErrorList{field.NotSupported(field.NewPath("kind"), m.Object.GetKind(),
				[]string{"PlanPolicy", "ClusterPlanPolicy"})}
		}
		for _, err := range errs {
			bad = append(bad, fmt.Errorf("%s: %s %q: %w", m.Where(), m.Object.GetKind(), m.Object.GetName(), err))
		}
	}
	return namespaced, cluster, errors.Join(bad...)
}

// chosen reads the plans of --plan. Without --plan, it reads all plans of the namespace that have changes.
func (o *policyTestOptions) chosen(ctx context.Context) ([]*v1alpha1.Plan, error) {
	var out []*v1alpha1.Plan
	for _, name := range o.plans {
		p, err := planapi.Get(ctx, o.Session, o.Namespace, name)
		if err != nil {
			return nil, err
		}
		if p.Status.Digest == "" {
			return nil, fmt.Errorf("plan %q has no changes to evaluate: its planning is still running, or failed",
				p.Name)
		}
		out = append(out, p)
	}
	if len(o.plans) > 0 {
		return out, nil
	}
	list, err := planapi.List(ctx, o.Session, o.Namespace)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Status.Digest != "" {
			out = append(out, &list[i])
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("namespace %q has no plans to evaluate; make one: kubectl hykube plan -n %s",
			o.Namespace, o.Namespace)
	}
	return out, nil
}

// namespaceLabels reads the labels of the namespace.
func (o *policyTestOptions) namespaceLabels(ctx context.Context) (map[string]string, error) {
	ns, err := o.Resource(session.Namespaces, "").Get(ctx, o.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read namespace %q: %w", o.Namespace, o.Explain(err))
	}
	return ns.GetLabels(), nil
}

func (o *policyTestOptions) evaluate(ctx context.Context, set *policy.Set, p *v1alpha1.Plan, labels map[string]string,
	earlier []v1alpha1.PlanRecord) (*policy.Verdict, error) {
	subject := set.NewSubject(p)
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return nil, err
		}
		if err := subject.Add(c, policy.Values{}); err != nil {
			return nil, err
		}
	}
	subject.NamespaceLabels, subject.Now = labels, time.Now()
	subject.Approvals = p.AllApprovals()
	for _, r := range earlier {
		if r.Plan.UID != p.UID && (r.RequestedAt == nil || !p.CreationTimestamp.Before(r.RequestedAt)) {
			subject.Earlier = append(subject.Earlier, r)
		}
	}
	return set.Evaluate(ctx, subject)
}
