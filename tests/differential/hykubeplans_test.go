package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/plan"
)

func (y *hykube) planAndApply(ctx context.Context, s *step, out *outcome) error {
	p := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "step-", Namespace: y.namespace},
		Spec: v1alpha1.PlanSpec{
			Destroy: s.Destroy, RefreshOnly: s.RefreshOnly, Refresh: v1alpha1.RefreshAll,
			Targets: y.addresses(s.Target), Exclude: y.addresses(s.Exclude), Replace: y.addresses(s.Replace),
		},
	}
	if s.NoRefresh {
		p.Spec.Refresh = v1alpha1.RefreshNone
	}
	plans := "/apis/hykube.io/v1alpha1/namespaces/" + y.namespace + "/plans"
	p.APIVersion, p.Kind = "hykube.io/v1alpha1", "Plan"
	err := y.send(ctx, "POST", plans, p)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		out.PlanError = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	path := plans + "/" + p.Name
	if err := y.await(ctx, p, planned); err != nil {
		return err
	}
	if failed := planFailure(p); failed != "" {
		out.PlanError = failed
		return nil
	}
	text, err := y.show(ctx, p.Name)
	if err != nil {
		return err
	}
	if out.Plan, err = readPlan(text); err != nil {
		return err
	}
	if refusals := y.refusals(ctx, path); refusals != "" {
		// Terraform makes no plan if one change cannot be planned. Hykube leaves that change out.
		out.PlanError, out.Plan = refusals, nil
		return nil
	}
	if out.unexplained, err = y.unexplained(ctx, path); err != nil {
		return err
	}
	if r := reason(p, v1alpha1.ConditionReady); s.PlanOnly || r == v1alpha1.ReasonNoChanges || r == v1alpha1.ReasonDeferred {
		return nil
	}
	if err := y.cloud.faults(ctx, s.ApplyFaults); err != nil {
		return err
	}
	p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: p.Status.Digest}
	body := &v1alpha1.Plan{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}, Status: v1alpha1.PlanStatus{Approval: p.Status.Approval}}
	if err := y.send(ctx, "PUT", path+"/approval", body); err != nil {
		return fmt.Errorf("approve plan: %w", err)
	}
	if err := y.await(ctx, p, finished); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApplied) {
		out.ApplyError = conditions(p) + "\n" + y.refusals(ctx, path)
		out.undone, err = y.undone(ctx, path)
	}
	return err
}

// unexplained returns the replaces of which the plan's text names no cause.
func (y *hykube) unexplained(ctx context.Context, path string) (out []string, err error) {
	list, err := y.changes(ctx, path)
	for _, c := range list {
		if c.Action != v1alpha1.ActionReplace {
			continue
		}
		switch text := diff.Change(&c, diff.Style{}); {
		case slices.Contains([]string{plan.ReasonTainted, plan.ReasonReplaceRequested, plan.ReasonTriggered}, c.ActionReason):
		case !strings.Contains(text, "forces replacement"), diff.ReplaceCause(&c) == string(c.Action):
			out = append(out, text)
		}
	}
	return out, err
}

// undone returns the changes that were not made, by address.
func (y *hykube) undone(ctx context.Context, path string) (map[string]v1alpha1.ChangeState, error) {
	list, err := y.changes(ctx, path)
	out := map[string]v1alpha1.ChangeState{}
	for _, c := range list {
		if c.State != v1alpha1.ChangeDone && c.Deposed == "" {
			out[strings.TrimPrefix(c.Address, rootPrefix)] = c.State
		}
	}
	return out, err
}

func (y *hykube) changes(ctx context.Context, path string) ([]v1alpha1.PlanChange, error) {
	var list v1alpha1.PlanChangeList
	data, err := y.fixture.Client().Get().AbsPath(path, "changes").Param("limit", "500").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	return list.Items, err
}

// refusals returns the errors of single changes.
func (y *hykube) refusals(ctx context.Context, path string) string {
	list, err := y.changes(ctx, path)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, c := range list {
		for _, d := range c.Diagnostics {
			if d.Severity == v1alpha1.SeverityError {
				out = append(out, fmt.Sprintf("%s: %s: %s %s", c.Address, d.Summary, d.Detail, d.Attribute))
			}
		}
		switch {
		case c.Blocked != "":
			out = append(out, c.Address+": "+c.Blocked)
		case c.Message != "" && len(c.Diagnostics) == 0:
			out = append(out, c.Address+": "+c.Message)
		}
	}
	return strings.Join(out, "\n")
}

// send sends an object and decodes the response.
func (y *hykube) send(ctx context.Context, verb, path string, p *v1alpha1.Plan) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	answer := y.fixture.Client().Verb(verb).AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	if err := answer.Error(); err != nil {
		return err // Raw would not return the server's own message
	}
	data, err := answer.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, p)
}

// show prints the plan as the plugin does.
func (y *hykube) show(ctx context.Context, plan string) ([]byte, error) {
	cmd := y.fixture.Command(ctx, "kubectl-hykube", "show", plan, "-n", y.namespace, "-o", "terraform-json")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl hykube show %s: %w\n%s", plan, err, errs.String())
	}
	return bytes.ReplaceAll(text, []byte(rootPrefix), nil), nil
}

// await watches the plan until done returns true.
func (y *hykube) await(ctx context.Context, p *v1alpha1.Plan, done func(*v1alpha1.Plan) bool) error {
	watching, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	for {
		ended, err := y.watch(watching, p, done)
		switch {
		case ended || ctx.Err() != nil:
			return ctx.Err()
		case watching.Err() != nil:
			return fmt.Errorf("plan %s/%s is not done after %s: %s", p.Namespace, p.Name, planLimit, conditions(p))
		case err != nil:
			return err
		}
	}
}

// watch reads the plan, and each change of it, until done returns true. ended is false if the server ends the watch before.
func (y *hykube) watch(ctx context.Context, p *v1alpha1.Plan, done func(*v1alpha1.Plan) bool) (ended bool, err error) {
	path := "/apis/hykube.io/v1alpha1/namespaces/" + y.namespace + "/plans"
	stream, err := y.fixture.Client().Get().AbsPath(path).Param("watch", "true").Param("fieldSelector", "metadata.name="+p.Name).Stream(ctx)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	for events := json.NewDecoder(stream); ; {
		var event struct {
			Type   watch.EventType
			Object v1alpha1.Plan
		}
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case event.Type != watch.Added && event.Type != watch.Modified:
			return false, fmt.Errorf("watch plan %s/%s: %s", p.Namespace, p.Name, event.Type)
		}
		if *p = event.Object; done(p) {
			return true, nil
		}
	}
}

func reason(p *v1alpha1.Plan, kind string) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// planned and finished report whether the plan waits for a user or has ended.
func planned(p *v1alpha1.Plan) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPlanned)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonPlanFailed) || finished(p)
}

func finished(p *v1alpha1.Plan) bool {
	applied := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionApplied)
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled) ||
		applied != nil && applied.Status == metav1.ConditionFalse && p.Status.FinishedAt != nil
}

// planFailure returns the reason why a plan failed; "" if it did not.
func planFailure(p *v1alpha1.Plan) string {
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) && !slices.ContainsFunc(p.Status.Diagnostics, func(d v1alpha1.Diagnostic) bool {
		return d.Severity == v1alpha1.SeverityError
	}) {
		return ""
	}
	out := []string{conditions(p)}
	for _, d := range p.Status.Diagnostics {
		out = append(out, fmt.Sprintf("%s: %s: %s: %s %s", d.Severity, d.Address, d.Summary, d.Detail, d.Attribute))
	}
	return strings.Join(out, "\n")
}

func conditions(p *v1alpha1.Plan) string {
	var out []string
	for _, c := range p.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "; ")
}
