package scope

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/store"
)

// This file checks the rights of a plan's requester and, during an apply, of its approvers.

// errNoRequester is the error for a plan without a requester, whose rights cannot be checked.
var errNoRequester = errors.New("the plan has no requester; make a new plan")

// ForbiddenError is the error for a user who lacks a right.
type ForbiddenError struct{ Text string }

func (e *ForbiddenError) Error() string { return e.Text }

// IsForbidden reports whether an error is a *ForbiddenError.
func IsForbidden(err error) bool {
	_, ok := errors.AsType[*ForbiddenError](err)
	return ok
}

// askerOf returns an Asker for a user; nil for nil.
func (a *Sources) askerOf(who *v1alpha1.Identity) *store.Asker {
	if who == nil {
		return nil
	}
	return &store.Asker{Access: a.Access, Who: *who}
}

// Lacks says that a user lacks rights, as in: has no right to create plans.hykube.io. A user whom the token file names
// no more has no rights at all.
func (a *Sources) Lacks(who v1alpha1.Identity, missing []store.Right) string {
	if a.Users != nil {
		if _, known := a.Users.Current(who); !known {
			return store.NotInTokenFile(who)
		}
	}
	return "has no right to " + store.ListRights(missing)
}

// RequesterOf returns an Asker for the plan's requester; nil if the plan has none.
func (a *Sources) RequesterOf(po *v1alpha1.Plan) *store.Asker {
	return a.askerOf(po.Status.RequestedBy)
}

// ApproversOf returns an Asker for each approver of a plan, except its requester.
func (a *Sources) ApproversOf(po *v1alpha1.Plan) (askers []*store.Asker) {
	for _, approval := range po.AllApprovals() {
		if approval.By == nil || po.Status.RequestedBy != nil && sameUser(*approval.By, *po.Status.RequestedBy) {
			continue
		}
		askers = append(askers, a.askerOf(approval.By))
	}
	return askers
}

func sameUser(a, b v1alpha1.Identity) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// MayRead returns a *ForbiddenError if the plan's requester may not get an object. It ignores the verb of what.
func (s *Scope) MayRead(ctx context.Context, what store.Right) error {
	if s.requester == nil {
		return errNoRequester
	}
	return mayRead(ctx, s.requester, what)
}

// mayRead returns a *ForbiddenError if a user may not get an object. It ignores the verb of what.
func mayRead(ctx context.Context, asker *store.Asker, what store.Right) error {
	what.Verb = store.VerbGet
	ok, err := asker.May(ctx, what)
	if err != nil {
		return err
	}
	if !ok {
		return &ForbiddenError{fmt.Sprintf(
			"the user %q may not read %q of %s in the namespace %q: ask for the verb \"get\" on it",
			asker.Who.Username, what.Name, what.Target(), what.Namespace)}
	}
	return nil
}

// mayRefer returns a *ForbiddenError if the plan's requester may not get a resource of the plan's namespace. It accepts
// other addresses, which the scope checks when it reads them.
func (s *Scope) mayRefer(ctx context.Context, addr lang.Address) error {
	if addr.Namespace != "" || addr.Stored() || addr.Mode == v1alpha1.ModeAction {
		return nil
	}
	rights, err := s.RightsTo(s.namespace, addr)
	if err != nil {
		return err
	}
	for _, right := range rights {
		if err := s.MayRead(ctx, right); err != nil {
			return err
		}
	}
	return nil
}

// RightsTo returns the right to get a resource, for each provider with its type. The resource need not exist.
func (a *Sources) RightsTo(namespace string, addr lang.Address) ([]store.Right, error) {
	var rights []store.Right
	for _, provider := range a.Catalog.ProvidersOf(addr.Mode, addr.Type) {
		group := v1alpha1.ProviderGroup(provider)
		plural, err := a.Objects.Plural(v1alpha1.ObjectReference{
			APIVersion: group + "/" + v1alpha1.ResourceVersion, Kind: addr.Kind(), Namespace: namespace,
			Name: addr.ObjectName(),
		})
		if err != nil {
			return nil, err
		}
		rights = append(rights, store.Right{Verb: store.VerbGet, Namespace: namespace, Group: group, Resource: plural,
			Name: addr.ObjectName()})
	}
	return rights, nil
}

// RightsToSecrets returns the rights to read the secrets of an object, whose address must have a namespace: to get a
// Secret, or the state of a resource for each provider with its type. Without such a provider, it is the right to get
// everything.
func (a *Sources) RightsToSecrets(of lang.Address) ([]store.Right, error) {
	if of.Stored() {
		return []store.Right{{Verb: store.VerbGet, Namespace: of.Namespace, Resource: of.Type + "s", Name: of.Name}},
			nil
	}
	rights, err := a.RightsTo(of.Namespace, of)
	for i := range rights {
		rights[i].Resource += "/state"
	}
	if len(rights) == 0 {
		rights = append(rights, store.Right{Verb: store.VerbGet, Namespace: of.Namespace, Group: "*", Resource: "*",
			Name: of.Name})
	}
	return rights, err
}

// mayUse returns a *ForbiddenError if the plan's requester or approver may not use a ProviderConfig.
func (s *Scope) mayUse(ctx context.Context, namespace, name string) error {
	if s.requester == nil {
		return errNoRequester
	}
	for _, asker := range append([]*store.Asker{s.requester}, s.approvers...) {
		ok, err := asker.May(ctx, store.UseOf(namespace, name))
		if err != nil {
			return err
		}
		if !ok {
			return &ForbiddenError{fmt.Sprintf(
				"the user %q may not use the ProviderConfig %q in the namespace %q: ask for the verb \"use\" on providerconfigs.hykube.io",
				asker.Who.Username, name, namespace)}
		}
	}
	return nil
}
