package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"
)

// slotEvery is the time between two attempts to take a slot.
const slotEvery = 100 * time.Millisecond

// errNoSlot ends the transaction of an attempt to take a slot while all are taken.
var errNoSlot = errors.New("all slots are taken")

// TakeSlot waits for one of a number of slots with a name, which all processes of the database share. The caller calls
// release after its use. The slots of a process that has ended are free.
func (s *Store) TakeSlot(ctx context.Context, name string, slots int) (release func(), err error) {
	if s.dialect.embedded {
		return func() {}, nil
	}
	id := rand.Text()
	for {
		err := s.takeSlot(ctx, id, name, slots)
		if err == nil {
			return func() { s.releaseSlot(context.WithoutCancel(ctx), id) }, nil
		}
		if !errors.Is(err, errNoSlot) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(slotEvery):
		}
	}
}

// takeSlot takes a slot, or returns errNoSlot. It removes the slots of processes that have ended.
func (s *Store) takeSlot(ctx context.Context, id, name string, slots int) error {
	return s.inTransaction(ctx, func(tx *sql.Tx, _ state) error {
		if _, err := tx.ExecContext(ctx,
			"DELETE FROM hykube_slot WHERE process NOT IN (SELECT process FROM hykube_process)"); err != nil {
			return failed("remove slots of", err)
		}
		var taken int
		if err := tx.QueryRowContext(ctx, s.dialect.text("SELECT COUNT(*) FROM hykube_slot WHERE name = ?"),
			name).Scan(&taken); err != nil {
			return failed("count slots of", err)
		}
		if taken >= slots {
			return errNoSlot
		}
		_, err := tx.ExecContext(ctx, s.dialect.text("INSERT INTO hykube_slot (id, name, process) VALUES (?, ?, ?)"),
			id, name, s.lease.process)
		return failed("take a slot of", err)
	})
}

// releaseSlot releases a slot. A slot that it cannot release is free when this process has ended.
func (s *Store) releaseSlot(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if _, err := s.write.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_slot WHERE id = ?"), id); err != nil {
		s.log.Warn("cannot release a slot of a ProviderConfig", "error", err)
	}
}
