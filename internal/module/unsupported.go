package module

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// This file refuses what the loader reads and what plans do not carry out yet. Nothing of a module is ever left out
// silently.

const summaryUnsupported = "Not supported yet"

// Digest returns the digest of the files.
func (t *Tree) Digest() [32]byte { return t.digest }

// Unsupported returns an error for each part of a tree that plans do not carry out yet, with its position.
func (t *Tree) Unsupported() diag.Diagnostics {
	var u unsupported
	for name, content := range t.files {
		if strings.Contains(string(content), "provider::") {
			u.diags = append(u.diags, diag.Errorf(name, summaryUnsupported,
				"A Module cannot call functions of providers yet."))
		}
	}
	u.config(t.Root)
	return sorted(u.diags)
}

type unsupported struct{ diags diag.Diagnostics }

func (u *unsupported) add(r hcl.Range, text string) {
	u.diags = append(u.diags, diag.Errorf(placeOf(r), summaryUnsupported, "%s", text))
}

func (u *unsupported) config(c *Config) {
	for _, b := range c.Blocks {
		u.block(b)
	}
	for _, k := range c.Checks {
		for _, a := range k.Assertions {
			u.pure(a.Condition)
		}
	}
	for _, p := range c.Providers {
		if p.ForEach != nil {
			u.add(p.Range, "A Module cannot have provider configurations with for_each yet.")
		}
	}
	for _, e := range c.Locals {
		u.pure(e)
	}
	for _, o := range c.Outputs {
		u.pure(o.Value)
		if o.Ephemeral {
			u.add(o.Range, "A Module cannot have ephemeral outputs yet.")
		}
	}
	for _, v := range c.Variables {
		if v.Ephemeral {
			u.add(v.Range, "A Module cannot have ephemeral variables yet.")
		}
	}
	for _, call := range c.Calls {
		for _, e := range call.Arguments {
			u.pure(e)
		}
		u.repetition(&call.Repetition)
		for _, p := range call.Providers {
			if p.Outer.Key != nil {
				u.add(call.Range, "A Module cannot choose provider configurations by key yet.")
			}
		}
	}
	for _, child := range c.Children {
		u.config(child)
	}
}

func (u *unsupported) block(b *Block) {
	l := &b.Lifecycle
	switch {
	case b.Mode == v1alpha1.ModeEphemeral:
		u.add(b.Range, "A Module cannot have ephemeral resources yet.")
	case b.Check != "":
		u.add(b.Range, "A check block of a Module cannot have a data source yet. Put the data source outside of the check block.")
	case b.Mode == v1alpha1.ModeAction || len(l.Triggers) > 0:
		u.add(b.Range, "A Module cannot have actions and action triggers yet.")
	case b.Provider != nil && b.Provider.Key != nil:
		u.add(b.Range, "A Module cannot choose provider configurations by key yet.")
	}
	for _, e := range []*Expr{l.PreventDestroy, l.Destroy} {
		if e != nil {
			if _, constant := e.Value.(bool); !constant {
				u.add(e.Range, "prevent_destroy and destroy must be true or false in a Module, and no other expression yet.")
			}
		}
	}
	u.repetition(&b.Repetition)
}

func (u *unsupported) repetition(r *Repetition) {
	for _, e := range []*Expr{r.Count, r.ForEach, r.Enabled} {
		u.pure(e)
	}
}

// pure refuses an expression with another value in each evaluation: a plan would not see that it changed.
func (u *unsupported) pure(e *Expr) {
	if e != nil && e.parsed != nil && e.parsed.Impure() {
		u.add(e.Range, "A value of a Module cannot call a function such as timestamp() or uuid() yet, except in the argument of a resource.")
	}
}
