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
