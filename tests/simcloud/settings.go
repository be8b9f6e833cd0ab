package simcloud

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The operations that latency, faults and the log distinguish.
const (
	OpCreate  = "create"
	OpRead    = "read"
	OpList    = "list"
	OpUpdate  = "update"
	OpDelete  = "delete"
	OpAttach  = "attach"
	OpDetach  = "detach"
	OpReboot  = "reboot"
	OpRenew   = "renew"
	OpAccount = "account"
)

// Duration is a time.Duration whose JSON form is a string such as "20ms".
type Duration time.Duration

// MarshalText formats the duration as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses the duration as time.ParseDuration does. It rejects negative durations.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return err
	}
	if v < 0 {
		return fmt.Errorf("duration %q is negative", b)
	}
	*d = Duration(v)
	return nil
}

// Settings control how the cloud behaves. The zero value is a fast, consistent cloud without limits.
type Settings struct {
	// Latency holds the rules for delays. The most specific rule that matches a call applies.
	Latency []Latency `json:"latency,omitempty"`
	// Quotas holds the maximum number of objects, by kind. Other kinds have no quota.
	Quotas map[string]int `json:"quotas,omitempty"`
	// Throttle limits the calls per second, over all kinds.
	Throttle Throttle `json:"throttle"`
	// Consistency delays the effect of writes on reads.
	Consistency Consistency `json:"consistency"`
	// Provisioning is the time for which a new object has the status "pending", by kind. Only kinds with a status have
	// it.
	Provisioning map[string]Duration `json:"provisioning,omitempty"`
	// IgnoreClientTokens makes the cloud create a second object for a repeated create with the same Client-Token.
	IgnoreClientTokens bool `json:"ignoreClientTokens,omitempty"`
	// Repeatable derives the IDs, addresses, secrets and times of new objects from their kind, their name, and the
	// number of earlier objects with that name. They do not depend on the order of calls, so two clouds give the same
	// answers for one configuration. It is for clouds without a state file.
	Repeatable bool `json:"repeatable,omitempty"`
}

// Latency is the delay of some calls.
type Latency struct {
	// Kind and Op select calls; empty selects all.
	Kind string `json:"kind,omitempty"`
	Op   string `json:"op,omitempty"`
	// Delay comes before the effect of the call. A random part of up to Jitter is added.
	Delay  Duration `json:"delay"`
	Jitter Duration `json:"jitter,omitempty"`
}

// Throttle is a token bucket. Calls above the limit get 429 and the time after which to try again.
type Throttle struct {
	// RatePerSecond is the rate at which the bucket fills; 0 means no limit.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// Burst is the size of the bucket; 0 means 1.
	Burst int `json:"burst,omitempty"`
}

// Consistency is the delay after which reads and lists return a write. Writes, and the checks of dependencies, are
// always consistent.
type Consistency struct {
	// Create is the time for which a new object is not found.
	Create Duration `json:"create,omitempty"`
	// Update is the time for which reads return the former version.
	Update Duration `json:"update,omitempty"`
	// Delete is the time for which reads return a deleted object.
	Delete Duration `json:"delete,omitempty"`
}

// SetLatency adds a rule, or replaces the one for the same kind and operation. It removes a rule without a delay.
func (s *Settings) SetLatency(rule Latency) {
	s.Latency = slices.DeleteFunc(s.Latency, func(l Latency) bool { return l.Kind == rule.Kind && l.Op == rule.Op })
	if rule.Delay > 0 || rule.Jitter > 0 {
		s.Latency = append(s.Latency, rule)
	}
}

// latency returns the rule for a call: that for the kind and the operation, else for the operation, else for the kind,
// else for all.
func (s *Settings) latency(kind, op string) (rule Latency) {
	best := -1
	for _, l := range s.Latency {
		if l.Kind != "" && l.Kind != kind || l.Op != "" && l.Op != op {
			continue
		}
		score := 0
		if l.Kind != "" {
			score++
		}
		if l.Op != "" {
			score += 2
		}
		if score > best {
			best, rule = score, l
		}
	}
	return rule
}

// own replaces every kind by its canonical name, in new maps.
func (s Settings) own() Settings {
	s.Latency = slices.Clone(s.Latency)
	for i := range s.Latency {
		s.Latency[i].Kind = canonical(s.Latency[i].Kind)
	}
	quotas, provisioning := map[string]int{}, map[string]Duration{}
	for k, v := range s.Quotas {
		quotas[canonical(k)] = v
	}
	for k, v := range s.Provisioning {
		provisioning[canonical(k)] = v
	}
	s.Quotas, s.Provisioning = quotas, provisioning
	return s
}

// validate rejects unknown names, so that a misspelling causes an error at once.
func (s *Settings) validate() error {
	for i, l := range s.Latency {
		if err := checkKindOp(l.Kind, l.Op); err != nil {
			return fmt.Errorf("latency[%d]: %w", i, err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Quotas)) {
		if err := checkKindOp(k, ""); err != nil {
			return fmt.Errorf("quotas: %w", err)
		}
		if s.Quotas[k] < 0 {
			return fmt.Errorf("quotas: %s: %d is negative", k, s.Quotas[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Provisioning)) {
		if err := checkKindOp(k, ""); err != nil {
			return fmt.Errorf("provisioning: %w", err)
		}
	}
	if s.Throttle.RatePerSecond < 0 || s.Throttle.Burst < 0 {
		return fmt.Errorf("throttle: a rate or a burst cannot be negative")
	}
	return nil
}

// checkKindOp accepts known names. An empty name means any.
func checkKindOp(kind, op string) error {
	if kind != "" && kind != "account" && kind != "image" && kindNamed(kind) == nil {
		return fmt.Errorf("no kind %q; there are %v", kind, KindNames())
	}
	if op != "" && !slices.Contains(OpNames(), op) {
		return fmt.Errorf("no operation %q; there are %v", op, OpNames())
	}
	return nil
}

// OpNames returns the names of all operations.
func OpNames() []string {
	return []string{OpCreate, OpRead, OpList, OpUpdate, OpDelete, OpAttach, OpDetach, OpReboot, OpRenew, OpAccount}
}

// bucket is the token bucket of a Throttle. It requires the lock of the cloud.
type bucket struct {
	tokens float64
	last   time.Time
}

// take takes a token, or returns the time until there is one.
func (b *bucket) take(t Throttle, now time.Time) (wait time.Duration, ok bool) {
	if t.RatePerSecond <= 0 {
		return 0, true
	}
	size := float64(max(t.Burst, 1))
	if b.last.IsZero() {
		b.tokens = size
	} else {
		b.tokens = min(size, b.tokens+now.Sub(b.last).Seconds()*t.RatePerSecond)
	}
	b.last = now
	if b.tokens >= 1 {
		b.tokens--
		return 0, true
	}
	return time.Duration((1 - b.tokens) / t.RatePerSecond * float64(time.Second)), false
}
