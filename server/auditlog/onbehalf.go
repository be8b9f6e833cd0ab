package auditlog

import (
	"encoding/json"
	"net/http"

	k8saudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/hykube/hykube/internal/audit"
)

// causeHeader is the header with the cause of a request of the server to itself: the plan or the user on whose behalf
// the server acts.
const causeHeader = "Hykube-On-Behalf-Of"

// SendCause returns a transport that sends the cause of a request's context.
func SendCause(inner http.RoundTripper) http.RoundTripper { return sendCause{inner} }

type sendCause struct{ http.RoundTripper }

func (t sendCause) RoundTrip(r *http.Request) (*http.Response, error) {
	if notes := audit.From(r.Context()).Annotations(); len(notes) > 0 {
		data, err := json.Marshal(notes)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Header.Set(causeHeader, string(data))
	}
	return t.RoundTripper.RoundTrip(r)
}

// ReceiveCause returns an authenticator that adds the cause to the audit event of a request of the server itself. The
// first record of a request is written right after its authentication, and needs the cause.
func ReceiveCause(inner authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		who, ok, err := inner.AuthenticateRequest(r)
		if header := r.Header.Get(causeHeader); ok && err == nil && header != "" &&
			who.User.GetName() == user.APIServerUser {
			var notes map[string]string
			if json.Unmarshal([]byte(header), &notes) == nil {
				k8saudit.AddAuditAnnotationsMap(r.Context(), notes)
			}
		}
		return who, ok, err
	})
}
