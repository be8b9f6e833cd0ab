package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
// checkImport.
func (pr *proposal) checkOwned(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	if query.ReachesNothing(r.Entry) {
		return nil // its resources are only values, and two objects may have the same one
	}
	fair.Lock(ctx, &pr.owning)
	defer pr.owning.Unlock()
	other, err := pr.claim(ctx, c, r)
	if err != nil {
		return err
	}
	if other != "" {
		both := []string{c.Address, other}
		slices.Sort(both)
		return &diag.Failure{Operation: "import",
			Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.import", "Resource is imported twice",
				fmt.Sprintf("%s and %s import the same resource. Each plan would undo the other's changes: remove lifecycle.import from one of the objects, or delete one.", both[0], both[1]))}}
	}
	others, err := changes.OtherOwners(ctx, pr.Sources, c, r.Entry, c.Refreshed)
	if err != nil {
		return err
	}
	for _, other := range others {
		forgets, err := pr.forgets(ctx, other.Object)
		if err != nil {
			return err
		}
		if forgets {
			c.Preconditions.Owner = other.Object.UID
			continue
		}
		c.OtherOwner = true
		if err := pr.checkImport(ctx, c, r, other); err != nil {
			return err
		}
	}
	return nil
}

// checkDeposed returns an error for an import of a deposed instance of the object itself. The instance would become the
// current one, and be destroyed as a deposed one. It happens after a create of unknown outcome, when a user takes the
// old ID for the new one.
func (pr *proposal) checkDeposed(ctx context.Context, c *ledger.Change, r *resource.Resource,
	rec *ledger.Instance) error {
	if query.ReachesNothing(r.Entry) {
		return nil
	}
	identity, id := c.Refreshed.IdentityText(), c.Refreshed.ID()
	for i := range rec.Deposed {
		own := query.OwnerOf(rec.Object, r.Entry, &rec.Deposed[i].State)
		if !own.Is(r.Entry, c.Type) || !own.Has(identity, id) || own.OtherIdentity(identity) ||
			own.NamedOtherwise(r.Entry, c.Refreshed) {
			continue
		}
		same, err := query.SameAccount(ctx, pr.Sources, r.Entry, r.Ref.Namespace, c.ProviderConfig, r.Ref.Namespace,
			own.Config)
		if err != nil {
			return err
		}
		if same {
			return &diag.Failure{Operation: "import",
				Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.import",
					"Resource to import is a deposed object",
					fmt.Sprintf("The resource is the deposed object %s of %s, the old one of a replacement, and this plan would destroy it. Import the resource that the replacement created, which has another ID.\n",
						rec.Deposed[i].Key, r.Address)+createInstead(r, rec.Intent != nil))}}
		}
	}
	return nil
}

// checkImport returns the error for an import of a resource that another object manages. If the resource may be another
// one, and the plan's requester has the right that the import needs, it only adds a warning.
func (pr *proposal) checkImport(ctx context.Context, c *ledger.Change, r *resource.Resource,
	other changes.OtherOwner) error {
	who, permitted, err := pr.describeOther(ctx, other)
	if err != nil {
		return err
	}
	d := lang.Problem(r.Address, "lifecycle.import", "Resource is managed already", "")
	switch {
	case other.Right == nil:
		d.Detail = fmt.Sprintf("%s manages the resource to import, and one resource belongs to one object. Forget it there first (lifecycle.destroy: false, then delete), or take it over with lifecycle.moved. "+
			"If there is nothing to import, remove lifecycle.import.", who)
		if r.Entry.TakesConfiguration() {
			d.Detail += " If the ProviderConfigs reach different accounts, set an argument in both that tells these apart, such as a region. The import then needs the right to update the other object, too."
		}
	case other.Creating:
		d.Detail = fmt.Sprintf("%s may have created the resource to import: its create is running, or has an unknown outcome. "+
			"If it created the resource, import the resource with that object instead. Otherwise plan again when the outcome is known.", who)
		if permitted {
			d.Severity = v1alpha1.SeverityWarning
			c.Diagnostics = append(c.Diagnostics, d)
			return nil
		}
		d.Detail += fmt.Sprintf(" The import needs the verb %q on %s for that object, too: ask for it, or let a user who has it make the plan.", other.Right.Verb, other.Right.Target())
	case !permitted && !other.Same:
		d.Detail = fmt.Sprintf("%s manages a resource of another type with the same ID or identity. It may be the same resource, because a provider may have several types for one resource. "+
			"The import needs the verb %q on %s for that object, too: ask for it, or let a user who has it make the plan.", who, other.Right.Verb, other.Right.Target())
	case !permitted:
		d.Detail = fmt.Sprintf("%s manages a resource with the same ID or identity. %s, but it may be the same resource. "+
			"The import needs the verb %q on %s for that object, too: ask for it, or let a user who has it make the plan. If both are the same resource, forget it there first (lifecycle.destroy: false, then delete).", who, whyAnother(other), other.Right.Verb, other.Right.Target())
	case !other.Same:
		return nil // many resources have the ID of the resource that they belong to, such as the policy of a bucket
	default:
		d.Severity, d.Detail = v1alpha1.SeverityWarning, fmt.Sprintf(
			"%s manages a resource with the same ID or identity. %s. If both are the same resource, do not apply this plan, because each plan would undo the other's changes. Forget the resource there first (lifecycle.destroy: false, then delete).", who, whyAnother(other))
		pr.warnOnce(c, d)
		return nil
	}
	return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{d}}
}

// whyAnother returns why an import may concern another resource than the other object's.
func whyAnother(other changes.OtherOwner) string {
	if other.Shared {
		return "Other resources of its namespace have that ID, too"
	}
	return "Its ProviderConfig, its identity or the case of its ID differs"
}

// warnOnce adds a warning to a change, unless another change of the same type has one with this summary.
func (pr *proposal) warnOnce(c *ledger.Change, d v1alpha1.Diagnostic) {
	pr.mu.Lock()
	first, has := pr.warned[c.Type+"\x00"+d.Summary]
	if !has {
		pr.warned[c.Type+"\x00"+d.Summary] = c.Index
	}
	pr.mu.Unlock()
	if has && first != c.Index { // a retry plans the first change again
		return
	}
	d.Detail += " The plan shows this warning once for each type."
	c.Diagnostics = append(c.Diagnostics, d)
}

// checkReconfigured must be called before the provider reads a recorded state. If the provider has other arguments than
// before, the ID may now be that of another object's resource. The plan's requester then needs the right to update that
// object.
func (pr *proposal) checkReconfigured(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	state *ledger.State) error {
	c.Reconfigured, c.Configuration = state.Exists() && l.Reconfigured(state), ledger.Configuration(l.Digest)
	if !c.Reconfigured {
		return nil
	}
	others, err := changes.OtherOwners(ctx, pr.Sources, c, r.Entry, state)
	if err != nil {
		return err
	}
	return pr.checkMayBelong(ctx, c, r, others,
		"%s manages a resource with the same ID or identity. The arguments of the ProviderConfig of %[2]s, or the Secrets that they come from, changed since Hykube last saw the resource. So the provider may now reach that of the other object.")
}

// checkMayBelong returns an error if the plan's requester may not update one of the objects to which a resource may
// belong. Otherwise it warns. format has the object and the address of the resource.
func (pr *proposal) checkMayBelong(ctx context.Context, c *ledger.Change, r *resource.Resource,
	others []changes.OtherOwner, format string) error {
	for _, other := range others {
		c.Configuration, c.OtherOwner = ledger.Configuration{}, true
		who, permitted, err := pr.describeOther(ctx, other)
		if err != nil {
			return err
		}
		d := lang.Problem(r.Address, "", "Resource may belong to another object", fmt.Sprintf(format, who, r.Address))
		if !permitted {
			return notPermitted(d, other)
		}
		pr.warnOnce(c, restoreArguments(d))
	}
	return nil
}

// checkRead must be called after the provider read a recorded resource. If the provider has other arguments than
// before, and returned another state, a create of another object may have made the resource. The plan's requester then
// needs the right to update that object.
func (pr *proposal) checkRead(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	found := changes.Found(c)
	if !found.Exists() {
		return nil
	}
	creators, err := changes.Creators(ctx, pr.Sources, c, r.Entry, found)
	if err != nil {
		return err
	}
	err = pr.checkMayBelong(ctx, c, r, creators,
		"%s may have created the resource that now has the ID of %[2]s: its create is running, or has an unknown outcome. The arguments of the ProviderConfig of %[2]s, or the Secrets that they come from, changed since Hykube last read the resource. The resource differs from the recorded one.")
	if err != nil {
		c.Read, c.Refreshed, c.Drift, c.Recorded, c.RecordedSensitive = false, nil, nil, nil, nil
	}
	return err
}

// notPermitted returns the error for a read with other arguments that needs a right to another object.
func notPermitted(d v1alpha1.Diagnostic, other changes.OtherOwner) error {
	d.Detail += fmt.Sprintf(" The plan needs the verb %q on %s for that object, too. If the new arguments reach another account than before, restore the earlier ones. Otherwise ask for the right, or let a user who has it make the plan, such as an administrator.", other.Right.Verb, other.Right.Target())
	return &diag.Failure{Operation: "read", Diagnostics: diag.Diagnostics{d}}
}

// restoreArguments returns the warning for a read with other arguments by a user with the right to the other object.
func restoreArguments(d v1alpha1.Diagnostic) v1alpha1.Diagnostic {
	d.Severity = v1alpha1.SeverityWarning
	d.Detail += " If both are the same resource, do not apply this plan. Restore the earlier arguments."
	return d
}

// describeOther returns a text that names another owner for the plan's requester. permitted is true if the requester
// has the right that the change needs because of that owner.
func (pr *proposal) describeOther(ctx context.Context,
	other changes.OtherOwner) (who string, permitted bool, err error) {
	if who, err = pr.describeOwner(ctx, other.Owner); err != nil || other.Right == nil {
		return who, false, err
	}
	permitted, err = pr.RequesterOf(pr.plan).May(ctx, *other.Right)
	return who, permitted, err
}

// forgets reports whether the plan lets an object forget its infrastructure.
func (pr *proposal) forgets(ctx context.Context, object v1alpha1.ObjectReference) (bool, error) {
	i, deleting := pr.deletionOf(object.UID)
	if !deleting {
		return false, nil
	}
	c, err := pr.Ledger.Change(ctx, pr.plan.UID, i)
	if err != nil {
		return false, err
	}
	r, err := pr.resource(ctx, c)
	return err == nil && r.Lifecycle.Forgets(), err
}

// describeOwner returns a text that names an object for the plan's requester. If the requester may not read the object,
// the text omits its name.
func (pr *proposal) describeOwner(ctx context.Context, own query.Owner) (string, error) {
	object := own.Object
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
	addr := lang.AddressOf("", own.Type, object.Name)
	addr.Namespace = object.Namespace
	return addr.In(pr.plan.Namespace).String(), nil
}

// imports maps the identity or ID of a resource to the changes that import it.
type imports map[string][]importing

// importing is a change that imports a resource.
type importing struct {
	address, provider string
	owner             query.Owner
}

// importKey returns the identity or ID of the resource that a change imports, or "" if it imports none. It does not
// depend on the type, because a provider may have several types for one resource.
func importKey(c *ledger.Change) string {
	if c.Importing == nil || !c.Refreshed.Exists() {
		return ""
	}
	return cmp.Or(c.Refreshed.IdentityText(), c.Refreshed.ID())
}

// add adds a change. It keeps only the values that the comparison of two imports reads.
func (i imports) add(c *ledger.Change) {
	if key := importKey(c); key != "" {
		own := query.Owner{Type: c.Type, Config: c.ProviderConfig, Configuration: c.Refreshed.Configuration,
			State: c.Refreshed.Naming()}
		i[key] = append(i[key], importing{c.Address, c.Provider, own})
	}
}

// claim adds a change. It returns the address of another change that imports the same resource, or "".
func (pr *proposal) claim(ctx context.Context, c *ledger.Change, r *resource.Resource) (other string, err error) {
	for _, has := range pr.imports[importKey(c)] {
		own := has.owner
		if has.address == c.Address || !pr.Catalog.SameSource(has.provider, c.Provider) || !own.Is(r.Entry, c.Type) ||
			own.NamedOtherwise(r.Entry, c.Refreshed) {
			continue
		}
		same, err := query.SameAccount(ctx, pr.Sources, r.Entry, pr.plan.Namespace, c.ProviderConfig, pr.plan.Namespace,
			own.Config)
		if err != nil || same {
			return has.address, err
		}
	}
	pr.imports.add(c)
	return "", nil
}
