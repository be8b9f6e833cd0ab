package session

import (
	"log/slog"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// api takes a number of calls per second and throttles the others.
type api struct {
	perSecond float64
	tokens    float64
	at        time.Time
}

func (a *api) throttles(now time.Time) bool {
	a.tokens = min(a.perSecond, a.tokens+now.Sub(a.at).Seconds()*a.perSecond)
	a.at = now
	if a.tokens < 1 {
		return true
	}
	a.tokens--
	return false
}

// TestAGovernorLearnsTheRateOfAnAPI makes calls without a pause, in simulated time. Before the API throttles, nothing
// limits the calls. Then most calls succeed, and the API is used almost wholly. When it takes more, the rate follows.
func TestAGovernorLearnsTheRateOfAnAPI(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGovernor(slog.New(slog.DiscardHandler))
	g.now = func() time.Time { return now }
	server := &api{perSecond: 20, at: now, tokens: 20}
	run := func(length time.Duration) (made, throttled int) {
		for end := now.Add(length); now.Before(end); {
			if limit := g.rate.Limit(); limit == rate.Inf {
				now = now.Add(time.Millisecond) // as fast as the caller can
			} else {
				now = now.Add(time.Duration(float64(time.Second) / float64(limit)))
			}
			g.mu.Lock()
			g.measure(now)
			g.calls++
			call := governed{now}
			g.mu.Unlock()
			refused := server.throttles(now)
			g.answered(call, refused)
			if made++; refused {
				throttled++
			}
		}
		return made, throttled
	}
	if g.rate.Limit() != rate.Inf {
		t.Error("a governor limits an API that never throttled")
	}
	run(30 * time.Second) // learn
	made, throttled := run(time.Minute)
	if done := made - throttled; float64(throttled) > 0.1*float64(made) || done < 60*20*7/10 {
		t.Errorf("in a minute, %d calls were made and %d throttled, of an API that takes %d", made, throttled, 60*20)
	}
	server.perSecond = 100
	run(30 * time.Second)
	made, throttled = run(time.Minute)
	if done := made - throttled; float64(throttled) > 0.1*float64(made) || done < 60*100*7/10 {
		t.Errorf("of the faster API: in a minute, %d calls were made and %d throttled, of %d", made, throttled, 60*100)
	}
}

// TestOneBurstLowersTheRateOnce throttles many calls that began together. They say the same thing.
func TestOneBurstLowersTheRateOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGovernor(slog.New(slog.DiscardHandler))
	g.now = func() time.Time { return now }
	var calls []governed
	for range 16 {
		call, err := g.wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	now = now.Add(100 * time.Millisecond)
	for _, call := range calls {
		g.answered(call, true)
	}
	if got, want := float64(g.rate.Limit()), beta*16; got < want-0.01 || got > want+0.01 {
		t.Errorf("%.1f calls per second, want %.1f", got, want)
	}
}
