package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/loopback"
)

// TestConfigsAreCheckedAgainAfterAFailedRead checks ProviderConfigs while the server cannot read objects, as with a
// full audit log. The server writes no condition, because it does not know whether the provider accepts them.
func TestConfigsAreCheckedAgainAfterAFailedRead(t *testing.T) {
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "providerconfigs") {
			t.Errorf("%s %s: the status is written", r.Method, r.URL.Path)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(failing.Close)
	config := &rest.Config{Host: failing.URL, APIPath: "/apis", ContentConfig: rest.ContentConfig{GroupVersion: &v1alpha1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs}}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	known := catalog.New(nil)
	known.Put(catalog.Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{
		Attributes: []*schema.Attribute{{Name: "token", Type: cty.String, Optional: true}},
	}}}})
	c := &Configs{Client: client, Secrets: &loopback.Configs{Core: kubernetes.NewForConfigOrDie(&rest.Config{Host: failing.URL})}, Catalog: known}
	c.informer = cache.NewSharedIndexInformer(nil, &v1alpha1.ProviderConfig{}, 0, nil)
	for name, spec := range map[string]v1alpha1.ProviderConfigSpec{
		"secret":   {Provider: "sim", SecretRefs: []v1alpha1.SecretArgument{{Argument: "token", Name: "credentials", Key: "token"}}},
		"provider": {Provider: "time"},
	} {
		cfg := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: spec}
		if err := c.informer.GetStore().Add(cfg); err != nil {
			t.Fatal(err)
		}
		if err := c.reconcile(t.Context(), cache.MetaObjectToName(cfg)); !apierrors.IsInternalError(err) {
			t.Errorf("%s: %v, want the error of the read", name, err)
		}
	}
}

// lostOnce is a provider that dies during its first call.
type lostOnce struct{ calls int }

func (l *lostOnce) ValidateConfig(context.Context, provider.Package, cty.Value) ([]*tfprotov6.Diagnostic, error) {
	if l.calls++; l.calls == 1 {
		return nil, &diag.Failure{Kind: diag.Unreachable, Cause: &provider.UnavailableError{Provider: "sim", Reason: "signal: killed"}}
	}
	return nil, nil
}

// TestConfigsAreCheckedAgainAfterALostProcess checks a ProviderConfig while the provider dies. The condition says so,
// and the queue gets an error, so that it tries again.
func TestConfigsAreCheckedAgainAfterALostProcess(t *testing.T) {
	known := catalog.New(nil)
	known.Put(catalog.Entry{Name: "sim", Schema: &schema.Provider{Config: &schema.Schema{Block: &schema.Block{}}}})
	c := &Configs{Catalog: known, Pool: &lostOnce{}}
	cfg := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "default"}, Spec: v1alpha1.ProviderConfigSpec{Provider: "sim"}}
	if reason, message, err := c.check(t.Context(), cfg); reason != v1alpha1.ReasonProviderNotReady || !strings.Contains(message, "signal: killed") || err == nil {
		t.Errorf("the process is lost: %q, %q, %v; want a reason and an error", reason, message, err)
	}
	if reason, _, err := c.check(t.Context(), cfg); reason != v1alpha1.ReasonConfigured || err != nil {
		t.Errorf("the next check: %q, %v", reason, err)
	}
}
