package storage

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

// cipherRows is the number of rows that a cipher encrypts or decrypts with one transformer.
const cipherRows = 4096

// cipher encrypts and decrypts rows with a data key. Kubernetes' transformer derives a key for each row, and keeps each for
// ten minutes. That is 1.6 KB a row: an apply of 100,000 resources would keep half a gigabyte. So a cipher replaces its
// transformer after cipherRows rows. Any transformer of a data key decrypts what another one encrypted.
type cipher struct {
	secret []byte

	mu    sync.Mutex
	inner value.Transformer
	left  int // rows until the next transformer
}

var _ value.Transformer = (*cipher)(nil)

// newCipher returns an error for a secret that is too short.
func newCipher(secret []byte) (*cipher, error) {
	c := &cipher{secret: secret}
	_, err := c.transformer()
	return c, err
}

func (c *cipher) transformer() (value.Transformer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		inner, err := aes.NewHKDFExtendedNonceGCMTransformer(c.secret)
		if err != nil {
			return nil, err
		}
		c.inner, c.left = inner, cipherRows
	}
	c.left--
	return c.inner, nil
}

func (c *cipher) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) (clear []byte, stale bool, err error) {
	t, err := c.transformer()
	if err != nil {
		return nil, false, err
	}
	return t.TransformFromStorage(ctx, data, dataCtx)
}

func (c *cipher) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	t, err := c.transformer()
	if err != nil {
		return nil, err
	}
	return t.TransformToStorage(ctx, data, dataCtx)
}
