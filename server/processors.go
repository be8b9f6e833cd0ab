package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/server/temporalapi"
)

// sharingProcessors makes the namespaces share the processors: a request holds a slot of its namespace while it
// computes, as the activities of plans do. Requests for all namespaces count for their user, and so do Validations,
// which every user may create in every namespace.
func sharingProcessors(inner http.Handler, processors *fair.Slots) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := processorKey(r)
		if !ok {
			inner.ServeHTTP(w, r)
			return
		}
		ctx, done, err := processors.Take(r.Context(), key)
		if err != nil {
			return // the client is gone, or the request has timed out
		}
		defer done()
		r = r.WithContext(ctx)
		inner.ServeHTTP(responsewriter.WrapForHTTP1Or2(&pausingWriter{w, r}), r)
	})
}

// processorKey returns the key of a request. ok is false for requests that must not wait, that compute little, or that
// last long: those of the server itself, decisions about plans, reads of one object, and watches.
func processorKey(r *http.Request) (key string, ok bool) {
	info, _ := request.RequestInfoFrom(r.Context())
	who, _ := request.UserFrom(r.Context())
	switch {
	case info == nil || who == nil || !info.IsResourceRequest || who.GetName() == user.APIServerUser ||
		info.Verb == "get" || info.Verb == "watch":
		return "", false
	case info.APIGroup == v1alpha1.GroupName && info.Resource == temporalapi.Resource:
		return "", false // Temporal has its own limits
	case info.APIGroup == v1alpha1.GroupName && info.Resource == "plans" &&
		(info.Subresource == "approval" || info.Subresource == "cancel"):
		return "", false
	case info.Namespace == "", info.APIGroup == v1alpha1.GroupName && info.Resource == "validations":
		return "user " + who.GetName(), true // no namespace has a space in its name
	}
	return info.Namespace, true
}

// pausingWriter gives the slot of a request back while the client reads.
type pausingWriter struct {
	http.ResponseWriter
	request *http.Request
}

var _ responsewriter.UserProvidedDecorator = (*pausingWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *pausingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pausingWriter) Write(data []byte) (int, error) {
	defer fair.Pause(w.request.Context())()
	return w.ResponseWriter.Write(data)
}

// pausingTransport gives the slot of a caller back while the server answers its own request.
type pausingTransport struct{ http.RoundTripper }

func (t pausingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	defer fair.Pause(r.Context())()
	return t.RoundTripper.RoundTrip(r)
}
