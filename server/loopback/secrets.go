package loopback

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/store"
)

// Secret implements store.Configs. It returns a *store.SecretError if the Secret or the key does not exist.
func (c *Configs) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	secret, err := c.secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, &store.SecretError{Namespace: namespace, Name: name}
	}
	value, ok := secret.Data[key]
	if !ok {
		return nil, &store.SecretError{Namespace: namespace, Name: name, Key: key}
	}
	return value, nil
}

// SecretData implements store.Configs.
func (c *Configs) SecretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := c.secret(ctx, namespace, name)
	if err != nil || secret == nil {
		return nil, err
	}
	if secret.Data == nil {
		return map[string][]byte{}, nil // it exists and is empty
	}
	return secret.Data, nil
}

// secret returns the current version of a Secret, or nil if there is none. It reads it with a request, which the audit
// log records. A plan may read a Secret for each of its resources. If the log already has a read of this version for
// the plan, secret reads the storage instead.
func (c *Configs) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	cause := audit.From(ctx)
	if cause.PlanUID == "" || c.Stored == nil {
		return c.requestSecret(ctx, namespace, name)
	}
	read := secretRead{fmt.Sprintf("%q", cause), namespace, name}
	if secret, err := c.recordedSecret(ctx, read); secret != nil || err != nil {
		return secret, err
	}
	// The steps of a plan begin together. One of them makes the request.
	lock := c.recorded.lockOf(read)
	fair.Lock(ctx, lock)
	defer lock.Unlock()
	if secret, err := c.recordedSecret(ctx, read); secret != nil || err != nil {
		return secret, err
	}
	secret, err := c.requestSecret(ctx, namespace, name)
	if secret != nil {
		c.recorded.note(read, secret.ResourceVersion)
	}
	return secret, err
}

// recordedSecret returns a Secret from the storage, or nil if the audit log has no read of its current version.
func (c *Configs) recordedSecret(ctx context.Context, read secretRead) (*corev1.Secret, error) {
	version := c.recorded.version(read)
	if version == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	found, err := readStored(ctx, c, resourceOfCore("secrets"), read.namespace, read.name, secret)
	if err != nil || !found || secret.ResourceVersion != version {
		return nil, err
	}
	return secret, nil
}

// requestSecret reads a Secret with a request. It returns nil if there is none.
func (c *Configs) requestSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := c.Core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failedRequest(fmt.Errorf("read secret %q: %w", name, err))
	}
	return secret, nil
}

// failedRequest returns the error of a request, as a *store.FailedError if the server could not answer it.
func failedRequest(err error) error {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if ok && answer.ErrStatus.Code < http.StatusInternalServerError &&
		answer.ErrStatus.Code != http.StatusTooManyRequests {
		return err
	}
	return store.Failed(err)
}

// secretRead identifies the reads of a Secret that one record in the audit log stands for.
type secretRead struct {
	// cause is the text of an audit.Cause: the plan with its digest, and its users.
	cause           string
	namespace, name string
}

// maxRecordedReads is the maximum number of reads that recordedReads knows.
const maxRecordedReads = 10_000

// recordedReads knows, for reads that the audit log has, the versions of the Secrets. It may forget them: the log then
// has another record.
type recordedReads struct {
	mu       sync.Mutex
	versions map[secretRead]string
	// locks are held during the requests.
	locks map[secretRead]*sync.Mutex
}

// lockOf returns the lock that a request for a read needs.
func (r *recordedReads) lockOf(read secretRead) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.locks == nil || len(r.locks) >= maxRecordedReads {
		r.locks = map[secretRead]*sync.Mutex{}
	}
	if r.locks[read] == nil {
		r.locks[read] = new(sync.Mutex)
	}
	return r.locks[read]
}

// version returns the version that was read, or "".
func (r *recordedReads) version(read secretRead) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[read]
}

func (r *recordedReads) note(read secretRead, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions == nil || len(r.versions) >= maxRecordedReads {
		r.versions = map[secretRead]string{}
	}
	r.versions[read] = version
}
