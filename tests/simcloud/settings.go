package simcloud

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Operations that latency, faults and the call log tell apart.
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

// Duration is a time.Duration that is written as "20ms" in JSON.
type Duration time.Duration

// MarshalText writes the duration as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration does, and refuses negative durations.
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

// Settings are how the cloud behaves until they are changed. The zero value is a fast, consistent cloud without limits.
type Settings struct {
	// Latency rules; the most specific one that matches a call counts.
	Latency []Latency `json:"latency,omitempty"`
	// Quotas are the most objects that may exist, by kind; a kind that is not there has no quota.
	Quotas map[string]int `json:"quotas,omitempty"`
	// Throttle bounds the calls per second over all kinds.
	Throttle Throttle `json:"throttle"`
	// Consistency says how late reads see writes.
	Consistency Consistency `json:"consistency"`
	// Provisioning is how long a new object has the status "pending", by kind; only kinds with a status have it.
	Provisioning map[string]Duration `json:"provisioning,omitempty"`
	// IgnoreClientTokens makes the cloud create a second object when a create comes twice with the same Client-Token.
	IgnoreClientTokens bool `json:"ignoreClientTokens,omitempty"`
	// Repeatable makes ids, addresses, secrets and times of new objects follow from their kind, their name and how many of that
	// name were made before, and not from the order of calls: two clouds then answer the same configuration alike. It is for
	// clouds in memory.
	Repeatable bool `json:"repeatable,omitempty"`
}

// Latency delays calls.
type Latency struct {
	// Kind and Op that are delayed; empty means any.
	Kind string `json:"kind,omitempty"`
	Op   string `json:"op,omitempty"`
	// Delay before the call is looked at, plus a random part of up to Jitter.
	Delay  Duration `json:"delay"`
	Jitter Duration `json:"jitter,omitempty"`
}

// Throttle is a token bucket; calls above it are answered with 429 and when to come back.
type Throttle struct {
	// RatePerSecond that the bucket is filled with; 0 means no limit.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// Burst is the size of the bucket; 0 means 1.
	Burst int `json:"burst,omitempty"`
}

// Consistency is how late reads and lists see writes. Writes, and the checks of what depends on what, are always strict.
type Consistency struct {
	// Create is how long a new object is not found.
	Create Duration `json:"create,omitempty"`
	// Update is how long the former version is still read.
	Update Duration `json:"update,omitempty"`
	// Delete is how long a deleted object is still read.
	Delete Duration `json:"delete,omitempty"`
}

// SetLatency adds a rule, or replaces the one for the same kind and operation; a rule without delay is removed.
func (s *Settings) SetLatency(rule Latency) {
	s.Latency = slices.DeleteFunc(s.Latency, func(l Latency) bool { return l.Kind == rule.Kind && l.Op == rule.Op })
	if rule.Delay > 0 || rule.Jitter > 0 {
		s.Latency = append(s.Latency, rule)
	}
}

// latency is the rule for a call: kind and operation, then the operation alone, then the kind alone, then any.
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

// own writes every kind by its own name, in maps of its own.
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

// validate refuses names that no call will ever have, so that a typo is told at once.
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

// checkKindOp accepts known names and, for each, empty as any.
func checkKindOp(kind, op string) error {
	if kind != "" && kind != "account" && kind != "image" && kindNamed(kind) == nil {
		return fmt.Errorf("no kind %q; there are %v", kind, KindNames())
	}
	if op != "" && !slices.Contains(OpNames(), op) {
		return fmt.Errorf("no operation %q; there are %v", op, OpNames())
	}
	return nil
}

// OpNames are the names of all operations.
func OpNames() []string {
	return []string{OpCreate, OpRead, OpList, OpUpdate, OpDelete, OpAttach, OpDetach, OpReboot, OpRenew, OpAccount}
}

// bucket is the token bucket of a Throttle; the caller holds the lock.
type bucket struct {
	tokens float64
	last   time.Time
}

// take takes a token, or says how long until there is one.
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
