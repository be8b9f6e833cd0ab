package contain

import (
	"fmt"
	"strings"
)

// UnavailableError says that a provider was not started because the machine, or its Provider object, does not allow to contain it.
type UnavailableError struct {
	// Missing are the features that the machine lacks; empty when the Provider object turns the sandbox off.
	Missing []string
}

func (e *UnavailableError) Error() string {
	if len(e.Missing) == 0 {
		return "the server runs with --provider-sandbox=require, and spec.sandbox.mode of the Provider is Off; set it to Enforced"
	}
	return fmt.Sprintf("the server runs with --provider-sandbox=require, and this machine lacks %s; use a newer kernel, or --provider-sandbox=auto", strings.Join(e.Missing, ", "))
}

// PathError says that a granted path would give a provider the server's own files.
type PathError struct {
	// Path that was granted, and what it is after symbolic links were followed.
	Path, Resolved string
	// Protected is the directory that providers must not reach.
	Protected string
}

func (e *PathError) Error() string {
	path := fmt.Sprintf("%q", e.Path)
	if e.Resolved != e.Path {
		path += fmt.Sprintf(" (%s)", e.Resolved)
	}
	return fmt.Sprintf("grant path %s: it and the server's directory %s contain each other; grant another path in spec.sandbox", path, e.Protected)
}
