package provider

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/lockfile"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type providerLockOptions struct {
	*session.Session
	names []string
	file  string
	// change allows versions other than those that existing objects use.
	change bool
}

func newProviderLock(s *session.Session) *cobra.Command {
	o := &providerLockOptions{Session: s}
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
		ValidArgsFunction: session.CompleteProviders(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "",
		"Terraform's dependency lock file, .terraform.lock.hcl; - reads standard input")
	cmd.Flags().BoolVar(&o.change, "change-version", false,
		"Also print a version that would replace the one that existing objects use")
	return cmd
}

func (o *providerLockOptions) Complete(args []string) error {
	o.names = args
	return o.Connect()
}

func (o *providerLockOptions) Run(ctx context.Context) error {
	list := &v1alpha1.ProviderList{}
	if err := o.Hykube.Get().Resource("providers").Do(ctx).Into(list); err != nil {
		return fmt.Errorf("list providers: %w", o.Explain(err))
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
	out = slices.DeleteFunc(out, func(p v1alpha1.Provider) bool {
		return len(o.names) > 0 && !slices.Contains(o.names, p.Name)
	})
	if err := o.refuseChanges(ctx, out); err != nil {
		return err
	}
	for _, p := range out {
		if err := printer.JSON(o.Terminal, lockedManifest(p), "yaml"); err != nil {
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
			return fmt.Errorf("count the objects of the provider %q, which uses version %s and would get %s: %w",
				p.Name, p.Status.Version, p.Spec.Version, err)
		}
		if len(counts) > 0 {
			problems = append(problems, fmt.Sprintf(
				"provider %q would change from version %s to %s for all its objects: %s", p.Name, p.Status.Version,
				p.Spec.Version, diff.InNamespaces(counts)))
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
	err := objects.EachSummary(ctx, o.Session, "", v1alpha1.ResourceFieldProvider, provider,
		func(r v1alpha1.ResourceSummary) bool {
			counts[r.Object.Namespace]++
			return true
		})
	return counts, err
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
func (o *providerLockOptions) readLockFile() ([]lockfile.Provider, error) {
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
	return lockfile.Parse(data, o.file)
}

// lockFromFile returns the Providers of a lock file: those of the server with the same source, else new ones with the
// type as the name. names selects among several Providers with one source.
func lockFromFile(locks []lockfile.Provider, list []v1alpha1.Provider,
	names []string) (out []v1alpha1.Provider, _ error) {
	for _, l := range locks {
		known := lockfile.WithSource(list, l.Source)
		if len(known) > 1 {
			all := known
			known = slices.DeleteFunc(slices.Clone(all),
				func(p v1alpha1.Provider) bool { return !slices.Contains(names, p.Name) })
			if len(known) == 0 && len(names) == 0 {
				return nil, fmt.Errorf("lock provider %s: the server has several Providers with this source: %s; name those that get version %s, as in `kubectl hykube provider lock %s -f FILE`",
					l.Source, providerVersions(all), l.Version, all[0].Name)
			}
		} else if len(known) == 0 {
			name := l.Source[strings.LastIndexByte(l.Source, '/')+1:]
			if i := slices.IndexFunc(list, func(p v1alpha1.Provider) bool { return p.Name == name }); i >= 0 {
				return nil, fmt.Errorf("lock provider %s: the Provider %q of the server has another source, %s; create a Provider with the source %s first", l.Source, name, list[i].Spec.Source, l.Source)
			}
			known = []v1alpha1.Provider{{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: v1alpha1.ProviderSpec{Source: l.Source}}}
		}
		for _, p := range known {
			p.Spec.Version, p.Spec.Checksums = l.Version, l.Hashes
			out = append(out, p)
		}
	}
	return out, nil
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
	return map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Provider", "metadata": metadata,
		"spec": p.Spec}
}
