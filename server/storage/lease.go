package storage

import (
	"context"

	"github.com/k3s-io/kine/pkg/server"

	"github.com/hykube/hykube/internal/ledger"
)

// lead takes the lease of a database with several writers, and waits while another server has it. A worker joins the
// database. A process with a wrong root key does not wait, because it could not take over.
func (s *Store) lead(ctx context.Context, cfg Config) error {
	if cfg.Endpoint == "" || cfg.Server.Owner == "" {
		return nil
	}
	if err := s.encryption.checkRootKey(ctx); err != nil {
		return err
	}
	waiting := cfg.Waiting
	if waiting == nil {
		waiting = func(string) {}
	}
	if cfg.Worker {
		return s.records.Join(ctx, cfg.Server, waiting)
	}
	return s.records.Lead(ctx, cfg.Server, waiting)
}

// StopCalls lets no call of a provider begin from now on.
func (s *Store) StopCalls() { s.records.StopCalls() }

// Processes returns this process and the others that write to the database.
func (s *Store) Processes() ledger.Processes { return s.records }

// EndWorkers ends the rights of each worker whose lease has expired, and returns their identities.
func (s *Store) EndWorkers(ctx context.Context) ([]string, error) { return s.records.EndWorkers(ctx) }

// Reason returns the reason why this process may not write any more, after the channel of Lost was closed.
func (s *Store) Reason() error { return s.records.Held() }

// Lost returns a channel that is closed when another server has taken the lease of the database. This server must end
// then.
func (s *Store) Lost() <-chan struct{} { return s.records.Lost() }

// leased refuses writes while this server may not have the lease of the database. The ledger checks its lease in its
// transactions; see package records.
type leased struct {
	server.Backend
	held func() error
}

func (l leased) Create(ctx context.Context, key string, value []byte, lease int64) (int64, error) {
	if err := l.held(); err != nil {
		return 0, err
	}
	return l.Backend.Create(ctx, key, value, lease)
}

func (l leased) Update(ctx context.Context, key string, value []byte, revision,
	lease int64) (int64, *server.KeyValue, bool, error) {
	if err := l.held(); err != nil {
		return 0, nil, false, err
	}
	return l.Backend.Update(ctx, key, value, revision, lease)
}

func (l leased) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	if err := l.held(); err != nil {
		return 0, nil, false, err
	}
	return l.Backend.Delete(ctx, key, revision)
}
