package v1alpha1

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InstanceKey is the key of an instance of a ResourceSet: an index for spec.count, or a key of spec.forEach.
type InstanceKey struct {
	// Named is true for a key of spec.forEach.
	Named bool
	Index int
	Name  string
}

// maxIndex is the largest index that an address may have. The limit on the instances of a set is lower.
const maxIndex = 1 << 30

// String returns the key as in a Terraform address: [0] or ["a"].
func (k InstanceKey) String() string {
	if k.Named {
		return `["` + quoteKey(k.Name, false) + `"]`
	}
	return "[" + strconv.Itoa(k.Index) + "]"
}

// Text returns the key without brackets and quotes, as in spec.imports.
func (k InstanceKey) Text() string {
	if k.Named {
		return k.Name
	}
	return strconv.Itoa(k.Index)
}

// Compare orders indexes by number and names as strings.
func (k InstanceKey) Compare(other InstanceKey) int {
	switch {
	case k.Named != other.Named && k.Named:
		return 1
	case k.Named != other.Named:
		return -1
	}
	return cmp.Or(cmp.Compare(k.Index, other.Index), strings.Compare(k.Name, other.Name))
}

// InstanceName returns the name of the instance of a set's template: web[0] or web["a"]. A name must not have a slash
// or a percent sign, since it is a part of URLs, so a key has them in escaped form.
func InstanceName(name string, key InstanceKey) string {
	if key.Named {
		return name + `["` + quoteKey(key.Name, true) + `"]`
	}
	return name + key.String()
}

// IsInstanceName reports whether a name is that of an instance. No stored object has such a name, because Kubernetes
// forbids brackets.
func IsInstanceName(name string) bool {
	_, name = SplitModuleObjectName(name)
	return strings.IndexByte(name, '[') > 0
}

// IsVirtualName reports whether a name is that of an object that is not stored: an instance, or a block of a Module.
func IsVirtualName(name string) bool {
	path, inner := SplitModuleObjectName(name)
	return path != "" || strings.IndexByte(inner, '[') > 0
}

// OwnerKind returns the kind of the object that a virtual object is an instance of: Module, or ResourceSet.
func OwnerKind(name string) string {
	if InModule(name) {
		return "Module"
	}
	return "ResourceSet"
}

// ParseInstanceName splits the name of an instance into the name in the template and the key. It accepts all spellings
// of the key. ok is false if the name is not that of an instance.
func ParseInstanceName(s string) (name string, key InstanceKey, ok bool) {
	path, inner := SplitModuleObjectName(s)
	at := strings.IndexByte(inner, '[')
	if at <= 0 {
		return s, InstanceKey{}, false
	}
	key, ok = parseInstanceKey(inner[at:])
	return ModuleObjectName(path, inner[:at]), key, ok
}

// ShownName returns a name as in a Terraform address: without the escapes of InstanceName.
func ShownName(name string) string {
	if !strings.Contains(name, `\u00`) {
		return name
	}
	path, inner := SplitModuleObjectName(name)
	if base, key, ok := ParseInstanceName(inner); ok {
		inner = base + key.String()
	}
	return ModuleObjectName(ShownModule(path), inner)
}

// CompareNames orders names, and instances of one name by their keys.
func CompareNames(a, b string) int {
	pathA, innerA := SplitModuleObjectName(a)
	if pathB, innerB := SplitModuleObjectName(b); pathA != "" || pathB != "" {
		return cmp.Or(strings.Compare(pathA, pathB), CompareNames(innerA, innerB))
	}
	if !IsInstanceName(a) || !IsInstanceName(b) {
		return strings.Compare(a, b)
	}
	nameA, keyA, okA := ParseInstanceName(a)
	nameB, keyB, okB := ParseInstanceName(b)
	if !okA || !okB {
		return strings.Compare(a, b)
	}
	return cmp.Or(strings.Compare(nameA, nameB), keyA.Compare(keyB))
}

func parseInstanceKey(s string) (InstanceKey, bool) {
	inner, ok := strings.CutSuffix(s[1:], "]")
	if !ok || inner == "" {
		return InstanceKey{}, false
	}
	if inner[0] != '"' {
		i, err := strconv.Atoi(inner)
		if err != nil || i < 0 || i > maxIndex || strconv.Itoa(i) != inner {
			return InstanceKey{}, false
		}
		return InstanceKey{Index: i}, true
	}
	if len(inner) < 2 || !strings.HasSuffix(inner, `"`) {
		return InstanceKey{}, false
	}
	name, ok := unquoteKey(inner[1 : len(inner)-1])
	return InstanceKey{Named: true, Name: name}, ok
}

// quoteKey escapes a key as a string of HCL. As Terraform does, it escapes characters that are not printable, such as
// control characters and marks that change the direction of the text. Otherwise, two different keys could look the
// same. With path, it also escapes the characters that a URL path must not have.
func quoteKey(s string, path bool) string {
	if !strings.ContainsAny(s, "\"\\$%/") && !strings.ContainsFunc(s,
		func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c > 0xffff && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\U%08x`, c)
		case !unicode.IsPrint(c) || path && (c == '/' || c == '%'):
			fmt.Fprintf(&b, `\u%04x`, c)
		case (c == '$' || c == '%') && i+1 < len(s) && s[i+1] == '{':
			b.WriteRune(c)
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// unquoteKey is the inverse of quoteKey.
func unquoteKey(s string) (string, bool) {
	if !strings.ContainsAny(s, "\"\\$%") {
		return s, utf8.ValidString(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return "", false
		case (c == '$' || c == '%') && strings.HasPrefix(s[i+1:], string(c)+"{"):
			b.WriteByte(c)
			b.WriteByte('{')
			i += 2
		case (c == '$' || c == '%') && strings.HasPrefix(s[i+1:], "{"):
			return "", false // a template
		case c != '\\':
			b.WriteByte(c)
		default:
			i++
			if i == len(s) {
				return "", false
			}
			digits := 0
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case '"', '\\':
				b.WriteByte(s[i])
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			default:
				return "", false
			}
			if digits == 0 {
				continue
			}
			if i+digits >= len(s) {
				return "", false
			}
			r, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			if err != nil || !utf8.ValidRune(rune(r)) {
				return "", false
			}
			b.WriteRune(rune(r))
			i += digits
		}
	}
	return b.String(), utf8.ValidString(b.String())
}
