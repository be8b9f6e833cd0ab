package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/rights"
)

// WithUnreadableAnswers reduces the answers to writes of users who may not get the written object. Kubernetes' handlers
// answer with the whole object, so that a patch that changes nothing, or a dry run, would read a Secret. Such a user
// gets what identifies the object and its version, and a warning. The answer to the create of an object is whole,
// because its user wrote all of it.
func WithUnreadableAnswers(next http.Handler, a authorizer.Authorizer) http.Handler {
	access := rights.Access{Authorizer: a}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		who, known := genericapirequest.UserFrom(r.Context())
		if !ok || !known || !answersStored(info) {
			next.ServeHTTP(w, r)
			return
		}
		missing, err := access.Asker(who).Missing(r.Context(), readsOf(info))
		if err != nil {
			err = apierrors.NewInternalError(fmt.Errorf("authorize the answer to a %s of %s: %w", info.Verb,
				info.Resource, err))
			responsewriters.ErrorNegotiated(err, legacyscheme.Codecs,
				schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
			return
		}
		if len(missing) < len(readsOf(info)) {
			next.ServeHTTP(w, r)
			return
		}
		if err := refuseReading(r, info); err != nil {
			gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
			responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, gv, w, r)
			return
		}
		held := &wholeAnswer{ResponseWriter: w, code: http.StatusOK}
		inner := r.Clone(r.Context())
		inner.Header.Set("Accept", runtime.ContentTypeJSON)
		inner.Header.Del("Accept-Encoding")
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(held), inner)
		body, reduced := identityOf(held.body.Bytes())
		if reduced {
			warning.AddWarning(r.Context(), "",
				fmt.Sprintf("the answer has no more than the metadata that identifies the object, because you have no right to %s", missing[0]))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(held.code)
		_, _ = w.Write(body) // the client is gone
	})
}

// maxPatch is the maximum size of a JSON patch whose user may not get the object.
const maxPatch = 1 << 20

// refuseReading returns an error for a JSON patch with an operation that reads the object. "copy" and "move" could put
// a value where an error or a warning quotes it, and "test" confirms a guess.
// https://www.rfc-editor.org/rfc/rfc6902#section-4
func refuseReading(r *http.Request, info *genericapirequest.RequestInfo) error {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if info.Verb != "patch" || types.PatchType(contentType) != types.JSONPatchType {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPatch+1))
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("read the patch: %s", err))
	}
	if len(body) > maxPatch {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the limit for a JSON patch is %d bytes without the right to get the object", maxPatch))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var operations []map[string]any
	if json.Unmarshal(body, &operations) != nil {
		return apierrors.NewBadRequest("the JSON patch is no list of operations")
	}
	for _, o := range operations {
		switch o["op"] {
		case "add", "remove", "replace":
		default:
			resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
			return apierrors.NewForbidden(resource, info.Name,
				fmt.Errorf("only the operations add, remove and replace of a JSON patch need no right to get the object: use these, or ask for that right"))
		}
	}
	return nil
}

// answersStored reports whether a successful request is a write whose answer has a stored object.
func answersStored(info *genericapirequest.RequestInfo) bool {
	// requests for Temporal have paths of their own
	if !info.IsResourceRequest || !strings.HasPrefix(info.Path, "/api") {
		return false
	}
	switch info.Verb {
	case "update", "patch", "delete", "deletecollection":
		return true
	case "create": // the results of an upload have nothing that is stored
		return info.Subresource != "" && !(info.Resource == "plans" && info.Subresource == "objects")
	}
	return false
}

// readsOf returns the rights of which each suffices to read the answer: to get the object, or the subresource. Of a
// collection, it is the right to list.
func readsOf(info *genericapirequest.RequestInfo) []store.Right {
	object := store.Right{Verb: store.VerbGet, Namespace: info.Namespace, Group: info.APIGroup, Resource: info.Resource,
		Name: info.Name}
	if info.Verb == "deletecollection" {
		object.Verb = "list"
	}
	out := []store.Right{object}
	if info.Subresource != "" {
		object.Resource += "/" + info.Subresource
		out = append(out, object)
	}
	return out
}

// identifying are the fields of metadata that identify an object and its version. Annotations and managed fields may
// have parts of its content.
var identifying = []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"}

// identityOf reduces an object, or each item of a list, to what identifies it. It returns the answer unchanged, and
// false, if it is a Status.
func identityOf(answer []byte) (body []byte, reduced bool) {
	var obj map[string]any
	if json.Unmarshal(answer, &obj) != nil {
		obj = map[string]any{}
	}
	if obj["kind"] == "Status" && obj["apiVersion"] == "v1" {
		return answer, false
	}
	out := identity(obj)
	if items, ok := obj["items"].([]any); ok {
		for i := range items {
			item, _ := items[i].(map[string]any)
			items[i] = identity(item)
		}
		out["items"], out["metadata"] = items, map[string]any{}
	}
	raw, err := json.Marshal(out)
	if err != nil { // cannot happen, since it was decoded from JSON
		return nil, true
	}
	return append(raw, '\n'), true
}

func identity(obj map[string]any) map[string]any {
	all, _ := obj["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range identifying {
		if v, ok := all[name]; ok {
			kept[name] = v
		}
	}
	out := map[string]any{"metadata": kept}
	for _, name := range []string{"apiVersion", "kind"} {
		if v, ok := obj[name]; ok {
			out[name] = v
		}
	}
	return out
}

// wholeAnswer holds back an answer.
type wholeAnswer struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (h *wholeAnswer) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (h *wholeAnswer) WriteHeader(code int) { h.code = code }

func (h *wholeAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }
