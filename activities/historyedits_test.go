package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeObjects writes all objects, and the ProviderConfig, in their current form.
func (g *history) writeObjects() {
	zone := g.zone.title
	switch {
	case g.zone.sizeOf >= 0:
		zone = g.value(g.zone.sizeOf, g.zone.sizeOfAttr)
	case g.zone.keyOf >= 0:
		zone = g.value(g.zone.keyOf, "value")
	}
	g.configure("p", zone)
	for _, b := range g.slots {
		if b.name == "" {
			continue
		}
		w := b.write
		size := w.size
		if w.sizeOf >= 0 {
			size = g.value(w.sizeOf, w.sizeOfAttr)
		}
		if inner, ok := strings.CutPrefix(size, "${"); ok && w.coarse {
			size = "${length(coalesce(" + strings.TrimSuffix(inner, "}") + ", \"none\"))}"
		}
		lifecycle := m{}
		if addr := g.address(w.dependsOn); addr != "" {
			lifecycle["dependsOn"] = []any{addr}
		}
		if w.config != "" {
			lifecycle["providerConfig"] = w.config
		}
		switch {
		case strings.HasPrefix(b.kind, "data"):
			g.put(b.kind+"/"+b.name, m{"of": size}, lifecycle)
			continue
		case strings.HasPrefix(b.kind, "ephemeral"):
			g.put(b.kind+"/"+b.name, m{"audience": size}, lifecycle)
			continue
		}
		spec := m{"name": w.title, "size": size}
		if w.usesOf >= 0 {
			spec["uses"] = g.value(w.usesOf, "id")
		}
		if w.key != "" {
			spec["key"] = w.key
		} else if w.keyOf >= 0 {
			spec["key"] = g.value(w.keyOf, "value")
		}
		if addr := g.address(w.trigger); addr != "" && strings.HasPrefix(addr, "test") {
			lifecycle["replaceTriggeredBy"] = []any{addr + w.triggerAttr}
		}
		if addr := g.address(w.checks); addr != "" {
			lifecycle["preconditions"] = []any{m{"condition": strings.TrimSuffix(g.value(w.checks, "size"), "}") + ` != "2"}`, "errorMessage": "not two"}}
		}
		for name, set := range map[string]bool{"createBeforeDestroy": w.cbd, "preventDestroy": w.prevent} {
			if set {
				lifecycle[name] = true
			}
		}
		if w.forget {
			lifecycle["destroy"] = false
		}
		if w.ignore {
			lifecycle["ignoreChanges"] = []any{"size"}
		}
		if w.importID != "" {
			lifecycle["import"] = m{"id": w.importID}
		}
		if w.movedFrom != "" {
			lifecycle["moved"] = m{"from": w.movedFrom}
		}
		g.put(b.kind+"/"+b.name, spec, lifecycle)
	}
}

// free returns a name for a slot that no object has, including those that are being deleted.
func (g *history) free(b *slot) string {
	for _, name := range b.names {
		if g.Stored["team:"+b.kind+"/"+name] == nil {
			return name
		}
	}
	return ""
}

func (g *history) remove(b *slot) {
	name := b.kind + "/" + b.name
	b.name = ""
	g.writeObjects() // no object refers to it any more
	g.delete(name)
}

// edit makes one change of the specs.
func (g *history) edit() {
	i := g.number("slot", len(g.slots))
	b := g.slots[i]
	switch {
	case b.name == "":
		if b.name = g.free(b); b.name == "" {
			return
		}
		b.write = g.drawWritten(i)
		if things := g.things(); len(things) > 0 && g.chance("import", 6) {
			b.write.importID = draw(g, "id", things...)
		}
		g.tell("create %s %+v", b.name, b.write)
	case g.chance("delete", 6):
		g.tell("delete %s", b.name)
		g.remove(b)
		return
	case strings.HasPrefix(b.kind, "test") && g.chance("move", 8):
		old, name := g.address(i), g.free(b)
		if name == "" {
			return
		}
		was := b.kind + "/" + b.name
		g.tell("move %s to %s", b.name, name)
		b.name, b.write.movedFrom = name, old
		if g.chance("and edit", 3) {
			b.write.size = draw(g, "size", "1", "2", "3!")
		}
		g.writeObjects()
		g.delete(was)
		return
	case g.chance("a little", 2):
		w := g.drawWritten(i)
		switch {
		case g.chance("title", 4) && w.title != "":
			b.write.title = w.title
		default:
			b.write.size, b.write.sizeOf, b.write.sizeOfAttr, b.write.coarse = w.size, w.sizeOf, w.sizeOfAttr, w.coarse
		}
		g.tell("edit %s %+v", b.name, b.write)
	default:
		b.write = g.drawWritten(i)
		g.tell("write %s %+v", b.name, b.write)
	}
	g.writeObjects()
}

// things returns the IDs in the cloud that no record has.
func (g *history) things() []string {
	var out []string
	for id := range g.backend.things {
		if !slices.ContainsFunc(g.records(), func(rec *ledger.Instance) bool { return strings.Contains(string(mustJSON(rec)), fmt.Sprintf("%q", id)) }) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// around changes an object outside of the namespace's plans.
func (g *history) around() {
	switch draw(g, "around", "zone", "configmap", "secret", "taint") {
	case "zone":
		g.zone = nothing()
		g.zone.title = draw(g, "zone", "z1", "z2", "${configmap.cm.k}")
		switch {
		case g.chance("zone of", 2):
			g.zone.sizeOf, g.zone.sizeOfAttr = g.before("zoneOf", slotFirst, false), draw(g, "attr", "size", "etag")
		case g.chance("zone of a token", 3):
			g.zone.keyOf = g.before("zoneOf", slotFirst, true)
		}
		g.tell("zone %+v", g.zone)
		g.writeObjects()
	case "configmap":
		g.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte(draw(g, "k", "1", "2", "5"))}
		g.tell("configmap %s", g.Data["configmaps/team/cm"]["k"])
	case "secret":
		g.Data["secrets/team/s"] = map[string][]byte{"k": []byte(draw(g, "k", "1", "2", "5"))}
		g.tell("secret %s", g.Data["secrets/team/s"]["k"])
	case "taint":
		recs := g.living()
		if len(recs) == 0 {
			return
		}
		rec := draw(g, "tainted", recs...)
		rec.Tainted = !rec.Tainted
		if err := g.Ledger.Save(g.T.Context(), rec); err != nil {
			g.T.Fatal(err)
		}
		g.tell("taint %s %t", rec.Object.Name, rec.Tainted)
	}
}

func (g *history) living() []*ledger.Instance {
	return slices.DeleteFunc(g.records(), func(rec *ledger.Instance) bool { return rec.Mode != "" || !rec.Exists() })
}

// drift changes an object in the cloud.
func (g *history) drift() {
	recs := g.living()
	if len(recs) == 0 {
		return
	}
	var attributes struct{ ID string }
	if err := json.Unmarshal(draw(g, "drifts", recs...).Attributes, &attributes); err != nil {
		g.T.Fatal(err)
	}
	id := attributes.ID
	thing := g.backend.things[id]
	if thing == nil {
		return
	}
	if g.chance("removed", 5) {
		delete(g.backend.things, id)
		g.drifted = true
		g.tell("drift %s: gone", id)
		return
	}
	g.drifted = true
	attr := draw(g, "attr", "size", "etag")
	thing[attr] = draw(g, "to", "1", "2", "7")
	g.tell("drift %s: %s %s", id, attr, thing[attr])
}

// specOf returns the spec of a random plan.
func (g *history) specOf() v1alpha1.PlanSpec {
	var spec v1alpha1.PlanSpec
	var there []string
	for i, b := range g.slots {
		if strings.HasPrefix(b.kind, "test") && b.name != "" {
			there = append(there, g.address(i))
		}
	}
	spec.Refresh = draw(g, "refresh", "", "", v1alpha1.RefreshAll, v1alpha1.RefreshNone)
	if len(there) > 0 {
		pick := draw(g, "target", there...)
		switch draw(g, "scope", "", "", "", "targets", "targets", "exclude", "selector", "replace", "destroy") {
		case "targets":
			spec.Targets = []string{pick}
		case "exclude":
			spec.Exclude = []string{pick}
		case "selector":
			_, name, _ := strings.Cut(pick, ".")
			spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
		case "replace":
			spec.Replace = []string{pick}
		case "destroy":
			spec.Destroy, spec.Targets = true, []string{pick}
		}
	}
	if len(spec.Replace) == 0 && !spec.Destroy && g.chance("refreshOnly", 6) {
		spec.RefreshOnly = true
	}
	return spec
}

// setFaults sets the faults of the next calls.
func (g *history) setFaults() {
	g.backend.faults = nil
	for range g.number("faults", 4) {
		g.backend.faults = append(g.backend.faults, draw(g, "fault", "", "refused", "partial"))
	}
	g.tell("faults %q", g.backend.faults)
}
