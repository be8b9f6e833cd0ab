package diag

import (
	"errors"
	"regexp"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// FailureKind is the way in which a provider call failed. Callers decide by the kind, never by the text.
type FailureKind int

const (
	// Refused means that the provider answered with errors, or that a check prevented the call. The same call would
	// fail again.
	Refused FailureKind = iota
	// Throttled means that the provider's API rejected the call before doing anything. The same call may succeed later.
	Throttled
	// Unreachable means that the provider's process or the connection to it ended during the call. A call without side
	// effects may be repeated with a new process.
	Unreachable
	// Lost means that the answer of a call that may have changed infrastructure never arrived.
	Lost
	// Unevaluated means that an expression failed, or a condition was false. The details may quote values of other
	// objects.
	Unevaluated
)

// Failure is the error of a provider call. The package that calls the provider creates it.
type Failure struct {
	Kind FailureKind
	// Operation is the name of the call, such as "read"; it may be empty.
	Operation string
	// Diagnostics contains at least one error, unless Cause is set.
	Diagnostics Diagnostics
	// Cause is the error of a call that got no answer.
	Cause error
	// rejected is true if each error names an HTTP status with which an API says that it did nothing.
	rejected bool
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

// IsFailure reports whether err is a Failure of one of the kinds.
func IsFailure(err error, kinds ...FailureKind) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && slices.Contains(kinds, f.Kind)
}

// NothingDone reports whether a call failed because the provider's API rejected it before doing anything, as far as the
// answer tells. A retry requires the kind Throttled: use NothingDone only for texts for users, and to decide whether a
// person must look first.
func NothingDone(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && (f.Kind == Throttled || f.rejected)
}

// Answer converts the diagnostics in a provider's answer, up to the limits of Limit. It returns a *Failure if one of
// them is an error.
func Answer(operation string, ds []*tfprotov6.Diagnostic) (Diagnostics, error) {
	all := FromProto(ds)
	diags := Limit(all)
	if !HasErrors(diags) {
		return diags, nil
	}
	f := &Failure{Operation: operation, Diagnostics: diags, rejected: eachError(all, rejection)}
	if eachError(all, throttling) { // also those that diags leaves out
		f.Kind = Throttled
	}
	return diags, f
}

// IsThrottling reports whether a failure with these diagnostics would have the kind Throttled.
func IsThrottling(ds []*tfprotov6.Diagnostic) bool {
	if !slices.ContainsFunc(ds, func(d *tfprotov6.Diagnostic) bool {
		return d != nil && d.Severity == tfprotov6.DiagnosticSeverityError
	}) {
		return false
	}
	return eachError(FromProto(ds), throttling)
}

// eachError reports whether the text of every error in an answer matches. The protocol has no field for the reason of
// an error, so this is the only place that matches a provider's text.
func eachError(diags Diagnostics, text *regexp.Regexp) bool {
	for _, d := range diags {
		if isError(d) && !text.MatchString(d.Summary+"\n"+d.Detail) {
			return false
		}
	}
	return true
}

// rejection matches the statuses with which an API rejects a request before doing anything. It excludes conflicts and
// missing objects: the first attempt of a client library may have created the object that causes the conflict, or that
// a later call does not find yet.
var rejection = regexp.MustCompile(`(?i)` +
	`\b(?:status(?:[ _]?code)?|http(?:/[0-9.]+)?|error|got)["']?[\s:=]*\(?(?:400|401|403|413|415|422)\b` +
	`|\b(?:400 bad request|401 unauthorized|403 forbidden|422 unprocessable (?:entity|content))\b`)

// throttling matches the texts of calls that an API rejected before doing anything, and that may succeed later. It must
// not match a refused call, because a throttled create is repeated. Plain timeouts and server errors do not match,
// since the API may have acted. It matches the messages of the large APIs and of the client libraries that providers
// use:
//
//	api error ThrottlingException: Rate exceeded (AWS)
//	StatusCode=429 -- Original Error: Code="TooManyRequests" (Azure)
//	googleapi: Error 429: Quota exceeded for quota metric (Google)
//	Expected HTTP response code [201], but got 429 instead (OpenStack)
//	429 API Rate limit exceeded (DigitalOcean), rate_limit_exceeded (Hetzner)
//
// A number matches only as a status, and a word only as a whole: "net-74291" and "throttling_rate_limit" may be names.
var throttling = regexp.MustCompile(`(?i)` +
	`\b(?:status(?:[ _]?code)?|http(?:/[0-9.]+)?|error|got)["']?[\s:=]*\(?429\b` +
	`|\b429 too many requests\b|\btoo ?many ?requests(?:exception)?\b` +
	`|\bthrottl(?:ing|ed)(?:exception|error)\b|\b(?:was|were|been|being) throttled\b` +
	`|\b(?:request )?rate exceeded\b|\b(?:rate|request)[ _]?limit[ _]?exceeded(?:exception)?\b` +
	`|\bslowdown\b|\bplease slow down\b`)

func isError(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError }
