package simprovider

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/hykube/hykube/sdk/batch"
)

// cloud is a client of the cloud's API. It waits if the cloud asks for that, and returns errors unchanged.
type cloud struct {
	endpoint, token, region string
	// maxRetries is the maximum number of retries after 502, 503 and 504, and after lost answers of idempotent calls.
	// Throttled calls (429) are retried for as long as the operation may take.
	maxRetries int
	// retryLostCreates also retries a create with a lost answer, with the same client token.
	retryLostCreates bool
	http             *http.Client
	// calls sends the calls of several resources at once if the provider received them at once.
	calls batch.Group[*http.Request, answer]
}

// answer is a complete answer of the cloud.
type answer struct {
	*http.Response
	body []byte
}

// object is an object in an answer of the API.
type object map[string]any

func (o object) id() string { return text(o["id"]) }

func (o object) revision() float64 { r, _ := o["revision"].(float64); return r }

func text(v any) string { s, _ := v.(string); return s }

// apiError is an error in an answer of the API.
type apiError struct {
	status        int
	code, message string
	field         string
	requestID     string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s: %s (HTTP %d, request %s)", e.code, e.message, e.status, e.requestID)
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.status == http.StatusNotFound
}

// safety defines which calls may be retried if it is unknown whether they took effect.
type safety int

const (
	repeatable safety = iota
	onlyOnce
)

func (c *cloud) create(ctx context.Context, collection string, fields map[string]any) (o object, err error) {
	safe := onlyOnce
	if c.retryLostCreates {
		safe = repeatable
	}
	err = c.do(ctx, http.MethodPost, "/v1/"+collection, fields, &o, safe)
	return o, err
}

func (c *cloud) read(ctx context.Context, collection, id string) (o object, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/"+collection+"/"+url.PathEscape(id), nil, &o, repeatable)
	return o, err
}

func (c *cloud) update(ctx context.Context, collection, id string, fields map[string]any) (o object, err error) {
	err = c.do(ctx, http.MethodPut, "/v1/"+collection+"/"+url.PathEscape(id), fields, &o, repeatable)
	return o, err
}

func (c *cloud) action(ctx context.Context, collection, id, action string, fields map[string]any) (o object, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/"+collection+"/"+url.PathEscape(id)+"/"+action, fields, &o, repeatable)
	return o, err
}

func (c *cloud) remove(ctx context.Context, collection, id string) error {
	err := c.do(ctx, http.MethodDelete, "/v1/"+collection+"/"+url.PathEscape(id), nil, nil, repeatable)
	if isNotFound(err) {
		return nil // the object is gone, as intended
	}
	return err
}

func (c *cloud) named(ctx context.Context, collection, name string) ([]object, error) {
	var list struct{ Items []object }
	err := c.do(ctx, http.MethodGet, "/v1/"+collection+"?"+url.Values{"name": {name}}.Encode(), nil, &list, repeatable)
	return list.Items, err
}

// list returns the objects of a collection, in order of creation, until the caller stops.
func (c *cloud) list(ctx context.Context, collection string, each func(object) bool) error {
	for after := ""; ; {
		var page struct {
			Items []object
			Next  string
		}
		if err := c.do(ctx, http.MethodGet, "/v1/"+collection+"?"+url.Values{"after": {after}}.Encode(), nil, &page, repeatable); err != nil {
			return err
		}
		for _, o := range page.Items {
			if !each(o) {
				return nil
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// account checks the endpoint and the token.
func (c *cloud) account(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/v1/account", nil, nil, repeatable)
}

// visible waits until reads return an object at the written revision, or a later one.
func (c *cloud) visible(ctx context.Context, collection string, written object, done func(object) bool) (object, error) {
	last := written
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		o, err := c.read(ctx, collection, written.id())
		if err != nil && !isNotFound(err) {
			return last, err
		}
		if err == nil && o.revision() >= written.revision() {
			if last = o; done == nil || done(o) {
				return o, nil
			}
		}
		if err := sleep(ctx, wait); err != nil {
			return last, fmt.Errorf("wait for %s %s to settle: %w", collection, written.id(), err)
		}
	}
}

// gone waits until reads no longer return an object.
func (c *cloud) gone(ctx context.Context, collection, id string) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if _, err := c.read(ctx, collection, id); isNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("wait for %s %s to be gone: %w", collection, id, err)
		}
	}
}

// do makes a call, and retries it if that is safe.
func (c *cloud) do(ctx context.Context, method, path string, body, into any, safe safety) error {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	token := ""
	if method == http.MethodPost {
		token = rand.Text()
	}
	for try := 0; ; try++ {
		requestID := rand.Text()
		start := time.Now()
		resp, b, err := c.once(ctx, method, path, payload, token, requestID)
		fields := map[string]any{"method": method, "path": path, "request_id": requestID, "try": try + 1, "duration_ms": time.Since(start).Milliseconds()}
		if err != nil {
			fields["error"] = err.Error()
			tflog.Debug(ctx, "cloud did not answer", fields)
			if safe == onlyOnce || try >= c.maxRetries || ctx.Err() != nil {
				if safe == onlyOnce && ctx.Err() == nil {
					err = fmt.Errorf("%w; it is not known whether it happened", err)
				}
				return err
			}
			if sleep(ctx, backoff(try)) != nil {
				return err
			}
			continue
		}
		fields["status"] = resp.StatusCode
		tflog.Debug(ctx, "cloud answered", fields)
		if resp.StatusCode < 400 {
			if into == nil || len(b) == 0 {
				return nil
			}
			if err := json.Unmarshal(b, into); err != nil {
				return fmt.Errorf("decode answer to %s %s: %w", method, path, err)
			}
			return nil
		}
		e := answerError(resp, b, requestID)
		again := false
		switch resp.StatusCode {
		case http.StatusTeapot: // tests can kill the provider here
			fmt.Fprintln(os.Stderr, "the cloud answered:", e.message)
			panic(e.message)
		case http.StatusTooManyRequests: // rejected before any effect
			again = true
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			again = safe == repeatable && try < c.maxRetries
		}
		if !again {
			return e
		}
		if sleep(ctx, max(retryAfter(resp.Header), backoff(try))) != nil {
			return e
		}
	}
}

func (c *cloud) once(ctx context.Context, method, path string, payload []byte, clientToken, requestID string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, bytes.NewReader(payload))
	if err != nil {
		return nil, nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", "terraform-provider-sim")
	req.Header.Set("X-Request-Id", requestID)
	if clientToken != "" {
		req.Header.Set("Client-Token", clientToken)
	}
	if c.region != "" {
		req.Header.Set("X-Sim-Region", c.region)
	}
	if module, _ := ctx.Value(moduleKey{}).(string); module != "" {
		req.Header.Set("X-Sim-Module", module)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	a, err := c.calls.Do(ctx, req)
	if err != nil {
		return nil, nil, fmt.Errorf("call cloud: %w", err)
	}
	return a.Response, a.body, nil
}

func answerError(resp *http.Response, b []byte, requestID string) *apiError {
	var answer struct {
		Error struct{ Code, Message, Field string }
	}
	e := &apiError{status: resp.StatusCode, requestID: requestID}
	if json.Unmarshal(b, &answer) != nil || answer.Error.Code == "" {
		e.code, e.message = http.StatusText(resp.StatusCode), strings.TrimSpace(string(b[:min(len(b), 200)]))
		return e
	}
	e.code, e.message, e.field = answer.Error.Code, answer.Error.Message, answer.Error.Field
	return e
}

func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	return 0
}

// backoff grows from 20 ms to 5 s. Half of it is random, so that callers do not retry at the same time.
func backoff(try int) time.Duration {
	d := min(20*time.Millisecond<<min(try, 10), 5*time.Second)
	return d/2 + mathrand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
