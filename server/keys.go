package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

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

// addKeys serves RotateKeysPath.
func (s *Server) addKeys() {
	s.addAdministration(RotateKeysPath, s.rotateKeys, func(r *http.Request) (any, error) { return s.keys(r) })
}

func (s *Server) rotateKeys(r *http.Request) error {
	query := r.URL.Query()
	encryption, certificates := query.Has(RotateEncryption), query.Has(RotateCertificates)
	if !encryption && !certificates {
		return apierrors.NewBadRequest(fmt.Sprintf("name what to rotate: %s?%s, ?%s, or both", RotateKeysPath,
			RotateEncryption, RotateCertificates))
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
