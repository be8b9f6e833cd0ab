package loopback

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/audit"
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

// secret returns the current version of a Secret, or nil if there is none. It reads it with a request, which the audit log
// records. A plan may read a Secret for each of its resources. If the log already has a read of this version for the plan,
// secret reads the storage instead.
func (c *Configs) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	read := secretRead{fmt.Sprintf("%q", audit.From(ctx)), namespace, name}
	recordable := audit.From(ctx).PlanUID != "" && c.Stored != nil
	if version := c.recorded.version(read); recordable && version != "" {
		secret := &corev1.Secret{}
		found, err := c.read(ctx, resourceOfCore("secrets"), namespace, name, secret)
		if err != nil || found && secret.ResourceVersion == version {
			return secret, err
		}
	}
	secret, err := c.Core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %q: %w", name, err)
	}
	if recordable {
		c.recorded.note(read, secret.ResourceVersion)
	}
	return secret, nil
}

// secretRead identifies the reads of a Secret that one record in the audit log stands for.
type secretRead struct {
	// cause is the text of an audit.Cause: the plan with its digest, and its users.
	cause           string
	namespace, name string
}

// maxRecordedReads is the maximum number of reads that recordedReads knows.
const maxRecordedReads = 10_000

// recordedReads knows, for reads that the audit log has, the versions of the Secrets. It may forget them: the log then has
// another record.
type recordedReads struct {
	mu       sync.Mutex
	versions map[secretRead]string
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
