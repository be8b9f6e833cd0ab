package diff

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew; read what changed before committing it")

// golden is a plan with its changes, as the server answers them.
type golden struct {
	Plan    v1alpha1.Plan         `json:"plan"`
	Changes []v1alpha1.PlanChange `json:"changes"`
}

// Every testdata/*.json is written in full and as a first screen, plain and coloured.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var g golden
			if err := json.Unmarshal(data, &g); err != nil {
				t.Fatal(err)
			}
			var full, screen, color bytes.Buffer
			w := NewFull(&full, &g.Plan, Style{})
			s, c := NewScreen(Style{}, 0), NewScreen(Style{Color: true}, 0)
			for i := range g.Changes {
				if err := w.Add(&g.Changes[i]); err != nil {
					t.Fatal(err)
				}
				s.Add(&g.Changes[i])
				c.Add(&g.Changes[i])
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Write(&screen, &g.Plan); err != nil {
				t.Fatal(err)
			}
			if err := c.Write(&color, &g.Plan); err != nil {
				t.Fatal(err)
			}
			var problems strings.Builder
			for _, d := range g.Plan.Status.Diagnostics {
				problems.WriteString(Diagnostic(d, Style{Width: 80}))
			}
			if strings.Count(full.String(), "\n") > 200 {
				full.Reset() // too long to review; the small cases show it
			}
			got := "== full ==\n" + full.String() + "== screen ==\n" + screen.String()
			if problems.Len() > 0 {
				got += "== diagnostics ==\n" + problems.String()
			}
			if strings.Contains(got, "\x1b") {
				t.Error("a page without colours contains an escape sequence")
			}
			if n := strings.Count(screen.String(), "\n"); n > FirstScreen {
				t.Errorf("first screen has %d lines", n)
			}
			if plain := uncolor(color.String()); plain != screen.String() {
				t.Errorf("colours change more than colours:\n%s", cmp.Diff(screen.String(), plain))
			}
			if bytes.Contains(full.Bytes(), []byte("hunter2")) || bytes.Contains(screen.Bytes(), []byte("hunter2")) {
				t.Error("a secret is shown")
			}
			want := strings.TrimSuffix(f, ".json") + ".txt"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			expect, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(expect), got); d != "" {
				t.Errorf("%s (-want +got; -update writes it anew):\n%s", want, d)
			}
		})
	}
}

func uncolor(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		j := strings.IndexByte(s[i:], 'm')
		s = s[:i] + s[i+j+1:]
	}
}

func raw(v any) *runtime.RawExtension {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: b}
}

// A plan of any size and shape fits the first screen, and its destroys come first.
func TestScreenOfAnySize(t *testing.T) {
	for _, tc := range []struct {
		reason string
		n      int
		change func(i int) v1alpha1.PlanChange
		want   []string
	}{
		{"many of one shape fold into one line", 12000, func(i int) v1alpha1.PlanChange {
			return v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, Type: "sim_instance", Address: fmt.Sprintf("sim_instance.web-%d", i), Object: v1alpha1.ObjectReference{Name: fmt.Sprintf("web-%d", i)}, After: raw(map[string]any{"name": fmt.Sprintf("web-%d", i)})}
		}, []string{"sim_instance × 12,000", "Plan: 12,000 to add"}},
		{"more shapes than lines are cut with a count", 500, func(i int) v1alpha1.PlanChange {
			typ := fmt.Sprintf("sim_%03d", i)
			return v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Type: typ, Address: typ + ".a", Object: v1alpha1.ObjectReference{Name: "a"}, Before: raw(map[string]any{"id": "x"})}
		}, []string{"more changes", "Plan: 0 to add, 0 to change, 500 to destroy."}},
		{"one destroy among many updates of many shapes is seen", 3000, func(i int) v1alpha1.PlanChange {
			c := v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate, Type: "sim_disk", Object: v1alpha1.ObjectReference{Name: fmt.Sprintf("d%d", i)}, Before: raw(map[string]any{"size": i}), After: raw(map[string]any{"size": i + 1})}
			if i == 2999 {
				c = v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Type: "sim_network", Address: "sim_network.main", Object: v1alpha1.ObjectReference{Name: "main"}, ActionReason: "delete_because_no_resource_config", Before: raw(map[string]any{"id": "x"})}
			}
			return c
		}, []string{"sim_network.main  (because its object was deleted)", "2,999 to update in-place"}},
		{"drift that forces a replacement is beside it", 60, func(i int) v1alpha1.PlanChange {
			c := v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, Type: "sim_disk", Address: fmt.Sprintf("sim_disk.d%d", i), Object: v1alpha1.ObjectReference{Name: fmt.Sprintf("d%d", i)},
				ReplacePaths: raw([]any{[]any{"a"}, []any{"b"}, []any{"c"}, []any{"zone"}}), Before: raw(map[string]any{"a": 1, "b": 1, "c": 1, "zone": "b"}), After: raw(map[string]any{"a": 2, "b": 2, "c": 2, "zone": "a"})}
			if i == 7 {
				c.Drift = []string{"zone"}
			}
			return c
		}, []string{"sim_disk.d7    zone: \"b\" -> \"a\" (drifted), a: 1 -> 2, b: 1 -> 2 and 1 more # forces replacement", "sim_disk × 59"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := NewScreen(Style{}, 0)
			for i := range tc.n {
				c := tc.change(i)
				s.Add(&c)
			}
			var b strings.Builder
			plan := &v1alpha1.Plan{}
			plan.Name = "apply-x7k2d"
			if err := s.Write(&b, plan); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(b.String(), "\n"); n > FirstScreen {
				t.Errorf("%d lines:\n%s", n, b.String())
			}
			for _, w := range tc.want {
				if !strings.Contains(b.String(), w) {
					t.Errorf("missing %q in:\n%s", w, b.String())
				}
			}
		})
	}
}

// A provider's text must not control the terminal.
func TestHostileText(t *testing.T) {
	c := &v1alpha1.PlanChange{
		Action: v1alpha1.ActionCreate, Type: "sim_network", Address: "sim_network.main", Object: v1alpha1.ObjectReference{Name: "main"},
		After: raw(map[string]any{"name": "a\x1b[2Jb", "text": "one\n\x1b]0;title\x07two\n", "k\x1b[31m": "v", "bidi": "x\u202ey\nz"}),
	}
	d := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "bad\x1b[2J", Detail: "line\x1b[1m\nnext\r"}
	for _, s := range []string{Change(c, Style{}), Diagnostic(d, Style{})} {
		if strings.ContainsAny(s, "\x1b\x07\r\u202e") {
			t.Errorf("control characters came through: %q", s)
		}
	}
}

func TestFitCutsToWidth(t *testing.T) {
	got := Style{Width: 10}.Fit("0123456789abc")
	if got != "012345678…" {
		t.Errorf("got %q", got)
	}
}

// On a narrow page a plan that is shown whole is wrapped, not cut; one whose lines wrap too often is folded.
func TestScreenNeverCutsADiff(t *testing.T) {
	long := strings.Repeat("x", 300)
	c := v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, Type: "sim_network", Address: "sim_network.main", Object: v1alpha1.ObjectReference{Name: "main"}, After: raw(map[string]any{"name": long})}
	for _, tc := range []struct {
		width int
		whole bool
	}{{80, true}, {10, false}} {
		s := NewScreen(Style{Width: tc.width}, 0)
		s.Add(&c)
		var b strings.Builder
		if err := s.Write(&b, &v1alpha1.Plan{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), long); got != tc.whole {
			t.Errorf("width %d: shown whole: %v\n%s", tc.width, got, b.String())
		}
	}
}

// Both sides of a secret are masked, so the change says which of them differ.
func TestSecretsThatChange(t *testing.T) {
	secret := raw(map[string]any{"token": true, "user": []any{map[string]any{"password": true}}, "words": []any{true, true}})
	users := []any{map[string]any{"name": "a", "password": Masked}}
	values := func(size int) *runtime.RawExtension {
		return raw(map[string]any{"id": "x", "size": size, "token": Masked, "user": users, "words": []any{Masked, Masked}})
	}
	paths := func(paths ...[]any) *runtime.RawExtension { return raw(paths) }
	for _, tc := range []struct {
		reason string
		change v1alpha1.PlanChange
		want   []string
		cause  string
	}{
		{"one that forces a replacement", v1alpha1.PlanChange{
			Action: v1alpha1.ActionReplace, Before: values(1), After: values(1), ReplacePaths: paths([]any{"token"}), SecretsChanged: paths([]any{"token"}),
		}, []string{"~ token = (sensitive value) # forces replacement", "# (3 unchanged attributes hidden)"}, "token"},
		{"one inside a block that does", v1alpha1.PlanChange{
			Action: v1alpha1.ActionReplace, Before: values(1), After: values(1), ReplacePaths: paths([]any{"user", 0, "password"}), SecretsChanged: paths([]any{"user", 0, "password"}),
		}, []string{"~ user = [", "~ password = (sensitive value) # forces replacement", "# (1 unchanged element hidden)"}, "user[0].password"},
		{"a whole block that does", v1alpha1.PlanChange{
			Action: v1alpha1.ActionReplace, Before: values(1), After: values(1), ReplacePaths: paths([]any{"user"}), SecretsChanged: paths([]any{"user", 0, "password"}),
		}, []string{"~ user = [ # forces replacement", "~ password = (sensitive value)"}, "user"},
		{"one that is known after apply", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: raw(map[string]any{"id": "x", "size": 2, "user": users, "words": []any{Masked, Masked}}),
			AfterUnknown: raw(map[string]any{"token": true}), SecretsChanged: paths([]any{"token"}),
		}, []string{"~ size  = 1 -> 2", "~ token = (sensitive value)", "# (2 unchanged attributes hidden)"}, "size: 1 -> 2"},
		{"some that do not beside what does", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: values(2),
		}, []string{"~ size = 1 -> 2", "# (3 unchanged attributes hidden)"}, "size: 1 -> 2"},
		{"one that does beside what does", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: values(2), SecretsChanged: paths([]any{"token"}),
		}, []string{"~ size  = 1 -> 2", "~ token = (sensitive value)", "# (2 unchanged attributes hidden)"}, "size: 1 -> 2, token"},
		{"one of a list", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: values(1), SecretsChanged: paths([]any{"words", 1}),
		}, []string{"~ words = [\n            # (1 unchanged element hidden)\n          ~ (sensitive value),\n        ]", "# (3 unchanged attributes hidden)"}, "words"},
		{"one that goes", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: raw(map[string]any{"id": "x", "size": 1, "token": nil, "user": users, "words": []any{Masked, Masked}}),
			SecretsChanged: paths([]any{"token"}),
		}, []string{"- token = (sensitive value) -> null"}, "token"},
		{"paths to what is not there, or is no secret", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: values(2), SecretsChanged: paths([]any{}, []any{"gone"}, []any{"user", 7, "password"}, []any{"user", "x"}, []any{"id"}, []any{"id", 0}, []any{"user"}),
		}, []string{"~ size = 1 -> 2", "# (3 unchanged attributes hidden)"}, "size: 1 -> 2"},
		{"none, in an update of what is known after apply", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: raw(map[string]any{"id": "x", "token": Masked, "user": users, "words": []any{Masked, Masked}}),
			AfterUnknown: raw(map[string]any{"size": true}),
		}, []string{"~ size"}, "size (known after apply)"},
		{"none, in an update without a visible reason", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: values(1), After: values(1),
		}, nil, "(the provider plans an update, but no visible value differs)"},
		{"none, in an update that only empties", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: raw(map[string]any{"id": "x", "roles": nil}), After: raw(map[string]any{"id": "x", "roles": []any{}}),
		}, nil, "roles"},
		{"a value that is secret from now on", v1alpha1.PlanChange{
			Action: v1alpha1.ActionUpdate, Before: raw(map[string]any{"id": "x", "token": "hunter2"}), BeforeSensitive: raw(map[string]any{}), After: raw(map[string]any{"id": "x", "token": Masked}),
		}, []string{"~ token = (sensitive value)"}, "token"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.change.Type, tc.change.Address, tc.change.AfterSensitive = "sim_database", "sim_database.main", secret
			if tc.change.BeforeSensitive == nil {
				tc.change.BeforeSensitive = secret
			}
			got := Change(&tc.change, Style{})
			for _, w := range tc.want {
				if !strings.Contains(got, w) {
					t.Errorf("missing %q in:\n%s", w, got)
				}
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			if _, text := cause(&tc.change); text != tc.cause {
				t.Errorf("cause is %q, want %q", text, tc.cause)
			}
		})
	}
}

// Providers of the legacy SDK return an empty container where null was recorded. A change shows only relevant
// differences. If there is nothing else to record, the output names this one.
func TestNullBecomesEmpty(t *testing.T) {
	meta := func(labels any) *runtime.RawExtension {
		return raw(map[string]any{"id": "x", "data": labels, "metadata": []any{map[string]any{"name": "cfg", "labels": labels}}})
	}
	c := v1alpha1.PlanChange{Action: v1alpha1.ActionRead, Type: "kubernetes_config_map", Address: "kubernetes_config_map.c", Before: meta(nil), After: meta(map[string]any{})}
	got := Change(&c, Style{})
	for _, w := range []string{"      + data     = {}\n", "              + labels = {}\n"} {
		if !strings.Contains(got, w) {
			t.Errorf("missing %q in:\n%s", w, got)
		}
	}
	c.Action, c.After = v1alpha1.ActionUpdate, raw(map[string]any{"id": "x", "data": map[string]any{}, "metadata": []any{map[string]any{"name": "new", "labels": map[string]any{}}}})
	if got = Change(&c, Style{}); strings.Contains(got, "{}") || !strings.Contains(got, `"cfg" -> "new"`) {
		t.Errorf("an update shows what is no change:\n%s", got)
	}
}

func TestListsOfRepeatedElements(t *testing.T) {
	list := func(first string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"l":["` + first + `"` + strings.Repeat(`,"same"`, 300) + `,1,null]}`)}
	}
	before, after := list("old"), list("new")
	after.Raw = bytes.Replace(after.Raw, []byte(",1,"), []byte(",1.0,"), 1)
	p := &printer{}
	p.attributes(0, "~", decode(&before).(map[string]any), decode(&after).(map[string]any), "", true)
	want := "~ l = [\n    - \"old\",\n    + \"new\",\n      # (302 unchanged elements hidden)\n  ]\n"
	if diff := cmp.Diff(want, p.b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestADestroySaysWhatItRefersTo(t *testing.T) {
	c := v1alpha1.PlanChange{Action: v1alpha1.ActionDelete, Type: "sim_subnet", Address: "sim_subnet.front", DestroyedWith: "sim_network.main"}
	const want = "because it refers to sim_network.main, which is destroyed"
	if got := Change(&c, Style{}); !strings.Contains(got, "# ("+want+")\n") {
		t.Error(got)
	}
	if _, text := cause(&c); text != "("+want+")" {
		t.Error(text)
	}
}

// Some providers repeat the title of a diagnostic.
func TestATitleIsPrintedOnce(t *testing.T) {
	for _, tt := range []struct{ summary, detail, want string }{
		{"No such image", "No such image\n", "╷\n│ Error: No such image\n╵\n"},
		{"Error: No such image", "", "╷\n│ Error: No such image\n╵\n"},
		{"No such image", "No such image: debian", "╷\n│ Error: No such image\n│\n│ No such image: debian\n╵\n"},
	} {
		if got := Diagnostic(v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: tt.summary, Detail: tt.detail}, Style{}); got != tt.want {
			t.Errorf("%q, %q: got\n%s", tt.summary, tt.detail, got)
		}
	}
}

// TestReplaceNamesItsCause has replaces whose cause is no visible difference. The text names each cause.
func TestReplaceNamesItsCause(t *testing.T) {
	for why, tc := range map[string]struct {
		before, after map[string]any
		paths         []any
		want          []string
	}{
		"from an empty map to null":     {map[string]any{"triggers": map[string]any{}}, map[string]any{"triggers": nil}, []any{[]any{"triggers"}}, []string{"- triggers = {} -> null # forces replacement"}},
		"from null to an empty list":    {map[string]any{"rule": nil}, map[string]any{"rule": []any{}}, []any{[]any{"rule"}}, []string{"+ rule = [] # forces replacement"}},
		"from a value to null":          {map[string]any{"zone": "a"}, map[string]any{"zone": nil}, []any{[]any{"zone"}}, []string{`- zone = "a" -> null # forces replacement`}},
		"only the type":                 {map[string]any{"any": []any{"1"}}, map[string]any{"any": []any{"1"}}, []any{[]any{"any"}}, []string{"~ any = [ # forces replacement"}},
		"a write-only attribute":        {map[string]any{"key": nil}, map[string]any{"key": nil}, []any{[]any{"key"}}, []string{"~ key = (write-only attribute) # forces replacement"}},
		"within a block that goes away": {map[string]any{"rule": []any{map[string]any{"port": 1}}}, map[string]any{"rule": []any{}}, []any{[]any{"rule", 0, "port"}}, []string{"# rule[0].port forces replacement"}},
		"two causes":                    {map[string]any{"a": map[string]any{}, "b": "x"}, map[string]any{"b": "y"}, []any{[]any{"a"}, []any{"b"}}, []string{"- a = {} -> null # forces replacement", `~ b = "x" -> "y" # forces replacement`}},
	} {
		c := &v1alpha1.PlanChange{Address: "sim_x.y", Type: "sim_x", Action: v1alpha1.ActionReplace, ActionReason: "replace_because_cannot_update",
			Before: raw(tc.before), After: raw(tc.after), ReplacePaths: raw(tc.paths)}
		text := Change(c, Style{})
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", why, want, text)
			}
		}
		if cause := ReplaceCause(c); !strings.Contains(cause, "the replacement") {
			t.Errorf("%s: the cause is %q", why, cause)
		}
	}
}

// TestExpressionsAreBesideTheirValues has the expressions of a plan beside their values, also of values that stay the same.
func TestExpressionsAreBesideTheirValues(t *testing.T) {
	follows := func(rewritten bool, path ...any) v1alpha1.PlanExpression {
		return v1alpha1.PlanExpression{Path: raw(path), Expression: "${configmap.net.x}", Rewritten: rewritten, By: []string{"eve", "ada"}}
	}
	for why, tc := range map[string]struct {
		before, after map[string]any
		follows       v1alpha1.PlanExpression
		want          string
	}{
		"a value":             {map[string]any{"cidr": "a"}, map[string]any{"cidr": "b"}, follows(false, "cidr"), `~ cidr = "a" -> "b" # ${configmap.net.x}, by eve, ada`},
		"an equal value":      {map[string]any{"cidr": "a", "n": 1}, map[string]any{"cidr": "a", "n": 2}, follows(true, "cidr"), `        cidr = "a" # ${configmap.net.x} (new), by eve, ada`},
		"a value in a map":    {map[string]any{"tags": map[string]any{"a": "1"}}, map[string]any{"tags": map[string]any{"a": "2"}}, follows(false, "tags", "a"), `~ a = "1" -> "2" # ${configmap.net.x}, by`},
		"a whole map":         {map[string]any{"tags": map[string]any{"a": "1"}}, map[string]any{"tags": map[string]any{"a": "2"}}, follows(false, "tags"), `~ tags = { # ${configmap.net.x}, by`},
		"in an unchanged map": {map[string]any{"n": 1, "tags": map[string]any{"a": "1"}}, map[string]any{"n": 2, "tags": map[string]any{"a": "1"}}, follows(true, "tags", "a"), `      # tags.a = ${configmap.net.x} (new), by`},
	} {
		c := &v1alpha1.PlanChange{Address: "sim_x.y", Type: "sim_x", Action: v1alpha1.ActionUpdate, Before: raw(tc.before), After: raw(tc.after),
			Expressions: []v1alpha1.PlanExpression{tc.follows}}
		if text := Change(c, Style{}); strings.Count(text, "${configmap.net.x}") != 1 || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %q is missing in\n%s", why, tc.want, text)
		}
	}
	c := &v1alpha1.PlanChange{Address: "sim_x.y", Type: "sim_x", Action: v1alpha1.ActionNoOp, Before: raw(map[string]any{"cidr": "a"}), After: raw(map[string]any{"cidr": "a"}),
		Expressions: []v1alpha1.PlanExpression{follows(true, "cidr")}}
	if text := Change(c, Style{}); !strings.Contains(text, "will not be changed") || !strings.Contains(text, `cidr = "a" # ${configmap.net.x} (new)`) || !Quiet(c) {
		t.Error(text)
	}
	if c.Expressions[0].Rewritten = false; Change(c, Style{}) != "" {
		t.Error("a change without an effect and without a new expression is rendered")
	}
}
