package registry

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"

	goversion "github.com/hashicorp/go-version"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/provider"
)

const (
	// maxProviderName leaves room for the group's suffix within 63 characters.
	maxProviderName = 40
	// maxConstraint is the maximum length of a version constraint.
	maxConstraint = 200
)

func newProviders(c Config) (*resourceREST, *statusREST, error) {
	strategy := kindStrategy[*v1alpha1.Provider, v1alpha1.ProviderStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		begin: func(_ context.Context, p *v1alpha1.Provider) {
			p.Status = v1alpha1.ProviderStatus{Conditions: initialConditions(v1alpha1.ReasonInstalling,
				"Waiting to be installed.")}
		},
		spec:           func(p *v1alpha1.Provider) any { return p.Spec },
		status:         func(p *v1alpha1.Provider) *v1alpha1.ProviderStatus { return &p.Status },
		conditions:     func(s *v1alpha1.ProviderStatus) *[]metav1.Condition { return &s.Conditions },
		validate:       func(p *v1alpha1.Provider) field.ErrorList { return validateProvider(p, c.Protected) },
		validateUpdate: validateProviderUpdate,
		warnUpdate: func(ctx context.Context, p, old *v1alpha1.Provider) []string {
			return warnVersion(ctx, c.Backend, p, old)
		},
		// Checksum and version in the status decide which program runs.
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.Provider) field.ErrorList {
			return statusByServer(ctx, "a Provider")
		},
	}
	store, statusREST, err := newStore(c, "provider", new(v1alpha1.Provider), new(v1alpha1.ProviderList), strategy,
		providerTable)
	if err != nil {
		return nil, nil, err
	}
	hold := newHeldConfig(c, strategy)
	hold.Refused, hold.Needed = "No new objects of its kinds can be created.", neededByObjects
	return &resourceREST{Store: store, short: "prov", held: NewHeld(store, hold), mayWrite: refuseUntrusted(c.Trust)},
		statusREST, nil
}

// warnVersion warns of a changed version constraint, because another version then serves all objects of the Provider's
// kinds. A constraint that names the installed version alone changes nothing.
func warnVersion(ctx context.Context, b *Backend, p, old *v1alpha1.Provider) []string {
	if p.Spec.Version == old.Spec.Version || p.Status.Version == "" || isVersion(p.Spec.Version, p.Status.Version) ||
		b.ProviderNamespaces == nil {
		return nil
	}
	counts, err := b.ProviderNamespaces(ctx, p.Name)
	if err != nil {
		return []string{fmt.Sprintf(warningVersionUnknown, p.Status.Version, err)}
	}
	if len(counts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf(warningVersion, diff.InNamespaces(counts), p.Status.Version, p.Spec.Source)}
}

const (
	warningVersion = "spec.version: objects of the provider's kinds exist: %s. All of them used version %s, and now use the version that the server installs. " +
		"For another version in some namespaces alone, create a second Provider with the source %s"
	warningVersionUnknown = "spec.version: the server cannot count the objects that use version %s: %v"
)

// isVersion reports whether a constraint names one version and nothing else.
func isVersion(constraint, version string) bool {
	written, err := goversion.NewVersion(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(constraint), "=")))
	if err != nil {
		return false
	}
	installed, err := goversion.NewVersion(version)
	return err == nil && written.Equal(installed)
}

// neededByObjects is the Needed of a Provider. Without the Provider, the objects of its kinds would be inaccessible,
// even those without infrastructure.
func neededByObjects(count int, example string) string {
	if count == 1 {
		return "an object of its kinds exists: " + example +
			". The server removes it with that object: delete the object, and destroy its infrastructure if it has any."
	}
	return fmt.Sprintf("%d objects of its kinds exist, such as %s. The server removes it with the last of them: delete the objects, and destroy the infrastructure that they have.", count, example)
}

// validateProvider validates a Provider. protected are directories of the server.
func validateProvider(p *v1alpha1.Provider, protected []string) field.ErrorList {
	errs := validateProviderName(p.Name, field.NewPath("metadata", "name"))
	spec := field.NewPath("spec")
	if p.Spec.Source == "" {
		errs = append(errs, field.Required(spec.Child("source"), `address of the provider, such as "hashicorp/aws"`))
	} else if _, err := provider.ParseSource(p.Spec.Source); err != nil {
		errs = append(errs, field.Invalid(spec.Child("source"), shorten(p.Spec.Source), err.Error()))
	}
	if v := p.Spec.Version; len(v) > maxConstraint {
		errs = append(errs, field.TooLong(spec.Child("version"), "", maxConstraint))
	} else if v != "" {
		if _, err := goversion.NewConstraint(v); err != nil {
			errs = append(errs, field.Invalid(spec.Child("version"), v,
				`not a version constraint; write it as in Terraform, such as "~> 6.0" or ">= 1.2, < 2.0"`))
		}
	}
	if source, err := provider.ParseSource(p.Spec.Source); err == nil && source.BuiltIn() {
		return append(errs, validateBuiltIn(p, spec)...)
	}
	errs = append(errs, validateChecksums(p.Spec.Checksums, spec.Child("checksums"))...)
	errs = append(errs, validateSigningKeys(p.Spec.SigningKeys, spec.Child("signingKeys"))...)
	errs = append(errs, validateSandbox(p.Spec.Sandbox, protected, spec.Child("sandbox"))...)
	return append(errs, validateEnvironment(p.Spec.Environment, spec.Child("environment"))...)
}

// validateBuiltIn refuses what concerns a package in a Provider that is a part of the server.
func validateBuiltIn(p *v1alpha1.Provider, spec *field.Path) (errs field.ErrorList) {
	refuse := func(name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(spec.Child(name),
				"the provider is a part of the server: remove the field"))
		}
	}
	refuse("version", p.Spec.Version != "")
	refuse("checksums", p.Spec.Checksums != nil)
	refuse("signingKeys", p.Spec.SigningKeys != nil)
	refuse("sandbox", p.Spec.Sandbox != nil)
	refuse("environment", p.Spec.Environment != nil)
	return errs
}

func validateProviderUpdate(p, old *v1alpha1.Provider) field.ErrorList {
	if sameSource(p.Spec.Source, old.Spec.Source) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "source"), shorten(p.Spec.Source), fmt.Sprintf(
		"field is immutable: it is %q; to use another provider, create a Provider with another name, or delete this one first", old.Spec.Source))}
}

// sameSource reports whether two addresses are those of one provider: hashicorp/aws is
// registry.terraform.io/hashicorp/aws.
func sameSource(a, b string) bool {
	if a == b {
		return true
	}
	first, err := provider.ParseSource(a)
	if err != nil {
		return false
	}
	second, err := provider.ParseSource(b)
	return err == nil && first == second
}

// validateProviderName validates the name of a Provider, which is the first label of an API group.
func validateProviderName(name string, path *field.Path) field.ErrorList {
	if len(name) > maxProviderName {
		return field.ErrorList{field.Invalid(path, shorten(name),
			"must be at most 40 characters, because it is a part of the API group of the provider's kinds")}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

// shorten keeps a very long value from filling an error message.
func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
