package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/server/storage"
)

// RotateKeysPath is the URL of the keys' rotation. GET returns Keys. POST rotates what the parameters RotateEncryption
// and RotateCertificates ask for, and returns Keys.
const (
	RotateKeysPath     = "/rotate-keys"
	RotateEncryption   = "encryption"
	RotateCertificates = "certificates"
)

// Keys describes the server's keys, without the keys themselves.
type Keys struct {
	Encryption storage.KeyStatus `json:"encryption"`
	// Certificates are the expiry times of this server's certificates.
	Certificates map[string]time.Time `json:"certificates"`
}

// addKeys serves RotateKeysPath. Only users with a right on this URL can use it. Among the predefined roles, only
// cluster-admin has that right.
func (s *Server) addKeys() {
	s.generic.Handler.NonGoRestfulMux.HandleFunc(RotateKeysPath, func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		switch r.Method {
		case http.MethodGet:
		case http.MethodPost:
			if err := s.rotateKeys(r); err != nil {
				s.refuse(w, r, err)
				return
			}
			status = http.StatusAccepted
		default:
			s.refuse(w, r, apierrors.NewMethodNotSupported(kschema.GroupResource{Resource: "rotate-keys"}, r.Method))
			return
		}
		keys, err := s.keys(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		responsewriters.WriteRawJSON(status, keys, w)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, kschema.GroupVersion{}, w, r)
}

func (s *Server) rotateKeys(r *http.Request) error {
	query := r.URL.Query()
	encryption, certificates := query.Has(RotateEncryption), query.Has(RotateCertificates)
	if !encryption && !certificates {
		return apierrors.NewBadRequest(fmt.Sprintf("name what to rotate: %s?%s, ?%s, or both", RotateKeysPath, RotateEncryption, RotateCertificates))
	}
	if certificates {
		if err := s.replaceCertificates(time.Now(), true); err != nil {
			return err
		}
	}
	if !encryption {
		return nil
	}
	err := s.config.store.RotateKeys(r.Context())
	if errors.Is(err, storage.ErrRotating) {
		return apierrors.NewConflict(kschema.GroupResource{Resource: "rotate-keys"}, RotateEncryption, err)
	}
	return err
}

func (s *Server) keys(r *http.Request) (Keys, error) {
	encryption, err := s.config.store.KeyStatus(r.Context())
	if err != nil {
		return Keys{}, err
	}
	certificates, err := s.config.certs.Expiry(s.Kubeconfig())
	return Keys{encryption, certificates}, err
}
