// Package query is the verb query, and the requests for existing infrastructure that import and resolve make.
package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/suggest"
)

type queryOptions struct {
	*session.Session
	typ       string
	args      []string
	file      string
	provider  string
	config    string
	limit     int64
	manifests bool
	output    string

	arguments map[string]any
}

// New returns the command query.
func New(s *session.Session) *cobra.Command {
	o := &queryOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "query TYPE [--arg KEY=VALUE ... | -f ARGS.yaml]",
		Short: "List existing infrastructure of a type",
		Long: `List existing infrastructure of a type, and the objects that manage it already.

The provider must be able to list TYPE; the error for another type names the types that it can list. Arguments such as a
region or a filter restrict the result. With --manifests the command reads each resource and prints objects that
import it, without secrets. Review them and apply them. A query records and changes nothing.`,
		Example: `  kubectl hykube query sim_instance
  kubectl hykube query sim_instance --arg tags.team=infra --limit 1000

  # import everything that has no object yet
  kubectl hykube query sim_instance --manifests -o yaml > found.yaml
  kubectl hykube apply -f found.yaml`,
		Args:              session.Exactly(1),
		ValidArgsFunction: session.CompleteTypes(s),
		RunE:              session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&o.args, "arg", nil,
		"Argument of the query, such as region=eu or tags.team=infra; the value is a text or JSON; repeatable")
	fs.StringVarP(&o.file, "filename", "f", "",
		"YAML or JSON file with the arguments of the query, or - for standard input")
	fs.StringVar(&o.provider, "provider", "", "Provider to query, if more than one has the type")
	fs.StringVar(&o.config, "provider-config", "",
		"ProviderConfig of the query; the default is that of a resource without lifecycle.providerConfig")
	fs.Int64Var(&o.limit, "limit", 100, "Largest number of resources to return; 10000 at most")
	fs.BoolVar(&o.manifests, "manifests", false,
		"Also read each resource, and print objects that import the unmanaged ones")
	printer.OutputFlag(cmd, &o.output, "Print", "table", "yaml", "json", "name")
	_ = cmd.RegisterFlagCompletionFunc("provider", session.CompleteProviders(s))
	return cmd
}

func (o *queryOptions) Complete(args []string) (err error) {
	o.typ = v1alpha1.TypeOf(args[0])
	if o.arguments, err = queryArguments(o.file, o.Input, o.args); err != nil {
		return err
	}
	if o.output == "" {
		o.output = "table"
		if o.manifests {
			o.output = "yaml"
		}
	}
	return o.Connect()
}

func (o *queryOptions) Validate() error {
	if o.limit < 1 || o.limit > 10_000 {
		return fmt.Errorf("--limit=%d: write a number from 1 to 10000", o.limit)
	}
	if strings.ContainsAny(o.typ, "./ ") {
		return fmt.Errorf("%q is not a resource type: write one such as sim_instance", o.typ)
	}
	return nil
}

// queryArguments returns the arguments of a file, overridden by those of the flags.
func queryArguments(file string, stdin io.Reader, args []string) (map[string]any, error) {
	out := map[string]any{}
	if file != "" {
		data, err := readArguments(file, stdin)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(data, &out); err != nil {
			return nil, fmt.Errorf("read arguments of %q: they must be one mapping of names to values: %w", file, err)
		}
	}
	for _, a := range args {
		path, text, ok := strings.Cut(a, "=")
		if !ok || path == "" {
			return nil, fmt.Errorf("--arg %s: write KEY=VALUE", a)
		}
		v, err := FlagValue(text)
		if err != nil {
			return nil, fmt.Errorf("--arg %s: %w", a, err)
		}
		if err := unstructured.SetNestedField(out, v, strings.Split(path, ".")...); err != nil {
			return nil, fmt.Errorf("--arg %s: %w", a, err)
		}
	}
	return out, nil
}

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// FlagValue parses the value of KEY=VALUE: as JSON if it looks like JSON, else as text. An ID such as 0012 must stay
// text. Other numbers stay text, too, because the server knows the argument's type.
func FlagValue(text string) (any, error) {
	if !wholeNumber.MatchString(text) && !slices.Contains([]string{"true", "false", "null"}, text) &&
		!strings.ContainsAny(text[:min(1, len(text))], `{["`) {
		return text, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, fmt.Errorf("%q begins like JSON, but is not valid JSON", text)
	}
	return v, nil
}

func readArguments(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, manifest.MaxManifest))
		if err != nil {
			return nil, fmt.Errorf("read arguments: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return data, nil
}

func (o *queryOptions) Run(ctx context.Context) error {
	spec := v1alpha1.QuerySpec{Type: o.typ, Provider: o.provider, ProviderConfig: o.config, Limit: o.limit,
		Manifests: o.manifests}
	if len(o.arguments) > 0 {
		raw, err := json.Marshal(o.arguments)
		if err != nil {
			return fmt.Errorf("encode arguments: %w", err)
		}
		spec.Config = &runtime.RawExtension{Raw: raw}
	}
	q, err := Run(ctx, o.Session, o.Namespace, spec)
	if err != nil {
		return err
	}
	failed := PrintDiagnostics(o.Session, q)
	if err := o.print(q); err != nil {
		return err
	}
	if q.Status.Truncated {
		fmt.Fprintf(o.ErrOut, "There are more than %s: a larger --limit shows them.\n",
			diff.Count(len(q.Status.Results)))
	}
	if failed {
		return exit.Silent(exit.Failed)
	}
	return nil
}

// Run sends a query and returns the result. The server does not store queries.
func Run(ctx context.Context, s *session.Session, namespace string, spec v1alpha1.QuerySpec) (*v1alpha1.Query, error) {
	in, out := &v1alpha1.Query{Spec: spec}, &v1alpha1.Query{}
	in.Namespace = namespace
	err := s.Hykube.Post().Namespace(namespace).Resource("queries").Body(in).Do(ctx).Into(out)
	if err != nil {
		return nil, refusedQuery(ctx, s, spec, err)
	}
	return out, nil
}

// refusedQuery returns the error for a rejected query.
func refusedQuery(ctx context.Context, s *session.Session, spec v1alpha1.QuerySpec, err error) error {
	verb := "query"
	if spec.Import != nil {
		verb = "import"
	}
	if apierrors.IsInvalid(err) {
		var what []string
		for _, c := range session.APIStatus(err).Details.Causes {
			what = append(what, fieldError(ctx, s, spec, c))
		}
		// Omit the API's prefix: a query has no name.
		return fmt.Errorf("%s %s: %s", verb, spec.Type, cmp.Or(strings.Join(what, "; "), err.Error()))
	}
	switch {
	case apierrors.IsBadRequest(err):
		return err // the error already names the query
	case !apierrors.IsNotFound(err):
		err = s.Explain(err)
	}
	return fmt.Errorf("%s %s: %w", verb, spec.Type, err)
}

// fieldError returns the error about one field of a query, with the name of its flag.
func fieldError(ctx context.Context, s *session.Session, spec v1alpha1.QuerySpec, c metav1.StatusCause) string {
	// Omit the value and the error type, which the user's command shows.
	said := c.Message
	for _, kind := range []string{"Invalid value: ", "Required value: ", "Required value", "Forbidden: "} {
		if rest, ok := strings.CutPrefix(said, kind); ok {
			said = rest
			if _, after, ok := strings.Cut(rest, `": `); ok && strings.HasPrefix(rest, `"`) {
				said = after
			}
			break
		}
	}
	if c.Field == "spec.type" {
		types, listed := queryable(ctx, s, spec)
		if !slices.Contains(types, spec.Type) {
			return said + Suggestion(spec.Type, types)
		}
		if spec.Import != nil || slices.Contains(listed, spec.Type) {
			return said
		}
		said = "its provider cannot list what exists of this type"
		if len(listed) > 0 {
			said += ", only of " + strings.Join(printer.ShortList(listed, 10), ", ")
		}
		return fmt.Sprintf("%s. Take over a single one by its ID: kubectl hykube import %s/NAME ID", said,
			v1alpha1.KindOf(spec.Type))
	}
	flag := ""
	for _, f := range [][2]string{
		{"spec.providerConfig", "--provider-config"}, {"spec.provider", "--provider"}, {"spec.limit", "--limit"},
		{"spec.config", "--arg"}, {"spec.import.identity", "--identity"}, {"spec.import.id", "the ID"},
	} {
		if rest, ok := strings.CutPrefix(c.Field, f[0]); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			flag = strings.TrimSpace(f[1] + " " + strings.TrimPrefix(rest, "."))
			break
		}
	}
	if flag == "" {
		flag = c.Field
	}
	return flag + ": " + said
}

// queryable returns the resource types of all providers, or of the query's provider. listed are those that the provider
// can list.
func queryable(ctx context.Context, s *session.Session, spec v1alpha1.QuerySpec) (types, listed []string) {
	kinds, err := s.ResourceKinds(ctx)
	if err != nil {
		return nil, nil
	}
	asked := map[string]bool{}
	for _, k := range kinds {
		name, _ := v1alpha1.ProviderOfGroup(k.GVR.Group)
		m, typ := v1alpha1.ParseKind(k.Kind)
		if m != v1alpha1.ModeManaged || spec.Provider != "" && name != spec.Provider {
			continue
		}
		types = append(types, typ)
		if typ == spec.Type {
			asked[name] = true
		}
	}
	for name := range asked {
		doc, err := objects.ProviderSchema(ctx, s, name)
		if err != nil {
			continue
		}
		for kind, model := range doc.Kinds(name) {
			if _, typ := v1alpha1.ParseKind(kind); model.Listed {
				listed = append(listed, typ)
			}
		}
	}
	slices.Sort(types)
	slices.Sort(listed)
	return slices.Compact(types), slices.Compact(listed)
}

// Suggestion returns "; did you mean ...?" for an unknown name: with the most similar name, or those that contain it.
func Suggestion(name string, names []string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	var out []string
	for _, n := range names {
		if len(name) > 2 && strings.Contains(n, name) {
			out = append(out, n)
		}
	}
	switch len(out) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; did you mean %q?", out[0])
	}
	return "; did you mean one of " + strings.Join(printer.ShortList(out, 5), ", ") + "?"
}

// PrintDiagnostics prints the diagnostics of a query. It reports whether one is an error.
func PrintDiagnostics(s *session.Session, q *v1alpha1.Query) (failed bool) {
	all := slices.Clone(q.Status.Diagnostics)
	for _, r := range q.Status.Results {
		for _, d := range r.Diagnostics {
			d.Address = cmp.Or(d.Address, found(r))
			all = append(all, d)
		}
	}
	for _, d := range all {
		fmt.Fprint(s.ErrOut, manifest.Diagnostic(s, d))
		failed = failed || d.Severity == v1alpha1.SeverityError
	}
	return failed
}

// found returns the ID or identity of a result as one word.
func found(r v1alpha1.QueryResult) string {
	if r.ID != "" {
		return r.ID
	}
	var identity map[string]any
	if r.Identity == nil || json.Unmarshal(r.Identity.Raw, &identity) != nil {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(identity)) {
		if identity[k] != nil {
			parts = append(parts, fmt.Sprintf("%s=%v", k, identity[k]))
		}
	}
	return strings.Join(parts, ",")
}

func (o *queryOptions) print(q *v1alpha1.Query) error {
	if o.manifests && o.output != "table" {
		return o.printManifests(q)
	}
	switch o.output {
	case "json", "yaml":
		q = q.DeepCopy()
		q.APIVersion, q.Kind = v1alpha1.SchemeGroupVersion.String(), "Query"
		return printer.JSON(o.Terminal, q, o.output)
	case "name":
		for _, r := range q.Status.Results {
			fmt.Fprintln(o.Out, diff.Clean(found(r), false))
		}
		return nil
	}
	if len(q.Status.Results) == 0 {
		fmt.Fprintf(o.ErrOut, "The query found no %s.\n", o.typ)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "DISPLAY NAME\tIDENTITY\tMANAGED BY")
	for _, r := range q.Status.Results {
		fmt.Fprintf(w, "%s\t%s\t%s\n", diff.Clean(cmp.Or(r.DisplayName, "-"), false),
			diff.Clean(cmp.Or(found(r), "-"), false), cmp.Or(r.ManagedBy, "-"))
	}
	return w.Flush()
}

// printManifests prints manifests for kubectl apply. It omits resources that already have an object.
func (o *queryOptions) printManifests(q *v1alpha1.Query) error {
	var list []map[string]any
	has := 0
	for _, r := range q.Status.Results {
		if r.ManagedBy != "" {
			has++
			continue
		}
		if r.Manifest == nil || len(r.Manifest.Raw) == 0 {
			continue // its diagnostics have the reason
		}
		u, err := ReadManifest(r.Manifest)
		if err != nil {
			return err
		}
		list = append(list, u.Object)
	}
	switch o.output {
	case "name":
		for _, m := range list {
			u := &unstructured.Unstructured{Object: m}
			fmt.Fprintln(o.Out, strings.ToLower(u.GroupVersionKind().GroupKind().String())+"/"+u.GetName())
		}
	case "json":
		items := make([]any, len(list))
		for i := range list {
			items[i] = list[i]
		}
		if err := printer.JSON(o.Terminal, map[string]any{"apiVersion": "v1", "kind": "List", "items": items},
			"json"); err != nil {
			return err
		}
	default:
		for _, m := range list {
			if err := printer.JSON(o.Terminal, m, "yaml"); err != nil {
				return err
			}
		}
	}
	if has > 0 {
		fmt.Fprintf(o.ErrOut, "Left out, because objects manage them already: %s.\n", diff.Count(has))
	}
	return nil
}

// ReadManifest decodes an object in the server's response.
func ReadManifest(raw *runtime.RawExtension) (*unstructured.Unstructured, error) {
	ms, err := manifest.Parse("the server's answer", raw.Raw)
	if err != nil {
		return nil, err
	}
	if len(ms) != 1 {
		return nil, errors.New("read manifest: the server's answer is not one object")
	}
	return ms[0].Object, nil
}
