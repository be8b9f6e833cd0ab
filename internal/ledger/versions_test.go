package ledger

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"

	"k8s.io/apimachinery/pkg/types"
)

// TestVersionChangesForDependants expects a new version exactly when dependants of an instance must be visited again.
func TestVersionChangesForDependants(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	i, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		reason string
		change func()
		want   string
	}{
		{"it was made", func() { i.Plan, i.Attributes = "p1", []byte(`{"size":1}`) }, "p1"},
		{"nothing of it was changed", func() { i.Plan = "p2" }, "p1"},
		{"it was changed", func() { i.Attributes = []byte(`{"size":2}`) }, "p2"},
		{"something of it is secret", func() { i.Plan, i.Sensitive = "p3", []byte(`[["size"]]`) }, "p3"},
		{"a call failed", func() { i.Plan, i.Unplanned = "p4", true }, "p4~"},
		{"it failed again, with something else", func() { i.Unplanned, i.Attributes = true, []byte(`{"size":3}`) }, "p4~~"},
		{"it was made at last", func() { i.Attributes = []byte(`{"size":4}`) }, "p4"},
	} {
		step.change()
		if err := l.Save(ctx, i); err != nil {
			t.Fatal(err)
		}
		if i.Version != step.want {
			t.Errorf("%s: version %q, want %q", step.reason, i.Version, step.want)
		}
	}
}

// TestVersionsOfAttributes expects an attribute to keep its version for as long as it keeps its value, unless Renewed lists it.
func TestVersionsOfAttributes(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	i, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		plan, attributes, sensitive string
		unplanned                   bool
		renewed                     []string
		name, tags, size, all       string
	}{
		{plan: "p1", attributes: `{"name":"a","tags":["x"]}`, name: "p1", tags: "p1", size: "p1", all: "p1"},
		{plan: "p2", attributes: `{"name":"a","tags":["y"]}`, name: "p1", tags: "p2", size: "p1", all: "p2"},
		{plan: "p3", attributes: `{"name":"a","tags":["y"],"size":1}`, name: "p1", tags: "p2", size: "p3", all: "p3"},
		{plan: "p4", attributes: `{"name":"b","tags":["y"]}`, name: "p4", tags: "p2", size: "p4", all: "p4"},
		{plan: "p5", attributes: `{"name":"b","tags":["y"]}`, name: "p4", tags: "p2", size: "p4", all: "p4"},
		{plan: "p6", attributes: `{"name":"b","tags":["y"]}`, sensitive: `[[{"attr":"name"}]]`, name: "p6", tags: "p2", size: "p4", all: "p6"},
		{plan: "p6a", attributes: `{"name":"b","tags":["y"]}`, sensitive: `[[]]`, name: "p6a", tags: "p6a", size: "p6a", all: "p6a"},
		{plan: "p7", attributes: `{"name":"c","tags":["y"]}`, sensitive: `[[{"attr":"name"}]]`, unplanned: true, name: "p7~", tags: "p7~", size: "p7~", all: "p7~"},
		{plan: "p8", name: "p8", tags: "p8", size: "p8", all: "p8"},
		{plan: "p9", attributes: `{"name":"c"}`, name: "p9", tags: "p9", size: "p9", all: "p9"},
		{plan: "p10", attributes: `{"name":"c"}`, renewed: []string{""}, name: "p9", tags: "p9", size: "p9", all: "p10"},
		{plan: "p11", attributes: `{"name":"c"}`, renewed: []string{"", "name"}, name: "p11", tags: "p9", size: "p9", all: "p11"},
		{plan: "p12", attributes: `{"name":"d"}`, renewed: []string{"", "tags"}, name: "p12", tags: "p12", size: "p9", all: "p12"},
		{plan: "p13", attributes: `{"name":"d"}`, renewed: []string{"", "name"}, unplanned: true, name: "p13~", tags: "p13~", size: "p13~", all: "p13~"},
		{plan: "p14", attributes: `{"name":"d"}`, name: "p13~", tags: "p13~", size: "p13~", all: "p13~"},
	} {
		i.Plan, i.Attributes, i.Sensitive, i.Unplanned = types.UID(step.plan), []byte(step.attributes), []byte(step.sensitive), step.unplanned
		i.Renewed = step.renewed
		if len(i.Sensitive) == 0 {
			i.Sensitive = nil
		}
		if len(i.Attributes) == 0 {
			i.Attributes = nil
		}
		if err := l.Save(ctx, i); err != nil {
			t.Fatal(err)
		}
		if i, err = l.Instance(ctx, ref("main")); err != nil {
			t.Fatal(err)
		}
		got := []string{i.VersionOf("name"), i.VersionOf("tags"), i.VersionOf("size"), i.VersionOf("")}
		if diff := cmp.Diff([]string{step.name, step.tags, step.size, step.all}, got); diff != "" {
			t.Errorf("%s of name, tags, size, all (-want +got):\n%s", step.plan, diff)
		}
	}
}

// TestWritersOfAttributes expects each attribute to keep those who caused the last plan that changed it.
func TestWritersOfAttributes(t *testing.T) {
	ctx, l := t.Context(), newLedger()
	i, err := l.Instance(ctx, ref("main"))
	if err != nil {
		t.Fatal(err)
	}
	by := func(names ...string) (list []v1alpha1.Contributor) {
		for _, name := range names {
			list = append(list, v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}})
		}
		return list
	}
	for _, step := range []struct {
		reason, attributes string
		causes             []string
		name, tags         []string
	}{
		{"it was made", `{"name":"a","tags":["x"]}`, []string{"alice", "bob"}, []string{"alice", "bob"}, []string{"alice", "bob"}},
		{"eve caused other tags", `{"name":"a","tags":["y"]}`, []string{"eve", "alice"}, []string{"alice", "bob"}, []string{"eve", "alice"}},
		{"bob caused nothing", `{"name":"a","tags":["y"]}`, []string{"bob"}, []string{"alice", "bob"}, []string{"eve", "alice"}},
		{"bob caused another name", `{"name":"b","tags":["y"]}`, []string{"bob"}, []string{"bob"}, []string{"eve", "alice"}},
		{"no plan caused other tags", `{"name":"b","tags":["z"]}`, nil, []string{"bob"}, []string{"eve", "alice"}},
		{"it is gone", "", []string{"bob"}, nil, nil},
		{"carol made it again", `{"name":"b","tags":["z"]}`, []string{"carol"}, []string{"carol"}, []string{"carol"}},
	} {
		i.Attributes, i.Causes = []byte(step.attributes), by(step.causes...)
		if step.attributes == "" {
			i.Attributes = nil
		}
		if err := l.Save(ctx, i); err != nil {
			t.Fatal(err)
		}
		if i, err = l.Instance(ctx, ref("main")); err != nil {
			t.Fatal(err)
		}
		for attribute, want := range map[string][]string{"name": step.name, "tags": step.tags} {
			if got := contributor.Names(contributor.WritersOf(i.Writers, attribute)); !slices.Equal(got, want) {
				t.Errorf("%s: %v caused the %s, want %v", step.reason, got, attribute, want)
			}
		}
	}
}
