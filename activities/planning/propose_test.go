package planning

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/session"
)

// TestAPlanGivesUpAsking calls a provider that is never available, with a fake clock.
func TestAPlanGivesUpAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := again(t.Context(), func() error {
			if asked++; asked > session.Attempts {
				return errors.New("asked once more")
			}
			return &diag.Failure{Kind: diag.Unreachable, Cause: &provider.UnavailableError{}}
		})
		if _, lost := errors.AsType[*provider.UnavailableError](err); !lost || asked != session.Attempts {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}
