package scope_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

// secretConfigs answers for the Secrets of ProviderConfigs.
type secretConfigs struct{ activitiestest.FakeConfigs }

func (secretConfigs) Secret(context.Context, string, string, string) ([]byte, error) {
	return []byte("hunter22-hunter22"), nil
}

// TestSecretsOfProviderConfigsAreHidden has a secret that does not fit its argument, so that no value of the
// configuration holds it.
func TestSecretsOfProviderConfigsAreHidden(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Configs = secretConfigs{activitiestest.FakeConfigs{World: w}}
	entry := catalog.Entry{Name: "test", Schema: activitiestest.Schema()}
	entry.Schema.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "port", Type: cty.Number, Optional: true}}}}
	w.Config(nil)
	cfg := w.ProviderConfigs["team/default"]
	cfg.Namespace = "team"
	cfg.Spec.SecretRefs = []v1alpha1.SecretArgument{{Argument: "port", Name: "db", Key: "port"}}
	s := w.NewScope(w.Plan(), "team", nil)
	_, err := s.Configuration(t.Context(), entry, cfg)
	if err == nil {
		t.Fatal("the configuration is accepted")
	}
	if got := s.Mask("port hunter22-hunter22 is none"); strings.Contains(got, "hunter22") {
		t.Errorf("got %q", got)
	}
}

// TestSensitiveArgumentsOfProviderConfigsAreHidden has an argument that the schema declares sensitive. A cached configuration hides
// it, too.
func TestSensitiveArgumentsOfProviderConfigsAreHidden(t *testing.T) {
	w := activitiestest.NewWorld(t)
	entry := catalog.Entry{Name: "test", Schema: activitiestest.Schema()}
	entry.Schema.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "token", Type: cty.String, Optional: true, Sensitive: true}}}}
	w.Config(nil)
	cfg := w.ProviderConfigs["team/default"]
	cfg.Namespace, cfg.Spec.Config = "team", &runtime.RawExtension{Raw: []byte(`{"token":"hunter22-hunter22"}`)}
	for range 2 {
		s := w.NewScope(w.Plan(), "team", nil)
		if _, err := s.Configuration(t.Context(), entry, cfg); err != nil {
			t.Fatal(err)
		}
		if got := s.Mask("the token hunter22-hunter22"); strings.Contains(got, "hunter22") {
			t.Errorf("got %q", got)
		}
	}
}
