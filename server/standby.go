package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// standbyLog is the time between two messages of a server that waits for the lease.
	standbyLog = 10 * time.Minute
	// standbyHeaderTimeout is the maximum time for the headers of a request to such a server.
	standbyHeaderTimeout = 5 * time.Second
)

// standby answers requests while another server has the lease of the database. It is alive and not ready. The zero
// value is not started.
type standby struct {
	log    *slog.Logger
	worker bool
	reason string
	logged time.Time
	stop   func() error // nil before the first wait
}

// wait notes why this process waits. It serves at the first call. It keeps no lock: one goroutine calls it and end.
func (s *standby) wait(reason string, serve func(http.Handler) (stop func() error)) {
	if reason != s.reason || time.Since(s.logged) >= standbyLog {
		s.reason, s.logged = reason, time.Now()
		if s.worker {
			s.log.Info("the worker waits", "reason", reason)
		} else {
			s.log.Info("this server is a standby, and takes over when the other one has stopped", "reason", reason)
		}
	}
	if s.stop == nil {
		s.stop = serve(http.HandlerFunc(serveStandby))
	}
}

// end ends the answers of the standby, so that the server itself can serve.
func (s *standby) end() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// serveStandby answers the probe of a live server, and refuses everything else. It does not say which server serves,
// because it does not know who asks.
func serveStandby(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && (r.URL.Path == "/livez" || r.URL.Path == "/healthz") {
		_, _ = io.WriteString(w, "ok")
		return
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonServiceUnavailable,
		Code:    http.StatusServiceUnavailable,
		Message: "this server is a standby: another server serves the database, and the log of this one says which; use the address of that server, or of a load balancer that asks /readyz",
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status)
}

// serveOn serves requests on a listener. stop ends that, and leaves the listener open.
func serveOn(l *net.TCPListener, certificate, key string, handler http.Handler, log *slog.Logger) (stop func() error) {
	served := make(chan error, 1)
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: standbyHeaderTimeout,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	go func() { served <- srv.ServeTLS(lent{l}, certificate, key) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), standbyHeaderTimeout)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			log.Warn("requests to the standby did not end", "error", errors.Join(err, srv.Close()))
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve as a standby: %w", err)
		}
		return l.SetDeadline(time.Time{})
	}
}

// lent is a listener that stays open. Close only ends a running Accept.
type lent struct{ *net.TCPListener }

func (l lent) Close() error { return l.SetDeadline(time.Now()) }
