package server

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// addAdministration serves a path that is not part of an API. POST calls start. Both POST and GET return the result of
// state as JSON. Only users with a right on this URL can use it. Among the predefined roles, only cluster-admin has
// that right.
func (s *Server) addAdministration(path string, start func(*http.Request) error,
	state func(*http.Request) (any, error)) {
	s.generic.Handler.NonGoRestfulMux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		refuse := func(err error) {
			responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, kschema.GroupVersion{}, w, r)
		}
		status := http.StatusOK
		switch r.Method {
		case http.MethodGet:
		case http.MethodPost:
			if err := start(r); err != nil {
				refuse(err)
				return
			}
			status = http.StatusAccepted
		default:
			refuse(apierrors.NewMethodNotSupported(kschema.GroupResource{Resource: strings.TrimPrefix(path, "/")},
				r.Method))
			return
		}
		result, err := state(r)
		if err != nil {
			refuse(err)
			return
		}
		responsewriters.WriteRawJSON(status, result, w)
	})
}
