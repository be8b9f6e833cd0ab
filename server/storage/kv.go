package storage

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/storage/records"
)

// ledgerPrefix is the prefix of the ledger's keys in the encryption. The keys
// of objects begin with /registry there.
const ledgerPrefix = "/hykube.io-ledger/"

// KV stores the ledger. It implements ledger.KV. It compresses and encrypts the values, and binds them to their
// keys.
type KV struct {
	records     *records.Store
	transformer value.Transformer
	// lastKeys is transformer without a read of the database.
	lastKeys value.Transformer
	disk     disk
	spool    spool
	// local is true if the database is part of this process. It then computes a read here, so the caller keeps its slot
	// of the processors.
	local bool
}

// KV returns the key-value store of the ledger.
func (s *Store) KV() *KV {
	e := s.encryption
	return &KV{records: s.records, transformer: e.transformer(ledgerResource), lastKeys: e.withLastKeys(ledgerResource),
		disk: s.disk, spool: s.spool, local: s.latest != nil}
}

func (k *KV) Get(ctx context.Context, key string) ([]byte, int64, error) {
	resume := k.pause(ctx)
	data, revision, err := k.records.Get(ctx, key)
	resume()
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, 0, err
	}
	if err != nil {
		return nil, 0, store.Failed(err)
	}
	data, err = k.decrypt(ctx, key, data)
	return data, revision, err
}

// pause gives the caller's slot back during a read of another process.
func (k *KV) pause(ctx context.Context) (resume func()) {
	if k.local {
		return func() {}
	}
	return fair.Pause(ctx)
}

func (k *KV) Put(ctx context.Context, key string, data []byte, revision int64) (int64, error) {
	revisions, err := k.Batch(ctx, []ledger.Write{{Key: key, Value: data, Revision: revision}})
	if err != nil {
		return 0, err
	}
	return revisions[0], nil
}

func (k *KV) Delete(ctx context.Context, key string, revision int64) error {
	_, err := k.Batch(ctx, []ledger.Write{{Op: ledger.OpDelete, Key: key, Revision: revision}})
	return err
}

// Batch implements ledger.KV. Concurrent batches share a transaction.
func (k *KV) Batch(ctx context.Context, writes []ledger.Write) ([]int64, error) {
	sealed, err := seal(ctx, k.transformer, writes)
	if err != nil {
		return nil, err
	}
	defer fair.Pause(ctx)()
	return k.records.Batch(ctx, namespaceOf(ctx), sealed)
}

// seal compresses and encrypts the values of writes.
func seal(ctx context.Context, t value.Transformer, writes []ledger.Write) ([]ledger.Write, error) {
	sealed := make([]ledger.Write, len(writes))
	for i, w := range writes {
		sealed[i] = w
		if w.Op != ledger.OpPut {
			continue
		}
		var err error
		if sealed[i].Value, err = t.TransformToStorage(ctx, compress(w.Value),
			value.DefaultContext(ledgerPrefix+w.Key)); err != nil {
			return nil, fmt.Errorf("encrypt record %q: %w", w.Key, err)
		}
	}
	return sealed, nil
}

func (k *KV) DeletePrefix(ctx context.Context, prefix string) error {
	defer fair.Pause(ctx)()
	return k.records.DeletePrefix(ctx, namespaceOf(ctx), prefix)
}

func (k *KV) List(ctx context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	resume := k.pause(ctx)
	entries, err := k.records.List(ctx, prefix, after, limit)
	resume()
	if err != nil {
		return nil, store.Failed(err)
	}
	for i := range entries {
		if entries[i].Value, err = k.decrypt(ctx, entries[i].Key, entries[i].Value); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (k *KV) Since(ctx context.Context, prefix string, revision int64,
	limit int) ([]ledger.ChangedEntry, int64, error) {
	changed, current, err := k.records.Since(ctx, prefix, revision, limit)
	for i := range changed {
		if changed[i].Deleted {
			continue
		}
		if changed[i].Value, err = k.decrypt(ctx, changed[i].Key, changed[i].Value); err != nil {
			return nil, 0, err
		}
	}
	return changed, current, err
}

func (k *KV) decrypt(ctx context.Context, key string, data []byte) ([]byte, error) {
	data, _, err := k.transformer.TransformFromStorage(ctx, data, value.DefaultContext(ledgerPrefix+key))
	if err != nil {
		return nil, fmt.Errorf("decrypt record %q: %w", key, err)
	}
	if data, err = decompress(data); err != nil {
		return nil, fmt.Errorf("read record %q: %w", key, err)
	}
	return data, nil
}

// putAt writes a key of kine if its revision is still the given one; 0 means that the key must not exist. It returns
// false if the revision differs.
func putAt(ctx context.Context, client clientv3.KV, key string, data []byte,
	revision int64) (written int64, ok bool, err error) {
	// kine supports only these two forms of a transaction.
	txn := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpPut(key,
		string(data)))
	if revision != 0 {
		txn = txn.Else(clientv3.OpGet(key))
	}
	response, err := txn.Commit()
	if err != nil {
		return 0, false, err
	}
	return response.Header.Revision, response.Succeeded, nil
}
