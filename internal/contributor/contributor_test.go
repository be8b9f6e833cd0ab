package contributor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(second int) time.Time { return time.Unix(int64(second), 0) }

func write(user string, second int, what ...string) Write {
	return Write{By: v1alpha1.Identity{Username: user}, What: what, At: at(second)}
}

func entry(user string, second int, what ...string) v1alpha1.Contributor {
	return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: user}, Wrote: what, At: metav1.NewMicroTime(at(second))}
}

func TestAddKeepsTheOthers(t *testing.T) {
	list := Add(Add(Add(nil, write("eve", 1, "spec")), write("alice", 2, "spec")), write("eve", 3, "labels"))
	want := []v1alpha1.Contributor{entry("alice", 2, "spec"), entry("eve", 3, "spec", "labels")}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestAUserThroughAnotherIsAnother keeps what the worker of another user wrote for a user: it needs the rights of both.
func TestAUserThroughAnotherIsAnother(t *testing.T) {
	through := func(second int, users ...string) Write {
		w := write("alice", second, "spec")
		for _, name := range users {
			w.By.Through = append(w.By.Through, v1alpha1.WorkflowUser{Username: name})
		}
		return w
	}
	list := Add(Add(Add(nil, through(1, "mallory", "flow")), through(2)), through(3, "flow", "mallory"))
	if len(list) != 2 || list[0].Through != nil || len(list[1].Through) != 2 || !list[1].At.Time.Equal(at(3)) {
		t.Errorf("the contributors: %+v", list)
	}
	done := []v1alpha1.Contributor{entry("alice", 9, "spec")}
	if left := Without(list, done); len(left) != 1 || len(left[0].Through) != 2 {
		t.Errorf("after the apply of what alice wrote alone: %+v", left)
	}
}

func TestReplaceTakesPartsOver(t *testing.T) {
	list := Replace(Replace(nil, write("eve", 1, "region", "endpoint")), write("alice", 2, "endpoint"))
	want := []v1alpha1.Contributor{entry("eve", 1, "region"), entry("alice", 2, "endpoint")}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.Contributor{entry("alice", 3, "endpoint", "region")}, Replace(list, write("alice", 3, "region"))); diff != "" {
		t.Error(diff)
	}
}

// TestLimit keeps the latest users, and one entry for all others, however often it is applied.
func TestLimit(t *testing.T) {
	var list []v1alpha1.Contributor
	for i := range 40 {
		list = Add(list, write(fmt.Sprintf("user-%02d", i), i, "spec"))
	}
	if n := len(list); n != v1alpha1.MaxContributors+1 {
		t.Fatalf("%d entries, want %d", n, v1alpha1.MaxContributors+1)
	}
	if first, last := list[0], list[len(list)-1]; first.Username != "user-24" || !last.More || last.Username != "" || !last.At.Time.Equal(at(23)) {
		t.Errorf("the list begins with %+v and ends with %+v", first, last)
	}
	if again := Merge(list, list); !cmp.Equal(again, list) {
		t.Error(cmp.Diff(list, again))
	}
}

// TestText names each object once, however much a user wrote of it.
func TestText(t *testing.T) {
	list := []v1alpha1.Contributor{entry("eve", 1, "spec", "ProviderConfig mine: config.region", "ConfigMap hosts: list", "ProviderConfig mine: secretRefs"), {More: true}}
	if got, want := Text(list), "eve (spec, ProviderConfig mine: config.region and secretRefs, ConfigMap hosts: list), others"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := Names(append(list, entry("eve", 2))); !cmp.Equal(got, []string{"eve", "others"}) {
		t.Errorf("names %v", got)
	}
}

func TestWithout(t *testing.T) {
	list := []v1alpha1.Contributor{entry("alice", 1, "spec"), entry("eve", 5, "spec", "labels")}
	done := []v1alpha1.Contributor{entry("alice", 3, "spec", "ConfigMap hosts: list"), entry("eve", 2, "spec")}
	if diff := cmp.Diff([]v1alpha1.Contributor{entry("eve", 5, "spec", "labels")}, Without(list, done)); diff != "" {
		t.Errorf("a user who wrote again must stay: %s", diff)
	}
}

func TestStatusRoundTrip(t *testing.T) {
	list := []v1alpha1.Contributor{entry("alice", 1, "spec"), {More: true, Wrote: []string{"labels"}, At: metav1.NewMicroTime(at(2))}}
	list[0].Groups, list[0].TokenFile = []string{"dev"}, true
	got := Of(map[string]any{"contributors": ToList(list)})
	if diff := cmp.Diff(list, got); diff != "" {
		t.Error(diff)
	}
	if got := Of(map[string]any{"contributors": []any{"forged"}}); len(got) != 1 || !got[0].More {
		t.Errorf("an unreadable list has unknown users, got %+v", got)
	}
}

func names(list []v1alpha1.Contributor) (out []string) {
	for _, c := range list {
		out = append(out, c.Username)
	}
	return out
}

// has returns the function that reports whether an object with some keys has a key.
func has(keys ...string) func(string) bool {
	return func(key string) bool { return slices.Contains(keys, key) }
}

// TestWritersOfKeys attributes each key to the user who wrote it last.
func TestWritersOfKeys(t *testing.T) {
	all := has("hosts", "region", "other")
	list := CreateKeys(write("alice", 1))
	list = WriteKeys(list, write("eve", 2, "hosts", "region"), all)
	list = WriteKeys(list, write("bob", 3, "region"), all)
	for key, want := range map[string][]string{"hosts": {"eve"}, "region": {"bob"}, "other": {"alice"}, "": {"alice", "eve", "bob"}} {
		if got := names(WritersOf(list, key)); !cmp.Equal(got, want) {
			t.Errorf("writers of the key %q: %v, want %v", key, got, want)
		}
	}
	if got := names(WritersOf(WriteKeys(list, write("alice", 4, "hosts"), all), "hosts")); !cmp.Equal(got, []string{"alice"}) {
		t.Errorf("the first author wrote the key again, and its writers are %v", got)
	}
	var keys []string
	for i := range maxKeys + 1 {
		keys = append(keys, fmt.Sprint("key-", i))
	}
	if got := names(WritersOf(WriteKeys(list, write("eve", 5, keys...), has(keys...)), "region")); len(got) < 3 {
		t.Errorf("with too many keys, each user may have written each: %v", got)
	}
	decoded, err := DecodeKeys(EncodeKeys(list))
	if err != nil || len(WritersOf(decoded, "region")) != 1 {
		t.Errorf("%v, %v", decoded, err)
	}
}

// TestRemovedKeysKeepTheirWriters removes more keys than an annotation names. Each removal keeps its user, the list stays
// short, and the keys that the object has keep their own writers.
func TestRemovedKeysKeepTheirWriters(t *testing.T) {
	list := CreateKeys(write("alice", 1))
	list = WriteKeys(list, write("eve", 2, "gone"), has("kept"))
	if got := names(WritersOf(WriteAll(list, write("bob", 3), has("kept")), "gone")); !cmp.Equal(got, []string{"eve"}) {
		t.Errorf("bob wrote all keys again, and eve's removal became one of %v", got)
	}
	list = WriteKeys(list, write("bob", 3, "kept"), has("kept"))
	for i := range 3 * maxKeys {
		list = WriteKeys(list, write("carol", 4+i, fmt.Sprint("key-", i)), has("kept"))
	}
	if tooManyKeys(list) {
		t.Errorf("the list has become too long: %d users", len(list))
	}
	if got := names(WritersOf(list, "gone")); !slices.Contains(got, "eve") {
		t.Errorf("eve removed the key, and its writers are %v", got)
	}
	if got := names(WritersOf(list, "kept")); !cmp.Equal(got, []string{"bob"}) {
		t.Errorf("the writers of the key that is left are %v", got)
	}
}

// TestTakeBack removes what was taken back, and keeps what the same user wrote otherwise, or wrote since.
func TestTakeBack(t *testing.T) {
	list := []v1alpha1.Contributor{entry("alice", 1, "spec", "labels"), entry("bob", 2, "spec"), entry("eve", 5, "spec"), {More: true}}
	back := Only([]v1alpha1.Contributor{entry("alice", 1, "spec", "labels"), entry("bob", 2, "spec"), entry("eve", 4, "spec"), {More: true, Wrote: []string{"spec"}}}, "spec")
	want := []v1alpha1.Contributor{entry("alice", 1, "labels"), entry("eve", 5, "spec"), {More: true}}
	if diff := cmp.Diff(want, TakeBack(list, back)); diff != "" {
		t.Error(diff)
	}
}
