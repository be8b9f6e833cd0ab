package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// expectation is the state of a story between its steps: the names of random values on both sides, and the addresses
// whose drift only Terraform has recorded.
type expectation struct {
	terraform, hykube *alias
	unrecorded        map[string]bool
	// dependencies holds Terraform's recorded dependencies, by address.
	dependencies map[string][]string
	// references holds the recorded references of both sides, by address, and owners the addresses of the objects of the
	// cloud.
	references map[string]map[string]bool
	owners     map[string]string
	// diverged is true after a documented difference caused different infrastructure, so that later steps cannot be
	// compared.
	diverged bool
}

func newMemory() *expectation {
	names := func() *alias { return &alias{by: map[string]string{}, count: map[string]int{}} }
	return &expectation{terraform: names(), hykube: names(), unrecorded: map[string]bool{}, dependencies: map[string][]string{}, owners: map[string]string{}}
}

// compare compares a part of two outcomes, with names for random values.
func (m *expectation) compare(path string, terraform, hykube any) []difference {
	return compare(path, m.terraform.scrub(asJSON(terraform)), m.hykube.scrub(asJSON(hykube)))
}

// alias holds the names of the random values of one side.
type alias struct {
	by    map[string]string
	count map[string]int
}

// random lists the attributes with random values.
var random = map[string][]string{
	"sim_password": {"id", "result"},
	"time_sleep":   {"id"},
	"time_static":  {"id"},
}

// learn names the random values in states.
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

// scrub replaces random values by their names.
func (a *alias) scrub(v any) any {
	return mapStrings(v, func(s string) string {
		for value, name := range a.by {
			s = strings.ReplaceAll(s, value, name)
		}
		return s
	})
}
