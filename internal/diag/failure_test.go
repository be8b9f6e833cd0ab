package diag

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestAnswer expects the texts of well-known APIs about throttling to count as throttling, and no other text, because a
// throttled create is repeated.
func TestAnswer(t *testing.T) {
	said := func(texts ...string) []*tfprotov6.Diagnostic {
		var ds []*tfprotov6.Diagnostic
		for _, text := range texts {
			ds = append(ds, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "Creation failed", Detail: text})
		}
		return ds
	}
	for _, text := range []string{
		"operation error EC2: RunInstances, https response error StatusCode: 429, RequestID: 1f",
		"operation error SSM: PutParameter, api error ThrottlingException: Rate exceeded",
		"api error Throttling: Rate exceeded",
		"api error RequestLimitExceeded: Request limit exceeded.",
		"api error SlowDown: Please reduce your request rate.",
		`StatusCode=429 -- Original Error: autorest/azure: Service returned an error. Status=429 Code="TooManyRequests"`,
		"unexpected status 429 (429 Too Many Requests) with error: the request was throttled",
		"googleapi: Error 429: Quota exceeded for quota metric 'Read requests', rateLimitExceeded",
		"googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded",
		"Expected HTTP response code [201] when accessing [POST https://nova/servers], but got 429 instead",
		"POST https://api.example.com/v2/droplets: 429 API Rate limit exceeded.",
		"limit reached (rate_limit_exceeded)",
		"the server has received too many requests and has asked us to try again later",
		"HTTP/1.1 429",
	} {
		if _, err := Answer("create", said(text)); !IsFailure(err, Throttled) {
			t.Errorf("%q is not taken for throttling", text)
		}
	}
	for _, text := range []string{
		"timeout",
		"timed out after 20m waiting for the instance to become ready",
		`Unsupported block type: Blocks of type "timeouts" are not expected here.`,
		"Gateway Timeout",
		"dial tcp: connection refused",
		"unexpected EOF",
		"503 Service Unavailable",
		"500 Internal Server Error",
		"network net-74291 already exists",
		"VLAN 429 is in use",
		"port 429 is reserved",
		"cidr is not valid",
		"throttling_burst_limit must be at least 1",
		"the attribute throttled must be a boolean",
		`Invalid block "throttle_settings": rate_limit must be positive`,
		"a rule with the name rate-limit exists already",
		"max_rate exceeded: the plan allows 10",
		"VpcLimitExceeded: the maximum number of VPCs has been reached",
		"too many requests_per_second: at most 100",
		"slow_down_seconds is not a number",
	} {
		if _, err := Answer("create", said(text)); !IsFailure(err, Refused) {
			t.Errorf("%q is taken for something else than a refusal", text)
		}
	}
	if _, err := Answer("create", said("429 Too Many Requests", "the volume was created and could not be attached")); !IsFailure(err, Refused) {
		t.Error("an answer with another error is taken for throttling")
	}
	warning := said("429 Too Many Requests")
	warning[0].Severity = tfprotov6.DiagnosticSeverityWarning
	if _, err := Answer("create", append(warning, said("no")...)); !IsFailure(err, Refused) {
		t.Error("a warning is taken for throttling")
	}
	if diags, err := Answer("create", warning); err != nil || len(diags) != 1 {
		t.Errorf("a warning alone: %v, %v", diags, err)
	}
}

// TestNothingDone expects the texts to match by which an API says that it did nothing. After any other failed create,
// the user gets a warning.
func TestNothingDone(t *testing.T) {
	for text, want := range map[string]bool{
		"429 Too Many Requests": true,
		"operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 1f, api error InvalidParameterValue": true,
		"UnauthorizedOperation (StatusCode: 403)":                                         true,
		"googleapi: Error 403: Required 'compute.instances.create' permission, forbidden": true,
		"unexpected status 400 (400 Bad Request) with error: InvalidParameter":            true,
		"POST https://api.github.com/repos: 422 Unprocessable Entity":                     true,
		"QuotaExceeded: no more networks (HTTP 403, request 7)":                           true,
		"EOF":                           false,
		"unexpected EOF: HTTP/1.1 POST": false,
		"context deadline exceeded":     false,
		"503 Service Unavailable":       false,
		"unexpected status 500":         false,
		"unexpected status 409 (409 Conflict): the network exists already": false,
		"Error 404: the network was not found":                             false,
		"unexpected status 408":                                            false,
		"port 400 is reserved":                                             false,
		"cidr is not valid":                                                false,
	} {
		ds := []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "Creation failed", Detail: text}}
		if _, err := Answer("apply", ds); NothingDone(err) != want {
			t.Errorf("%q: %t, want %t", text, !want, want)
		}
		ds = append(ds, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "EOF"})
		if _, err := Answer("apply", ds); NothingDone(err) {
			t.Errorf("%q and another error are taken for a rejected call", text)
		}
	}
	if NothingDone(errors.New("HTTP 400")) || NothingDone(&Failure{Kind: Lost, Cause: errors.New("HTTP 400")}) {
		t.Error("an error without an answer is taken for a rejected call")
	}
}

func TestIsFailure(t *testing.T) {
	lost := &Failure{Kind: Lost, Operation: "apply sim_disk", Cause: &Failure{Kind: Unreachable, Cause: errors.New("killed")}}
	wrapped := fmt.Errorf("step: %w", lost)
	if !IsFailure(wrapped, Unreachable, Lost) || IsFailure(wrapped, Unreachable) {
		t.Error("the outer failure does not decide")
	}
	if IsFailure(errors.New("429 Too Many Requests"), Refused, Throttled) || IsFailure(nil, Refused) {
		t.Error("an error that is no failure has a kind")
	}
	if got, want := wrapped.Error(), "step: apply sim_disk: killed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
