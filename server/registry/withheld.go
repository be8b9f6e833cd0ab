package registry

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file withholds the texts of a plan's diagnostics from users who may not get the objects that they are about, or
// what the text may quote.

// ReaderFunc returns a function for the user of a request: may the user read a plan's diagnostics of the object with an
// address, such as "sim_network.main"? The function caches its answers.
type ReaderFunc func(ctx context.Context) (mayGet func(p *v1alpha1.Plan, address string) (bool, error), err error)

// Text of a withheld diagnostic.
const (
	summaryWithheld = "Text withheld"
	detailWithheld  = `You need the verb "get" on the object to read this diagnostic and, for an instance, on its ResourceSet or Module and on ConfigMaps.`
)

// response converts the plans of a response to what the user of the request may read. It does not change the
// diagnostics of a plan, which a cache may share.
func (mayRead ReaderFunc) response(ctx context.Context, obj runtime.Object, err error) (runtime.Object, error) {
	if err != nil || byServer(ctx) {
		return obj, err
	}
	mayGet, err := mayRead(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch obj := obj.(type) {
	case *v1alpha1.Plan:
		p, err := withheld(obj, mayGet)
		if err != nil {
			return nil, err
		}
		return p, nil
	case *v1alpha1.PlanList:
		for i := range obj.Items {
			p, err := withheld(&obj.Items[i], mayGet)
			if err != nil {
				return nil, err
			}
			obj.Items[i] = *p
		}
	}
	return obj, nil
}

// withheld returns the plan without the texts of diagnostics about objects that the user may not get, and without the
// values of outputs of such Modules.
func withheld(p *v1alpha1.Plan, mayGet func(p *v1alpha1.Plan, address string) (bool, error)) (*v1alpha1.Plan, error) {
	shown, changed := *p, false
	var err error
	readable := func(address string) bool {
		if err != nil || address == "" { // without an address, it is about the plan
			return err == nil
		}
		var ok bool
		ok, err = mayGet(p, address)
		return ok
	}
	hide := func(diags []v1alpha1.Diagnostic) []v1alpha1.Diagnostic {
		return hidden(diags, func(d *v1alpha1.Diagnostic) bool { return readable(d.Address) },
			func(d *v1alpha1.Diagnostic) {
				*d, changed = v1alpha1.Diagnostic{Severity: d.Severity, Address: d.Address, Summary: summaryWithheld,
					Detail: detailWithheld}, true
			})
	}
	shown.Status.Diagnostics, shown.Status.Checks = hide(p.Status.Diagnostics), hide(p.Status.Checks)
	shown.Status.Outputs = hidden(p.Status.Outputs, func(o *v1alpha1.PlanOutput) bool {
		return readable(v1alpha1.ModulePath("", o.Module, nil) + "." + o.Name)
	}, func(o *v1alpha1.PlanOutput) { o.Before, o.After, changed = nil, nil, true })
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("authorize reading a diagnostic of plan %q: %w", p.Name, err))
	case changed:
		return &shown, nil
	}
	return p, nil
}

// hidden returns a list with hide applied to each element that is not readable. It does not change the list, which a
// cache may share.
func hidden[T any](list []T, readable func(*T) bool, hide func(*T)) []T {
	copied := false
	for i := range list {
		if readable(&list[i]) {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		hide(&list[i])
	}
	return list
}

// watch converts the events of a watch. It asks for the rights anew at each event.
func (mayRead ReaderFunc) watch(ctx context.Context, w watch.Interface) watch.Interface {
	filtered := watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		obj := e.Object
		if cached, ok := obj.(runtime.CacheableObject); ok {
			obj = cached.GetObject()
		}
		p, ok := obj.(*v1alpha1.Plan)
		if !ok || len(p.Status.Diagnostics)+len(p.Status.Checks)+len(p.Status.Outputs) == 0 {
			return e, true // a cached object keeps its encoding
		}
		shown, err := mayRead.response(ctx, p, nil)
		if err != nil {
			status := apierrors.NewInternalError(err).Status()
			return watch.Event{Type: watch.Error, Object: &status}, true
		}
		if shown != runtime.Object(p) {
			e.Object = shown
		}
		return e, true
	})
	// A client that leaves reads no more events. Without a reader, the filter would wait forever to deliver its last
	// one.
	context.AfterFunc(ctx, func() {
		for range filtered.ResultChan() { //nolint:revive // the events have no reader
		}
	})
	return filtered
}

func (r *planREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.Store.Get(ctx, name, opts)
	return r.mayRead.response(ctx, obj, err)
}

func (r *planREST) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	obj, err := r.Store.List(ctx, opts)
	return r.mayRead.response(ctx, obj, err)
}

func (r *planREST) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	w, err := r.Store.Watch(ctx, opts)
	if err != nil || byServer(ctx) {
		return w, err
	}
	return r.mayRead.watch(ctx, w), nil
}

func (r *planREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, done, err := r.resourceREST.Delete(ctx, name, validate, opts)
	obj, err = r.mayRead.response(ctx, obj, err)
	return obj, done, err
}

func (r *planREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions,
	list *metainternalversion.ListOptions) (runtime.Object, error) {
	obj, err := r.resourceREST.DeleteCollection(ctx, validate, opts, list)
	return r.mayRead.response(ctx, obj, err)
}

// planStatusREST serves the subresource "status" of plans.
type planStatusREST struct {
	*statusREST
	mayRead ReaderFunc
}

func (r *planStatusREST) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.statusREST.Get(ctx, name, opts)
	return r.mayRead.response(ctx, obj, err)
}

func (r *planStatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, created, err := r.statusREST.Update(ctx, name, info, create, update, force, opts)
	obj, err = r.mayRead.response(ctx, obj, err)
	return obj, created, err
}
