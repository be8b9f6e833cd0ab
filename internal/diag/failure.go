package diag

import (
	"errors"
	"regexp"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// FailureKind says how a call failed. Callers decide by the kind, never by the text.
type FailureKind int

const (
	// Refused is a call that was answered with errors, or that a check stopped before it was made. The same call fails again.
	Refused FailureKind = iota
	// Throttled is a call that the provider's API turned away before doing anything. The same call may succeed later.
	Throttled
	// Unreachable is a call during which the provider's process, or the connection to it, ended. A call that changes nothing may be
	// made again, with a new process.
	Unreachable
	// Lost is a call that may have changed infrastructure, and whose answer never came.
	Lost
)

// Failure is how a call to a provider failed. It is made where the provider is called.
type Failure struct {
	Kind FailureKind
	// Operation is the call, such as "read"; it may be empty.
	Operation string
	// Diagnostics hold at least one error, unless Cause is set.
	Diagnostics Diagnostics
	// Cause is the error of a call that was not answered.
	Cause error
}

func (f *Failure) Error() string {
	text := "refused without a reason"
	if i := slices.IndexFunc(f.Diagnostics, isError); i >= 0 {
		text = f.Diagnostics[i].Summary
		if detail := f.Diagnostics[i].Detail; detail != "" {
			text += ": " + detail
		}
	} else if f.Cause != nil {
		text = f.Cause.Error()
	}
	if f.Operation == "" {
		return text
	}
	return f.Operation + ": " + text
}

func (f *Failure) Unwrap() error { return f.Cause }

// IsFailure says whether an error is a failure of one of the kinds.
func IsFailure(err error, kinds ...FailureKind) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && slices.Contains(kinds, f.Kind)
}

// Answer is what a provider answered to an operation: its diagnostics, and a *Failure if one of them is an error.
func Answer(operation string, ds []*tfprotov6.Diagnostic) (Diagnostics, error) {
	diags := FromProto(ds)
	if !HasErrors(diags) {
		return diags, nil
	}
	f := &Failure{Operation: operation, Diagnostics: diags}
	if throttled(diags) {
		f.Kind = Throttled
	}
	return diags, f
}

// throttled says whether all errors of an answer say that the provider's API turned the call away before doing anything. The
// protocol has no field for it, so this is the one place that reads a provider's words. It must not take a refusal for a throttled
// call: a create that was throttled is made again. Plain timeouts and server errors do not count, since the API may have acted.
func throttled(diags Diagnostics) bool {
	for _, d := range diags {
		if isError(d) && !throttling.MatchString(d.Summary+"\n"+d.Detail) {
			return false
		}
	}
	return true
}

// throttling has the words of the large APIs and of the libraries that providers call them with:
//
//	api error ThrottlingException: Rate exceeded (AWS)
//	StatusCode=429 -- Original Error: Code="TooManyRequests" (Azure)
//	googleapi: Error 429: Quota exceeded for quota metric (Google)
//	Expected HTTP response code [201], but got 429 instead (OpenStack)
//	429 API Rate limit exceeded (DigitalOcean), rate_limit_exceeded (Hetzner)
//
// A number counts only as a status, and a word only as a whole: "net-74291" and "throttling_rate_limit" are names of something.
var throttling = regexp.MustCompile(`(?i)` +
	`\b(?:status(?:[ _]?code)?|http(?:/[0-9.]+)?|error|got)["']?[\s:=]*\(?429\b` +
	`|\b429 too many requests\b|\btoo ?many ?requests(?:exception)?\b` +
	`|\bthrottl(?:ing|ed)(?:exception|error)\b|\b(?:was|were|been|being) throttled\b` +
	`|\b(?:request )?rate exceeded\b|\b(?:rate|request)[ _]?limit[ _]?exceeded(?:exception)?\b` +
	`|\bslowdown\b|\bplease slow down\b`)

func isError(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError }
