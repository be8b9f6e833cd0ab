package planning

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/runtime"
)

// contents hashes the effect of a plan's changes, independent of their order and of UIDs, generations and versions.
// Without the key, the hash reveals nothing about the values.
type contents struct {
	key  []byte
	sums [][]byte
}

func (s *contents) add(c *ledger.Change) {
	if changes.HasNoSteps(c) && c.State != v1alpha1.ChangeSkipped && c.State != v1alpha1.ChangeFailed {
		return
	}
	h := hmac.New(sha256.New, s.key)
	// Encoding plain strings, numbers and bytes into a hash cannot fail.
	_ = json.NewEncoder(h).Encode(struct {
		Address, From, Deposed, Provider, Config string
		Mode                                     v1alpha1.Mode
		Action                                   v1alpha1.Action
		State                                    v1alpha1.ChangeState
		Prior                                    string
		Planned, PlannedSensitive                []byte
		Before, After, AfterUnknown, Paths       *runtime.RawExtension
		First, Forget, Checks                    bool
		Import                                   *v1alpha1.PlanImport
	}{
		c.Address, c.PreviousAddress, c.Deposed, c.Provider, c.ProviderConfig, c.Mode, c.Action, c.State, c.Preconditions.State,
		c.Planned, c.PlannedSensitive, c.Before, c.After, c.AfterUnknown, c.ReplacePaths, c.CreateBeforeDestroy, c.Forget, c.Checks, c.Importing,
	})
	s.sums = append(s.sums, h.Sum(nil))
}

func (s *contents) String() string {
	slices.SortFunc(s.sums, slices.Compare)
	h := hmac.New(sha256.New, s.key)
	for _, sum := range s.sums {
		h.Write(sum)
	}
	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}
