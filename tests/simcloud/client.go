package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Object is an object as the API returns it: its fields, id, revision, created_at and updated_at.
type Object map[string]any

// ID returns the object's ID.
func (o Object) ID() string { return text(o["id"]) }

// Name returns the object's name.
func (o Object) Name() string { return text(o["name"]) }

// Client is a client of a cloud for tests, demos and the command line. It does not retry. An error in the cloud's
// answer is an *Error.
type Client struct {
	address, token string
	http           *http.Client
}

// NewClient returns a client. address is "http://HOST:PORT" or "HOST:PORT".
func NewClient(address, token string) *Client {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	// Each client has its own transport, so that a test that closes its connections does not disturb others.
	t := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 10 * time.Second}
	return &Client{address: strings.TrimSuffix(address, "/"), token: token, http: &http.Client{Transport: t}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do calls the API with a method and a path, a body that may be nil, and headers in pairs.
func (c *Client) Do(ctx context.Context, method, path string, body, into any, header ...string) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode body: %w", err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.address+path, r)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call simulated cloud: %w", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("read answer of simulated cloud: %w", err)
	}
	if resp.StatusCode >= 400 {
		var answer struct{ Error *Error }
		if json.Unmarshal(b, &answer) != nil || answer.Error == nil {
			answer.Error = &Error{Code: "Unreadable", Message: string(b)}
		}
		answer.Error.Status = resp.StatusCode
		if ms, err := strconv.ParseInt(resp.Header.Get(HeaderRetryAfterMs), 10, 64); err == nil {
			answer.Error.RetryAfter = time.Duration(ms) * time.Millisecond
		}
		return answer.Error
	}
	if into == nil || len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("decode answer of simulated cloud: %w", err)
	}
	return nil
}

// Create creates an object through the API, as a provider does.
func (c *Client) Create(ctx context.Context, kind string, fields map[string]any) (o Object, err error) {
	err = c.Do(ctx, http.MethodPost, "/v1/"+collection(kind), fields, &o)
	return o, err
}

// Read reads an object through the API.
func (c *Client) Read(ctx context.Context, kind, id string) (o Object, err error) {
	err = c.Do(ctx, http.MethodGet, "/v1/"+collection(kind)+"/"+url.PathEscape(id), nil, &o)
	return o, err
}

// Update changes the given fields through the API.
func (c *Client) Update(ctx context.Context, kind, id string, fields map[string]any) (o Object, err error) {
	err = c.Do(ctx, http.MethodPut, "/v1/"+collection(kind)+"/"+url.PathEscape(id), fields, &o)
	return o, err
}

// Delete deletes an object through the API.
func (c *Client) Delete(ctx context.Context, kind, id string) error {
	return c.Do(ctx, http.MethodDelete, "/v1/"+collection(kind)+"/"+url.PathEscape(id), nil, nil)
}

// Objects returns all objects of a kind, without delays of eventual consistency and in order of creation. A name
// selects those with that name.
func (c *Client) Objects(ctx context.Context, kind, name string) ([]Object, error) {
	var all []Object
	for after := ""; ; {
		var page struct {
			Items []Object
			Next  string
		}
		q := url.Values{"name": {name}, "after": {after}}
		if err := c.Do(ctx, http.MethodGet, "/_sim/objects/"+url.PathEscape(kind)+"?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Find returns an object, without delays of eventual consistency, by its ID or by a unique name.
func (c *Client) Find(ctx context.Context, kind, idOrName string) (o Object, err error) {
	err = c.Do(ctx, http.MethodGet, "/_sim/objects/"+url.PathEscape(kind)+"/"+url.PathEscape(idOrName), nil, &o)
	return o, err
}

// Drift changes an object, named by its ID or name, outside of any provider. A nil value removes a field.
func (c *Client) Drift(ctx context.Context, kind, idOrName string, fields map[string]any) (o Object, err error) {
	err = c.Do(ctx, http.MethodPatch, "/_sim/objects/"+url.PathEscape(kind)+"/"+url.PathEscape(idOrName), fields, &o)
	return o, err
}

// Destroy deletes an object outside of any provider, even if others refer to it.
func (c *Client) Destroy(ctx context.Context, kind, idOrName string) error {
	return c.Do(ctx, http.MethodDelete, "/_sim/objects/"+url.PathEscape(kind)+"/"+url.PathEscape(idOrName)+"?force=true", nil, nil)
}

// Settings returns the current settings of the cloud.
func (c *Client) Settings(ctx context.Context) (s Settings, err error) {
	err = c.Do(ctx, http.MethodGet, "/_sim/settings", nil, &s)
	return s, err
}

// Change reads the settings, calls edit and writes them back. It is not atomic.
func (c *Client) Change(ctx context.Context, edit func(*Settings)) error {
	s, err := c.Settings(ctx)
	if err != nil {
		return err
	}
	edit(&s)
	return c.Do(ctx, http.MethodPut, "/_sim/settings", s, nil)
}

// Fault adds a fault and returns it with its ID.
func (c *Client) Fault(ctx context.Context, f Fault) (out Fault, err error) {
	err = c.Do(ctx, http.MethodPost, "/_sim/faults", f, &out)
	return out, err
}

// Faults returns the faults that were not removed, including those that are used up.
func (c *Client) Faults(ctx context.Context) ([]Fault, error) {
	var list struct{ Items []Fault }
	err := c.Do(ctx, http.MethodGet, "/_sim/faults", nil, &list)
	return list.Items, err
}

// RemoveFault removes a fault, or all if id is 0. It ends the calls that hang because of the fault.
func (c *Client) RemoveFault(ctx context.Context, id int64) error {
	path := "/_sim/faults"
	if id != 0 {
		path += "/" + strconv.FormatInt(id, 10)
	}
	return c.Do(ctx, http.MethodDelete, path, nil, nil)
}

// Calls returns the selected calls, oldest first.
func (c *Client) Calls(ctx context.Context, f Filter) ([]Call, error) {
	var list callList
	err := c.Do(ctx, http.MethodGet, "/_sim/calls?"+f.query().Encode(), nil, &list)
	return list.Items, err
}

// CountCalls returns the number of selected calls.
func (c *Client) CountCalls(ctx context.Context, f Filter) (int, error) {
	q := f.query()
	q.Set("limit", "1")
	var list callList
	err := c.Do(ctx, http.MethodGet, "/_sim/calls?"+q.Encode(), nil, &list)
	return list.Total, err
}

// WaitCalls waits until a filter selects at least n calls, or the context ends. It returns their number.
func (c *Client) WaitCalls(ctx context.Context, f Filter, n int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		have, err := c.CountCalls(ctx, f)
		if err == nil && have >= n {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d calls like %+v, saw %d: %w", n, f, have, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// ForgetCalls empties the log and resets the counts.
func (c *Client) ForgetCalls(ctx context.Context) error {
	return c.Do(ctx, http.MethodDelete, "/_sim/calls", nil, nil)
}

// Stats returns the counts of all calls and objects.
func (c *Client) Stats(ctx context.Context) (s Stats, err error) {
	err = c.Do(ctx, http.MethodGet, "/_sim/stats", nil, &s)
	return s, err
}

// Reset reverts the cloud to its first start.
func (c *Client) Reset(ctx context.Context) error {
	return c.Do(ctx, http.MethodPost, "/_sim/reset", nil, nil)
}

func (f Filter) query() url.Values {
	q := url.Values{}
	for name, v := range map[string]string{
		"kind": f.Kind, "op": f.Op, "method": f.Method, "name": f.Name, "object": f.Object, "requestID": f.RequestID,
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if f.Status != 0 {
		q.Set("status", strconv.Itoa(f.Status))
	}
	if f.Since != 0 {
		q.Set("since", strconv.FormatInt(f.Since, 10))
	}
	if f.Effect {
		q.Set("effect", "true")
	}
	if f.Pending {
		q.Set("pending", "true")
	}
	return q
}

// collection returns the path segment of a kind. The cloud rejects an unknown kind.
func collection(kind string) string {
	if k := kindNamed(kind); k != nil {
		return k.collection
	}
	return url.PathEscape(kind)
}
