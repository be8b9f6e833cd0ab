package storage

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"github.com/hykube/hykube/internal/atomicfile"
)

const (
	// ownKeyFile is the name of the root key's file in the data directory, if Config.KeyFile names no other.
	ownKeyFile = "encryption.key"
	// keyBytes is the length of a root key and of a data key.
	keyBytes = 32
)

// rootPrefix is the prefix of a keyring that is encrypted with a root key.
var rootPrefix = []byte("hykube:root:aesgcm:v1:")

// root encrypts the keyring. It reads its files again for each use, so a file may change while the server runs.
type root struct {
	// user is the transformer of a user's EncryptionConfiguration that names the keyring, such as a KMS plugin; else
	// nil.
	user value.Transformer
	// file is the path of Config.KeyFile; empty means own.
	file string
	// own is the path of the key file in the data directory. Its key may still decrypt the keyring if another key
	// encrypts it from now on.
	own string
}

// transformer returns the encryption of the keyring. The error wraps fs.ErrNotExist if there is no key.
func (r root) transformer() (value.Transformer, error) {
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	return r.with(keys)
}

// keys reads the keys of the files; the first one encrypts. The error wraps fs.ErrNotExist if there is none.
func (r root) keys() ([][]byte, error) {
	var keys [][]byte
	if r.file != "" {
		given, err := readKeyFile(r.file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read --encryption-key-file %q: it does not exist; restore it, or create one for a new server: (umask 077; head -c 32 /dev/urandom | base64 > FILE)", r.file)
		}
		if err != nil {
			return nil, fmt.Errorf("read --encryption-key-file %q: %w", r.file, err)
		}
		keys = given
	}
	own, err := readKeyFile(r.own)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || r.file == "" && r.user == nil) {
		return nil, fmt.Errorf("read encryption key %q: %w", r.own, err)
	}
	return append(keys, own...), nil
}

// idOf returns the ID of the key that encrypted a keyring; "" if a user's EncryptionConfiguration did.
func (r root) idOf(ctx context.Context, sealed []byte) (string, error) {
	if !bytes.HasPrefix(sealed, rootPrefix) {
		return "", nil
	}
	keys, err := r.keys()
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		one, err := root{}.with([][]byte{key})
		if err != nil {
			return "", err
		}
		if _, _, err := one.TransformFromStorage(ctx, sealed, value.DefaultContext(keyringKey)); err == nil {
			return rootKeyID(key), nil
		}
	}
	return "", fmt.Errorf("no root key of %s encrypted the keyring", r.source())
}

// rootKeyID names a root key. It does not reveal the key.
func rootKeyID(key []byte) string {
	code := hmac.New(sha256.New, key)
	code.Write([]byte("hykube root key ID"))
	return hex.EncodeToString(code.Sum(nil)[:8])
}

// with returns the encryption of the keyring with keys instead of those in the files. The first key encrypts.
func (r root) with(keys [][]byte) (value.Transformer, error) {
	t := rootTransformer{user: r.user}
	for _, key := range keys {
		gcm, err := aes.NewHKDFExtendedNonceGCMTransformer(key)
		if err != nil {
			return nil, fmt.Errorf("use root key: %w", err)
		}
		t.own = append(t.own, gcm)
	}
	return t, nil
}

// rootTransformer encrypts with user, or with the first of the own keys if user is nil. It decrypts with all of them.
// Kubernetes' prefix transformers would also log the error of a wrong key, which the server reports itself.
type rootTransformer struct {
	user value.Transformer
	own  []value.Transformer
}

func (t rootTransformer) TransformFromStorage(ctx context.Context, data []byte,
	dataCtx value.Context) (clear []byte, stale bool, err error) {
	sealed, isOwn := bytes.CutPrefix(data, rootPrefix)
	if !isOwn && t.user != nil {
		return t.user.TransformFromStorage(ctx, data, dataCtx)
	}
	if !isOwn || len(t.own) == 0 {
		return nil, false, errors.New("another key or a KMS plugin encrypted it")
	}
	for _, key := range t.own {
		if clear, stale, err = key.TransformFromStorage(ctx, sealed, dataCtx); err == nil {
			break
		}
	}
	return clear, stale, err
}

func (t rootTransformer) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	if t.user != nil {
		return t.user.TransformToStorage(ctx, data, dataCtx)
	}
	sealed, err := t.own[0].TransformToStorage(ctx, data, dataCtx)
	return append(bytes.Clone(rootPrefix), sealed...), err
}

// create creates the key file in the data directory, for a new database. It returns the encryption with the new key,
// and a function that writes the file.
func (r root) create() (value.Transformer, func() error, error) {
	key := make([]byte, keyBytes)
	rand.Read(key) // rand.Read never fails: https://pkg.go.dev/crypto/rand#Read
	write := func() error {
		if err := atomicfile.Write(r.own, key, 0o600); err != nil {
			return fmt.Errorf("write encryption key: %w", err)
		}
		return nil
	}
	t, err := r.with([][]byte{key})
	return t, write, err
}

// missing returns the error for a database that has data although no root key exists.
func (r root) missing() error {
	return fmt.Errorf("read encryption key %q: %w, and the server cannot read the database without it; restore it from a backup, or name another file with --encryption-key-file", r.own, fs.ErrNotExist)
}

// source describes the root key in messages.
func (r root) source() string {
	switch {
	case r.user != nil:
		return "--encryption-provider-config"
	case r.file != "":
		return r.file
	}
	return r.own
}

// readKeyFile reads the keys of a file: either 32 bytes, or lines of 32 bytes in base64.
func readKeyFile(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("every user of this machine may open it (mode %#o): chmod 600 %s", mode, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	text := bytes.IndexFunc(data, func(r rune) bool {
		return r > unicode.MaxASCII ||
			!unicode.IsPrint(r) && !unicode.IsSpace(r)
	}) < 0
	switch {
	case !text && len(data) == keyBytes:
		return [][]byte{data}, nil
	case !text || len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("it has %d bytes instead of %d; restore it from a backup", len(data), keyBytes)
	}
	var keys [][]byte
	for i, line := range bytes.Fields(data) {
		key, err := base64.StdEncoding.DecodeString(string(line))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d is not base64: write one key of %d bytes in base64 a line", i+1, keyBytes)
		case len(key) != keyBytes:
			return nil, fmt.Errorf("the key in line %d has %d bytes instead of %d", i+1, len(key), keyBytes)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// withoutPath returns an error of the os package without its path, which the caller adds.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
