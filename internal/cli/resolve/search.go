package resolve

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/imports"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/query"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// searchLimit is the maximum number of resources that resolve --search reads of each type.
const searchLimit = 1000

// searched is what resolve --search lists at once: the resources of a kind in a namespace, with one ProviderConfig.
type searched struct {
	kind              session.Kind
	namespace, config string
}

// search pairs the objects with resources: by the ID that an object with a lost record shows, or by the values of its
// spec, with those that the provider lists and no object manages. It prints the file for --adopt-from, and returns its
// lines. A comment names each object without a pair.
func (o *resolveOptions) search(ctx context.Context, lost []lostCreate) ([]adoption, error) {
	groups := map[searched][]adoption{}
	var found []adoption
	for _, l := range lost {
		u, err := objects.Get(ctx, o.Session, l.kind, l.Namespace, l.Name)
		if err != nil {
			return nil, err
		}
		if id := lostID(u); id != "" {
			found = append(found, adoption{Target: l.Target, kind: l.kind, object: u, id: id})
			o.printPair(found[len(found)-1])
			continue
		}
		config, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig")
		at := searched{l.kind, l.Namespace, config}
		groups[at] = append(groups[at], adoption{Target: l.Target, kind: l.kind, object: u})
	}
	for _, at := range slices.SortedFunc(maps.Keys(groups), func(a, b searched) int {
		return strings.Compare(a.kind.Kind+" "+a.config, b.kind.Kind+" "+b.config)
	}) {
		paired, notes := o.listIn(ctx, at, groups[at])
		for _, a := range paired {
			o.printPair(a)
		}
		for _, n := range notes {
			fmt.Fprintln(o.Out, "# "+operation.InOneLine(n))
		}
		found = append(found, paired...)
	}
	return found, nil
}

// printPair prints a line of the file for --adopt-from. A resource of a Module has a comment there: an import block
// adopts it.
func (o *resolveOptions) printPair(a adoption) {
	if v1alpha1.InModule(a.Name) {
		fmt.Fprintf(o.Out, "# %s has the ID %s, and needs an import block in the files of its Module\n", a.Address(),
			a.id)
		return
	}
	fmt.Fprintf(o.Out, "%s %s\n", a.Address(), a.id)
}

// inModules returns the found resources outside of Modules, and for each other one an error with the import block that
// adopts it.
func (o *resolveOptions) inModules(found []adoption) (others []adoption, blocks []error) {
	for _, a := range found {
		if v1alpha1.InModule(a.Name) {
			blocks = append(blocks, imports.ImportBlock(a.Target, &v1alpha1.PlanImport{ID: a.id}))
			continue
		}
		others = append(others, a)
	}
	return others, blocks
}

// lostID returns the ID that an object with a lost record shows, or "". After a create with an unknown outcome, the
// object may show another instance.
func lostID(u *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(u.Object, "status", "attributes", "id")
	if reason, _, _ := objects.Readiness(u); reason == v1alpha1.ReasonCreateUnknown || !fitsLine(id) {
		return ""
	}
	return id
}

// fitsLine reports whether an ID can be in a line of the file. A provider may return any text as an ID, also further
// lines.
func fitsLine(id string) bool {
	return id != "" && id != diff.Masked && id == diff.Clean(id, false) && id == strings.TrimSpace(id) &&
		!strings.HasPrefix(id, `"`)
}

// searchAndAdopt prints what it finds, and asks before it records an import. Without a user who could answer, or who
// may not approve the plan, it only prints.
func (o *resolveOptions) searchAndAdopt(ctx context.Context, lost []lostCreate) error {
	found, err := o.search(ctx, lost)
	if err != nil {
		return err
	}
	found, blocks := o.inModules(found)
	return exit.Join(append(blocks, withoutNil(o.adoptFound(ctx, found))...))
}

// adoptFound asks, and adopts what a search found.
func (o *resolveOptions) adoptFound(ctx context.Context, found []adoption) error {
	if len(found) == 0 {
		return exit.Silent(exit.Failed)
	}
	if !o.imports.AutoApprove && o.Empty {
		fmt.Fprintln(o.ErrOut, "Nothing was changed. Check the lines, and adopt the resources: kubectl hykube resolve --adopt-from FILE")
		return nil
	}
	if !planapi.MayApprove(ctx, o.Session, o.Namespace) {
		return &exit.Error{Code: exit.Refused,
			Cause: fmt.Errorf("nothing was changed: you may not approve the plan of the imports in namespace %s, which needs the verb \"approve\" on plans, and \"update\" on plans/approval. "+
				"Give the lines to someone who may: kubectl hykube resolve --adopt-from FILE", o.Namespace)}
	}
	question := fmt.Sprintf("Do you want to record %s, and plan them?", diff.Plural(len(found), "import"))
	if err := o.imports.Require(ctx, question, o.ErrOut, nothingChanged); err != nil {
		return err
	}
	return o.adoptAll(ctx, "the result", found, nil)
}

// listIn lists the resources of a kind, and pairs them with the creates. The notes are about the creates without a
// pair.
func (o *resolveOptions) listIn(ctx context.Context, at searched, lost []adoption) (paired []adoption, notes []string) {
	all := func(why string) []string {
		for _, a := range lost {
			notes = append(notes, a.Address()+": "+why)
		}
		return notes
	}
	_, typ := v1alpha1.ParseKind(at.kind.Kind)
	provider, _ := v1alpha1.ProviderOfGroup(at.kind.GVR.Group)
	spec := v1alpha1.QuerySpec{Type: typ, Provider: provider, ProviderConfig: at.config, Limit: searchLimit}
	for _, a := range lost {
		spec.Objects = append(spec.Objects, a.Name)
	}
	q, err := query.Run(ctx, o.Session, at.namespace, spec)
	if err != nil {
		return nil, all(err.Error())
	}
	if query.PrintDiagnostics(o.Session, q) {
		return nil, all("the provider could not list the type")
	}
	if q.Status.Truncated {
		notes = append(notes, fmt.Sprintf(
			"there are more than %s resources of the type %s, and the others were not searched",
			diff.Count(searchLimit), typ))
	}
	paired, unpaired := pair(lost, q.Status.Results)
	return paired, append(notes, unpaired...)
}

// pair pairs creates with the resources that may be theirs, as the server says. A pair is one create and one resource
// that match no other.
func pair(lost []adoption, results []v1alpha1.QueryResult) (paired []adoption, notes []string) {
	matches, takers := map[string][]string{}, map[string]int{}
	for _, r := range results {
		var attributes struct {
			ID string `json:"id"`
		}
		if len(r.Matches) == 0 || r.Attributes == nil || json.Unmarshal(r.Attributes.Raw, &attributes) != nil {
			continue
		}
		if !fitsLine(attributes.ID) {
			continue
		}
		takers[attributes.ID] += len(r.Matches)
		for _, name := range r.Matches {
			matches[name] = append(matches[name], attributes.ID)
		}
	}
	for _, a := range lost {
		switch ids := matches[a.Name]; {
		case len(ids) == 0:
			notes = append(notes, a.Address()+": no unmanaged resource has the values of its spec")
		case len(ids) > 1:
			notes = append(notes, fmt.Sprintf("%s: %d resources have the values of its spec: %s", a.Address(), len(ids),
				strings.Join(printer.Cut(ids, printer.ListedChanges, "%d more"), ", ")))
		case takers[ids[0]] > 1:
			notes = append(notes, fmt.Sprintf("%s: %s has the values of its spec, and those of other creates",
				a.Address(), ids[0]))
		default:
			a.id = ids[0]
			paired = append(paired, a)
		}
	}
	return paired, notes
}
