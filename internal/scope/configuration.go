package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/shell"

	"github.com/zclconf/go-cty/cty"
)

// Acquire returns the provider of a resource, configured with its ProviderConfig. The requester needs the right to use
// that ProviderConfig.
func (s *Scope) Acquire(ctx context.Context, r *resource.Resource, as session.LimitMode) (*session.Session, error) {
	cfg, err := s.configFor(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.acquireWith(ctx, r, cfg, as)
}

// acquireWith returns the provider of a resource with a ProviderConfig, which may be nil.
func (s *Scope) acquireWith(ctx context.Context, r *resource.Resource, cfg *v1alpha1.ProviderConfig,
	as session.LimitMode) (*session.Session, error) {
	l := &session.Session{Config: cfg}
	var limits *v1alpha1.Limits
	switch {
	case cfg != nil:
		limits = cfg.Spec.Limits
	case r.Entry.TakesConfiguration():
		return nil, s.unconfigured(ctx, r)
	}
	// Wait first: the right to use the ProviderConfig, and the Secrets that it refers to, may change meanwhile.
	admitted, err := s.Sessions.Wait(ctx, r.Ref.Namespace+"/"+r.Entry.Name+"/"+l.ConfigName(), limits, takesBatches(r),
		as)
	if err != nil {
		return nil, err
	}
	conf, err := s.usable(ctx, r, cfg)
	if err == nil {
		l.Known, l.Key, l.Digest, l.SecretDigest, l.Public = conf.Config.IsWhollyKnown(), conf.Key, conf.Digest,
			conf.SecretDigest, conf.Public
		err = s.checkApproved(r, l)
	}
	if err != nil {
		admitted.Release()
		return nil, err
	}
	var back func()
	if l.ProviderServer, back, err = s.Sessions.Start(ctx, r.Entry, conf, s.plan, admitted); err != nil {
		admitted.Release()
		return nil, configurationError(r.Entry, cfg, err)
	}
	l.Release = func() {
		back()
		admitted.Release()
	}
	return l, nil
}

// OtherArgumentsError is the error for a ProviderConfig whose arguments are not the approved ones. The provider did not
// get them.
type OtherArgumentsError struct {
	Name   string
	Config *v1alpha1.ProviderConfig
}

func (e *OtherArgumentsError) Error() string {
	return fmt.Sprintf("the arguments of the ProviderConfig %q are not the approved ones", e.Name)
}

// checkApproved returns an *OtherArgumentsError if an approval binds the arguments of a session that is about to start,
// and they differ. It sets Rotated.
func (s *Scope) checkApproved(r *resource.Resource, l *session.Session) error {
	approved, bound := s.Approved[l.ConfigName()]
	if !bound || r.Ref.Namespace != s.namespace {
		return nil
	}
	difference := approved.Compare(l.Arguments())
	l.Rotated = difference == ledger.RotatedArguments
	if difference == ledger.OtherArguments {
		return &OtherArgumentsError{l.ConfigName(), l.Config}
	}
	return nil
}

// SecretsOf returns the digest of the values of spec.secretRefs that do not rotate, of a ProviderConfig of the scope's
// namespace. It returns "" if there are none. The scope reads them once.
func (s *Scope) SecretsOf(ctx context.Context, name string) (string, error) {
	s.mu.Lock()
	known, ok := s.secretDigests[name]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	cfg, err := s.config(ctx, s.namespace, name)
	if err != nil || cfg == nil {
		return "", err
	}
	digest, _, err := catalog.SecretDigests(ctx, cfg, func(ctx context.Context, name, key string) ([]byte, error) {
		return s.Configs.Secret(s.onBehalf(ctx), cfg.Namespace, name, key)
	})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secretDigests[name] = digest
	return digest, nil
}

// ArgumentsOf returns what identifies the arguments of a resource's provider with a ProviderConfig, which may be nil.
// It configures no provider.
func (s *Scope) ArgumentsOf(ctx context.Context, r *resource.Resource, name string) (ledger.Arguments, error) {
	cfg, err := s.config(ctx, r.Ref.Namespace, name)
	if err != nil || cfg == nil {
		return ledger.Arguments{}, err
	}
	conf, err := s.usable(ctx, r, cfg)
	return ledger.Arguments{Configuration: ledger.Configuration(conf.Digest), Secrets: conf.SecretDigest}, err
}

// usable returns the configuration of a resource's provider, if the users may use the ProviderConfig. cfg may be nil.
func (s *Scope) usable(ctx context.Context, r *resource.Resource,
	cfg *v1alpha1.ProviderConfig) (provider.Configuration, error) {
	if cfg != nil {
		if err := s.mayUse(ctx, r.Ref.Namespace, cfg.Name); err != nil {
			return provider.Configuration{}, configurationError(r.Entry, cfg, err)
		}
		if err := s.checkWriters(ctx, cfg); err != nil {
			return provider.Configuration{}, configurationError(r.Entry, cfg, err)
		}
	}
	conf, err := s.Configuration(ctx, r.Entry, cfg)
	if err != nil {
		return provider.Configuration{}, configurationError(r.Entry, cfg, err)
	}
	conf.Namespace = r.Ref.Namespace
	return conf, nil
}

// takesBatches reports whether the provider takes many calls for resources of the type at once.
func takesBatches(r *resource.Resource) bool {
	return r.Mode == v1alpha1.ModeManaged && r.Entry.Schema.Batches[r.Address.Type]
}

// unconfigured returns the error for a provider that takes a configuration, in a namespace without a ProviderConfig for
// it. The provider would find credentials by itself, such as those of the machine, and no right would guard them.
func (s *Scope) unconfigured(ctx context.Context, r *resource.Resource) error {
	name := r.Entry.Name
	for _, free := range []string{name, v1alpha1.DefaultProviderConfig} {
		cfg, err := s.config(ctx, r.Ref.Namespace, free)
		if err != nil {
			return err
		}
		if cfg == nil {
			name = free
			break
		}
	}
	return &diag.Failure{Operation: "configure provider", Diagnostics: diag.Diagnostics{{
		Severity: v1alpha1.SeverityError, Summary: "No ProviderConfig for the provider",
		Address: ProviderConfigAddress + name,
		Detail: fmt.Sprintf("The provider %[1]q takes a configuration, and the namespace %[2]q has no ProviderConfig for it. Create one. "+
			"spec.config has the provider's arguments, which kubectl hykube provider schema %[1]s --config lists: "+
			`echo '{"apiVersion":"hykube.io/v1alpha1","kind":"ProviderConfig","metadata":{"name":%[3]q},"spec":{"provider":%[1]q,"config":{}}}' | kubectl create -n %[2]s -f -`,
			r.Entry.Name, r.Ref.Namespace, name),
	}}}
}

// ProviderConfigAddress is the prefix of the address of a diagnostic about a ProviderConfig.
const ProviderConfigAddress = "ProviderConfig/"

// configurationError returns the *diag.Failure for a provider that could not be configured. Its diagnostic is about the
// ProviderConfig, so that all its resources report the same problem. cfg is nil for a provider that takes no
// configuration. It keeps the kind of a transient failure.
func configurationError(e catalog.Entry, cfg *v1alpha1.ProviderConfig, err error) error {
	operation, address := fmt.Sprintf("configure provider %q", e.Name), ""
	if cfg != nil {
		operation += fmt.Sprintf(" with ProviderConfig %q", cfg.Name)
		address = ProviderConfigAddress + cfg.Name
	}
	f := &diag.Failure{Operation: operation, Cause: err}
	if inner, ok := errors.AsType[*diag.Failure](err); ok {
		f.Kind, f.Diagnostics = inner.Kind, slices.Clone(inner.Diagnostics)
	}
	if len(f.Diagnostics) == 0 {
		f.Diagnostics = diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Provider cannot be configured",
			Detail: err.Error()}}
		if cfg == nil {
			f.Operation, f.Diagnostics[0].Detail = "", operation+": "+err.Error()
		}
	}
	for i := range f.Diagnostics {
		f.Diagnostics[i].Address = address
	}
	return f
}

// Configuration evaluates a ProviderConfig. The result may be partly unknown during planning, but never during an
// apply.
func (s *Scope) Configuration(ctx context.Context, e catalog.Entry,
	cfg *v1alpha1.ProviderConfig) (provider.Configuration, error) {
	of := s
	// the provider gets its arguments without an approval, and those who use the ProviderConfig do not write them
	if cfg != nil {
		of = s.WrittenBy(cfg.Status.Contributors)
	}
	l := &Evaluator{Ctx: ctx, Scope: of}
	var missing []lang.Address
	conf, err := s.Catalog.Configuration(ctx, e, cfg, catalog.Sources{
		Secret: func(ctx context.Context, name, key string) ([]byte, error) {
			value, err := s.Configs.Secret(s.onBehalf(ctx), cfg.Namespace, name, key)
			s.noteSecretText(string(value))
			return value, err
		},
		Functions: s.Functions(),
		Value: func(addr lang.Address) (cty.Value, bool) {
			v, ok := l.Resolve(addr)
			if !ok {
				missing = append(missing, addr)
				return cty.DynamicVal, true
			}
			return v, true
		},
	})
	for _, text := range conf.Secrets {
		s.noteSecretText(text)
	}
	if l.Err != nil {
		return provider.Configuration{}, l.Err // a value that could not be read is an error, not unknown
	}
	if err == nil && s.planned == nil && len(missing) > 0 && !conf.Config.IsWhollyKnown() {
		err = fmt.Errorf("spec.config: refers to %s, which has no values: it was not created yet, or is gone. First apply a plan with --target %s, then plan the rest", missing[0], shell.Word(missing[0].String()))
	}
	return conf, err
}
