package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ErrNotFound is the error if the registry or mirror does not have the requested document.
var ErrNotFound = errors.New("not found")

const (
	// maxDocument is the maximum size of a document. The largest version lists have a few hundred kilobytes.
	maxDocument = 16 << 20
	// maxPackage is the maximum size of a package. The largest providers have 200 MB.
	maxPackage = 2 << 30
	// documentTimeout is the maximum time for one document, and packageTimeout for a package.
	documentTimeout = 30 * time.Second
	packageTimeout  = 20 * time.Minute
	attempts        = 4
	maxRetryAfter   = 20 * time.Second
)

// Config configures a Client.
type Config struct {
	// HTTP sends the requests; nil means a client with default timeouts. New copies it and makes it reject redirects to
	// URLs other than https.
	HTTP *http.Client
	// Token returns the token for a registry's host; empty means none, as does a nil function. The client sends it only
	// to the registry, never to the host that stores a package.
	Token func(host string) string
	// Logger logs retries; nil discards them.
	Logger *slog.Logger
	// Backoff is the delay before the first retry; it doubles with each retry. 0 means half a second.
	Backoff time.Duration
}

// Client reads registries and mirrors. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	token   func(string) string
	log     *slog.Logger
	backoff time.Duration
}

// New returns a client with the configuration.
func New(c Config) *Client {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			IdleConnTimeout:       30 * time.Second,
			ForceAttemptHTTP2:     true,
		}}
	}
	own := *c.HTTP
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" {
			return permanentError{fmt.Errorf("redirected to %s, which is not https", plain(r.URL))}
		}
		if len(via) >= 10 {
			return permanentError{errors.New("redirected ten times")}
		}
		return nil
	}
	if c.Token == nil {
		c.Token = func(string) string { return "" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Backoff == 0 {
		c.Backoff = 500 * time.Millisecond
	}
	return &Client{http: &own, token: c.Token, log: c.Logger, backoff: c.Backoff}
}

// plain returns a URL for a message, without the parts that may be credentials: the query of a signed URL, and user
// information.
func plain(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// resolve parses a URL that may be relative to base. It returns an error for URLs other than https.
func resolve(base *url.URL, ref string) (*url.URL, error) {
	u, err := base.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("%s names something that is not a URL", plain(base))
	}
	if u.Scheme != "https" {
		return nil, fmt.Errorf("%s names %s, which is not https", plain(base), plain(u))
	}
	return u, nil
}

// document downloads a small document.
func (c *Client) document(ctx context.Context, u *url.URL, token string) ([]byte, *url.URL, error) {
	ctx, cancel := context.WithTimeout(ctx, attempts*documentTimeout)
	defer cancel()
	var data []byte
	var at *url.URL
	err := c.retry(ctx, u, func() error {
		one, cancel := context.WithTimeout(ctx, documentTimeout)
		defer cancel()
		body, final, err := c.get(one, u, token)
		if err != nil {
			return err
		}
		defer body.Close()
		at = final
		data, err = io.ReadAll(io.LimitReader(body, maxDocument+1))
		if err == nil && len(data) > maxDocument {
			return permanentError{fmt.Errorf("the answer is larger than %d bytes", maxDocument)}
		}
		return err
	})
	return data, at, err
}

// jsonDocument downloads and decodes a small document. It returns the URL after redirects.
func (c *Client) jsonDocument(ctx context.Context, u *url.URL, token string, into any) (*url.URL, error) {
	data, at, err := c.document(ctx, u, token)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("get %s: the response is not the JSON of the protocol: %w", plain(u), err)
	}
	return at, nil
}

// permanentError is an error that a retry would not fix.
type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }

// retryAfterError is an error with the delay that the server requests before a retry.
type retryAfterError struct {
	error
	after time.Duration
}

func (c *Client) retry(ctx context.Context, u *url.URL, try func() error) error {
	pause := c.backoff
	for n := 1; ; n++ {
		err := try()
		if err == nil {
			return nil
		}
		if p, ok := errors.AsType[permanentError](err); ok {
			return fmt.Errorf("get %s: %w", plain(u), p.error)
		}
		if n == attempts || ctx.Err() != nil {
			return fmt.Errorf("get %s: %w", plain(u), err)
		}
		wait := pause
		if l, ok := errors.AsType[retryAfterError](err); ok && l.after > wait {
			wait = min(l.after, maxRetryAfter)
		}
		c.log.Warn("registry request failed, trying again", "url", plain(u), "attempt", n, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("get %s: %w", plain(u), err)
		}
		pause *= 2
	}
}

// get sends one request. The caller closes the body.
func (c *Client) get(ctx context.Context, u *url.URL, token string) (io.ReadCloser, *url.URL, error) {
	if u.Scheme != "https" {
		return nil, nil, permanentError{errors.New("only https is allowed")}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, permanentError{errors.New("malformed URL")}
	}
	req.Header.Set("User-Agent", "hykube")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // omit the URL, which may contain a signature
		}
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			return nil, nil, permanentError{fmt.Errorf("there is no host %q", u.Hostname())}
		}
		if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return nil, nil, permanentError{cert}
		}
		return nil, nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, resp.Request.URL, nil
	}
	resp.Body.Close()
	status := fmt.Errorf("the server answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return nil, nil, permanentError{ErrNotFound}
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, nil, permanentError{fmt.Errorf(
			"%w; set the environment variable TF_TOKEN_<host> to a token that may read it", status)}
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, nil, retryAfterError{status, time.Duration(seconds) * time.Second}
	default:
		return nil, nil, permanentError{status}
	}
}
