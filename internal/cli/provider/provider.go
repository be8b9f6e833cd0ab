// Package provider is the verbs below provider: list, schema and lock.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/openapi"
	"github.com/hykube/hykube/internal/suggest"
)

// New returns the command provider.
func New(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "List installed providers, show what they offer, and lock their versions",
		Example: `  kubectl hykube provider list
  kubectl hykube provider schema sim
  kubectl hykube provider schema sim sim_network
  kubectl hykube provider lock | kubectl apply -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: session.Group(nil),
	}
	cmd.AddCommand(newProviderList(s), newProviderSchema(s), newProviderLock(s))
	return cmd
}

type providerListOptions struct {
	*session.Session
	output string
}

func newProviderList(s *session.Session) *cobra.Command {
	o := &providerListOptions{Session: s}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the providers of the server",
		Example: `  kubectl hykube provider list`,
		Args:    cobra.NoArgs,
		RunE:    session.Run(o),
	}
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml", "name")
	return cmd
}

func (o *providerListOptions) Run(ctx context.Context) error {
	list := &v1alpha1.ProviderList{}
	if err := o.Hykube.Get().Resource("providers").Do(ctx).Into(list); err != nil {
		return fmt.Errorf("list providers: %w", o.Explain(err))
	}
	if o.output == "name" {
		for _, p := range list.Items {
			fmt.Fprintf(o.Out, "provider.%s/%s\n", v1alpha1.GroupName, p.Name)
		}
		return nil
	}
	if o.output != "" {
		list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "ProviderList"
		return printer.JSON(o.Terminal, list, o.output)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(o.ErrOut, "No providers. To install one, create a Provider: see `kubectl explain provider.spec`.")
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSOURCE\tVERSION\tPROTOCOL\tKINDS\tREADY")
	var notes []string
	for _, p := range list.Items {
		state := "True"
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
			state = "False"
			notes = append(notes, p.Name+": "+record.ConditionText(p.Status.Conditions))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, p.Spec.Source, cmp.Or(p.Status.Version, "-"),
			cmp.Or(p.Status.Protocol, "-"), p.Status.Kinds, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(o.ErrOut, diff.Clean(n, true))
	}
	return nil
}

type providerSchemaOptions struct {
	*session.Session
	provider string
	kind     string
	// config shows the arguments of the provider configuration.
	config bool
}

func newProviderSchema(s *session.Session) *cobra.Command {
	o := &providerSchemaOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "schema PROVIDER [TYPE]",
		Short: "Show the types of a provider, the arguments of one, or those of the provider itself",
		Long: `Show the resource types, data sources, ephemeral resources and actions of a provider, or the arguments and attributes of
one. With --config it shows the arguments of the provider itself, which a ProviderConfig has in spec.config.

It reads the server's OpenAPI document, as kubectl explain does.`,
		Example: `  kubectl hykube provider schema sim
  kubectl hykube provider schema sim sim_network
  kubectl hykube provider schema sim data.sim_network
  kubectl hykube provider schema sim --config`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: session.CompleteProviders(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.config, "config", false, "Show the arguments of the provider itself")
	return cmd
}

func (o *providerSchemaOptions) Complete(args []string) error {
	o.provider = args[0]
	if len(args) == 2 {
		o.kind = typeKind(args[1])
	}
	return o.Connect()
}

func (o *providerSchemaOptions) Validate() error {
	if o.config && o.kind != "" {
		return fmt.Errorf("--config shows the arguments of the provider itself: leave %s out", typeName(o.kind))
	}
	return nil
}

func (o *providerSchemaOptions) Run(ctx context.Context) error {
	doc, err := objects.ProviderSchema(ctx, o.Session, o.provider)
	if err != nil {
		return err
	}
	kinds := doc.Kinds(o.provider)
	if o.config {
		o.configuration(doc)
		return nil
	}
	if o.kind == "" {
		if err := o.types(kinds); err != nil {
			return err
		}
		fmt.Fprintf(o.ErrOut, "%s\n", o.Style.Dim(
			fmt.Sprintf("The arguments of the provider itself: kubectl hykube provider schema %s --config",
				o.provider)))
		return nil
	}
	s, ok := kinds[o.kind]
	if !ok {
		var names []string
		for n := range kinds {
			names = append(names, n)
		}
		m, _ := v1alpha1.ParseKind(o.kind)
		if near := suggest.Nearest(o.kind, names); near != "" {
			return fmt.Errorf("provider %q has no %s %q: did you mean %q?", o.provider, addrs.ModeWord(m),
				typeName(o.kind), typeName(near))
		}
		return fmt.Errorf("provider %q has no %s %q: `kubectl hykube provider schema %s` lists its types", o.provider,
			addrs.ModeWord(m), typeName(o.kind), o.provider)
	}
	o.one(s, doc)
	return nil
}

func (o *providerSchemaOptions) types(kinds map[string]*openapi.Schema) error {
	names := make([]string, 0, len(kinds))
	for n := range kinds {
		names = append(names, n)
	}
	// Managed resources come first.
	slices.SortFunc(names, func(a, b string) int {
		ma, ta := v1alpha1.ParseKind(a)
		mb, tb := v1alpha1.ParseKind(b)
		return cmp.Or(slices.Index(modeOrder, ma)-slices.Index(modeOrder, mb), strings.Compare(ta, tb))
	})
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "TYPE\tKIND\tDESCRIPTION")
	for _, n := range names {
		fmt.Fprintf(w, "%s\t%s\t%s\n", typeName(n), n, firstSentence(kinds[n].Description))
	}
	return w.Flush()
}

// configuration prints the arguments of the provider configuration.
func (o *providerSchemaOptions) configuration(doc *openapi.Document) {
	s := doc.Components.Schemas["io.hykube."+o.provider+"."+v1alpha1.ResourceVersion+".Configuration"]
	fmt.Fprintf(o.Out, "%s\n", o.Style.Bold("provider "+o.provider))
	if s == nil || len(s.Properties) == 0 {
		fmt.Fprintln(o.Out, "\nThe provider has no arguments of its own.")
		return
	}
	fmt.Fprintf(o.Out, "\n%s\n", o.Style.Bold(
		"Arguments (spec.config of a ProviderConfig; values from Secrets go into spec.secretRefs)"))
	w := &schemaWriter{w: o.Out, doc: doc, style: o.Style}
	w.fields(s, 2, nil)
}

// modeOrder is the order of the modes in the list of types.
var modeOrder = []v1alpha1.Mode{v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction}

// typeKind returns the kind for sim_network, sim-network, data.sim_network or data-sim-network.
func typeKind(s string) string {
	return v1alpha1.KindOf(strings.Replace(s, ".", "-", 1))
}

// typeName returns the type as written in an address: sim_network, data.sim_network.
func typeName(kind string) string {
	m, typ := v1alpha1.ParseKind(kind)
	if m == v1alpha1.ModeManaged {
		return typ
	}
	return string(m) + "." + typ
}

// sentenceEnd matches the end of a sentence and the beginning of the next one.
var sentenceEnd = regexp.MustCompile("([.!?][)\"'`]?)\\s+[\"'`(\\[]?[A-Z]")

// abbreviations end with a period but do not end a sentence.
var abbreviations = []string{"e.g.", "i.e.", "etc.", "cf.", "vs.", "approx.", "resp.", "incl.", "no.", "ex."}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(diff.Clean(s, true)), "\n")
	for from := 0; ; {
		m := sentenceEnd.FindStringSubmatchIndex(s[from:])
		if m == nil {
			return s
		}
		stop := from + m[2] + 1
		word := strings.TrimLeft(s[strings.LastIndexByte(s[:stop], ' ')+1:stop], "(\"'`")
		if !slices.Contains(abbreviations, strings.ToLower(word)) {
			return s[:from+m[3]]
		}
		from = stop
	}
}

func (o *providerSchemaOptions) one(s *openapi.Schema, doc *openapi.Document) {
	fmt.Fprintf(o.Out, "%s\n", o.Style.Bold(typeName(o.kind)))
	if s.Description != "" {
		fmt.Fprintf(o.Out, "%s\n", diff.Clean(s.Description, true))
	}
	spec := doc.Resolve(s.Properties["spec"])
	fmt.Fprintf(o.Out, "\n%s\n", o.Style.Bold("Arguments (spec)"))
	w := &schemaWriter{w: o.Out, doc: doc, style: o.Style}
	w.fields(spec, 2, nil)
	status := doc.Resolve(s.Properties["status"])
	if status == nil {
		return
	}
	if attributes := doc.Resolve(status.Properties["attributes"]); attributes != nil && len(attributes.Properties) > 0 {
		fmt.Fprintf(o.Out, "\n%s\n", o.Style.Bold("Attributes that only the provider sets (status.attributes)"))
		w.fields(attributes, 2, spec)
	}
}

type schemaWriter struct {
	w     io.Writer
	doc   *openapi.Document
	style diff.Style
}

// fields prints the properties of an object, except those that skip has.
func (w *schemaWriter) fields(s *openapi.Schema, indent int, skip *openapi.Schema) {
	if s == nil || indent > 24 {
		return
	}
	names := make([]string, 0, len(s.Properties))
	for n := range s.Properties {
		if skip != nil && skip.Properties[n] != nil {
			continue
		}
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		ra, rb := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, n := range names {
		p := w.doc.Resolve(s.Properties[n])
		if p == nil {
			continue
		}
		line := strings.Repeat(" ", indent) + w.style.Bold(n) + "  " + w.typeName(p)
		if slices.Contains(s.Required, n) {
			line += w.style.Yellow("  required")
		}
		if d := firstSentence(cmp.Or(s.Properties[n].Description, p.Description)); d != "" {
			line += "  " + w.style.Dim(d)
		}
		fmt.Fprintln(w.w, w.style.Fit(line))
		inner := p
		if p.Items != nil {
			inner = w.doc.Resolve(p.Items)
		}
		w.fields(inner, indent+4, nil)
	}
}

func (w *schemaWriter) typeName(s *openapi.Schema) string {
	s = w.doc.Resolve(s)
	switch {
	case s == nil:
		return "any"
	case s.Items != nil:
		return "[]" + w.typeName(s.Items)
	case s.IntOrString:
		return "number"
	case s.Type == "object" && len(s.Properties) == 0:
		var inner openapi.Schema
		if json.Unmarshal(s.Additional, &inner) == nil && (inner.Type != "" || inner.Ref != "" || len(inner.AnyOf)+
			len(inner.OneOf) > 0) {
			return "map of " + w.typeName(&inner)
		}
		return "map"
	case s.Type == "" && len(s.AnyOf)+len(s.OneOf) > 0:
		// For a value that may also be an expression, show the value's type.
		for _, x := range append(slices.Clone(s.AnyOf), s.OneOf...) {
			if x = w.doc.Resolve(x); x != nil && x.Type != "string" && x.Type != "" {
				return x.Type
			}
		}
		return "string"
	}
	return cmp.Or(s.Type, "any")
}
