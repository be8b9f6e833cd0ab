package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server returns the server's address for error messages.
func (s *session) server() string {
	if s.cfg == nil {
		return ""
	}
	return s.cfg.Host
}

// explain adds a remedy to connection errors. Errors of the API have one already.
func explain(err error, server string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\nThe server doesn't know who you are: the token or certificate in the kubeconfig is wrong or has expired.\nOn the server's machine, `hykube kubeconfig` renews admin.kubeconfig, and `hykube kubeconfig --user NAME` makes a new one for a user", err)
	case apierrors.IsNotFound(err) && notServed(err):
		return fmt.Errorf("%w\n%s answers, but doesn't serve Hykube's API: is it a Hykube server? Check with `kubectl hykube version`", err, server)
	}
	if apiStatus(err) != nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("the server at %s can't be reached: %w\nIs it running, and is it the server of this kubeconfig? When it runs again, it continues its plans: `kubectl hykube status`", server, rootCause(err))
	case os.IsTimeout(err):
		return fmt.Errorf("the server at %s doesn't answer in time: %w", server, rootCause(err))
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the server's name %q can't be resolved: check `server:` in the kubeconfig", dns.Name)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("the certificate of %s isn't signed by the CA in the kubeconfig: %w\nA server with a new data directory has a new CA: use the kubeconfig that it wrote", server, rootCause(err))
	}
	return err
}

// apiStatus returns the Status of an API error, or nil for other errors.
func apiStatus(err error) *metav1.Status {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return new(s.Status())
	}
	return nil
}

// notServed reports whether a 404 is about a missing API and not a missing object.
func notServed(err error) bool {
	status := apiStatus(err)
	if status == nil {
		return false
	}
	d := status.Details
	if d == nil {
		return true
	}
	for _, c := range d.Causes {
		if c.Type == "UnexpectedServerResponse" {
			return true
		}
	}
	return d.Name == ""
}

// rootCause returns the innermost error, such as "connect: connection refused" without the URL.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// Exit codes, on which scripts rely.
const (
	// ExitDone means success, including no changes.
	ExitDone = 0
	// ExitError means that an operation failed.
	ExitError = 1
	// ExitChanges means that a plan has changes, or deferred ones; only with --detailed-exitcode.
	ExitChanges = 2
	// ExitRefused means that the user lacks a right, or that a plan may not be approved.
	ExitRefused = 3
	// ExitStale means that objects or states changed after planning.
	ExitStale = 4
)

// exitError is an error with its own exit code. With a nil cause, PrintError prints nothing.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// unchangedError is the error of a command that changed nothing.
type unchangedError struct {
	problem, advice string
	// recorded is true if the command changed an object, but no infrastructure.
	recorded bool
}

func (e *unchangedError) Error() string {
	what := "Nothing"
	if e.recorded {
		what = "No infrastructure"
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n%s was changed. %s", e.problem, what, e.advice))
}

// silent returns an error with an exit code for a command that has already printed the reason.
func silent(code int) error { return &exitError{code: code} }

// isSilent reports whether an error has only an exit code.
func isSilent(err error) bool {
	e, ok := errors.AsType[*exitError](err)
	return ok && e.cause == nil
}

// ExitCode returns the exit code for the error of a command. Only this function decides it.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if apierrors.IsForbidden(err) {
		return ExitRefused
	}
	return ExitError
}

// PrintError prints err, unless the command has already printed the reason.
func PrintError(w io.Writer, err error) {
	if err == nil || isSilent(err) {
		return
	}
	fmt.Fprintf(w, "Error: %v\n", err)
}
