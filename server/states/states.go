// Package states takes Terraform states into the ledger, and gives records out as Terraform states. It calls providers
// only to upgrade attributes and identities. It may import activities/changes and what that imports; it knows no HTTP.
package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

const (
	// width is the number of entries of a page that providers convert at once, and of objects that a commit writes at
	// once.
	width = 16
	// commitTime is the time after which a commit returns and lets the client commit again.
	commitTime = 30 * time.Second
)

// States answers pushes and pulls of Terraform states.
type States struct {
	*scope.Sources
	// frozen reports whether no plan of a namespace is applied after a restore; then no record is pushed either.
	frozen func(namespace string) bool
	// committing lets one commit at a time hold its records in memory.
	committing sync.Mutex
}

// New returns a States that reads and writes through sources. It refuses pushes into a frozen namespace.
func New(sources *scope.Sources, frozen func(namespace string) bool) *States {
	return &States{Sources: sources, frozen: frozen}
}

// Push checks a page of a push and keeps its records, or commits the push; it sets p.Status. It returns an error of the
// API for a request that is refused as a whole.
func (s *States) Push(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) error {
	p.Status = v1alpha1.StatePushStatus{}
	spec := &p.Spec
	switch {
	case s.frozen(p.Namespace):
		return conflict("%s", changes.MessageFrozen)
	case spec.ID == "" || len(spec.ID) > 64 || len(validation.NameIsDNSSubdomain(spec.ID, false)) > 0:
		return apierrors.NewBadRequest("push state: spec.id must be a UUID")
	case spec.Lineage == "" || len(spec.Lineage) > 256:
		return apierrors.NewBadRequest("push state: spec.lineage must have 1 to 256 characters")
	case spec.Serial < 0 || spec.Page < 0:
		return apierrors.NewBadRequest("push state: spec.serial and spec.page must not be negative")
	case spec.Commit && len(spec.Entries) > 0:
		return apierrors.NewBadRequest("push state: a commit has no entries")
	}
	if spec.Commit {
		return s.commit(ctx, who, p)
	}
	return s.page(ctx, who, p)
}

// begun returns the push of a request: a new one for the first page.
func (s *States) begun(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) (*ledger.Push, error) {
	stored, err := s.Ledger.Push(ctx, p.Namespace)
	switch {
	case err != nil:
		return nil, err
	case stored.ID == p.Spec.ID && stored.User == who.Username:
		return stored, nil
	case !p.Spec.Commit && p.Spec.Page == 0:
		return s.Ledger.BeginPush(ctx, stored, p.Spec.ID, who.Username)
	}
	return nil, conflict("another push into the namespace has replaced this one. Push the state again")
}

// conflict returns the error for a push that must begin again.
func conflict(format string, args ...any) error {
	return conflictOf("statepushes", "push state: "+format, args...)
}

// conflictOf returns a conflict with a message of its own: the one of apierrors names an object, and there is none.
func conflictOf(resource, format string, args ...any) error {
	err := apierrors.NewConflict(v1alpha1.Resource(resource), "", nil)
	err.ErrStatus.Message = fmt.Sprintf(format, args...)
	return err
}

// checkLineage returns the lineages of the namespace, and an error if the state is not newer than what was pushed.
func (s *States) checkLineage(ctx context.Context, p *v1alpha1.StatePush) (*ledger.Lineages, error) {
	known, err := s.Ledger.Lineages(ctx, p.Namespace)
	if err != nil || p.Spec.Force {
		return known, err
	}
	serial, pushed := known.Serials[p.Spec.Lineage]
	if !pushed || p.Spec.Serial > serial {
		return known, nil
	}
	records, err := s.Ledger.InstancesAfter(ctx, p.Namespace, "", 1)
	if err != nil || len(records) == 0 {
		return known, err
	}
	return nil, conflict("the state with the lineage %q has the serial %d, and the serial %d was pushed or pulled before. Push the newest state, or this one with --force", p.Spec.Lineage, p.Spec.Serial, serial)
}

// rightsTo returns the rights that a push needs for an object of a kind: those of an import, and to the secrets.
func rightsTo(namespace, group, plural, name string) []store.Right {
	return []store.Right{
		{Verb: store.VerbCreate, Namespace: namespace, Group: group, Resource: plural},
		{Verb: store.VerbUpdate, Namespace: namespace, Group: group, Resource: plural, Name: name},
		{Verb: store.VerbGet, Namespace: namespace, Group: group, Resource: plural + "/state", Name: name},
	}
}

// forbidden returns a Forbidden error for missing rights; nil without any.
func forbidden(resource, verb string, missing []store.Right) error {
	if len(missing) == 0 {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource(resource), "",
		fmt.Errorf("%s state: you need the rights to %s", verb, store.ListRights(missing)))
}

// sameRegistry reports whether two addresses are of one provider. Terraform and OpenTofu have registries of their own
// with the same providers.
func sameRegistry(a, b provider.Source) bool {
	return a.Namespace == b.Namespace && a.Type == b.Type && publicHost(a.Hostname) == publicHost(b.Hostname)
}

func publicHost(host string) string {
	if host == "registry.opentofu.org" {
		return "registry.terraform.io"
	}
	return host
}

// entriesOf returns the installed providers with a source, and whether any of them has a type.
func (s *States) entriesOf(source provider.Source, terraformType string) (all, having []catalog.Entry) {
	for _, name := range s.Catalog.Names() {
		e, ok := s.Catalog.Get(name)
		if !ok || e.Schema == nil || !sameRegistry(e.Package.Source, source) {
			continue
		}
		all = append(all, e)
		if e.Schema.Resources[terraformType] != nil {
			having = append(having, e)
		}
	}
	return all, having
}

// referenceOf returns the reference to an object of a type.
func referenceOf(e catalog.Entry, namespace, terraformType, name string) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{
		APIVersion: v1alpha1.ProviderGroup(e.Name) + "/" + v1alpha1.ResourceVersion,
		Kind:       v1alpha1.KindOf(terraformType), Namespace: namespace, Name: name,
	}
}

// problem is an error about one entry of a state.
type problem v1alpha1.StateProblem

func (e *problem) Error() string { return strings.TrimSpace(e.Problem + ". " + e.Remedy) }

func badEntry(text, remedy string, args ...any) error {
	return &problem{Problem: text, Remedy: fmt.Sprintf(remedy, args...)}
}

// asProblem returns the problem that an error is. ok is false for an error of the server.
func asProblem(address string, err error) (v1alpha1.StateProblem, bool) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return v1alpha1.StateProblem{}, false
	}
	out := v1alpha1.StateProblem(*p)
	out.Address = address
	return out, true
}
