// Package objects reads, lists and changes the objects of a server, and explains their condition Ready. It knows no
// plan.
package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/openapi"
	"github.com/hykube/hykube/internal/suggest"
)

// ForgetAll marks all targets for deletion without a destroy. It then prints a sentence about the next applied plan,
// and the commands to apply it or to revert the deletion.
func (o *Named) ForgetAll(ctx context.Context, nextPlan string) error {
	var wait []addrs.Target
	err := o.EachTarget(func(t addrs.Target) error {
		t, waits, err := o.forget(ctx, t)
		if waits {
			wait = append(wait, t)
		}
		return err
	})
	if len(wait) > 0 && o.Output == "" {
		ns, _ := NamespaceOf(o.Session, wait[0])
		line, back := "kubectl hykube apply", "kubectl hykube undelete"
		for _, t := range wait {
			line += " --target " + t.Address()
			back += " " + t.Kind() + "/" + t.Name
		}
		fmt.Fprintf(o.ErrOut, "%s:\n  %s -n %s\nUntil then you can take that back:\n  %s -n %s\n", nextPlan, line, ns,
			back, ns)
	}
	return err
}

// forget sets lifecycle.destroy of an object to false and deletes the object. waits is true if a plan must remove its
// record.
func (o *Named) forget(ctx context.Context, t addrs.Target) (found addrs.Target, waits bool, err error) {
	t, k, ns, err := Find(ctx, o.Session, t)
	if err != nil {
		return t, false, err
	}
	if v1alpha1.OwnerKind(t.Name) == "Module" {
		return t, false, fmt.Errorf("state rm: %s is a resource of a Module. Write a removed block with destroy = false for it in the files of the Module, and remove its block: the next plan forgets it", t.Address())
	}
	if v1alpha1.IsVirtualName(t.Name) {
		return t, false, fmt.Errorf("state rm: %s is an instance of a ResourceSet. Set lifecycle.destroy of the template to false, and then remove the key of the instance, or lower the count: the next plan forgets it", t.Address())
	}
	u, err := MergeAs(ctx, o.Session, StateManager, k, ns, t.Name,
		map[string]any{"lifecycle": map[string]any{"destroy": false}})
	if err != nil {
		return t, false, err
	}
	if waits, err = Mark(ctx, o.Session, k, ns, u); err == nil {
		o.PrintResult(k, t.Name, map[bool]string{true: "marked to be forgotten", false: "deleted"}[waits])
	}
	return t, waits, err
}

// Named holds the common options of verbs that name single objects.
type Named struct {
	*session.Session
	Targets []addrs.Target
	Output  string
}

// Read parses the names in the arguments.
func (o *Named) Read(verb string, args []string, modes ...v1alpha1.Mode) error {
	for _, a := range args {
		t, err := addrs.Parse(a)
		if err == nil {
			err = t.Only(modes...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		o.Targets = append(o.Targets, t)
	}
	return o.Connect()
}

// Find returns the target with its canonical name, its kind and its namespace. For example, it accepts the plural in
// sim-networks/main, whose address is sim_network.main.
func Find(ctx context.Context, s *session.Session, t addrs.Target) (addrs.Target, session.Kind, string, error) {
	ns, err := NamespaceOf(s, t)
	if err != nil {
		return t, session.Kind{}, "", err
	}
	k, err := kindOf(ctx, s, t)
	if err == nil {
		t.Mode, t.Type = v1alpha1.ParseKind(k.Kind)
	}
	return t, k, ns, err
}

// EachTarget calls do for each target. It continues after errors.
func (o *Named) EachTarget(do func(addrs.Target) error) error {
	var errs []error
	for _, t := range o.Targets {
		if err := do(t); err != nil {
			errs = append(errs, err)
		}
	}
	return exit.Join(errs)
}

// Post calls a subresource of an object that needs only the object's name.
func Post(ctx context.Context, s *session.Session, k session.Kind, namespace, name, subresource string) error {
	return PostUID(ctx, s, k, namespace, name, "", subresource)
}

// PostUID is post for the object with a UID.
func PostUID(ctx context.Context, s *session.Session, k session.Kind, namespace, name string, uid types.UID,
	subresource string) error {
	u := &unstructured.Unstructured{}
	u.SetUID(uid)
	u.SetGroupVersionKind(k.GVR.GroupVersion().WithKind(k.Kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	_, err := s.Resource(k.GVR, namespace).Create(ctx, u, metav1.CreateOptions{}, subresource)
	return err
}

// NamespaceOf returns the namespace of a target.
func NamespaceOf(s *session.Session, t addrs.Target) (string, error) {
	if t.Namespace == "" {
		return s.Namespace, nil
	}
	if s.Enforce && t.Namespace != s.Namespace {
		return "", fmt.Errorf("%s is in namespace %q, and -n is %q", t.Full(), t.Namespace, s.Namespace)
	}
	return t.Namespace, nil
}

// kindOf returns the kind of a target, from any provider that serves it.
func kindOf(ctx context.Context, s *session.Session, t addrs.Target) (session.Kind, error) {
	kinds, err := s.ResourceKinds(ctx)
	if err != nil {
		return session.Kind{}, err
	}
	var found []session.Kind
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
		// As in kubectl, the plural is valid, too, as in sim-networks/main.
		if (k.Kind == t.Kind() || k.GVR.Resource == t.Kind()) && (t.Group == "" || t.Group == k.GVR.Group) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if near := suggest.Nearest(t.Kind(), names); near != "" {
			return session.Kind{}, fmt.Errorf("no provider has the kind %q: did you mean %q?", t.Kind(), near)
		}
		return session.Kind{}, fmt.Errorf(
			"no provider has the kind %q: `kubectl hykube provider list` shows which are installed and ready, `kubectl hykube provider schema PROVIDER` what they have", t.Kind())
	}
	var full []string
	for _, k := range found {
		full = append(full, k.Kind+"."+k.GVR.Group+"/"+t.Name)
	}
	slices.Sort(full)
	return session.Kind{}, fmt.Errorf("more than one provider has the kind %q: write %s", t.Kind(),
		strings.Join(full, " or "))
}

// Get returns the object of a kind with a name.
func Get(ctx context.Context, s *session.Session, k session.Kind, namespace,
	name string) (*unstructured.Unstructured, error) {
	u, err := s.Resource(k.GVR, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get %s %q in namespace %q: %w", k.Kind, name, namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %q: %w", k.Kind, name, s.Explain(err))
	}
	return u, nil
}

// Merge changes an object with a JSON merge patch and strict field validation.
func Merge(ctx context.Context, s *session.Session, k session.Kind, namespace, name string,
	patch any) (*unstructured.Unstructured, error) {
	return MergeAs(ctx, s, FieldManager, k, namespace, name, patch)
}

// MergeAs is merge with another field manager.
func MergeAs(ctx context.Context, s *session.Session, manager string, k session.Kind, namespace, name string,
	patch any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	u, err := s.Resource(k.GVR, namespace).Patch(ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("change %s %q: %w", k.Kind, name, s.Explain(err))
	}
	return u, nil
}

// Mark deletes an object without waiting. An object with infrastructure is only marked for deletion, until a plan
// destroys it. waits is true if the object still exists.
func Mark(ctx context.Context, s *session.Session, k session.Kind, namespace string,
	u *unstructured.Unstructured) (waits bool, err error) {
	client, err := Quiet(s)
	if err != nil {
		return false, err
	}
	err = client.Resource(k.GVR).Namespace(namespace).Delete(ctx, u.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(u.GetUID())}})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("delete %s %q: %w", k.Kind, u.GetName(), s.Explain(err))
	}
	return slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState), nil
}

// Quiet returns a client for deletes that prints no warnings, because the server's warnings are about kubectl delete.
func Quiet(s *session.Session) (dynamic.Interface, error) {
	cfg := rest.CopyConfig(s.Config)
	cfg.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfigAndClient(cfg, s.HTTP)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return client, nil
}

// Managed reports whether an object's status shows infrastructure.
func Managed(u *unstructured.Unstructured) bool {
	attributes, _, _ := unstructured.NestedMap(u.Object, "status", "attributes")
	return len(attributes) > 0
}

// HasInfrastructure reports whether an object shows infrastructure that is known to exist. After a replacement whose
// create was lost, the object shows the old instance; after a loss of its record, the one that may exist.
func HasInfrastructure(ctx context.Context, s *session.Session, u *unstructured.Unstructured) (bool, error) {
	if !Managed(u) {
		return false, nil
	}
	open, err := NewUnsettled(s).Has(ctx, u)
	return !open, err
}

// HasRecord reports whether the server has a record of infrastructure for an object. Without attributes in the status,
// the record has only deposed instances, or a create that runs or whose outcome is unknown.
func HasRecord(u *unstructured.Unstructured) bool {
	return Managed(u) || slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState)
}

// Long returns kubectl's name of an object: "sim-network.sim.hykube.io/main".
func Long(k session.Kind, name string) string {
	return strings.ToLower(strings.TrimSuffix(k.Kind+"."+k.GVR.Group, ".")) + "/" + name
}

// PrintResult prints kubectl's line about an object, or only its name.
func (o *Named) PrintResult(k session.Kind, name, verb string) {
	if o.Output == "name" {
		fmt.Fprintln(o.Out, Long(k, name))
		return
	}
	fmt.Fprintln(o.Out, Long(k, name)+" "+verb)
}

// IDOf returns the ID of an object's infrastructure, or "-".
func IDOf(u *unstructured.Unstructured) string {
	if v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "attributes", "id"); v != nil {
		return diff.Clean(fmt.Sprint(v), false)
	}
	return "-"
}

// ParseSelector parses the value of the flag --selector. An empty one selects everything.
func ParseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--selector=%s: %w", text, err)
	}
	return selector, nil
}

const (
	// FieldManager is kubectl's own name, so that `kubectl apply --server-side` and `kubectl hykube apply` never
	// conflict.
	FieldManager = "kubectl"
	// StateManager is the field manager with which state rm and state mv set lifecycle.destroy, so that undelete can
	// find and remove it.
	StateManager = "kubectl-hykube-state"
)

// ProviderSchema returns the OpenAPI document of a provider's kinds.
func ProviderSchema(ctx context.Context, s *session.Session, provider string) (*openapi.Document, error) {
	raw, err := s.Hykube.Get().AbsPath("/openapi/v3/apis/"+v1alpha1.ProviderGroup(provider)+"/"+
		v1alpha1.ResourceVersion).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) || err == nil && len(raw) == 0 {
		return nil, fmt.Errorf("provider %q serves no kinds: `kubectl hykube provider list` shows which are installed and ready", provider)
	}
	if err != nil {
		return nil, fmt.Errorf("read schema of provider %q: %w", provider, s.Explain(err))
	}
	doc := &openapi.Document{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("read schema of provider %q: %w", provider, err)
	}
	return doc, nil
}
