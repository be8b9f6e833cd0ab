package resourceset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
)

// Owner is the stored object whose instances are virtual objects: a ResourceSet or a Module.
type Owner struct {
	Namespace, Name string
	UID             types.UID
	// Generation is that of the object.
	Generation int64
	// Revision identifies the content of the instances: the object without its status, and the ConfigMap that it reads.
	// It has no order. Writes of the status do not change it, because plans compare it, and an apply writes the status
	// often.
	Revision int64
	Created  metav1.Time
	// Deleting is the time of the deletion mark; nil without one.
	Deleting *metav1.Time
	// Held is true if the object has the finalizer for its infrastructure.
	Held bool
	// Observed is true for a Module with the mode Observe.
	Observed bool
	// Problem is the reason why the instances are not known; empty if they are.
	Problem string

	labels map[string]string
}

// Labels returns the labels of the instances, which the caller must not change.
func (o *Owner) Labels() map[string]string { return o.labels }

// metadata returns the metadata of an instance.
func (o *Owner) metadata(name string, uid types.UID, generation int64) map[string]any {
	metadata := map[string]any{
		"name": name, "namespace": o.Namespace, "uid": string(uid), "generation": generation,
		"resourceVersion": fmt.Sprint(o.Revision),
	}
	if !o.Created.IsZero() {
		metadata["creationTimestamp"] = o.Created.UTC().Format(timeFormat)
	}
	if len(o.labels) > 0 {
		labels := make(map[string]any, len(o.labels))
		for k, v := range o.labels {
			labels[k] = v
		}
		metadata["labels"] = labels
	}
	if o.Deleting != nil {
		metadata["deletionTimestamp"] = o.Deleting.UTC().Format(timeFormat)
	}
	return metadata
}

// Module is a Module with the sets of its blocks: one for each block of each module instance. It is immutable.
type Module struct {
	Owner
	// Source is the name of the ConfigMap with the files.
	Source string
	// Digest is that of the files, as in the status; empty if they cannot be loaded.
	Digest string
	// Sets are the blocks; empty with a Problem.
	Sets []*Set
	// Waiting has the reasons why blocks of modules, or whole modules, have no instances yet, by their addresses. No
	// plan changes what such a block has recorded.
	Waiting map[string]string
	// Outputs are those of the root module, by their names; empty with a Problem.
	Outputs map[string]*Output
	// Expansion is nil with a Problem.
	Expansion *module.Expansion
	// Diagnostics are the errors that make the Problem, each with its position in the files, or with a field of the
	// Module; nil if it has another reason.
	Diagnostics diag.Diagnostics

	tree *module.Tree
	// blocked are the addresses of the blocks that depend on what waits.
	blocked []lang.Address
	byName  map[blockName]*Set
}

// Output is an output of a Module, as others refer to it.
type Output struct {
	// Waits is why the value is not known before another plan; "" if it can be.
	Waits string
	// Behind are the addresses of the objects, sets and outputs of other Modules on which the value depends, sorted.
	Behind []lang.Address
	// Version changes with the value, apart from what Behind says.
	Version string
}

// Environment is what a Module finds on the server.
type Environment struct {
	// Functions are those of the installed providers.
	Functions lang.Functions
	// Provider returns the name of the Provider that has a type, given the source address by which the module requires
	// it, which may be empty. It returns ErrNoProvider if no provider has the type.
	Provider func(mode v1alpha1.Mode, terraformType, source string) (string, error)
	// Known returns the recorded values of objects; nil knows none.
	Known module.Known
	// Budget bounds the evaluations of the expansion together; nil means that each has its own limit only.
	Budget *lang.Budget
	// Recorded reports whether an object with a UID has infrastructure; nil means that none has.
	Recorded func(types.UID) bool
}

// FilesOf returns the files of a Module from the content of its ConfigMap.
func FilesOf(source *v1alpha1.ModuleSource, data map[string][]byte) (module.Files, error) {
	if data == nil {
		return nil, fmt.Errorf("there is no ConfigMap %q in the namespace", source.ConfigMap)
	}
	files := module.Files{}
	if len(source.Items) == 0 {
		maps.Copy(files, data)
		return files, nil
	}
	for _, item := range source.Items {
		content, ok := data[item.Key]
		if !ok {
			return nil, fmt.Errorf("the ConfigMap %q has no key %q", source.ConfigMap, item.Key)
		}
		files[item.Path] = content
	}
	return files, nil
}

// LoadModule loads the files of a Module within a budget. An error, also about a part that plans do not carry out yet,
// is in the diagnostics.
func LoadModule(budget *lang.Budget, files module.Files, functions lang.Functions) (*module.Tree, diag.Diagnostics) {
	tree, diags := module.LoadWithin(budget, files, functions)
	if tree != nil {
		diags = append(diags, tree.Unsupported()...)
	}
	return tree, diags
}

// NewModule expands a Module. data is the content of its ConfigMap, nil if there is none, and configMap the revision of
// the last write. previous is an earlier version of the Module; nil without one.
func NewModule(obj *v1alpha1.Module, configMap int64, data map[string][]byte, env Environment,
	previous *Module) (*Module, error) {
	m := &Module{
		byName: map[blockName]*Set{},
		Owner: Owner{
			Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, Generation: obj.Generation,
			Deleting: obj.DeletionTimestamp, Created: obj.CreationTimestamp,
			Held:     slices.Contains(obj.Finalizers, v1alpha1.FinalizerState),
			Observed: obj.Spec.Mode == v1alpha1.ModuleObserve, labels: obj.Labels,
		},
		Source: obj.Spec.Source.ConfigMap,
	}
	var err error
	if m.Revision, err = moduleRevision(obj, configMap); err != nil {
		return nil, err
	}
	err = m.expand(&obj.Spec, data, env, previous)
	if err != nil && m.Deleting != nil && (m.Observed || !protects(data)) {
		m.forget() // without files, all that is recorded leaves the Module
		err = m.expand(&v1alpha1.ModuleSpec{}, map[string][]byte{}, env, nil)
	}
	if err != nil {
		m.Problem = err.Error()
		m.forget()
		if f, ok := errors.AsType[*diag.Failure](err); ok {
			m.Problem, m.Diagnostics = diag.Describe(f.Diagnostics), f.Diagnostics
		}
	}
	return m, nil
}

// protection matches the words by which Terraform files keep resources from a destroy: prevent_destroy, destroy and
// removed.
var protection = regexp.MustCompile(`\b((prevent_)?destroy|removed)\b`)

// protects reports whether a deletion must wait until files with errors are correct again, because they may keep
// resources from a destroy.
func protects(data map[string][]byte) bool {
	for _, content := range data {
		if protection.Match(content) {
			return true
		}
	}
	return false
}

// moduleRevision returns the Revision of a Module, given that of its ConfigMap.
func moduleRevision(obj *v1alpha1.Module, configMap int64) (int64, error) {
	content, err := json.Marshal([]any{obj.UID, obj.Generation, obj.Spec, obj.Labels, obj.DeletionTimestamp, configMap})
	if err != nil {
		return 0, fmt.Errorf("encode Module: %w", err)
	}
	sum := sha256.Sum256(content)
	return int64(binary.BigEndian.Uint64(sum[:]) & maxGeneration), nil
}

// Written returns the Module after a write of its status or its finalizers alone; nil if the write changed the
// instances, or if m is nil.
func (m *Module) Written(obj *v1alpha1.Module, configMap int64) *Module {
	if m == nil {
		return nil
	}
	if revision, err := moduleRevision(obj, configMap); err != nil || revision != m.Revision {
		return nil
	}
	next := *m
	next.Held = slices.Contains(obj.Finalizers, v1alpha1.FinalizerState)
	next.Sets, next.byName = make([]*Set, 0, len(m.Sets)), make(map[blockName]*Set, len(m.Sets))
	for _, s := range m.Sets {
		written := *s
		written.Owner = next.Owner
		written.Problem = s.Problem
		next.add(&written)
	}
	return &next
}

// blockName identifies a block by the kind and the name of its objects, without a key.
type blockName struct{ kind, name string }

func (m *Module) add(s *Set) {
	m.Sets = append(m.Sets, s)
	m.byName[blockName{s.Kind, s.Template}] = s
}

func (m *Module) expand(spec *v1alpha1.ModuleSpec, data map[string][]byte, env Environment, previous *Module) error {
	files, err := FilesOf(&spec.Source, data)
	if err != nil {
		return err
	}
	if previous != nil && previous.tree != nil && previous.tree.SameFiles(files) {
		m.tree = previous.tree
	} else {
		var diags diag.Diagnostics
		if m.tree, diags = LoadModule(env.Budget, files, env.Functions); diag.HasErrors(diags) {
			m.tree = nil
			return failed(diags)
		}
	}
	digest := m.tree.Digest()
	m.Digest = "sha256-" + hex.EncodeToString(digest[:])
	inputs := module.Inputs{Name: m.Name, Functions: env.Functions, Budget: env.Budget,
		Values: make(map[string]any, len(spec.Inputs))}
	for name, raw := range spec.Inputs {
		value, err := valueOf(raw)
		if err != nil {
			return fmt.Errorf("spec.inputs.%s: %w", name, err)
		}
		inputs.Values[name] = value
	}
	if env.Known == nil {
		env.Known = func(lang.Address) (cty.Value, bool) { return cty.NilVal, false }
	}
	x, diags := m.tree.Expand(inputs, env.Known)
	if diag.HasErrors(diags) {
		return failed(diags)
	}
	if err := answerable(x); err != nil {
		return err
	}
	m.Expansion = x
	instances := 0
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			instances += s.Len()
		}
	}
	if instances > MaxModule {
		return fmt.Errorf("the module has %d resources, and a Module has at most %d: use several Modules", instances,
			MaxModule)
	}
	return m.makeSets(spec, env)
}

// valueOf decodes an input. Its numbers keep their digits. Without a value, it is null.
func valueOf(raw v1alpha1.JSON) (value any, err error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	return value, d.Decode(&value)
}

// MaxModule is the maximum number of resources of a Module.
const MaxModule = 200_000

// Len returns the number of resources.
func (m *Module) Len() (n int) {
	for _, s := range m.Sets {
		n += s.Len()
	}
	return n
}

// Refuse returns the Module without its resources, for a reason that it cannot know.
func (m *Module) Refuse(why string) *Module {
	next := *m
	next.Problem = why
	next.forget()
	return &next
}

// forget removes what depends on the expansion.
func (m *Module) forget() {
	m.Sets, m.Outputs, m.Waiting, m.Expansion, m.byName = nil, nil, nil, nil, nil
}

// failed returns the errors of diagnostics as one.
func failed(diags diag.Diagnostics) error {
	problems := slices.DeleteFunc(slices.Clone(diags),
		func(d v1alpha1.Diagnostic) bool { return d.Severity != v1alpha1.SeverityError })
	return &diag.Failure{Operation: "expand module", Diagnostics: problems}
}

// makeSets makes the sets of the blocks.
func (m *Module) makeSets(spec *v1alpha1.ModuleSpec, env Environment) error {
	digests, dependencies := m.Expansion.Digests(), m.Expansion.Dependencies()
	values := m.Expansion.Values(func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	values.Variables() // those that depend on other objects are unknown, and validated when a resource refers to them
	if diags := values.Diagnostics(); diag.HasErrors(diags) {
		return failed(diags)
	}
	m.findWaiting(dependencies)
	versions := m.Expansion.OutputDigests()
	m.Outputs = make(map[string]*Output, len(m.Expansion.Root.Config.Outputs))
	for name := range m.Expansion.Root.Config.Outputs {
		version := versions(name)
		behind := dependencies.Output(name)
		m.Outputs[name] = &Output{Behind: m.absolute(behind), Version: hex.EncodeToString(version[:8]),
			Waits: m.waitsFor(behind, m.blocked...)}
	}
	imports, err := m.imports(env.Known)
	if err != nil {
		return err
	}
	missing := missingProviders{}
	for _, i := range m.Expansion.Instances {
		for _, block := range i.Sets {
			s, err := m.set(block, spec, env, values)
			if errors.Is(err, ErrNoProvider) {
				missing.add(block)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", block.Address(), err)
			}
			s.dependsOn = m.absolute(block.DependsOn())
			if err := s.digestBlock(); err != nil {
				return err
			}
			if s.Problem = m.Waiting[block.Address().String()]; s.Problem != "" {
				s.count, s.keys = 0, nil
				m.add(s)
				continue
			}
			s.contents = make([][sha256.Size]byte, block.Len())
			s.repeatsBy = m.absolute(dependencies.Repeats(block))
			s.through = make([][]lang.Address, block.Len())
			for k := range block.Len() {
				own := digests(block, k)
				s.contents[k] = sha256.Sum256(append(s.digest[:], own[:]...))
				s.through[k] = m.absolute(dependencies.Through(block, k))
			}
			if err := imports.take(s); err != nil {
				return err
			}
			m.add(s)
			for k := range block.Len() {
				m.findOrigin(s, k, env)
			}
		}
	}
	if err := missing.err(); err != nil {
		return err
	}
	return imports.rest(m)
}

// digestBlock sets the digest of what all instances share: the block as written, and where the Module puts it.
func (s *Set) digestBlock() error {
	written := s.block.Digest()
	shared, err := json.Marshal([]any{written[:], s.APIVersion, s.Kind, s.withDependsOn()})
	if err != nil {
		return fmt.Errorf("encode block: %w", err)
	}
	s.digest = sha256.Sum256(shared)
	return nil
}

// findOrigin finds the infrastructure that moves to the k-th instance of a block: that of the latest earlier address
// that is recorded, and that the Module no longer has.
func (m *Module) findOrigin(s *Set, k int, env Environment) {
	key := s.Key(k)
	if env.Recorded == nil || env.Recorded(s.UIDOf(key)) {
		return
	}
	for _, a := range m.Expansion.Origins(s.block, k) {
		if !m.has(a) && env.Recorded(uidOf(m.UID, s.APIVersion, a.Kind(), a.ObjectName())) {
			if s.moved == nil {
				s.moved = map[string]string{}
			}
			s.moved[key.Text()] = a.String()
			return
		}
	}
}

// has reports whether the Module has an instance with an address.
func (m *Module) has(a lang.Address) bool {
	of, key, keyed := a.Set()
	s := m.byName[blockName{of.Kind(), of.ObjectName()}]
	return s != nil && keyed == (s.Repeats != "") && s.Has(key)
}

// set returns the set of a block, without the contents of its instances.
func (m *Module) set(block *module.Set, spec *v1alpha1.ModuleSpec, env Environment,
	values *module.Values) (*Set, error) {
	at, diags := values.ProviderOf(block, 0)
	if diag.HasErrors(diags) {
		return nil, failed(diags)
	}
	config, err := m.configOf(at, spec.Providers)
	if err != nil {
		return nil, err
	}
	provider, err := env.Provider(block.Mode, block.Type, at.Source)
	if err != nil {
		return nil, err
	}
	s := &Set{
		Owner: m.Owner, APIVersion: v1alpha1.ProviderGroup(provider) + "/" + v1alpha1.ResourceVersion,
		Kind:     block.Mode.KindOf(block.Type),
		Template: block.Address().ObjectName(), Repeats: block.Repeats, spec: block.Spec,
		lifecycle: maps.Clone(block.Template()), block: block,
		source: m.Source, expansion: m.Expansion,
	}
	if config != "" {
		s.lifecycle["providerConfig"] = config
	}
	switch block.Repeats {
	case lang.RepeatForEach:
		for i := range block.Len() {
			s.keys = append(s.keys, block.Instance(i).Key.Name)
		}
	default:
		s.count = block.Len()
	}
	return s, nil
}

// configOf returns the name of the ProviderConfig for a provider configuration of the module; empty for the default
// one.
func (m *Module) configOf(at module.ProviderAddress, providers map[string]string) (string, error) {
	root := at.Module == m.Expansion.Root.Path
	if name := providers[at.ProviderID.String()]; root && name != "" {
		return name, nil
	}
	switch {
	case at.Block != nil && len(at.Block.Spec) > 0 && root:
		return "", fmt.Errorf("the provider block %s at %s has arguments. Write a ProviderConfig with them, and name it in spec.providers[%q]", at, at.Block.Range, at)
	case at.Block != nil && len(at.Block.Spec) > 0:
		return "", fmt.Errorf("the provider block %s at %s is not in the root module. Pass the configuration to the module by the argument providers", at, at.Block.Range)
	case at.Alias != "" && root:
		return "", fmt.Errorf("no ProviderConfig has the configuration %s of the module. Name one in spec.providers[%q]", at, at)
	case at.Alias != "":
		return "", fmt.Errorf("the configuration %s in %s has no ProviderConfig. Pass one to the module by the argument providers", at, at.Module)
	}
	return "", nil
}

// Kept reports whether the Module is deleted, and its infrastructure stays.
func (o *Owner) Kept() bool { return o.Observed && o.Deleting != nil }

// absolute replaces each address of a whole module by those of its blocks.
func (m *Module) absolute(list []lang.Address) []lang.Address {
	if !slices.ContainsFunc(list, func(a lang.Address) bool { return a.Mode == lang.ModeModule }) {
		return list
	}
	var out []lang.Address
	for _, a := range list {
		if a.Mode != lang.ModeModule {
			out = append(out, a)
			continue
		}
		for _, i := range m.Expansion.Instances {
			for _, s := range i.Sets {
				if a.Covers(s.Address()) {
					out = append(out, s.Address())
				}
			}
		}
	}
	slices.SortFunc(out, lang.Address.Compare)
	return slices.Compact(out)
}

// BlockAt returns the block with an address without a key; nil if there is none.
func (m *Module) BlockAt(addr lang.Address) *module.Set {
	i := m.Expansion.InstanceAt(addr.Module)
	if i == nil {
		return nil
	}
	for _, s := range i.Sets {
		if s.Address() == addr {
			return s
		}
	}
	return nil
}

// BlockSet returns the set for a kind and a name in a Module; without one, a set that has only the owner. So an
// instance that left the Module has its labels and its mark.
func (m *Module) BlockSet(ref v1alpha1.ObjectReference) *Set {
	base, _, _ := v1alpha1.ParseInstanceName(ref.Name)
	if s := m.byName[blockName{ref.Kind, base}]; s != nil {
		return s
	}
	gone := &Set{Owner: m.Owner, expansion: m.Expansion}
	if m.Expansion != nil && m.Deleting == nil {
		mode, terraformType := v1alpha1.ParseKind(ref.Kind)
		addr := lang.AddressOf(mode, terraformType, ref.Name)
		if w := m.Expansion.Waits(addr); w != nil {
			gone.Problem = reasonOf(w)
		}
		gone.undeclared = m.Expansion.Undeclares(addr)
	}
	return gone
}
