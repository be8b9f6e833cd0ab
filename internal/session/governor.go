package session

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The constants of the governor have the names of the paper on TCP CUBIC. Their values are those of the adaptive retry
// mode of the AWS SDKs: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
const (
	beta  = 0.7 // a throttled call multiplies the rate by this factor
	scale = 0.4 // the growth of the rate after that, in calls per second and cubic second
	// lowest is the lowest rate, in calls per second.
	lowest = 0.5
	// smooth is the weight of the latest measurement of the rate of calls.
	smooth = 0.8
	// measureEvery is the time between two such measurements.
	measureEvery = 500 * time.Millisecond
)

// governor adapts the rate of calls to the limit of the API behind a provider configuration. A throttled call lowers
// the rate, and successful calls raise it along a cubic function: first quickly, then slowly near the rate at which the
// API throttled last, and then quickly again. Until a call is throttled, there is no limit. All plans share it.
type governor struct {
	logger *slog.Logger
	now    func() time.Time // tests replace it
	rate   *rate.Limiter

	mu sync.Mutex
	// throttled is the time of the last throttled call that lowered the rate, and ceiling the rate before.
	throttled time.Time
	ceiling   float64
	// measured is the smoothed rate of the calls. calls counts the calls since the time in since.
	measured float64
	calls    int
	since    time.Time
}

func newGovernor(logger *slog.Logger) *governor {
	return &governor{logger: logger, now: time.Now, rate: rate.NewLimiter(rate.Inf, 1)}
}

// governed is a call that the governor admitted.
type governed struct{ at time.Time }

// wait waits until the API probably accepts another call.
func (g *governor) wait(ctx context.Context) (governed, error) {
	if err := g.rate.Wait(ctx); err != nil {
		return governed{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.measure(now)
	g.calls++
	return governed{now}, nil
}

// measure updates the measured rate.
func (g *governor) measure(now time.Time) {
	if g.since.IsZero() {
		g.since = now
	}
	if took := now.Sub(g.since); took >= measureEvery {
		g.measured = smooth*float64(g.calls)/took.Seconds() + (1-smooth)*g.measured
		g.since, g.calls = now, 0
	}
}

// answered adapts the rate to the answer to a call.
func (g *governor) answered(call governed, throttled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	switch {
	case throttled && !call.at.Before(g.throttled):
		g.measure(now)
		g.lower(now)
	case !throttled && !g.throttled.IsZero():
		g.measure(now)
		g.raise(now)
	}
}

// lower lowers the rate. Other calls that began before are throttled for the same reason, and do not count.
func (g *governor) lower(now time.Time) {
	current := float64(g.rate.Limit())
	g.ceiling = min(current, max(g.measured, float64(g.calls), lowest))
	g.throttled = now
	limit := max(lowest, beta*g.ceiling)
	g.rate.SetLimit(rate.Limit(limit))
	g.logger.Info("the API of the provider throttles calls, so the server limits them until the API accepts more",
		"callsPerSecond", math.Round(limit*10)/10)
}

// raise raises the rate, to at most twice the measured rate of calls.
func (g *governor) raise(now time.Time) {
	t := now.Sub(g.throttled).Seconds()
	k := math.Cbrt(g.ceiling * (1 - beta) / scale)
	limit := scale*math.Pow(t-k, 3) + g.ceiling
	limit = min(limit, max(2*g.measured, lowest))
	if limit > float64(g.rate.Limit()) {
		g.rate.SetLimit(rate.Limit(limit))
	}
}
