package simcloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Running is a cloud that serves on an address.
type Running struct {
	*Server
	// Address is "http://127.0.0.1:41234".
	Address string

	http *http.Server
	err  chan error
}

// Start creates a cloud and serves it. The port 0 selects a free port.
func Start(address string, c Config) (*Running, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %q: %w", address, err), s.Close())
	}
	r := &Running{Server: s, Address: "http://" + l.Addr().String(), err: make(chan error, 1)}
	r.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	go func() { r.err <- r.http.Serve(l) }()
	return r, nil
}

// Client returns a client of this cloud, with its token.
func (r *Running) Client() *Client { return NewClient(r.Address, r.token) }

// Failed returns a channel with the error of a server that ended without Stop.
func (r *Running) Failed() <-chan error { return r.err }

// Stop lets calls finish until the context ends, except for those that hang, and closes everything.
func (r *Running) Stop(ctx context.Context) error {
	r.faults.remove(0) // ends the calls that hang; the state file stays open for the others
	err := r.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, r.http.Close())
	}
	return errors.Join(err, r.Close())
}
