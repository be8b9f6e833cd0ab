package resourceset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// object returns a set with a template.
func object(change func(*v1alpha1.ResourceSetSpec)) *v1alpha1.ResourceSet {
	s := &v1alpha1.ResourceSet{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "prod", UID: "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", Labels: map[string]string{"team": "infra", "app": "set"}}}
	s.Spec.Template = v1alpha1.ResourceTemplate{
		APIVersion: "sim.hykube.io/v1", Kind: "sim-instance", Metadata: v1alpha1.ResourceTemplateMetadata{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: &runtime.RawExtension{Raw: []byte(`{"name":"web-${count.index}"}`)},
	}
	change(&s.Spec)
	return s
}

func count(n int32) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) { s.Count = &n }
}

func forEach(raw string) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) { s.ForEach = &v1alpha1.JSON{Raw: []byte(raw)} }
}

func expand(t *testing.T, obj *v1alpha1.ResourceSet, data map[string][]byte) *Set {
	t.Helper()
	s, err := New(obj, 7, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Set) []string {
	out := []string{}
	for i := range s.Len() {
		out = append(out, s.Object(s.Key(i)).GetName())
	}
	return out
}

// from takes the keys from the ConfigMap "keys", or from one of its keys.
func from(key string) func(*v1alpha1.ResourceSetSpec) {
	return func(s *v1alpha1.ResourceSetSpec) {
		s.ForEachFrom = &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: "keys", Key: key}}
	}
}

func TestKeys(t *testing.T) {
	data := func(k, v string) map[string][]byte { return map[string][]byte{k: []byte(v)} }
	many := strings.Repeat(`"k":1,`, 1)
	for i := range MaxKeys {
		many += fmt.Sprintf(`"k%d":1,`, i)
	}
	for why, tc := range map[string]struct {
		spec    func(*v1alpha1.ResourceSetSpec)
		data    map[string][]byte
		names   []string
		problem string
	}{
		"a count":                        {count(3), nil, []string{"web[0]", "web[1]", "web[2]"}, ""},
		"a count of none":                {count(0), nil, []string{}, ""},
		"a map":                          {forEach(`{"b":1,"a":{"x":2}}`), nil, []string{`web["a"]`, `web["b"]`}, ""},
		"a list":                         {forEach(`["b","a"]`), nil, []string{`web["a"]`, `web["b"]`}, ""},
		"an empty map":                   {forEach(`{}`), nil, []string{}, ""},
		"a list with a key twice":        {forEach(`["a","b","a"]`), nil, nil, `the key "a" occurs twice`},
		"a list of numbers":              {forEach(`[1]`), nil, nil, "the element 0 is not a string"},
		"a number":                       {forEach(`3`), nil, nil, "must be a map, or a list of unique strings"},
		"an expression as a key":         {forEach(`{"a-${x}":1}`), nil, nil, "keys and values are constants"},
		"an expression in a value":       {forEach(`{"a":{"x":["${x}"]}}`), nil, nil, "keys and values are constants"},
		"an expression that is constant": {forEach(`{"a${1}":1}`), nil, nil, "keys and values are constants"},
		"a directive in a key":           {forEach(`["%{if true}a%{endif}"]`), nil, nil, "write the expression in the template, or $${ for the text ${"},
		"an escaped key":                 {forEach(`{"$${x}":1,"a%%{":2,"b$":3}`), nil, []string{`web["$${x}"]`, `web["a\u0025{"]`, `web["b$"]`}, ""},
		"an escaped key in a list":       {forEach(`["$${x}"]`), nil, []string{`web["$${x}"]`}, ""},
		"a long key":                     {forEach(`["` + strings.Repeat("a", 254) + `"]`), nil, nil, "has 254 bytes"},
		"too many keys":                  {forEach("{" + strings.TrimSuffix(many, ",") + "}"), nil, nil, "forEach has at most 20000"},
		"the keys of a ConfigMap":        {from(""), data("a", "${no template}"), []string{`web["a"]`}, ""},
		"one key of a ConfigMap":         {from("k.yaml"), data("k.yaml", "a: {x: 1}\nb: {}\n"), []string{`web["a"]`, `web["b"]`}, ""},
		"a list in a ConfigMap":          {from("k.yaml"), data("k.yaml", "[a]"), []string{`web["a"]`}, ""},
		"no such ConfigMap":              {from(""), nil, nil, `there is no ConfigMap "keys"`},
		"no such key of it":              {from("other"), data("k", ""), nil, `has no key "other"`},
		"an empty key of it":             {from("k"), data("k", ""), nil, "must be a map, or a list"},
		"bytes that are no text":         {from(""), data("k", "\xff"), nil, "is not text"},
		"a key that is not composed":     {forEach(`["e\u0301"]`), nil, nil, `the key "e\u0301" is not in Unicode's normal form NFC, so another key may look the same and have the same each.key: write "\u00e9"`},
		"a composed key":                 {forEach(`["\u00e9"]`), nil, []string{`web["é"]`}, ""},
		"keys that are not printable":    {forEach(`["a\u009b1m","b\u202e","c\u007f"]`), nil, []string{`web["a\u009b1m"]`, `web["b\u202e"]`, `web["c\u007f"]`}, ""},
		"the same key twice in the YAML": {from("k"), data("k", "a: 1\na: 2\n"), nil, "neither YAML nor JSON"},
	} {
		s := expand(t, object(tc.spec), tc.data)
		if tc.problem != "" {
			if !strings.Contains(s.Problem, tc.problem) || s.Len() != 0 {
				t.Errorf("%s: problem %q with %d instances, want %q", why, s.Problem, s.Len(), tc.problem)
			}
			continue
		}
		if diff := cmp.Diff(tc.names, names(s)); diff != "" || s.Problem != "" {
			t.Errorf("%s: problem %q, names (-want +got):\n%s", why, s.Problem, diff)
		}
	}
}

// TestKeysThatCannotBeReadShowNoValue has keys of a ConfigMap that cannot be read. Who may read the set, or its plans, may lack the right to
// the ConfigMap.
func TestKeysThatCannotBeReadShowNoValue(t *testing.T) {
	for _, content := range []string{"a: *hunter2\n", "a: !!int hunter2\n", "a: {x: hunter2\n", "a: hunter2\na: hunter3\n", "a: [hunter2", "{\"a\": \"hunter2\"", "hunter2"} {
		s := expand(t, object(from("k")), map[string][]byte{"k": []byte(content)})
		if s.Problem == "" || strings.Contains(s.Problem, "hunter") {
			t.Errorf("the problem of %q is %q", content, s.Problem)
		}
	}
}

// TestEscapedValues has values with the escapes of a template. each.value has the text, as in Terraform.
func TestEscapedValues(t *testing.T) {
	s := expand(t, object(forEach(`{"$${k}":{"$${n}":["%%{v}","$${w}",3]},"list":"$${x}"}`)), nil)
	i, _, _, ok := InstanceOf(s.Object(v1alpha1.InstanceKey{Named: true, Name: "${k}"}))
	if want := `{"${n}":["%{v}","${w}",3]}`; !ok || text(t, i.Value) != want {
		t.Errorf("each.value is %s, want %s", text(t, i.Value), want)
	}
	if i, _, _, ok = InstanceOf(s.Object(v1alpha1.InstanceKey{Named: true, Name: "list"})); !ok || i.Value.AsString() != "${x}" {
		t.Errorf("each.value is %#v", i.Value)
	}
}

func text(t *testing.T, v cty.Value) string {
	t.Helper()
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestObjectOfAnInstance(t *testing.T) {
	s := expand(t, object(func(spec *v1alpha1.ResourceSetSpec) {
		forEach(`{"a":{"size":3}}`)(spec)
		spec.Imports = []v1alpha1.InstanceImport{{Key: "a", ID: "ins-${1"}}
		spec.Moved = []v1alpha1.InstanceMove{{Key: "a", From: "sim_instance.old"}}
	}), nil)
	key := v1alpha1.InstanceKey{Named: true, Name: "a"}
	u := s.Object(key)
	want := map[string]any{
		"name": `web["a"]`, "namespace": "prod", "uid": string(s.UIDOf(key)), "generation": s.GenerationOf(key), "resourceVersion": fmt.Sprint(s.Revision),
		"labels": map[string]any{"team": "infra", "app": "web"},
	}
	if diff := cmp.Diff(want, u.Object["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"import": map[string]any{"id": "ins-$${1"}, "moved": map[string]any{"from": "sim_instance.old"}}, u.Object["lifecycle"]); diff != "" {
		t.Errorf("lifecycle (-want +got):\n%s", diff)
	}
	i, set, uid, ok := InstanceOf(u)
	if !ok || set != "fleet" || uid != s.UID || i.Key != key || i.Value.GetAttr("size").AsBigFloat().String() != "3" {
		t.Errorf("InstanceOf: %+v of %s %s, %t", i, set, uid, ok)
	}
}

// TestTheIdentityOfAnImportIsConstant expands a set whose object was written without validation: nobody checks the right of
// its author to what the expression names.
func TestTheIdentityOfAnImportIsConstant(t *testing.T) {
	identity := &runtime.RawExtension{Raw: []byte(`{"id":"${secret.db.password}","tags":["%{if true}x%{endif}"],"size":3}`)}
	if !HasTemplate(identity) || HasTemplate(&runtime.RawExtension{Raw: []byte(`{"id":"net-1"}`)}) || HasTemplate(nil) {
		t.Error("HasTemplate")
	}
	s := expand(t, object(func(spec *v1alpha1.ResourceSetSpec) {
		count(1)(spec)
		spec.Imports = []v1alpha1.InstanceImport{{Key: "0", Identity: identity}}
	}), nil)
	want := map[string]any{"import": map[string]any{"identity": map[string]any{"id": "$${secret.db.password}", "tags": []any{"%%{if true}x%%{endif}"}, "size": int64(3)}}}
	if diff := cmp.Diff(want, s.Object(s.Key(0)).Object["lifecycle"]); diff != "" {
		t.Errorf("lifecycle (-want +got):\n%s", diff)
	}
}

// TestValuesOfAConfigMapAreHidden serves instances: their readers need not have the right to the ConfigMap.
func TestValuesOfAConfigMapAreHidden(t *testing.T) {
	for why, tc := range map[string]struct {
		spec   func(*v1alpha1.ResourceSetSpec)
		source string
		want   any
	}{
		"a value of the set": {forEach(`{"a":"v"}`), "", "v"},
		"a value of a ConfigMap": {func(s *v1alpha1.ResourceSetSpec) {
			s.ForEachFrom = &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: "keys"}}
		}, "keys", nil},
	} {
		s := expand(t, object(tc.spec), map[string][]byte{"a": []byte("v")})
		u := s.Object(s.Key(0))
		if i, _, _, ok := InstanceOf(u); !ok || i.Value.AsString() != "v" || SourceOf(u) != tc.source {
			t.Errorf("%s: %v, from %q", why, i, SourceOf(u))
		}
		HideValue(u)
		if got := u.Object[v1alpha1.FieldInstance].(map[string]any)["value"]; got != tc.want {
			t.Errorf("%s: served with the value %v", why, got)
		}
	}
	if source := SourceOf(Leaving(expand(t, object(forEach(`["a"]`)), nil), v1alpha1.ObjectReference{Name: `web["b"]`})); source != "" {
		t.Errorf("an instance that left has values of %q", source)
	}
}

// TestOnlyWhatChangesHasAnotherGeneration edits sets. The UID of an instance stays, and its generation changes only if the
// instance does.
func TestOnlyWhatChangesHasAnotherGeneration(t *testing.T) {
	type of map[string][2]any
	describe := func(spec func(*v1alpha1.ResourceSetSpec)) of {
		s, out := expand(t, object(spec), nil), of{}
		for i := range s.Len() {
			u := s.Object(s.Key(i))
			out[u.GetName()] = [2]any{u.GetUID(), u.GetGeneration()}
		}
		return out
	}
	for why, tc := range map[string]struct {
		before, after func(*v1alpha1.ResourceSetSpec)
		changed       []string
	}{
		"a larger count": {count(2), count(4), nil},
		"another value":  {forEach(`{"a":1,"b":2}`), forEach(`{"a":1,"b":3}`), []string{`web["b"]`}},
		"a further key":  {forEach(`{"a":1,"b":2}`), forEach(`{"a":1,"b":2,"c":3}`), nil},
		"another import": {count(2), func(s *v1alpha1.ResourceSetSpec) {
			count(2)(s)
			s.Imports = []v1alpha1.InstanceImport{{Key: "1", ID: "x"}}
		}, []string{"web[1]"}},
		"another move": {count(2), func(s *v1alpha1.ResourceSetSpec) {
			count(2)(s)
			s.Moved = []v1alpha1.InstanceMove{{Key: "0", From: "a.b"}}
		}, []string{"web[0]"}},
		"the template": {count(2), func(s *v1alpha1.ResourceSetSpec) { count(2)(s); s.Template.Spec.Raw = []byte(`{}`) }, []string{"web[0]", "web[1]"}},
		"the lifecycle": {count(1), func(s *v1alpha1.ResourceSetSpec) {
			count(1)(s)
			s.Template.Lifecycle = &runtime.RawExtension{Raw: []byte(`{"destroy":false}`)}
		}, []string{"web[0]"}},
		"only the labels": {count(1), func(s *v1alpha1.ResourceSetSpec) { count(1)(s); s.Template.Metadata.Labels = nil }, nil},
	} {
		before, after := describe(tc.before), describe(tc.after)
		var changed []string
		for name, was := range before {
			if now, stays := after[name]; stays && now[0] != was[0] {
				t.Errorf("%s: %s has another UID", why, name)
			} else if stays && now[1] != was[1] {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		if diff := cmp.Diff(tc.changed, changed); diff != "" {
			t.Errorf("%s: changed (-want +got):\n%s", why, diff)
		}
	}
	other := func(change func(*v1alpha1.ResourceTemplate)) of {
		return describe(func(s *v1alpha1.ResourceSetSpec) { count(1)(s); change(&s.Template) })
	}
	web := other(func(*v1alpha1.ResourceTemplate) {})["web[0]"][0]
	if got := other(func(s *v1alpha1.ResourceTemplate) { s.Kind = "sim-disk" })["web[0]"][0]; got == web {
		t.Error("an instance of another kind has the same UID, so a plan would change one into the other")
	}
	if got := other(func(s *v1alpha1.ResourceTemplate) { s.Metadata.Name = "app" })["app[0]"][0]; got == web {
		t.Error("an instance of another name has the same UID")
	}
}

func TestLeavingInstances(t *testing.T) {
	protected := func(spec func(*v1alpha1.ResourceSetSpec)) func(*v1alpha1.ResourceSetSpec) {
		return func(s *v1alpha1.ResourceSetSpec) {
			spec(s)
			s.Template.Lifecycle = &runtime.RawExtension{Raw: []byte(`{"preventDestroy":true,"ignoreChanges":["all"]}`)}
		}
	}
	ref := func(name string) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-instance", Namespace: "prod", Name: name, UID: "u", Generation: 5, Set: "fleet", SetUID: "s"}
	}
	other := func(s *v1alpha1.ResourceSetSpec) { count(1)(s); s.Template.Metadata.Name = "app" }
	for why, tc := range map[string]struct {
		set    *Set
		name   string
		reason string
		kept   bool
	}{
		"an index beyond the count":     {expand(t, object(protected(count(1))), nil), "web[4]", reasonCountIndex, true},
		"a key that was removed":        {expand(t, object(protected(forEach(`["a"]`))), nil), `web["b"]`, reasonEachKey, true},
		"a set that has keys now":       {expand(t, object(protected(forEach(`["a"]`))), nil), "web[0]", reasonWrongRepetition, true},
		"a set with another template":   {expand(t, object(protected(other)), nil), "web[0]", "", false},
		"a set that is there no longer": {nil, "web[0]", "", false},
	} {
		u := Leaving(tc.set, ref(tc.name))
		lifecycle, _ := u.Object["lifecycle"].(map[string]any)
		if u.GetDeletionTimestamp() == nil || !IsLeaving(u) || LeavingReason(u) != tc.reason || (lifecycle["preventDestroy"] == true) != tc.kept {
			t.Errorf("%s: deletion %v, leaving %t, reason %q, lifecycle %v", why, u.GetDeletionTimestamp(), IsLeaving(u), LeavingReason(u), lifecycle)
		}
		if _, ok := u.Object["spec"]; ok || u.GetGeneration() != 5 || u.GetUID() != "u" {
			t.Errorf("%s: %v", why, u.Object)
		}
	}
}

func TestHas(t *testing.T) {
	byIndex, byKey := expand(t, object(count(2)), nil), expand(t, object(forEach(`["0","1"]`)), nil)
	for _, tc := range []struct {
		set  *Set
		key  v1alpha1.InstanceKey
		want bool
	}{
		{byIndex, v1alpha1.InstanceKey{Index: 1}, true}, {byIndex, v1alpha1.InstanceKey{Index: 2}, false}, {byIndex, v1alpha1.InstanceKey{Named: true, Name: "1"}, false},
		{byKey, v1alpha1.InstanceKey{Index: 1}, false}, {byKey, v1alpha1.InstanceKey{Named: true, Name: "1"}, true}, {byKey, v1alpha1.InstanceKey{Named: true, Name: "2"}, false},
	} {
		if got := tc.set.Has(tc.key); got != tc.want {
			t.Errorf("%s has %s: %t", tc.set.Repeats, tc.key, got)
		}
	}
	if a := byIndex.Address(); a != (lang.Address{Type: "sim_instance", Name: "web"}) {
		t.Errorf("address %s", a)
	}
}
