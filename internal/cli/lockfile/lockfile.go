// Package lockfile reads Terraform's dependency lock file.
package lockfile

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
)

// WithSource returns the Providers with a source.
func WithSource(list []v1alpha1.Provider, source string) (out []v1alpha1.Provider) {
	for _, p := range list {
		if fullSource(p.Spec.Source) == source {
			out = append(out, p)
		}
	}
	return out
}

// fullSource returns the address of a provider with host and namespace.
func fullSource(s string) string {
	s = strings.ToLower(s)
	defaults := []string{"registry.terraform.io/hashicorp/", "registry.terraform.io/", ""}
	return defaults[min(strings.Count(s, "/"), 2)] + s
}

// Provider is a provider in a lock file.
type Provider struct {
	Source, Version string
	Hashes          []string
}

// Parse parses Terraform's dependency lock file.
func Parse(data []byte, name string) ([]Provider, error) {
	file, diags := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("read lock file: %w", diags)
	}
	var out []Provider
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		if b.Type != "provider" || len(b.Labels) != 1 {
			continue
		}
		l := Provider{Source: fullSource(b.Labels[0])}
		for _, v := range attributeStrings(b.Body, "version") {
			l.Version = v
		}
		for _, h := range attributeStrings(b.Body, "hashes") {
			if strings.HasPrefix(h, "h1:") || strings.HasPrefix(h, "zh:") { // the formats that Hykube knows
				l.Hashes = append(l.Hashes, h)
			}
		}
		if l.Version == "" || len(l.Hashes) == 0 {
			return nil, fmt.Errorf("read lock file %s: the provider %s has no version or no hashes: `terraform init` writes both", cmp.Or(name, "-"), l.Source)
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
