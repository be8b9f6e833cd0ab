package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/api/meta"
)

// TestAnUnconfiguredProviderIsGuarded plans with a provider that would take its credentials from the server's environment. It takes the right
// to the default ProviderConfig, although there is none.
func TestAnUnconfiguredProviderIsGuarded(t *testing.T) {
	provides := func(tn *crashScenario, config ...*schema.Attribute) {
		s := *cloudSchema()
		s.Config = &schema.Schema{Block: &schema.Block{Attributes: config}}
		tn.Catalog.Put(catalog.Entry{Name: "test", Schema: &s, Package: provider.Package{Version: "1.0.0"}})
	}
	for _, takes := range []bool{true, false} {
		for lost, phase := range map[string]int{"": 0, "ann!team/providerconfigs/default": surveying, "bob!team/providerconfigs/default": beginning} {
			tn := newCrashScenario(t)
			provides(tn)
			if takes {
				provides(tn, &schema.Attribute{Name: "region", Type: cty.String, Optional: true})
			}
			things("a")(tn)
			run := tn.newRun()
			if phase == surveying {
				tn.Forbidden[lost] = lost != ""
			}
			po := tn.until(run, approving)
			refused := takes && lost != "" && phase == surveying
			if failed := meta.IsStatusConditionFalse(po.Status.Conditions, v1alpha1.ConditionPlanned); failed != refused {
				t.Fatalf("takes configuration %t, without %q: failed %t: %+v", takes, lost, failed, po.Status)
			}
			if refused {
				if said := tn.said(po); !strings.Contains(said, `"ann" may not use the ProviderConfig "default"`) {
					t.Errorf("said %q", said)
				}
				continue
			}
			found, err := changes.Verify(t.Context(), tn.Sources, po)
			if err != nil || takes != strings.Contains(rightsText(found), `use the ProviderConfig "default"`) {
				t.Errorf("takes configuration %t: an approval takes %s, %v", takes, rightsText(found), err)
			}
			tn.until(run, beginning)
			po.Status.Approval.By = &v1alpha1.Identity{Username: "bob"}
			tn.Forbidden[lost] = lost != ""
			tn.resume(run)
			made := tn.changeOf(run, 0).State == v1alpha1.ChangeDone
			if want := !takes || lost == ""; made != want {
				t.Errorf("takes configuration %t, without %q: made %t: %s", takes, lost, made, tn.changeOf(run, 0).Message)
			}
		}
	}
}

func rightsText(found changes.Verification) string {
	var texts []string
	for _, r := range found.Rights {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}
