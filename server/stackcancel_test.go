package server_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/registry"
)

// TestCancelOfAStacksWorkflow asks for a cancel while a workflow runs, while none does, and in a dry run.
func TestCancelOfAStacksWorkflow(t *testing.T) {
	var reasons []string
	running, failure := true, error(nil)
	i := startT(t, server.Config{DataDir: filepath.Join(t.TempDir(), "data"), Wire: func(context.Context, *server.Components) (server.Wiring, error) {
		return server.Wiring{Backend: registry.Backend{CancelRun: func(_ context.Context, s *v1alpha1.Stack, reason string) (bool, error) {
			reasons = append(reasons, s.Name+": "+reason)
			return running, failure
		}}}, nil
	}})
	stacks := objects(t, i.admin()).Resource(v1alpha1.SchemeGroupVersion.WithResource("stacks")).Namespace("default")
	if _, err := stacks.Create(t.Context(), newObject("Stack", "web", map[string]any{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cancel := func(name string, o metav1.CreateOptions) error {
		_, err := stacks.Create(t.Context(), newObject("Stack", name, map[string]any{}), o, "cancel")
		return err
	}
	if err := cancel("web", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(reasons) > 0 {
		t.Errorf("a dry run: %v, %q", err, reasons)
	}
	if err := cancel("other", metav1.CreateOptions{}); !apierrors.IsNotFound(err) || len(reasons) > 0 {
		t.Errorf("another stack: %v, %q", err, reasons)
	}
	if err := cancel("web", metav1.CreateOptions{}); err != nil || !slices.Equal(reasons, []string{"web: hykube:admin cancelled the run."}) {
		t.Errorf("a running workflow: %v, %q", err, reasons)
	}
	running = false
	if err := cancel("web", metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("no workflow: %v", err)
	}
	if failure = errors.New("Temporal is gone"); cancel("web", metav1.CreateOptions{}) == nil {
		t.Error("a failure is not told")
	}
}
