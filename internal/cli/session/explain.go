package session

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Server returns the server's address for error messages.
func (s *Session) Server() string {
	if s.Config == nil {
		return ""
	}
	return s.Config.Host
}

// Explain adds a remedy to connection errors with the server of the kubeconfig.
func (s *Session) Explain(err error) error { return Explain(err, s.Server()) }

// Explain adds a remedy to connection errors. Errors of the API have one already.
func Explain(err error, server string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\nThe server doesn't know who you are: the token or certificate in the kubeconfig is wrong or has expired.\nOn the server's machine, `hykube kubeconfig` renews admin.kubeconfig, and `hykube kubeconfig --user NAME` makes a new one for a user", err)
	case apierrors.IsNotFound(err) && NotServed(err):
		return fmt.Errorf("%w\n%s answers, but doesn't serve Hykube's API: is it a Hykube server? Check with `kubectl hykube version`", err, server)
	}
	if APIStatus(err) != nil {
		return err
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETUNREACH):
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

// APIStatus returns the Status of an API error, or nil for other errors.
func APIStatus(err error) *metav1.Status {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return new(s.Status())
	}
	return nil
}

// NotServed reports whether a 404 is about a missing API and not a missing object.
func NotServed(err error) bool {
	status := APIStatus(err)
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
