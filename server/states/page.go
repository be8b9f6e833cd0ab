package states

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/shell"
	"github.com/hykube/hykube/internal/store"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// page checks the entries of a page, and keeps their records for the commit if all are right.
func (s *States) page(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePush) error {
	push, err := s.begun(ctx, who, p)
	if err != nil {
		return err
	}
	switch page := p.Spec.Page; {
	case push.Committed:
		return conflict("the push is committed already")
	case page != push.Pages && page != push.Pages-1:
		return conflict("page %d came after %d pages. Push the state again", page, push.Pages)
	case push.Entries+len(p.Spec.Entries) > v1alpha1.MaxStateEntries || push.Bytes > v1alpha1.MaxStateBytes:
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("push state: one push takes at most %d resources, and records of %d MiB: push a part of the state at a time, with --target",
				v1alpha1.MaxStateEntries, v1alpha1.MaxStateBytes>>20))
	}
	known, err := s.checkLineage(ctx, p)
	if err != nil {
		return err
	}
	if err := s.Index.Refresh(ctx); err != nil {
		return err
	}
	taking := &taking{States: s, push: p, who: who, known: known, asker: &store.Asker{Access: s.Access, Who: who},
		servers: map[string]tfprotov6.ProviderServer{}}
	defer taking.close()
	staged, err := taking.all(ctx)
	if err != nil || len(p.Status.Problems) > 0 {
		return err
	}
	if err = s.Ledger.AddPage(ctx, push, p.Spec.Page, staged); errors.Is(err, ledger.ErrConflict) {
		return conflict("another request changed the push. Push the state again")
	}
	return err
}

// taking is the check of one page.
type taking struct {
	*States
	push    *v1alpha1.StatePush
	who     v1alpha1.Identity
	known   *ledger.Lineages
	asker   *store.Asker
	servers map[string]tfprotov6.ProviderServer
	release []func()
}

func (t *taking) close() {
	for _, release := range t.release {
		release()
	}
}

// found is an entry with its object.
type found struct {
	*v1alpha1.StateEntry
	resource *resource.Resource
	config   string
	server   tfprotov6.ProviderServer
}

// all returns the records of the page, and sets the problems.
func (t *taking) all(ctx context.Context) ([]ledger.Staged, error) {
	spec := &t.push.Spec
	if err := t.checkRights(ctx); err != nil {
		return nil, err
	}
	staged := make([]ledger.Staged, len(spec.Entries))
	problems := make([]*v1alpha1.StateProblem, len(spec.Entries))
	group, ctx := bug.GroupOf(ctx)
	group.SetLimit(width)
	for i := range spec.Entries {
		e := &spec.Entries[i]
		of, err := t.find(ctx, e)
		note := func(err error) error {
			if p, ok := asProblem(e.Address, err); ok {
				problems[i] = &p
				return nil
			}
			return err
		}
		if err != nil {
			if err = note(err); err != nil {
				return nil, errors.Join(err, group.Wait())
			}
			continue
		}
		group.Go(func() error {
			record, err := t.take(ctx, of)
			if err != nil {
				return note(err)
			}
			staged[i] = *record
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, p := range problems {
		if p != nil {
			t.push.Status.Problems = append(t.push.Status.Problems, *p)
		}
	}
	return staged, nil
}

// checkRights checks the rights to the kinds of the page, before any object is read.
func (t *taking) checkRights(ctx context.Context) error {
	var needed []store.Right
	for i := range t.push.Spec.Entries {
		e := &t.push.Spec.Entries[i]
		for _, name := range t.Catalog.ProvidersOf(v1alpha1.ModeManaged, e.Type) {
			source, err := provider.ParseSource(e.Provider)
			entry, ok := t.Catalog.Get(name)
			if err != nil || !ok || !sameRegistry(entry.Package.Source, source) {
				continue
			}
			plural, err := t.Objects.Plural(referenceOf(entry, t.push.Namespace, e.Type, e.Name))
			if err != nil {
				return err
			}
			needed = append(needed, rightsTo(t.push.Namespace, v1alpha1.ProviderGroup(name), plural, e.Name)...)
		}
	}
	missing, err := t.asker.Missing(ctx, needed)
	if err != nil {
		return err
	}
	return forbidden("statepushes", "push", missing)
}

// find returns the object of an entry.
func (t *taking) find(ctx context.Context, e *v1alpha1.StateEntry) (*found, error) {
	addr, err := t.addressOf(e)
	if err != nil {
		return nil, err
	}
	source, err := provider.ParseSource(e.Provider)
	if err != nil {
		return nil, badEntry(err.Error(), "")
	}
	all, having := t.entriesOf(source, e.Type)
	switch {
	case len(all) == 0:
		name := source.Type
		if _, taken := t.Catalog.Get(name); taken {
			name = source.Namespace + "-" + source.Type
		}
		return nil, badEntry(fmt.Sprintf("no Provider with the source %s is installed", source),
			`install it: echo '{"apiVersion":"hykube.io/v1alpha1","kind":"Provider","metadata":{"name":"%s"},"spec":{"source":"%s"}}' | kubectl apply -f -`, name, source)
	case len(having) == 0:
		return nil, badEntry(fmt.Sprintf("version %s of the Provider %q has no type %s", all[0].Package.Version,
			all[0].Name, e.Type), "install the version that the state needs: change spec.version of the Provider")
	}
	var objects []*resource.Resource
	for _, entry := range having {
		obj, err := t.Objects.Get(ctx, referenceOf(entry, t.push.Namespace, e.Type, addr.ObjectName()))
		if errors.Is(err, store.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r, err := resource.Of(obj, t.Catalog)
		if err != nil {
			return nil, err
		}
		objects = append(objects, r)
	}
	switch {
	case addr.Module != "" && (len(objects) == 0 || resourceset.IsLeaving(objects[0].Object)):
		return nil, badEntry(fmt.Sprintf("the Module %q has no resource %s", v1alpha1.RootModule(addr.Module), addr),
			"the files and the inputs of the Module must be those of the state: correct them, or push only other resources with --target")
	case addr.Module != "" && objects[0].Deleting:
		return nil, badEntry(fmt.Sprintf("the Module %q is marked for deletion", v1alpha1.RootModule(addr.Module)),
			"write the Module anew when it is gone")
	case len(objects) == 0:
		return nil, badEntry(fmt.Sprintf("there is no object %s/%s", v1alpha1.KindOf(e.Type),
			v1alpha1.ShownName(addr.Name)),
			"write the object, name another one with --map ADDRESS=KIND/NAME, or push only other resources with --target")
	case len(objects) > 1:
		return nil, badEntry(fmt.Sprintf("the Providers %q and %q both have an object %s/%s", objects[0].Entry.Name,
			objects[1].Entry.Name, v1alpha1.KindOf(e.Type), addr.Name), "delete one of the two objects")
	case objects[0].Deleting:
		return nil, badEntry("its object is marked for deletion",
			"take the deletion back: kubectl hykube undelete %s -n %s",
			shell.Word(v1alpha1.KindOf(e.Type)+"/"+addr.Name), t.push.Namespace)
	}
	f := &found{StateEntry: e, resource: objects[0]}
	if f.config, err = t.configOf(ctx, f); err != nil {
		return nil, err
	}
	f.server, err = t.server(ctx, f.resource.Entry)
	return f, err
}

// addressOf returns the address of an entry's object.
func (t *taking) addressOf(e *v1alpha1.StateEntry) (lang.Address, error) {
	module, text := "", e.Type+"."+e.Name
	if v1alpha1.InModule(e.Name) {
		module, text = v1alpha1.RootModule(e.Name), v1alpha1.KindOf(e.Type)+"/"+e.Name
	}
	addr, err := lang.ParseAddress(text)
	switch {
	case err != nil || addr.Mode != "" || addr.Namespace != "":
		return addr, badEntry(fmt.Sprintf("%.100q is no name of an object", e.Name),
			"name the object with --map ADDRESS=KIND/NAME")
	case module != t.push.Spec.Module:
		return addr, badEntry(fmt.Sprintf("%.100q is no resource of the Module %q", e.Name, t.push.Spec.Module),
			"push the state of one Module at a time, with --module")
	}
	return addr, nil
}

// configOf returns the name of the ProviderConfig of an entry's object, which must be that of the entry.
func (t *taking) configOf(ctx context.Context, f *found) (string, error) {
	r, name := f.resource, ""
	cfg, err := t.ConfigOf(ctx, r)
	if err != nil {
		return "", badEntry(err.Error(), "")
	}
	if cfg != nil {
		name = cfg.Name
	}
	named := r.Lifecycle.ProviderConfig
	// The files of a Module name the configuration of each resource.
	plain := t.push.Spec.Module != "" || named == "" || named == v1alpha1.DefaultProviderConfig || named == r.Entry.Name
	if want := f.ProviderConfig; want != "" && want != cmp.Or(named, name) || want == "" && !plain {
		return "", badEntry(fmt.Sprintf("the state has it with the ProviderConfig %q, and its object uses %q",
			cmp.Or(want, v1alpha1.DefaultProviderConfig), cmp.Or(named, name, v1alpha1.DefaultProviderConfig)),
			"change lifecycle.providerConfig of the object, or name the ProviderConfig with --provider-config %s[.ALIAS]=NAME", f.Provider)
	}
	if name == "" {
		return "", nil
	}
	missing, err := t.asker.Missing(ctx, []store.Right{store.UseOf(t.push.Namespace, name)})
	if err != nil {
		return "", err
	}
	return name, forbidden("statepushes", "push", missing)
}

// server returns an unconfigured process of a provider, which only upgrades.
func (t *taking) server(ctx context.Context, e catalog.Entry) (tfprotov6.ProviderServer, error) {
	if server, ok := t.servers[e.Name]; ok {
		return server, nil
	}
	server, release, err := t.Sessions.Unconfigured(ctx, e, provider.Configuration{})
	if err != nil {
		return nil, err
	}
	t.servers[e.Name], t.release = server, append(t.release, release)
	return server, nil
}

// take returns the record of an entry.
func (t *taking) take(ctx context.Context, f *found) (*ledger.Staged, error) {
	r := f.resource
	old, err := t.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return nil, err
	}
	if err := t.checkRecord(f, old); err != nil {
		return nil, err
	}
	by := []v1alpha1.Contributor{{Identity: t.who, Wrote: []string{v1alpha1.WroteState}, At: metav1.NowMicro()}}
	rec := &ledger.Instance{
		Object: r.Ref, Provider: r.Entry.Name, Plan: types.UID(t.push.Spec.ID),
		State:        ledger.State{Type: r.Address.Type},
		Contributors: contributor.Merge(old.Contributors, by), Writers: by,
	}
	rec.Object.Generation = 0 // no generation was applied yet
	if f.Address != r.Address.String() && r.Address.Module == "" {
		rec.StateAddress = f.Address
	}
	if f.Current != nil {
		if rec.State, err = t.state(ctx, f, f.Current); err != nil {
			return nil, err
		}
	}
	for i := range f.Deposed {
		d := &f.Deposed[i]
		if !deposedKey(d.Key) || rec.FindDeposed(d.Key) != nil {
			return nil, badEntry(fmt.Sprintf(
				"the key %.40q of its deposed instance is not one of 8 hexadecimal digits, or it has that key twice",
				d.Key), "take the state again with terraform state pull")
		}
		state, err := t.state(ctx, f, d)
		if err != nil {
			return nil, err
		}
		rec.Deposed = append(rec.Deposed, ledger.Deposed{Key: d.Key, State: state})
	}
	if !rec.Living() {
		return nil, badEntry("it has neither attributes nor a deposed instance",
			"take the state again with terraform state pull")
	}
	if err := checkSame(old, rec, t.push.Namespace); err != nil {
		return nil, err
	}
	return &ledger.Staged{Address: f.Address, Record: rec, Revision: old.Revision()},
		t.checkOwners(ctx, t.asker, r, rec)
}

// unread begins the arguments of a provider in a record that was pushed. They are those of no ProviderConfig, because
// no provider has read the resource. So the next plan reads it, and checks that it belongs to no other object, as with
// other arguments.
const unread = "unread:"

func deposedKey(key string) bool {
	return len(key) == 8 && !slices.ContainsFunc([]byte(key),
		func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// checkRecord returns a problem if the record of an object forbids a push.
func (t *taking) checkRecord(f *found, old *ledger.Instance) error {
	lineages := slices.Sorted(maps.Keys(t.known.Serials))
	switch _, pushed := t.known.Serials[t.push.Spec.Lineage]; {
	case old.Intent != nil:
		return badEntry("a plan is changing its object, or left the outcome of a create unknown",
			"push the state when the plan has ended: kubectl hykube status -n %s", t.push.Namespace)
	case old.Revision() == 0:
		return nil
	case !pushed:
		of := "no plan of Hykube has given it to Terraform"
		if len(lineages) > 0 {
			of = fmt.Sprintf("the states of the namespace have the lineages %.200q", lineages)
		}
		return badEntry(fmt.Sprintf("its object has a record, which is not of the lineage %.80q: %s",
			t.push.Spec.Lineage, of),
			"name another object with --map, or leave the resource out with --target; kubectl hykube state rm forgets the record")
	case !t.push.Spec.Force:
		return badEntry("its object has a record already",
			"to replace it by the newer one of the same lineage, push with --force")
	}
	return nil
}

// checkSame returns a problem if a record would lose a resource to the one that replaces it: only a plan forgets
// infrastructure.
func checkSame(old, rec *ledger.Instance, namespace string) error {
	lost := old.Exists() && !sameResource(&old.State, &rec.State)
	for i := range old.Deposed {
		d := rec.FindDeposed(old.Deposed[i].Key)
		lost = lost || d == nil || !sameResource(&old.Deposed[i].State, &d.State)
	}
	if !lost {
		return nil
	}
	return badEntry(fmt.Sprintf("its object has the record of another resource (ID %.100q), or a deposed one that the state lacks", old.State.ID()),
		"the push would forget that one. Let a plan forget or destroy it first: kubectl hykube plan --refresh=All -n %s finds what is gone, and kubectl hykube state rm forgets the rest", namespace)
}

// sameResource reports whether two states are of one resource: by their identities, or else their IDs, or else all
// attributes.
func sameResource(a, b *ledger.State) bool {
	switch x, y := a.IdentityText(), b.IdentityText(); {
	case !b.Exists():
		return false
	case x != "" && y != "":
		return x == y
	case a.ID() != "" || b.ID() != "":
		return a.ID() == b.ID()
	}
	var x, y any
	return json.Unmarshal(a.Attributes, &x) == nil && json.Unmarshal(b.Attributes, &y) == nil && reflect.DeepEqual(x, y)
}

// state returns the recorded state of an instance.
func (t *taking) state(ctx context.Context, f *found, in *v1alpha1.StateInstance) (ledger.State, error) {
	r := f.resource
	s := ledger.State{
		Type: r.Address.Type, ProviderConfig: f.config, ProviderVersion: r.Entry.Package.Version,
		SchemaVersion: in.SchemaVersion,
		Attributes:    rawOf(in.Attributes), Private: in.Private, Identity: rawOf(in.Identity),
		IdentityVersion: in.IdentityVersion,
		Tainted:         in.Tainted, CreateBeforeDestroy: in.CreateBeforeDestroy, Dependencies: in.Dependencies,
		Configuration: ledger.Configuration{Arguments: unread + t.push.Spec.ID},
	}
	if len(s.Attributes) == 0 && in.FlatAttributes == nil {
		return s, badEntry("it has no attributes", "take the state again with terraform state pull")
	}
	for _, d := range in.Dependencies {
		if _, err := lang.ParseAddress(d); err != nil {
			return s, badEntry(fmt.Sprintf("its dependency %.100q is no address", d),
				"take the state again with terraform state pull")
		}
	}
	if in.FlatAttributes != nil {
		s.Attributes = json.RawMessage(`{}`)
	}
	typ := instance.NewType(r.Entry.Schema, r.Address.Type)
	typ.Provider = f.server
	if err := typ.Take(ctx, instance.Foreign{State: &s, Flat: in.FlatAttributes,
		Sensitive: in.SensitivePaths}); err != nil {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		return s, badEntry(err.Error(),
			"the installed version of the Provider %q is %s; install one that reads the state", r.Entry.Name,
			r.Entry.Package.Version)
	}
	if err := t.Ledger.CheckState(f.Address, &s); err != nil {
		return s, badEntry(err.Error(), "")
	}
	return s, nil
}

// checkOwnersOf returns a problem if another object manages the same resource; see
// docs/decisions/0016-what-identifies-a-resource.md.
func (s *States) checkOwnersOf(ctx context.Context, asker *store.Asker, r *resource.Resource,
	state *ledger.State) error {
	if !state.Exists() {
		return nil
	}
	c := &ledger.Change{Refreshed: state}
	c.Object, c.Type, c.ProviderConfig = r.Ref, r.Address.Type, state.ProviderConfig
	c.Importing = &v1alpha1.PlanImport{ID: state.ID()}
	others, err := changes.OtherOwners(ctx, s.Sources, c, r.Entry, state)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Right == nil {
			return badEntry("another object manages the same resource",
				"one resource belongs to one object: forget it there first, with kubectl hykube state rm")
		}
		may, err := asker.May(ctx, *other.Right)
		if err != nil {
			return err
		}
		if !may {
			return badEntry("another object may manage the same resource", "you need the right to %s", other.Right)
		}
	}
	return nil
}

// checkOwners calls checkOwnersOf for the current instance of a record, and for its deposed ones.
func (s *States) checkOwners(ctx context.Context, asker *store.Asker, r *resource.Resource,
	rec *ledger.Instance) error {
	if err := s.checkOwnersOf(ctx, asker, r, &rec.State); err != nil {
		return err
	}
	for i := range rec.Deposed {
		if err := s.checkOwnersOf(ctx, asker, r, &rec.Deposed[i].State); err != nil {
			return err
		}
	}
	return nil
}
