package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

const scanned = "sim.hykube.io"

// openScanned returns a store with objects of one group, written as "resource/namespace/name", and some of its neighbours.
func openScanned(t *testing.T, objects ...string) *Objects {
	t.Helper()
	s := openStore(t)
	o := s.Objects()
	add := func(group, object string) {
		part := strings.Split(object, "/")
		key := groupPrefix(group) + object
		data := fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, group, part[0], part[1], part[2])
		data, err := o.encryption.transformer(kschema.GroupResource{Group: group, Resource: part[0]}).TransformToStorage(t.Context(), data, value.DefaultContext(key))
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, key, string(data), 0)
	}
	for _, object := range objects {
		add(scanned, object)
	}
	add("sim.hykube.in", "before/team/x")
	add("sim.hykube.ioo", "behind/team/x")
	return o
}

func list(t *testing.T, o *Objects, namespace string) []string {
	t.Helper()
	var got []string
	for obj, err := range o.List(t.Context(), scanned, namespace) {
		if err != nil {
			t.Fatal(err)
		}
		if obj.GetResourceVersion() == "" {
			t.Errorf("%s has no resource version", obj.GetName())
		}
		got = append(got, obj.GetKind()+"/"+obj.GetNamespace()+"/"+obj.GetName())
	}
	return got
}

func TestListLeapsFromKindToKind(t *testing.T) {
	all := []string{
		"sim_bucket/other/a", "sim_bucket/team/a", "sim_bucket/team/b", "sim_bucket/team-2/a",
		"sim_network/other/a", "sim_network_policy/team/a", "sim_subnet/team/a",
	}
	o := openScanned(t, all...)
	for namespace, want := range map[string][]string{
		"team":   {"sim_bucket/team/a", "sim_bucket/team/b", "sim_network_policy/team/a", "sim_subnet/team/a"},
		"team-2": {"sim_bucket/team-2/a"},
		"other":  {"sim_bucket/other/a", "sim_network/other/a"},
		"tea":    nil,
		"":       all,
	} {
		got := list(t, o, namespace)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("namespace %q (-want +got):\n%s", namespace, diff)
		}
	}
	for range o.List(t.Context(), scanned, "team") {
		break // a caller that has enough must not be given more
	}
}

func TestListGoesFromPageToPage(t *testing.T) {
	var want []string
	for i := range scanPage + 1 {
		want = append(want, fmt.Sprintf("sim_bucket/team/%04d", i))
	}
	o := openScanned(t, want...)
	if diff := cmp.Diff(want, list(t, o, "team")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGet(t *testing.T) {
	o := openScanned(t, "sim_bucket/team/a")
	for name, there := range map[string]bool{"a": true, "b": false} {
		obj, err := o.Get(t.Context(), kschema.GroupResource{Group: scanned, Resource: "sim_bucket"}, "team", name)
		if err != nil || (obj != nil) != there {
			t.Errorf("get %q: %v, %v", name, obj, err)
		}
	}
}
