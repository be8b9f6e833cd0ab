// Package resourceset expands ResourceSets and Modules: it finds the keys of a set, and makes the object of each
// instance from the set's template. A block of a Module is such a set, too. The package is pure: it accesses no store
// and no ledger. It may import api, internal/lang, internal/diag, internal/module, internal/fieldnames and
// internal/suggest.
package resourceset

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/suggest"
)

const (
	// MaxCount is the maximum of spec.count.
	MaxCount = 1_100_000
	// MaxTotal is the maximum of the sum of spec.count of the sets of a namespace.
	MaxTotal = 2_200_000
	// MaxKeys is the maximum number of keys of forEach. The maximum size of an object also limits them.
	MaxKeys = 20_000
)

// Set is a ResourceSet with its keys, or a block in an instance of a module. It is immutable, and its instances share
// its template.
type Set struct {
	Owner
	// APIVersion, Kind and Template name the resource type and the name of the instances.
	APIVersion, Kind, Template string
	// Repeats is empty for a block that is not repeated: it has one instance without a key, or none.
	Repeats lang.Repetition
	// Source is the name of the ConfigMap with the keys; empty without one.
	Source string
	// Rollout limits how plans change the instances; nil without limits.
	Rollout *v1alpha1.ResourceSetRollout

	from *v1alpha1.ForEachSource
	// spec and lifecycle are those of the template. All instances share them, so no caller may change them.
	spec, lifecycle map[string]any
	// digest is a hash of the content that all instances share.
	digest [sha256.Size]byte
	count  int
	// keys are the keys of forEach, sorted, and values their values.
	keys    []string
	values  map[string]any
	imports map[string]v1alpha1.InstanceImport
	moved   map[string]string

	// block is that of a Module; nil for a ResourceSet. contents are the digests of its instances, and through the
	// objects on which they depend through named values.
	block    *module.Set
	contents [][sha256.Size]byte
	through  [][]lang.Address
	// repeatsBy are those of through to which count or for_each refers itself.
	repeatsBy []lang.Address
	// dependsOn are the addresses in depends_on of the block and of the modules that it is in.
	dependsOn []lang.Address
	// source is the ConfigMap with the files of the Module, and expansion the Module's; empty and nil for a
	// ResourceSet.
	source    string
	expansion *module.Expansion
	// undeclared is true without a block, if the Module has the block but not the instance of the module that it is in.
	undeclared bool
}

// New returns the set of an object. data is the content of the ConfigMap that it names, and configMap the revision of
// its last write; data is nil if the set names none, or if there is no such ConfigMap.
func New(obj *v1alpha1.ResourceSet, configMap int64, data map[string][]byte) (*Set, error) {
	template := &obj.Spec.Template
	s := &Set{
		Owner: Owner{
			Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, Generation: obj.Generation,
			Deleting: obj.DeletionTimestamp,
			Created:  obj.CreationTimestamp, Held: slices.Contains(obj.Finalizers, v1alpha1.FinalizerState),
			labels: map[string]string{},
		},
		APIVersion: template.APIVersion, Kind: template.Kind, Template: NameOf(obj),
		imports: map[string]v1alpha1.InstanceImport{}, moved: map[string]string{}, Rollout: obj.Spec.Rollout,
	}
	for _, labels := range []map[string]string{obj.Labels, template.Metadata.Labels} {
		maps.Copy(s.labels, labels)
	}
	var err error
	if s.spec, err = DecodeObject(template.Spec); err != nil {
		return nil, fmt.Errorf("spec.template.spec %w", err)
	}
	if s.lifecycle, err = DecodeObject(template.Lifecycle); err != nil {
		return nil, fmt.Errorf("spec.template.lifecycle %w", err)
	}
	shared, err := json.Marshal([]any{s.APIVersion, s.Kind, s.spec, s.lifecycle})
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	s.digest = sha256.Sum256(shared)
	s.Revision = revisionOf(obj, configMap)
	for _, i := range obj.Spec.Imports {
		s.imports[i.Key] = i
	}
	for _, m := range obj.Spec.Moved {
		s.moved[m.Key] = m.From
	}
	if obj.Spec.Count != nil {
		s.Repeats, s.count = lang.RepeatCount, int(*obj.Spec.Count)
		return s, nil
	}
	s.Repeats = lang.RepeatForEach
	if from := obj.Spec.ForEachFrom; from != nil {
		s.Source, s.from = from.ConfigMap.Name, from
	}
	s.readKeys(&obj.Spec, data)
	return s, nil
}

// readKeys sets the keys, or the Problem. All instances leave a set that is being deleted, whatever its keys are.
func (s *Set) readKeys(spec *v1alpha1.ResourceSetSpec, data map[string][]byte) {
	var err error
	s.Problem = ""
	if s.keys, s.values, err = keysOf(spec, data); err != nil && s.Deleting == nil {
		s.Problem = err.Error()
	}
}

// revisionOf returns the Revision of a set, given the revision of its ConfigMap.
func revisionOf(obj *v1alpha1.ResourceSet, configMap int64) int64 {
	content, err := json.Marshal([]any{obj.UID, obj.Generation, obj.Spec, obj.Labels, obj.DeletionTimestamp, configMap})
	if err != nil {
		content = nil // these values can always be encoded
	}
	sum := sha256.Sum256(content)
	return int64(binary.BigEndian.Uint64(sum[:]) & maxGeneration)
}

// NameOf returns the name of the template of a set.
func NameOf(obj *v1alpha1.ResourceSet) string {
	if name := obj.Spec.Template.Metadata.Name; name != "" {
		return name
	}
	return obj.Name
}

// WithKeys returns the set with other content of the ConfigMap that has its keys; nil content if there is none.
func (s *Set) WithKeys(data map[string][]byte) *Set {
	next := *s
	next.readKeys(&v1alpha1.ResourceSetSpec{ForEachFrom: s.from}, data)
	return &next
}

// Address returns the address of the set's template, such as sim_instance.web.
func (s *Set) Address() lang.Address {
	if s.block != nil {
		return s.block.Address()
	}
	return lang.Address{Type: v1alpha1.TypeOf(s.Kind), Name: s.Template}
}

// InModule reports whether the set is a block of a Module.
func (s *Set) InModule() bool { return s.block != nil || s.expansion != nil }

// nameOf returns the name of the instance with a key, which a set without a repetition ignores.
func (s *Set) nameOf(key v1alpha1.InstanceKey) string {
	if s.Repeats == "" {
		return s.Template
	}
	return v1alpha1.InstanceName(s.Template, key)
}

// InstanceName returns the name of the i-th instance.
func (s *Set) InstanceName(i int) string { return s.nameOf(s.Key(i)) }

// Len returns the number of instances.
func (s *Set) Len() int { return s.count + len(s.keys) }

// Key returns the i-th key, in the order of the keys.
func (s *Set) Key(i int) v1alpha1.InstanceKey {
	if s.Repeats == lang.RepeatForEach {
		return v1alpha1.InstanceKey{Named: true, Name: s.keys[i]}
	}
	return v1alpha1.InstanceKey{Index: i}
}

// Has reports whether the set has an instance with a key.
func (s *Set) Has(key v1alpha1.InstanceKey) bool {
	if !key.Named {
		return key.Index < s.count // with spec.forEach the count is 0
	}
	_, ok := slices.BinarySearch(s.keys, key.Name)
	return ok
}

// Dormant reports whether the set imports infrastructure, or takes over a record, for an instance that it does not
// have.
func (s *Set) Dormant() bool {
	keys := map[string]bool{}
	for key := range s.imports {
		keys[key] = true
	}
	for key := range s.moved {
		keys[key] = true
	}
	if len(keys) == 0 {
		return false
	}
	for i := range s.Len() {
		delete(keys, s.Key(i).Text())
	}
	return len(keys) > 0
}

// KeepsImport reports whether spec.imports has an entry of a key that the set does not have, although a destroy of that
// instance also destroys its infrastructure.
func (s *Set) KeepsImport(key v1alpha1.InstanceKey) bool {
	_, imports := s.imports[key.Text()]
	return imports && s.Deleting == nil && s.Problem == "" && !s.Has(key) && s.lifecycle["destroy"] != false
}

// Missing returns the error for a key that no instance of the set has.
func (s *Set) Missing(key v1alpha1.InstanceKey) error {
	has := "it has none"
	switch n := s.Len(); {
	case n == 0:
	case s.Repeats == lang.RepeatForEach:
		near := suggest.Nearest(key.Text(), s.keys)
		has = fmt.Sprintf("its keys are strings, such as %q", cmp.Or(near, s.keys[0]))
	case n == 1:
		has = "it has only the instance 0"
	default:
		has = fmt.Sprintf("it has the instances 0 to %d", n-1)
	}
	return fmt.Errorf("the ResourceSet of %s has no instance %s: %s", s.Address(), key, has)
}

// UIDOf returns the UID of the instance with a key. Instances of another type or name in the template have other UIDs.
func (s *Set) UIDOf(key v1alpha1.InstanceKey) types.UID {
	return uidOf(s.UID, s.APIVersion, s.Kind, s.nameOf(key))
}

// uidOf derives the UID of an instance from that of its set or Module, and from its kind and name.
func uidOf(owner types.UID, apiVersion, kind, name string) types.UID {
	space, err := uuid.Parse(string(owner))
	if err != nil { // only tests use UIDs of another form
		space = uuid.NewSHA1(uuid.NameSpaceOID, []byte(owner))
	}
	return types.UID(uuid.NewSHA1(space, []byte(apiVersion+"/"+kind+"/"+name)).String())
}

// maxGeneration keeps generations within what a float64 represents, because clients may decode them so.
const maxGeneration = 1<<53 - 1

// GenerationOf returns a hash of the content of the instance with a key. So it changes only for the instances whose
// content changes. It is at least 1. An author can construct two contents with the same generation; see Content.
func (s *Set) GenerationOf(key v1alpha1.InstanceKey) int64 {
	return generationOf(s.contentOf(key))
}

func generationOf(content [sha256.Size]byte) int64 {
	return int64(binary.BigEndian.Uint64(content[:])&maxGeneration) | 1
}

// contentOf returns the full hash of the content of the instance with a key.
func (s *Set) contentOf(key v1alpha1.InstanceKey) [sha256.Size]byte {
	if s.block != nil {
		return s.contents[s.indexOf(key)] // without the move, which ends when an apply makes it
	}
	own, err := json.Marshal([]any{s.values[key.Name], s.imports[key.Text()], s.moved[key.Text()]})
	if err != nil {
		own = nil // the values come from JSON
	}
	h := sha256.New()
	h.Write(s.digest[:])
	h.Write(own)
	return [sha256.Size]byte(h.Sum(nil))
}

// MovedFrom returns the address from which infrastructure moves to the instance with a key; "" if none does.
func (s *Set) MovedFrom(key v1alpha1.InstanceKey) string { return s.moved[key.Text()] }

// Instance returns the key and the value of an instance of a block as values know them; nil if the block is not
// repeated, or has no instance with the key.
func (s *Set) Instance(key v1alpha1.InstanceKey, values *module.Values) *lang.Instance {
	if s.block == nil || s.Repeats == "" || !s.Has(key) {
		return nil
	}
	return values.Instance(s.block, s.indexOf(key))
}

// indexOf returns the index of the instance with a key, which the set has.
func (s *Set) indexOf(key v1alpha1.InstanceKey) int {
	if !key.Named {
		return key.Index
	}
	i, _ := slices.BinarySearch(s.keys, key.Name)
	return i
}

// Content returns the full digest of an instance's content; "" for other objects, and for instances of a deleted set.
// An approval is bound to it in addition to the generation.
func Content(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	content, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, fieldContent)
	return content
}

// Object returns the object of the instance with a key. It shares the spec and the lifecycle with all other instances,
// so the caller must not change these.
func (s *Set) Object(key v1alpha1.InstanceKey) *unstructured.Unstructured {
	u := s.object(s.nameOf(key), s.UIDOf(key), s.GenerationOf(key))
	instance := u.Object[v1alpha1.FieldInstance].(map[string]any)
	content := s.contentOf(key)
	instance[fieldContent] = hex.EncodeToString(content[:])
	if s.Source != "" {
		instance[fieldSource] = s.Source
	}
	lifecycle := s.lifecycle
	switch {
	case s.block != nil:
		s.inModule(instance, s.indexOf(key))
		lifecycle = s.withDependsOn()
	case key.Named:
		instance["key"], instance[fieldValue] = key.Name, s.values[key.Name]
	default:
		instance["index"] = int64(key.Index)
	}
	if by, ok := s.imports[key.Text()]; ok {
		lifecycle = withField(lifecycle, "import", importOf(by))
	}
	if from, ok := s.moved[key.Text()]; ok {
		lifecycle = withField(lifecycle, "moved", map[string]any{"from": from})
	}
	if s.Kept() {
		lifecycle, instance[fieldForgets] = keptLifecycle(lifecycle), v1alpha1.ActionReasonReleased
	}
	if lifecycle != nil {
		u.Object["lifecycle"] = lifecycle
	}
	if s.spec != nil {
		u.Object["spec"] = s.spec
	}
	return u
}

func (s *Set) object(name string, uid types.UID, generation int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.APIVersion, "kind": s.Kind, "metadata": s.metadata(name, uid, generation),
		v1alpha1.FieldInstance: map[string]any{"set": s.Name, "setUID": string(s.UID),
			"template": fmt.Sprintf("%x", s.digest[:8])},
	}}
}

// timeFormat is that of metav1.Time.
const timeFormat = "2006-01-02T15:04:05Z"

// Leaving returns the object of an instance whose infrastructure exists, although its set no longer has it. It is
// marked for deletion. If the keys of the set are not known, it says so: no plan is made until they are, and then the
// set may have the instance again. s is nil if the set does not exist. The lifecycle of the template still protects the
// instance if the template has its type and name.
func Leaving(s *Set, ref v1alpha1.ObjectReference) *unstructured.Unstructured {
	if s == nil {
		s = &Set{Owner: Owner{Namespace: ref.Namespace, Name: ref.Set, UID: ref.SetUID}}
	}
	gone := *s
	if gone.Deleting == nil {
		gone.Deleting = &leavingSince
	}
	gone.APIVersion, gone.Kind = ref.APIVersion, ref.Kind
	u := gone.object(ref.Name, ref.UID, ref.Generation)
	if name, _, _ := v1alpha1.ParseInstanceName(ref.Name); name == s.Template && s.APIVersion == ref.APIVersion &&
		s.Kind == ref.Kind {
		kept := map[string]any{}
		for _, field := range []string{"preventDestroy", "destroy", "providerConfig"} {
			if v, ok := s.lifecycle[field]; ok {
				kept[field] = v
			}
		}
		u.Object["lifecycle"] = kept
	}
	instance := u.Object[v1alpha1.FieldInstance].(map[string]any)
	switch {
	case s.Kept():
		u.Object["lifecycle"], instance[fieldForgets] = map[string]any{"destroy": false}, v1alpha1.ActionReasonReleased
	case s.forgets(ref):
		u.Object["lifecycle"], instance[fieldForgets] = map[string]any{"destroy": false}, v1alpha1.ActionReasonRemoved
	}
	if s.Kind != "" {
		instance[fieldContent] = hex.EncodeToString(s.digest[:])
	}
	instance["leaving"], instance["reason"] = true, s.leavingReason(ref)
	if s.Problem != "" {
		instance[v1alpha1.FieldKeysUnknown] = true
	}
	return u
}

// Reasons for the destroy of an instance that left its set, in the terms of Terraform's JSON plan.
const (
	reasonCountIndex      = "delete_because_count_index"
	reasonEachKey         = "delete_because_each_key"
	reasonWrongRepetition = "delete_because_wrong_repetition"
	reasonNoModule        = "delete_because_no_module"
)

// leavingReason returns the reason why an instance left the set; "" if the set no longer has its type and name.
func (s *Set) leavingReason(ref v1alpha1.ObjectReference) string {
	name, key, keyed := v1alpha1.ParseInstanceName(ref.Name)
	switch {
	case s.undeclared:
		return reasonNoModule
	case s.Deleting != nil || name != s.Template || s.APIVersion != ref.APIVersion || s.Kind != ref.Kind:
		return ""
	case keyed != (s.Repeats != "") || key.Named != (s.Repeats == lang.RepeatForEach):
		return reasonWrongRepetition
	case !keyed:
		return ""
	case key.Named:
		return reasonEachKey
	default:
		return reasonCountIndex
	}
}

// LeavingReason returns the reason for the destroy of an object that left its set; "" for other objects.
func LeavingReason(u *unstructured.Unstructured) string {
	reason, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, "reason")
	return reason
}

// ForgetReason returns the action reason if the Module of an object makes plans forget it; "" if only lifecycle.destroy
// may do so.
func ForgetReason(u *unstructured.Unstructured) string {
	reason, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, fieldForgets)
	return reason
}

// IsLeaving reports whether an object is an instance that its set no longer has.
func IsLeaving(u *unstructured.Unstructured) bool {
	leaving, _, _ := unstructured.NestedBool(u.Object, v1alpha1.FieldInstance, "leaving")
	return leaving
}

// leavingSince is the deletion mark of instances that left their set. Nothing depends on the time itself.
var leavingSince = metav1.Unix(1, 0)

// keptLifecycle returns a lifecycle with which plans forget the instance.
func keptLifecycle(lifecycle map[string]any) map[string]any {
	kept := withField(lifecycle, "destroy", false)
	delete(kept, "preventDestroy")
	return kept
}

func withField(m map[string]any, name string, v any) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	m[name] = v
	return m
}

// InstanceOf returns the data of an instance for its expressions, and the name and UID of its set, or of its Module. ok
// is false if the object is no instance. For a block of a module that is not repeated, the data is nil.
func InstanceOf(u *unstructured.Unstructured) (i *lang.Instance, set string, setUID types.UID, ok bool) {
	m, ok := u.Object[v1alpha1.FieldInstance].(map[string]any)
	if !ok {
		return nil, "", "", false
	}
	set, _ = m["set"].(string)
	uid, _ := m["setUID"].(string)
	i = &lang.Instance{}
	_, i.Key, ok = v1alpha1.ParseInstanceName(u.GetName())
	path, _ := v1alpha1.SplitModuleObjectName(u.GetName())
	switch {
	case !ok && path != "":
		return nil, set, types.UID(uid), true
	case !ok:
		return nil, "", "", false
	case path != "":
		return i, set, types.UID(uid), true // the plan evaluates the value
	}
	if i.Key.Named {
		v, err := lang.Literal(m[fieldValue])
		if err != nil {
			return nil, "", "", false // New checks the values
		}
		i.Value = v
	}
	return i, set, types.UID(uid), true
}

// Members of v1alpha1.FieldInstance: each.value, the name of the ConfigMap that it comes from, the digest that Content
// returns, the path that ModuleOf returns, the addresses that Through returns, what ForgetReason returns, and the
// revision of the status, which only the server's workers see.
const (
	fieldStatusRevision = "statusRevision"

	fieldValue   = "value"
	fieldSource  = "source"
	fieldContent = "content"
	fieldModule  = "module"
	fieldThrough = "through"
	fieldForgets = "forgets"
)

// ModuleOf returns the path, without keys, of the module with the block that an instance is of; "" for an instance of a
// ResourceSet. See lang.ConfigOptions.
func ModuleOf(u *unstructured.Unstructured) string {
	path, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, fieldModule)
	return path
}

// SourceOf returns the name of the ConfigMap that each.key and each.value of an instance, or the files of its Module,
// come from; "" if there is none. A user needs the right to read the ConfigMap to see the values.
func SourceOf(u *unstructured.Unstructured) string {
	source, _, _ := unstructured.NestedString(u.Object, v1alpha1.FieldInstance, fieldSource)
	return source
}

// HideValue removes the value that an instance has from a ConfigMap. A user who may read the instance may lack the
// right to read the ConfigMap.
func HideValue(u *unstructured.Unstructured) {
	if SourceOf(u) != "" {
		unstructured.RemoveNestedField(u.Object, v1alpha1.FieldInstance, fieldValue)
	}
}

// SetStatusRevision notes in an instance the revision of its status in the ledger.
func SetStatusRevision(u *unstructured.Unstructured, revision int64) {
	if m, ok := u.Object[v1alpha1.FieldInstance].(map[string]any); ok {
		m[fieldStatusRevision] = revision
	}
}

// StatusRevision returns the revision that SetStatusRevision noted. ok is false if there is none.
func StatusRevision(u *unstructured.Unstructured) (revision int64, ok bool) {
	m, _ := u.Object[v1alpha1.FieldInstance].(map[string]any)
	revision, ok = m[fieldStatusRevision].(int64)
	return revision, ok
}

// TemplateOf identifies the template of an instance; "" for other objects. Instances with the same identifier have the
// same expressions.
func TemplateOf(u *unstructured.Unstructured) string {
	m, _ := u.Object[v1alpha1.FieldInstance].(map[string]any)
	uid, _ := m["setUID"].(string)
	digest, _ := m["template"].(string)
	if digest == "" || IsLeaving(u) {
		return ""
	}
	path, _ := m[fieldModule].(string) // equal blocks of two modules refer to different values
	return uid + "/" + digest + "/" + path
}
