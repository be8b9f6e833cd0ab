package diag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestLimit(t *testing.T) {
	few := Diagnostics{{Severity: v1alpha1.SeverityWarning, Summary: "W"}, {Severity: v1alpha1.SeverityError, Summary: "E"}}
	if got := Limit(few); !slices.Equal(got, few) {
		t.Errorf("a short list became %v", got)
	}
	var many Diagnostics
	for i := range 300 {
		many = append(many, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: fmt.Sprint(i)})
	}
	many = append(many, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "E"})
	got := Limit(many)
	if last := got[len(got)-1]; len(got) != MaxDiagnostics || got[0].Summary != "E" || !strings.Contains(last.Detail, "0 more errors and 202 more warnings") {
		t.Errorf("%d diagnostics, first %q, last %q", len(got), got[0].Summary, last.Detail)
	}
	large := slices.Repeat(Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "S", Detail: strings.Repeat("x", 16<<20)}}, 20)
	got = Limit(large)
	bytes := 0
	for _, d := range got {
		bytes += size(d)
	}
	if last := got[len(got)-1]; bytes > maxBytes+1000 || len(got) < 5 || !strings.Contains(got[0].Detail, "more bytes)") || !strings.Contains(last.Detail, "more errors and 0 more warnings") {
		t.Errorf("%d bytes in %d diagnostics, last %q", bytes, len(got), last.Detail)
	}
}

// TestAnswerIsLimited expects a limit on the diagnostics of one call, while all of them decide its kind. A create is
// repeated only if every error says that the API rejected it.
func TestAnswerIsLimited(t *testing.T) {
	ds := slices.Repeat([]*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "429 Too Many Requests", Detail: strings.Repeat("x", 1<<20)}}, 200)
	ds = append(ds, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "created, but not attached"})
	diags, err := Answer("create", ds)
	if !IsFailure(err, Refused) {
		t.Errorf("an error that the list leaves out does not count: %T", err)
	}
	if len(diags) > MaxDiagnostics || len(err.Error()) > 2*maxText || len(Of(err)) > MaxDiagnostics {
		t.Errorf("%d diagnostics, a message of %d bytes", len(diags), len(err.Error()))
	}
}
