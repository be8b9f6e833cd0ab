package scope_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func token(name string) lang.Address {
	return lang.Address{Mode: v1alpha1.ModeEphemeral, Type: "test_token", Name: name}
}

func TestEphemeralResourcesAreOpenedOnceAndClosedLastFirst(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Data["secrets/team/db"] = map[string][]byte{"audience": []byte("db")}
	w.Put("ephemeral-test-token/first", map[string]any{"audience": "${secret.db.audience}"}, nil)
	w.Put("ephemeral-test-token/second", map[string]any{"audience": "${ephemeral.test_token.first.value}"}, nil)
	s := w.NewScope(w.Plan(), "team", nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			v, ok, err := s.Value(t.Context(), token("second"))
			if err != nil || !ok {
				t.Errorf("%t, %v", ok, err)
				return
			}
			value := v.GetAttr("value")
			want := cty.StringVal("value-for-value-for-db").WithMarks(cty.NewValueMarks(lang.Ephemeral, lang.Sensitive,
				lang.Origin{Address: lang.Address{Namespace: "team", Mode: v1alpha1.ModeEphemeral, Type: "test_token", Name: "second"}}))
			if !value.RawEquals(want) {
				t.Errorf("got %#v, want %#v", value, want)
			}
		})
	}
	all.Wait()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"open db", "open value-for-db", "close value-for-db", "close db"}, w.Provider.RecordedCalls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEphemeralResourcesThatAreNotOpened(t *testing.T) {
	unknown := cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)})
	thing := func(name string) lang.Address { return lang.Address{Type: "test_thing", Name: name} }
	for name, tc := range map[string]struct {
		spec, lifecycle map[string]any
		applying        bool
		deferred        bool
		fails           bool
		want            []string
		failed          string
	}{
		"its configuration is not known yet": {spec: map[string]any{"audience": "${test_thing.new.id}"}},
		"what it depends on is not made yet": {
			spec: map[string]any{"audience": "db"}, lifecycle: map[string]any{"dependsOn": []any{"test_thing.new"}},
		},
		"the provider puts it off": {spec: map[string]any{"audience": "db"}, deferred: true, want: []string{"open db"}},
		"the provider refuses": {
			spec: map[string]any{"audience": "db"}, fails: true, want: []string{"open db"}, failed: "no such audience",
		},
		"nothing is put off while applying": {
			spec: map[string]any{"audience": "db"}, deferred: true, applying: true, want: []string{"open db"}, failed: "test_token",
		},
		"a precondition does not hold": {
			spec:      map[string]any{"audience": "db"},
			lifecycle: map[string]any{"preconditions": []any{map[string]any{"condition": "${1 > 2}", "errorMessage": "one is less"}}},
			failed:    "one is less",
		},
		"a postcondition does not hold": {
			spec:      map[string]any{"audience": "db"},
			lifecycle: map[string]any{"postconditions": []any{map[string]any{"condition": `${self.audience == "other"}`, "errorMessage": "not for others"}}},
			want:      []string{"open db", "close db"}, failed: "postcondition",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Put("ephemeral-test-token/t", tc.spec, tc.lifecycle)
			w.Provider.Deferred["open db"] = tc.deferred
			if tc.fails {
				w.Provider.Fails["open db"] = activitiestest.Refusal("no such audience")
			}
			planned := func(addr lang.Address) (cty.Value, bool) { return unknown, addr == thing("new") }
			if tc.applying {
				planned = nil
			}
			s := w.NewScope(w.Plan(), "team", planned)
			v, ok, err := s.Value(t.Context(), token("t"))
			if cerr := s.Close(t.Context()); cerr != nil {
				t.Error(cerr)
			}
			if diff := cmp.Diff(tc.want, w.Provider.RecordedCalls()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.failed != "" {
				if err == nil || !strings.Contains(diag.Describe(diag.Of(err)), tc.failed) {
					t.Errorf("got %v, want an error with %q", err, tc.failed)
				}
				return
			}
			if err != nil || !ok || !v.HasMark(lang.Ephemeral) {
				t.Fatalf("got %#v, %t, %v; want a value that is marked", v, ok, err)
			}
			plain, _ := v.UnmarkDeep()
			if plain.GetAttr("value").IsKnown() {
				t.Errorf("got %#v, want a value that is not known", plain)
			}
		})
	}
}

func TestEphemeralResourcesDoNotWaitForTheSlotOfWhoNeedsThem(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(&v1alpha1.Limits{Concurrency: 1})
	w.Put("ephemeral-test-token/t", map[string]any{"audience": "db"}, nil)
	r := w.Put("data-test-image/i", map[string]any{"name": "i"}, nil)
	s := w.NewScope(w.Plan(), "team", nil)
	configured, err := s.Acquire(t.Context(), r, session.SlotAndRate)
	if err != nil {
		t.Fatal(err)
	}
	defer configured.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, _, err := s.Value(ctx, token("t")); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEphemeralResourcesInACircle(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Put("ephemeral-test-token/a", map[string]any{"audience": "${namespace.shared.ephemeral.test_token.b.value}"}, nil)
	// In its own namespace, "b" is a's neighbour.
	w.Put("shared:ephemeral-test-token/b", map[string]any{"audience": "${ephemeral.test_token.c.value}"}, nil)
	w.Put("shared:ephemeral-test-token/c", map[string]any{"audience": "${namespace.team.ephemeral.test_token.a.value}"}, nil)
	s := w.NewScope(w.Plan(), "team", nil)
	_, _, err := s.Value(t.Context(), token("a"))
	const want = "ephemeral.test_token.a -> namespace.shared.ephemeral.test_token.b -> namespace.shared.ephemeral.test_token.c -> ephemeral.test_token.a"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

func TestEphemeralResourceThatCannotBeClosed(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Put("ephemeral-test-token/a", map[string]any{"audience": "a"}, nil)
	w.Put("ephemeral-test-token/b", map[string]any{"audience": "b"}, nil)
	w.Provider.Fails["close b"] = activitiestest.Refusal("busy")
	s := w.NewScope(w.Plan(), "team", nil)
	for _, name := range []string{"a", "b"} {
		if _, _, err := s.Value(t.Context(), token(name)); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "close ephemeral.test_token.b") || strings.Contains(err.Error(), "value-for") {
		t.Errorf("got %v, want it to name what was not closed, and nothing else", err)
	}
	if said := w.Provider.RecordedCalls(); said[len(said)-1] != "close a" {
		t.Errorf("the other one was not closed: %v", said)
	}
	w.Config(nil)
	w.Forbidden["team/providerconfigs/default"] = true
	s = w.NewScope(w.Plan(), "team", nil)
	if _, _, err := s.Value(t.Context(), token("a")); err == nil {
		t.Error("a user without the right used a ProviderConfig")
	} else if _, ok := errors.AsType[*scope.ForbiddenError](err); !ok {
		t.Errorf("got %v, want a *ForbiddenError", err)
	}
}
