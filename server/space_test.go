package server_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/server"
)

// TestFullDisk fills the disk of a server. The server reports it, rejects writes, and serves reads and deletes.
func TestFullDisk(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	s := startT(t, server.Config{DataDir: t.TempDir(), FreeBytes: func(string) (uint64, error) { return free.Load(), nil }})
	maps := core(t, s.admin()).CoreV1().ConfigMaps("default")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	free.Store(200 << 20)
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{})
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusInsufficientStorage {
		t.Errorf("create: %v, want 507", err)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("get: %v", err)
	}
	ready := core(t, s.admin()).Discovery().RESTClient().Get().AbsPath("/readyz/disk")
	if err := ready.Do(t.Context()).Error(); err == nil {
		t.Error("/readyz/disk: ok, want an error")
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	free.Store(1 << 40)
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Errorf("create with space: %v", err)
	}
}
