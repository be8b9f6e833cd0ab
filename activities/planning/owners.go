package planning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// This file prevents two objects from managing the same infrastructure. It warns if two objects already do.

// checkOwned returns an error if another change imports the same infrastructure, or if another object manages it. It
// only adds a warning if the other object has another provider configuration, since the same ID may mean another
// resource there.
func (pr *proposal) checkOwned(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease) error {
	pr.owning.Lock()
	defer pr.owning.Unlock()
	if other := pr.imports.claim(c); other != "" {
		both := []string{c.Address, other}
		slices.Sort(both)
		return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.import", "Resource is imported twice",
			fmt.Sprintf("%s and %s import the same resource. Each plan would undo the other's changes: remove lifecycle.import from one of the objects, or delete one.", both[0], both[1]))}}
	}
	owners, err := pr.owners.Of(ctx, pr.Ledger, r.Entry.Name, &l.Type)
	if err != nil {
		return err
	}
	for _, own := range owners.Find(query.IdentityIn(c.Refreshed)) {
		if own.Object.UID == r.Ref.UID {
			continue
		}
		forgets, err := pr.forgets(ctx, own.Object)
		if err != nil {
			return err
		}
		if forgets {
			c.Preconditions.Owner = own.Object.UID
			continue
		}
		who, err := pr.describeOwner(ctx, own.Object, r)
		if err != nil {
			return err
		}
		same, err := pr.sameConfiguration(ctx, own.Object.Namespace, own.Config, l.Config)
		if err != nil {
			return err
		}
		d := lang.Problem(r.Address, "lifecycle.import", "Resource is managed already", fmt.Sprintf(
			"%s manages the resource to import, and one resource belongs to one object. Forget it there first (lifecycle.destroy: false, then delete), or take it over with lifecycle.moved. "+
				"If there is nothing to import, remove lifecycle.import.", who))
		if same {
			return &diag.Failure{Operation: "import", Diagnostics: diag.Diagnostics{d}}
		}
		d.Severity, d.Detail = v1alpha1.SeverityWarning, fmt.Sprintf(
			"%s manages a resource with the same ID or identity, with another provider configuration. If both are the same resource, do not apply this plan, because each plan would undo the other's changes. Forget the resource there first (lifecycle.destroy: false, then delete).", who)
		c.Diagnostics = append(c.Diagnostics, d)
	}
	return nil
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
	plural, err := pr.Objects.Plural(object)
	if err != nil {
		return "", err
	}
	err = pr.scope.MayRead(ctx, store.Right{Namespace: object.Namespace, Group: v1alpha1.ProviderGroup(like.Entry.Name), Resource: plural, Name: object.Name})
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

// sameConfiguration reports whether a ProviderConfig of any namespace and one of the plan's namespace have the same
// arguments. An empty name and a nil cfg mean the provider without a ProviderConfig.
func (pr *proposal) sameConfiguration(ctx context.Context, namespace, name string, cfg *v1alpha1.ProviderConfig) (bool, error) {
	switch {
	case name == "" || cfg == nil:
		return name == "" && cfg == nil, nil
	case namespace == pr.plan.Namespace:
		return name == cfg.Name, nil
	}
	other, err := pr.Configs.Get(ctx, namespace, name)
	if err != nil || other == nil {
		return false, err
	}
	// The same expression can have a different value in each namespace.
	if len(catalog.References(cfg)) > 0 || !reflect.DeepEqual(arguments(other), arguments(cfg)) || len(other.Spec.SecretRefs) != len(cfg.Spec.SecretRefs) {
		return false, nil
	}
	for i, ref := range cfg.Spec.SecretRefs {
		theirs := other.Spec.SecretRefs[i]
		if ref.Argument != theirs.Argument {
			return false, nil
		}
		a, errOurs := pr.Configs.Secret(ctx, cfg.Namespace, ref.Name, ref.Key)
		b, errTheirs := pr.Configs.Secret(ctx, namespace, theirs.Name, theirs.Key)
		if errOurs != nil || errTheirs != nil || string(a) != string(b) {
			return false, nil
		}
	}
	return true, nil
}

// arguments returns the decoded arguments of a ProviderConfig.
func arguments(cfg *v1alpha1.ProviderConfig) any {
	var args any
	if cfg.Spec.Config != nil {
		// the provider rejects invalid JSON, so such arguments need not be equal
		_ = json.Unmarshal(cfg.Spec.Config.Raw, &args)
	}
	return args
}

// warnOtherManagers adds a warning to a destroy of infrastructure that another object manages, too.
func (pr *proposal) warnOtherManagers(ctx context.Context, c *ledger.Change, r *resource.Resource, state *ledger.State, l *scope.Lease) error {
	pr.owning.Lock()
	defer pr.owning.Unlock()
	if err := pr.readManaged(ctx); err != nil {
		return err
	}
	others := slices.Clone(pr.managed[changes.OwnedKey(r.Entry.Name, state.ProviderConfig, state)])
	if r.Lifecycle.Import != nil { // earlier versions let objects of several namespaces import the same resource
		owners, err := pr.owners.Of(ctx, pr.Ledger, r.Entry.Name, &l.Type)
		if err != nil {
			return err
		}
		for _, own := range owners.Find(query.IdentityIn(state)) {
			same, err := pr.sameConfiguration(ctx, own.Object.Namespace, own.Config, l.Config)
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
		if key := changes.OwnedKey(rec.Provider, rec.ProviderConfig, &rec.State); key != "" {
			managed[key] = append(managed[key], rec.Object)
		}
	}
	pr.managed = managed
	return nil
}

// imports maps an imported resource to the address of the change that imports it.
type imports map[string]string

// claim records the import of a change. It returns the address of another change that imports the same resource, or "".
func (i imports) claim(c *ledger.Change) (other string) {
	if c.Importing == nil || !c.Refreshed.Exists() {
		return ""
	}
	identity, id := query.IdentityIn(c.Refreshed)
	if identity == "" && id == "" {
		return ""
	}
	key := strings.Join([]string{c.Provider, c.Type, c.ProviderConfig, cmp.Or(identity, id)}, "\x00")
	if has := i[key]; has != "" && has != c.Address {
		return has
	}
	i[key] = c.Address
	return ""
}
