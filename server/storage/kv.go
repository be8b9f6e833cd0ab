package storage

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/internal/ledger"
)

// ledgerPrefix separates the ledger from the objects, whose keys begin with /registry.
const ledgerPrefix = "/hykube.io-ledger/"

// KV stores the ledger. It implements ledger.KV. It encrypts the values and binds them to their keys.
type KV struct {
	client      clientv3.KV
	transformer value.Transformer
}

// KV returns the key-value store of the ledger.
func (s *Store) KV() *KV {
	return &KV{client: s.client.KV, transformer: s.encryption.transformer(ledgerResource)}
}

// Get returns the value and revision of a key. It returns ledger.ErrNotFound if the key does not exist.
func (k *KV) Get(ctx context.Context, key string) ([]byte, int64, error) {
	resp, err := k.client.Get(ctx, ledgerPrefix+key)
	if err != nil {
		return nil, 0, fmt.Errorf("read record %q: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		return nil, 0, ledger.ErrNotFound
	}
	entry, err := k.decrypt(ctx, resp.Kvs[0])
	return entry.Value, entry.Revision, err
}

// Put writes a key if its revision is still the given one; 0 means that the key must not exist. It returns
// ledger.ErrConflict if the revision differs.
func (k *KV) Put(ctx context.Context, key string, data []byte, revision int64) (int64, error) {
	full := ledgerPrefix + key
	sealed, err := k.transformer.TransformToStorage(ctx, data, value.DefaultContext(full))
	if err != nil {
		return 0, fmt.Errorf("encrypt record %q: %w", key, err)
	}
	// kine supports only these two forms of a transaction.
	txn := k.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(full), "=", revision)).Then(clientv3.OpPut(full, string(sealed)))
	if revision != 0 {
		txn = txn.Else(clientv3.OpGet(full))
	}
	resp, err := txn.Commit()
	if err != nil {
		return 0, fmt.Errorf("write record %q: %w", key, err)
	}
	if !resp.Succeeded {
		return 0, ledger.ErrConflict
	}
	return resp.Header.Revision, nil
}

// Delete deletes a key if its revision is still the given one, and returns ledger.ErrConflict if it differs. It returns
// nil if the key does not exist.
func (k *KV) Delete(ctx context.Context, key string, revision int64) error {
	full := ledgerPrefix + key
	resp, err := k.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(full), "=", revision)).
		Then(clientv3.OpDelete(full)).
		Else(clientv3.OpGet(full)).
		Commit()
	if err != nil {
		return fmt.Errorf("delete record %q: %w", key, err)
	}
	if resp.Succeeded || len(resp.Responses) == 0 || len(resp.Responses[0].GetResponseRange().GetKvs()) == 0 {
		return nil
	}
	return ledger.ErrConflict
}

// List returns up to limit entries whose keys begin with prefix and sort after the key after, sorted by key.
func (k *KV) List(ctx context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	start := ledgerPrefix + prefix
	if after != "" {
		start = ledgerPrefix + after + "\x00"
	}
	resp, err := k.client.Get(ctx, start, clientv3.WithRange(clientv3.GetPrefixRangeEnd(ledgerPrefix+prefix)), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list records below %q: %w", prefix, err)
	}
	entries := make([]ledger.Entry, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		if entries[i], err = k.decrypt(ctx, kv); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (k *KV) decrypt(ctx context.Context, kv *mvccpb.KeyValue) (ledger.Entry, error) {
	key := string(kv.Key)
	data, _, err := k.transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(key))
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("decrypt record %q: %w", key[len(ledgerPrefix):], err)
	}
	return ledger.Entry{Key: key[len(ledgerPrefix):], Value: data, Revision: kv.ModRevision}, nil
}
