package instance

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
)

// TestTake takes instances of a Terraform state, and expects the record that Hykube itself makes.
func TestTake(t *testing.T) {
	for name, tc := range map[string]struct {
		version   int64
		flat      map[string]string
		sensitive []string
		want      string
		paths     []string
	}{
		"the current schema":      {2, nil, nil, "", nil},
		"an old schema":           {1, nil, nil, "", nil},
		"Terraform 0.11":          {0, map[string]string{"id": "1", "name": "a"}, nil, "", nil},
		"a secret of a reference": {2, nil, []string{`[{"type":"get_attr","value":"name"}]`}, "", []string{"name"}},
		"a path that is gone":     {2, nil, []string{`[{"type":"get_attr","value":"removed"}]`}, "", nil},
		"a newer schema":          {3, nil, nil, "written by a newer provider", nil},
		"a damaged path":          {2, nil, []string{`[{"type":"splat","value":1}]`}, "is damaged", nil},
		"an index of a list":      {2, nil, []string{`[{"type":"index","value":{"value":[],"type":["list","string"]}}]`}, "is damaged", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			ty := newType(t, s)
			rec := &ledger.State{SchemaVersion: tc.version, Attributes: json.RawMessage(`{"id":"1","name":"a","secret":null}`), Private: []byte{0, 1}, Tainted: true, CreateBeforeDestroy: true, Dependencies: []string{"b.c"}}
			err := ty.Take(t.Context(), Foreign{State: rec, Flat: tc.flat, Sensitive: tc.sensitive})
			wantError(t, name, err, tc.want)
			if err != nil {
				return
			}
			if tc.flat != nil && s.upgraded[0].Flatmap["name"] != "a" {
				t.Errorf("upgraded %v", s.upgraded[0])
			}
			if len(s.reads)+len(s.plans)+len(s.applies) > 0 {
				t.Error("the provider was called for more than an upgrade")
			}
			if rec.SchemaVersion != 2 || rec.Type != "test_thing" || !rec.Tainted || string(rec.Private) != "\x00\x01" || !rec.CreateBeforeDestroy || !slices.Equal(rec.Dependencies, []string{"b.c"}) {
				t.Errorf("record %+v", rec)
			}
			for _, p := range tc.paths {
				if !rec.Hides(p) {
					t.Errorf("%s is not sensitive: %s", p, rec.Sensitive)
				}
			}
			if len(tc.paths) == 0 && rec.Sensitive != nil {
				t.Errorf("sensitive %s", rec.Sensitive)
			}
		})
	}
}

// TestForeignPaths expects that a pulled state has the paths that its schema declares, and that a push drops these again.
func TestForeignPaths(t *testing.T) {
	block := &schema.Block{Attributes: slices.Clone(testBlock.Attributes), Blocks: testBlock.Blocks}
	for i, a := range block.Attributes {
		if a.Name == "name" {
			declared := *a
			declared.Sensitive = true
			block.Attributes[i] = &declared
		}
	}
	ty := newType(t, &scripted{})
	ty.Schema = &schema.Schema{Version: 2, Block: block}
	id := `[{"type":"get_attr","value":"id"}]`
	rec := &ledger.State{SchemaVersion: 2, Attributes: json.RawMessage(`{"id":"1","name":"a","secret":null}`)}
	if err := ty.Take(t.Context(), Foreign{State: rec, Sensitive: []string{id, `[{"type":"get_attr","value":"name"}]`}}); err != nil {
		t.Fatal(err)
	}
	if !rec.Hides("id") || rec.Hides("name") {
		t.Errorf("sensitive %s", rec.Sensitive)
	}
	paths, err := ty.ForeignPaths(rec)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	if d := cmp.Diff([]string{id, `[{"type":"get_attr","value":"name"}]`, `[{"type":"get_attr","value":"secret"}]`}, paths); d != "" {
		t.Error(d)
	}
}

// TestForeignIndexes expects that an index of a map or a list has its type, as Terraform writes and reads it.
func TestForeignIndexes(t *testing.T) {
	want := `[{"type":"get_attr","value":"tags"},{"type":"index","value":{"value":"token","type":"string"}},{"type":"index","value":{"value":1,"type":"number"}}]`
	marks, err := decodeForeignPaths([]string{want})
	if err != nil {
		t.Fatal(err)
	}
	path := cty.GetAttrPath("tags").IndexString("token").IndexInt(1)
	if got := marks[0].Path; !got.Equals(path) {
		t.Errorf("path %#v", got)
	}
	got, err := encodeForeignPath(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Error(got)
	}
}
