package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
)

// collected puts objects into a store, each as "group/resource/namespace/name", and returns its collection.
func collected(t testing.TB, s *Store, objects ...string) *Collection {
	t.Helper()
	for _, object := range objects {
		part := strings.Split(object, "/")
		data := fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, part[0], part[1], part[2], part[3])
		key := objectPrefix + "/" + object
		data, err := s.encryption.transformer(kschema.GroupResource{Group: part[0], Resource: part[1]}).TransformToStorage(t.Context(), data, value.DefaultContext(key))
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, key, string(data), 0)
	}
	return s.Collection(func(u *unstructured.Unstructured) runtime.Object { return u }, func() runtime.Object { return &unstructured.Unstructured{} })
}

// visible is a view of everything except the objects whose "resource/namespace" is hidden.
func visible(namespace string, hidden ...string) View {
	return View{Namespace: namespace, Visible: func(gr kschema.GroupResource, namespace string) (bool, error) {
		if namespace == "" {
			return !slices.ContainsFunc(hidden, func(h string) bool { return strings.HasPrefix(h, gr.Resource+"/") }), nil
		}
		return !slices.Contains(hidden, gr.Resource+"/"+namespace), nil
	}}
}

func paged(limit int64, token string) storage.ListOptions {
	return storage.ListOptions{Predicate: storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.Everything(), Limit: limit, Continue: token,
		GetAttrs: func(o runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil },
	}}
}

func namesIn(t *testing.T, objects []runtime.Object) (names []string) {
	t.Helper()
	for _, o := range objects {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.GetObjectKind().GroupVersionKind().Kind+"/"+m.GetNamespace()+"/"+m.GetName())
	}
	return names
}

func TestCollectionListsWhatAViewHas(t *testing.T) {
	c := collected(t, openStore(t),
		"a.hykube.io/disk/team-2/x", "a.hykube.io/disk/team/x", "a.hykube.io/net/team/x", "a.hykube.io/net/team/y",
		"z.hykube.io/net/other/x", "z.hykube.io/net/team/x",
		"hykube.io/plans/team/p", "core/secrets/team/s", "b.example.com/net/team/x",
	)
	all := []string{"disk/team-2/x", "disk/team/x", "net/team/x", "net/team/y", "net/other/x", "net/team/x"}
	for name, test := range map[string]struct {
		view View
		want []string
	}{
		"everything":                   {visible(""), all},
		"a namespace":                  {visible("team"), []string{"disk/team/x", "net/team/x", "net/team/y", "net/team/x"}},
		"a namespace with a dash":      {visible("team-2"), []string{"disk/team-2/x"}},
		"a namespace without objects":  {visible("tea"), nil},
		"a hidden kind in a namespace": {visible("team", "net/team"), []string{"disk/team/x"}},
		"hidden parts of all":          {visible("", "net/team", "disk/team-2"), []string{"disk/team/x", "net/other/x"}},
		"nothing":                      {visible("", "disk/team", "disk/team-2", "net/team", "net/other"), nil},
		"hidden in another namespace":  {visible("team", "net/other"), []string{"disk/team/x", "net/team/x", "net/team/y", "net/team/x"}},
	} {
		for _, limit := range []int64{0, 1, 2, 100} {
			var got []string
			for token, pages := "", 0; ; pages++ {
				page, err := c.List(t.Context(), test.view, paged(limit, token))
				if err != nil || page.Revision == 0 {
					t.Fatalf("%s: revision %d: %v", name, page.Revision, err)
				}
				got = append(got, namesIn(t, page.Objects)...)
				if token = page.Continue; token == "" {
					break
				}
				if pages > len(all) {
					t.Fatalf("%s: the list does not end", name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s in pages of %d: %s", name, limit, diff)
			}
		}
	}
}

// TestCollectionFailsClosed lists a view whose check of the user's rights returns an error.
func TestCollectionFailsClosed(t *testing.T) {
	c := collected(t, openStore(t), "a.hykube.io/disk/team/x")
	cause := errors.New("no answer")
	view := View{Visible: func(kschema.GroupResource, string) (bool, error) { return true, cause }}
	if page, err := c.List(t.Context(), view, paged(0, "")); !errors.Is(err, cause) {
		t.Errorf("%v, %v", page, err)
	}
}
