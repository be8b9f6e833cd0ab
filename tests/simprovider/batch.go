package simprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hykube/hykube/sdk/batch"
)

// Limits sets the maximum number of calls that the provider accepts at once.
func Limits(maxCalls int) (limits []batch.Limit) {
	for _, name := range []string{"sim_network", "sim_subnet", "sim_instance", "sim_server", "sim_disk", "sim_dns_record", "sim_bucket"} {
		for _, method := range []batch.Method{batch.Validate, batch.Read, batch.Plan, batch.Apply} {
			limits = append(limits, batch.Limit{Method: method, Type: name, MaxCalls: maxCalls, Deterministic: method == batch.Plan})
		}
	}
	return limits
}

// sendAll sends requests, as one call to the cloud if there are several.
func (c *cloud) sendAll(ctx context.Context, requests []*http.Request) []batch.Result[answer] {
	out := make([]batch.Result[answer], len(requests))
	if len(requests) == 1 {
		out[0].Value, out[0].Err = c.send(requests[0])
		return out
	}
	answers, err := c.sendBatch(ctx, requests)
	for i := range out {
		switch {
		case err != nil:
			out[i].Err = err
		case answers[i].StatusCode == 0:
			out[i].Err = errors.New("the cloud closed the connection")
		default:
			out[i].Value = answers[i]
		}
	}
	return out
}

// send sends a request and reads the answer.
func (c *cloud) send(req *http.Request) (answer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return answer{}, fmt.Errorf("read answer of cloud: %w", err)
	}
	return answer{resp, b}, nil
}

// sendBatch sends requests as one call. If the cloud rejects that call, each request gets the error.
func (c *cloud) sendBatch(ctx context.Context, requests []*http.Request) ([]answer, error) {
	type message struct {
		Method string            `json:"method,omitempty"`
		Path   string            `json:"path,omitempty"`
		Status int               `json:"status,omitempty"`
		Header map[string]string `json:"header,omitempty"`
		Body   json.RawMessage   `json:"body,omitempty"`
	}
	var calls struct {
		Calls []message `json:"calls"`
	}
	for _, r := range requests {
		m := message{Method: r.Method, Path: r.URL.RequestURI(), Header: map[string]string{}}
		for name := range r.Header {
			if name != "Authorization" {
				m.Header[name] = r.Header.Get(name)
			}
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(b) > 0 {
			m.Body = b
		}
		calls.Calls = append(calls.Calls, m)
	}
	text, err := json.Marshal(calls)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/v1/batch", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header = requests[0].Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	whole, err := c.send(req)
	if err != nil {
		return nil, err
	}
	out := make([]answer, len(requests))
	if whole.StatusCode != http.StatusOK {
		for i := range out {
			out[i] = whole
		}
		return out, nil
	}
	var answers struct {
		Answers []message `json:"answers"`
	}
	if err := json.Unmarshal(whole.body, &answers); err != nil || len(answers.Answers) != len(requests) {
		return nil, fmt.Errorf("decode the cloud's answer to a batch of %d: %d answers, %w", len(requests), len(answers.Answers), err)
	}
	for i, m := range answers.Answers {
		out[i] = answer{&http.Response{StatusCode: m.Status, Header: http.Header{}}, m.Body}
		for name, value := range m.Header {
			out[i].Header.Set(name, value)
		}
	}
	return out, nil
}
