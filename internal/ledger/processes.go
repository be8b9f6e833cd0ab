package ledger

import (
	"context"
	"crypto/rand"
)

// Processes are the processes that write to one ledger: servers and workers.
type Processes interface {
	// Own returns the identity of this process, which intents name.
	Own() string
	// MayCall returns an error if no call of a provider may begin: another process may count this one as ended, or this
	// process stops.
	MayCall() error
	// Live returns the address of another process that may still make a call; "" if it has ended. A process that has
	// ended cannot write from then on.
	Live(ctx context.Context, process string) (address string, err error)
	// Processes returns the number of live processes, at least 1.
	Processes() int
	// Shared reports whether other processes may write to the ledger now or later, so that limits are shared by Share.
	Shared() bool
	// Share notes what this process needs and holds of a limit that all processes share, and returns what it may hold.
	// All calls with one name have the same total. A process that has ended holds nothing.
	Share(ctx context.Context, limit string, total int64, own Share) (Share, error)
	// TakeSlot waits for one of a number of slots that all processes share. The caller calls release after its use. The
	// slots of a process that has ended are free.
	TakeSlot(ctx context.Context, name string, slots int) (release func(), err error)
}

// Alone returns the processes of a ledger to which only this process writes.
func Alone() Processes { return alone(rand.Text()) }

type alone string

func (a alone) Own() string { return string(a) }

func (alone) MayCall() error { return nil }

func (alone) Live(context.Context, string) (string, error) { return "", nil }

func (alone) Processes() int { return 1 }

func (alone) Shared() bool { return false }

func (alone) Share(_ context.Context, _ string, total int64, own Share) (Share, error) {
	return Share{Want: own.Want, Held: total, Fair: total}, nil
}

func (alone) TakeSlot(context.Context, string, int) (func(), error) { return func() {}, nil }
