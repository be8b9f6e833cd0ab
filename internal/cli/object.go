package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/suggest"
)

// objects holds the common options of verbs that name single objects.
type objects struct {
	*session
	targets []target
	output  string
}

// read parses the names in the arguments.
func (o *objects) read(verb string, args []string, modes ...v1alpha1.Mode) error {
	for _, a := range args {
		t, err := parseTarget(a)
		if err == nil {
			err = t.only(modes...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		o.targets = append(o.targets, t)
	}
	return o.connect()
}

// find returns the target with its canonical name, its kind and its namespace. For example, it accepts the plural in
// sim-networks/main, whose address is sim_network.main.
func (s *session) find(ctx context.Context, t target) (target, kind, string, error) {
	ns, err := s.namespaceOf(t)
	if err != nil {
		return t, kind{}, "", err
	}
	k, err := s.kindOf(ctx, t)
	if err == nil {
		t.mode, t.typ = v1alpha1.ParseKind(k.kind)
	}
	return t, k, ns, err
}

// eachTarget calls do for each target. It continues after errors.
func (o *objects) eachTarget(do func(target) error) error {
	var errs []error
	for _, t := range o.targets {
		if err := do(t); err != nil {
			errs = append(errs, err)
		}
	}
	return joinExit(errs)
}

// post calls a subresource of an object that needs only the object's name.
func (s *session) post(ctx context.Context, k kind, namespace, name, subresource string) error {
	return s.postUID(ctx, k, namespace, name, "", subresource)
}

// postUID is post for the object with a UID.
func (s *session) postUID(ctx context.Context, k kind, namespace, name string, uid types.UID, subresource string) error {
	u := &unstructured.Unstructured{}
	u.SetUID(uid)
	u.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	_, err := s.resource(k.gvr, namespace).Create(ctx, u, metav1.CreateOptions{}, subresource)
	return err
}

// namespaceOf returns the namespace of a target.
func (s *session) namespaceOf(t target) (string, error) {
	if t.namespace == "" {
		return s.namespace, nil
	}
	if s.enforce && t.namespace != s.namespace {
		return "", fmt.Errorf("%s is in namespace %q, and -n is %q", t.full(), t.namespace, s.namespace)
	}
	return t.namespace, nil
}

// kindOf returns the kind of a target, from any provider that serves it.
func (s *session) kindOf(ctx context.Context, t target) (kind, error) {
	kinds, err := s.resourceKinds(ctx)
	if err != nil {
		return kind{}, explain(err, s.server())
	}
	var found []kind
	var names []string
	for _, k := range kinds {
		names = append(names, k.kind)
		// As in kubectl, the plural is valid, too, as in sim-networks/main.
		if (k.kind == t.kind() || k.gvr.Resource == t.kind()) && (t.group == "" || t.group == k.gvr.Group) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if near := suggest.Nearest(t.kind(), names); near != "" {
			return kind{}, fmt.Errorf("no provider has the kind %q: did you mean %q?", t.kind(), near)
		}
		return kind{}, fmt.Errorf("no provider has the kind %q: `kubectl hykube provider list` shows which are installed and ready, `kubectl hykube provider schema PROVIDER` what they have", t.kind())
	}
	var full []string
	for _, k := range found {
		full = append(full, k.kind+"."+k.gvr.Group+"/"+t.name)
	}
	slices.Sort(full)
	return kind{}, fmt.Errorf("more than one provider has the kind %q: write %s", t.kind(), strings.Join(full, " or "))
}

// get returns the object of a kind with a name.
func (s *session) get(ctx context.Context, k kind, namespace, name string) (*unstructured.Unstructured, error) {
	u, err := s.resource(k.gvr, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get %s %q in namespace %q: %w", k.kind, name, namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %q: %w", k.kind, name, explain(err, s.server()))
	}
	return u, nil
}

// merge changes an object with a JSON merge patch and strict field validation.
func (s *session) merge(ctx context.Context, k kind, namespace, name string, patch any) (*unstructured.Unstructured, error) {
	return s.mergeAs(ctx, fieldManager, k, namespace, name, patch)
}

// mergeAs is merge with another field manager.
func (s *session) mergeAs(ctx context.Context, manager string, k kind, namespace, name string, patch any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	u, err := s.resource(k.gvr, namespace).Patch(ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("change %s %q: %w", k.kind, name, explain(err, s.server()))
	}
	return u, nil
}

// mark deletes an object without waiting. An object with infrastructure is only marked for deletion, until a plan
// destroys it. waits is true if the object still exists.
func (s *session) mark(ctx context.Context, k kind, namespace string, u *unstructured.Unstructured) (waits bool, err error) {
	client, err := s.quiet()
	if err != nil {
		return false, err
	}
	err = client.Resource(k.gvr).Namespace(namespace).Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(u.GetUID())}})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("delete %s %q: %w", k.kind, u.GetName(), explain(err, s.server()))
	}
	return slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState), nil
}

// quiet returns a client for deletes that prints no warnings, because the server's warnings are about kubectl delete.
func (s *session) quiet() (dynamic.Interface, error) {
	cfg := rest.CopyConfig(s.cfg)
	cfg.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfigAndClient(cfg, s.http)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return client, nil
}

// managed reports whether an object's status shows infrastructure.
func managed(u *unstructured.Unstructured) bool {
	attributes, _, _ := unstructured.NestedMap(u.Object, "status", "attributes")
	return len(attributes) > 0
}

// hasInfrastructure reports whether an object shows infrastructure that is known to exist. After a replacement whose create was
// lost, the object shows the old instance; after a loss of its record, the one that may exist.
func (s *session) hasInfrastructure(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	if !managed(u) {
		return false, nil
	}
	open, err := newUnsettled(s).has(ctx, u)
	return !open, err
}

// hasRecord reports whether the server has a record of infrastructure for an object. Without attributes in the status,
// the record has only deposed instances, or a create that runs or whose outcome is unknown.
func hasRecord(u *unstructured.Unstructured) bool {
	return managed(u) || slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState)
}

// long returns kubectl's name of an object: "sim-network.sim.hykube.io/main".
func (k kind) long(name string) string {
	return strings.ToLower(strings.TrimSuffix(k.kind+"."+k.gvr.Group, ".")) + "/" + name
}

// printResult prints kubectl's line about an object, or only its name.
func (o *objects) printResult(k kind, name, verb string) {
	if o.output == "name" {
		fmt.Fprintln(o.Out, k.long(name))
		return
	}
	fmt.Fprintln(o.Out, k.long(name)+" "+verb)
}
