package ledger

import "context"

// Intents returns the ledger for the intents of calls. Its writes wait until the store answers. An intent whose write
// seemed to fail would look like that of a call without an answer.
func (l *Ledger) Intents() *Ledger { return &Ledger{kv: persistentKV{l.kv, false}, Limit: l.Limit} }

// Answers returns the ledger for the answers of providers, which exist nowhere else. Its writes wait until the store
// answers, also over a restart of the server.
func (l *Ledger) Answers() *Ledger { return &Ledger{kv: persistentKV{l.kv, true}, Limit: l.Limit} }

// persistentKV is a KV that makes each write by Persist.
type persistentKV struct {
	KV
	spool bool
}

func (k persistentKV) Batch(ctx context.Context, writes []Write) ([]int64, error) {
	return k.Persist(ctx, writes, k.spool)
}

func (k persistentKV) Put(ctx context.Context, key string, value []byte, revision int64) (int64, error) {
	revisions, err := k.Batch(ctx, []Write{{Key: key, Value: value, Revision: revision}})
	if err != nil {
		return 0, err
	}
	return revisions[0], nil
}

func (k persistentKV) Delete(ctx context.Context, key string, revision int64) error {
	_, err := k.Batch(ctx, []Write{{Op: OpDelete, Key: key, Revision: revision}})
	return err
}
