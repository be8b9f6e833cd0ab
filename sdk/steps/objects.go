package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
)

// fieldManager owns the fields that Record writes.
const fieldManager = "hykube-workflow"

// maxAddresses is the maximum number of addresses in the result of Drift.
const maxAddresses = 1000

// record writes and deletes objects. It is idempotent, so a second attempt has no further effect.
func (s *Steps) record(ctx context.Context, o RecordOptions) (out RecordResult, err error) {
	if err := withoutSecrets(o.Objects); err != nil {
		return out, err
	}
	ctx, done := withHeartbeats(ctx, "record")
	defer done()
	for i := range o.Objects {
		object := &o.Objects[i]
		ref := ObjectRef{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(),
			Namespace: object.GetNamespace()}
		client, err := s.resource(ref, o.Namespace)
		if err != nil {
			return out, explain("record "+ref.String(), ended(ctx, err))
		}
		written, err := client.Apply(ctx, object.GetName(), object,
			metav1.ApplyOptions{FieldManager: fieldManager, Force: o.Force})
		if err != nil {
			return out, explain("record "+ref.String(), ended(ctx, err))
		}
		ref.Namespace = written.GetNamespace()
		out.Objects = append(out.Objects,
			RecordedObject{ObjectRef: ref, UID: written.GetUID(), Generation: written.GetGeneration()})
	}
	for _, ref := range o.Delete {
		client, err := s.resource(ref, o.Namespace)
		if err == nil {
			err = client.Delete(ctx, ref.Name, metav1.DeleteOptions{})
		}
		if err == nil {
			_, err = client.Get(ctx, ref.Name, metav1.GetOptions{})
		}
		switch {
		case err == nil:
			out.Remaining = append(out.Remaining, ref)
		case !apierrors.IsNotFound(err):
			return out, explain("delete "+ref.String(), ended(ctx, err))
		}
	}
	return out, nil
}

// resource returns the client for the kind and the namespace of an object.
func (s *Steps) resource(ref ObjectRef, namespace string) (dynamic.ResourceInterface, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, failure(Invalid, "%s: apiVersion %q: %v", ref, ref.APIVersion, err)
	}
	kind := gv.WithKind(ref.Kind).GroupKind()
	mapping, err := s.mapper.RESTMapping(kind, gv.Version)
	if meta.IsNoMatchError(err) { // the server may have installed a provider since the last discovery
		s.mapper.Reset()
		mapping, err = s.mapper.RESTMapping(kind, gv.Version)
	}
	if err != nil {
		return nil, err
	}
	client := s.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return client, nil
	}
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return client.Namespace(s.in(namespace)), nil
}

// awaitReady waits until the object is ready for its current generation.
func (s *Steps) awaitReady(ctx context.Context, o AwaitReadyOptions) error {
	what := "wait until " + o.Object.String() + " is ready"
	ctx, done := withHeartbeats(ctx, o.Object.String())
	defer done()
	client, err := s.resource(o.Object, o.Namespace)
	if err != nil {
		return explain(what, ended(ctx, err))
	}
	_, err = until(ctx, o.Object.Name, source[*unstructured.Unstructured]{
		get: func(ctx context.Context) (*unstructured.Unstructured, error) {
			return client.Get(ctx, o.Object.Name, metav1.GetOptions{})
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, readiness)
	return explain(what, err)
}

// readiness reports whether an object is ready. It returns an error if the object is stalled.
func readiness(object *unstructured.Unstructured) (bool, error) {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if observed != object.GetGeneration() {
		return false, nil
	}
	if message, ok := conditionTrue(object, v1alpha1.ConditionStalled); ok {
		return false, failure(Stalled, "%s/%s is stalled: %s", object.GetKind(), object.GetName(), message)
	}
	_, ready := conditionTrue(object, v1alpha1.ConditionReady)
	return ready, nil
}

// conditionTrue returns the message of a condition that is True.
func conditionTrue(object *unstructured.Unstructured, kind string) (message string, ok bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["status"] == string(metav1.ConditionTrue) {
			message, _ := c["message"].(string)
			return message, true
		}
	}
	return "", false
}

// drift makes a refresh-only plan, reads its changes and deletes it.
func (s *Steps) drift(ctx context.Context, o DriftOptions) (out DriftResult, err error) {
	spec := v1alpha1.PlanSpec{Selector: o.Selector, Targets: o.Targets, RefreshOnly: true, Refresh: v1alpha1.RefreshAll,
		ReadBudget: o.Budget}
	p := planOfStep(activity.GetInfo(ctx), s.in(o.Namespace), spec)
	ctx, done := withHeartbeats(ctx, "plan "+p.Namespace+"/"+p.Name)
	defer done()
	if p, err = s.makePlan(ctx, p); err != nil {
		return out, err
	}
	if out, err = s.driftOf(ctx, p); err != nil {
		return out, explain("look for drift", ended(ctx, err))
	}
	err = s.hykube.Delete().Namespace(p.Namespace).Resource("plans").Name(p.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return out, explain(fmt.Sprintf("delete plan %q", p.Name), ended(ctx, err))
	}
	return out, nil
}

func (s *Steps) driftOf(ctx context.Context, p *v1alpha1.Plan) (out DriftResult, err error) {
	out.ReadTo = p.Status.ReadTo
	if p.Status.Summary == nil || p.Status.Summary.Drifted == 0 {
		return out, nil
	}
	out.Drifted = int(p.Status.Summary.Drifted)
	next := ""
	for len(out.Addresses) < maxAddresses {
		request := s.hykube.Get().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("changes").Param(
			"limit", "500")
		if next != "" {
			request = request.Param("continue", next)
		}
		page := &v1alpha1.PlanChangeList{}
		if err := request.Do(ctx).Into(page); err != nil {
			return out, err
		}
		for _, c := range page.Items {
			if len(c.Drift) > 0 && len(out.Addresses) < maxAddresses {
				out.Addresses = append(out.Addresses, c.Address)
			}
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	return out, nil
}

// outputs reads the outputs of a stack and evaluates expressions.
func (s *Steps) outputs(ctx context.Context, o OutputsOptions) (out OutputsResult, err error) {
	ctx, done := withHeartbeats(ctx, "outputs")
	defer done()
	out.Values = map[string]string{}
	if o.Stack != "" {
		stack := &v1alpha1.Stack{}
		if err := s.hykube.Get().Namespace(s.in(o.Namespace)).Resource("stacks").Name(o.Stack).Do(ctx).Into(
			stack); err != nil {
			return out, explain(fmt.Sprintf("read outputs of stack %q", o.Stack), ended(ctx, err))
		}
		for _, v := range stack.Status.Outputs {
			if v.Sensitive {
				out.Sensitive = append(out.Sensitive, v.Name)
				continue
			}
			out.Values[v.Name] = v.Value
		}
	}
	for name, expression := range o.Expressions {
		if err := s.evaluate(ctx, s.in(o.Namespace), name, expression, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// evaluate adds the value of an expression to out. The expression is encoded as JSON, because the server answers in
// HCL.
func (s *Steps) evaluate(ctx context.Context, namespace, name, expression string, out *OutputsResult) error {
	what := fmt.Sprintf("evaluate %q", name)
	inner := strings.TrimSpace(expression)
	if whole, ok := strings.CutPrefix(inner, "${"); ok && strings.HasSuffix(whole, "}") {
		inner = strings.TrimSuffix(whole, "}")
	}
	e := &v1alpha1.Evaluation{Spec: v1alpha1.EvaluationSpec{Expression: "jsonencode(" + inner + ")"}}
	if err := s.hykube.Post().Namespace(namespace).Resource("evaluations").Body(e).Do(ctx).Into(e); err != nil {
		return explain(what, ended(ctx, err))
	}
	for _, d := range e.Status.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			return failure(Invalid, "%s: %s", what, d.Summary) // the detail may have values
		}
	}
	if e.Status.Sensitive {
		out.Sensitive = append(out.Sensitive, name)
		return nil
	}
	text, err := strconv.Unquote(e.Status.Value)
	if err != nil { // "(known after apply)"
		out.Unknown = append(out.Unknown, name)
		return nil
	}
	value := strings.NewReplacer("$${", "${", "%%{", "%{").Replace(text)
	if !json.Valid([]byte(value)) {
		return temporal.NewApplicationError(what+": the server did not return JSON", Invalid)
	}
	out.Values[name] = value
	return nil
}
