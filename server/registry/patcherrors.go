package registry

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/api/v1alpha1"
)

// WithShortPatchErrors removes the object from the errors about patches. If a patched object cannot be decoded, the
// error of Kubernetes' handler has the whole object, also for users who may patch a Secret and not read it. The new
// error names the field and the expected form only.
func WithShortPatchErrors(next http.Handler, codecs Codecs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "patch" {
			next.ServeHTTP(w, r)
			return
		}
		held := &heldAnswer{ResponseWriter: w}
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(held), r)
		if held.body == nil {
			return
		}
		scheme, factory := legacyscheme.Scheme, legacyscheme.Codecs
		if info.APIGroup == v1alpha1.GroupName {
			scheme, factory = codecs.Scheme, codecs.Factory
		}
		short := shortPatchError(held.status(), scheme, info)
		if short == nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write(held.body.Bytes()) // the client is gone
			return
		}
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length"} {
			w.Header().Del(name)
		}
		gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
		responsewriters.ErrorNegotiated(short, factory, gv, w, r)
	})
}

// shortPatchError returns the error of a Status without the object; nil if the Status has none.
func shortPatchError(status *metav1.Status, scheme *runtime.Scheme, info *genericapirequest.RequestInfo) error {
	if status == nil || status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		body, ok := strings.CutPrefix(cause.Message, field.ErrorTypeInvalid.String()+": ")
		if !ok || cause.Field != "patch" || cause.Type != metav1.CauseTypeFieldValueInvalid {
			continue
		}
		object, err := strconv.QuotedPrefix(body)
		if err != nil {
			continue
		}
		gvk, _ := typeOf(scheme, info)
		detail := strings.TrimPrefix(body[len(object):], ": ")
		return apierrors.NewInvalid(gvk.GroupKind(), info.Name, field.ErrorList{
			field.Invalid(field.NewPath("patch"), field.OmitValueType{}, detail),
		})
	}
	return nil
}

// heldAnswer holds back an answer of 422, which may have the object. It passes on every other answer.
type heldAnswer struct {
	http.ResponseWriter
	body *bytes.Buffer // nil for another answer
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (h *heldAnswer) WriteHeader(code int) {
	if code == http.StatusUnprocessableEntity {
		h.body = &bytes.Buffer{}
		return
	}
	h.ResponseWriter.WriteHeader(code)
}

func (h *heldAnswer) Write(p []byte) (int, error) {
	if h.body != nil {
		return h.body.Write(p)
	}
	return h.ResponseWriter.Write(p)
}

// status returns the Status that the handler wrote; nil if it wrote something else.
func (h *heldAnswer) status() *metav1.Status {
	body := h.body.Bytes()
	if h.Header().Get("Content-Encoding") == "gzip" {
		unzip, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil
		}
		if body, err = io.ReadAll(unzip); err != nil {
			return nil
		}
	}
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	status, _ := obj.(*metav1.Status)
	return status
}
