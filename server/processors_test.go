package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fair"
)

func TestProcessorKey(t *testing.T) {
	for reason, test := range map[string]struct {
		user string
		info request.RequestInfo
		want string
	}{
		"list of a namespace":   {"jane", request.RequestInfo{Verb: "list", Namespace: "team", Resource: "secrets"}, "team"},
		"write":                 {"jane", request.RequestInfo{Verb: "patch", Namespace: "team", Resource: "sim-networks"}, "team"},
		"create of a plan":      {"jane", request.RequestInfo{Verb: "create", Namespace: "team", APIGroup: v1alpha1.GroupName, Resource: "plans"}, "team"},
		"list of all":           {"jane", request.RequestInfo{Verb: "list", Resource: "secrets"}, "user jane"},
		"validation":            {"jane", request.RequestInfo{Verb: "create", Namespace: "team", APIGroup: v1alpha1.GroupName, Resource: "validations"}, "user jane"},
		"the server itself":     {user.APIServerUser, request.RequestInfo{Verb: "list", Namespace: "team"}, ""},
		"read of one object":    {"jane", request.RequestInfo{Verb: "get", Namespace: "team"}, ""},
		"watch":                 {"jane", request.RequestInfo{Verb: "watch", Namespace: "team"}, ""},
		"approval":              {"jane", request.RequestInfo{Verb: "update", Namespace: "team", APIGroup: v1alpha1.GroupName, Resource: "plans", Subresource: "approval"}, ""},
		"cancel":                {"jane", request.RequestInfo{Verb: "update", Namespace: "team", APIGroup: v1alpha1.GroupName, Resource: "plans", Subresource: "cancel"}, ""},
		"approval of another's": {"jane", request.RequestInfo{Verb: "update", Namespace: "team", Resource: "plans", Subresource: "approval"}, "team"},
	} {
		info := test.info
		info.IsResourceRequest = true
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r = r.WithContext(request.WithUser(request.WithRequestInfo(t.Context(), &info), &user.DefaultInfo{Name: test.user}))
		if key, ok := processorKey(r); key != test.want || ok != (test.want != "") {
			t.Errorf("%s: key %q %t, want %q", reason, key, ok, test.want)
		}
	}
	if _, ok := processorKey(httptest.NewRequest(http.MethodGet, "/metrics", nil)); ok {
		t.Error("a request for no resource needs a slot")
	}
}

// TestListsOfOneNamespaceLeaveAProcessor lists two namespaces. While a client reads, another list of its namespace is
// computed.
func TestListsOfOneNamespaceLeaveAProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		compute, began := make(chan struct{}), make(chan string, 10)
		handler := sharingProcessors(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info, _ := request.RequestInfoFrom(r.Context())
			began <- info.Namespace
			<-compute
			_, _ = w.Write([]byte("x"))
		}), fair.NewProcessors(2))
		read := make(chan struct{})
		for _, namespace := range []string{"hostile", "hostile", "quiet"} {
			go func() {
				info := &request.RequestInfo{IsResourceRequest: true, Verb: "list", Namespace: namespace}
				ctx := request.WithUser(request.WithRequestInfo(context.Background(), info), &user.DefaultInfo{Name: "jane"})
				r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
				handler.ServeHTTP(&slowWriter{httptest.NewRecorder(), read}, r)
			}()
			synctest.Wait()
		}
		if first, second := <-began, <-began; len(began) > 0 || first != "hostile" || second != "quiet" {
			t.Fatalf("lists of %q and %q are computed, and %d more", first, second, len(began))
		}
		compute <- struct{}{}
		compute <- struct{}{} // both write now, and the clients do not read
		synctest.Wait()
		if len(began) != 1 {
			t.Error("a client that reads slowly keeps the processor")
		}
		close(read)
		compute <- struct{}{}
		synctest.Wait()
	})
}

// slowWriter writes when the client reads.
type slowWriter struct {
	http.ResponseWriter
	read chan struct{}
}

func (w *slowWriter) Write(data []byte) (int, error) {
	<-w.read
	return w.ResponseWriter.Write(data)
}
