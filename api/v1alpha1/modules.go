package v1alpha1

import (
	"strings"
	"unicode"
)

// This file has the names of what is in a Module. The path of a module instance is the addresses of the calls that lead
// to it, such as module.shop.module.net["eu"]. The first call has the name of the Module.

// modulePrefix begins each step of a path.
const modulePrefix = "module."

// ModulePath returns the path of the module that a call in the module with a path makes. key is that of the
// instance; nil without one.
func ModulePath(path, call string, key *InstanceKey) string {
	if path != "" {
		path += "."
	}
	path += modulePrefix + call
	if key != nil {
		return InstanceName(path, *key)
	}
	return path
}

// CutModulePath reads the path of a module instance from the beginning of s, and returns what follows it. The path
// is in the form of ModulePath, whatever the spelling of its keys. ok is false if s does not begin with a path.
func CutModulePath(s string) (path, rest string, ok bool) {
	rest = s
	for {
		after, found := strings.CutPrefix(rest, modulePrefix)
		if !found {
			return path, rest, path != ""
		}
		call := after[:identifierLength(after)]
		if call == "" {
			return "", s, false
		}
		after = after[len(call):]
		var key *InstanceKey
		if strings.HasPrefix(after, "[") {
			end := keyLength(after)
			k, valid := parseInstanceKey(after[:end])
			if !valid {
				return "", s, false
			}
			key, after = &k, after[end:]
		}
		path, rest = ModulePath(path, call, key), after
		if next, more := strings.CutPrefix(rest, "."); more && strings.HasPrefix(next, modulePrefix) {
			rest = next
			continue
		}
		return path, rest, true
	}
}

// LastCall splits the path of a module instance into that of the caller, and the call with its key. The key is nil
// for a call without instances.
func LastCall(path string) (caller, call string, key *InstanceKey) {
	rest := path
	for {
		after, ok := strings.CutPrefix(rest, modulePrefix)
		if !ok {
			return "", "", nil
		}
		call, key = after[:identifierLength(after)], nil
		after = after[len(call):]
		if strings.HasPrefix(after, "[") {
			end := keyLength(after)
			if k, valid := parseInstanceKey(after[:end]); valid {
				key = &k
			}
			after = after[end:]
		}
		if after == "" {
			return strings.TrimSuffix(path[:len(path)-len(rest)], "."), call, key
		}
		rest = after[1:]
	}
}

// RootModule returns the name of the Module with which a path begins.
func RootModule(path string) string {
	rest, _ := strings.CutPrefix(path, modulePrefix)
	return rest[:identifierLength(rest)]
}

// ShownModule returns a path as in a Terraform address: without the escapes that a URL needs.
func ShownModule(path string) string {
	if !strings.Contains(path, `\u00`) {
		return path
	}
	caller, call, key := LastCall(path)
	shown := modulePrefix + call
	if caller != "" {
		shown = ShownModule(caller) + "." + shown
	}
	if key != nil {
		shown += key.String()
	}
	return shown
}

// ModuleObjectName returns the name of the virtual object for a block in a module: module.shop:a. No stored object has
// such a name, because Kubernetes forbids colons.
func ModuleObjectName(path, name string) string {
	if path == "" {
		return name
	}
	return path + ":" + name
}

// SplitModuleObjectName splits the name of an object into the path of its module and the name in it. The path is empty
// for an object outside of a Module.
func SplitModuleObjectName(s string) (path, name string) {
	if !strings.HasPrefix(s, modulePrefix) || strings.IndexByte(s, ':') < 0 {
		return "", s
	}
	path, rest, ok := CutModulePath(s)
	name, inModule := strings.CutPrefix(rest, ":")
	if !ok || !inModule {
		return "", s
	}
	return path, name
}

// InModule reports whether the name of an object is that of a block in a Module.
func InModule(name string) bool {
	path, _ := SplitModuleObjectName(name)
	return path != ""
}

// identifierLength returns the length of the identifier of the language at the beginning of s, or of the name of a
// Module, which may begin with a digit.
func identifierLength(s string) int {
	for i, c := range s {
		if c != '_' && c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.Is(unicode.Mn, c) &&
			!unicode.Is(unicode.Mc, c) {
			return i
		}
	}
	return len(s)
}

// keyLength returns the length of the key in brackets at the beginning of s, or all of s if it has no end.
func keyLength(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i + 1
		}
	}
	return len(s)
}
