package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/shape"
)

// shaper generates stories of types that are generated from the same seed.
type shaper struct {
	*rand.Rand
	types  map[string]*shape.Shape
	data   *shape.Shape
	config config
	// titles holds the titles of resources in the cloud, by address. order lists the addresses in the order in which
	// they were added. Each refers only to earlier ones.
	titles map[string]string
	order  []string
	made   int
}

// generateShapes returns the story of a seed.
func generateShapes(seed int64) *story {
	g := &shaper{
		Rand: rand.New(rand.NewPCG(uint64(seed), 1)), types: map[string]*shape.Shape{}, titles: map[string]string{},
		config: config{
			Resources: map[string]map[string]any{}, Lifecycle: map[string]map[string]any{},
			ConfigMaps: map[string]map[string]string{"settings": {"color": "blue"}}, Secrets: map[string]map[string]string{"vault": {"code": "hidden-1"}},
		},
	}
	provider := []string{"shape6", "shape6", "shape5"}[g.IntN(3)]
	resources, data := shape.Make(provider, seed, provider == "shape5")
	for _, r := range resources {
		g.types[r.Name] = r
	}
	g.data = data
	st := &story{name: fmt.Sprintf("shape-%d", seed), What: "a generated story of generated types of " + provider}
	for range 2 + g.IntN(4) {
		g.add()
	}
	st.Steps = append(st.Steps, g.step("create"), g.step("nothing"))
	for range 3 + g.IntN(4) {
		st.Steps = append(st.Steps, g.mutation()...)
	}
	last := g.step("destroy")
	last.Destroy = true
	st.Steps = append(st.Steps, last)
	return st
}

func (g *shaper) step(what string) *step {
	c := g.config.clone()
	return &step{What: what, Resources: c.Resources, Lifecycle: c.Lifecycle, ClearLifecycle: true, ConfigMaps: c.ConfigMaps, Secrets: c.Secrets, Anyway: true}
}

// one returns true once in n times.
func (g *shaper) one(n int) bool { return g.IntN(n) == 0 }

// shape returns the shape of an address.
func (g *shaper) shape(at string) *shape.Shape {
	if rest, ok := strings.CutPrefix(at, "data."); ok {
		at = rest
	}
	typ, _, _ := strings.Cut(at, ".")
	if s := g.types[typ]; s != nil {
		return s
	}
	return g.data
}

// add adds a resource or a data source.
func (g *shaper) add() string {
	g.made++
	names := sorted(g.types)
	at := fmt.Sprintf("%s.r%d", names[g.IntN(len(names))], g.made)
	if g.one(6) {
		at = fmt.Sprintf("data.%s.d%d", g.data.Name, g.made)
	}
	g.titles[at] = fmt.Sprintf("t%d", g.made)
	g.config.Resources[at] = g.body(at, nil)
	g.order = append(g.order, at)
	if l := g.lifecycle(at); len(l) > 0 {
		g.config.Lifecycle[at] = l
	}
	return at
}

func (g *shaper) body(at string, before map[string]any) map[string]any {
	s := g.shape(at)
	body := g.block(at, s.Block, before)
	body[s.Title] = g.titles[at]
	return body
}

func (g *shaper) lifecycle(at string) map[string]any {
	l := map[string]any{}
	if strings.HasPrefix(at, "data.") {
		return l
	}
	if other := g.earlier(at); other != "" && g.one(8) {
		l["dependsOn"] = []any{other}
	}
	if other := g.earlier(at); other != "" && g.one(8) && !strings.HasPrefix(other, "data.") {
		// Do not refer to a secret: Terraform loses its mark in a replace (D2), and treats that as a change.
		s := g.shape(other)
		if a := s.Block.Attributes[g.IntN(len(s.Block.Attributes))]; !a.Sensitive && a.Type != nil {
			l["replaceTriggeredBy"] = []any{other + "." + a.Name}
		}
	}
	if g.one(5) {
		l["createBeforeDestroy"] = true
	}
	if g.one(4) {
		l["ignoreChanges"] = []any{g.ignorable(at)}
	}
	return l
}

// ignorable returns an argument whose changes lifecycle.ignoreChanges may name.
func (g *shaper) ignorable(at string) string {
	if g.one(6) {
		return "all"
	}
	b := g.shape(at).Block
	var names []string
	for _, a := range b.Attributes {
		if !a.Settable() {
			continue
		}
		names = append(names, a.Name)
		if a.ValueType().Is(tftypes.Map{}) {
			names = append(names, a.Name+`["beta"]`)
		}
		if a.ValueType().Is(tftypes.List{}) {
			names = append(names, a.Name+`[0]`)
		}
		if a.Mode == shape.Single {
			names = append(names, a.Name+"."+a.Attributes[0].Name)
		}
	}
	for _, n := range b.Blocks {
		names = append(names, n.Name)
		inner := "." + n.Block.Attributes[0].Name
		switch n.Mode {
		case shape.List:
			names = append(names, n.Name+"[0]", n.Name+"[0]"+inner)
		case shape.Single, shape.Group:
			names = append(names, n.Name+inner)
		case shape.Map:
			names = append(names, n.Name+`["beta"]`+inner)
		}
	}
	return names[g.IntN(len(names))]
}

// earlier returns an address of the desired state that was added before; "" if there is none.
func (g *shaper) earlier(at string) string {
	var found []string
	for _, a := range g.order {
		if a == at {
			break
		}
		if g.config.Resources[a] != nil {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return found[g.IntN(len(found))]
}

// block returns the arguments of a block. before holds its current arguments, most of which it keeps.
func (g *shaper) block(at string, b *shape.Block, before map[string]any) map[string]any {
	out := map[string]any{}
	for _, a := range b.Attributes {
		if !a.Settable() {
			continue
		}
		if before != nil && !g.one(4) {
			if v, ok := before[a.Name]; ok {
				out[a.Name] = v
			}
			if a.Required || !g.one(4) {
				continue
			}
		}
		if !a.Required && g.one(2) {
			delete(out, a.Name)
			if g.one(6) {
				out[a.Name] = nil
			}
			continue
		}
		old := before[a.Name]
		if a.Required && old == nil {
			old = struct{}{} // any value but null
		}
		out[a.Name] = g.attribute(at, a, old)
	}
	for _, n := range b.Blocks {
		old, had := before[n.Name]
		if before != nil && !g.one(3) {
			if had {
				out[n.Name] = old
			}
			continue
		}
		count := max(n.Min, g.IntN(4))
		if n.Max > 0 {
			count = min(n.Max, count)
		}
		switch n.Mode {
		case shape.Single, shape.Group:
			if count > 0 {
				was, _ := old.(map[string]any)
				out[n.Name] = g.block(at, n.Block, was)
			}
		case shape.Map:
			if m := g.keyed(count, old, func(was map[string]any) any { return g.block(at, n.Block, was) }); len(m) > 0 {
				out[n.Name] = m
			}
		default:
			if l := g.listed(count, old, func(was map[string]any) any { return g.block(at, n.Block, was) }); len(l) > 0 {
				out[n.Name] = l
			}
		}
	}
	return out
}

// keyed returns a map, and keeps some of its elements.
func (g *shaper) keyed(n int, old any, one func(was map[string]any) any) map[string]any {
	m := map[string]any{}
	before, _ := old.(map[string]any)
	for range n {
		key := g.key()
		was, _ := before[key].(map[string]any)
		m[key] = one(was)
	}
	return m
}

// listed returns a list, and keeps some of its elements, perhaps at other indexes.
func (g *shaper) listed(n int, old any, one func(was map[string]any) any) []any {
	out := []any{}
	before, _ := old.([]any)
	shift := g.IntN(2)
	for i := range n {
		var was map[string]any
		if i+shift < len(before) {
			was, _ = before[i+shift].(map[string]any)
			if was != nil && g.one(2) {
				out = append(out, was)
				continue
			}
		}
		out = append(out, one(was))
	}
	return out
}

func (g *shaper) key() string {
	return []string{"alpha", "beta", "gamma", "a b", "ü", "x.y"}[g.IntN(6)]
}

// attribute returns a value. old is the current value, or nil.
func (g *shaper) attribute(at string, a *shape.Attribute, old any) any {
	// A required argument must not become null. Hykube lets the provider validate the configuration earlier than
	// Terraform does.
	if ref := g.reference(at, a.ValueType()); ref != "" && g.one(6) && !a.Required {
		return "${" + ref + "}"
	}
	if a.Type != nil {
		if a.Required {
			return g.literal(a.Type, false)
		}
		return g.value(at, a.Type)
	}
	inner := &shape.Block{Attributes: a.Attributes}
	switch a.Mode {
	case shape.Single:
		was, _ := old.(map[string]any)
		return g.block(at, inner, was)
	case shape.Map:
		return g.keyed(g.IntN(4), old, func(was map[string]any) any { return g.block(at, inner, was) })
	}
	return g.listed(g.IntN(4), old, func(was map[string]any) any { return g.block(at, inner, was) })
}

// value returns a value of a type, with expressions.
func (g *shaper) value(at string, t tftypes.Type) any {
	if ref := g.reference(at, t); ref != "" && g.one(5) {
		switch g.IntN(4) {
		case 0:
			return "${try(" + ref + ", null)}"
		case 1:
			return "${true ? " + ref + " : null}"
		}
		return "${" + ref + "}"
	}
	switch t := t.(type) {
	case tftypes.List:
		return g.many(at, t.ElementType)
	case tftypes.Set:
		return g.many(at, t.ElementType)
	case tftypes.Map:
		m := map[string]any{}
		for range g.IntN(4) {
			m[g.key()] = g.value(at, t.ElementType)
		}
		return m
	case tftypes.Object:
		m := map[string]any{}
		for _, name := range sorted(t.AttributeTypes) {
			m[name] = g.value(at, t.AttributeTypes[name])
		}
		return m
	case tftypes.Tuple:
		l := []any{}
		for _, e := range t.ElementTypes {
			l = append(l, g.value(at, e))
		}
		return l
	}
	if t.Is(tftypes.String) && g.one(3) {
		return g.template(at)
	}
	if g.one(25) {
		return nil
	}
	return g.literal(t, false)
}

func (g *shaper) many(at string, t tftypes.Type) any {
	l := []any{}
	for range g.IntN(4) {
		l = append(l, g.value(at, t))
	}
	return l
}

// template returns a text with a part that may be unknown or secret.
func (g *shaper) template(at string) any {
	if g.one(8) {
		return "code ${secret.vault.code}"
	}
	if g.one(8) {
		return "${configmap.settings.color}"
	}
	other := g.earlier(at)
	if other == "" {
		return g.word()
	}
	s := g.shape(other)
	ref := other + "." + s.Key
	switch g.IntN(8) {
	case 0:
		return "<${" + ref + "}>"
	case 1:
		return "${upper(" + other + "." + s.Title + ")}"
	case 2:
		a := s.Block.Attributes[g.IntN(len(s.Block.Attributes))]
		if a.WriteOnly || strings.HasPrefix(other, "data.") && a.Type == nil {
			return "${" + ref + "}"
		}
		return "${jsonencode(" + other + "." + a.Name + ")}"
	case 3:
		return "%{ if " + ref + " != \"\" }yes %{ else }no ${" + ref + "}%{ endif }"
	case 4:
		return "${length(" + ref + ") > 3 ? \"long\" : " + ref + "}"
	case 5:
		if len(s.Block.Blocks) > 0 {
			n := s.Block.Blocks[g.IntN(len(s.Block.Blocks))]
			if n.Mode == shape.Single || n.Mode == shape.Group {
				return "${jsonencode(try(" + other + "." + n.Name + ", \"none\"))}"
			}
			return "${length(" + other + "." + n.Name + ")} of them"
		}
	}
	return "${" + ref + "}"
}

// reference returns a reference to an earlier value of the same type; "" if there is none.
func (g *shaper) reference(at string, t tftypes.Type) string {
	other := g.earlier(at)
	if other == "" {
		return ""
	}
	b := g.shape(other).Block
	var found []string
	look(b, other, func(a *shape.Attribute, expression string) {
		switch {
		case holdsWriteOnly(a) || !a.ValueType().Equal(t) || slices.ContainsFunc(a.Attributes, holdsComputed):
			// A provider rejects computed values in a configuration, even if it returned them.
		case strings.HasPrefix(other, "data.") && a.Type == nil: // D12
		case strings.HasPrefix(at, "data.") && a.Quirk == shape.Late: // D14
		case strings.Count(expression, ".")-strings.Count(other, ".") > 1:
			// The outer value may no longer exist at the destroy, which Terraform then rejects.
			found = append(found, "try("+expression+", null)")
		default:
			found = append(found, expression)
		}
	})
	if len(found) == 0 {
		return ""
	}
	return found[g.IntN(len(found))]
}

// look visits the values that an expression can refer to without a check. A single value may still be null.
func look(b *shape.Block, at string, visit func(a *shape.Attribute, expression string)) {
	for _, a := range b.Attributes {
		visit(a, at+"."+a.Name)
		if a.Mode == shape.Single && a.Computed {
			look(&shape.Block{Attributes: a.Attributes}, at+"."+a.Name, visit)
		}
	}
	for _, n := range b.Blocks {
		switch {
		case n.Mode == shape.Group, n.Mode == shape.Single && n.Min > 0:
			look(n.Block, at+"."+n.Name, visit)
		case n.Mode == shape.List && n.Min > 0:
			look(n.Block, at+"."+n.Name+"[0]", visit)
		}
	}
}

func (g *shaper) word() string {
	return []string{
		"alpha", "Beta", "GAMMA", "ü☃", "a b", "x.y", "", "two\nlines", "$${no}", "%%{no}", "true", "12", `{"a":1}`, "null", "e\u0301", `"quoted\"`, "${\"\"}",
	}[g.IntN(17)]
}

// literal returns a value of a type without expressions. exact is the value in a state, which is never converted.
func (g *shaper) literal(t tftypes.Type, exact bool) any {
	switch {
	case t.Is(tftypes.String):
		if exact {
			return []string{"rogue", "", "Alpha", "ü"}[g.IntN(4)]
		}
		if g.one(12) {
			return []any{7, true, 1.5}[g.IntN(3)]
		}
		return g.word()
	case t.Is(tftypes.Number):
		if exact {
			return []any{0, 1, -3, 2.5, 1 << 40}[g.IntN(5)]
		}
		return []any{
			0, 1, -7, 42, 3.5, 0.1, 1 << 53, int64(1<<53 + 1), "12", "0.1", "123456789012345678901234567890", "1e3", "-0.000000000000000000001", 1e6,
		}[g.IntN(14)]
	case t.Is(tftypes.Bool):
		if exact || !g.one(5) {
			return g.one(2)
		}
		return []string{"true", "false"}[g.IntN(2)]
	case t.Is(tftypes.DynamicPseudoType):
		if exact {
			return []any{
				nil, map[string]any{"value": "rogue", "type": "string"}, map[string]any{"value": []any{1, "a"}, "type": []any{"tuple", []any{"number", "string"}}},
			}[g.IntN(3)]
		}
		return []any{
			g.word(), 12, 0.5, true, []any{}, []any{1, "a", nil}, map[string]any{}, map[string]any{"a": 1, "b": []any{true, map[string]any{"c": "d"}}, "n": nil},
		}[g.IntN(8)]
	}
	switch t := t.(type) {
	case tftypes.Map:
		m := map[string]any{}
		for range g.IntN(3) {
			m[g.key()] = g.literal(t.ElementType, exact)
		}
		return m
	case tftypes.Object:
		m := map[string]any{}
		for _, name := range sorted(t.AttributeTypes) {
			m[name] = g.literal(t.AttributeTypes[name], exact)
		}
		return m
	case tftypes.Tuple:
		l := []any{}
		for _, e := range t.ElementTypes {
			l = append(l, g.literal(e, exact))
		}
		return l
	case tftypes.List:
		l := []any{}
		for range g.IntN(3) {
			l = append(l, g.literal(t.ElementType, exact))
		}
		return l
	}
	l := []any{}
	for range g.IntN(2) { // in a set, so that no two are equal
		l = append(l, g.literal(t.(tftypes.Set).ElementType, exact))
	}
	return l
}

// managed returns a resource of the desired state.
func (g *shaper) managed() string {
	var all []string
	for _, at := range sorted(g.config.Resources) {
		if !strings.HasPrefix(at, "data.") {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[g.IntN(len(all))]
}

func (g *shaper) change(n int) {
	all := sorted(g.config.Resources)
	for range n {
		at := all[g.IntN(len(all))]
		g.config.Resources[at] = g.body(at, g.config.Resources[at])
	}
}

// mutation returns the next steps.
func (g *shaper) mutation() []*step {
	at := g.managed()
	if at == "" {
		return []*step{g.step("add " + g.add())}
	}
	switch g.IntN(17) {
	case 0:
		return []*step{g.step("add " + g.add())}
	case 1:
		return []*step{g.remove()}
	case 2, 3, 4:
		return []*step{g.drift(at)}
	case 5:
		s := g.drift(at)
		s.What, s.RefreshOnly = s.What+", refresh only", true
		return []*step{s}
	case 6:
		s := g.step("vanish " + at)
		s.Vanish = []cloudObject{{Kind: typeOf(at), Name: g.titles[at]}}
		return []*step{s}
	case 7:
		s := g.step("replace " + at)
		s.Replace = []string{at}
		return []*step{s}
	case 8:
		s := g.step("taint " + at)
		s.Taint = []string{at}
		return []*step{s}
	case 9:
		if !g.used(at) {
			return g.adopt(at)
		}
	case 10:
		g.config.Secrets["vault"]["code"] = fmt.Sprintf("hidden-%d", g.IntN(5))
		g.config.ConfigMaps["settings"]["color"] = g.word()
		return []*step{g.step("other settings")}
	case 11:
		return []*step{g.step("nothing")}
	}
	g.change(1 + g.IntN(3))
	return []*step{g.step("change")}
}

// adopt forgets a resource, and imports it under another name.
func (g *shaper) adopt(at string) []*step {
	body := g.config.Resources[at]
	delete(g.config.Resources, at)
	delete(g.config.Lifecycle, at)
	forget := g.step("forget " + at)
	forget.Forget = []string{at}
	g.made++
	to := fmt.Sprintf("%s.r%d", typeOf(at), g.made)
	g.config.Resources[to], g.titles[to] = body, g.titles[at]
	g.config.Lifecycle[to] = map[string]any{"import": map[string]any{"id": g.titles[at]}}
	g.order = append(g.order, to)
	adopt := g.step("import " + to)
	delete(g.config.Lifecycle, to)
	return []*step{forget, adopt}
}

func (g *shaper) remove() *step {
	var free []string
	for _, at := range sorted(g.config.Resources) {
		if !g.used(at) {
			free = append(free, at)
		}
	}
	if len(free) < 2 {
		return g.step("nothing")
	}
	at := free[g.IntN(len(free))]
	delete(g.config.Resources, at)
	delete(g.config.Lifecycle, at)
	return g.step("remove " + at)
}

func (g *shaper) used(at string) bool {
	other := g.config.clone()
	delete(other.Resources, at)
	found := false
	see := func(s string) string {
		found = found || strings.Contains(s, at+".") || s == at
		return s
	}
	mapStrings(any(other.Resources), see)
	mapStrings(any(other.Lifecycle), see)
	return found
}

// drift changes an object in the cloud.
func (g *shaper) drift(at string) *step {
	s := g.shape(at)
	fields := map[string]any{}
	for range 1 + g.IntN(3) {
		if len(s.Block.Blocks) > 0 && g.one(4) {
			if n := s.Block.Blocks[g.IntN(len(s.Block.Blocks))]; n.Min == 0 && (n.Mode == shape.List || n.Mode == shape.Set) {
				fields[n.Name] = g.literal(s.Block.ObjectType().AttributeTypes[n.Name], true)
			}
			continue
		}
		a := s.Block.Attributes[g.IntN(len(s.Block.Attributes))]
		if a.WriteOnly || a.Name == s.Key || a.Name == s.Title || holdsWriteOnly(a) {
			continue
		}
		fields[a.Name] = g.literal(a.ValueType(), true)
		if g.one(5) && !a.Required {
			fields[a.Name] = nil
		}
	}
	for name := range fields {
		if n := slices.IndexFunc(s.Block.Blocks, func(n *shape.Nested) bool { return n.Name == name }); n >= 0 && blockHoldsWriteOnly(s.Block.Blocks[n].Block) {
			fields[name] = []any{}
		}
	}
	out := g.step("drift of " + at)
	out.Drift = []cloudObject{{Kind: typeOf(at), Name: g.titles[at], Fields: fields}}
	return out
}

func holdsWriteOnly(a *shape.Attribute) bool {
	return a.WriteOnly || slices.ContainsFunc(a.Attributes, holdsWriteOnly)
}

func holdsComputed(a *shape.Attribute) bool {
	return !a.Settable() || slices.ContainsFunc(a.Attributes, holdsComputed)
}

func blockHoldsWriteOnly(b *shape.Block) bool {
	return slices.ContainsFunc(b.Attributes, holdsWriteOnly) || slices.ContainsFunc(b.Blocks, func(n *shape.Nested) bool { return blockHoldsWriteOnly(n.Block) })
}
