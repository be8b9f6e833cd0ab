package cli

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
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/template"
)

type validateOptions struct {
	*session
	files  fileFlags
	output string
}

func newValidate(s *session) *cobra.Command {
	o := &validateOptions{session: s}
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
		Args: noNames("-f PATH names files"),
		RunE: run(o),
	}
	o.files.addFilenames(cmd.Flags())
	outputFlag(cmd, &o.output, "Print", "text", "json")
	return cmd
}

func (o *validateOptions) Validate() error {
	if !o.files.given() {
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
	for _, p := range []string{place(f.File, f.Line, f.Column), strings.ToLower(string(f.Severity)), f.Object, f.Field, f.Message} {
		if p != "" {
			parts = append(parts, diff.Clean(p, false))
		}
	}
	return strings.Join(parts, ": ")
}

func (o *validateOptions) Run(ctx context.Context) error {
	ms, unread := o.validManifests(ctx, &o.files)
	if len(ms) == 0 {
		return unread // each line of the error has its position already
	}
	found, err := o.validate(ctx, ms)
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
		}{bad == 0, len(ms), bad, len(found) - bad, append([]finding{}, found...), o.notChecked(ms)}
		if err := printJSON(o.terminal, answer, "json"); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintln(o.ErrOut, f)
		}
		o.conclusion(ms, bad, len(found)-bad)
		fmt.Fprintf(o.Out, "Not checked: %s.\n", strings.Join(o.notChecked(ms), "; "))
	}
	if bad > 0 {
		return silent(ExitError)
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
	case *positionError:
		out = append(out, finding{Severity: v1alpha1.SeverityError, File: e.file, Line: e.line, Column: e.column, Message: e.problem})
	default:
		out = append(out, finding{Severity: v1alpha1.SeverityError, Message: err.Error()})
	}
	return out
}

func (o *validateOptions) conclusion(ms []manifest, bad, warnings int) {
	unknown := o.withoutKinds(ms)
	verdict, text := o.style.Green("Valid."), diff.Plural(len(ms), "object")+" checked"
	if unknown > 0 {
		verdict, text = o.style.Yellow("No error found."), fmt.Sprintf("%d of %s checked", len(ms)-unknown, diff.Plural(len(ms), "object"))
	}
	if bad > 0 {
		verdict = o.style.Red("Not valid: " + diff.Plural(bad, "error") + ".")
	}
	if warnings > 0 {
		text += ", " + diff.Plural(warnings, "warning")
	}
	fmt.Fprintf(o.Out, "%s %s.\n", o.style.Bold(verdict), text)
}

// validate sends the objects to the server and returns its findings in the order of the files.
func (s *session) validate(ctx context.Context, ms []manifest) ([]finding, error) {
	in, out := &v1alpha1.Validation{}, &v1alpha1.Validation{}
	for _, m := range ms {
		raw, err := json.Marshal(withoutSecrets(m.object))
		if err != nil {
			return nil, fmt.Errorf("%s: encode %s %q: %w", m.where(), m.object.GetKind(), m.object.GetName(), err)
		}
		in.Spec.Objects = append(in.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	in.Namespace = s.namespace
	err := s.hykube.Post().Namespace(s.namespace).Resource("validations").Body(in).Do(ctx).Into(out)
	if apierrors.IsRequestEntityTooLargeError(err) {
		return nil, fmt.Errorf("validate: the files are larger than a request may be, about 2 MB; check them in parts")
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", explain(err, s.server()))
	}
	found := s.notServed(ms)
	for _, p := range out.Status.Problems {
		if int(p.Index) >= len(ms) {
			continue
		}
		m := ms[p.Index]
		line, column := m.position(p.Field)
		found = append(found, finding{p.Severity, m.file, line, column, fmt.Sprintf("%s %q", m.object.GetKind(), m.object.GetName()), p.Field, p.Message})
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return found, nil
}

// notServed returns findings for objects of kinds that the server lacks. The server itself checks providers' kinds.
func (s *session) notServed(ms []manifest) []finding {
	var found []finding
	for _, m := range ms {
		gvk := m.object.GroupVersionKind()
		if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); ok {
			continue
		}
		if _, _, err := s.mapping(gvk); meta.IsNoMatchError(err) {
			line, column := m.position("kind")
			found = append(found, finding{v1alpha1.SeverityError, m.file, line, column, fmt.Sprintf("%s %q", gvk.Kind, m.object.GetName()), "kind",
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
func (s *session) notChecked(ms []manifest) []string {
	var out []string
	if names := s.withoutSchema(ms); len(names) > 0 {
		out = append(out, "the objects of providers that are not installed yet ("+strings.Join(names, ", ")+")")
	}
	if names := s.unresolvedReferences(ms); len(names) > 0 {
		out = append(out, "references to objects that are not in the files ("+strings.Join(cut(names, 3, "%d more"), ", ")+")")
	}
	return append(out, "the recorded objects, your rights, and the provider's own checks: `kubectl hykube plan -f` checks these")
}

// withoutSchema returns the providers of the objects that have no kinds on the server yet.
func (s *session) withoutSchema(ms []manifest) []string {
	groups, err := s.disco.ServerGroups()
	if err != nil {
		return nil
	}
	served := map[string]bool{}
	for _, g := range groups.Groups {
		served[g.Name] = true
	}
	var out []string
	for _, m := range ms {
		if name := m.object.GetName(); m.object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") && !served[v1alpha1.ProviderGroup(name)] {
			out = append(out, name)
		}
	}
	return out
}

// withoutKinds returns the number of objects of those providers.
func (s *session) withoutKinds(ms []manifest) (n int) {
	names := s.withoutSchema(ms)
	for _, m := range ms {
		if name, ok := v1alpha1.ProviderOfGroup(m.object.GroupVersionKind().Group); ok && slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// unresolvedReferences returns the referenced addresses that none of the objects has.
func (s *session) unresolvedReferences(ms []manifest) []string {
	namespace := func(u *unstructured.Unstructured) string {
		if ns := u.GetNamespace(); ns != "" {
			return ns
		}
		return s.namespace
	}
	written := map[string]bool{}
	for _, m := range ms {
		r := recorded{manifest: m, namespace: namespace(m.object)}
		if t, ok := r.target(); ok {
			t.namespace = r.namespace
			written[t.full()] = true
		}
		written[strings.ToLower(m.object.GetKind())+"/"+r.namespace+"/"+m.object.GetName()] = true
	}
	var out []string
	add := func(key, name string) {
		if !written[key] && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, m := range ms {
		ns := namespace(m.object)
		if !isResource(m.object) {
			continue
		}
		for _, r := range references(m.object) {
			t, err := parseTarget(r.address)
			if err != nil {
				continue
			}
			if t.namespace == "" {
				t.namespace = ns
			}
			add(t.full(), r.address)
		}
		refs, _, _ := template.Evaluate(m.object.Object["spec"])
		for _, r := range refs {
			if key := stored(r, ns); key != "" {
				add(key, strings.Join(r.Subject(), "."))
			}
		}
	}
	slices.Sort(out)
	return out
}
