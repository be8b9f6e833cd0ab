package diff

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/hykube/hykube/api/v1alpha1"
)

// FirstScreen is the default maximum number of lines of a Screen.
const FirstScreen = 40

// Screen collects the changes of a plan page by page and renders a summary that fits one screen. It renders the whole
// diff if that fits. Otherwise it renders the verdict, the counts, the destroys and replaces with their causes, and the
// other changes in groups. It does not keep the changes, so a plan of a million changes needs little memory.
type Screen struct {
	// Temporary is true for a plan that is deleted at once, so that the screen names no command to show every change.
	Temporary bool
	// Folded is true after Write if the screen did not render every change in full.
	Folded bool

	style Style
	lines int

	full   strings.Builder
	whole  bool
	used   int
	drift  drift
	groups map[string]*group
	order  []*group
	soft   int // number of groups that neither destroy nor replace
	counts counts
}

// group is a set of changes with the same action, type and causing attributes.
type group struct {
	action v1alpha1.Action
	symbol string
	single string // the name of the first change
	typ    string
	shape  string // the attributes that cause the changes
	text   string // the same with values, if all changes have the same values
	forces bool   // text names attributes that force a replace
	count  int
	names  []string
}

// maxGroups limits the groups of creates and updates in a Screen, which has no room for more. Groups of destroys and
// replaces have no limit.
const maxGroups = 2000

// NewScreen returns a Screen of at most the given number of lines; 0 means FirstScreen.
func NewScreen(style Style, lines int) *Screen {
	if lines <= 0 {
		lines = FirstScreen
	}
	return &Screen{style: style, lines: lines, whole: true, groups: map[string]*group{}, drift: drift{style: style}}
}

// Add adds the next change.
func (s *Screen) Add(c *v1alpha1.PlanChange) {
	s.counts.add(c)
	s.drift.add(c, s.lines)
	if hidden(c) {
		return
	}
	if s.whole {
		text := Change(c, s.style)
		s.used += s.height(text)
		if s.used+frame > s.lines {
			s.whole = false
			s.full.Reset()
		} else {
			s.full.WriteString(text)
		}
	}
	shape, text := cause(c)
	hard := c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionReplace
	symbol, typ := Symbol(c), c.Type
	if word := block(c.Mode); word != "resource" {
		typ = word + "." + typ
	}
	key := symbol + "\x00" + typ + "\x00" + shape
	g, ok := s.groups[key]
	if !ok && !hard && s.soft >= maxGroups {
		key, shape, text = symbol+"\x00"+typ, "", ""
		g, ok = s.groups[key]
	}
	if !ok {
		g = &group{action: c.Action, symbol: symbol, single: Name(c), typ: typ, shape: shape, text: text,
			forces: c.Action == v1alpha1.ActionReplace && len(replacePaths(c)) > 0}
		s.groups[key] = g
		s.order = append(s.order, g)
		if !hard {
			s.soft++
		}
	}
	if g.text != text {
		g.text = g.shape // the same attributes, with other values
	}
	g.count++
	if len(g.names) < 4 {
		g.names = append(g.names, shortName(c))
	}
}

// shortName returns the name of a change beside its type: the whole address for a resource of a Module, whose names are
// not unique.
func shortName(c *v1alpha1.PlanChange) string {
	if path, _ := v1alpha1.SplitModuleObjectName(c.Object.Name); path != "" {
		return Clean(c.Address, false)
	}
	return Clean(v1alpha1.ShownName(c.Object.Name), false)
}

// height returns the number of rows of a text after long lines wrap. Lines about changes are never cut.
func (s *Screen) height(text string) int {
	rows := 0
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		rows++
		if s.style.Width > 0 {
			rows += max(0, ansi.StringWidth(l)-1) / s.style.Width
		}
	}
	return rows
}

// frame is the number of lines around the changes: the legend, blank lines and the last line.
const frame = 9

// Write renders the screen. It prefers the plan's own summary to its counts.
func (s *Screen) Write(w io.Writer, plan *v1alpha1.Plan) error {
	sum := s.counts.PlanSummary
	if plan.Status.Summary != nil {
		sum = *plan.Status.Summary
	}
	var out []string
	fit := s.style.Fit
	below := slices.Concat(Outputs(plan, s.style), Rollouts(plan), Policies(plan, s.style, maxPolicies))
	if s.whole && s.used+frame+len(s.drift.lines)+len(below) <= s.lines {
		fit = func(line string) string { return line }
		out = append(out, s.drift.section()...)
		if s.full.Len() > 0 {
			out = append(out, s.counts.legend(s.style)...)
			out = append(out, strings.Split(strings.TrimRight(s.full.String(), "\n"), "\n")...)
			out = append(out, "")
		}
		out = append(out, s.drift.recorded(sum.RecordUpdates)...)
		out = append(append(out, Verdict(plan, sum, s.style)), below...)
	} else {
		s.Folded = true
		out = s.fold(plan, sum)
	}
	for _, l := range out {
		if _, err := fmt.Fprintln(w, fit(l)); err != nil {
			return err
		}
	}
	return nil
}

// maxOutputLines is the maximum number of lines about outputs in a folded plan.
const maxOutputLines = 10

// fold renders a plan that is too long to be rendered in full.
func (s *Screen) fold(plan *v1alpha1.Plan, sum v1alpha1.PlanSummary) []string {
	outputs := Outputs(plan, s.style)
	if more := len(outputs) - maxOutputLines; more > 0 {
		outputs = append(outputs[:maxOutputLines], fmt.Sprintf("  (%s of outputs hidden)", Plural(more, "line")))
	}
	out := slices.Concat([]string{Verdict(plan, sum, s.style)}, outputs, Rollouts(plan),
		Policies(plan, s.style, maxPolicies))
	out = append(out, "")
	row := func(sym string, n int32, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("  %s %s %s", padSymbol(s.style, sym), fmt.Sprintf("%9s", Count(int(n))),
				what))
		}
	}
	row("-", sum.Delete, "to destroy")
	sym, what := s.counts.replaceRow()
	row(sym, sum.Replace, what)
	row("+/.", s.counts.kept, "to replace: a new instance is created, and the old one is forgotten")
	row("~", sum.Update, "to update in-place")
	row("+", sum.Create-s.counts.kept, "to create")
	row(".", sum.Forget-s.counts.kept-s.counts.gone, "to forget: no longer managed, but not destroyed")
	row(".", s.counts.gone, "to remove from the records: gone, or never created")
	row(">", sum.Invoke, "to invoke")
	row("<=", sum.Read, "to read during apply")
	row("", sum.Import, "to import")
	row("", sum.Move, "to move")
	row("!", sum.Blocked, "of these blocked: lifecycle.preventDestroy forbids them, or a change that they need")
	row("", sum.NoOp-sum.RecordUpdates, "need no change")
	row("", sum.RecordUpdates, "need no change, but their recorded state is updated")
	row("", sum.Drifted, "changed outside of Hykube")

	var hard, soft []*group
	for _, g := range s.order {
		if g.action == v1alpha1.ActionDelete || g.action == v1alpha1.ActionReplace {
			hard = append(hard, g)
		} else {
			soft = append(soft, g)
		}
	}
	// Destroys come before replaces. Among these, single changes come first, because they are more likely to be
	// unintended.
	slices.SortStableFunc(hard, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b2i(a.action != v1alpha1.ActionDelete), b2i(b.action != v1alpha1.ActionDelete)),
			cmp.Compare(b2i(a.count > 1), b2i(b.count > 1)))
	})
	slices.SortStableFunc(soft, func(a, b *group) int { return cmp.Compare(b.count, a.count) })

	room := s.lines - len(out) - 3 // reserve a blank line, the hint at the end, and one more
	titles := 2 * (b2i(len(hard) > 0) + b2i(len(soft) > 0))
	room -= titles
	forSoft := min(len(soft), max(room/3, room-len(hard)))
	forHard := min(len(hard), room-forSoft)
	out = s.section(out, "Destroyed or replaced", hard, forHard)
	title := "Everything else"
	if len(hard) == 0 {
		title = "Changes"
	}
	out = s.section(out, title, soft, forSoft)
	if !s.Temporary {
		out = append(out, "", EveryChange(plan, s.style))
	}
	return out
}

func (s *Screen) section(out []string, title string, groups []*group, room int) []string {
	if len(groups) == 0 {
		return out
	}
	out = append(out, "", s.style.Bold(title))
	show := groups
	if len(show) > room {
		show = show[:max(0, room-1)]
	}
	width := 0
	for _, g := range show {
		width = max(width, ansi.StringWidth(g.title()))
	}
	for _, g := range show {
		title := g.title()
		line := "  " + padSymbol(s.style, g.symbol) + " " + title + strings.Repeat(" ", width-ansi.StringWidth(title))
		if g.text != "" {
			line += "  " + g.text
			if g.forces {
				line += s.style.Red(" # forces replacement")
			}
		}
		if g.count > 1 {
			names := strings.Join(g.names[:min(3, len(g.names))], ", ")
			if g.count > 3 {
				names += ", …"
			}
			line += "  " + s.style.Dim(names)
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	if rest := groups[len(show):]; len(rest) > 0 {
		n := 0
		for _, g := range rest {
			n += g.count
		}
		out = append(out, s.style.Dim(fmt.Sprintf("      … and %s", Plural(n, "more change"))))
	}
	return out
}

// title returns the address of a single change, or the type and the number of several.
func (g *group) title() string {
	if g.count == 1 {
		return g.single
	}
	return g.typ + " × " + Count(g.count)
}

// EveryChange returns the hint with the command that shows every change of a plan.
func EveryChange(plan *v1alpha1.Plan, style Style) string {
	cmd := style.Dim("Every change in full: ") + "kubectl hykube show " + plan.Name
	if plan.Namespace != "" {
		cmd += " -n " + plan.Namespace
	}
	return cmd
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
