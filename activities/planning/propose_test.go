package planning

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/session"
)

// TestReadsPerSecond reads with a budget of ten reads a second.
func TestReadsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr := &proposal{reads: readLimiter(&v1alpha1.PlanSpec{ReadBudget: &v1alpha1.ReadBudget{ReadsPerSecond: 10}})}
		began := time.Now()
		for range 21 {
			if err := pr.awaitRead(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 1990*time.Millisecond || took > 2010*time.Millisecond {
			t.Errorf("21 reads take %s, want 2s", took)
		}
		unlimited := &proposal{reads: readLimiter(&v1alpha1.PlanSpec{ReadBudget: &v1alpha1.ReadBudget{MaxReads: 1}})}
		if err := unlimited.awaitRead(t.Context()); err != nil || unlimited.reads != nil {
			t.Errorf("a budget without a rate limits the rate: %v", err)
		}
	})
}

// TestAPlanGivesUpAsking calls a provider that is never available, with a fake clock.
func TestAPlanGivesUpAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := retryTransient(t.Context(), func() error {
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
