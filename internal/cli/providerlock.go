package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

type providerLockOptions struct {
	*session
	names []string
	file  string
	// change allows versions other than those that existing objects use.
	change bool
}

func newProviderLock(s *session) *cobra.Command {
	o := &providerLockOptions{session: s}
	cmd := &cobra.Command{
		Use:   "lock [PROVIDER ...]",
		Short: "Print Providers with their exact versions and checksums",
		Long: `Print Providers with their exact versions and checksums, in spec.version and spec.checksums. The server then accepts no
other package. The command changes nothing: pipe its output to "kubectl apply -f -".

A Provider has one version for all namespaces. If the lock file has another version than the installed one, and objects use
it, the command prints nothing and fails: it says how many objects of which namespaces would get the other version.
--change-version prints the Providers nevertheless.

The checksums are those of the installed versions, or those of Terraform's dependency lock file with --filename. The
lock file has them for all platforms on which "terraform providers lock" was used.`,
		Example: `  kubectl hykube provider lock | kubectl apply -f -
  kubectl hykube provider lock -f .terraform.lock.hcl | kubectl apply -f -
  kubectl hykube provider lock aws -f .terraform.lock.hcl --change-version | kubectl apply -f -`,
		ValidArgsFunction: completeProviders(s),
		RunE:              run(o),
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "Terraform's dependency lock file, .terraform.lock.hcl; - reads standard input")
	cmd.Flags().BoolVar(&o.change, "change-version", false, "Also print a version that would replace the one that existing objects use")
	return cmd
}

func (o *providerLockOptions) Complete(args []string) error {
	o.names = args
	return o.connect()
}

func (o *providerLockOptions) Validate() error { return nil }

func (o *providerLockOptions) Run(ctx context.Context) error {
	list := &v1alpha1.ProviderList{}
	if err := o.hykube.Get().Resource("providers").Do(ctx).Into(list); err != nil {
		return fmt.Errorf("list providers: %w", explain(err, o.server()))
	}
	out := lockInstalled(list.Items)
	if o.file != "" {
		locks, err := o.readLockFile()
		if err != nil {
			return err
		}
		if out, err = lockFromFile(locks, list.Items, o.names); err != nil {
			return err
		}
	}
	for _, name := range o.names {
		if !slices.ContainsFunc(out, func(p v1alpha1.Provider) bool { return p.Name == name }) {
			return fmt.Errorf("lock provider %q: there is no such provider with a known version: `kubectl hykube provider list` shows which there are", name)
		}
	}
	out = slices.DeleteFunc(out, func(p v1alpha1.Provider) bool { return len(o.names) > 0 && !slices.Contains(o.names, p.Name) })
	if err := o.refuseChanges(ctx, out); err != nil {
		return err
	}
	for _, p := range out {
		if err := printJSON(o.terminal, lockedManifest(p), "yaml"); err != nil {
			return err
		}
	}
	return nil
}

// refuseChanges returns an error if a lock would replace a version that existing objects use.
func (o *providerLockOptions) refuseChanges(ctx context.Context, locked []v1alpha1.Provider) error {
	if o.change {
		return nil
	}
	var problems []string
	for _, p := range locked {
		if p.Status.Version == "" || p.Spec.Version == p.Status.Version {
			continue
		}
		counts, err := o.users(ctx, p.Name)
		if err != nil {
			return fmt.Errorf("count the objects of the provider %q, which uses version %s and would get %s: %w", p.Name, p.Status.Version, p.Spec.Version, err)
		}
		if len(counts) > 0 {
			problems = append(problems, fmt.Sprintf("provider %q would change from version %s to %s for all its objects: %s", p.Name, p.Status.Version, p.Spec.Version, diff.InNamespaces(counts)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s.\nIf that is meant, add --change-version. To use the other version in some namespaces alone, create a second Provider with the same source and another name",
		strings.Join(problems, ";\n"))
}

// users counts the objects of a provider's kinds, and the instances of ResourceSets, in each namespace.
func (o *providerLockOptions) users(ctx context.Context, provider string) (map[string]int, error) {
	counts := map[string]int{}
	for cont := ""; ; {
		page := &v1alpha1.ResourceSummaryList{}
		err := o.hykube.Get().Resource(resourcesResource).Param("fieldSelector", fields.OneTermEqualSelector(v1alpha1.ResourceFieldProvider, provider).String()).
			Param("limit", strconv.Itoa(listPage)).Param("continue", cont).Do(ctx).Into(page)
		if err != nil {
			return nil, explain(err, o.server())
		}
		for _, r := range page.Items {
			counts[r.Object.Namespace]++
		}
		if cont = page.Continue; cont == "" {
			return counts, nil
		}
	}
}

// lockInstalled returns the Providers that are installed, with the checksums of their packages.
func lockInstalled(list []v1alpha1.Provider) (out []v1alpha1.Provider) {
	for _, p := range list {
		if p.Status.Checksum == "" {
			continue
		}
		p.Spec.Version, p.Spec.Checksums = p.Status.Version, []string{p.Status.Checksum}
		if zh := p.Status.ArchiveChecksum; zh != "" {
			p.Spec.Checksums = append(p.Spec.Checksums, zh)
		}
		out = append(out, p)
	}
	return out
}

// readLockFile reads the lock file.
func (o *providerLockOptions) readLockFile() ([]providerLock, error) {
	in := o.In
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, fmt.Errorf("read lock file: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read lock file: %w", err)
	}
	return parseLockFile(data, o.file)
}

// lockFromFile returns the Providers of a lock file: those of the server with the same source, else new ones with the
// type as the name. names selects among several Providers with one source.
func lockFromFile(locks []providerLock, list []v1alpha1.Provider, names []string) (out []v1alpha1.Provider, _ error) {
	for _, l := range locks {
		known := withSource(list, l.source)
		if len(known) > 1 {
			all := known
			known = slices.DeleteFunc(slices.Clone(all), func(p v1alpha1.Provider) bool { return !slices.Contains(names, p.Name) })
			if len(known) == 0 && len(names) == 0 {
				return nil, fmt.Errorf("lock provider %s: the server has several Providers with this source: %s; name those that get version %s, as in `kubectl hykube provider lock %s -f FILE`",
					l.source, providerVersions(all), l.version, all[0].Name)
			}
		} else if len(known) == 0 {
			name := l.source[strings.LastIndexByte(l.source, '/')+1:]
			if i := slices.IndexFunc(list, func(p v1alpha1.Provider) bool { return p.Name == name }); i >= 0 {
				return nil, fmt.Errorf("lock provider %s: the Provider %q of the server has another source, %s; create a Provider with the source %s first", l.source, name, list[i].Spec.Source, l.source)
			}
			known = []v1alpha1.Provider{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{Source: l.source}}}
		}
		for _, p := range known {
			p.Spec.Version, p.Spec.Checksums = l.version, l.hashes
			out = append(out, p)
		}
	}
	return out, nil
}

// withSource returns the Providers with a source.
func withSource(list []v1alpha1.Provider, source string) (out []v1alpha1.Provider) {
	for _, p := range list {
		if fullSource(p.Spec.Source) == source {
			out = append(out, p)
		}
	}
	return out
}

// providerVersions lists Providers with their installed versions.
func providerVersions(list []v1alpha1.Provider) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, fmt.Sprintf("%s (%s)", p.Name, cmp.Or(p.Status.Version, "not installed")))
	}
	return strings.Join(parts, ", ")
}

// lockedManifest returns the parts of a Provider that users write, so that "kubectl apply" changes nothing else.
func lockedManifest(p v1alpha1.Provider) map[string]any {
	metadata := map[string]any{"name": p.Name}
	if len(p.Labels) > 0 {
		metadata["labels"] = p.Labels
	}
	annotations := maps.Clone(p.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Provider", "metadata": metadata, "spec": p.Spec}
}

// fullSource returns the address of a provider with host and namespace.
func fullSource(s string) string {
	s = strings.ToLower(s)
	defaults := []string{"registry.terraform.io/hashicorp/", "registry.terraform.io/", ""}
	return defaults[min(strings.Count(s, "/"), 2)] + s
}

// providerLock is a provider in a lock file.
type providerLock struct {
	source, version string
	hashes          []string
}

// parseLockFile parses Terraform's dependency lock file.
func parseLockFile(data []byte, name string) ([]providerLock, error) {
	file, diags := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("read lock file: %w", diags)
	}
	var out []providerLock
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		if b.Type != "provider" || len(b.Labels) != 1 {
			continue
		}
		l := providerLock{source: fullSource(b.Labels[0])}
		for _, v := range attributeStrings(b.Body, "version") {
			l.version = v
		}
		for _, h := range attributeStrings(b.Body, "hashes") {
			if strings.HasPrefix(h, "h1:") || strings.HasPrefix(h, "zh:") { // the formats that Hykube knows
				l.hashes = append(l.hashes, h)
			}
		}
		if l.version == "" || len(l.hashes) == 0 {
			return nil, fmt.Errorf("read lock file %s: the provider %s has no version or no hashes: `terraform init` writes both", cmp.Or(name, "-"), l.source)
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, errors.New("read lock file: it has no provider; use the file .terraform.lock.hcl that `terraform init` writes")
	}
	return out, nil
}

// attributeStrings returns the value of an attribute that is a string or a list of strings.
func attributeStrings(body *hclsyntax.Body, name string) (out []string) {
	a := body.Attributes[name]
	if a == nil {
		return nil
	}
	v, diags := a.Expr.Value(nil)
	if diags.HasErrors() || !v.IsWhollyKnown() || v.IsNull() {
		return nil
	}
	if v.Type() == cty.String {
		return []string{v.AsString()}
	}
	if v.CanIterateElements() {
		for _, e := range v.AsValueSlice() {
			if e.Type() == cty.String && !e.IsNull() {
				out = append(out, e.AsString())
			}
		}
	}
	return out
}
