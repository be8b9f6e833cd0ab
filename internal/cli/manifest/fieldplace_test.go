package manifest

import "testing"

const placed = `# a comment
---
# another
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec:
  name: "${sim_network.a.b}"
  plain: ${x}
  script: |
    first
    ${y}
  tags: {"a b": 1}
  rule:
  - port: 1
  - port: two
`

func TestPositions(t *testing.T) {
	ms, err := Parse("f.yaml", []byte(placed))
	if err != nil || len(ms) != 1 {
		t.Fatal(ms, err)
	}
	for field, want := range map[string]string{
		"spec.name":                     "f.yaml:8:3",
		"spec.name, column 3":           "f.yaml:8:12",
		"spec.plain, column 3":          "f.yaml:9:12",
		"spec.script, line 2, column 3": "f.yaml:12:7",
		`spec.tags["a b"]`:              "f.yaml:13:10",
		"spec.rule[1].port":             "f.yaml:16:5",
		"spec.rule[1]":                  "f.yaml:16:5",
		"spec.missing":                  "f.yaml:7:1",
		"spec.rule[7].port":             "f.yaml:14:3",
		"":                              "f.yaml:4:1",
		"metadata.name":                 "f.yaml:6:12",
	} {
		if got := ms[0].At(field); got != want {
			t.Errorf("%s is at %s, want %s", field, got, want)
		}
	}
	ms, err = Parse("l.yaml", []byte("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n  data: {x: y y}\n"))
	if err != nil || len(ms) != 2 {
		t.Fatal(ms, err)
	}
	if got := ms[1].At("data.x"); got != "l.yaml:10:10" {
		t.Errorf("a field of an item is at %s", got)
	}
}
