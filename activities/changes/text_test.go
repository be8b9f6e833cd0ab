package changes

import (
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// TestALostCreateNamesWhatToLeaveOut expects the command that plans the other resources. A set may have many such instances.
func TestALostCreateNamesWhatToLeaveOut(t *testing.T) {
	for want, ref := range map[string]v1alpha1.ObjectReference{
		"kubectl hykube plan --exclude sim_network.one -n team": {Kind: "sim-network", Namespace: "team", Name: "one"},
		`kubectl hykube plan --exclude 'sim_network.net[3]' -n team, or --exclude sim_network.net for all instances of the ResourceSet "nets"`: {
			Kind: "sim-network", Namespace: "team", Name: "net[3]", Set: "nets",
		},
	} {
		r := &resource.Resource{Address: lang.Address{Type: "sim_network", Name: ref.Name}, Ref: ref}
		err := LostCreate(r, &ledger.Instance{Intent: &ledger.Intent{At: time.Unix(1, 0)}})
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %q, want the end %q", err, want)
		}
	}
}
