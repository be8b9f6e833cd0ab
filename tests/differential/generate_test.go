package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hykube/hykube/tests/simcloud"
)

// generator generates stories from the providers' schemas. The same seed gives the same story.
type generator struct {
	*rand.Rand
	types map[string]*blockSchema
	// vocabulary holds the known values of types, by name.
	vocabulary map[string]kindWords
	// config is the desired state. names holds the cloud's names of resources by address.
	config config
	names  map[string]string
	// order lists the addresses in the order in which they were added. Each refers only to earlier ones.
	order []string
	made  int
}

// generate returns the story of a seed.
func generate(seed int64, types map[string]*blockSchema) *story {
	g := &generator{
		Rand: rand.New(rand.NewPCG(uint64(seed), 0)), types: map[string]*blockSchema{}, names: map[string]string{},
		vocabulary: vocabulary(),
		config:     config{Resources: map[string]map[string]any{}, Lifecycle: map[string]map[string]any{}},
	}
	// It skips types without a vocabulary, because their provider would reject most generated values.
	for name, b := range types {
		if _, ok := g.vocabulary[name]; ok {
			g.types[name] = b
		}
	}
	st := &story{name: fmt.Sprintf("seed-%d", seed), What: "a generated story"}
	for range 2 + g.IntN(5) {
		g.add(g.anyType())
	}
	st.Steps = append(st.Steps, g.step("create", nil))
	for range 2 + g.IntN(4) {
		st.Steps = append(st.Steps, g.mutation())
	}
	if g.IntN(4) == 0 {
		st.Steps = append(st.Steps, g.step("nothing", nil))
	}
	st.Steps = append(st.Steps, &step{What: "destroy", Destroy: true, Anyway: true})
	return st
}

// step returns a step with the current desired state.
func (g *generator) step(what string, more func(*step)) *step {
	c := g.config.clone()
	s := &step{What: what, Resources: c.Resources, Lifecycle: c.Lifecycle, ClearLifecycle: true, Anyway: true}
	if more != nil {
		more(s)
	}
	return s
}

func (g *generator) anyType() string {
	var weighted []string
	for _, name := range sorted(g.types) {
		for range g.vocabulary[name].weight {
			weighted = append(weighted, name)
		}
	}
	return weighted[g.IntN(len(weighted))]
}

// add adds a resource of a type, and its dependencies.
func (g *generator) add(typ string) string {
	g.made++
	at := fmt.Sprintf("%s.r%d", typ, g.made)
	g.names[at] = fmt.Sprintf("n%d", g.made)
	body := g.block(at, "", g.types[typ], nil)
	g.config.Resources[at] = body
	g.order = append(g.order, at)
	if l := g.lifecycle(at); len(l) > 0 {
		g.config.Lifecycle[at] = l
	}
	return at
}

func (g *generator) lifecycle(at string) map[string]any {
	l := map[string]any{}
	if g.IntN(8) == 0 {
		if other := g.earlier(at, ""); other != "" {
			l["dependsOn"] = []any{other}
		}
	}
	if g.IntN(8) == 0 {
		l["ignoreChanges"] = []any{g.ignorable(at)}
	}
	if g.IntN(30) == 0 {
		l["preventDestroy"] = true
	}
	if g.IntN(6) == 0 && g.vocabulary[typeOf(at)].twice {
		l["createBeforeDestroy"] = true
	}
	return l
}

// ignorable returns an argument whose changes lifecycle.ignoreChanges may name.
func (g *generator) ignorable(at string) string {
	if g.IntN(5) == 0 {
		return "all"
	}
	var names []string
	b := g.types[typeOf(at)]
	for _, name := range sorted(b.Attributes) {
		if b.Attributes[name].settable() && !b.Attributes[name].WriteOnly {
			names = append(names, name)
		}
	}
	names = append(names, sorted(b.BlockTypes)...)
	name := names[g.IntN(len(names))]
	if name == "tags" && g.IntN(2) == 0 {
		return `tags["` + word(g) + `"]`
	}
	return name
}

func typeOf(at string) string { return strings.SplitN(at, ".", 2)[0] }

// earlier returns an address that was added before, of the given type if there is one; "" if there is none.
func (g *generator) earlier(at, typ string) string {
	var found []string
	for _, a := range g.order {
		if a == at {
			break
		}
		if g.config.Resources[a] != nil && (typ == "" || typeOf(a) == typ) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return found[g.IntN(len(found))]
}

// block returns the arguments of a block. before holds its current arguments. It keeps those that it does not change.
func (g *generator) block(at, path string, b *blockSchema, before map[string]any) map[string]any {
	out := map[string]any{}
	about := g.vocabulary[typeOf(at)]
	for _, name := range sorted(b.Attributes) {
		a := b.Attributes[name]
		here := join(path, name)
		word, known := about.words[here]
		switch {
		case !a.settable() || known && word == nil:
			continue
		case slices.Contains(about.always, here):
			out[name] = word(g, at)
			if before != nil && g.IntN(3) > 0 {
				out[name] = before[name]
			}
			continue
		case before != nil && g.IntN(3) > 0:
			if v, ok := before[name]; ok {
				out[name] = v
			}
			continue
		case !a.Required && g.IntN(2) == 0:
			if before == nil && g.IntN(8) == 0 {
				out[name] = nil
			}
			continue
		}
		if v, ok := g.attribute(at, here, a); ok {
			out[name] = v
		}
	}
	for _, name := range sorted(b.BlockTypes) {
		nb := b.BlockTypes[name]
		here := join(path, name)
		if before != nil && g.IntN(3) > 0 {
			if v, ok := before[name]; ok {
				out[name] = v
			}
			continue
		}
		n := max(nb.MinItems, g.IntN(3))
		if nb.MaxItems > 0 {
			n = min(n, nb.MaxItems)
		}
		switch nb.NestingMode {
		case "single", "group":
			if n > 0 {
				out[name] = g.block(at, here, nb.Block, nil)
			}
		case "map":
			m := map[string]any{}
			for range n {
				m[word(g)] = g.block(at, here, nb.Block, nil)
			}
			if len(m) > 0 {
				out[name] = m
			}
		default:
			var list []any
			for range n {
				list = append(list, g.block(at, here, nb.Block, nil))
			}
			if list != nil {
				out[name] = list
			}
		}
	}
	return out
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// attribute returns a value, from the vocabulary if that has the attribute. ok is false if the attribute should not be
// set.
func (g *generator) attribute(at, path string, a *attributeSchema) (v any, ok bool) {
	if w := g.vocabulary[typeOf(at)].words[path]; w != nil {
		v = w(g, at)
		return v, v != nil
	}
	if a.NestedType == nil {
		return g.value(at, a.Type), true
	}
	nested := &blockSchema{Attributes: a.NestedType.Attributes}
	switch a.NestedType.NestingMode {
	case "single":
		return g.block(at, path, nested, nil), true
	case "map":
		m := map[string]any{}
		for range g.IntN(3) {
			m[word(g)] = g.block(at, path, nested, nil)
		}
		return m, true
	default:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.block(at, path, nested, nil))
		}
		return list, true
	}
}

// value returns a value of a type.
func (g *generator) value(at string, t typeSchema) any {
	switch t.kind {
	case "string":
		return g.text(at)
	case "number":
		return g.IntN(100)
	case "bool":
		return g.IntN(2) == 0
	case "list", "set":
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.value(at, *t.element))
		}
		return list
	case "map":
		m := map[string]any{}
		for range g.IntN(4) {
			m[word(g)] = g.value(at, *t.element)
		}
		return m
	case "object":
		m := map[string]any{}
		for _, name := range sorted(t.attributes) {
			m[name] = g.value(at, t.attributes[name])
		}
		return m
	case "tuple":
		list := []any{}
		for _, e := range t.elements {
			list = append(list, g.value(at, e))
		}
		return list
	default: // dynamic
		return g.text(at)
	}
}

// text returns a word, or an expression that refers to an earlier resource.
func (g *generator) text(at string) any {
	other := g.earlier(at, "")
	if other == "" || g.IntN(3) > 0 {
		return word(g)
	}
	ref := g.reference(other)
	if ref == "" {
		return word(g)
	}
	switch g.IntN(7) {
	case 0:
		return "pre-${" + ref + "}-post"
	case 1:
		return fmt.Sprintf("${%s == %q ? \"same\" : \"other\"}", ref, word(g))
	case 2:
		return "${upper(" + ref + ")}"
	case 3:
		return fmt.Sprintf("${join(\",\", [for x in [%s, %q] : \"<${x}>\"])}", ref, word(g))
	default:
		return "${" + ref + "}"
	}
}

// reference returns a reference to a text or a number that a resource always has, known or not.
func (g *generator) reference(at string) string {
	refs := g.vocabulary[typeOf(at)].refs
	if len(refs) == 0 {
		return ""
	}
	return at + "." + refs[g.IntN(len(refs))]
}

// mutation returns a step with a change.
func (g *generator) mutation() *step {
	switch g.IntN(14) {
	case 0:
		at := g.add(g.anyType())
		return g.step("add "+at, nil)
	case 1:
		return g.remove()
	case 2, 3:
		return g.drift()
	case 4:
		if at, kind := g.object(); at != "" {
			return g.step("vanish "+at, func(s *step) { s.Vanish = []cloudObject{{Kind: kind, Name: g.names[at]}} })
		}
	case 5:
		at := g.any()
		return g.step("replace "+at, func(s *step) { s.Replace = []string{at} })
	case 6:
		at := g.any()
		g.change(2)
		return g.step("change, and target "+at, func(s *step) { s.Target = []string{at} })
	case 7:
		s := g.drift()
		s.What, s.RefreshOnly = s.What+", refresh only", true
		return s
	case 8:
		g.change(2)
		if at, kind := g.object(); at != "" {
			op := []string{"create", "update", "delete"}[g.IntN(3)]
			return g.step("change, and refuse "+op+" of "+at, func(s *step) {
				s.Faults = []simcloud.Fault{{Kind: kind, Name: g.names[at], Op: op, Status: 400, Count: 1}}
			})
		}
	case 9:
		s := g.drift()
		s.What, s.NoRefresh = s.What+", not looked for", true
		return s
	case 10:
		at := g.any()
		return g.step("destroy "+at+" alone", func(s *step) { s.Destroy, s.Target = true, []string{at} })
	}
	g.change(1 + g.IntN(3))
	return g.step("change", nil)
}

// any returns an address of the desired state.
func (g *generator) any() string {
	all := sorted(g.config.Resources)
	if len(all) == 0 {
		return g.add(g.anyType())
	}
	return all[g.IntN(len(all))]
}

// object returns the address of an object of the simulated cloud, and its kind there.
func (g *generator) object() (at, kind string) {
	var all []string
	for _, at := range sorted(g.config.Resources) {
		if g.vocabulary[typeOf(at)].kind != "" {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return "", ""
	}
	at = all[g.IntN(len(all))]
	return at, g.vocabulary[typeOf(at)].kind
}

// change changes some arguments of some resources.
func (g *generator) change(n int) {
	for range n {
		at := g.any()
		g.config.Resources[at] = g.block(at, "", g.types[typeOf(at)], g.config.Resources[at])
	}
}

// remove removes a resource to which nothing refers.
func (g *generator) remove() *step {
	var free []string
	for _, at := range sorted(g.config.Resources) {
		if !g.used(at) {
			free = append(free, at)
		}
	}
	if len(free) == 0 {
		return g.step("nothing", nil)
	}
	at := free[g.IntN(len(free))]
	delete(g.config.Resources, at)
	delete(g.config.Lifecycle, at)
	return g.step("remove "+at, nil)
}

func (g *generator) used(at string) bool {
	found := false
	for _, other := range slices.Sorted(maps.Keys(g.config.Resources)) {
		if list, ok := g.config.Lifecycle[other]["dependsOn"].([]any); ok && slices.Contains(list, any(at)) {
			return true
		}
		mapStrings(any(g.config.Resources[other]), func(s string) string {
			found = found || strings.Contains(s, at+".")
			return s
		})
	}
	return found
}

// drift changes an object in the cloud.
func (g *generator) drift() *step {
	at, kind := g.object()
	if at == "" {
		return g.step("nothing", nil)
	}
	fields := g.vocabulary[typeOf(at)].drift
	names := sorted(fields)
	change := map[string]any{}
	for range 1 + g.IntN(2) {
		name := names[g.IntN(len(names))]
		change[name] = fields[name](g, at)
	}
	return g.step("drift of "+at, func(s *step) { s.Drift = []cloudObject{{Kind: kind, Name: g.names[at], Fields: change}} })
}
