package state

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/tfstate"
)

// manyInstances is the number of instances of a resource from which on an instance of another one depends only on that
// with its own key. The state does not say which one it needs. The first plan records the exact dependencies.
const manyInstances = 64

// stateMapping maps the addresses of a Terraform state to objects.
type stateMapping struct {
	objects map[string]addrs.Target
	configs map[string]string
	targets []string
	// module is the name of the Module with the resources; empty for objects.
	module string
	used   map[string]bool
	// data and left are the numbers of data sources and of resources outside of the targets.
	data, left int
}

// newStateMapping returns the mapping of the flags of a push.
func newStateMapping(maps, configs, targets []string) (*stateMapping, error) {
	m := &stateMapping{objects: map[string]addrs.Target{}, configs: map[string]string{}, targets: targets,
		used: map[string]bool{}}
	for _, text := range maps {
		lines := []string{text}
		if name, ok := strings.CutPrefix(text, "@"); ok {
			raw, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("--map: %w", err)
			}
			lines = strings.Split(string(raw), "\n")
		}
		for _, line := range lines {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := m.add(line); err != nil {
				return nil, err
			}
		}
	}
	for _, text := range configs {
		source, name, ok := strings.Cut(text, "=")
		if !ok || source == "" || name == "" {
			return nil, fmt.Errorf("--provider-config %s: write SOURCE[.ALIAS]=NAME, such as registry.terraform.io/hashicorp/aws.west=west", text)
		}
		m.configs[source] = name
	}
	return m, nil
}

// add adds a line of --map.
func (m *stateMapping) add(line string) error {
	at := strings.LastIndexByte(line, '=')
	if at < 0 {
		return fmt.Errorf("--map %s: write ADDRESS=KIND/NAME, such as module.web.sim_network.main=sim-network/web",
			line)
	}
	address := strings.TrimSpace(line[:at])
	if _, _, _, _, ok := tfstate.SplitAddress(address); !ok {
		return fmt.Errorf("--map %s: %q is not the address of a managed resource", line, address)
	}
	to, err := addrs.Parse(strings.TrimSpace(line[at+1:]))
	if err == nil {
		err = to.Only(v1alpha1.ModeManaged)
	}
	if err != nil {
		return fmt.Errorf("--map %s: %w", line, err)
	}
	m.objects[address] = to
	return nil
}

// unused returns an error for what a flag names and the state does not have.
func (m *stateMapping) unused() error {
	for address := range m.objects {
		if !m.used[address] {
			return fmt.Errorf("--map: the state has no resource %s", address)
		}
	}
	for source := range m.configs {
		if !m.used[source] {
			return fmt.Errorf("--provider-config: no resource of the state has the provider %s", source)
		}
	}
	for _, t := range m.targets {
		if !m.used[t] {
			return fmt.Errorf("--target: the state has neither a resource nor a module %s", t)
		}
	}
	return nil
}

// mappedInstance is an instance of a state with the name of its object.
type mappedInstance struct {
	entry    v1alpha1.StateEntry
	key      v1alpha1.InstanceKey
	keyed    bool
	targeted bool
	problem  *v1alpha1.StateProblem
	// dependencies are those of the current instance and of each deposed one, as the state has them.
	dependencies [][]string
}

// entries returns what a push sends, and the problems that need no server.
func (m *stateMapping) entries(f *tfstate.File) (entries []v1alpha1.StateEntry, problems []v1alpha1.StateProblem) {
	var all []*mappedInstance
	at := map[string][]*mappedInstance{}
	for i := range f.Resources {
		r := &f.Resources[i]
		if r.Mode != tfstate.ModeManaged {
			m.data++
			continue
		}
		of := m.place(r)
		all = append(all, of...)
		general := tfstate.WithoutKeys(r.Address())
		at[general] = append(at[general], of...)
	}
	taken := map[string]string{}
	for _, p := range all {
		if !p.targeted {
			m.left++
			continue
		}
		if p.problem == nil {
			object := p.entry.Type + "/" + p.entry.Name
			if other, twice := taken[object]; twice {
				p.fail(fmt.Sprintf("it has the same object as %s", other),
					"map one of them to another object with --map ADDRESS=KIND/NAME")
			}
			taken[object] = p.entry.Address
		}
		if p.problem != nil {
			problems = append(problems, *p.problem)
			continue
		}
		p.depend(at)
		entries = append(entries, p.entry)
	}
	return entries, problems
}

func (p *mappedInstance) fail(problem, remedy string) {
	p.problem = &v1alpha1.StateProblem{Address: p.entry.Address, Problem: problem, Remedy: remedy}
}

// place returns the instances of a resource.
func (m *stateMapping) place(r *tfstate.Resource) (out []*mappedInstance) {
	byKey := map[string]*mappedInstance{}
	for i := range r.Instances {
		in := &r.Instances[i]
		text, _ := in.Key() // Parse has checked it
		p := byKey[text]
		if p == nil {
			p = m.newMapped(r, in)
			byKey[text] = p
			out = append(out, p)
		}
		instance := stateInstance(in)
		if in.Deposed == "" {
			p.entry.Current = instance
			p.dependencies = slices.Insert(p.dependencies, 0, in.Dependencies)
			continue
		}
		p.entry.Deposed = append(p.entry.Deposed, *instance)
		p.dependencies = append(p.dependencies, in.Dependencies)
	}
	return out
}

// newMapped finds the object of an instance.
func (m *stateMapping) newMapped(r *tfstate.Resource, in *tfstate.Instance) *mappedInstance {
	p := &mappedInstance{entry: v1alpha1.StateEntry{Address: r.Address(), Type: r.Type}}
	if key, ok := instanceKey(in); ok {
		p.key, p.keyed = key, true
		p.entry.Address += key.String()
	}
	p.targeted = m.wants(r, p.entry.Address)
	to, exact := m.objects[p.entry.Address]
	general, mapped := m.objects[r.Address()]
	switch {
	case exact:
		m.used[p.entry.Address] = true
		p.entry.Name = to.Name
	case mapped:
		m.used[r.Address()] = true
		to = general
		p.entry.Name = p.keyedName(to.Name)
	case m.module != "":
		p.entry.Name = p.keyedName(m.nameInModule(r))
	case r.Module != "":
		p.fail("there is no object for it: it is in a module",
			"push the state into a Module with --module NAME, map it with --map ADDRESS=KIND/NAME, or push only other resources with --target")
	default:
		p.entry.Name = p.keyedName(objectName(r.Name))
	}
	if (exact || mapped) && to.Type != r.Type {
		p.fail(fmt.Sprintf("--map names the kind %s, and the resource has the type %s", v1alpha1.KindOf(to.Type),
			r.Type), "map it to an object of its own type; lifecycle.moved changes the type later")
	}
	provider, err := tfstate.ParseProvider(r.Provider)
	if err != nil {
		p.fail(err.Error(), "")
		return p
	}
	p.entry.Provider, p.entry.ProviderConfig = provider.Source, m.configOf(provider)
	return p
}

// nameInModule returns the name of the virtual object for a resource of the Module, without a key.
func (m *stateMapping) nameInModule(r *tfstate.Resource) string {
	path := "module." + m.module
	if r.Module != "" {
		path += "." + r.Module
	}
	if usual, rest, ok := v1alpha1.CutModulePath(path); ok && rest == "" {
		path = usual
	}
	return v1alpha1.ModuleObjectName(path, r.Name)
}

// keyedName returns the name of an object, with the key of an instance.
func (p *mappedInstance) keyedName(name string) string {
	if p.keyed {
		return v1alpha1.InstanceName(name, p.key)
	}
	return name
}

// objectName returns the name of the object for a resource.
func objectName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// configOf returns the ProviderConfig of a provider of the state; "" for that of the Module.
func (m *stateMapping) configOf(a tfstate.ProviderAddress) string {
	suffix := ""
	if a.Alias != "" {
		suffix = "." + a.Alias
	}
	_, short, _ := strings.Cut(a.Source, "/") // without the host
	for _, source := range []string{a.Source + suffix, short + suffix} {
		if name, ok := m.configs[source]; ok {
			m.used[source] = true
			return name
		}
	}
	if m.module != "" {
		return ""
	}
	return a.Alias
}

// wants reports whether the targets have an instance.
func (m *stateMapping) wants(r *tfstate.Resource, address string) (wanted bool) {
	for _, t := range m.targets {
		in := t == address || t == r.Address() || t == r.Module || strings.HasPrefix(r.Module, t+".") ||
			strings.HasPrefix(r.Module, t+"[")
		if in {
			m.used[t], wanted = true, true
		}
	}
	return wanted || len(m.targets) == 0
}

// instanceKey returns the key of an instance; ok is false without one.
func instanceKey(in *tfstate.Instance) (v1alpha1.InstanceKey, bool) {
	text, err := in.Key()
	if err != nil || text == "" {
		return v1alpha1.InstanceKey{}, false
	}
	return decodeKey(in.IndexKey)
}

// stateInstance returns an instance in the form of the API, without its dependencies.
func stateInstance(in *tfstate.Instance) *v1alpha1.StateInstance {
	out := &v1alpha1.StateInstance{
		Key: in.Deposed, SchemaVersion: in.SchemaVersion, FlatAttributes: in.AttributesFlat, Private: in.Private,
		IdentityVersion: in.IdentitySchemaVersion,
		Tainted:         in.Status == tfstate.Tainted, CreateBeforeDestroy: in.CreateBeforeDestroy,
	}
	if len(in.Attributes) > 0 {
		out.Attributes = &runtime.RawExtension{Raw: in.Attributes}
	}
	if len(in.Identity) > 0 {
		out.Identity = &runtime.RawExtension{Raw: in.Identity}
	}
	for _, path := range in.SensitiveAttributes {
		out.SensitivePaths = append(out.SensitivePaths, string(path))
	}
	return out
}

// depend sets the dependencies of an entry: the addresses of the objects for the resources that the state names.
func (p *mappedInstance) depend(at map[string][]*mappedInstance) {
	resolve := func(addresses []string) (out []string) {
		for _, a := range addresses {
			of := at[tfstate.WithoutKeys(a)]
			if p.keyed && len(of) > manyInstances {
				if i := slices.IndexFunc(of, func(d *mappedInstance) bool {
					return d.keyed && d.key == p.key
				}); i >= 0 {
					of = of[i : i+1]
				}
			}
			for _, d := range of {
				if d.problem == nil {
					out = append(out, addrs.Target{Mode: v1alpha1.ModeManaged, Type: d.entry.Type,
						Name: d.entry.Name}.Address())
				}
			}
		}
		slices.SortFunc(out, func(a, b string) int {
			return cmp.Or(v1alpha1.CompareNames(a, b), strings.Compare(a, b))
		})
		return slices.Compact(out)
	}
	next := 0
	if p.entry.Current != nil {
		p.entry.Current.Dependencies = resolve(p.dependencies[0])
		next = 1
	}
	for i := range p.entry.Deposed {
		p.entry.Deposed[i].Dependencies = resolve(p.dependencies[next+i])
	}
}
