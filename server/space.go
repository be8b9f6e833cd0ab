package server

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/hykube/hykube/server/storage"
)

// spaceCheck is the name of the readiness check that fails while the disk of the database is nearly full.
const spaceCheck = "disk"

// reasonInsufficientStorage is the reason of a response with HTTP status 507, for which Kubernetes has no constant.
const reasonInsufficientStorage metav1.StatusReason = "InsufficientStorage"

// spaceAdmission refuses users' writes while the disk of the database is nearly full, as etcd does. It allows deletions
// and cancels, which make room, and the writes of the server itself.
type spaceAdmission struct{ store *storage.Store }

func (spaceAdmission) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

func (s spaceAdmission) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.IsDryRun() || a.GetSubresource() == "cancel" || a.GetUserInfo().GetName() == user.APIServerUser {
		return nil
	}
	if err := s.store.HasSpace(); err != nil {
		return &errors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: reasonInsufficientStorage,
			Message: err.Error(),
		}}
	}
	return nil
}
