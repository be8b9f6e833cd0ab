package diff

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Masked is the text with which the server replaces a secret value.
const Masked = "(sensitive value)"

// A value is nil, bool, json.Number, string, map[string]any, []any, or one of these two.
type (
	unknown struct{}
	// sensitive is a secret. The server masks both sides of a change, so they count as equal. changes is true if the
	// values differ. unknown is true if the new value is known only after apply. from names the objects that the secret
	// comes from; empty for none.
	sensitive struct {
		changes, unknown bool
		from             string
	}
)

// text returns what takes the place of the secret.
func (s sensitive) text() string {
	if s.from == "" {
		return Masked
	}
	return "(sensitive value of " + s.from + ")"
}

// decode decodes raw JSON. It returns nil if there is none or it is invalid.
func decode(raw *runtime.RawExtension) any {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	return v
}

// combine applies the marks of Terraform's JSON plan (true where a value is unknown or secret) to a value.
func combine(v, unk, sens any) any {
	if sens == true && (v != nil || unk == true) { // null is not a secret
		return sensitive{unknown: unk == true}
	}
	if unk == true {
		return unknown{}
	}
	if v == Masked {
		return sensitive{}
	}
	switch v := v.(type) {
	case map[string]any:
		return combineMap(v, unk, sens)
	case []any:
		return combineList(v, unk, sens)
	case nil:
		// The value omits unknown parts, so a container may exist in the marks alone.
		switch u := unk.(type) {
		case map[string]any:
			if hasTrue(u) {
				return combineMap(nil, unk, sens)
			}
		case []any:
			if hasTrue(u) {
				return combineList(nil, unk, sens)
			}
		}
	}
	return v
}

func combineMap(v map[string]any, unk, sens any) any {
	u, _ := unk.(map[string]any)
	s, _ := sens.(map[string]any)
	out := make(map[string]any, len(v))
	for k, x := range v {
		out[k] = combine(x, u[k], s[k])
	}
	for k, x := range u {
		if _, ok := v[k]; !ok && hasTrue(x) {
			out[k] = combine(nil, x, s[k])
		}
	}
	return out
}

func combineList(v []any, unk, sens any) any {
	u, _ := unk.([]any)
	s, _ := sens.([]any)
	at := func(l []any, i int) any {
		if i < len(l) {
			return l[i]
		}
		return nil
	}
	out := make([]any, 0, max(len(v), len(u)))
	for i := range max(len(v), len(u)) {
		out = append(out, combine(at(v, i), at(u, i), at(s, i)))
	}
	return out
}

func hasTrue(marks any) bool {
	switch m := marks.(type) {
	case bool:
		return m
	case map[string]any:
		for _, x := range m {
			if hasTrue(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(m, hasTrue)
	}
	return false
}

// before and after return a change's two values with their marks.
func before(c *v1alpha1.PlanChange) map[string]any {
	m, _ := combine(decode(c.Before), nil, decode(c.BeforeSensitive)).(map[string]any)
	return m
}

func after(c *v1alpha1.PlanChange) map[string]any {
	m, _ := combine(decode(c.After), decode(c.AfterUnknown), decode(c.AfterSensitive)).(map[string]any)
	for _, path := range steps(c.SecretsChanged) {
		edit(m, path, func(s *sensitive) { s.changes = true })
	}
	for _, secret := range c.Secrets {
		if path, _ := decode(secret.Path).([]any); len(path) > 0 {
			edit(m, path, func(s *sensitive) { s.from = sources(secret.From) })
		}
	}
	return m
}

// sources lists the objects that a secret comes from.
func sources(from []string) string { return Clean(strings.Join(from, ", "), false) }

// edit edits the secret at a path, or the one that the path leads into.
func edit(v any, path []any, change func(*sensitive)) {
	at := func(inner any, set func(any)) {
		if s, ok := inner.(sensitive); ok {
			change(&s)
			set(s)
		} else if len(path) > 1 {
			edit(inner, path[1:], change)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		k := fmt.Sprint(path[0])
		at(v[k], func(s any) { v[k] = s })
	case []any:
		if i, err := strconv.Atoi(fmt.Sprint(path[0])); err == nil && i >= 0 && i < len(v) {
			at(v[i], func(s any) { v[i] = s })
		}
	}
}

// isSecret reports whether the whole value is a secret.
func isSecret(v any) bool { _, ok := v.(sensitive); return ok }

// steps decodes a list of paths and omits empty ones.
func steps(raw *runtime.RawExtension) [][]any {
	paths, _ := decode(raw).([]any)
	var out [][]any
	for _, p := range paths {
		if steps, _ := p.([]any); len(steps) > 0 {
			out = append(out, steps)
		}
	}
	return out
}

// replacePaths returns the paths that force a replace, in the format of join.
func replacePaths(c *v1alpha1.PlanChange) map[string]bool {
	out := map[string]bool{}
	for _, path := range steps(c.ReplacePaths) {
		out[joinAll(path)] = true
	}
	return out
}

// expressions returns the expressions that values follow from, by their paths, as in: ${configmap.net.cidr} (new), by
// eve.
func expressions(c *v1alpha1.PlanChange) map[string]string {
	out := map[string]string{}
	for _, e := range c.Expressions {
		text := Clean(e.Expression, false)
		if e.Rewritten {
			text += " (new)"
		}
		if len(e.By) > 0 {
			text += ", by " + Clean(strings.Join(e.By, ", "), false)
		}
		path, _ := decode(e.Path).([]any)
		out[joinAll(path)] = text
	}
	return out
}

func joinAll(path []any) (key string) {
	for _, s := range path {
		key = join(key, fmt.Sprint(s))
	}
	return key
}

// join appends a step to a path: `rule` + `0` + `port` is `rule[0].port`.
func join(path, step string) string {
	switch {
	case path == "":
		return step
	case step != "" && strings.Trim(step, "0123456789") == "":
		return path + "[" + step + "]"
	default:
		return path + "." + step
	}
}

func equal(a, b any) bool { return fingerprint(a) == fingerprint(b) }

// fingerprint returns equal texts for equal values. Unknown values are never equal.
func fingerprint(v any) string {
	switch x := v.(type) {
	case json.Number:
		if f, _, err := big.ParseFloat(x.String(), 10, 512, big.ToNearestEven); err == nil {
			return f.Text('p', 0)
		}
	case map[string]any:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if x[k] != nil {
				fmt.Fprintf(&b, "%q:%s,", k, fingerprint(x[k]))
			}
		}
		return "{" + b.String() + "}"
	case []any:
		return "[" + strings.Join(fingerprints(x), ",") + "]"
	case unknown:
		return rand.Text()
	case sensitive:
		x.from = ""
		return fmt.Sprintf("%#v", x)
	}
	return fmt.Sprintf("%#v", v)
}

func fingerprints(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fingerprint(v)
	}
	return out
}

func unionKeys(a, b map[string]any) []string {
	keys := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// isEmpty reports whether a value is null or an empty container. An unset nested block is an empty list.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// scalar formats a value in one line.
func scalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return strconv.Quote(v)
	case unknown:
		return "(known after apply)"
	case sensitive:
		return v.text()
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[…]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		return "{…}"
	}
	return fmt.Sprint(v)
}

func isContainer(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

// document decodes a string that holds a JSON object or array.
func document(v any) (any, bool) {
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	t := strings.TrimSpace(s)
	if len(t) < 4 || t[0] != '{' && t[0] != '[' {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(t))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil || d.More() || !isContainer(out) {
		return nil, false
	}
	return out, true
}

func multiline(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(strings.TrimSuffix(s, "\n"), "\n")
}

// label returns a key as written in HCL: quoted only if necessary.
func label(key string) string {
	for i, r := range key {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return strconv.Quote(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}

// Attribute returns a top-level string or number of a change's value, or "".
func Attribute(raw *runtime.RawExtension, name string) string {
	m, _ := decode(raw).(map[string]any)
	switch v := m[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}
