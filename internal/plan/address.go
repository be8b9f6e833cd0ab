package plan

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Address names a resource within its namespace.
type Address struct {
	// Type is the Terraform resource type, such as "sim_network".
	Type string
	// Name is the object's name, such as "main". It may hold dots and dashes.
	Name string
}

// String is the Terraform address, such as "sim_network.main".
func (a Address) String() string { return a.Type + "." + a.Name }

// Expression is the address as it is written in a template: a name that is no identifier goes into brackets,
// as in sim_network["my.name"].
func (a Address) Expression() string {
	if hclsyntax.ValidIdentifier(a.Name) {
		return a.String()
	}
	return fmt.Sprintf("%s[%q]", a.Type, a.Name)
}

// Compare orders addresses by type, then name.
func (a Address) Compare(b Address) int {
	if c := strings.Compare(a.Type, b.Type); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// ParseAddress reads TYPE.NAME, TYPE["NAME"] or KIND/NAME.
func ParseAddress(s string) (Address, error) {
	a, ok := splitAddress(s)
	if !ok || !validType(a.Type) || !validName(a.Name) {
		return Address{}, fmt.Errorf("parse address %q: not the address of a resource; write it as TYPE.NAME, such as sim_network.main, or as KIND/NAME, such as sim-network/main", s)
	}
	return a, nil
}

func splitAddress(s string) (Address, bool) {
	if kind, name, ok := strings.Cut(s, "/"); ok {
		return Address{Type: v1alpha1.TypeOf(kind), Name: name}, true
	}
	dot, bracket := strings.IndexByte(s, '.'), strings.IndexByte(s, '[')
	if bracket >= 0 && (dot < 0 || bracket < dot) {
		name, ok := strings.CutSuffix(s[bracket:], `"]`)
		name, ok2 := strings.CutPrefix(name, `["`)
		return Address{Type: s[:bracket], Name: name}, ok && ok2
	}
	if dot < 0 {
		return Address{}, false
	}
	return Address{Type: s[:dot], Name: s[dot+1:]}, true
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
