package conformance

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

// TestPrivateData checks the private data from create to delete. The data are not text, and they must arrive unchanged.
func TestPrivateData(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	s.command("binary-private")
	st := s.saved(s.create(attrs{"note": "1"}))
	created := st.Private
	if !bytes.HasPrefix(created, []byte("\x00\xff\xfe\x80")) || len(created) < 20 {
		t.Fatalf("4.4/8: private data after create is %q", created)
	}
	st, _, err := s.Type.Read(t.Context(), st)
	must(t, err)
	st = s.saved(st)
	st = s.saved(s.apply(st, attrs{"note": "2"}))
	must(t, s.destroy(st).Err)
	calls, err := s.world.cloud.Calls()
	must(t, err)
	var seen []string
	for _, c := range calls {
		if c.Name != s.name || c.RPC == "ValidateResourceConfig" || c.RPC == "UpgradeResourceState" {
			continue
		}
		switch {
		case len(c.Private) == 0:
			seen = append(seen, c.RPC+" "+c.Action+": none")
		case bytes.Equal(c.Private, created):
			seen = append(seen, c.RPC+" "+c.Action+": as created")
		default:
			seen = append(seen, c.RPC+" "+c.Action+": other")
		}
	}
	want := []string{
		"PlanResourceChange Create: none", "ApplyResourceChange Create: other",
		"ReadResource : as created", "PlanResourceChange Update: as created", "ApplyResourceChange Update: as created",
		"PlanResourceChange Delete: as created", "ApplyResourceChange Delete: as created",
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("4.4/8: private data of the calls (-want +got):\n%s", d)
	}
}

func TestUpgradeState(t *testing.T) {
	t.Parallel()
	before := about(t, ownWorld(t, "conform6", cloud.Options{Generation: new(0)}), "conform6_old")
	st := before.create(attrs{"size": "10GB"})
	rec := before.record(st)
	if rec.SchemaVersion != 0 || rec.IdentityVersion != 0 || string(rec.Identity) != `{"path":"old/`+before.name+`-1"}` {
		t.Fatalf("recorded version %d, identity %s of version %d", rec.SchemaVersion, rec.Identity, rec.IdentityVersion)
	}
	now := about(t, shared["conform6"], "conform6_old")

	t.Run("4.2 v0 to v2", func(t *testing.T) {
		got, err := now.Type.Load(t.Context(), rec)
		must(t, err)
		same(t, "size", attribute(got.Value, "size_gb"), cty.NumberIntVal(10))
		same(t, "name", attribute(got.Value, "name"), cty.StringVal(before.name))
		same(t, "identity, which has versions of its own", got.Identity, cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(before.name + "-1")}))
		again := now.record(got)
		if again.SchemaVersion != 2 || again.IdentityVersion != 1 {
			t.Errorf("recorded again as version %d, identity version %d", again.SchemaVersion, again.IdentityVersion)
		}
	})
	t.Run("4.2 the identity changes version alone", func(t *testing.T) {
		mixed := *rec
		mixed.SchemaVersion, mixed.Attributes = 2, json.RawMessage(`{"id":"x-1","name":"x","behaviour":null,"size_gb":10}`)
		got, err := now.Type.Load(t.Context(), &mixed)
		must(t, err)
		same(t, "identity", got.Identity, cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(before.name + "-1")}))
	})
	t.Run("4.2 same version is upgraded, too", func(t *testing.T) {
		s := about(t, shared["conform6"], "conform6_thing")
		st := s.create(nil)
		s.saved(st)
		if n := len(s.calls("UpgradeResourceState")); n != 1 {
			t.Errorf("%d calls to upgrade, want 1", n)
		}
	})
	t.Run("4.2 attributes that the schema lost are removed", func(t *testing.T) {
		s := about(t, shared["conform6"], "conform6_thing")
		rec := s.record(s.create(attrs{"rule": cty.ListVal([]cty.Value{rule(1)})}))
		rec.Attributes = json.RawMessage(strings.Replace(strings.Replace(string(rec.Attributes),
			`"name":`, `"dropped":{"a":1},"name":`, 1), `"port":`, `"dropped":[1],"port":`, 1))
		if _, err := s.Type.Load(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if last := s.calls("UpgradeResourceState"); strings.Contains(last[len(last)-1].Detail, "dropped") {
			t.Errorf("the provider got %s", last[len(last)-1].Detail)
		}
	})
	for name, tc := range map[string]struct {
		version, identity int64
		behaviour         string
		refused           string
	}{
		"4.2 state of a newer provider":    {3, 0, "", "newer provider"},
		"4.2 identity of a newer provider": {2, 7, "", "newer provider"},
		"4.2 state of a version unknown":   {1, 1, "", "upgrade state"},
		"4.2 upgrade leaves unknown":       {2, 1, "upgrade-unknown", "unknown values"},
		"4.2 upgrade gives another type":   {2, 1, "upgrade-misfit", "does not fit its schema"},
		"4.2 upgrade fails":                {2, 1, "upgrade-error", "Failed on command"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *rec
			changed.SchemaVersion, changed.IdentityVersion = tc.version, tc.identity
			changed.Attributes = json.RawMessage(`{"id":"x-1","name":"x","behaviour":"` + tc.behaviour + `","size_gb":10}`)
			if tc.identity > 0 {
				changed.Identity = json.RawMessage(`{"id":"x-1"}`)
			}
			_, err := now.Type.Load(t.Context(), &changed)
			refused(t, err, tc.refused)
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, behaviour, refused string
	}{
		"4.2 error":            {"the provider's own", "read-error", "Failed on command"},
		"4.2 unknown value":    {"what is there is known", "read-unknown", "unknown values"},
		"4.2 write-only value": {"no state holds it", "read-write-only", "write-only"},
		"4.2 another type":     {"it must fit", "read-misfit", "does not fit its schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_thing")
			st := s.create(attrs{"token": "t0ken"})
			s.command(tc.behaviour)
			_, _, err := s.Type.Read(t.Context(), st)
			refused(t, err, tc.refused)
		})
	}
	protocols(t, func(t *testing.T, w *world, typeName string) {
		s := about(t, w, typeName)
		st := s.create(attrs{"note": "n"})
		id := attribute(st.Value, "id").AsString()
		o, err := w.cloud.Get(typeName, id)
		must(t, err)
		o["note"] = "drifted"
		must(t, w.cloud.Put(typeName, id, o))
		st, _, err = s.Type.Read(t.Context(), st)
		must(t, err)
		same(t, "4.2: a difference is drift, no error", attribute(st.Value, "note"), cty.StringVal("drifted"))
		must(t, w.cloud.Remove(typeName, id))
		st, _, err = s.Type.Read(t.Context(), st)
		must(t, err)
		if st.Exists() {
			t.Error("4.2: a null answer means that it is gone")
		}
	})
}

func TestImport(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	made := s.create(attrs{"note": "n"})
	id := attribute(made.Value, "id").AsString()
	identity := func(id string) cty.Value { return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(id)}) }
	for name, tc := range map[string]struct {
		by      instance.ImportBy
		refused string
	}{
		"4.2 by id":              {instance.ImportBy{ID: id}, ""},
		"4.2 by identity":        {instance.ImportBy{Identity: identity(id)}, ""},
		"4.2 null after read":    {instance.ImportBy{ID: "nowhere-1"}, "cannot import non-existent"},
		"4.2 null by identity":   {instance.ImportBy{Identity: identity("nowhere-1")}, "cannot import non-existent"},
		"4.2 nothing found":      {instance.ImportBy{ID: "none!"}, "found nothing under"},
		"4.2 two found":          {instance.ImportBy{ID: "two!"}, "found 2 resources"},
		"4.2 null found":         {instance.ImportBy{ID: "null!"}, "found nothing"},
		"4.2 found without type": {instance.ImportBy{ID: "no-type!"}, `another type, ""`},
		"4.2 another type found": {instance.ImportBy{ID: "other-type!"}, `another type, "conform6_values"`},
		"4.2 unknown found":      {instance.ImportBy{ID: "unknown!"}, "unknown values"},
		"4.2 error":              {instance.ImportBy{ID: "error!"}, "Failed on command"},
		"4.2 by nothing":         {instance.ImportBy{}, "neither an ID nor an identity"},
		"4.2 by both":            {instance.ImportBy{ID: id, Identity: identity(id)}, "both an ID and an identity"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := s.Type.Import(t.Context(), tc.by)
			if refused(t, err, tc.refused); err != nil {
				return
			}
			same(t, "4.2: the import is read", attribute(got.Value, "note"), cty.StringVal("n"))
			same(t, "identity", got.Identity, identity(id))
			if p := s.plan(got, s.config(attrs{"note": "n"})); p.Action != "NoOp" {
				t.Errorf("what was imported as it is configured is planned to %s", p.Action)
			}
		})
	}
	t.Run("4.2 of protocol 5", func(t *testing.T) {
		s := about(t, shared["conform5"], "conform5_thing")
		made := s.create(attrs{"note": "n"})
		got, _, err := s.Type.Import(t.Context(), instance.ImportBy{ID: attribute(made.Value, "id").AsString()})
		must(t, err)
		same(t, "note", attribute(got.Value, "note"), cty.StringVal("n"))
		_, _, err = s.Type.Import(t.Context(), instance.ImportBy{ID: "nowhere-1"})
		refused(t, err, "cannot import non-existent")
	})
}

func TestMove(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ address, from, refused string }{
		"4.2 from another type":       {"registry.terraform.io/hykube/conform6", "conform6_thing", ""},
		"4.2 from another provider":   {"registry.terraform.io/else/conform6", "conform6_thing", ""},
		"4.2 from what it can't take": {"registry.terraform.io/hykube/conform6", "conform6_values", "Unable to Move Resource State"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := about(t, shared["conform6"], "conform6_thing")
			made := from.create(attrs{"note": "n"})
			made.Tainted = true
			to := about(t, shared["conform6"], "conform6_moved")
			got, _, err := to.Type.Move(t.Context(), instance.MoveSource{ProviderAddress: tc.address, TypeName: tc.from, State: from.record(made)})
			if refused(t, err, tc.refused); err != nil {
				return
			}
			same(t, "title", attribute(got.Value, "title"), cty.StringVal("n"))
			same(t, "identity", got.Identity, made.Identity)
			if !got.Tainted {
				t.Error("what was tainted is not any more")
			}
		})
	}
	t.Run("4.2 without the capability", func(t *testing.T) {
		t.Parallel()
		from := about(t, shared["conform6"], "conform6_thing")
		made := from.create(nil)
		w := ownWorld(t, "conform6", cloud.Options{NoMove: true})
		to := about(t, w, "conform6_moved")
		_, _, err := to.Type.Move(t.Context(), instance.MoveSource{ProviderAddress: "registry.terraform.io/hykube/conform6", TypeName: "conform6_thing", State: from.record(made)})
		refused(t, err, "cannot convert")
		if n := len(w.calls(t, "MoveResourceState", "")); n != 0 {
			t.Errorf("the provider was asked %d times although it cannot", n)
		}
	})
}

func TestProviderMeta(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	s.Type.Meta = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("network")})
	st := s.create(nil)
	_, _, err := s.Type.Read(t.Context(), st)
	must(t, err)
	must(t, s.destroy(st).Err)
	for _, rpc := range []string{"PlanResourceChange", "ApplyResourceChange", "ReadResource"} {
		for _, c := range s.calls(rpc) {
			if c.Detail != "module: network" {
				t.Errorf("4.3/6: %s %s got %s", rpc, c.Action, c.Detail)
			}
		}
	}
}

func TestGenerateConfig(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, w *world, typeName string) {
		s := about(t, w, typeName)
		st := s.create(attrs{"note": "n", "password": "hunter2"})
		got, err := s.Type.GenerateConfig(t.Context(), st)
		must(t, err)
		same(t, "4.2: note", attribute(got, "note"), cty.StringVal("n"))
		for _, name := range []string{"serial", "password", "zone"} {
			if !attribute(got, name).IsNull() {
				t.Errorf("4.2: %s is generated as %#v", name, attribute(got, name))
			}
		}
	})
}
