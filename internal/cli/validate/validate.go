// Package validate is the verb validate, which checks files without recording them.
package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/speculation"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

type validateOptions struct {
	*session.Session
	files  manifest.Flags
	output string
}

// New returns the command validate.
func New(s *session.Session) *cobra.Command {
	o := &validateOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "validate -f PATH",
		Short: "Check files against the schemas of the providers",
		Long: `Check files against the schemas of the providers.

The server checks the arguments, types and expressions of each object as when it is recorded. It also checks references
between the objects of the files, and their cycles. It uses the schemas of the installed providers. It reads no objects
and no state, so it accepts references to objects that are not in the files, and every user may run it. The last sentence
of the output names the checks that were left out.

The command reports all errors at once, each with file, line and column, and exits with 1 if there are any.
"kubectl hykube plan -f PATH" also checks the recorded objects, and "kubectl apply --dry-run=server" your rights.`,
		Example: `  kubectl hykube validate -f infra/ -R

  # in a pipeline
  kubectl hykube validate -f infra/ -R -o json`,
		Args: session.NoNames("-f PATH names files"),
		RunE: session.Run(o),
	}
	o.files.AddFilenames(cmd.Flags())
	printer.OutputFlag(cmd, &o.output, "Print", "text", "json")
	return cmd
}

func (o *validateOptions) Validate() error {
	if !o.files.Given() {
		return errors.New("no files are named: use -f PATH")
	}
	return nil
}

// finding is one problem with its position, as -o json prints it.
type finding struct {
	Severity v1alpha1.Severity `json:"severity"`
	File     string            `json:"file,omitempty"`
	Line     int               `json:"line,omitempty"`
	Column   int               `json:"column,omitempty"`
	Object   string            `json:"object,omitempty"`
	Field    string            `json:"field,omitempty"`
	Message  string            `json:"message"`
}

func (f finding) String() string {
	var parts []string
	for _, p := range []string{manifest.Place(f.File, f.Line, f.Column), strings.ToLower(string(f.Severity)), f.Object,
		f.Field, f.Message} {
		if p != "" {
			parts = append(parts, diff.Clean(p, false))
		}
	}
	return strings.Join(parts, ": ")
}

func (o *validateOptions) Run(ctx context.Context) error {
	ms, unread := manifest.ReadValid(ctx, o.Session, &o.files)
	if len(ms) == 0 {
		return unread // each line of the error has its position already
	}
	found, err := validate(ctx, o.Session, ms)
	if err != nil {
		return errors.Join(unread, err)
	}
	found = append(unreadable(unread), found...)
	bad := 0
	for _, f := range found {
		if f.Severity == v1alpha1.SeverityError {
			bad++
		}
	}
	if o.output == "json" {
		answer := struct {
			Valid      bool      `json:"valid"`
			Objects    int       `json:"objects"`
			Errors     int       `json:"errors"`
			Warnings   int       `json:"warnings"`
			Problems   []finding `json:"problems"`
			NotChecked []string  `json:"notChecked"`
		}{bad == 0, len(ms), bad, len(found) - bad, append([]finding{}, found...), notChecked(o.Session, ms)}
		if err := printer.JSON(o.Terminal, answer, "json"); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintln(o.ErrOut, f)
		}
		o.conclusion(ms, bad, len(found)-bad)
		fmt.Fprintf(o.Out, "Not checked: %s.\n", strings.Join(notChecked(o.Session, ms), "; "))
	}
	if bad > 0 {
		return exit.Silent(exit.Failed)
	}
	return nil
}

// unreadable returns a finding for each joined error about invalid documents, which the server does not check.
func unreadable(err error) (out []finding) {
	switch e := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, joined := range e.Unwrap() {
			out = append(out, unreadable(joined)...)
		}
	case *manifest.PositionError:
		out = append(out, finding{Severity: v1alpha1.SeverityError, File: e.File, Line: e.Line, Column: e.Column,
			Message: e.Problem})
	default:
		out = append(out, finding{Severity: v1alpha1.SeverityError, Message: err.Error()})
	}
	return out
}

func (o *validateOptions) conclusion(ms []manifest.Manifest, bad, warnings int) {
	unknown := withoutKinds(o.Session, ms)
	verdict, text := o.Style.Green("Valid."), diff.Plural(len(ms), "object")+" checked"
	if unknown > 0 {
		verdict, text = o.Style.Yellow("No error found."),
			fmt.Sprintf("%d of %s checked", len(ms)-unknown, diff.Plural(len(ms), "object"))
	}
	if bad > 0 {
		verdict = o.Style.Red("Not valid: " + diff.Plural(bad, "error") + ".")
	}
	if warnings > 0 {
		text += ", " + diff.Plural(warnings, "warning")
	}
	fmt.Fprintf(o.Out, "%s %s.\n", o.Style.Bold(verdict), text)
}

// validate sends the objects to the server and returns its findings in the order of the files.
func validate(ctx context.Context, s *session.Session, ms []manifest.Manifest) ([]finding, error) {
	in, out := &v1alpha1.Validation{}, &v1alpha1.Validation{}
	for _, m := range ms {
		raw, err := json.Marshal(withoutSecrets(m.Object))
		if err != nil {
			return nil, fmt.Errorf("%s: encode %s %q: %w", m.Where(), m.Object.GetKind(), m.Object.GetName(), err)
		}
		in.Spec.Objects = append(in.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	in.Namespace = s.Namespace
	err := s.Hykube.Post().Namespace(s.Namespace).Resource("validations").Body(in).Do(ctx).Into(out)
	if apierrors.IsRequestEntityTooLargeError(err) {
		return nil, fmt.Errorf("validate: the files are larger than a request may be, about 2 MB; check them in parts")
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", s.Explain(err))
	}
	found := notServed(s, ms)
	for _, p := range out.Status.Problems {
		if int(p.Index) >= len(ms) {
			continue
		}
		m := ms[p.Index]
		line, column := m.FieldPosition(p.Field)
		found = append(found, finding{p.Severity, m.File, line, column,
			fmt.Sprintf("%s %q", m.Object.GetKind(), m.Object.GetName()), p.Field, p.Message})
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return found, nil
}

// notServed returns findings for objects of kinds that the server lacks. The server itself checks providers' kinds.
func notServed(s *session.Session, ms []manifest.Manifest) []finding {
	var found []finding
	for _, m := range ms {
		gvk := m.Object.GroupVersionKind()
		if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); ok {
			continue
		}
		if _, _, err := s.Mapping(gvk); meta.IsNoMatchError(err) {
			line, column := m.FieldPosition("kind")
			found = append(found, finding{v1alpha1.SeverityError, m.File, line, column,
				fmt.Sprintf("%s %q", gvk.Kind, m.Object.GetName()), "kind",
				fmt.Sprintf("this server has no kind %q in %q", gvk.Kind, gvk.GroupVersion())})
		}
	}
	return found
}

// withoutSecrets returns the object without the values of a Secret, because validation needs only the keys.
func withoutSecrets(u *unstructured.Unstructured) *unstructured.Unstructured {
	if (u.GroupVersionKind().GroupKind().String()) != "Secret" {
		return u
	}
	u = u.DeepCopy()
	for _, f := range []string{"data", "stringData"} {
		if values, ok := u.Object[f].(map[string]any); ok {
			for k := range values {
				values[k] = ""
			}
		}
	}
	// kubectl apply's annotation with a copy of the object has the values, too.
	u.SetAnnotations(nil)
	return u
}

// notChecked lists what the validation of files does not cover.
func notChecked(s *session.Session, ms []manifest.Manifest) []string {
	var out []string
	if names := withoutSchema(s, ms); len(names) > 0 {
		out = append(out, "the objects of providers that are not installed yet ("+strings.Join(names, ", ")+")")
	}
	if names := unresolvedReferences(s, ms); len(names) > 0 {
		out = append(out, "references to objects that are not in the files ("+
			strings.Join(printer.Cut(names, 3, "%d more"), ", ")+")")
	}
	return append(out, "the recorded objects, your rights, and the provider's own checks: `kubectl hykube plan -f` checks these")
}

// withoutSchema returns the providers of the objects that have no kinds on the server yet.
func withoutSchema(s *session.Session, ms []manifest.Manifest) []string {
	groups, err := s.Discovery.ServerGroups()
	if err != nil {
		return nil
	}
	served := map[string]bool{}
	for _, g := range groups.Groups {
		served[g.Name] = true
	}
	var out []string
	for _, m := range ms {
		if name := m.Object.GetName(); m.Object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") &&
			!served[v1alpha1.ProviderGroup(name)] {
			out = append(out, name)
		}
	}
	return out
}

// withoutKinds returns the number of objects of those providers.
func withoutKinds(s *session.Session, ms []manifest.Manifest) (n int) {
	names := withoutSchema(s, ms)
	for _, m := range ms {
		if name, ok := v1alpha1.ProviderOfGroup(m.Object.GroupVersionKind().Group); ok && slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// unresolvedReferences returns the referenced addresses that none of the objects has.
func unresolvedReferences(s *session.Session, ms []manifest.Manifest) []string {
	namespace := func(u *unstructured.Unstructured) string {
		if ns := u.GetNamespace(); ns != "" {
			return ns
		}
		return s.Namespace
	}
	written := map[string]bool{}
	for _, m := range ms {
		r := record.Recorded{Manifest: m, Namespace: namespace(m.Object)}
		if t, ok := r.Target(); ok {
			t.Namespace = r.Namespace
			written[t.Full()] = true
		}
		written[strings.ToLower(m.Object.GetKind())+"/"+r.Namespace+"/"+m.Object.GetName()] = true
	}
	var out []string
	add := func(key, name string) {
		if !written[key] && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, m := range ms {
		ns := namespace(m.Object)
		if !addrs.IsResource(m.Object) {
			continue
		}
		for _, r := range addrs.References(m.Object) {
			t, err := addrs.Parse(r.Address)
			if err != nil {
				continue
			}
			if t.Namespace == "" {
				t.Namespace = ns
			}
			add(t.Full(), r.Address)
		}
		refs, _, _ := template.Evaluate(m.Object.Object["spec"])
		for _, r := range refs {
			if key := speculation.Stored(r, ns); key != "" {
				add(key, strings.Join(r.Subject(), "."))
			}
		}
	}
	slices.Sort(out)
	return out
}
