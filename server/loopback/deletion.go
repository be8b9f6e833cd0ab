package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/server/kinds"
)

const (
	// namedReferrers is the maximum number of objects in a warning.
	namedReferrers = 3
	// referrersLimit is the maximum time that a delete spends on finding the objects that refer to the deleted one. In
	// a large namespace, the warning names those found so far.
	referrersLimit = 500 * time.Millisecond
)

// Deletion returns the consequences of an object's deletion, for the user who deletes it.
func (a *Answers) Deletion(ctx context.Context, obj metav1.Object, k kinds.Kind) (d kinds.Deletion, err error) {
	rec, err := a.record(ctx, obj, k)
	if err != nil {
		return d, err
	}
	if d.CreateUnknown, err = a.lostCreate(ctx, rec); err != nil {
		return d, err
	}
	at := lang.Address{Type: k.Type, Name: obj.GetName()} // a managed resource; no other kind has the finalizer
	to := referred{obj, obj.GetName(), func(addr lang.Address) bool { return addr == at }}
	err = a.noteReferrers(ctx, &d, to)
	return d, err
}

// ModuleDeletion returns the consequences of the deletion of a Module: the objects that refer to its outputs.
func (a *Answers) ModuleDeletion(ctx context.Context, m *v1alpha1.Module) (d kinds.Deletion, err error) {
	path := v1alpha1.ModulePath("", m.Name, nil)
	to := referred{m, path, func(addr lang.Address) bool {
		return addr.IsModuleOutput() && addr.Namespace == "" && addr.Module == path
	}}
	err = a.noteReferrers(ctx, &d, to)
	return d, err
}

// referred is an object to which others may refer.
type referred struct {
	metav1.Object
	// text is in each object that refers to it.
	text string
	// is reports whether an address is one of the object.
	is func(lang.Address) bool
}

// noteReferrers adds the objects that refer to an object, or to which it moves, and that are not deleted, too.
func (a *Answers) noteReferrers(ctx context.Context, d *kinds.Deletion, to referred) error {
	ctx, cancel := context.WithTimeout(ctx, referrersLimit)
	defer cancel()
	err := a.referrers(ctx, to, func(u *unstructured.Unstructured) {
		if u.GetDeletionTimestamp() != nil {
			return
		}
		if to.movesTo(u) {
			d.MovedTo = lang.Address{Type: v1alpha1.TypeOf(u.GetKind()), Name: u.GetName()}.String()
			return
		}
		if len(d.Referrers) == namedReferrers {
			d.More++
			return
		}
		d.Referrers = append(d.Referrers, u.GetKind()+"/"+u.GetName())
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return err
}

// movesTo reports whether an object's lifecycle.moved names an object.
func (to referred) movesTo(u *unstructured.Unstructured) bool {
	text, _, _ := unstructured.NestedString(u.Object, "lifecycle", "moved", "from")
	a, err := lang.ParseAddress(text)
	return err == nil && to.is(a.In(u.GetNamespace()))
}

// referrers calls found for each object of the namespace that refers to an object or names it in lifecycle.moved.
func (a *Answers) referrers(ctx context.Context, to referred, found func(*unstructured.Unstructured)) error {
	if a.Kinds == nil {
		return nil
	}
	for u, err := range a.Stored.OfProviders(ctx, to.GetNamespace()) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := json.Marshal([]any{u.Object["spec"], u.Object["lifecycle"]})
		if err != nil || !bytes.Contains(text, []byte(to.text)) {
			continue // parsing expressions is the slowest part
		}
		if u.GetUID() != to.GetUID() && (to.movesTo(u) || a.Kinds.RefersTo(u, to.is)) {
			found(u)
		}
	}
	for set, err := range a.Stored.Sets(ctx, to.GetNamespace()) {
		if err != nil {
			return err
		}
		if a.Kinds.RefersTo(kinds.TemplateOf(set).Object(), to.is) {
			u := &unstructured.Unstructured{}
			u.SetKind("ResourceSet")
			u.SetName(set.Name)
			u.SetDeletionTimestamp(set.DeletionTimestamp)
			found(u)
		}
	}
	for m, err := range a.Stored.Modules(ctx, to.GetNamespace()) {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(kinds.ModuleReferences(m), func(r lang.Reference) bool { return to.is(r.Address) }) {
			u := &unstructured.Unstructured{}
			u.SetKind("Module")
			u.SetName(m.Name)
			u.SetDeletionTimestamp(m.DeletionTimestamp)
			found(u)
		}
	}
	return nil
}
