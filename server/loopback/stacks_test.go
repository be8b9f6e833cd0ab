package loopback

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/store"
)

// writers allows verbs on resources, such as "create secrets".
type writers []string

func (w writers) May(_ context.Context, _ v1alpha1.Identity, r store.Right) (bool, error) {
	return slices.Contains(w, r.Verb+" "+r.Resource), nil
}

// TestOutputsAreWritten writes the outputs of a stack to objects that exist already, or not.
func TestOutputsAreWritten(t *testing.T) {
	own := &v1alpha1.Stack{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Stack"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team", UID: "u"}}
	former, other := own.DeepCopy(), own.DeepCopy()
	former.UID = "former"
	other.Name, other.UID = "shop", "other"
	foreign := madeBy(former, "out", "")
	foreign.OwnerReferences[0].APIVersion = "apps/v1"
	configMap := func(meta metav1.ObjectMeta) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"old": "x"}}
	}
	all := writers{"create configmaps", "update configmaps", "create secrets", "update secrets"}
	for why, tc := range map[string]struct {
		may      writers
		existing *corev1.ConfigMap
		current  *v1alpha1.Stack // the stack that the API has; nil means the same
		problem  string
	}{
		"new objects":                     {may: all},
		"an own object":                   {may: all, existing: configMap(madeBy(own, "out", ""))},
		"an object of a user":             {may: all, existing: configMap(metav1.ObjectMeta{Name: "out", Namespace: "team"}), problem: "was not made by this stack"},
		"one of an earlier stack":         {may: all, existing: configMap(madeBy(former, "out", ""))},
		"one of a later stack":            {may: all, existing: configMap(madeBy(former, "out", "")), current: former, problem: "gone"},
		"one of another stack":            {may: all, existing: configMap(madeBy(other, "out", "")), problem: "was not made by this stack"},
		"one of another kind of stack":    {may: all, existing: configMap(foreign), problem: "was not made by this stack"},
		"the author lost the right":       {may: all[:3], problem: "no right to update secrets"},
		"the author may write no objects": {may: nil, existing: configMap(madeBy(own, "out", "")), problem: "no right to create configmaps"},
	} {
		t.Run(why, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/main", nil, nil), `{"id":"i-1","password":"hunter2","uses":null}`)
			core := fake.NewClientset()
			if tc.existing != nil {
				core = fake.NewClientset(tc.existing.DeepCopy())
			}
			client := serve(t, func(*http.Request) (any, error) { return cmp.Or(tc.current, own), nil })
			k := &Stacks{Client: client, Core: core, Queries: &query.Queries{Sources: w.Sources}, Access: tc.may}
			s := own.DeepCopy()
			s.Status.Author = &v1alpha1.Identity{Username: "ann"}
			s.Spec.Outputs = map[string]string{"id": "${test_thing.main.id}", "password": "${test_thing.main.password}"}
			s.Spec.WriteOutputsTo = &v1alpha1.StackOutputTargets{ConfigMap: "out", Secret: "out"}
			out, err := k.Outputs(t.Context(), s)
			failed, is := errors.AsType[*query.OutputError](err)
			if tc.problem == "gone" {
				is, failed = errors.Is(err, store.ErrGone), &query.OutputError{Problem: "gone"}
			}
			if tc.problem == "" && err != nil || tc.problem != "" && (!is || !strings.Contains(failed.Problem, tc.problem)) {
				t.Fatalf("%v, want %q", err, tc.problem)
			}
			cm, err := core.CoreV1().ConfigMaps("team").Get(t.Context(), "out", metav1.GetOptions{})
			if tc.problem != "" {
				if tc.existing != nil && (err != nil || cm.Data["old"] != "x") {
					t.Errorf("the ConfigMap was changed: %v, %v", cm, err)
				}
				return
			}
			if err != nil || len(cm.Data) != 1 || cm.Data["id"] != "i-1" || !metav1.IsControlledBy(cm, s) {
				t.Errorf("%v, %v", cm, err)
			}
			secret, err := core.CoreV1().Secrets("team").Get(t.Context(), "out", metav1.GetOptions{})
			if err != nil || len(secret.Data) != 1 || string(secret.Data["password"]) != "hunter2" || !metav1.IsControlledBy(secret, s) {
				t.Errorf("%v, %v", secret, err)
			}
			if len(out) != 2 || out[0].Value != `"i-1"` || out[1] != (v1alpha1.StackOutput{Name: "password", Sensitive: true}) {
				t.Errorf("the status has %+v", out)
			}
		})
	}
}

// TestOutputsKeepTheWritersOfWhatTheyRead writes outputs again and again. A key that changes gets the author of the stack and the
// writers of what its output reads, and the other keys keep theirs.
func TestOutputsKeepTheWritersOfWhatTheyRead(t *testing.T) {
	s := &v1alpha1.Stack{}
	s.Status.Author = &v1alpha1.Identity{Username: "ann"}
	by := func(name string) []v1alpha1.Contributor {
		return []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: name}}}
	}
	writers := map[string][]v1alpha1.Contributor{"zone": by("eve"), "name": by("bob")}
	text, before := "", map[string]string(nil)
	for _, step := range []struct {
		reason     string
		after      map[string]string
		zone, name []string
	}{
		{"they are new", map[string]string{"zone": "a", "name": "x"}, []string{"ann", "eve"}, []string{"ann", "bob"}},
		{"the zone was written by carol", map[string]string{"zone": "b", "name": "x"}, []string{"ann", "carol"}, []string{"ann", "bob"}},
		{"the name has no output any more", map[string]string{"zone": "b"}, []string{"ann", "carol"}, []string{"ann"}},
	} {
		text = writtenFor(s, text, before, step.after, writers)
		list, err := contributor.DecodeKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string][]string{"zone": step.zone, "name": step.name} {
			if got := slices.Sorted(slices.Values(contributor.Names(contributor.WritersOf(list, key)))); !slices.Equal(got, want) {
				t.Errorf("%s: the writers of the key %q are %v, want %v", step.reason, key, got, want)
			}
		}
		before = step.after
		writers = map[string][]v1alpha1.Contributor{"zone": by("carol")}
	}
}

// TestWrittenOutputsChange changes the objects with the outputs of a stack, as a user does.
func TestWrittenOutputsChange(t *testing.T) {
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team", UID: "u"}}
	s.Spec.WriteOutputsTo = &v1alpha1.StackOutputTargets{ConfigMap: "out", Secret: "out"}
	cm, secret := &corev1.ConfigMap{ObjectMeta: madeBy(s, "out", "")}, &corev1.Secret{ObjectMeta: madeBy(s, "out", "")}
	cm.UID, secret.UID, secret.ResourceVersion = "c", "s", "2"
	core := fake.NewClientset(cm, secret)
	k, seen := &Stacks{Core: core}, map[string]string{}
	note := func(when string) {
		t.Helper()
		text, err := k.Written(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for before, same := range seen {
			if same == text {
				t.Errorf("%s: the same text %q as %s", when, text, before)
			}
		}
		seen[when] = text
	}
	note("at first")
	cm.ResourceVersion = "3"
	if _, err := core.CoreV1().ConfigMaps("team").Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	note("after an edit of the ConfigMap")
	if err := core.CoreV1().Secrets("team").Delete(t.Context(), "out", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	note("after a delete of the Secret")
	if err := core.CoreV1().ConfigMaps("team").Delete(t.Context(), "out", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	note("after a delete of both")
}
