package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/provider/plugin"
)

// CrashError says that a provider died, or hung, before it could be used.
type CrashError = plugin.CrashError

// UnavailableError says that a provider's process was lost during a call; the caller may retry what is safe to retry.
type UnavailableError = plugin.UnavailableError

// ErrClosed is what a pool returns once it has been closed.
var ErrClosed = errors.New("the pool of provider processes is closed: the server is stopping")

// configRefused returns the *diag.Failure of a configuration that a provider refuses, with all that the provider said.
func configRefused(source string, said []*tfprotov6.Diagnostic) error {
	return &diag.Failure{Operation: fmt.Sprintf("configure provider %q", source), Diagnostics: diag.FromProto(said)}
}

func diagnosticText(d *tfprotov6.Diagnostic) string {
	s := d.Summary
	if d.Attribute != nil {
		s = d.Attribute.String() + ": " + s
	}
	if d.Detail != "" && d.Detail != d.Summary {
		s += ": " + d.Detail
	}
	return s
}

func hasErrors(ds []*tfprotov6.Diagnostic) bool {
	for _, d := range ds {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}

// ChecksumError says that a file is not the one that it should be.
type ChecksumError struct {
	// What has the wrong checksum.
	What string
	// Want and Got are the checksums.
	Want, Got string
	// Remedy is what a person can do about it.
	Remedy string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("verify %s: checksum mismatch: it should be %s and is %s; %s", e.What, e.Want, e.Got, e.Remedy)
}

// NotFoundError says that nobody knows a provider.
type NotFoundError struct {
	// Searched are the places that were asked.
	Searched []string
}

func (e *NotFoundError) Error() string {
	if len(e.Searched) == 0 {
		return "there is nowhere to look for it; give the server a mirror, or allow it to ask registries"
	}
	return fmt.Sprintf("no such provider in %s; check how its source is written, or add it to a mirror", strings.Join(e.Searched, " or "))
}

// VersionError says that a provider has no version that meets a constraint.
type VersionError struct {
	Constraint string
	// Available are the versions that there are, newest first.
	Available []string
	// Searched are the places that were asked.
	Searched []string
}

func (e *VersionError) Error() string {
	const shown = 10
	list := e.Available
	more := ""
	if len(list) > shown {
		more = fmt.Sprintf(" and %d more", len(list)-shown)
		list = list[:shown]
	}
	wanted := fmt.Sprintf("meets %q", e.Constraint)
	if e.Constraint == "" {
		wanted = "is a release"
	}
	return fmt.Sprintf("no version %s: %s has %s%s; change the constraint, or add a version to a mirror",
		wanted, strings.Join(e.Searched, " or "), strings.Join(list, ", "), more)
}

// PlatformError says that a version is not there for this machine.
type PlatformError struct {
	Version string
	// Platform is ours, such as "linux_amd64".
	Platform string
	// Available are the platforms that there are.
	Available []string
	// Searched is the place that has them.
	Searched string
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("version %s in %s is not for this machine: it needs %s and there is %s; use another version, or add a package for %s to a mirror",
		e.Version, e.Searched, e.Platform, strings.Join(e.Available, ", "), e.Platform)
}
