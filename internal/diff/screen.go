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

// FirstScreen is how many lines the first screen of a plan may have, whatever the plan's size.
const FirstScreen = 40

// Screen collects the changes of a plan, page by page, and writes the first thing that a person sees of it:
// the whole diff when that fits, and otherwise the verdict, the counts, what is destroyed or replaced and why,
// and the rest folded. It keeps no change, so a plan of a million costs it little.
type Screen struct {
	// Temporary plans are removed before a person could ask for them: the screen does not say how to show every change.
	Temporary bool
	// Folded is true after Write when the screen did not show every change in full.
	Folded bool

	style Style
	lines int

	full   strings.Builder
	whole  bool
	used   int
	drift  drift
	groups map[string]*group
	order  []*group
	soft   int // groups that neither destroy nor replace
	counts counts
}

// group is a number of changes of the same shape: same action, type and attributes that cause it.
type group struct {
	action v1alpha1.Action
	symbol string
	single string // the name of the first
	typ    string
	shape  string // the attributes that cause it
	text   string // the same with their values, while all have the same
	count  int
	names  []string
}

// maxGroups bounds the shapes of creates and updates that a Screen remembers; more don't fit a screen anyway. Those
// of destroys and replaces are never lumped together.
const maxGroups = 2000

// NewScreen makes a Screen of at most so many lines; 0 means FirstScreen.
func NewScreen(style Style, lines int) *Screen {
	if lines <= 0 {
		lines = FirstScreen
	}
	return &Screen{style: style, lines: lines, whole: true, groups: map[string]*group{}, drift: drift{style: style}}
}

// Add takes the next change.
func (s *Screen) Add(c *v1alpha1.PlanChange) {
	s.counts.add(c)
	s.drift.add(c, s.lines)
	if Quiet(c) {
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
		g = &group{action: c.Action, symbol: symbol, single: Name(c), typ: typ, shape: shape, text: text}
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
		g.names = append(g.names, Clean(c.Object.Name, false))
	}
}

// height is how many rows a text takes on the page, where long lines wrap: what will be done is never cut.
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

// frame is how many lines a Screen needs around the changes themselves: legend, blank lines and the last line.
const frame = 9

// Write writes the screen. The plan's own summary wins over what was counted.
func (s *Screen) Write(w io.Writer, plan *v1alpha1.Plan) error {
	sum := s.counts.PlanSummary
	if plan.Status.Summary != nil {
		sum = *plan.Status.Summary
	}
	var out []string
	fit := s.style.Fit
	if s.whole && s.used+frame+len(s.drift.lines) <= s.lines {
		fit = func(line string) string { return line }
		out = append(out, s.drift.section()...)
		if s.full.Len() > 0 {
			out = append(out, s.counts.legend(s.style)...)
			out = append(out, strings.Split(strings.TrimRight(s.full.String(), "\n"), "\n")...)
			out = append(out, "")
		}
		out = append(out, s.drift.recorded(sum.RecordUpdates)...)
		out = append(out, Verdict(plan, sum, s.style))
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

// fold is the screen of a plan that is too long to be shown.
func (s *Screen) fold(plan *v1alpha1.Plan, sum v1alpha1.PlanSummary) []string {
	out := []string{Verdict(plan, sum, s.style), ""}
	row := func(sym string, n int32, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("  %s %s %s", padSymbol(s.style, sym), fmt.Sprintf("%9s", Count(int(n))), what))
		}
	}
	row("-", sum.Delete, "to destroy")
	sym, what := s.counts.replaceRow()
	row(sym, sum.Replace, what)
	row("+/.", s.counts.kept, "to replace: created again, and not destroyed")
	row("~", sum.Update, "to update in-place")
	row("+", sum.Create-s.counts.kept, "to create")
	row(".", sum.Forget-s.counts.kept, "to forget: no longer managed, and not destroyed")
	row(">", sum.Invoke, "to invoke")
	row("<=", sum.Read, "to read during apply")
	row("", sum.Import, "to import")
	row("", sum.Move, "to move")
	row("!", sum.Blocked, "of these blocked: lifecycle.preventDestroy forbids them, or a change that they need")
	row("", sum.NoOp-sum.RecordUpdates, "need no change")
	row("", sum.RecordUpdates, "need no change, and their recorded state is brought up to date")
	row("", sum.Drifted, "changed outside of Hykube")

	var hard, soft []*group
	for _, g := range s.order {
		if g.action == v1alpha1.ActionDelete || g.action == v1alpha1.ActionReplace {
			hard = append(hard, g)
		} else {
			soft = append(soft, g)
		}
	}
	// Destroys before replaces, and within each the single ones, which are the surprising ones, first.
	slices.SortStableFunc(hard, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b2i(a.action != v1alpha1.ActionDelete), b2i(b.action != v1alpha1.ActionDelete)), cmp.Compare(b2i(a.count > 1), b2i(b.count > 1)))
	})
	slices.SortStableFunc(soft, func(a, b *group) int { return cmp.Compare(b.count, a.count) })

	room := s.lines - len(out) - 3 // a blank line and the hint at the end, one to spare
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
			if g.action == v1alpha1.ActionReplace && !strings.HasPrefix(g.text, "(") {
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

// title is the address of a change that stands alone, or the type and the number of many.
func (g *group) title() string {
	if g.count == 1 {
		return g.single
	}
	return g.typ + " × " + Count(g.count)
}

// EveryChange says which command shows every change of a plan.
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
