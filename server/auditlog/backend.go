package auditlog

import (
	"errors"
	"maps"
	"net/http"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	k8saudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
)

// WithoutMessages returns a backend that removes the messages of responses. They may quote a value that a user sent.
func WithoutMessages(b k8saudit.Backend) k8saudit.Backend { return withoutMessages{b} }

type withoutMessages struct{ k8saudit.Backend }

func (b withoutMessages) ProcessEvents(events ...*auditinternal.Event) bool {
	for i, ev := range events {
		s := ev.ResponseStatus
		if s == nil || s.Message == "" && s.Details == nil {
			continue
		}
		short := *ev // the request still uses the event
		short.ResponseStatus = &metav1.Status{Status: s.Status, Reason: s.Reason, Code: s.Code}
		events[i] = &short
	}
	return b.Backend.ProcessEvents(events...)
}

// Record returns a function that records provider calls as events: one of the stage RequestReceived before the call,
// and one of the stage ResponseComplete after it. No API serves their requestURI.
func Record(sink k8saudit.Sink) audit.RecordFunc {
	return func(c audit.Call) (func(error), error) {
		ev := callEvent(c)
		interrupted := !c.Began.IsZero()
		if interrupted {
			ev.RequestReceivedTimestamp = metav1.NewMicroTime(c.Began)
		} else if !sink.ProcessEvents(ev) {
			return nil, errors.New("the audit log cannot be written, so the provider was not called; see the server's log, and make a new plan when the log can be written again")
		}
		return func(err error) {
			end := *ev
			end.Stage, end.StageTimestamp = auditinternal.StageResponseComplete, metav1.NowMicro()
			end.Annotations = maps.Clone(ev.Annotations)
			end.Annotations[audit.Prefix+"outcome"], end.ResponseStatus = outcome(err)
			if !interrupted { // the time until the server noticed says nothing about the call
				end.Annotations["apiserver.latency.k8s.io/total"] = end.StageTimestamp.Sub(
					ev.StageTimestamp.Time).String()
			}
			sink.ProcessEvents(&end) // a failure is counted, logged, and makes the server not ready
		}, nil
	}
}

func callEvent(c audit.Call) *auditinternal.Event {
	gv, _ := schema.ParseGroupVersion(c.Object.APIVersion)
	ev := newEvent(string(c.Operation), "/apis/"+c.Object.APIVersion+"/namespaces/"+c.Object.Namespace+"/"+c.Plural+"/"+
		c.Object.Name+"/provider")
	ev.ObjectRef = &auditinternal.ObjectReference{
		Resource: c.Plural, Namespace: c.Object.Namespace, Name: c.Object.Name, UID: c.Object.UID,
		APIGroup: gv.Group, APIVersion: gv.Version, Subresource: "provider",
	}
	ev.Annotations = c.Cause.Annotations()
	ev.Annotations[audit.Prefix+"provider"], ev.Annotations[audit.Prefix+"type"] = c.Provider, c.Type
	if c.ProviderConfig != "" {
		ev.Annotations[audit.Prefix+"provider-config"] = c.ProviderConfig
	}
	return ev
}

// outcome returns the outcome of a provider call without the provider's text, which may hold secrets.
func outcome(err error) (string, *metav1.Status) {
	switch {
	case err == nil:
		return "Succeeded", &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK}
	case diag.IsFailure(err, diag.Lost):
		return "Unknown", &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout,
			Code: http.StatusGatewayTimeout}
	}
	return "Failed", &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Code: http.StatusInternalServerError}
}

func newEvent(verb, uri string) *auditinternal.Event {
	now := metav1.NowMicro()
	return &auditinternal.Event{
		Level: auditinternal.LevelMetadata, AuditID: types.UID(uuid.NewString()),
		Stage:      auditinternal.StageRequestReceived,
		RequestURI: uri, Verb: verb, UserAgent: "hykube", RequestReceivedTimestamp: now, StageTimestamp: now,
		User: authenticationv1.UserInfo{Username: user.APIServerUser},
	}
}

var encoder = k8saudit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion)

// ownEvent returns an event about the log itself as a line.
func ownEvent(verb string, note map[string]string) ([]byte, error) {
	ev := newEvent(verb, "/audit")
	ev.Stage, ev.Annotations = auditinternal.StageResponseComplete, note
	return runtime.Encode(encoder, ev)
}
