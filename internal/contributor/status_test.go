package contributor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestStatus writes and reads lists as the converter of apimachinery does.
func TestStatus(t *testing.T) {
	worker := v1alpha1.WorkflowUser{Username: "flow", Groups: []string{"workers"}, TokenFile: true}
	list := []v1alpha1.Contributor{
		{Identity: v1alpha1.Identity{Username: "ann", Groups: []string{"a", "b"}, TokenFile: true, Through: []v1alpha1.WorkflowUser{worker, {Username: "bot"}}},
			Wrote: []string{"spec", "labels"}, At: metav1.NewMicroTime(time.Unix(1_700_000_000, 123_456_000))},
		{Identity: v1alpha1.Identity{Username: "eve"}},
		{More: true, Wrote: []string{"spec"}},
	}
	written := ToList(list)
	for i := range list {
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(want), written[i]); diff != "" {
			t.Errorf("the entry %d (-converter +ToList):\n%s", i, diff)
		}
		var read v1alpha1.Contributor
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want, &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read, Of(map[string]any{"contributors": []any{want}})[0]); diff != "" {
			t.Errorf("the entry %d (-converter +Of):\n%s", i, diff)
		}
	}
	for _, field := range []string{"username", "groups", "tokenFile", "through", "more", "wrote", "at"} {
		bad := map[string]any{"contributors": []any{map[string]any{"username": "eve", field: 7}}}
		if got := Of(bad); len(got) != 1 || !got[0].More {
			t.Errorf("with %s that cannot be read, the contributors are %v; want anybody", field, got)
		}
	}
	if got := Of(map[string]any{"contributors": []any{map[string]any{"username": "eve", "at": "yesterday"}}}); len(got) != 1 || !got[0].More {
		t.Errorf("with a time that cannot be read, the contributors are %v; want anybody", got)
	}
}

// BenchmarkStatus adds a writer to a status, as each write of an object does.
func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{1, v1alpha1.MaxContributors} {
		var list []v1alpha1.Contributor
		for i := range n {
			list = Add(list, Write{By: v1alpha1.Identity{Username: fmt.Sprintf("user-%d", i), Groups: []string{"developers"}}, What: []string{v1alpha1.WroteSpec}, At: time.Now()})
		}
		status := map[string]any{"contributors": ToList(list)}
		write := Write{By: v1alpha1.Identity{Username: "user-0"}, What: []string{v1alpha1.WroteSpec}, At: time.Now()}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				ToList(Add(Of(status), write))
			}
		})
	}
}
