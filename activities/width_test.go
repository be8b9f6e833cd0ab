package activities

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/session"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestAPlanMakesAtMost32CallsAtOnce has a ProviderConfig that permits more.
func TestAPlanMakesAtMost32CallsAtOnce(t *testing.T) {
	sc := newCrashScenario(t)
	sc.ProviderConfigs["team/test"].Spec.Limits = &v1alpha1.Limits{Concurrency: 2 * session.Width}
	var names []string
	for i := range 3 * session.Width {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	things(names...)(sc)
	var mu sync.Mutex
	running, most, full := 0, 0, make(chan struct{})
	sc.says(func(*tfprotov6.PlanResourceChangeResponse) {
		mu.Lock()
		running++
		if most = max(most, running); most == session.Width && running == most {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(time.Minute):
		}
		mu.Lock()
		running--
		mu.Unlock()
	}, nil)
	if sc.apply(); most != 32 {
		t.Errorf("%d calls at once", most)
	}
}
