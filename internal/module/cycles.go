package module

import (
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// This file finds named values that depend on each other, in all modules together. Those that depend on each other
// through resources are the planner's.

// valueID identifies a named value of a tree: in which module it is declared, and its name.
type valueID struct {
	config *Config
	mode   v1alpha1.Mode
	name   string
}

// cycles reports each cycle once.
func (t *Tree) cycles() diag.Diagnostics {
	c := &cycleFinder{state: map[valueID]int{}}
	var visit func(*Config)
	visit = func(config *Config) {
		for _, name := range sortedKeys(config.Locals) {
			c.visit(valueID{config, lang.ModeLocal, name})
		}
		for _, name := range sortedKeys(config.Outputs) {
			c.visit(valueID{config, lang.ModeOutput, name})
		}
		for _, name := range sortedKeys(config.Children) {
			child := config.Children[name]
			for _, variable := range sortedKeys(child.Variables) {
				c.visit(valueID{child, lang.ModeVariable, variable})
			}
			visit(child)
		}
	}
	c.parents = map[*Config]*Config{}
	t.Root.each(func(config *Config) {
		for _, child := range config.Children {
			c.parents[child] = config
		}
	})
	visit(t.Root)
	return c.diags
}

// each calls f for a module and all modules below it.
func (c *Config) each(f func(*Config)) {
	f(c)
	for _, name := range sortedKeys(c.Children) {
		c.Children[name].each(f)
	}
}

type cycleFinder struct {
	parents map[*Config]*Config
	// state is 1 for a value whose references are being followed, and 2 afterwards.
	state map[valueID]int
	path  []valueID
	diags diag.Diagnostics
}

func (c *cycleFinder) visit(id valueID) {
	switch c.state[id] {
	case 1:
		c.report(c.path[slices.Index(c.path, id):])
		return
	case 2:
		return
	}
	c.state[id] = 1
	c.path = append(c.path, id)
	for _, next := range c.next(id) {
		c.visit(next)
	}
	c.path = c.path[:len(c.path)-1]
	c.state[id] = 2
}

func (c *cycleFinder) report(cycle []valueID) {
	names := make([]string, len(cycle))
	for i, id := range cycle {
		names[i] = id.String()
	}
	at := cycle[0].config.placeOf(lang.Address{Mode: cycle[0].mode, Name: cycle[0].name})
	c.diags = append(c.diags, diag.Errorf(at, "Cycle",
		"These values depend on each other: %s. Remove one of the references.", strings.Join(names, ", ")))
}

// String returns the address of the value, without keys.
func (id valueID) String() string {
	out := ""
	for _, call := range id.config.Path {
		out += "module." + call + "."
	}
	return out + string(id.mode) + "." + id.name
}

// next lists the named values to which the expression of a value refers.
func (c *cycleFinder) next(id valueID) []valueID {
	switch id.mode {
	case lang.ModeLocal:
		return c.references(id.config.Locals[id.name], id.config)
	case lang.ModeOutput:
		if out := id.config.Outputs[id.name]; out != nil {
			return c.references(out.Value, id.config)
		}
	case lang.ModeVariable:
		if parent := c.parents[id.config]; parent != nil {
			return c.references(parent.Calls[id.config.Path[len(id.config.Path)-1]].Arguments[id.name], parent)
		}
	}
	return nil
}

func (c *cycleFinder) references(e *Expr, config *Config) []valueID {
	if e == nil || e.parsed == nil {
		return nil
	}
	var out []valueID
	for _, r := range e.parsed.References() {
		switch r.Mode {
		case lang.ModeLocal, lang.ModeVariable:
			out = append(out, valueID{config, r.Mode, r.Name})
		case lang.ModeOutput:
			call, _, _ := r.Called().Set()
			if child := config.Children[call.Name]; child != nil {
				out = append(out, valueID{child, lang.ModeOutput, r.Name})
			}
		case lang.ModeModule:
			call, _, _ := r.Address.Set()
			if child := config.Children[call.Name]; child != nil {
				for _, name := range sortedKeys(child.Outputs) {
					out = append(out, valueID{child, lang.ModeOutput, name})
				}
			}
		}
	}
	return out
}
