package states

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/store"
)

const (
	// pullPage is the maximum number of records that a page of a pull reads, and pullBytes the size after which it
	// ends.
	pullPage  = 200
	pullBytes = 4 << 20
)

// Pull sets a page of the state of a namespace, or of a Module. The first page checks the rights to all records, and
// notes the serial.
func (s *States) Pull(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePull) error {
	p.Status = v1alpha1.StatePullStatus{}
	if p.Spec.Continue == "" {
		if err := s.beginPull(ctx, who, p); err != nil {
			return err
		}
	}
	records, err := s.Ledger.InstancesAfter(ctx, p.Namespace, p.Spec.Continue, pullPage)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(records),
		func(rec *ledger.Instance) bool { return !inModule(rec, p.Spec.Module) })
	if err := s.mayPull(ctx, &store.Asker{Access: s.Access, Who: who}, p.Namespace, wanted); err != nil {
		return err
	}
	bytes := 0
	for i, rec := range records {
		if managed(rec) && inModule(rec, p.Spec.Module) {
			entry, err := s.entryOf(rec, p.Spec.Module)
			if err != nil {
				return err
			}
			p.Status.Entries = append(p.Status.Entries, *entry)
		}
		bytes += len(rec.Attributes)
		if i == pullPage-1 || bytes > pullBytes && i < len(records)-1 {
			p.Status.Continue = string(rec.Object.UID)
			return nil
		}
	}
	return s.setOutputs(ctx, who, p)
}

// setOutputs sets the outputs of the last page.
func (s *States) setOutputs(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePull) error {
	if p.Spec.Module == "" {
		return nil
	}
	m, err := s.Sets.Module(ctx, p.Namespace, p.Spec.Module)
	if err != nil || m == nil {
		return err
	}
	if m.Problem != "" {
		p.Status.Problems = []v1alpha1.StateProblem{{Address: v1alpha1.ModulePath("", m.Name, nil),
			Problem: "its outputs are not known: " + m.Problem}}
		return nil
	}
	p.Status.Outputs, p.Status.Problems, err = (&query.Queries{Sources: s.Sources}).StateOutputs(ctx, who, m)
	return err
}

func managed(rec *ledger.Instance) bool {
	return (rec.Mode == "" || rec.Mode == v1alpha1.ModeManaged) && rec.Living()
}

// inModule reports whether a record is of a resource of a Module. All records are in that with an empty name.
func inModule(rec *ledger.Instance, module string) bool {
	return module == "" || rec.Object.Set == module && v1alpha1.InModule(rec.Object.Name)
}

// withoutModule returns an address in a Module as the root module has it. ok is false for an address outside of the
// Module.
func withoutModule(addr lang.Address, module string) (text string, ok bool) {
	if module == "" {
		return addr.String(), true
	}
	return strings.CutPrefix(addr.String(), "module."+module+".")
}

// beginPull checks that the user may read all records, and sets the lineage and the serial.
func (s *States) beginPull(ctx context.Context, who v1alpha1.Identity, p *v1alpha1.StatePull) error {
	asker := &store.Asker{Access: s.Access, Who: who}
	var kinds []*ledger.Instance
	seen := map[string]bool{}
	for rec, err := range s.Ledger.Instances(ctx, p.Namespace) {
		if err != nil {
			return err
		}
		if !inModule(rec, p.Spec.Module) {
			continue
		}
		if rec.Intent != nil {
			return conflictOf("statepulls",
				"pull state: a plan is changing %s/%s, or left the outcome of a create unknown. "+
					"Pull the state when the plan has ended: kubectl hykube status -n %s", rec.Object.Kind,
				rec.Object.Name,
				p.Namespace)
		}
		if kind := rec.Object.APIVersion + "/" + rec.Object.Kind + "/" + rec.Object.Name; managed(rec) && !seen[kind] {
			seen[kind] = true
			kinds = append(kinds, &ledger.Instance{Object: rec.Object, Provider: rec.Provider, Mode: rec.Mode,
				State: ledger.State{Type: rec.Type, Attributes: []byte("{}")}})
		}
	}
	if err := s.mayPull(ctx, asker, p.Namespace, kinds); err != nil {
		return err
	}
	for {
		known, err := s.Ledger.Lineages(ctx, p.Namespace)
		if err != nil {
			return err
		}
		lineage := known.Of(p.Spec.Module)
		if lineage == "" {
			lineage = string(uuid.NewUUID())
		}
		serial := known.Serials[lineage] + 1
		known.Note(p.Spec.Module, lineage, serial, known.TerraformVersion)
		if err = s.Ledger.SaveLineages(ctx, p.Namespace, known); errors.Is(err, ledger.ErrConflict) {
			continue
		}
		p.Status.Lineage, p.Status.Serial, p.Status.TerraformVersion = lineage, serial, known.TerraformVersion
		return err
	}
}

// mayPull returns a Forbidden error that names the kinds of records whose raw state the user may not read.
func (s *States) mayPull(ctx context.Context, asker *store.Asker, namespace string, records []*ledger.Instance) error {
	var needed []store.Right
	for _, rec := range records {
		if !managed(rec) {
			continue
		}
		plural, err := s.Objects.Plural(rec.Object)
		if err != nil {
			return err
		}
		needed = append(needed, store.Right{Verb: store.VerbGet, Namespace: namespace,
			Group: v1alpha1.ProviderGroup(rec.Provider), Resource: plural + "/state", Name: rec.Object.Name})
	}
	missing, err := asker.Missing(ctx, needed)
	if err != nil {
		return err
	}
	return forbidden("statepulls", "pull", missing)
}

// entryOf returns the entry of a record in a state, which is that of a Module unless the name is empty.
func (s *States) entryOf(rec *ledger.Instance, module string) (*v1alpha1.StateEntry, error) {
	e, ok := s.Catalog.Get(rec.Provider)
	if !ok {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("pull state: the provider %q of %s/%s is not ready",
			rec.Provider, rec.Object.Kind, rec.Object.Name))
	}
	addr := lang.AddressOf(v1alpha1.ModeManaged, cmp.Or(rec.Type, v1alpha1.TypeOf(rec.Object.Kind)), rec.Object.Name)
	address, _ := withoutModule(addr, module)
	entry := &v1alpha1.StateEntry{Address: address, Type: addr.Type, Name: rec.Object.Name,
		Provider: e.Package.Source.String()}
	if rec.StateAddress != "" {
		entry.Address = rec.StateAddress
	}
	states := []*ledger.State{&rec.State}
	for i := range rec.Deposed {
		states = append(states, &rec.Deposed[i].State)
	}
	for _, state := range states {
		if cfg := state.ProviderConfig; cfg != v1alpha1.DefaultProviderConfig && cfg != e.Name && state.Exists() {
			entry.ProviderConfig = cfg
		}
	}
	var err error
	if rec.Exists() {
		if entry.Current, err = instanceOf(e, &rec.State, module); err != nil {
			return nil, err
		}
	}
	for i := range rec.Deposed {
		d, err := instanceOf(e, &rec.Deposed[i].State, module)
		if err != nil {
			return nil, err
		}
		d.Key = rec.Deposed[i].Key
		entry.Deposed = append(entry.Deposed, *d)
	}
	return entry, nil
}

// instanceOf returns an instance in a state.
func instanceOf(e catalog.Entry, s *ledger.State, module string) (*v1alpha1.StateInstance, error) {
	in := &v1alpha1.StateInstance{
		SchemaVersion: s.SchemaVersion, Attributes: &runtime.RawExtension{Raw: s.Attributes}, Private: s.Private,
		IdentityVersion: s.IdentityVersion, Tainted: s.Tainted, CreateBeforeDestroy: s.CreateBeforeDestroy,
	}
	if len(s.Identity) > 0 {
		in.Identity = &runtime.RawExtension{Raw: s.Identity}
	}
	for _, text := range s.Dependencies {
		addr, err := lang.ParseAddress(text)
		if err != nil || addr.Namespace != "" || addr.Mode != "" {
			continue // Terraform has no such address
		}
		if text, ok := withoutModule(addr, module); ok {
			in.Dependencies = append(in.Dependencies, text)
		}
	}
	slices.Sort(in.Dependencies)
	of := e.Schema.Resources[s.Type]
	if of == nil || of.Version != s.SchemaVersion {
		return in, nil // the next plan upgrades it, and Terraform marks what its schema declares
	}
	typ := instance.NewType(e.Schema, s.Type)
	var err error
	in.SensitivePaths, err = typ.ForeignPaths(s)
	return in, err
}
