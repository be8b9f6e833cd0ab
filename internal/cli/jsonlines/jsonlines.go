// Package jsonlines writes the progress of a command as lines of JSON, as terraform apply -json does.
package jsonlines

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/version"
	"github.com/hykube/hykube/internal/diff"
)

// Writer writes the progress of apply as lines of JSON, for scripts that read `terraform apply -json`. A nil
// *Writer writes nothing. The format is https://developer.hashicorp.com/terraform/internals/machine-readable-ui
type Writer struct{ W io.Writer }

// uiVersion is the version of the format.
const uiVersion = "1.2"

// line writes one line. It ignores errors of the writer: the command watches the apply even if no process reads its
// output.
func (l *Writer) line(level, kind, message string, fields map[string]any) {
	if l == nil {
		return
	}
	out := map[string]any{
		"@level": level, "@message": message, "@module": "hykube.ui",
		"@timestamp": time.Now().UTC().Format(time.RFC3339Nano), "type": kind,
	}
	for name, v := range fields {
		out[name] = v
	}
	e := json.NewEncoder(l.W)
	e.SetEscapeHTML(false)
	_ = e.Encode(out)
}

// Version writes the first line, with the version of the plugin and of the format.
func (l *Writer) Version() {
	l.line("info", "version", "Hykube "+version.Version, map[string]any{"hykube": version.Version, "ui": uiVersion})
}

// lineResource returns the resource of a change in Terraform's form, with the namespace of its object.
func lineResource(c *v1alpha1.PlanChange) map[string]any {
	provider, _, _ := strings.Cut(c.Type, "_")
	return map[string]any{
		"addr": c.Address, "module": "", "resource": c.Address, "implied_provider": provider,
		"resource_type": c.Type, "resource_name": c.Object.Name, "resource_key": nil, "namespace": c.Object.Namespace,
	}
}

// lineAction returns Terraform's name for the action of a change.
func lineAction(c *v1alpha1.PlanChange) string {
	switch {
	case c.Action == v1alpha1.ActionForget:
		return "remove"
	case c.Action == v1alpha1.ActionNoOp && c.Importing != nil:
		return "import"
	case c.Action == v1alpha1.ActionNoOp && c.PreviousAddress != "" && c.PreviousAddress != c.Address:
		return "move"
	case c.Action == v1alpha1.ActionNoOp:
		return "noop"
	}
	return strings.ToLower(string(c.Action))
}

// Planned writes the planned action of one resource, and its drift.
func (l *Writer) Planned(c *v1alpha1.PlanChange) {
	if l == nil {
		return
	}
	if len(c.Drift) > 0 {
		l.line("info", "resource_drift", c.Address+": Drift detected",
			map[string]any{"change": map[string]any{"resource": lineResource(c), "action": "update"}})
	}
	if diff.Quiet(c) || c.Action == "" {
		return
	}
	change := map[string]any{"resource": lineResource(c), "action": lineAction(c)}
	if c.ActionReason != "" {
		change["reason"] = c.ActionReason
	}
	if c.PreviousAddress != "" && c.PreviousAddress != c.Address {
		change["previous_resource"] = map[string]any{"addr": c.PreviousAddress}
	}
	if c.Importing != nil {
		change["importing"] = map[string]any{"id": c.Importing.ID}
	}
	l.line("info", "planned_change", fmt.Sprintf("%s: Plan to %s", c.Address, lineAction(c)),
		map[string]any{"change": change})
}

// Summary writes the counts of a plan, or of its applied changes.
func (l *Writer) Summary(p *v1alpha1.Plan, sum v1alpha1.PlanSummary, operation string) {
	message := fmt.Sprintf("Plan: %d to add, %d to change, %d to destroy.", sum.Create+sum.Replace, sum.Update,
		sum.Delete+sum.Replace)
	if operation != "plan" {
		message = fmt.Sprintf("%s complete! Resources: %s.", strings.ToUpper(operation[:1])+operation[1:],
			printer.Counts(sum))
	}
	l.line("info", "change_summary", message, map[string]any{
		"plan": map[string]any{"name": p.Name, "namespace": p.Namespace},
		"changes": map[string]any{
			"add": sum.Create + sum.Replace, "change": sum.Update, "import": sum.Import,
			"remove": sum.Delete + sum.Replace, "operation": operation,
		},
	})
}

// Began writes that the apply of a change began.
func (l *Writer) Began(c *v1alpha1.PlanChange) {
	if l != nil {
		l.line("info", "apply_start", fmt.Sprintf("%s: %s...", c.Address, printer.Verbs(c)[0]),
			map[string]any{"hook": map[string]any{"resource": lineResource(c), "action": lineAction(c)}})
	}
}

// Still writes that the apply of a change continues.
func (l *Writer) Still(c *v1alpha1.PlanChange, elapsed time.Duration) {
	if l != nil {
		l.line("info", "apply_progress",
			fmt.Sprintf("%s: Still %s... [%ds elapsed]", c.Address, printer.Verbs(c)[2], int(elapsed.Seconds())),
			map[string]any{"hook": map[string]any{"resource": lineResource(c), "action": lineAction(c),
				"elapsed_seconds": int(elapsed.Seconds())}})
	}
}

// Paused writes that a rollout pauses. Terraform has no rollouts, so the line has the type of its unstructured
// messages.
func (l *Writer) Paused(p *v1alpha1.Plan, message string) {
	l.line("info", "log", message, map[string]any{"plan": map[string]any{"name": p.Name, "namespace": p.Namespace}})
}

// Ended writes the outcome of a change. id is the provider's ID of the resource, or "".
func (l *Writer) Ended(c *v1alpha1.PlanChange, id string) {
	if l == nil {
		return
	}
	hook := map[string]any{"resource": lineResource(c), "action": lineAction(c), "elapsed_seconds": 0}
	if c.StartedAt != nil && c.FinishedAt != nil {
		hook["elapsed_seconds"] = int(c.FinishedAt.Sub(c.StartedAt.Time).Seconds())
	}
	kind, message := "apply_errored",
		fmt.Sprintf("%s: %s errored: %s", c.Address, printer.Verbs(c)[1], printer.OneLine(c))
	if c.State == v1alpha1.ChangeDone {
		kind, message = "apply_complete", fmt.Sprintf("%s: %s complete", c.Address, printer.Verbs(c)[1])
		if id != "" {
			hook["id_key"], hook["id_value"] = "id", id
		}
	}
	l.line("info", kind, message, map[string]any{"hook": hook})
}

// Diagnostic writes an error or a warning.
func (l *Writer) Diagnostic(d v1alpha1.Diagnostic) {
	if l == nil {
		return
	}
	level, severity := "error", "error"
	if d.Severity == v1alpha1.SeverityWarning {
		level, severity = "warn", "warning"
	}
	out := map[string]any{"severity": severity, "summary": d.Summary, "detail": d.Detail}
	for name, v := range map[string]string{"address": d.Address, "attribute": d.Attribute} {
		if v != "" {
			out[name] = v
		}
	}
	l.line(level, "diagnostic", strings.ToUpper(severity[:1])+severity[1:]+": "+d.Summary,
		map[string]any{"diagnostic": out})
}

// Failed writes the error that ends the command, unless the command has already written the reason.
func (l *Writer) Failed(err error) {
	if err != nil && !exit.IsSilent(err) {
		l.Diagnostic(v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: err.Error()})
	}
}
