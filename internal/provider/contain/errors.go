package contain

import (
	"fmt"
	"strings"
)

// UnavailableError is the error of a provider that must run in a sandbox and cannot. Either the machine lacks a
// feature, or its Provider object turns the sandbox off.
type UnavailableError struct {
	// Missing are the missing features of the machine. It is empty if the Provider object turns the sandbox off.
	Missing []string
}

func (e *UnavailableError) Error() string {
	if len(e.Missing) == 0 {
		return "the server runs with --provider-sandbox=require, and spec.sandbox.mode of the Provider is Off; set it to Enforced"
	}
	return fmt.Sprintf("the server runs with --provider-sandbox=require, and this machine lacks %s; use a newer kernel, or --provider-sandbox=auto", strings.Join(e.Missing, ", "))
}

// PathError is the error of a granted path that includes files of the server.
type PathError struct {
	// Path is the granted path. Resolved is the path without symbolic links.
	Path, Resolved string
	// Protected is the directory that the path includes, or that contains the path.
	Protected string
}

func (e *PathError) Error() string {
	path := fmt.Sprintf("%q", e.Path)
	if e.Resolved != e.Path {
		path += fmt.Sprintf(" (%s)", e.Resolved)
	}
	return fmt.Sprintf("grant path %s: it contains the directory %s, which no provider may access, or is in it; grant another path in spec.sandbox", path, e.Protected)
}
