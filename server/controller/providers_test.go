package controller

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/server/kinds"
)

// TestDeletedProvidersAreNotInstalledAgain has a provider whose generation a deletion, or an undelete, raised. There is
// no installer, so that a look for another version of it fails.
func TestDeletedProvidersAreNotInstalledAgain(t *testing.T) {
	for reason, deleted := range map[string]*metav1.Time{"deleted": new(metav1.Now()), "undeleted": nil} {
		t.Run(reason, func(t *testing.T) {
			ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstalled, ObservedGeneration: 1}
			obj := &v1alpha1.Provider{
				ObjectMeta: metav1.ObjectMeta{Name: "sim", Generation: 2, DeletionTimestamp: deleted, Finalizers: []string{v1alpha1.FinalizerInUse}},
				Spec:       v1alpha1.ProviderSpec{Source: "hykube/sim"},
				Status:     v1alpha1.ProviderStatus{ObservedGeneration: 1, Checksum: "h1:x", Conditions: []metav1.Condition{ready}},
			}
			p := &Providers{Client: serving(t, obj)}
			p.start()
			p.tried[obj.Name] = attempt{spec: obj.Spec}
			if err := p.informer.GetStore().Add(obj.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if err := p.reconcile(t.Context(), cache.ObjectName{Name: obj.Name}); err != nil {
				t.Fatal(err)
			}
			if s := obj.Status; s.ObservedGeneration != 2 || len(s.Conditions) != 1 || s.Conditions[0].Status != metav1.ConditionTrue || s.Conditions[0].ObservedGeneration != 2 {
				t.Errorf("the status is %+v", s)
			}
		})
	}
}

// TestProvidersAreInstalledWhenTheMirrorHasThem fails to find a package, and finds it after a pause without a change of the
// spec. The pauses grow, and each change of the spec is tried at once.
func TestProvidersAreInstalledWhenTheMirrorHasThem(t *testing.T) {
	mirror := t.TempDir()
	obj := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "sim", Generation: 1},
		Spec: v1alpha1.ProviderSpec{Source: "hykube/sim", Checksums: []string{"zh:" + strings.Repeat("0", 64)}}}
	served, err := kinds.New(kinds.Config{RESTOptions: generic.RESTOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Providers{
		Client: serving(t, obj), Installer: provider.NewInstaller(provider.InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{mirror}}),
		Catalog: catalog.New(nil), Kinds: served, Schemas: Schemas(t.TempDir()), Logger: slog.New(slog.DiscardHandler), Changed: func(string) {},
	}
	p.start()
	reconcile := func() (reason, message string) {
		t.Helper()
		if err := p.informer.GetStore().Add(obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := p.reconcile(t.Context(), cache.ObjectName{Name: "sim"}); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionInstalled)
		return c.Reason, c.Message
	}
	reason, missing := reconcile()
	if reason != v1alpha1.ReasonInstallFailed {
		t.Errorf("without a package: %s, %s", reason, missing)
	}
	first := p.tried["sim"]
	if first.pause != firstRetry || time.Until(first.again) > firstRetry {
		t.Errorf("the next attempt is %+v", first)
	}
	inMirror(t, mirror)
	if _, message := reconcile(); message != missing || !p.tried["sim"].again.Equal(first.again) {
		t.Errorf("tried before the pause has passed: %s", message)
	}
	due := func(a attempt) {
		a.again = time.Now()
		p.tried["sim"] = a
	}
	due(first)
	if reason, message := reconcile(); reason != v1alpha1.ReasonVerificationFailed { // the package is another one
		t.Errorf("after the pause: %s, %s", reason, message)
	}
	if !p.tried["sim"].again.IsZero() {
		t.Errorf("a package that was found is tried again: %+v", p.tried["sim"])
	}
	obj.Generation, obj.Spec.Version = 2, "9.9.9"
	reconcile()
	if p.tried["sim"].pause != firstRetry {
		t.Errorf("a change of the spec was not tried at once: %+v", p.tried["sim"])
	}
	due(p.tried["sim"])
	if reconcile(); p.tried["sim"].pause != 2*firstRetry {
		t.Errorf("the second pause is %s", p.tried["sim"].pause)
	}
	due(attempt{obj.Spec, time.Now(), lastRetry})
	if reconcile(); p.tried["sim"].pause != lastRetry {
		t.Errorf("the last pause is %s", p.tried["sim"].pause)
	}
}

// serving is a client of a server that has one provider, and takes its status.
func serving(t *testing.T, obj *v1alpha1.Provider) rest.Interface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if err := json.NewDecoder(r.Body).Decode(obj); err != nil {
				t.Error(err)
			}
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Error(err)
		}
		out := &unstructured.Unstructured{Object: u}
		out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Provider"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, err := rest.RESTClientFor(&rest.Config{
		Host: s.URL, APIPath: "/apis",
		ContentConfig: rest.ContentConfig{GroupVersion: &v1alpha1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
