package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// jsonLines writes the progress of apply as lines of JSON, for scripts that read `terraform apply -json`. A nil
// *jsonLines writes nothing. The format is https://developer.hashicorp.com/terraform/internals/machine-readable-ui
type jsonLines struct{ w io.Writer }

// uiVersion is the version of the format.
const uiVersion = "1.2"

// line writes one line. It ignores errors of the writer: the command watches the apply even if no process reads its
// output.
func (l *jsonLines) line(level, kind, message string, fields map[string]any) {
	if l == nil {
		return
	}
	out := map[string]any{
		"@level": level, "@message": message, "@module": "hykube.ui", "@timestamp": time.Now().UTC().Format(time.RFC3339Nano), "type": kind,
	}
	for name, v := range fields {
		out[name] = v
	}
	e := json.NewEncoder(l.w)
	e.SetEscapeHTML(false)
	_ = e.Encode(out)
}

// version writes the first line, with the version of the plugin and of the format.
func (l *jsonLines) version() {
	l.line("info", "version", "Hykube "+Version, map[string]any{"hykube": Version, "ui": uiVersion})
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

// planned writes the planned action of one resource, and its drift.
func (l *jsonLines) planned(c *v1alpha1.PlanChange) {
	if l == nil {
		return
	}
	if len(c.Drift) > 0 {
		l.line("info", "resource_drift", c.Address+": Drift detected", map[string]any{"change": map[string]any{"resource": lineResource(c), "action": "update"}})
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
	l.line("info", "planned_change", fmt.Sprintf("%s: Plan to %s", c.Address, lineAction(c)), map[string]any{"change": change})
}

// summary writes the counts of a plan, or of its applied changes.
func (l *jsonLines) summary(p *v1alpha1.Plan, sum v1alpha1.PlanSummary, operation string) {
	message := fmt.Sprintf("Plan: %d to add, %d to change, %d to destroy.", sum.Create+sum.Replace, sum.Update, sum.Delete+sum.Replace)
	if operation != "plan" {
		message = fmt.Sprintf("%s complete! Resources: %s.", strings.ToUpper(operation[:1])+operation[1:], counts(sum))
	}
	l.line("info", "change_summary", message, map[string]any{
		"plan": map[string]any{"name": p.Name, "namespace": p.Namespace},
		"changes": map[string]any{
			"add": sum.Create + sum.Replace, "change": sum.Update, "import": sum.Import, "remove": sum.Delete + sum.Replace, "operation": operation,
		},
	})
}

// began writes that the apply of a change began.
func (l *jsonLines) began(c *v1alpha1.PlanChange) {
	if l != nil {
		l.line("info", "apply_start", fmt.Sprintf("%s: %s...", c.Address, words(c)[0]), map[string]any{"hook": map[string]any{"resource": lineResource(c), "action": lineAction(c)}})
	}
}

// still writes that the apply of a change continues.
func (l *jsonLines) still(c *v1alpha1.PlanChange, elapsed time.Duration) {
	if l != nil {
		l.line("info", "apply_progress", fmt.Sprintf("%s: Still %s... [%ds elapsed]", c.Address, words(c)[2], int(elapsed.Seconds())),
			map[string]any{"hook": map[string]any{"resource": lineResource(c), "action": lineAction(c), "elapsed_seconds": int(elapsed.Seconds())}})
	}
}

// paused writes that a rollout pauses. Terraform has no rollouts, so the line has the type of its unstructured messages.
func (l *jsonLines) paused(p *v1alpha1.Plan, message string) {
	l.line("info", "log", message, map[string]any{"plan": map[string]any{"name": p.Name, "namespace": p.Namespace}})
}

// ended writes the outcome of a change. id is the provider's ID of the resource, or "".
func (l *jsonLines) ended(c *v1alpha1.PlanChange, id string) {
	if l == nil {
		return
	}
	hook := map[string]any{"resource": lineResource(c), "action": lineAction(c), "elapsed_seconds": 0}
	if c.StartedAt != nil && c.FinishedAt != nil {
		hook["elapsed_seconds"] = int(c.FinishedAt.Sub(c.StartedAt.Time).Seconds())
	}
	kind, message := "apply_errored", fmt.Sprintf("%s: %s errored: %s", c.Address, words(c)[1], oneLine(c))
	if c.State == v1alpha1.ChangeDone {
		kind, message = "apply_complete", fmt.Sprintf("%s: %s complete", c.Address, words(c)[1])
		if id != "" {
			hook["id_key"], hook["id_value"] = "id", id
		}
	}
	l.line("info", kind, message, map[string]any{"hook": hook})
}

// diagnostic writes an error or a warning.
func (l *jsonLines) diagnostic(d v1alpha1.Diagnostic) {
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
	l.line(level, "diagnostic", strings.ToUpper(severity[:1])+severity[1:]+": "+d.Summary, map[string]any{"diagnostic": out})
}

// failed writes the error that ends the command, unless the command has already written the reason.
func (l *jsonLines) failed(err error) {
	if err != nil && !isSilent(err) {
		l.diagnostic(v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: err.Error()})
	}
}

// linesHelp is the help text of the flag -o of verbs that ask.
const linesHelp = "With --auto-approve, print lines of JSON, as terraform apply -json does"

// linesFlag is the flag -o of the verbs that can print lines of JSON.
type linesFlag struct{ output string }

func (l *linesFlag) add(cmd *cobra.Command, help string) { outputFlag(cmd, &l.output, help, "json") }

// validate returns an error if the flag is set and the verb asks a question, which needs its output.
func (l *linesFlag) validate(asks bool) error {
	if l.output != "" && asks {
		return errors.New("-o json does not ask: add --auto-approve")
	}
	return nil
}

// run runs a verb, with lines of JSON if the user wants them.
func (l *linesFlag) run(ctx context.Context, s *session, do func(context.Context) error) error {
	if l.output != "" {
		return s.inJSONLines(ctx, do)
	}
	return do(ctx)
}

// inJSONLines runs a verb that prints lines of JSON. The verb's other output goes to standard error.
func (s *session) inJSONLines(ctx context.Context, do func(context.Context) error) error {
	out, quiet := s.terminal, *s.terminal
	quiet.Out, quiet.live, quiet.style = out.ErrOut, false, diff.Style{}
	s.terminal, s.lines = &quiet, &jsonLines{out.Out}
	defer func() { s.terminal, s.lines = out, nil }()
	s.lines.version()
	err := do(ctx)
	s.lines.failed(err)
	return err
}
