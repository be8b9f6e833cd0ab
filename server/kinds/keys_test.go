package kinds_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestMapsOfManyKeysAreRefused writes maps of more keys than a map may have: at once as JSON and YAML, and by patches.
func TestMapsOfManyKeysAreRefused(t *testing.T) {
	h := newFixture(t, sim())
	tags := func(from, to int) string {
		var keys []string
		for i := from; i < to; i++ {
			keys = append(keys, fmt.Sprintf(`"k%d":"a: \"b\": {"`, i))
		}
		return `{"tags":{` + strings.Join(keys, ",") + `},"name":"n"}`
	}
	const most = 10_000
	const apply = "Content-Type: application/apply-patch+yaml"
	if a := h.do(t, admin, http.MethodPost, networks, network("many", tags(0, most+1))); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("create: %d %s", a.code, a.message())
	}
	if a := h.do(t, admin, http.MethodPatch, networks+"/many?fieldManager=a", "# YAML\n"+network("many", tags(0, most+1)), apply); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("apply of YAML: %d %s", a.code, a.message())
	}
	braces := "{ # a \" in YAML\n" + strings.ReplaceAll(network("many", tags(0, most+1)), `a: \"b\": {`, "v")[1:]
	if a := h.do(t, admin, http.MethodPatch, networks+"/many?fieldManager=a", braces, apply); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("apply of YAML that begins like JSON: %d %.300s", a.code, a.message())
	}
	if a := h.do(t, admin, http.MethodPost, networks, network("most", tags(0, most))); a.code != http.StatusCreated {
		t.Errorf("create with as many as a map may have: %d %s", a.code, a.message())
	}
	a := h.do(t, admin, http.MethodPatch, networks+"/most", `{"spec":`+tags(most, most+1)+`}`, "Content-Type: application/merge-patch+json")
	if a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "spec.tags: Too many") {
		t.Errorf("a patch that adds one: %d %.300s", a.code, a.message())
	}
}
