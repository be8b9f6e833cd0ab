package storage

import (
	"context"
	stdaes "crypto/aes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

const (
	// cipherRows is the number of rows that a cipher encrypts with one derived key. With random nonces of 96 bits, a
	// key permits 2^32.
	cipherRows = 4096
	// maxDerived is the number of derived keys that a cipher remembers for decryption.
	maxDerived = 1024
	// infoSize and derivedSize are the sizes in bytes of the text that a key is derived from, and of the key.
	infoSize, derivedSize = 32, 32
)

// cipher encrypts and decrypts rows with keys that it derives from a data key. A row has the format of Kubernetes'
// NewHKDFExtendedNonceGCMTransformer: the text from which its key is derived, and the row as NewGCMTransformer encrypts
// it. Kubernetes derives a key for each row. That took a tenth of an apply's memory, so a cipher derives one for many
// rows.
type cipher struct {
	secret []byte

	mu sync.Mutex
	// writes encrypts the next rows, whose number is left. info is the text that its key is derived from.
	writes value.Transformer
	info   []byte
	left   int
	// reads holds the derived keys of rows that were written or read, by the text.
	reads map[string]value.Transformer
}

var _ value.Transformer = (*cipher)(nil)

// newCipher returns an error for a secret that is too short.
func newCipher(secret []byte) (*cipher, error) {
	if len(secret) < aes.MinSeedSizeExtendedNonceGCM {
		return nil, fmt.Errorf("the data key has %d bytes, and needs %d", len(secret), aes.MinSeedSizeExtendedNonceGCM)
	}
	return &cipher{secret: secret, reads: map[string]value.Transformer{}}, nil
}

// writer returns the transformer for the next row, and the text that its key is derived from.
func (c *cipher) writer() (value.Transformer, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		info := make([]byte, infoSize)
		_, _ = rand.Read(info) // rand.Read never fails
		t, err := c.derived(info)
		if err != nil {
			return nil, nil, err
		}
		c.writes, c.info, c.left = t, info, cipherRows
	}
	c.left--
	return c.writes, c.info, nil
}

// derived returns the transformer whose key is derived from a text. It requires c.mu.
func (c *cipher) derived(info []byte) (value.Transformer, error) {
	if t := c.reads[string(info)]; t != nil {
		return t, nil
	}
	key, err := hkdf.Expand(sha256.New, c.secret, string(info), derivedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a row: %w", err)
	}
	block, err := stdaes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a row: %w", err)
	}
	t, err := aes.NewGCMTransformer(block)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a row: %w", err)
	}
	if len(c.reads) >= maxDerived {
		clear(c.reads)
	}
	c.reads[string(info)] = t
	return t, nil
}

func (c *cipher) TransformFromStorage(ctx context.Context, data []byte,
	dataCtx value.Context) (decrypted []byte, stale bool, err error) {
	if len(data) < infoSize {
		return nil, false, errors.New("the stored row is too short to be encrypted")
	}
	c.mu.Lock()
	t, err := c.derived(data[:infoSize])
	c.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	return t.TransformFromStorage(ctx, data[infoSize:], dataCtx)
}

func (c *cipher) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	t, info, err := c.writer()
	if err != nil {
		return nil, err
	}
	encrypted, err := t.TransformToStorage(ctx, data, dataCtx)
	if err != nil {
		return nil, err
	}
	return append(append(make([]byte, 0, infoSize+len(encrypted)), info...), encrypted...), nil
}
