package changes

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// TestDigestHasAllThatIsApproved changes, one by one, what a person approves.
func TestDigestHasAllThatIsApproved(t *testing.T) {
	sum := func(change func(*ledger.Change)) string {
		c := &ledger.Change{Planned: []byte{1}, Preconditions: ledger.Preconditions{State: "s"}}
		c.Address, c.Action, c.ProviderConfig, c.ProviderVersion = "test_thing.a", v1alpha1.ActionUpdate, "default", "1.0.0"
		change(c)
		d := NewDigest()
		d.Add(Covered(c))
		return d.String()
	}
	before := sum(func(*ledger.Change) {})
	for what, change := range map[string]func(*ledger.Change){
		"index":               func(c *ledger.Change) { c.Index = 1 },
		"address":             func(c *ledger.Change) { c.Address = "test_thing.b" },
		"object":              func(c *ledger.Change) { c.Object.UID = "u" },
		"generation":          func(c *ledger.Change) { c.Object.Generation = 2 },
		"action":              func(c *ledger.Change) { c.Action = v1alpha1.ActionDelete },
		"planned value":       func(c *ledger.Change) { c.Planned = []byte{2} },
		"recorded state":      func(c *ledger.Change) { c.Preconditions.State = "t" },
		"deletion":            func(c *ledger.Change) { c.Preconditions.Deleting = true },
		"source of a move":    func(c *ledger.Change) { c.PreviousAddress = "test_thing.b" },
		"provider version":    func(c *ledger.Change) { c.ProviderVersion = "2.0.0" },
		"ProviderConfig":      func(c *ledger.Change) { c.ProviderConfig = "other" },
		"deposed instance":    func(c *ledger.Change) { c.Deposed = "abcd1234" },
		"createBeforeDestroy": func(c *ledger.Change) { c.CreateBeforeDestroy = true },
		"forget":              func(c *ledger.Change) { c.Forget = true },
		"import":              func(c *ledger.Change) { c.Importing = &v1alpha1.PlanImport{ID: "i-1"} },
		"checks":              func(c *ledger.Change) { c.Checks = true },
		"update of a record":  func(c *ledger.Change) { c.UpdatesRecord = true },
		"blocked":             func(c *ledger.Change) { c.Blocked = "why" },
	} {
		if sum(change) == before {
			t.Errorf("an approval covers another %s", what)
		}
	}
}
