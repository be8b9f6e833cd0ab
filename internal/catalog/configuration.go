package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// Secret returns the value of one key of a Secret.
type Secret func(ctx context.Context, name, key string) ([]byte, error)

// Sources supplies the values for a ProviderConfig.
type Sources struct {
	// Secret reads the Secrets in spec.secretRefs.
	Secret Secret
	// Functions are the provider-defined functions that expressions may call.
	Functions lang.Functions
	// Value returns the value of an address, as for lang.Config.Evaluate. If it is nil, every reference is unknown.
	Value func(lang.Address) (cty.Value, bool)
}

// References lists the references in the expressions of a ProviderConfig, without an evaluation. Their fields are paths
// in the ProviderConfig, such as "spec.config.host:3".
func References(cfg *v1alpha1.ProviderConfig) []lang.Reference {
	if cfg.Spec.Config == nil || !mayHaveTemplates(cfg.Spec.Config.Raw) {
		return nil
	}
	args, err := arguments(cfg)
	if err != nil {
		return nil
	}
	refs := lang.ConfigOptions{Namespace: cfg.Namespace}.References(args)
	for i := range refs {
		refs[i].Field = strings.Replace(refs[i].Field, "spec", configField, 1)
	}
	return refs
}

// CheckReferences reports references of a ProviderConfig to types and attributes that do not exist, and values whose
// type cannot fit the provider's schema.
func (c *Catalog) CheckReferences(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig,
	fns lang.Functions) error {
	args, err := arguments(cfg)
	if err != nil {
		return nil // Configuration reports it
	}
	config, _ := parse(ctx, configField, cfg.Namespace, args, e.Schema.Config.Block, fns)
	types := lang.Catalog{
		Block: func(a lang.Address) *schema.Block {
			if t := c.Schema(a.Mode, a.Type); t != nil {
				return t.Block
			}
			return nil
		},
		Exists: func(lang.Address) bool { return true }, // the plan checks whether the object exists
		Types:  c.TypeNamesOf,
	}
	diags := append(lang.CheckReferences(config.References(), types), config.CheckTypes(types)...)
	if diag.HasErrors(diags) {
		return refused(configField, diags)
	}
	return nil
}

// Configuration evaluates a ProviderConfig to a provider configuration, which may be partly unknown. A nil cfg gives a
// configuration without arguments.
func (c *Catalog) Configuration(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig,
	from Sources) (provider.Configuration, error) {
	secrets, err := secretValues(ctx, cfg, from)
	if err != nil {
		return provider.Configuration{}, err
	}
	key, constant := constantOf(cfg, e.Schema.Config.Block, secrets)
	if !constant {
		return evaluateArguments(ctx, e, cfg, secrets, from)
	}
	conf, ok := c.constants.Get(key)
	if !ok {
		if conf, err = evaluateArguments(ctx, e, cfg, secrets, from); err == nil {
			c.constants.Put(key, conf)
		}
	}
	return conf, err
}

// secretValues returns the values of spec.secretRefs, in their order. cfg may be nil.
func secretValues(ctx context.Context, cfg *v1alpha1.ProviderConfig, from Sources) ([][]byte, error) {
	if cfg == nil {
		return nil, nil
	}
	values, missing := make([][]byte, len(cfg.Spec.SecretRefs)), []error(nil)
	for i, ref := range cfg.Spec.SecretRefs {
		value, err := from.Secret(ctx, ref.Name, ref.Key)
		if err != nil {
			missing = append(missing, err)
		}
		values[i] = value
	}
	return values, errors.Join(missing...)
}

// evaluateArguments evaluates the arguments of a ProviderConfig, which may be nil. secrets are the values of its
// secretRefs.
func evaluateArguments(ctx context.Context, e Entry, cfg *v1alpha1.ProviderConfig, secrets [][]byte,
	from Sources) (provider.Configuration, error) {
	args, err := arguments(cfg)
	if err != nil {
		return provider.Configuration{}, err
	}
	block, namespace := e.Schema.Config.Block, ""
	if cfg != nil {
		namespace = cfg.Namespace
		for i, ref := range cfg.Spec.SecretRefs {
			// The value is data, not a template, so escape it.
			if err := set(args, strings.Split(ref.Argument, "."), lang.EscapeTemplate(string(secrets[i]))); err != nil {
				return provider.Configuration{}, fmt.Errorf("spec.secretRefs: argument %q: %w", ref.Argument, err)
			}
		}
	}
	config, err := parse(ctx, configField, namespace, args, block, from.Functions)
	if err != nil {
		return provider.Configuration{}, err
	}
	known := from.Value
	if known == nil {
		known = func(lang.Address) (cty.Value, bool) { return cty.DynamicVal, true }
	}
	marked, err := evaluate(configField, config, known)
	if err != nil {
		return provider.Configuration{}, err
	}
	if missing, held := lang.HoldsPassOnly(marked); held {
		// A provider may send its configuration to any host that its other arguments name, even during a plan without
		// approval.
		return provider.Configuration{},
			ConfigDiagnostics(diag.Diagnostics{diag.Errorf("spec", lang.SummaryPassOnly, "%s",
				lang.PassOnlyText("A provider that gets such an argument", missing))})
	}
	value, marks := marked.UnmarkDeep()
	_, ephemeral := marks[lang.Ephemeral]
	raw, err := ctymsgpack.Marshal(value, block.ImpliedType())
	if err != nil {
		return provider.Configuration{}, fmt.Errorf("encode configuration: %w", err)
	}
	sum := sha256.Sum256(raw)
	conf := provider.Configuration{Key: hex.EncodeToString(sum[:]), Config: value, Ephemeral: ephemeral,
		Secrets: plan.SecretTexts(block, value)}
	conf.Public = publicArguments(block, marked, cfg)
	if value.IsWhollyKnown() {
		if conf.Digest, err = digestOf(marked, rotates(cfg)); err != nil {
			return conf, err
		}
	}
	if cfg != nil {
		conf.SecretDigest, conf.Digest.Rotating, err = secretDigests(cfg.Spec.SecretRefs, secrets)
	}
	return conf, err
}

// SecretDigests returns the digests of the values of spec.secretRefs of a ProviderConfig, as in its Configuration: of
// those that do not rotate, and of those that do. It evaluates no expression.
func SecretDigests(ctx context.Context, cfg *v1alpha1.ProviderConfig,
	read Secret) (lasting, rotating string, err error) {
	values, err := secretValues(ctx, cfg, Sources{Secret: read})
	if err != nil {
		return "", "", err
	}
	return secretDigests(cfg.Spec.SecretRefs, values)
}

// Acquire returns a lease of a provider process with the configuration.
func (c *Catalog) Acquire(ctx context.Context, e Entry, conf provider.Configuration) (*provider.Lease, error) {
	lease, err := c.pool.Acquire(ctx, e.Package, conf)
	if f, ok := errors.AsType[*diag.Failure](err); ok && len(f.Diagnostics) > 0 {
		return nil, ConfigDiagnostics(f.Diagnostics)
	}
	return lease, err
}

// configField is the path of the provider's arguments.
const configField = "spec.config"

// arguments returns the arguments in a ProviderConfig, which may be nil, without those from Secrets.
func arguments(cfg *v1alpha1.ProviderConfig) (map[string]any, error) {
	args := map[string]any{}
	if cfg == nil || cfg.Spec.Config == nil || len(cfg.Spec.Config.Raw) == 0 {
		return args, nil
	}
	if err := json.Unmarshal(cfg.Spec.Config.Raw, &args); err != nil {
		return nil, fmt.Errorf("%s: must be an object of the provider's arguments: %w", configField, err)
	}
	if args == nil { // the field is null
		args = map[string]any{}
	}
	return args, nil
}

// Signatures returns the functions of all installed providers for parsing; their results are unknown. Callers must not
// change the map.
func (c *Catalog) Signatures() lang.Functions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signatures == nil {
		c.signatures = lang.Functions{}
		for name, e := range c.entries {
			maps.Copy(c.signatures, instance.Functions(name, e.Schema, nil))
		}
	}
	return c.signatures
}

// parse parses the arguments of an object in a namespace. field is the path of the arguments. After an error, the
// returned Config is valid only for its References.
func parse(ctx context.Context, field, namespace string, args map[string]any, block *schema.Block,
	fns lang.Functions) (*lang.Config, error) {
	// A provider's configuration is never stored, so all arguments accept ephemeral values.
	config, diags := lang.ConfigOptions{Functions: fns, Ephemeral: true, Namespace: namespace, Settled: true,
		Budget: lang.BudgetOf(ctx)}.Parse(args, block)
	if diag.HasErrors(diags) {
		return config, refused(field, diags)
	}
	return config, nil
}

// evaluate returns the value of the arguments, with its marks.
func evaluate(field string, config *lang.Config, known func(lang.Address) (cty.Value, bool)) (cty.Value, error) {
	value, diags := config.Evaluate(known)
	if diag.HasErrors(diags) {
		return cty.NilVal, refused(field, diags)
	}
	return value, nil
}

func set(args map[string]any, path []string, value any) error {
	for len(path) > 1 {
		next, ok := args[path[0]].(map[string]any)
		if !ok {
			if args[path[0]] != nil {
				return fmt.Errorf("%q is not an object", path[0])
			}
			next = map[string]any{}
			args[path[0]] = next
		}
		args, path = next, path[1:]
	}
	if _, there := args[path[0]]; there {
		return fmt.Errorf("the argument is also set in spec.config; remove one of the two")
	}
	args[path[0]] = value
	return nil
}

// ConfigDiagnostics returns the diagnostics of a ProviderConfig's arguments as a *diag.Failure.
func ConfigDiagnostics(d diag.Diagnostics) error { return refused(configField, d) }

// refused returns the errors in diags as a *diag.Failure whose text lists them all. field is the path of the arguments.
func refused(field string, diags diag.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			// The parser's paths begin with "spec"; the arguments are below field.
			d.Attribute = strings.Replace(d.Attribute, "spec", field, 1)
			lines = append(lines, diag.Text(d))
		}
	}
	return &diag.Failure{Cause: errors.New(strings.Join(lines, "; "))}
}
