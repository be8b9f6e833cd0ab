package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// saidWarnings collects the warnings of answers.
type saidWarnings struct {
	mu   sync.Mutex
	text string
}

func (w *saidWarnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += text + "\n"
}

// TestErrorsOfAModuleShowNoConfigMap writes Modules with the files of a ConfigMap that the user may not get, by a create and by an update.
// The answers quote nothing of it, and do not tell whether it exists. With the right, they name what is wrong.
func TestErrorsOfAModuleShowNoConfigMap(t *testing.T) {
	ns := namespace(t, "module-rights")
	files := map[string]string{"wrong": "hunter2 {}\n", "right": "terraform {\n  backend \"hunter2\" {}\n}\n"}
	if _, err := core(t, shared.admin()).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: files}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	of := func(name, source, key string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Module",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"source": map[string]any{"configMap": source, "items": []any{map[string]any{"key": key, "path": "main.tf"}}}}}}
	}
	modules := v1alpha1.SchemeGroupVersion.WithResource("modules")
	old, err := objects(t, shared.admin()).Resource(modules).Namespace(ns).Create(t.Context(), of("old", "absent", "x"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grant(t, shared, ns, "modules", ruleFor("hykube.io", "modules", "get", "create", "update"))
	for _, may := range []bool{false, true} {
		if may {
			grant(t, shared, ns, "configmaps", ruleFor("", "configmaps", "get"))
		}
		warned := &saidWarnings{}
		config := rest.CopyConfig(shared.as("viewer"))
		config.WarningHandler = warned
		client := objects(t, config).Resource(modules).Namespace(ns)
		said := func(source, key string) (text string, forbidden bool) {
			dry := []string{metav1.DryRunAll}
			update := of("old", source, key)
			update.SetResourceVersion(old.GetResourceVersion())
			_, created := client.Create(t.Context(), of("new", source, key), metav1.CreateOptions{DryRun: dry})
			_, updated := client.Update(t.Context(), update, metav1.UpdateOptions{DryRun: dry})
			for _, err := range []error{created, updated} {
				if err != nil {
					text += err.Error() + "\n"
				}
			}
			warned.mu.Lock()
			defer warned.mu.Unlock()
			text, warned.text = text+warned.text, ""
			return text, apierrors.IsForbidden(created) && apierrors.IsForbidden(updated)
		}
		eventually(t, "the rights have effect", func() bool {
			_, err := client.Create(t.Context(), of("new", "files", "wrong"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			status, ok := err.(apierrors.APIStatus)
			return ok && (status.Status().Code == http.StatusUnprocessableEntity || !may)
		})
		for key, quote := range map[string]string{"wrong": "hunter2", "right": "main.tf:2:3: Block without effect"} {
			if text, forbidden := said("files", key); forbidden == may || strings.Contains(text, quote) != may {
				t.Errorf("may get ConfigMaps %t: of the files %q, the answers are %q", may, key, text)
			}
		}
		if text, forbidden := said("none", "x"); forbidden == may || strings.Contains(text, "there is no ConfigMap") != may {
			t.Errorf("may get ConfigMaps %t: without the ConfigMap, the answers are %q", may, text)
		}
	}
}
