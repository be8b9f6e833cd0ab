package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// This file explains requests that fail because the audit log cannot be written. Kubernetes' handler of the log answers
// them with "failed to store audit event".

// recordedKey is the context key of an *atomic.Bool that is true once a request has its first record.
type recordedKey struct{}

// explainUnrecorded returns the chain of handlers that build puts around inner. If inner is not reached and the answer
// is an internal error, unwritable may return its cause.
func explainUnrecorded(inner http.Handler, build func(http.Handler) http.Handler,
	unwritable func() error) http.Handler {
	chain := build(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if recorded, ok := r.Context().Value(recordedKey{}).(*atomic.Bool); ok {
			recorded.Store(true)
		}
		inner.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := &unrecorded{ResponseWriter: w, recorded: new(atomic.Bool), unwritable: unwritable}
		chain.ServeHTTP(responsewriter.WrapForHTTP1Or2(u),
			r.WithContext(context.WithValue(r.Context(), recordedKey{}, u.recorded)))
	})
}

// unwritableLog returns the reason why the audit log cannot be written, with a remedy; nil if it can.
func (c *completedConfig) unwritableLog() error {
	if c.auditLog == nil {
		return nil
	}
	err := c.auditLog.Check()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w. The server does nothing that it must record first: free some space on that disk, then try again", err)
	default:
		return fmt.Errorf("%w. The server does nothing that it must record first: make the log writable, then try again", err)
	}
}

// unrecorded is the response to a request that may have no record.
type unrecorded struct {
	http.ResponseWriter
	recorded   *atomic.Bool
	unwritable func() error
	// explained is true after the answer was replaced.
	explained bool
}

var _ responsewriter.UserProvidedDecorator = (*unrecorded)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (u *unrecorded) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u *unrecorded) WriteHeader(code int) {
	if code != http.StatusInternalServerError || u.recorded.Load() {
		u.ResponseWriter.WriteHeader(code)
		return
	}
	err := u.unwritable()
	if err == nil {
		u.ResponseWriter.WriteHeader(code)
		return
	}
	u.explained = true
	u.Header().Set("Content-Type", "application/json")
	u.ResponseWriter.WriteHeader(code)
	_ = json.NewEncoder(u.ResponseWriter).Encode(&metav1.Status{ // the client is gone
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
		Message: err.Error(),
	})
}

func (u *unrecorded) Write(p []byte) (int, error) {
	if u.explained {
		return len(p), nil
	}
	return u.ResponseWriter.Write(p)
}
