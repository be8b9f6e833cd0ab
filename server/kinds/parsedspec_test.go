package kinds_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/internal/lang"
)

// TestSpecIsParsedOncePerWrite counts the templates that a write parses, of a spec with one.
func TestSpecIsParsedOncePerWrite(t *testing.T) {
	h := newFixture(t, sim())
	count := func(method, path, body string) *metav1.PartialObjectMetadata {
		t.Helper()
		before := lang.Parsed.Load()
		a := h.do(t, admin, method, path, body)
		var written metav1.PartialObjectMetadata
		if err := json.Unmarshal(a.body, &written); err != nil || a.code >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s %v", method, path, a.code, a.message(), err)
		}
		if n := lang.Parsed.Load() - before; body != "" && n != 1 {
			t.Errorf("%s %s parsed the spec %d times, want once", method, path, n)
		}
		return &written
	}
	for _, validation := range []string{"Ignore", "Warn", "Strict"} {
		query := "?fieldValidation=" + validation
		made := count(http.MethodPost, networks+query, network("x", `{"name":"${upper(\"a\")}","legacy":"x"}`))
		changed := strings.Replace(network("x", `{"name":"${upper(\"b\")}"}`), `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, made.ResourceVersion), 1)
		count(http.MethodPut, networks+"/x"+query, changed)
		count(http.MethodDelete, networks+"/x", "")
	}
}
