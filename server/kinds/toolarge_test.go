package kinds_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestATooLargeObjectIsRefusedEarly writes an object whose arguments fit, and whose managed fields do not.
func TestATooLargeObjectIsRefusedEarly(t *testing.T) {
	h := newFixture(t, sim())
	var tags strings.Builder
	for i := range 9_000 {
		fmt.Fprintf(&tags, `,"%0200d":"v"`, i)
	}
	body := network("large", `{"name":"n","tags":{"first":"v"`+tags.String()+`}}`)
	path := "/apis/sim.hykube.io/v1/namespaces/team/sim-networks"
	for reason, a := range map[string]answer{
		"a create":            h.do(t, admin, http.MethodPost, path+"?dryRun=All", body),
		"a server-side apply": h.do(t, admin, http.MethodPatch, path+"/large?fieldManager=t&dryRun=All", body, "Content-Type: application/apply-patch+yaml"),
		"a merge patch":       h.do(t, admin, http.MethodPatch, path+"/large?dryRun=All", body, "Content-Type: application/merge-patch+json"),
		"a replace":           h.do(t, admin, http.MethodPut, path+"/large?dryRun=All", body),
	} {
		if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.message(), "in metadata.managedFields, and the limit is 2097152") {
			t.Errorf("%s: %d %s", reason, a.code, a.message())
		}
	}
	small := network("small", `{"name":"n","anything":"`+strings.Repeat("x", 1<<20)+`"}`)
	if a := h.do(t, admin, http.MethodPost, path+"?dryRun=All", small); a.code != http.StatusCreated {
		t.Errorf("a large value that fits: %d %s", a.code, a.message())
	}
}
