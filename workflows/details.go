package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"
)

// This file has the texts about a plan that the Web UI shows. They contain addresses and states, and no values.

// maxNamed is the maximum number of changes in the message of a failed run. Its details have all of MaxNotMade.
const maxNamed = 5

// showProgress shows the progress that the lane of a plan reports as the details of the run, until the caller calls
// end.
func showProgress(ctx workflow.Context, p Plan) (end func()) {
	ended := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		for reports := workflow.GetSignalChannel(ctx, SignalProgress); ; {
			var progress Progress
			reports.Receive(ctx, &progress)
			if !ended {
				workflow.SetCurrentDetails(ctx, progress.details(p))
			}
		}
	})
	return func() { ended = true }
}

// heading returns the first line of the details of a plan's run, as Markdown.
func (p Plan) heading(text string) string {
	return fmt.Sprintf("**%s** in namespace **%s**: %s", p.Name, p.Namespace, text)
}

// saysWhy names the command that shows why changes of a plan were not made.
func (p Plan) saysWhy() string {
	return fmt.Sprintf("kubectl hykube status %s -n %s says why", p.Name, p.Namespace)
}

func (r Progress) details(p Plan) string {
	return p.heading(fmt.Sprintf("%d of %d changes done, %d failed", r.Done, r.Total, r.Failed)) +
		p.listed(texts(r.NotMade), r.Failed-len(r.NotMade))
}

func (f Finished) details(p Plan) string {
	return p.heading(fmt.Sprintf("%s; %d done, %d failed, %d not tried", f.Outcome, f.Done, f.Failed, f.Skipped)) +
		p.listed(texts(f.NotMade), f.Failed-len(f.NotMade))
}

func (r Published) details(p Plan) string {
	return p.heading(r.Summary) + p.listed(r.NotPlanned, r.NotPlannedMore)
}

// named names the first resources that could not be planned; "" without any.
func (r Published) named() string {
	shown := r.NotPlanned[:min(len(r.NotPlanned), maxNamed)]
	return joined(shown, len(r.NotPlanned)-len(shown)+r.NotPlannedMore)
}

// named names the first changes of a plan that were not made; "" without any. failed is the number of all.
func named(notMade []NotMade, failed int) string {
	shown := texts(notMade[:min(len(notMade), maxNamed)])
	return joined(shown, failed-len(shown))
}

// joined joins names in one line, and counts the others.
func joined(names []string, more int) string {
	if len(names) == 0 {
		return ""
	}
	if more > 0 {
		names = append(names[:len(names):len(names)], fmt.Sprintf("and %d more", more))
	}
	return ": " + strings.Join(names, "; ")
}

// texts formats changes as "create sim_network.main: Failed".
func texts(notMade []NotMade) []string {
	var out []string
	for _, n := range notMade {
		out = append(out, n.Change+": "+n.Why)
	}
	return out
}

// listed formats lines as a list below a heading, as Markdown; "" without any. A block of code shows keys of sets as
// they are, and not as Markdown.
func (p Plan) listed(lines []string, more int) string {
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n")
	for _, line := range lines {
		b.WriteString("    " + strings.Join(strings.Fields(line), " ") + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "    and %d more\n", more)
	}
	return b.String() + "\n" + p.saysWhy()
}
