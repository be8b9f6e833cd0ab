package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// slot is a place in a scenario for one object. Its spec may refer to the objects in the slots before it.
type slot struct {
	kind  string
	names []string
	// name is the current name of the object; "" if there is none.
	name  string
	write written
}

// written is the spec of an object. References are the numbers of slots; -1 means none.
type written struct {
	title, size, key string
	sizeOf, usesOf   int
	sizeOfAttr       string
	// coarse is true if the size is the length of the value that it refers to, so that most changes end there.
	coarse              bool
	keyOf               int
	dependsOn, trigger  int
	triggerAttr         string
	checks              int
	config              string
	cbd, forget, ignore bool
	prevent             bool
	importID, movedFrom string
}

// history is a random history of a scenario.
type history struct {
	*scenario
	rt    *rapid.T
	slots []*slot
	zone  written // of the ProviderConfig "p": title, or sizeOf, or keyOf
	// drifted is true after drift in the cloud. whole is true after the apply of a plan of all resources.
	drifted, whole bool
	// log describes the history for a person who examines a failure.
	log []string
}

const (
	slotServer = iota
	slotLegacy
	slotImage
	slotToken
	slotFirst // from here on, objects may use the ProviderConfig
)

func newHistory(t *testing.T, rt *rapid.T) *history {
	g := &history{scenario: newScenario(t), rt: rt}
	for _, b := range []struct {
		kind  string
		names string
	}{
		{"test-server", "a a2"}, {"test-legacy", "b b2"}, {"data-test-image", "d"}, {"ephemeral-test-token", "t"},
		{"test-server", "e e2"}, {"test-legacy", "f"}, {"test-server", "g"}, {"data-test-image", "h"}, {"test-server", "i"},
	} {
		g.slots = append(g.slots, &slot{kind: b.kind, names: strings.Fields(b.names), write: nothing()})
	}
	g.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	g.Data["secrets/team/s"] = map[string][]byte{"k": []byte("1")}
	g.zone = nothing()
	g.zone.title = "z1"
	g.configure("p", "z1")
	return g
}

func nothing() written {
	return written{sizeOf: -1, usesOf: -1, keyOf: -1, dependsOn: -1, trigger: -1, checks: -1}
}

func (g *history) tell(format string, args ...any) {
	g.log = append(g.log, fmt.Sprintf(format, args...))
}

// draw returns one of the values, each with the same probability, while rapid alone prefers the first ones. When rapid
// simplifies a failed history, it returns the first one.
func draw[T any](g *history, what string, of ...T) T { return of[g.number(what, len(of))] }

func (g *history) number(what string, below int) int {
	return int(uint64(rapid.Uint16().Draw(g.rt, what)) * 0x9E3779B97F4A7C15 >> 32 % uint64(below))
}

func (g *history) chance(what string, oneIn int) bool { return g.number(what, oneIn) == oneIn-1 }

// address returns the address of the object in a slot; "" if there is none.
func (g *history) address(i int) string {
	if i < 0 || g.slots[i].name == "" {
		return ""
	}
	return strings.ReplaceAll(strings.Replace(strings.Replace(g.slots[i].kind, "data-", "data.", 1), "ephemeral-", "ephemeral.", 1), "-", "_") + "." + g.slots[i].name
}

// before returns an earlier slot with a mode to which a reference may refer.
func (g *history) before(what string, i int, ephemeral bool) int {
	picks := []int{-1}
	for k := range i {
		if strings.HasPrefix(g.slots[k].kind, "ephemeral") == ephemeral {
			picks = append(picks, k)
		}
	}
	return draw(g, what, picks...)
}

func (g *history) drawWritten(i int) written {
	kind := g.slots[i].kind
	w := nothing()
	w.size = draw(g, "size", "1", "2", "3!", "${configmap.cm.k}", "${secret.s.k}")
	if !g.chance("refers to nothing", 3) {
		w.sizeOf = g.before("sizeOf", i, false)
		w.sizeOfAttr, w.coarse = draw(g, "attr", "size", "etag", "id", "zone"), g.chance("coarse", 3)
	}
	if w.sizeOf < 0 && g.chance("refers to an ephemeral one", 6) && strings.HasPrefix(kind, "ephemeral") {
		w.keyOf = g.before("keyOf", i, true)
	}
	if g.chance("depends", 6) {
		w.dependsOn = g.before("dependsOn", i, false)
	}
	if i >= slotFirst && g.chance("config", 3) {
		w.config = "p"
	}
	if !strings.HasPrefix(kind, "test") {
		return w
	}
	w.title = draw(g, "title", "x", "y") + g.slots[i].names[0]
	if g.chance("uses", 3) {
		w.usesOf = g.before("usesOf", i, false)
	}
	switch {
	case g.chance("key", 3):
		w.keyOf = g.before("keyOf", i, true)
	case g.chance("plain key", 4):
		w.key = draw(g, "key", "k1", "k2")
	}
	if g.chance("trigger", 5) {
		w.trigger, w.triggerAttr = g.before("trigger", i, false), draw(g, "triggerAttr", "", ".size", ".etag")
	}
	if g.chance("check", 6) {
		w.checks = g.before("checks", i, false)
	}
	w.cbd, w.forget, w.ignore, w.prevent = g.chance("cbd", 4), g.chance("forget", 8), g.chance("ignore", 6), g.chance("prevent", 12)
	return w
}

// value returns an expression for an attribute of the object in a slot.
func (g *history) value(i int, attr string) string {
	addr := g.address(i)
	if addr == "" {
		return "nothing"
	}
	if strings.HasPrefix(addr, "data") {
		attr = "text"
	}
	if strings.HasPrefix(addr, "ephemeral") {
		attr = "value"
	}
	return "${" + addr + "." + attr + "}"
}

// plan makes a plan, and then applies, discards or leaves it. calm is true if it was applied without a fault.
func (g *history) plan() (calm bool) {
	g.spec = g.specOf()
	defer func() { g.spec, g.lane, g.backend.while, g.injector.at = v1alpha1.PlanSpec{}, false, nil, 0 }()
	run := g.newRun()
	fate := draw(g, "fate", "apply", "apply", "apply", "fail", "discard", "cancel", "stale", "two", "crash", "meanwhile")
	g.tell("%s: %s %s", run.Name, fate, mustJSON(g.spec))
	g.lane = g.chance("lane", 3)
	switch fate {
	case "apply":
		po := g.resume(run)
		calm = true
		spec := g.spec
		spec.Refresh = ""
		g.whole = !g.drifted && !diag.HasErrors(po.Status.Diagnostics) && cmp.Equal(spec, v1alpha1.PlanSpec{}) &&
			(po.Status.Progress == nil || po.Status.Progress.Failed+po.Status.Progress.Skipped == 0)
	case "fail":
		g.setFaults()
		g.resume(run)
		g.backend.faults = nil
	case "discard":
		g.until(run, approving)
	case "cancel":
		g.lane = true
		g.setFaults()
		g.backend.while = func() { g.cancel(run) }
		g.resume(run)
		g.backend.faults = nil
	case "stale":
		g.until(run, draw(g, "until", proposing, publishing, approving, beginning, stepping))
		g.edit()
		g.resume(run)
	case "two":
		g.until(run, draw(g, "until", proposing, publishing, approving, beginning, stepping))
		g.spec = g.specOf()
		other := g.newRun()
		g.tell("%s: beside %s", other.Name, mustJSON(g.spec))
		g.until(other, draw(g, "until", publishing, approving, beginning, over))
		g.setFaults()
		if g.chance("the other first", 2) {
			run, other = other, run
		}
		g.resume(run)
		g.resume(other)
		g.backend.faults = nil
	case "crash":
		if g.chance("after it was made", 2) {
			g.until(run, beginning)
		}
		g.injector.seen, g.injector.at = 0, 1+g.number("at", 80)
		g.resume(run)
	case "meanwhile":
		g.until(run, stepping)
		g.spec = g.specOf()
		other := g.newRun()
		g.tell("%s: meanwhile %s", other.Name, mustJSON(g.spec))
		ends := draw(g, "until", approving, over)
		g.backend.while = func() { g.until(other, ends) }
		g.resume(run)
	}
	g.tell("%s: %s", run.Name, describePlan(g.plans.get(run.Name)))
	return calm
}

func describePlan(po *v1alpha1.Plan) string {
	text := ""
	if po.Status.Summary != nil {
		text = po.Status.Summary.Text
	}
	for _, c := range po.Status.Conditions {
		text += fmt.Sprintf("; %s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, d := range po.Status.Diagnostics {
		text += fmt.Sprintf("; %s %s %s", d.Address, d.Summary, d.Detail)
	}
	return text
}

// clearLost deletes the objects of lost creates, as a user does after a check of the cloud.
func (g *history) clearLost() {
	for _, rec := range g.records() {
		if rec.Intent == nil || rec.Intent.Action != v1alpha1.ActionCreate {
			continue
		}
		for _, b := range g.slots {
			if b.name == rec.Object.Name && g.Stored["team:"+b.kind+"/"+b.name] != nil {
				g.remove(b)
			}
		}
	}
}

// compare expects a default plan to have the changes of a full plan.
func (g *history) compare() {
	changed, all := g.both()
	if changed.failed != all.failed {
		g.fail("the default plan failed: %t, the full one: %t\n%v\n%v", changed.failed, all.failed, diag.Describe(changed.diags), diag.Describe(all.diags))
	}
	if all.failed {
		g.tell("failed: %s", diag.Describe(all.diags))
		return
	}
	if diff := cmp.Diff(all.does, changed.does); diff != "" {
		g.fail("a full plan does (-), a default plan does (+)\n%s", diff)
	}
}

// rest makes two default plans after an applied one. Each must visit what it has to, and nothing that an earlier one found
// unchanged. The apply of the first begins, which records that.
func (g *history) rest() {
	before := g.save()
	defer g.restore(before)
	partial := g.partial
	g.backend.echo, g.partial = true, true
	defer func() { g.backend.echo, g.partial = false, partial }()
	for _, which := range []string{"second", "third"} {
		v := g.planWith(v1alpha1.RefreshChanged)
		g.until(v.run, stepping)
		if v.failed || which == "second" && !g.whole {
			continue
		}
		impure := map[string]bool{}
		for name := range v.visited {
			address, _, _ := strings.Cut(name, " ") // a deposed instance is a reason to visit the current one
			if _, does := v.does[name]; does {
				impure[address] = true
			}
			// A data source may return other values each time, and a legacy provider may return other values than
			// planned.
			if strings.HasPrefix(name, "data.") || which == "second" && strings.HasPrefix(name, "test_legacy.") {
				impure[address] = true
			}
		}
		var follows func(name string) bool
		follows = func(name string) bool { return impure[name] || slices.ContainsFunc(v.deps[name], follows) }
		for name := range v.visited {
			if address, _, _ := strings.Cut(name, " "); !follows(address) {
				g.fail("the %s plan looks at %s, of which nothing changed", which, name)
			}
		}
	}
}

func (g *history) fail(format string, args ...any) {
	var recs []string
	for _, rec := range g.records() {
		recs = append(recs, fmt.Sprintf("%s gen %d %s version %s seen %v", rec.Object.Name, rec.Object.Generation, rec.Attributes, rec.Version, rec.DependencyVersions))
	}
	g.rt.Fatalf(format+"\n%s\n%s", append(args, strings.Join(g.log, "\n"), strings.Join(recs, "\n"))...)
}

// TestADefaultPlanEqualsAFullPlan compares a default plan, which visits changed resources and their dependants, with a
// full plan, after a random history. For more of them: go test ./activities -run TestADefaultPlanEqualsAFullPlan
// -rapid.checks 20000
func TestADefaultPlanEqualsAFullPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newHistory(t, rt)
		for range g.number("objects", 12) {
			g.edit()
		}
		if g.chance("all of it is made", 2) {
			g.resume(g.newRun())
		}
		for range 1 + g.number("length", 14) {
			switch draw(g, "do", "edit", "edit", "plan", "plan", "plan", "around", "drift") {
			case "edit":
				g.edit()
			case "plan":
				calm := g.plan()
				g.clearLost()
				if calm {
					g.rest()
				}
			case "around":
				g.around()
			case "drift":
				g.drift()
			}
			g.compare()
		}
	})
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
