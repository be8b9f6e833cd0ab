// Package webhook sends HTTPS requests to addresses that users name. It refuses addresses inside of the server's
// network, follows no redirects, and reads nothing of a response but its status. Its errors have no address and no
// header, because these may be secret. It imports only the standard library and a package that validates headers.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	// timeout is the maximum time of a request, from the name of the host to the status of the response.
	timeout = 10 * time.Second
	// maxHeaderBytes is the maximum size of the headers of a response.
	maxHeaderBytes = 16 << 10
)

// Client sends requests. It uses no proxy and keeps no connection.
type Client struct {
	// Allow lists networks whose addresses are allowed although they are not public.
	Allow []netip.Prefix
	// Timeout is the maximum time of a request; 0 means ten seconds.
	Timeout time.Duration
}

// Request is a POST request.
type Request struct {
	URL    string
	Header http.Header
	Body   []byte
	// CABundle has PEM certificates of the authorities of the receiver; nil means those that the machine trusts.
	CABundle []byte
}

// Kind is the reason why a request failed.
type Kind string

// The kinds of errors. Refused, Redirected and Rejected errors recur until a user changes something.
const (
	// Refused: the request was not sent, because the address is not valid or not allowed.
	Refused Kind = "Refused"
	// Redirected: the receiver answered with a redirect.
	Redirected Kind = "Redirected"
	// Rejected: the receiver answered with a status of 400 to 499 that another attempt does not change.
	Rejected Kind = "Rejected"
	// Failed: the receiver answered with another status.
	Failed Kind = "Failed"
	// TimedOut: the receiver did not answer in time.
	TimedOut Kind = "TimedOut"
	// Untrusted: the certificate of the receiver cannot be verified.
	Untrusted Kind = "Untrusted"
	// Unresolved: the name of the host has no address.
	Unresolved Kind = "Unresolved"
	// Unreachable: there is no connection, or it broke.
	Unreachable Kind = "Unreachable"
)

// Error is the error of Send. Its text contains neither the address nor a header.
type Error struct {
	Kind Kind
	// Code is the HTTP status of the response; 0 if there was none.
	Code int
	// Why is the reason of a refusal.
	Why string
}

func (e *Error) Error() string {
	switch e.Kind {
	case Refused:
		return e.Why
	case Redirected:
		return fmt.Sprintf("the receiver answered with a redirect (HTTP %d), which the server does not follow: write the address of its target", e.Code)
	case Rejected:
		return fmt.Sprintf("the receiver rejected the message (HTTP %d): check the address, the headers and the format",
			e.Code)
	case Failed:
		return fmt.Sprintf("the receiver answered with HTTP %d", e.Code)
	case TimedOut:
		return "the receiver did not answer in time"
	case Untrusted:
		return "the certificate of the receiver cannot be verified: check its name, and spec.webhook.caBundle"
	case Unresolved:
		return "the name of the receiver cannot be resolved"
	default:
		return "the receiver cannot be reached"
	}
}

// Permanent reports whether the error recurs until a user changes something.
func (e *Error) Permanent() bool {
	return e.Kind == Refused || e.Kind == Redirected || e.Kind == Rejected
}

// Send sends a request and returns the status of the response. It returns an *Error for every status but 200 to 299,
// and if there is no response.
func (c *Client) Send(ctx context.Context, r Request) (code int, err error) {
	if err := CheckURL(r.URL); err != nil {
		return 0, &Error{Kind: Refused, Why: "the address of the receiver is not valid: " + err.Error()}
	}
	limit := c.Timeout
	if limit == 0 {
		limit = timeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, &Error{Kind: Refused, Why: "the address of the receiver is not valid"}
	}
	for name, values := range r.Header {
		for _, v := range values {
			if CheckHeaderName(name) != nil && !ownHeader(name) || !httpguts.ValidHeaderFieldValue(v) {
				return 0, &Error{Kind: Refused,
					Why: "a header is not valid: check its name, and that the value in the Secret is one line"}
			}
		}
	}
	req.Header = r.Header
	transport, err := c.transport(r.CABundle)
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, classify(ctx, err)
	}
	// Closing the body ends the connection. So a receiver cannot keep the server busy with a long response.
	_ = resp.Body.Close()
	return resp.StatusCode, statusError(resp.StatusCode)
}

// transport returns a transport for one request.
func (c *Client) transport(caBundle []byte) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(caBundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(caBundle) {
			return nil, &Error{Kind: Refused, Why: "spec.webhook.caBundle has no PEM certificate"}
		}
	}
	dialer := &net.Dialer{Control: c.control}
	return &http.Transport{
		// There is no proxy, because the server could not check the addresses to which a proxy connects.
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}, nil
}

// errRefused is the error for an address that is not allowed.
var errRefused = errors.New("the address is not allowed")

// control refuses connections to addresses that are not allowed. The dialer calls it with each address that the name of
// the host has, immediately before it connects. So a name whose address changes cannot evade the check.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !c.allows(at.Addr()) {
		return errRefused
	}
	return nil
}

// special lists the networks that are not public, in addition to those that netip knows. The first two of IPv6 have the
// addresses of IPv4 in old forms.
var special = parse("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
	"3fff::/20", "5f00::/16", "fec0::/10")

func parse(networks ...string) (out []netip.Prefix) {
	for _, n := range networks {
		out = append(out, netip.MustParsePrefix(n))
	}
	return out
}

// allows reports whether the client may connect to an address.
func (c *Client) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case slices.ContainsFunc(c.Allow, within):
		return true
	case !ip.IsGlobalUnicast(), ip.IsPrivate(), slices.ContainsFunc(special, within):
		return false
	}
	return true
}

// classify returns the *Error for an error of the HTTP client. It drops the text of that error, which contains the
// address.
func classify(ctx context.Context, err error) *Error {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		name        *net.DNSError
		network     net.Error
	)
	switch {
	case errors.Is(err, errRefused):
		return &Error{Kind: Refused, Why: "the address of the receiver is not public: an administrator of the server can allow it with --notification-allow-cidr"}
	case errors.As(err, &certificate), errors.As(err, &record):
		return &Error{Kind: Untrusted}
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &Error{Kind: TimedOut}
	case errors.As(err, &name):
		return &Error{Kind: Unresolved}
	}
	return &Error{Kind: Unreachable}
}

// statusError returns the *Error for the status of a response; nil for success.
func statusError(code int) error {
	switch {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return &Error{Kind: Redirected, Code: code}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return &Error{Kind: Failed, Code: code}
	case code >= 400 && code < 500:
		return &Error{Kind: Rejected, Code: code}
	}
	return &Error{Kind: Failed, Code: code}
}

// CheckURL returns an error for an address that is not https://HOST[:PORT]/PATH. The error does not have the address.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme != "https":
		return errors.New("it must begin with https://")
	case u.User != nil:
		return errors.New("it must have no user and no password: store the credential in a Secret, and refer to it in headersFrom")
	case u.Hostname() == "", u.Opaque != "":
		return errors.New("it has no host")
	case u.Fragment != "", strings.Contains(address, "#"):
		return errors.New("it must have no fragment")
	}
	return nil
}

// reserved lists headers that users must not set: the server, or the HTTP client, sets them.
var reserved = []string{"host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive",
	"proxy-connection", "te", "trailer", "upgrade",
	"expect", "user-agent", "accept-encoding"}

// CheckHeaderName returns an error for the name of a header that users must not set.
func CheckHeaderName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New("it is not the name of a header")
	case slices.Contains(reserved, lower), strings.HasPrefix(lower, "webhook-"), strings.HasPrefix(lower, "proxy-"):
		return errors.New("the server sets this header itself")
	}
	return nil
}

// CheckHeaderValue returns an error for a value that a header cannot have. The error does not have the value.
func CheckHeaderValue(value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("it must be one line without control characters")
	}
	return nil
}

// ownHeader reports whether the server sets a header.
func ownHeader(name string) bool {
	lower := strings.ToLower(name)
	return lower == "content-type" || lower == "user-agent" || strings.HasPrefix(lower, "webhook-")
}
