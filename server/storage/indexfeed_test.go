package storage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
)

func all(string, index.Node) bool { return true }

// described returns what a reader sees of an instance.
func described(namespace string, n index.Node) string {
	return fmt.Sprint(namespace, "/", n.Object.Name, " ", n.Object.Generation, " ", n.Object.Labels, " ", n.Readiness(), " ", n.Object.Instance.Leaving)
}

// listInstances lists all instances in pages of a size, and returns the position of the first page.
func listInstances(t *testing.T, x *index.Index, namespace string, size int) (list []index.Located, position uint64) {
	t.Helper()
	for after := (index.Place{}); ; {
		page, err := x.InstancesAfter(t.Context(), namespace, after, size, all)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > size || page.More && len(page.Items) < size {
			t.Fatalf("a page of %d instances with the limit %d; more follow: %t", len(page.Items), size, page.More)
		}
		if after == (index.Place{}) {
			position = page.Position
		}
		if list = append(list, page.Items...); !page.More {
			return list, position
		}
		after = page.Last
	}
}

// TestChangesOfInstancesLeadToTheNextList makes random writes, and applies the changes that the index reports to an earlier list
// of the instances. The result must be the next list.
func TestChangesOfInstancesLeadToTheNextList(t *testing.T) {
	for seed := range uint64(4) {
		x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil), random: rand.New(rand.NewPCG(seed, 7))}
		putProvider(x.catalog, "name")
		x.open()
		followed := x.newIndex()
		replica, at, most := map[types.UID]string{}, uint64(0), 0
		for round := range 40 {
			for range x.random.IntN(12) {
				x.setStep()
			}
			list, position := listInstances(t, followed, "", 3)
			batches, next, _, ok := followed.ChangesSince(at)
			if ok && next < position {
				t.Fatalf("round %d: the position after the changes is %d, that of the list %d", round, next, position)
			}
			for _, b := range batches {
				for _, c := range b.Changes {
					if c.After.Object == nil {
						delete(replica, c.Before.Object.UID)
						continue
					}
					replica[c.After.Object.UID] = described(c.Namespace, c.After)
				}
			}
			want := map[types.UID]string{}
			for _, l := range list {
				want[l.UID] = described(l.Namespace, index.Node{Object: l.Object, Record: l.Record})
			}
			if !ok {
				replica = want // the first list
			}
			if diff := cmp.Diff(want, replica); diff != "" || len(want) != len(list) {
				t.Fatalf("seed %d, round %d: %d instances in pages; the changes lead to another list (-listed +got):\n%s", seed, round, len(list), diff)
			}
			most, at = max(most, len(want)), next
			if !ok {
				at = position
			}
		}
		if most < 5 {
			t.Errorf("seed %d: at most %d instances", seed, most)
		}
	}
}

// TestAPageOfInstancesContinuesByKey removes the instances of the last page, so that the next one cannot begin at their position.
func TestAPageOfInstancesContinuesByKey(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "a", "uid-a", 12, `{}`)
	x.counted("team", "b", "uid-b", 2, `{}`)
	x.counted("other", "c", "uid-c", 2, `{}`)
	followed := x.newIndex()
	names := func(list []index.Located) (out []string) {
		for _, l := range list {
			out = append(out, l.Namespace+"/"+l.Name)
		}
		return out
	}
	list, _ := listInstances(t, followed, "", 5)
	want := []string{"other/c[0]", "other/c[1]"}
	for i := range 12 {
		want = append(want, fmt.Sprintf("team/a[%d]", i))
	}
	if want = append(want, "team/b[0]", "team/b[1]"); !slices.Equal(names(list), want) {
		t.Errorf("all instances: %q", names(list))
	}
	if list, _ := listInstances(t, followed, "other", 1); !slices.Equal(names(list), want[:2]) {
		t.Errorf("those of one namespace: %q", names(list))
	}
	x.counted("team", "a", "uid-a", 4, `{}`)
	page, err := followed.InstancesAfter(t.Context(), "", index.Place{Namespace: "team", Of: "a", Name: "a[6]"}, 9, all)
	if err != nil || !slices.Equal(names(page.Items), []string{"team/b[0]", "team/b[1]"}) || page.More {
		t.Errorf("after an instance that left: %q, %v", names(page.Items), err)
	}
	odd := func(_ string, n index.Node) bool { return n.Object.Instance.Key.Index%2 == 1 }
	page, err = followed.InstancesAfter(t.Context(), "", index.Place{}, 3, odd)
	if err != nil || !slices.Equal(names(page.Items), []string{"other/c[1]", "team/a[1]", "team/a[3]"}) || !page.More {
		t.Errorf("the selected ones: %q, %v", names(page.Items), err)
	}
}

// TestAWatchOfInstancesBeginsWhereAListEnded asks for the position of a watch: after a list, after an event, and from before the
// first refresh.
func TestAWatchOfInstancesBeginsWhereAListEnded(t *testing.T) {
	x := newIndexed(t)
	followed := x.newIndex()
	if _, ok, err := followed.PositionAt(t.Context(), "", 1); !ok || err != nil {
		t.Errorf("without instances, a watch cannot begin: %v", err)
	}
	x.counted("team", "a", "uid-a", 2, `{}`)
	_, position := listInstances(t, followed, "", 10)
	page, err := followed.InstancesAfter(t.Context(), "", index.Place{}, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	followed.NoteList(page.At, position)
	x.counted("team", "a", "uid-a", 3, `{}`)
	if err := followed.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed := func(at uint64) (names []string) {
		batches, _, _, ok := followed.ChangesSince(at)
		if !ok {
			return []string{"unknown"}
		}
		for _, b := range batches {
			for _, c := range b.Changes {
				names = append(names, c.After.Object.Name)
			}
		}
		return names
	}
	at, ok, err := followed.PositionAt(t.Context(), "team", page.At)
	if err != nil || !ok || !slices.Contains(changed(at), "a[2]") || slices.Contains(changed(at), "a[0]") && at < position {
		t.Errorf("from the list: %q, %v", changed(at), err)
	}
	last, err := followed.InstancesAfter(t.Context(), "", index.Place{}, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok, err = followed.PositionAt(t.Context(), "", last.At); err != nil || !ok || !slices.Contains(changed(at), "a[2]") {
		t.Errorf("from an event, without the last batch before it: %q, %v", changed(at), err)
	}
	if _, ok, err = followed.PositionAt(t.Context(), "team", 0); ok || err != nil {
		t.Errorf("from before the first refresh: %t, %v", ok, err)
	}
	if _, ok, err = followed.PositionAt(t.Context(), "elsewhere", 0); !ok || err != nil {
		t.Errorf("a namespace without instances: %t, %v", ok, err)
	}
	x.counted("team", "many", "uid-many", 30_000, `{}`)
	if err := followed.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := followed.ChangesSince(at); ok {
		t.Error("the index keeps 30,000 changes")
	}
}

// TestSearchFindsNamesAndIDs searches objects and instances in the index.
func TestSearchFindsNamesAndIDs(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "web", "uid-web", 30, `{}`)
	followed := x.newIndex()
	list, _ := listInstances(t, followed, "", 100)
	x.recordOf(list[7].Ref("team"), "ins-0007")
	for text, want := range map[string][]string{
		"WEB[2":    {"web[2]", "web[20]", "web[21]", "web[22]", "web[23]", "web[24]", "web[25]", "web[26]", "web[27]", "web[28]", "web[29]"},
		"ins-0007": {"web[7]"}, "ins-0": nil, "database": nil,
	} {
		var got []string
		for after := (index.FoundPlace{}); ; {
			found, _, err := followed.Search(t.Context(), index.Names{Contains: text, ID: text}, after, 4, all)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				got, after = append(got, f.Name), f.Place()
			}
			if len(found) < 4 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if found, _, err := followed.Search(t.Context(), index.Names{Namespace: "other", Contains: "web"}, index.FoundPlace{}, 4, all); err != nil || len(found) != 0 {
		t.Errorf("in another namespace: %v, %v", found, err)
	}
}
