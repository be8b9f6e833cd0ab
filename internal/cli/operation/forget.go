package operation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/query"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// forgotten is what a user can do about resources that a plan forgot.
type forgotten struct {
	// imports are the commands that the provider accepts, and others the reasons why there is none. blocks are the
	// import blocks in place of commands for resources of Modules, by the names of these.
	imports, others []string
	blocks          map[string][]string
	// released are the Modules that were deleted with the mode Observe.
	released map[string]bool
	// listed is the number of resources in these, and more that of further ones.
	listed, more int
}

// afterForget returns how to manage forgotten resources again, or "" if there are none.
func afterForget(ctx context.Context, s *session.Session, p *v1alpha1.Plan, sum v1alpha1.PlanSummary) string {
	if sum.Forget == 0 {
		return ""
	}
	f := forgotten{blocks: map[string][]string{}, released: map[string]bool{}}
	for c, err := range planapi.Changes(ctx, s, p) {
		if err != nil { // the plan was applied nevertheless
			f.others = append(f.others, "  the list of the forgotten resources ends here: "+err.Error())
			break
		}
		if c.Action != v1alpha1.ActionForget || c.Deposed != "" || c.State != v1alpha1.ChangeDone {
			continue
		}
		switch c.ActionReason {
		case "", v1alpha1.ActionReasonRemoved:
		case v1alpha1.ActionReasonReleased:
			f.released[c.Object.Set] = true
			continue
		default: // the resource may not exist
			continue
		}
		if f.listed == printer.ListedChanges {
			f.more++
			continue
		}
		f.listed++
		noteForgotten(ctx, s, p, c, &f)
	}
	return f.text(p)
}

// text returns the note below the summary of an apply.
func (f forgotten) text(p *v1alpha1.Plan) string {
	if len(f.imports)+len(f.others)+len(f.blocks)+len(f.released) == 0 {
		return ""
	}
	text := "The forgotten infrastructure still exists and is no longer managed. If you apply the object or the Module again, Hykube creates it a second time.\n"
	for _, name := range slices.Sorted(maps.Keys(f.released)) {
		text += fmt.Sprintf("To bring the resources of the Module %q back instead, push a state that has them:\n  kubectl hykube state push FILE --module %[1]s -f DIR --force -n %[2]s\n", name, p.Namespace)
	}
	for _, name := range slices.Sorted(maps.Keys(f.blocks)) {
		text += fmt.Sprintf("To import it instead, give the resource its block back in the files of the Module %q, and add:\n%s\n", name, strings.Join(f.blocks[name], "\n"))
	}
	if len(f.imports) > 0 {
		text += "To import it instead:\n" + strings.Join(f.imports, "\n") + "\n"
	}
	if len(f.others) > 0 {
		text += "For these, Hykube knows no ID that the provider imports. The provider's documentation has the ID of an import, if the type has one.\n" +
			"Without an import, Hykube cannot manage them again, and only this plan has their recorded values (kubectl hykube show " + p.Name + " -n " + p.Namespace + "):\n" +
			strings.Join(f.others, "\n") + "\n"
	}
	if f.more > 0 {
		text += fmt.Sprintf("  … and %d more\n", f.more)
	}
	return text
}

// noteForgotten adds the command or the block that imports a forgotten resource. It asks the provider first, because
// the ID of an import may be another one than the recorded ID, and many types have no import.
func noteForgotten(ctx context.Context, s *session.Session, p *v1alpha1.Plan, c *v1alpha1.PlanChange, f *forgotten) {
	object := shell.Word(c.Object.Kind + "/" + c.Object.Name)
	if v1alpha1.InModule(c.Object.Name) {
		object = diff.Clean(c.Address, false)
	}
	id, ok := recordedID(c)
	if !ok {
		f.others = append(f.others, fmt.Sprintf("  %s: its ID is not recorded, or is a secret", object))
		return
	}
	if why := importable(ctx, s, p.Namespace, c, id); why != "" {
		f.others = append(f.others, fmt.Sprintf("  %s, with the ID %s: %s", object, shell.Word(id), why))
		return
	}
	if v1alpha1.InModule(c.Object.Name) {
		f.blocks[c.Object.Set] = append(f.blocks[c.Object.Set],
			ImportBlockOf(c.Address, c.Object.Set, &v1alpha1.PlanImport{ID: id}))
		return
	}
	f.imports = append(f.imports, fmt.Sprintf("  kubectl hykube import %s %s -n %s", object, shell.Word(id),
		p.Namespace))
}

// importable returns "" if the provider imports the forgotten resource by its recorded ID, else the reason.
func importable(ctx context.Context, s *session.Session, namespace string, c *v1alpha1.PlanChange, id string) string {
	_, typ := v1alpha1.ParseKind(c.Object.Kind)
	provider, _ := v1alpha1.ProviderOfGroup(kschema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind).Group)
	q, err := query.Run(ctx, s, namespace, v1alpha1.QuerySpec{
		Type: typ, Provider: provider, ProviderConfig: c.ProviderConfig, Import: &v1alpha1.PlanImport{ID: id},
		Manifests: true,
	})
	if err != nil {
		return "it is not known whether the provider imports it: " + InOneLine(err.Error())
	}
	var found *v1alpha1.QueryResult
	if len(q.Status.Results) > 0 {
		found = &q.Status.Results[0]
		q.Status.Diagnostics = append(q.Status.Diagnostics, found.Diagnostics...)
	}
	for _, d := range q.Status.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			return "the provider refuses the import: " + InOneLine(cmp.Or(d.Detail, d.Summary))
		}
	}
	switch {
	case found == nil || found.Attributes == nil:
		return "the provider finds nothing with this ID"
	case found.ManagedBy != "":
		return "the provider imports a resource that another object manages already: " + found.ManagedBy
	case !sameValues(c.Before.Raw, found.Attributes.Raw):
		return "the provider imports a resource with other values"
	}
	return ""
}

// InOneLine returns a provider's text as one line for the terminal.
func InOneLine(text string) string {
	return diff.Clean(strings.Join(strings.Fields(text), " "), false)
}

// sameValues reports whether no attribute differs that both objects have. An import may leave attributes null, and
// secrets are masked.
func sameValues(before, found []byte) bool {
	var a, b map[string]any
	if decodeNumbers(before, &a) != nil || decodeNumbers(found, &b) != nil {
		return false
	}
	for name, v := range a {
		if w := b[name]; !sameValue(v, w) {
			return false
		}
	}
	return true
}

func decodeNumbers(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// sameValue compares the parts that both values have.
func sameValue(a, b any) bool {
	if a == nil || b == nil || a == diff.Masked || b == diff.Masked {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for name, v := range a {
			if !ok || !sameValue(v, b[name]) {
				return false
			}
		}
		return ok
	case []any:
		b, ok := b.([]any)
		if !ok || len(b) == 0 || len(a) == 0 { // an import may leave a list empty
			return ok
		}
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// recordedID returns the recorded ID of a resource; ok is false if there is none, or it is a secret.
func recordedID(c *v1alpha1.PlanChange) (id string, ok bool) {
	var before struct {
		ID string `json:"id"`
	}
	var secret struct {
		ID bool `json:"id"`
	}
	if c.Before == nil || json.Unmarshal(c.Before.Raw, &before) != nil || before.ID == "" {
		return "", false
	}
	if c.BeforeSensitive != nil && (json.Unmarshal(c.BeforeSensitive.Raw, &secret) != nil || secret.ID) {
		return "", false
	}
	return before.ID, true
}

// ImportBlockOf returns an import block for the resource of a Module with an address.
func ImportBlockOf(address, module string, by *v1alpha1.PlanImport) string {
	from := fmt.Sprintf("id = %q", by.ID)
	if by.Identity != nil {
		from = "identity = " + string(by.Identity.Raw)
	}
	return fmt.Sprintf("import {\n  to = %s\n  %s\n}", strings.TrimPrefix(address, "module."+module+"."), from)
}
