package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/provider/plugin"
	"github.com/hykube/hykube/internal/provider/signature"
)

// CrashError is the error if a provider process died or hung before it could be used.
type CrashError = plugin.CrashError

// UnavailableError is the error if a provider process was lost during a call. The caller may retry a call that is safe
// to repeat.
type UnavailableError = plugin.UnavailableError

// ErrClosed is the error of a closed pool.
var ErrClosed = errors.New("the pool of provider processes is closed: the server is stopping")

// configRefused returns the *diag.Failure of a configuration that the provider rejects, with all of the provider's
// diagnostics.
func configRefused(source string, said []*tfprotov6.Diagnostic) error {
	return &diag.Failure{Operation: fmt.Sprintf("configure provider %q", source),
		Diagnostics: diag.Limit(diag.FromProto(said))}
}

func hasErrors(ds []*tfprotov6.Diagnostic) bool { return diag.HasErrors(diag.FromProto(ds)) }

// diagnosticsError returns an error with all errors of an answer.
func diagnosticsError(ds []*tfprotov6.Diagnostic) error {
	return errors.New(diag.Describe(diag.FromProto(ds)))
}

// ChecksumError is the error for a file with a wrong checksum.
type ChecksumError struct {
	// What describes the file or package.
	What string
	// Want is the expected checksum, and Got is the actual one.
	Want, Got string
	// Remedy is a sentence about what the user can do.
	Remedy string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("verify %s: checksum mismatch: it should be %s and is %s; %s", e.What, e.Want, e.Got, e.Remedy)
}

// SignatureError is the error if the publisher's signature of a package's checksum is missing or not acceptable.
type SignatureError struct {
	Provider, Version string
	Problem           signature.Problem
	// Reason is a clause that describes the problem.
	Reason string
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("verify signature of provider %q %s: %s; ask its publisher, or put a package that you trust into a mirror",
		e.Provider, e.Version, e.Reason)
}

// VerificationError is the error for a package that does not have the expected checksum or signature. It wraps a
// *ChecksumError or a *SignatureError.
type VerificationError struct {
	// Version is the version of the package.
	Version string
	Err     error
}

func (e *VerificationError) Error() string { return e.Err.Error() }
func (e *VerificationError) Unwrap() error { return e.Err }

// unverified returns a *VerificationError for a wrong checksum or signature, and other errors as they are.
func unverified(version string, err error) error {
	_, checksum := errors.AsType[*ChecksumError](err)
	_, signed := errors.AsType[*SignatureError](err)
	if checksum || signed {
		return &VerificationError{Version: version, Err: err}
	}
	return err
}

// NotFoundError is the error if no mirror or registry has a provider.
type NotFoundError struct {
	// Searched lists the mirrors and registries that were searched.
	Searched []string
}

func (e *NotFoundError) Error() string {
	if len(e.Searched) == 0 {
		return "the server has no mirror and no registry to search; add a mirror with --provider-mirror"
	}
	return fmt.Sprintf("no such provider in %s; correct the source, or add the provider to a mirror",
		strings.Join(e.Searched, " or "))
}

// VersionError is the error if no version of a provider meets a constraint.
type VersionError struct {
	Constraint string
	// Available lists the existing versions, newest first.
	Available []string
	// Searched lists the mirrors and registries that were searched.
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

// PlatformError is the error if a version has no package for this platform.
type PlatformError struct {
	Version string
	// Platform is this machine's platform, such as "linux_amd64".
	Platform string
	// Available lists the platforms with a package.
	Available []string
	// Searched names the mirror or registry with these packages.
	Searched string
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("version %s in %s is not for this machine: the server needs a package for %s, and the packages are for %s; use another version, or add a package for %s to a mirror",
		e.Version, e.Searched, e.Platform, strings.Join(e.Available, ", "), e.Platform)
}
