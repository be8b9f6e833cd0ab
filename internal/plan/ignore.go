package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// IgnoreChanges replaces the configured values at paths such as "tags", "tags.team" or "rule[0].port" by the prior
// ones, so that they do not change. "all" denotes every argument. It works on the configuration, before the provider
// plans: https://developer.hashicorp.com/terraform/language/meta-arguments/lifecycle#ignore_changes
func IgnoreChanges(block *schema.Block, config, prior cty.Value, ignored []string) (cty.Value, error) {
	if prior.IsNull() || config.IsNull() {
		return config, nil
	}
	var paths [][]string
	for _, text := range ignored {
		if text == "all" {
			return AsConfig(block, prior), nil
		}
		path, err := ignorePath(text)
		if err != nil {
			return cty.NilVal, fmt.Errorf("lifecycle.ignoreChanges: %w", err)
		}
		paths = append(paths, path)
	}
	return ignoreIn(config, prior, paths), nil
}

// ignorePath splits a path such as `tags["a.b"].c[0]` into its steps.
func ignorePath(text string) ([]string, error) {
	var steps []string
	rest := text
	for rest != "" {
		rest = strings.TrimPrefix(rest, ".")
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("%q: a bracket is not closed", text)
			}
			steps = append(steps, strings.Trim(rest[1:end], `"`))
			rest = rest[end+1:]
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q: not the path of an attribute", text)
		}
		steps = append(steps, rest[:end])
		rest = rest[end:]
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("an empty path ignores nothing")
	}
	return steps, nil
}

// ignoreIn replaces the values at the paths, which are relative to the two values, by those of prior.
func ignoreIn(config, prior cty.Value, paths [][]string) cty.Value {
	if len(paths) == 0 {
		return config
	}
	if slices.ContainsFunc(paths, func(p []string) bool { return len(p) == 0 }) {
		return prior
	}
	config, marks := config.Unmark()
	prior, _ = prior.Unmark()
	if config.IsKnown() && config.IsNull() && config.Type().IsMapType() {
		// A null map counts as empty here: a prior key that is ignored stays.
		if v := ignoreIn(cty.MapValEmpty(config.Type().ElementType()), prior, paths); v.LengthInt() > 0 {
			return v.WithMarks(marks)
		}
		return config.WithMarks(marks)
	}
	if !config.IsKnown() || config.IsNull() || !prior.IsKnown() || prior.IsNull() {
		return config.WithMarks(marks)
	}
	switch ty := config.Type(); {
	case ty.IsObjectType() || ty.IsMapType():
		return ignoreMembers(config, prior, paths).WithMarks(marks)
	case ty.IsListType() || ty.IsTupleType():
		return ignoreElements(config, prior, paths).WithMarks(marks)
	default:
		return config.WithMarks(marks)
	}
}

// below returns the rest of the paths that begin with a step.
func below(paths [][]string, step string) [][]string {
	var out [][]string
	for _, p := range paths {
		if p[0] == step {
			out = append(out, p[1:])
		}
	}
	return out
}

// ignoreMembers is ignoreIn for an object or a map. A path that ends at a key of a map also ignores the addition or
// removal of that key.
func ignoreMembers(config, prior cty.Value, paths [][]string) cty.Value {
	ty := config.Type()
	vals, old := config.AsValueMap(), prior.AsValueMap()
	if vals == nil {
		vals = map[string]cty.Value{}
	}
	for _, p := range paths {
		name := p[0]
		o, had := old[name]
		v, has := vals[name]
		switch {
		case had && has:
			vals[name] = ignoreIn(v, o, below(paths, name))
		case had && ty.IsMapType() && len(p) == 1:
			vals[name] = o
		case has && !had && ty.IsMapType() && len(p) == 1:
			delete(vals, name)
		}
	}
	switch {
	case ty.IsObjectType():
		return cty.ObjectVal(vals)
	case len(vals) == 0:
		return cty.MapValEmpty(ty.ElementType())
	default:
		return cty.MapVal(vals)
	}
}

// ignoreElements is ignoreIn for a list or a tuple.
func ignoreElements(config, prior cty.Value, paths [][]string) cty.Value {
	vals, old := config.AsValueSlice(), prior.AsValueSlice()
	for i := range min(len(vals), len(old)) {
		vals[i] = ignoreIn(vals[i], old[i], below(paths, fmt.Sprint(i)))
	}
	switch {
	case len(vals) == 0:
		return config
	case config.Type().IsTupleType():
		return cty.TupleVal(vals)
	default:
		return cty.ListVal(vals)
	}
}
