package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/internal/contributor"

	"k8s.io/apimachinery/pkg/types"
)

// Versions are the versions of a record's attributes, for dependants to detect that a value which they refer to has
// changed. Save maintains them.
type Versions struct {
	// Version changes whenever the attributes or their sensitive paths change, or are in Renewed; see VersionOf.
	Version string `json:"version,omitempty"`
	// Base is the version of the attributes that Since lacks; empty means Version.
	Base string `json:"base,omitempty"`
	// Since holds the versions of the attributes that were changed or renewed since Base.
	Since map[string]string `json:"since,omitempty"`
}

// VersionOf returns the version of attributes that a plan changed as planned.
func VersionOf(plan types.UID) string {
	const enough = 13 // it must only differ from those of other plans that change the same instance
	return string(plan[:min(len(plan), enough)])
}

// VersionOf returns the version of an attribute, or of the whole instance if the attribute is empty.
func (v *Versions) VersionOf(attribute string) string {
	if attribute == "" {
		return v.Version
	}
	if own, ok := v.Since[attribute]; ok {
		return own
	}
	return cmp.Or(v.Base, v.Version)
}

// set gives all attributes a version.
func (v *Versions) set(version string) { *v = Versions{Version: version} }

// setVersions gives the version of the plan to the attributes that differ from the stored ones, and to those in
// Renewed.
func (i *Instance) setVersions() {
	switch version := VersionOf(i.Plan); {
	case i.Unplanned && strings.HasPrefix(i.Version, version+"~"):
		i.set(i.Version + "~") // a further attempt may have had another result
	case i.Unplanned:
		i.set(version + "~")
	case len(i.Renewed) == 0 && bytes.Equal(i.read, i.Attributes) && bytes.Equal(i.readSensitive, i.Sensitive):
	default:
		changed, known := i.changedAttributes()
		if !known || i.Version == "" || version == "" {
			i.set(version)
			return
		}
		v := Versions{Version: version, Base: cmp.Or(i.Base, i.Version), Since: map[string]string{}}
		maps.Copy(v.Since, i.Since)
		for _, name := range append(changed, i.Renewed...) {
			if name != "" {
				v.Since[name] = version
			}
		}
		i.Versions = v
	}
}

// setWriters notes who caused the attributes that differ from the stored ones. What no plan caused keeps its writers.
func (i *Instance) setWriters() {
	if len(i.Attributes) == 0 {
		i.Writers = nil
		return
	}
	if len(i.Causes) == 0 || bytes.Equal(i.read, i.Attributes) {
		return
	}
	changed, known := i.changedAttributes()
	switch {
	case !known:
		changed = nil
	case len(changed) == 0:
		return
	}
	attributes := sync.OnceValue(func() map[string]json.RawMessage {
		var all map[string]json.RawMessage
		if json.Unmarshal(i.Attributes, &all) != nil {
			return nil
		}
		return all
	})
	i.Writers = contributor.WriteTogether(i.Writers, i.Causes, changed, func(name string) bool {
		_, ok := attributes()[name]
		return ok
	})
}

// changedAttributes returns the names of the attributes that differ from the stored ones, or whose sensitive paths do.
// known is false if the stored ones are unknown, or if the instance did not exist or is gone.
func (i *Instance) changedAttributes() (changed []string, known bool) {
	if len(i.read) == 0 || len(i.Attributes) == 0 {
		return nil, false
	}
	marked, known := sensitivePaths(i.Sensitive)
	readMarked, readKnown := sensitivePaths(i.readSensitive)
	if !known || !readKnown {
		return nil, false
	}
	var before, after map[string]json.RawMessage
	if json.Unmarshal(i.read, &before) != nil || json.Unmarshal(i.Attributes, &after) != nil {
		return nil, false
	}
	for name, value := range after {
		if old, ok := before[name]; !ok || !bytes.Equal(old, value) || !slices.Equal(marked[name], readMarked[name]) {
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			changed = append(changed, name)
		}
	}
	return changed, true
}

// sensitivePaths returns the sensitive paths of each attribute, sorted, as instance.SensitivePaths encodes them. known
// is false if a path does not begin with the name of an attribute.
func sensitivePaths(encoded []byte) (paths map[string][]string, known bool) {
	paths = map[string][]string{}
	if len(encoded) == 0 {
		return paths, true
	}
	var list []json.RawMessage
	if json.Unmarshal(encoded, &list) != nil {
		return nil, false
	}
	for _, path := range list {
		var steps []struct {
			Attr string `json:"attr"`
		}
		if json.Unmarshal(path, &steps) != nil || len(steps) == 0 || steps[0].Attr == "" {
			return nil, false
		}
		paths[steps[0].Attr] = append(paths[steps[0].Attr], string(path))
	}
	for _, of := range paths {
		slices.Sort(of)
	}
	return paths, true
}

// Hides reports whether an attribute, or a part of it, is secret because a reference made it so. The schema declares
// further ones.
func (s *State) Hides(attribute string) bool {
	paths, known := sensitivePaths(s.Sensitive)
	return !known || len(paths[attribute]) > 0
}
