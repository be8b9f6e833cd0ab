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

// Address names an object that an expression can refer to: a resource, data source, ephemeral resource, action,
// ConfigMap or Secret.
type Address struct {
	// Namespace is empty for an object in the same namespace as the object that holds the reference.
	Namespace string
	// Module is the path of the module instance with the object, such as module.shop.module.net["eu"]; empty outside of
	// a Module. See v1alpha1.ModulePath.
	Module string
	// Mode is empty for a managed resource. It is never ModeManaged, so that == compares addresses. Named values of
	// modules have modes of their own; see Named.
	Mode v1alpha1.Mode
	// Type is the Terraform type, such as "sim_network", or TypeConfigMap or TypeSecret.
	Type string
	// Name is the object's name, such as "main". It may hold dots and dashes. An instance of a ResourceSet has its key
	// in the name, as in web[0]; see v1alpha1.InstanceName.
	Name string
}

// AddressOf returns the address of an object in its namespace, given its name, which has the path of its module.
func AddressOf(mode v1alpha1.Mode, terraformType, name string) Address {
	a := Address{Mode: mode, Type: terraformType}
	if mode == v1alpha1.ModeManaged {
		a.Mode = ""
	}
	a.Module, a.Name = v1alpha1.SplitModuleObjectName(name)
	return a
}

// Set returns the address of the ResourceSet of an instance, and the instance's key. ok is false for the address of
// another object.
func (a Address) Set() (set Address, key v1alpha1.InstanceKey, ok bool) {
	if !v1alpha1.IsInstanceName(a.Name) {
		return a, key, false
	}
	a.Name, key, ok = v1alpha1.ParseInstanceName(a.Name)
	return a, key, ok
}

// Instance returns the address of the instance with a key.
func (a Address) Instance(key v1alpha1.InstanceKey) Address {
	a.Name = v1alpha1.InstanceName(a.Name, key)
	return a
}

// Types that denote the Kubernetes kinds ConfigMap and Secret in expressions, as in ${configmap.app.region} and
// ${secret.app.password}.
const (
	TypeConfigMap = "configmap"
	TypeSecret    = "secret"
)

// String returns the Terraform address, such as "sim_network.main", "data.sim_image.base" or
// "module.shop.sim_network.main". With a namespace, the address begins with "namespace.NAME.".
func (a Address) String() string {
	s := v1alpha1.ShownName(a.Name)
	if a.Type != "" {
		s = a.Type + "." + s
	}
	if a.Mode != "" && !a.IsModuleOutput() {
		s = string(a.Mode) + "." + s
	}
	if a.Module != "" {
		s = v1alpha1.ShownModule(a.Module) + "." + s
	}
	if a.Namespace != "" {
		s = "namespace." + a.Namespace + "." + s
	}
	return s
}

// Expression returns the address in template syntax. It quotes a name that is not an HCL identifier, as in
// sim_network["my.name"].
func (a Address) Expression() string {
	if a.Module != "" {
		return a.String()
	}
	set, key, instance := a.Set()
	s := a.Type + nameStep(set.Name)
	if instance {
		s += key.String()
	}
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

// Kind returns the kind of the object, such as "sim-network", "data-sim-image" or "ConfigMap".
func (a Address) Kind() string {
	if a.Stored() {
		switch a.Type {
		case TypeConfigMap:
			return "ConfigMap"
		case TypeSecret:
			return "Secret"
		}
	}
	return a.Mode.KindOf(a.Type)
}

// Stored reports whether the address names a ConfigMap or a Secret, for which no provider has a schema.
func (a Address) Stored() bool {
	return a.Mode == "" && a.Module == "" && (a.Type == TypeConfigMap || a.Type == TypeSecret)
}

// In returns the address relative to the namespace: it drops the address's namespace if the two are equal.
func (a Address) In(namespace string) Address {
	if a.Namespace == namespace {
		a.Namespace = ""
	}
	return a
}

// Compare orders addresses by namespace, module, mode, type, then name.
func (a Address) Compare(b Address) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Module, b.Module),
		strings.Compare(string(a.Mode), string(b.Mode)),
		strings.Compare(a.Type, b.Type), v1alpha1.CompareNames(a.Name, b.Name))
}

// ParseAddress reads TYPE.NAME, TYPE["NAME"] or KIND/NAME, and the key of an instance after it. The type may have the
// prefix "data.", "ephemeral." or "action.", after the path of a module. The whole may have the prefix "namespace.NS.".
func ParseAddress(s string) (Address, error) {
	if a, ok := parseModuleAddress(s); ok {
		return a, nil
	}
	a, ok := splitAddress(s)
	set := a
	if v1alpha1.IsInstanceName(a.Name) {
		var key v1alpha1.InstanceKey
		var valid bool
		set, key, valid = a.Set()
		a, ok = set.Instance(key), ok && valid
	}
	if !ok || !validType(a.Type) || !validName(set.Name) || reservedRoots[a.Type] != "" && a.Mode == "" {
		return Address{}, fmt.Errorf("parse address %q: not the address of a resource; write it as TYPE.NAME, such as sim_network.main or data.sim_image.base, or as KIND/NAME, such as sim-network/main; optionally after namespace.NAMESPACE", s)
	}
	return a, nil
}

// ParseTarget reads an address as ParseAddress does, and that of a whole module, such as module.shop or
// module.shop.module.net["eu"], which has the mode ModeModule.
func ParseTarget(s string) (Address, error) {
	path, rest, ok := v1alpha1.CutModulePath(s)
	if !ok || rest != "" {
		return ParseAddress(s)
	}
	caller, call, key := v1alpha1.LastCall(path)
	a := Address{Module: caller, Mode: ModeModule, Name: call}
	if key != nil {
		a = a.Instance(*key)
	}
	return a, nil
}

// parseModuleAddress reads the address of a block in a module: PATH.TYPE.NAME, or KIND/PATH:NAME.
func parseModuleAddress(s string) (Address, bool) {
	var a Address
	if kind, name, ok := strings.Cut(s, "/"); ok && !strings.ContainsAny(kind, ".[") {
		if a.Module, a.Name = v1alpha1.SplitModuleObjectName(name); a.Module == "" {
			return a, false
		}
		a.Mode, a.Type = v1alpha1.ParseKind(kind)
		if a.Mode == v1alpha1.ModeManaged {
			a.Mode = ""
		}
		return a.normalized()
	}
	path, rest, ok := v1alpha1.CutModulePath(s)
	if !ok || !strings.HasPrefix(rest, ".") {
		return a, false
	}
	rest = rest[1:]
	for _, m := range []v1alpha1.Mode{v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction} {
		if after, ok := strings.CutPrefix(rest, string(m)+"."); ok {
			a.Mode, rest = m, after
			break
		}
	}
	a.Module = path
	a.Type, a.Name, ok = strings.Cut(rest, ".")
	if !ok {
		return a, false
	}
	return a.normalized()
}

// normalized returns an address in a module with the key of its instance in the usual form. ok is false if its names
// are not valid.
func (a Address) normalized() (_ Address, ok bool) {
	set := a
	if v1alpha1.IsInstanceName(a.Name) {
		var key v1alpha1.InstanceKey
		if set, key, ok = a.Set(); !ok {
			return a, false
		}
		a = set.Instance(key)
	}
	return a, validModuleName(set.Type) && validModuleName(set.Name)
}

// TriggerExpression converts an entry of lifecycle.replaceTriggeredBy to an expression: sim-network/main becomes
// sim_network.main. It returns other forms unchanged. It fails if an attribute follows KIND/NAME, since a name may hold
// dots.
func TriggerExpression(s string) (string, error) {
	kind, name, ok := strings.Cut(s, "/")
	if !ok || strings.ContainsAny(kind, "[(\" ") {
		return s, nil
	}
	if a, err := ParseAddress(s); err == nil && v1alpha1.IsInstanceName(a.Name) {
		return a.Expression(), nil
	}
	if at := strings.IndexAny(name, ".["); at >= 0 {
		// A name may have dots, so it is ambiguous where a name ends and an attribute begins.
		whole, err := ParseAddress(kind + "/" + strings.TrimRight(name, "."))
		if part, partErr := ParseAddress(kind + "/" + name[:at]); partErr == nil {
			if err != nil {
				return "", fmt.Errorf("write %s%s: after KIND/NAME, an attribute would be a part of the name",
					part.Expression(), name[at:])
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
	// A slash may also be in the key of an instance.
	if kind, name, ok := strings.Cut(s, "/"); ok && !strings.ContainsAny(kind, ".[") {
		switch kind {
		case "ConfigMap", "Secret": // kubectl prints these names
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
		// A name may hold dots, so everything after the slash is the name.
		a.Name = s[end+1:]
		return a, true
	}
	name, after, ok := cutName(s[end:])
	a.Name = name
	if strings.HasPrefix(after, "[") {
		a.Name, after = name+after, ""
	}
	return a, ok && after == ""
}

// cutName removes a step, .NAME or ["NAME"], and the dot after it from the beginning of s.
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

// validNamespace reports whether s is a valid name of a namespace: a DNS label.
func validNamespace(s string) bool {
	return validName(s) && len(s) <= 63 && !strings.Contains(s, ".")
}

// validName reports whether s is a valid name of an object: a DNS subdomain.
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

// Problem returns an error diagnostic about a resource or one of its attributes. If attribute is empty, the diagnostic
// is about the whole resource.
func Problem(a Address, attribute, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: a.String(),
		Attribute: attribute}
}

// WithAddress returns copies of the diagnostics. It sets the address of each diagnostic that has none.
func WithAddress(ds diag.Diagnostics, a Address) diag.Diagnostics {
	out := slices.Clone(ds)
	for i := range out {
		if out[i].Address == "" {
			out[i].Address = a.String()
		}
	}
	return out
}
