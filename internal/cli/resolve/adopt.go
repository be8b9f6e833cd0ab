package resolve

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/imports"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// adoption is a line of the file of resolve --adopt-from: an object whose create has an unknown outcome, and the ID of
// the resource.
type adoption struct {
	addrs.Target
	line   int
	id     string
	kind   session.Kind
	object *unstructured.Unstructured
}

// adoptions reads the lines "ADDRESS ID" or "ADDRESS,ID" of a file. malformed has an error for each other line.
func adoptions(in io.Reader, file string) (out []adoption, malformed []error, _ error) {
	data, err := io.ReadAll(io.LimitReader(in, manifest.MaxManifest))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	for i, text := range strings.Split(string(data), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		address, id, err := adoptionOf(text)
		a := adoption{line: i + 1, id: id}
		if err == nil {
			a.Target, err = addrs.Parse(address)
		}
		if err == nil {
			err = a.Only(v1alpha1.ModeManaged)
		}
		if err != nil {
			malformed = append(malformed, fmt.Errorf("%s:%d: %w", file, i+1, err))
			continue
		}
		out = append(out, a)
	}
	if len(out)+len(malformed) == 0 {
		return nil, nil, fmt.Errorf("%s has no line: write ADDRESS ID, such as sim_network.main net-0000002a", file)
	}
	return out, malformed, nil
}

// adoptionOf parses a line. An address may have spaces and commas in the key of an instance.
func adoptionOf(text string) (address, id string, err error) {
	if strings.HasPrefix(text, `"`) {
		fields, err := csv.NewReader(strings.NewReader(text)).Read()
		if err != nil || len(fields) != 2 {
			return "", "", errors.New("a line that begins with a quote must be two fields in CSV: ADDRESS,ID")
		}
		address, id = strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1])
	} else {
		end := addressEnd(text)
		address, id = text[:end], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text[end:]), ","))
		if unquoted, ok := csvField(id); ok {
			id = unquoted
		}
	}
	if address == "" || id == "" {
		return "", "", fmt.Errorf("%q is not an address and an ID: write ADDRESS ID, such as sim_network.main net-0000002a", text)
	}
	return address, id, nil
}

// addressEnd returns the index of the first space or comma that is not in quotes.
func addressEnd(text string) int {
	quoted := false
	for i, r := range text {
		switch {
		case r == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case !quoted && (r == ',' || r == ' ' || r == '\t'):
			return i
		}
	}
	return len(text)
}

// csvField returns the text of a quoted field.
func csvField(text string) (string, bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil || len(fields) != 1 {
		return "", false
	}
	return fields[0], true
}

// readAdoptions reads the file of --adopt-from.
func (o *resolveOptions) readAdoptions() (all []adoption, malformed []error, _ error) {
	if o.adoptFrom == "-" {
		return adoptions(o.In, "-")
	}
	f, err := os.Open(o.adoptFrom)
	if err != nil {
		return nil, nil, fmt.Errorf("--adopt-from: %w", err)
	}
	defer f.Close()
	return adoptions(f, o.adoptFrom)
}

// checkAdoptions reads the objects of the lines, and returns those to adopt: the others are adopted already. The error
// has the problems of all lines, before anything is written; errs are those of malformed lines.
func (o *resolveOptions) checkAdoptions(ctx context.Context, file string, all []adoption,
	errs []error) (wanted []adoption, done int, err error) {
	objects, ids := map[string]int{}, map[string]int{}
	for _, a := range all {
		adopted, err := o.checkAdoption(ctx, &a)
		if err == nil {
			err = a.checkDuplicate(objects, ids)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", file, a.line, a.Address(), err))
		case adopted:
			done++
		default:
			wanted = append(wanted, a)
		}
	}
	if len(errs) > 0 {
		errs = append(errs, errors.New("nothing was changed: correct these lines, and run the command again"))
	}
	return wanted, done, exit.Join(errs)
}

// checkDuplicate returns an error if another line has the same object, or the same ID of the type.
func (a *adoption) checkDuplicate(objects, ids map[string]int) error {
	object, id := string(a.object.GetUID())+a.Namespace+"/"+a.Address(), a.kind.Kind+" "+a.id
	if line, ok := objects[object]; ok {
		return fmt.Errorf("line %d has this object, too", line)
	}
	if line, ok := ids[id]; ok {
		return fmt.Errorf("line %d has the ID %s, too, and one resource belongs to one object", line, a.id)
	}
	objects[object], ids[id] = a.line, a.line
	return nil
}

// checkAdoption reads the object of a line. adopted is true if it has the resource already.
func (o *resolveOptions) checkAdoption(ctx context.Context, a *adoption) (adopted bool, err error) {
	t, k, ns, err := objects.Find(ctx, o.Session, a.Target)
	if err != nil {
		return false, err
	}
	a.Target, a.kind = t, k
	a.Namespace, a.Group = ns, k.GVR.Group
	if a.object, err = objects.Get(ctx, o.Session, k, ns, t.Name); err != nil {
		return false, err
	}
	open, err := o.unsettled.Has(ctx, a.object)
	switch {
	case err != nil:
		return false, err
	case open && v1alpha1.InModule(t.Name):
		return false, imports.ImportBlock(a.Target, &v1alpha1.PlanImport{ID: a.id})
	case open && a.object.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("it is marked for deletion, so the next applied plan forgets the create; take the deletion back first: kubectl hykube undelete %s/%s -n %s", k.Kind, t.Name, ns)
	case open:
		return false, nil
	case managedAs(a.object, a.id):
		return true, nil
	case objects.Managed(a.object):
		return false, fmt.Errorf("it manages a resource with another ID already: kubectl hykube state show %s/%s -n %s",
			k.Kind, t.Name, ns)
	}
	reason, _, _ := objects.Readiness(a.object)
	return false, fmt.Errorf("it has no create with an unknown outcome (its reason is %s), so there is nothing to resolve", reason)
}

// managedAs reports whether an object manages the resource with an ID, or was imported by it.
func managedAs(u *unstructured.Unstructured, id string) bool {
	if !objects.Managed(u) {
		return false
	}
	if recorded, _, _ := unstructured.NestedString(u.Object, "status", "attributes", "id"); recorded == id {
		return true
	}
	var by v1alpha1.PlanImport
	text, _, _ := unstructured.NestedString(u.Object, "status", "imported")
	return json.Unmarshal([]byte(text), &by) == nil && by.ID == id
}

// adoptAll adopts the resources of the lines with one plan for each namespace.
func (o *resolveOptions) adoptAll(ctx context.Context, file string, all []adoption, malformed []error) error {
	open, done, err := o.checkAdoptions(ctx, file, all, malformed)
	if err != nil {
		return err
	}
	if done > 0 {
		fmt.Fprintf(o.ErrOut, "%s of the file: adopted already.\n", diff.Plural(done, "resource"))
	}
	if len(open) == 0 {
		return nil
	}
	b := &bulkAdoption{Options: o.imports, lines: open}
	return b.run(ctx)
}

// bulkAdoption imports many resources. The imports.Options have the plan of all.
type bulkAdoption struct {
	*imports.Options
	lines []adoption
	// singles are the imports that were written to objects, and sets the entries that were written to spec.imports, by
	// namespace and name of the set.
	singles []*imports.Options
	sets    map[[2]string][]v1alpha1.InstanceImport
}

func (b *bulkAdoption) run(ctx context.Context) error {
	type written struct {
		kind      session.Kind
		namespace string
		instance  bool
	}
	checked := map[written]bool{}
	for _, a := range b.lines {
		w := written{a.kind, a.Namespace, v1alpha1.IsInstanceName(a.Name)}
		if checked[w] {
			continue
		}
		if err := b.MayRecord(ctx, w.kind, w.namespace, w.instance); err != nil {
			return err
		}
		checked[w] = true
	}
	if err := b.write(ctx); err != nil {
		return errors.Join(err, b.undo(ctx))
	}
	targets := map[string][]string{}
	for _, a := range b.lines {
		targets[a.Namespace] = append(targets[a.Namespace], a.Address())
	}
	var plans []operation.Wanted
	for _, ns := range slices.Sorted(maps.Keys(targets)) {
		plans = append(plans, operation.Wanted{Namespace: ns, Base: "import",
			Spec: v1alpha1.PlanSpec{Targets: targets[ns]}})
	}
	b.Gap, b.Refuse, b.TakeBack = true, b.RefuseReplacement, b.undo
	err := b.Operation.PlanAndApply(ctx, plans)
	if err == nil {
		return b.removeApplied(ctx, plans)
	}
	if b.TakeBack == nil {
		return err
	}
	if b.Awaited(ctx) {
		fmt.Fprintln(b.ErrOut, "The imports stay recorded, because a plan needs them. Run the same command again to continue.")
		return imports.WriteStays(err)
	}
	return errors.Join(err, b.undo(ctx))
}

// write records the imports in the objects, and in spec.imports of the sets.
func (b *bulkAdoption) write(ctx context.Context) error {
	b.sets = map[[2]string][]v1alpha1.InstanceImport{}
	for _, a := range b.lines {
		if v1alpha1.IsInstanceName(a.Name) {
			instance, _ := a.object.Object[v1alpha1.FieldInstance].(map[string]any)
			set, _ := instance["set"].(string)
			_, key, _ := v1alpha1.ParseInstanceName(a.Name)
			at := [2]string{a.Namespace, set}
			b.sets[at] = append(b.sets[at], v1alpha1.InstanceImport{Key: key.Text(), ID: a.id})
			continue
		}
		one := &imports.Options{Operation: operation.Operation{Session: b.Session}, Target: a.Target, ID: a.id,
			By: v1alpha1.PlanImport{ID: a.id}}
		if err := one.Configure(ctx, a.kind, a.Namespace, a.object); err != nil {
			return err
		}
		if one.Written != nil {
			b.singles = append(b.singles, one)
		}
	}
	for at, entries := range b.sets {
		if err := b.changeSet(ctx, at, entries, true); err != nil {
			return err
		}
		fmt.Fprintf(b.Out, "resourceset.hykube.io/%s configured\n", at[1])
	}
	return nil
}

// changeSet removes the entries of the keys from spec.imports of a set, and adds the new ones if add is true.
func (b *bulkAdoption) changeSet(ctx context.Context, at [2]string, entries []v1alpha1.InstanceImport, add bool) error {
	keys := map[string]bool{}
	for _, e := range entries {
		keys[e.Key] = true
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s := &v1alpha1.ResourceSet{}
		if err := b.Hykube.Get().Namespace(at[0]).Resource(session.SetsResource).Name(at[1]).Do(ctx).Into(
			s); err != nil {
			return err
		}
		s.Spec.Imports = slices.DeleteFunc(s.Spec.Imports, func(i v1alpha1.InstanceImport) bool { return keys[i.Key] })
		if add {
			s.Spec.Imports = append(s.Spec.Imports, entries...)
		}
		return b.Hykube.Put().Namespace(at[0]).Resource(session.SetsResource).Name(at[1]).Param("fieldManager",
			objects.FieldManager).Body(s).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change spec.imports of ResourceSet %q: %w", at[1], b.Explain(err))
	}
	return err
}

// undo reverts the writes, except those of resources that were imported.
func (b *bulkAdoption) undo(ctx context.Context) error {
	b.TakeBack = nil
	var errs []error
	now := objects.NewUnsettled(b.Session)
	for _, one := range b.singles {
		w := one.Written
		if u, err := objects.Get(ctx, b.Options.Operation.Session, w.Kind, w.Object.GetNamespace(),
			w.Object.GetName()); err == nil {
			if open, err := now.Has(ctx, u); err == nil && !open {
				continue // it was imported
			}
		}
		if err := one.Undo(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	for at, entries := range b.sets {
		if err := b.changeSet(ctx, at, entries, false); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(b.Out, "resourceset.hykube.io/%s reverted\n", at[1])
	}
	return errors.Join(errs...)
}

// removeApplied removes the entries in spec.imports after the import, as the import of one instance does, and settles
// the instances with a plan that has no changes.
func (b *bulkAdoption) removeApplied(ctx context.Context, want []operation.Wanted) error {
	if len(b.sets) == 0 {
		return nil
	}
	for at, entries := range b.sets {
		if err := b.changeSet(ctx, at, entries, false); err != nil {
			fmt.Fprintf(b.ErrOut, "Warning: the resources were imported, but their entries in spec.imports stay: %v\n",
				err)
			return nil
		}
	}
	plans, err := b.Plan(ctx, want)
	for _, p := range plans {
		if err == nil && planapi.Waiting(p) {
			_, err = planapi.Decide(ctx, b.Options.Operation.Session, p,
				v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest})
		}
	}
	if err != nil { // the next plan settles the instances
		fmt.Fprintf(b.ErrOut, "Warning: %v\n", err)
	}
	return nil
}
