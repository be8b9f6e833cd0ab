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
	ctx, cancel := context.WithTimeout(ctx, referrersLimit)
	defer cancel()
	err = a.referrers(ctx, obj, k, func(u *unstructured.Unstructured) {
		if u.GetDeletionTimestamp() != nil {
			return // it is being deleted, too
		}
		if movesFrom(u, lang.Address{Type: k.Type, Name: obj.GetName()}) {
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
		err = nil
	}
	return d, err
}

// movesFrom reports whether an object's lifecycle.moved names the address in its namespace.
func movesFrom(u *unstructured.Unstructured, from lang.Address) bool {
	text, _, _ := unstructured.NestedString(u.Object, "lifecycle", "moved", "from")
	a, err := lang.ParseAddress(text)
	return err == nil && a.In(u.GetNamespace()) == from
}

// referrers calls found for each object of the namespace that refers to an object or names it in lifecycle.moved.
func (a *Answers) referrers(ctx context.Context, obj metav1.Object, k kinds.Kind, found func(*unstructured.Unstructured)) error {
	if a.Kinds == nil {
		return nil
	}
	to := lang.Address{Type: k.Type, Name: obj.GetName()} // a managed resource; no other kind has the finalizer
	for u, err := range a.Stored.OfProviders(ctx, obj.GetNamespace()) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := json.Marshal([]any{u.Object["spec"], u.Object["lifecycle"]})
		if err != nil || !bytes.Contains(text, []byte(to.Name)) {
			continue // parsing expressions is the slowest part
		}
		if u.GetUID() != obj.GetUID() && (movesFrom(u, to) || a.Kinds.RefersTo(u, to)) {
			found(u)
		}
	}
	for set, err := range a.Stored.Sets(ctx, obj.GetNamespace()) {
		if err != nil {
			return err
		}
		if a.Kinds.RefersTo(kinds.TemplateOf(set).Object(), to) {
			u := &unstructured.Unstructured{}
			u.SetKind("ResourceSet")
			u.SetName(set.Name)
			u.SetDeletionTimestamp(set.DeletionTimestamp)
			found(u)
		}
	}
	for m, err := range a.Stored.Modules(ctx, obj.GetNamespace()) {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(kinds.ModuleReferences(m), func(r lang.Reference) bool { return r.Address == to }) {
			u := &unstructured.Unstructured{}
			u.SetKind("Module")
			u.SetName(m.Name)
			u.SetDeletionTimestamp(m.DeletionTimestamp)
			found(u)
		}
	}
	return nil
}
