package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// cause returns a short reason for a change: the attribute that forces a replace, the attributes of an update, or the
// reason of a destroy. shape omits the values, so that changes with equal shapes can share one line. text has the
// values.
func cause(c *v1alpha1.PlanChange) (shape, text string) {
	shape, text = changeCause(c)
	// A move or an import accompanies the change and is not its cause.
	if moves(c) {
		shape, text = appendNote(shape, "(moved)"), appendNote(text, "(moved from "+Clean(c.PreviousAddress, false)+")")
	}
	if c.Importing != nil {
		shape, text = appendNote(shape, "(imported)"), appendNote(text, "(imported from "+importedFrom(c.Importing)+")")
	}
	if d := disclosures(c); len(d) > 0 {
		shape, text = appendNote(shape, "(gives secrets of other objects to a provider)"),
			appendNote(text, "("+d[0]+")")
	}
	return shape, text
}

func appendNote(text, note string) string { return strings.TrimSpace(text + " " + note) }

// changeCause returns the cause of a change, without a note about a move or an import.
func changeCause(c *v1alpha1.PlanChange) (shape, text string) {
	b, a := before(c), after(c)
	var paths []string
	switch c.Action {
	case "":
		return "(could not be planned)", "(could not be planned)"
	case v1alpha1.ActionNoOp, v1alpha1.ActionInvoke:
		if rewrites(c) {
			return "(new expressions)", "(new expressions)"
		}
		return "", ""
	case v1alpha1.ActionForget:
		_, why := forgets(c)
		return "(" + why + ")", "(" + why + ")"
	case v1alpha1.ActionReplace:
		paths = slices.Sorted(maps.Keys(replacePaths(c)))
		if len(paths) == 0 {
			switch c.ActionReason {
			case "replace_by_request":
				return "(as requested)", "(as requested)"
			case "replace_because_tainted":
				return "(tainted)", "(tainted)"
			case "replace_by_triggers":
				return "(due to replaceTriggeredBy)", "(due to replaceTriggeredBy)"
			}
			return parenthesised(c.ActionReason), parenthesised(c.ActionReason)
		}
	case v1alpha1.ActionDelete:
		if why := reason(c); why != "" {
			return "(" + why + ")", "(" + why + ")"
		}
		return "", ""
	case v1alpha1.ActionUpdate, v1alpha1.ActionRead:
		if readsData(c) {
			return parenthesised(c.ActionReason), parenthesised(c.ActionReason)
		}
		if paths = differing(b, a, ""); len(paths) == 0 && c.Action == v1alpha1.ActionUpdate {
			return unseen(b, a)
		}
	}
	// Drift comes first, so that the text does not leave it out.
	slices.SortStableFunc(paths, func(x, y string) int { return cmp.Compare(b2i(!drifted(c, x)), b2i(!drifted(c, y))) })
	values := make([]string, len(paths))
	for i, p := range paths {
		values[i] = arrow(p, lookup(b, p), lookup(a, p))
		paths[i] = Clean(p, false)
		if drifted(c, p) {
			values[i], paths[i] = values[i]+" (drifted)", paths[i]+" (drifted)"
		}
	}
	return firstThree(paths), firstThree(values)
}

// drifted reports whether the attribute at a path, or a part of it, changed outside of Hykube.
func drifted(c *v1alpha1.PlanChange, path string) bool {
	within := func(part, whole string) bool {
		rest, ok := strings.CutPrefix(part, whole)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	// All differences of a refresh are drift, so a mark would add nothing.
	return c.Action != v1alpha1.ActionRead && slices.ContainsFunc(c.Drift,
		func(d string) bool { return within(d, path) || within(path, d) })
}

// ReplaceCause returns the reason why a change replaces or destroys its resource: all attributes that force the
// replacement, or the reason of the action.
func ReplaceCause(c *v1alpha1.PlanChange) string {
	paths := slices.Sorted(maps.Keys(replacePaths(c)))
	if len(paths) == 0 {
		shape, _ := changeCause(c)
		return cmp.Or(shape, string(c.Action))
	}
	verb := " forces"
	if len(paths) > 1 {
		verb = " force"
	}
	return Clean(strings.Join(paths, ", "), false) + verb + " the replacement"
}

// unseen returns the cause of an update in which no known value differs. A value is known only after apply, or null
// became empty, or the provider does not show its reason.
func unseen(b, a map[string]any) (shape, text string) {
	var unknown, empty []string
	for _, k := range unionKeys(b, a) {
		switch {
		case isUnknown(a[k]):
			unknown = append(unknown, Clean(k, false))
		case !equal(b[k], a[k]):
			empty = append(empty, Clean(k, false))
		}
	}
	switch {
	case len(unknown) > 0:
		text = firstThree(unknown) + " (known after apply)"
	case len(empty) > 0:
		text = firstThree(empty)
	default:
		text = "(the provider plans an update, but no visible value differs)"
	}
	return text, text
}

// differing returns the paths at which two objects differ, down to the entries of maps. It omits a computed value that
// is unknown, because that is an effect of another change.
func differing(b, a map[string]any, path string) []string {
	var out []string
	for _, k := range unionKeys(b, a) {
		at := join(path, k)
		bm, bok := b[k].(map[string]any)
		am, aok := a[k].(map[string]any)
		switch {
		case equal(b[k], a[k]), isEmpty(b[k]) && isEmpty(a[k]), isUnknown(a[k]):
		case bok && aok:
			out = append(out, differing(bm, am, at)...)
		default:
			out = append(out, at)
		}
	}
	return out
}

// isUnknown reports whether a value is known only after apply.
func isUnknown(v any) bool {
	if s, ok := v.(sensitive); ok {
		return s.unknown
	}
	_, ok := v.(unknown)
	return ok
}

// arrow returns "path: old -> new" for short values, and only the path for others.
func arrow(path string, b, a any) string {
	path = Clean(path, false)
	if isContainer(b) || isContainer(a) || isSecret(b) || isSecret(a) || b == nil && a == nil {
		return path
	}
	text := fmt.Sprintf("%s: %s -> %s", path, scalar(b), scalar(a))
	if len(text) > 60 {
		return path
	}
	return text
}

// firstThree joins at most three texts, and counts the others.
func firstThree(parts []string) string {
	if len(parts) > 3 {
		return strings.Join(parts[:3], ", ") + fmt.Sprintf(" and %d more", len(parts)-3)
	}
	return strings.Join(parts, ", ")
}

func parenthesised(reason string) string {
	if why := reasonText(reason); why != "" {
		return "(" + why + ")"
	}
	return ""
}

// lookup returns the value at a path that join built.
func lookup(v any, path string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if x, ok := m[path]; ok {
		return x
	}
	for i := range path {
		switch path[i] {
		case '.':
			if x, ok := m[path[:i]]; ok {
				return lookup(x, path[i+1:])
			}
		case '[':
			if x, ok := m[path[:i]]; ok {
				return lookupIndex(x, path[i:])
			}
		}
	}
	return nil
}

func lookupIndex(v any, path string) any {
	l, ok := v.([]any)
	var i int
	if _, err := fmt.Sscanf(path, "[%d]", &i); err != nil || !ok || i >= len(l) {
		return nil
	}
	rest := path[strings.IndexByte(path, ']')+1:]
	switch {
	case rest == "":
		return l[i]
	case rest[0] == '[':
		return lookupIndex(l[i], rest)
	}
	return lookup(l[i], strings.TrimPrefix(rest, "."))
}

// driftNote describes how a resource changed outside of Hykube, with the symbol for it.
func driftNote(c *v1alpha1.PlanChange) (sym, note string) {
	name := Name(c)
	switch {
	case len(c.Drift) == 0:
		return "", ""
	case slices.Contains(c.Drift, v1alpha1.DriftRemoved), c.Action == v1alpha1.ActionCreate,
		c.Action == v1alpha1.ActionRead && decode(c.After) == nil:
		return "-", name + " is gone"
	}
	paths := make([]string, len(c.Drift))
	for i, p := range c.Drift {
		paths[i] = Clean(p, false)
	}
	return "~", name + ": " + firstThree(paths)
}

// drift collects a limited number of lines about changes outside of Hykube.
type drift struct {
	style Style
	lines []string
	total int
	// records holds the names of the first resources whose record alone changes.
	records []string
}

func (d *drift) add(c *v1alpha1.PlanChange, maxLines int) {
	if c.UpdatesRecord && len(d.records) <= maxRecords {
		d.records = append(d.records, Name(c))
	}
	sym, note := driftNote(c)
	if note == "" {
		return
	}
	d.total++
	if len(d.lines) < maxLines {
		d.lines = append(d.lines, "  "+d.style.symbol(sym)+" "+note)
	}
}

// maxRecords is the maximum number of names in the line about resources whose record alone changes.
const maxRecords = 3

// recorded returns a line about the n resources whose record the apply updates without any other effect. Terraform
// refreshes such records silently.
func (d *drift) recorded(n int32) []string {
	if n == 0 {
		return nil
	}
	names := strings.Join(d.records[:min(len(d.records), maxRecords)], ", ")
	if int(n) > maxRecords {
		names += ", …"
	}
	return []string{d.style.Dim(fmt.Sprintf("%s: only the recorded state is updated (%s)", Plural(int(n), "resource"),
		names)), ""}
}

func (d *drift) section() []string {
	if d.total == 0 {
		return nil
	}
	out := []string{d.style.Bold(d.style.Cyan("Note:")) +
		" these resources changed outside of Hykube since the last read:"}
	for i, l := range d.lines {
		if i == 10 && d.total > 11 {
			out = append(out, fmt.Sprintf("  … and %s more", Count(d.total-10)))
			break
		}
		out = append(out, l)
	}
	return append(out, "")
}
