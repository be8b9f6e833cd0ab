//go:build !linux

package cgroup

// Tree does not exist on this system.
type Tree struct {
	// Controllers and Missing are empty.
	Controllers, Missing []string
	// Root is empty.
	Root string
}

// Open returns ErrNotDelegated: only Linux has cgroups.
func Open(string, Limits) (*Tree, error) { return nil, ErrNotDelegated }

// Close does nothing.
func (*Tree) Close() {}

// Group does not exist on this system.
type Group struct{}

// Started does nothing.
func (*Group) Started() {}

// Kill does nothing.
func (*Group) Kill() {}

// Exhausted returns NotExhausted.
func (*Group) Exhausted() Exhaustion { return NotExhausted }

// Remove does nothing.
func (*Group) Remove() error { return nil }
