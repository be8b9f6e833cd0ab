package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// Address names a resource, a data source, an ephemeral resource or an action, or a ConfigMap or Secret, that an
// expression can refer to.
type Address struct {
	// Namespace is empty for the namespace of whoever names the address.
	Namespace string
	// Mode is empty for a managed resource; it is never ModeManaged, so that addresses can be compared.
	Mode v1alpha1.Mode
	// Type is the Terraform type, such as "sim_network", or TypeConfigMap or TypeSecret.
	Type string
	// Name is the object's name, such as "main". It may hold dots and dashes.
	Name string
}

// Types that stand for Kubernetes' own objects in expressions, as in ${configmap.app.region} and ${secret.app.password}.
const (
	TypeConfigMap = "configmap"
	TypeSecret    = "secret"
)

// String is the Terraform address, such as "sim_network.main" or "data.sim_image.base"; one of another namespace begins
// with "namespace.NAME.".
func (a Address) String() string {
	s := a.Type + "." + a.Name
	if a.Mode != "" {
		s = string(a.Mode) + "." + s
	}
	if a.Namespace != "" {
		s = "namespace." + a.Namespace + "." + s
	}
	return s
}

// Expression is the address as it is written in a template: a name that is no identifier goes into brackets,
// as in sim_network["my.name"].
func (a Address) Expression() string {
	s := a.Type + nameStep(a.Name)
	if a.Mode != "" {
		s = string(a.Mode) + "." + s
	}
	if a.Namespace != "" {
		s = rootNamespace + nameStep(a.Namespace) + "." + s
	}
	return s
}

func nameStep(name string) string {
	if hclsyntax.ValidIdentifier(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}

// Kind is the kind of the object, such as "sim-network", "data-sim-image" or "ConfigMap".
func (a Address) Kind() string {
	if a.Mode == "" {
		switch a.Type {
		case TypeConfigMap:
			return "ConfigMap"
		case TypeSecret:
			return "Secret"
		}
	}
	return a.Mode.KindOf(a.Type)
}

// Stored says whether the address is that of a ConfigMap or a Secret: of an object that no provider knows.
func (a Address) Stored() bool {
	return a.Mode == "" && (a.Type == TypeConfigMap || a.Type == TypeSecret)
}

// In is the address as those who live in the namespace know it: without the namespace when it is theirs.
func (a Address) In(namespace string) Address {
	if a.Namespace == namespace {
		a.Namespace = ""
	}
	return a
}

// Compare orders addresses by namespace, mode, type, then name.
func (a Address) Compare(b Address) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(string(a.Mode), string(b.Mode)),
		strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
}

// ParseAddress reads TYPE.NAME, TYPE["NAME"] or KIND/NAME. Before the type may stand "data.", "ephemeral." or "action.",
// and before all "namespace.NS.".
func ParseAddress(s string) (Address, error) {
	a, ok := splitAddress(s)
	if !ok || !validType(a.Type) || !validName(a.Name) || reservedRoots[a.Type] != "" && a.Mode == "" {
		return Address{}, fmt.Errorf("parse address %q: not the address of a resource; write it as TYPE.NAME, such as sim_network.main or data.sim_image.base, or as KIND/NAME, such as sim-network/main; optionally after namespace.NAMESPACE", s)
	}
	return a, nil
}

// TriggerExpression is what lifecycle.replaceTriggeredBy names, as an expression refers to it: sim-network/main stands for
// sim_network.main. Whatever is no KIND/NAME stays as it is.
func TriggerExpression(s string) (string, error) {
	kind, name, ok := strings.Cut(s, "/")
	if !ok || strings.ContainsAny(kind, "[(\" ") {
		return s, nil
	}
	if at := strings.IndexAny(name, ".["); at >= 0 {
		// Names may have dots, so an attribute could not be told from the rest of a name.
		whole, err := ParseAddress(kind + "/" + strings.TrimRight(name, "."))
		if part, partErr := ParseAddress(kind + "/" + name[:at]); partErr == nil {
			if err != nil {
				return "", fmt.Errorf("write %s%s: what follows a KIND/NAME is taken for a part of the name", part.Expression(), name[at:])
			}
			return "", fmt.Errorf("write %s%s for the attribute, or %s for the resource of that name: a name may have dots", part.Expression(), name[at:], whole.Expression())
		}
	}
	a, err := ParseAddress(s)
	if err != nil {
		return "", err
	}
	return a.Expression(), nil
}

func splitAddress(s string) (Address, bool) {
	var a Address
	if rest, ok := strings.CutPrefix(s, rootNamespace); ok && rest != "" && (rest[0] == '.' || rest[0] == '[') {
		ns, after, ok := cutName(rest)
		if !ok || !validNamespace(ns) {
			return Address{}, false
		}
		a.Namespace, s = ns, after
	}
	if kind, name, ok := strings.Cut(s, "/"); ok {
		switch kind {
		case "ConfigMap", "Secret": // as kubectl prints them
			kind = strings.ToLower(kind)
		}
		a.Mode, a.Type = v1alpha1.ParseKind(kind)
		if a.Mode == v1alpha1.ModeManaged {
			a.Mode = ""
		}
		a.Name = name
		return a, true
	}
	for _, m := range []v1alpha1.Mode{v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction} {
		if rest, ok := strings.CutPrefix(s, string(m)+"."); ok {
			a.Mode, s = m, rest
			break
		}
	}
	end := strings.IndexAny(s, ".[")
	if end < 0 {
		return Address{}, false
	}
	a.Type = s[:end]
	if s[end] == '.' {
		// Names may hold dots, so the rest is the name.
		a.Name = s[end+1:]
		return a, true
	}
	name, after, ok := cutName(s[end:])
	a.Name = name
	return a, ok && after == ""
}

// cutName takes a step, .NAME or ["NAME"], and the dot after it off the text.
func cutName(s string) (name, after string, ok bool) {
	if rest, bracket := strings.CutPrefix(s, `["`); bracket {
		name, after, ok = strings.Cut(rest, `"]`)
		return name, strings.TrimPrefix(after, "."), ok
	}
	name, after, _ = strings.Cut(s[1:], ".")
	return name, after, true
}

func validType(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// validNamespace says whether a namespace could have the name: a DNS label.
func validNamespace(s string) bool {
	return validName(s) && len(s) <= 63 && !strings.Contains(s, ".")
}

// validName says whether an object could have the name: a DNS subdomain.
func validName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (c != '-' && c != '.' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

// Problem returns an error about a resource, or about one of its fields; attribute is empty for the whole of it.
func Problem(a Address, attribute, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: a.String(), Attribute: attribute}
}

// WithAddress says of each diagnostic which resource it is about, unless it names one already.
func WithAddress(ds diag.Diagnostics, a Address) diag.Diagnostics {
	out := slices.Clone(ds)
	for i := range out {
		if out[i].Address == "" {
			out[i].Address = a.String()
		}
	}
	return out
}
