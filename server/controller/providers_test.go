package controller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
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
			p.tried[obj.Name] = obj.Spec
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
