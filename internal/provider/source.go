package provider

import (
	"errors"
	"fmt"
	"strings"

	regaddr "github.com/hashicorp/terraform-registry-address"
)

// Source is the address of a provider: registry host, namespace and type.
type Source struct {
	// Hostname is the registry's host, with its port if any, in punycode.
	Hostname string
	// Namespace within the registry.
	Namespace string
	// Type is the provider's name, such as "aws".
	Type string
}

// String returns the full address, such as "registry.terraform.io/hashicorp/time".
func (s Source) String() string { return s.Hostname + "/" + s.Namespace + "/" + s.Type }

// builtIn is the provider that is a part of the server; see package builtin.
var builtIn = Source{Hostname: "terraform.io", Namespace: "builtin", Type: "terraform"}

// BuiltIn reports whether the provider is a part of the server, so that it has no package.
func (s Source) BuiltIn() bool { return s == builtIn }

// maxSource is the maximum length of an address.
const maxSource = 512

// ParseSource parses an address by Terraform's rules: TYPE, NAMESPACE/TYPE or HOSTNAME/NAMESPACE/TYPE. The hostname
// defaults to registry.terraform.io, and the namespace to hashicorp.
func ParseSource(s string) (Source, error) {
	const want = `; write it as "hashicorp/aws" or "registry.example.com/team/cloud"`
	if len(s) > maxSource {
		return Source{}, fmt.Errorf("parse provider source \"%.40s...\": longer than %d characters%s", s, maxSource,
			want)
	}
	p, err := regaddr.ParseProviderSource(s)
	if err != nil {
		if pe, ok := errors.AsType[*regaddr.ParserError](err); ok {
			return Source{}, fmt.Errorf("parse provider source %q: %s%s", s,
				strings.Join(strings.Fields(pe.Detail), " "), want)
		}
		return Source{}, fmt.Errorf("parse provider source %q: %w%s", s, err, want)
	}
	if !p.HasKnownNamespace() {
		p.Namespace = "hashicorp"
	}
	if p.Namespace == regaddr.LegacyProviderNamespace {
		return Source{}, fmt.Errorf("parse provider source %q: the namespace %q was for addresses before Terraform 0.13%s", s, p.Namespace, want)
	}
	if p.IsBuiltIn() && p.Type != builtIn.Type {
		return Source{}, fmt.Errorf("parse provider source %q: of the providers that are a part of Terraform itself, the server has only %s%s", s, builtIn, want)
	}
	// the same host for DNS, another one for rules
	if host, _, _ := strings.Cut(string(p.Hostname), ":"); strings.HasSuffix(host, ".") {
		return Source{}, fmt.Errorf("parse provider source %q: its host ends with a dot%s", s, want)
	}
	return Source{Hostname: string(p.Hostname), Namespace: p.Namespace, Type: p.Type}, nil
}
