package planning

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/session"
)

// TestApprovedAccountsHaveNoWriters plans a create with a ProviderConfig that eve wrote. She contributes, unless another
// resource of the namespace was applied with the same arguments, and a person approved that.
func TestApprovedAccountsHaveNoWriters(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	cfg := w.ProviderConfigs["team/default"]
	cfg.Namespace = "team"
	cfg.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"config"}}}
	other := applied(w, "other", map[string]any{})
	r := w.Put("test-thing/new", map[string]any{}, nil)
	plan := func(when string, want []string) *node {
		t.Helper()
		s, err := plannerOf(w).loadSurvey(t.Context(), w.Plan())
		if err != nil {
			t.Fatal(err)
		}
		s.indexAddresses()
		n := s.nodes[s.byAddr[r.Address]]
		if got := contributor.Names(s.contributors(n)); !slices.Equal(got, want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, want)
		}
		return n
	}
	n := plan("nobody approved it", []string{"eve"})
	rec := w.Instance(other)
	rec.Account = ledger.AccountOf(n.config.Version, newAccounts(t.Context(), w.Sources, w.Plan()).configuration(n))
	if rec.Account == "" {
		t.Fatal("the account is unknown")
	}
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	plan("a person approved it", nil)
	cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region":"north"}`)}
	plan("she wrote it again", []string{"eve"})
}

// TestAnotherAccountHasUnknownWriters gives a provider other arguments than those that the survey found approved.
func TestAnotherAccountHasUnknownWriters(t *testing.T) {
	approved := ledger.Configuration{Arguments: "mine"}
	for arguments, want := range map[string][]string{"mine": nil, "eve's": {"others"}} {
		c := &ledger.Change{ConfigVersion: "v1", Account: ledger.AccountOf("v1", approved)}
		bindAccount(c, &session.Session{Digest: provider.Digest{Arguments: arguments}})
		if got := contributor.Names(c.Contributors); !slices.Equal(got, want) {
			t.Errorf("with the arguments %q, the contributors are %v, want %v", arguments, got, want)
		}
	}
}
