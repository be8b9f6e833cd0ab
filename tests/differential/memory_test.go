package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// expectation is what is remembered of a story from step to step: the names of what is made at random, on both sides, and the
// addresses whose drift Terraform has recorded and Hykube has not.
type expectation struct {
	terraform, hykube *alias
	unrecorded        map[string]bool
	// dependencies are those that Terraform had recorded, by address.
	dependencies map[string][]string
	// diverged says that a documented difference left the sides with different infrastructure: what follows cannot be compared.
	diverged bool
}

func newMemory() *expectation {
	names := func() *alias { return &alias{by: map[string]string{}, count: map[string]int{}} }
	return &expectation{terraform: names(), hykube: names(), unrecorded: map[string]bool{}, dependencies: map[string][]string{}}
}

// compare compares a part of two outcomes, with names for what was made at random.
func (m *expectation) compare(path string, terraform, hykube any) []difference {
	return compare(path, m.terraform.scrub(asJSON(terraform)), m.hykube.scrub(asJSON(hykube)))
}

// alias are the names of what was made at random on one side, by value.
type alias struct {
	by    map[string]string
	count map[string]int
}

// random are the attributes that a provider rolls dice for.
var random = map[string][]string{
	"sim_password": {"id", "result"},
	"time_sleep":   {"id"},
	"time_static":  {"id"},
}

// learn names the random values of states.
func (a *alias) learn(states map[string]*state) {
	for _, at := range slices.Sorted(maps.Keys(states)) {
		typ, _, _ := strings.Cut(at, ".")
		for _, name := range random[typ] {
			value, ok := states[at].Attributes[name].(string)
			if !ok || value == "" || a.by[value] != "" || value == "none" {
				continue
			}
			key := strings.Fields(at)[0] + "." + name
			a.count[key]++
			a.by[value] = fmt.Sprintf("<%s #%d>", key, a.count[key])
			a.by[strings.ToUpper(value)] = a.by[value]
		}
	}
}

// scrub replaces what was made at random by its name.
func (a *alias) scrub(v any) any {
	return mapStrings(v, func(s string) string {
		for value, name := range a.by {
			s = strings.ReplaceAll(s, value, name)
		}
		return s
	})
}
