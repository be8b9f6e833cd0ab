package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// planLimit is the maximum time to make a plan, or to apply it.
const planLimit = 2 * time.Minute

// hykube is Hykube's side of a story: a namespace on the shared server.
type hykube struct {
	fixture   *fixture
	cloud     *cloud
	namespace string
	before    config
	// known lists all addresses that the configuration has had.
	known map[string]bool
}

func newHykube(ctx context.Context, f *fixture, namespace string) (*hykube, error) {
	c, err := startCloud(filepath.Join(f.Dir, "clouds", namespace))
	if err != nil {
		return nil, err
	}
	y := &hykube{fixture: f, cloud: c, namespace: namespace, known: map[string]bool{}}
	err = y.write(ctx, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	for _, provider := range sorted(f.plugins) {
		// Objects that name no ProviderConfig use the one with the provider's name.
		with := providerConfig(provider, c.Address, filepath.Join(f.Dir, "clouds", namespace))
		if err != nil || len(with) == 0 {
			continue
		}
		err = y.write(ctx, "/apis/hykube.io/v1alpha1/namespaces/"+namespace+"/providerconfigs", map[string]any{
			"apiVersion": "hykube.io/v1alpha1", "kind": "ProviderConfig", "metadata": map[string]any{"name": provider},
			"spec": map[string]any{"provider": provider, "config": with},
		})
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return y, nil
}

// write records an object as kubectl apply --server-side does.
func (y *hykube) write(ctx context.Context, collection string, object map[string]any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	name := object["metadata"].(map[string]any)["name"].(string)
	return y.fixture.Client().Patch(types.ApplyPatchType).AbsPath(collection, name).Param("fieldManager", "differential").
		Param("force", "true").Param("fieldValidation", "Strict").Body(body).Do(ctx).Error()
}

func (y *hykube) collection(ctx context.Context, at string) (string, error) {
	a, err := parseAddress(at)
	if err != nil {
		return "", err
	}
	plural, err := y.fixture.plural(ctx, a.provider(), a.kind())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/apis/%s.hykube.io/v1/namespaces/%s/%s", a.provider(), y.namespace, plural), nil
}

// play runs a step.
func (y *hykube) play(ctx context.Context, s *step, c config) (*outcome, error) {
	if err := y.cloud.prepare(ctx, s); err != nil {
		return nil, err
	}
	out := &outcome{}
	refused, err := y.record(ctx, s, c)
	switch {
	case err != nil:
		return nil, err
	case refused != "":
		// Hykube cannot plan an object that it cannot record.
		out.PlanError = refused
	default:
		if err := y.planAndApply(ctx, s, out); err != nil {
			return nil, err
		}
	}
	if out.States, err = y.states(ctx); err != nil {
		return nil, err
	}
	return out, y.cloud.observe(ctx, out)
}

// record records the configuration, and deletes the objects that it no longer has. refused is the server's error.
func (y *hykube) record(ctx context.Context, s *step, c config) (refused string, err error) {
	defer func() { y.before = c }()
	var all []string
	refuse := func(at string, err error) error {
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err) {
			all = append(all, at+": "+err.Error())
			return nil
		}
		return fmt.Errorf("%s: %w", at, err)
	}
	for kind, sets := range map[string]map[string]map[string]string{"ConfigMap": c.ConfigMaps, "Secret": c.Secrets} {
		for name, keys := range sets {
			data := "data"
			if kind == "Secret" {
				data = "stringData"
			}
			object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, data: keys}
			if err := y.write(ctx, "/api/v1/namespaces/"+y.namespace+"/"+strings.ToLower(kind)+"s", object); err != nil {
				return "", fmt.Errorf("write %s %q: %w", kind, name, err)
			}
		}
	}
	for _, at := range c.addresses() {
		y.known[at] = true
		collection, err := y.collection(ctx, at)
		if err != nil {
			return "", err
		}
		if c.Repeat[at] != nil {
			collection = y.sets()
		}
		object, err := c.object(at)
		if err != nil {
			return "", err
		}
		if err := y.write(ctx, collection, object); err != nil {
			if err := refuse(at, err); err != nil {
				return "", err
			}
		}
	}
	if len(all) > 0 {
		return strings.Join(all, "\n"), nil
	}
	for _, at := range s.Forget {
		object, err := y.before.object(at)
		if err != nil {
			return "", err
		}
		lifecycle := maps.Clone(y.before.Lifecycle[at])
		if lifecycle == nil {
			lifecycle = map[string]any{}
		}
		lifecycle["destroy"] = false
		object["lifecycle"] = lifecycle
		collection, err := y.collection(ctx, at)
		if err == nil {
			err = y.write(ctx, collection, object)
		}
		if err != nil {
			if err := refuse(at, err); err != nil {
				return "", err
			}
		}
	}
	for at := range y.known {
		_, wanted := c.Resources[at]
		a, err := parseAddress(at)
		if err != nil {
			return "", err
		}
		collection, err := y.collection(ctx, at)
		if err != nil {
			return "", err
		}
		paths := map[string]bool{collection + "/" + a.name: wanted && c.Repeat[at] == nil, y.sets() + "/" + setName(a): wanted && c.Repeat[at] != nil}
		for path, stays := range paths {
			if stays {
				continue
			}
			if err := y.fixture.Client().Delete().AbsPath(path).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
				if err := refuse(at, err); err != nil {
					return "", err
				}
			}
		}
	}
	for verb, addresses := range map[string][]string{"taint": s.Taint, "untaint": s.Untaint} {
		for _, at := range addresses {
			if err := y.taint(ctx, verb, at); err != nil {
				return "", err
			}
		}
	}
	return strings.Join(all, "\n"), nil
}

func (y *hykube) taint(ctx context.Context, verb, at string) error {
	a, err := parseAddress(at)
	if err != nil {
		return err
	}
	collection, err := y.collection(ctx, at)
	if err != nil {
		return err
	}
	req := y.fixture.Client().Post()
	if verb == "untaint" {
		req = y.fixture.Client().Delete()
	}
	if err := req.AbsPath(collection, a.name, "taint").Body([]byte("{}")).Do(ctx).Error(); err != nil {
		return fmt.Errorf("%s %s: %w", verb, at, err)
	}
	return nil
}

func (y *hykube) planAndApply(ctx context.Context, s *step, out *outcome) error {
	p := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "step-", Namespace: y.namespace},
		Spec: v1alpha1.PlanSpec{
			Destroy: s.Destroy, RefreshOnly: s.RefreshOnly, Refresh: v1alpha1.RefreshAll,
			Targets: s.Target, Exclude: s.Exclude, Replace: s.Replace,
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
	if err := y.await(ctx, path, p, planned); err != nil {
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
	if err := y.await(ctx, path, p, finished); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApplied) {
		out.ApplyError = conditions(p) + "\n" + y.refusals(ctx, path)
		out.undone, err = y.undone(ctx, path)
	}
	return err
}

// undone returns the changes that were not made, by address.
func (y *hykube) undone(ctx context.Context, path string) (map[string]v1alpha1.ChangeState, error) {
	list, err := y.changes(ctx, path)
	out := map[string]v1alpha1.ChangeState{}
	for _, c := range list {
		if c.State != v1alpha1.ChangeDone && c.Deposed == "" {
			out[c.Address] = c.State
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
	return text, nil
}

// await reads the plan until done returns true.
func (y *hykube) await(ctx context.Context, path string, p *v1alpha1.Plan, done func(*v1alpha1.Plan) bool) error {
	deadline := time.Now().Add(planLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := y.fixture.Client().Get().AbsPath(path).Do(ctx).Raw()
		if err != nil {
			return err
		}
		*p = v1alpha1.Plan{}
		if err := json.Unmarshal(data, p); err != nil {
			return err
		}
		if done(p) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("plan %s/%s is not done after %s: %s", p.Namespace, p.Name, planLimit, conditions(p))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
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

// sets is the path of the ResourceSets.
func (y *hykube) sets() string {
	return "/apis/hykube.io/v1alpha1/namespaces/" + y.namespace + "/resourcesets"
}

// instances are the addresses of the instances of an address; none when it is not repeated.
func (y *hykube) instances(ctx context.Context, at string) (out []string, err error) {
	a, err := parseAddress(at)
	if err != nil {
		return nil, err
	}
	data, err := y.fixture.Client().Get().AbsPath(y.sets(), setName(a), "instances").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var list v1alpha1.ResourceSetInstanceList
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	for _, item := range list.Items {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(item.Raw, &o); err != nil {
			return nil, err
		}
		out = append(out, a.typ+"."+o.Name)
	}
	return out, err
}

// states reads the records of all addresses that the configuration has had.
func (y *hykube) states(ctx context.Context) (map[string]*state, error) {
	out := map[string]*state{}
	var all []string
	for at := range y.known {
		instances, err := y.instances(ctx, at)
		if err != nil {
			return nil, err
		}
		all = append(append(all, at), instances...)
	}
	for _, at := range all {
		a, err := parseAddress(at)
		if err != nil {
			return nil, err
		}
		if a.mode != "managed" && a.mode != "data" {
			continue
		}
		collection, err := y.collection(ctx, at)
		if err != nil {
			return nil, err
		}
		data, err := y.fixture.Client().Get().AbsPath(collection, a.name, "state").Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read state of %s: %w", at, err)
		}
		type instance struct {
			Attributes   map[string]any
			Tainted      bool
			Dependencies []string
		}
		var read struct {
			instance
			Deposed []instance
		}
		if err := decode(data, &read); err != nil {
			return nil, fmt.Errorf("read state of %s: %w", at, err)
		}
		if read.Attributes != nil {
			out[v1alpha1.ShownName(at)] = &state{Attributes: read.Attributes, Tainted: read.Tainted, Dependencies: read.Dependencies}
		}
		for i, d := range read.Deposed {
			out[fmt.Sprintf("%s deposed %d", at, i+1)] = &state{Attributes: d.Attributes, Tainted: d.Tainted, Dependencies: d.Dependencies}
		}
	}
	for _, s := range out {
		// Terraform's states name no keys: a reference to an instance depends on all of them.
		for i, d := range s.Dependencies {
			s.Dependencies[i], _, _ = strings.Cut(d, "[")
		}
		slices.Sort(s.Dependencies)
		s.Dependencies = slices.Compact(s.Dependencies)
	}
	return out, nil
}
