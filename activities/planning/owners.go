package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
)

// This file prevents two objects from managing the same infrastructure. It warns if two objects already do.

// checkOwned returns an error if another change imports the same infrastructure, or if another object manages it; see
// checkOwner.
func (pr *proposal) checkOwned(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease) error {
	fair.Lock(ctx, &pr.owning)
	defer pr.owning.Unlock()
	other, err := pr.claim(ctx, c, r)
	if err != nil {
		return err
	}
	if other != "" {
		both := []string{c.Address, other}
		slices.Sort(both)
		return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.import", "Resource is imported twice",
			fmt.Sprintf("%s and %s import the same resource. Each plan would undo the other's changes: remove lifecycle.import from one of the objects, or delete one.", both[0], both[1]))}}
	}
	owners, err := pr.owners.Of(ctx, pr.Sources, r.Entry.Name, &l.Type)
	if err != nil {
		return err
	}
	for _, own := range changes.SimilarOwners(c, owners) {
		forgets, err := pr.forgets(ctx, own.Object)
		if err != nil {
			return err
		}
		if forgets {
			c.Preconditions.Owner = own.Object.UID
			continue
		}
		if err := pr.checkOwner(ctx, c, r, own); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner returns the error for an import of a resource that another object manages. It only adds a warning if the
// ProviderConfigs or the identities differ, and the plan's requester may update the other object; see
// changes.RightToShare.
func (pr *proposal) checkOwner(ctx context.Context, c *ledger.Change, r *resource.Resource, own query.Owner) error {
	who, err := pr.describeOwner(ctx, own.Object, r)
	if err != nil {
		return err
	}
	right, err := changes.RightToShare(ctx, pr.Sources, c, r.Entry, own)
	if err != nil {
		return err
	}
	permitted := false
	if right != nil {
		if permitted, err = pr.RequesterOf(pr.plan).May(ctx, *right); err != nil {
			return err
		}
	}
	d := lang.Problem(r.Address, "lifecycle.import", "Resource is managed already", "")
	switch {
	case right == nil:
		d.Detail = fmt.Sprintf("%s manages the resource to import, and one resource belongs to one object. Forget it there first (lifecycle.destroy: false, then delete), or take it over with lifecycle.moved. "+
			"If there is nothing to import, remove lifecycle.import. If the ProviderConfigs reach different accounts, set an argument in both that tells these apart, such as a region. The import then needs the right to update the other object, too.", who)
	case !permitted:
		d.Detail = fmt.Sprintf("%s manages a resource with the same ID or identity. Its ProviderConfig or its identity differs, but it may be the same resource. "+
			"The import needs the verb %q on %s for that object, too: ask for it, or let a user who has it make the plan. If both are the same resource, forget it there first (lifecycle.destroy: false, then delete).", who, right.Verb, right.Target())
	default:
		d.Severity, d.Detail = v1alpha1.SeverityWarning, fmt.Sprintf(
			"%s manages a resource with the same ID or identity. Its ProviderConfig or its identity differs. If both are the same resource, do not apply this plan, because each plan would undo the other's changes. Forget the resource there first (lifecycle.destroy: false, then delete).", who)
		c.Diagnostics = append(c.Diagnostics, d)
		return nil
	}
	return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{d}}
}

// forgets reports whether the plan lets an object forget its infrastructure.
func (pr *proposal) forgets(ctx context.Context, object v1alpha1.ObjectReference) (bool, error) {
	i := slices.IndexFunc(pr.all, func(c *ledger.Change) bool { return c.Object.UID == object.UID && c.Deposed == "" })
	if i < 0 || !pr.all[i].Preconditions.Deleting {
		return false, nil
	}
	r, err := pr.resource(ctx, pr.all[i])
	return err == nil && r.Lifecycle.Forgets(), err
}

// describeOwner returns a text that names an object for the plan's requester. If the requester may not read the object,
// the text omits its name.
func (pr *proposal) describeOwner(ctx context.Context, object v1alpha1.ObjectReference, like *resource.Resource) (string, error) {
	right, err := changes.RightTo(pr.Objects, object)
	if err != nil {
		return "", err
	}
	err = pr.scope.MayRead(ctx, right)
	switch {
	case scope.IsForbidden(err) && object.Namespace != pr.plan.Namespace:
		return "An object of another namespace, which you may not read,", nil
	case scope.IsForbidden(err):
		return "An object that you may not read", nil
	case err != nil:
		return "", err
	}
	return lang.Address{Namespace: object.Namespace, Type: like.Address.Type, Name: object.Name}.In(pr.plan.Namespace).String(), nil
}

// warnOtherManagers adds a warning to a destroy of infrastructure that another object manages, too.
func (pr *proposal) warnOtherManagers(ctx context.Context, c *ledger.Change, r *resource.Resource, state *ledger.State, l *scope.Lease) error {
	fair.Lock(ctx, &pr.owning)
	defer pr.owning.Unlock()
	if err := pr.readManaged(ctx); err != nil {
		return err
	}
	others := slices.Clone(pr.managed[managedKey(r.Entry.Name, state)])
	if r.Lifecycle.Import != nil { // earlier versions let objects of several namespaces import the same resource
		owners, err := pr.owners.Of(ctx, pr.Sources, r.Entry.Name, &l.Type)
		if err != nil {
			return err
		}
		for _, own := range owners.Find(query.IdentityIn(state)) {
			same, err := query.SameAccount(ctx, pr.Sources, r.Entry, pr.plan.Namespace, l.ConfigName(), own.Object.Namespace, own.Config)
			if err != nil {
				return err
			}
			if same && own.Object.Namespace != pr.plan.Namespace {
				others = append(others, own.Object)
			}
		}
	}
	for _, object := range others {
		if object.UID == r.Ref.UID {
			continue
		}
		who, err := pr.describeOwner(ctx, object, r)
		if err != nil {
			return err
		}
		d := lang.Problem(r.Address, "", "Another object manages the same infrastructure", fmt.Sprintf(
			"%s manages the infrastructure that this plan destroys. To keep it there, set lifecycle.destroy: false on %s and then delete the object: the plan forgets the resource and destroys nothing.", who, r.Address))
		d.Severity = v1alpha1.SeverityWarning
		c.Diagnostics = append(c.Diagnostics, d)
	}
	return nil
}

// readManaged reads which infrastructure the objects of the namespace manage. It reads the ledger only once.
func (pr *proposal) readManaged(ctx context.Context) error {
	if pr.managed != nil {
		return nil
	}
	managed := map[string][]v1alpha1.ObjectReference{}
	for rec, err := range pr.Ledger.Instances(ctx, pr.plan.Namespace) {
		if err != nil {
			return err
		}
		if key := managedKey(rec.Provider, &rec.State); key != "" {
			managed[key] = append(managed[key], rec.Object)
		}
	}
	pr.managed = managed
	return nil
}

// imports maps an imported resource to the changes that import it.
type imports map[string][]*ledger.Change

// importKey returns the key of the resource that a change imports, or "" if it imports none.
func importKey(c *ledger.Change) string {
	if c.Importing == nil {
		return ""
	}
	return stateKey(c.Refreshed, c.Type)
}

// managedKey returns the key of the resource of a recorded state.
func managedKey(provider string, s *ledger.State) string {
	return stateKey(s, provider, s.ProviderConfig, s.Type)
}

// stateKey joins its arguments and the identity or ID of a state. It returns "" if the state has neither.
func stateKey(s *ledger.State, parts ...string) string {
	if !s.Exists() {
		return ""
	}
	identity, id := query.IdentityIn(s)
	if identity == "" && id == "" {
		return ""
	}
	return strings.Join(append(parts, cmp.Or(identity, id)), "\x00")
}

// add adds a change.
func (i imports) add(c *ledger.Change) {
	if key := importKey(c); key != "" {
		i[key] = append(i[key], c)
	}
}

// claim adds a change. It returns the address of another change that imports the same resource, or "".
func (pr *proposal) claim(ctx context.Context, c *ledger.Change, r *resource.Resource) (other string, err error) {
	for _, has := range pr.imports[importKey(c)] {
		if has.Address == c.Address || !pr.Catalog.SameSource(has.Provider, c.Provider) {
			continue
		}
		same, err := query.SameAccount(ctx, pr.Sources, r.Entry, pr.plan.Namespace, c.ProviderConfig, pr.plan.Namespace, has.ProviderConfig)
		if err != nil || same {
			return has.Address, err
		}
	}
	pr.imports.add(c)
	return "", nil
}
