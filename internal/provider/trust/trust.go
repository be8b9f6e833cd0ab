// Package trust reads the server's trust policy for providers: the allowed sources, and the signatures and checksums
// that their packages need. It imports no package of the server.
package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/internal/provider/signature"
)

// APIVersion and Kind of the file.
const (
	APIVersion = "config.hykube.io/v1alpha1"
	Kind       = "ProviderTrustPolicy"
)

// Action is the effect of a rule.
type Action string

const (
	// Allow permits the source, with the requirements of the rule. It is the default.
	Allow Action = "Allow"
	// Deny refuses the source.
	Deny Action = "Deny"
)

// file is the content of a policy file.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Rules      []Rule `json:"rules"`
}

// Rule is one rule of a policy.
type Rule struct {
	// Name is the name of the rule for messages.
	Name string `json:"name"`
	// Sources are addresses of providers, in which "*" matches any characters of one part.
	Sources []string `json:"sources"`
	// Action is Allow or Deny; empty means Allow.
	Action Action `json:"action,omitempty"`
	// SigningKeys are armored public keys or fingerprints. One of them must have signed the package's checksum.
	SigningKeys []string `json:"signingKeys,omitempty"`
	// RequireSignature requires a signature for packages from mirrors too, by any key that the registry names.
	// SigningKeys imply it.
	RequireSignature bool `json:"requireSignature,omitempty"`
	// RequireChecksums requires spec.checksums of the Provider.
	RequireChecksums bool `json:"requireChecksums,omitempty"`
	// MirrorsMustMatch requires that a package from a mirror is the registry's, or is listed in spec.checksums.
	MirrorsMustMatch bool `json:"mirrorsMustMatch,omitempty"`

	// Path is the policy file.
	Path string `json:"-"`

	keys     signature.Keys
	patterns []address
}

// Keys returns the parsed signing keys.
func (r Rule) Keys() signature.Keys { return r.keys }

// address is the address of a provider, or a pattern for addresses: host, namespace, type.
type address [3]string

// Policy is a trust policy. A nil Policy allows all sources without requirements.
type Policy struct {
	path  string
	rules []Rule
}

// RefusedError is the error for a Provider that the policy does not allow.
type RefusedError struct {
	// Source is the address of the provider.
	Source string
	// Path is the policy file.
	Path string
	// Rule is the rule that refuses the Provider; empty if no rule matches its source.
	Rule string
	// NoChecksums is true if the rule requires spec.checksums.
	NoChecksums bool
	// Allowed are the sources of the rules that allow.
	Allowed []string
}

func (e *RefusedError) Error() string {
	if e.NoChecksums {
		return fmt.Sprintf("the rule %q of the server's trust policy %s requires spec.checksums for the source %s; kubectl hykube provider lock prints them", e.Rule, e.Path, e.Source)
	}
	if e.Rule != "" {
		return fmt.Sprintf("the rule %q of the server's trust policy %s denies the source %s", e.Rule, e.Path, e.Source)
	}
	return fmt.Sprintf("no rule of the server's trust policy %s allows the source %s; it allows %s", e.Path, e.Source,
		strings.Join(e.Allowed, ", "))
}

// maxFile is the maximum size of a policy file.
const maxFile = 1 << 20

// Load reads a policy file. It returns nil if the path is empty.
func Load(path string) (*Policy, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read trust policy: %w", err)
	}
	p, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read trust policy %s: %w", path, err)
	}
	p.path = path
	for i := range p.rules {
		p.rules[i].Path = path
	}
	return p, nil
}

func parse(data []byte) (*Policy, error) {
	var f file
	// unlike UnmarshalStrict, it does not make the text "false" of the boolean no
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, err
	}
	if f.APIVersion != APIVersion || f.Kind != Kind {
		return nil, fmt.Errorf("it must have apiVersion: %s and kind: %s", APIVersion, Kind)
	}
	if len(f.Rules) == 0 {
		return nil, errors.New(`it has no rules, so it would refuse every provider; a rule with sources: ["*"] allows all`)
	}
	p := &Policy{rules: f.Rules}
	names := map[string]bool{}
	for i := range p.rules {
		r := &p.rules[i]
		if err := r.complete(); err != nil {
			return nil, fmt.Errorf("rules[%d] %q: %w", i, r.Name, err)
		}
		if names[r.Name] {
			return nil, fmt.Errorf("rules[%d]: the name %q occurs twice", i, r.Name)
		}
		names[r.Name] = true
	}
	return p, nil
}

func (r *Rule) complete() (err error) {
	switch {
	case r.Name == "":
		return errors.New("it needs a name, which messages about refused providers show")
	case len(r.Sources) == 0:
		return errors.New(`it needs sources, such as ["hashicorp/*", "registry.example.com/platform/*"]`)
	case r.Action == "":
		r.Action = Allow
	case r.Action != Allow && r.Action != Deny:
		return fmt.Errorf("the action %q is neither Allow nor Deny", r.Action)
	}
	if r.Action == Deny && (len(r.SigningKeys) > 0 || r.RequireSignature || r.RequireChecksums || r.MirrorsMustMatch) {
		return errors.New("a rule with the action Deny has no requirements")
	}
	for _, s := range r.Sources {
		pattern, err := parsePattern(s)
		if err != nil {
			return err
		}
		r.patterns = append(r.patterns, pattern)
	}
	r.keys, err = signature.ParseKeys(r.SigningKeys)
	return err
}

// parsePattern parses "*", TYPE, NAMESPACE/TYPE or HOST/NAMESPACE/TYPE, with the defaults of a source.
func parsePattern(s string) (address, error) {
	a := address{"registry.terraform.io", "hashicorp", ""}
	parts := strings.Split(strings.ToLower(s), "/")
	if s == "*" {
		return address{"*", "*", "*"}, nil
	}
	if len(parts) > len(a) || slices.Contains(parts, "") {
		return a, fmt.Errorf("the source %q is not [HOST/]NAMESPACE/TYPE", s)
	}
	copy(a[len(a)-len(parts):], parts)
	for _, part := range a {
		if strings.ContainsAny(part, `[]?\ `) {
			return a, fmt.Errorf(`the source %q has characters other than "*" that no address has`, s)
		}
	}
	return a, nil
}

func (a address) matches(other address) bool {
	for i := range a {
		if ok, err := path.Match(a[i], other[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// Rule returns the first rule that matches a source. It returns a *RefusedError if the policy does not allow the
// source. A nil Policy returns a rule without requirements.
func (p *Policy) Rule(host, namespace, typ string) (Rule, error) {
	if p == nil {
		return Rule{Action: Allow}, nil
	}
	a := address{host, namespace, typ}
	refused := &RefusedError{Source: strings.Join(a[:], "/"), Path: p.path}
	for _, r := range p.rules {
		if slices.ContainsFunc(r.patterns, func(pattern address) bool { return pattern.matches(a) }) {
			if r.Action == Deny {
				refused.Rule = r.Name
				return Rule{}, refused
			}
			return r, nil
		}
		if r.Action == Allow {
			refused.Allowed = append(refused.Allowed, r.Sources...)
		}
	}
	return Rule{}, refused
}
