package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hykube/hykube/tests/simcloud"
	"sigs.k8s.io/yaml"
)

// story is a configuration and its changes, step by step.
type story struct {
	name string
	// What describes the story in a sentence.
	What string `json:"what"`
	// Short is true for a story that runs in `make test`, too.
	Short bool `json:"short,omitempty"`
	// Open describes a known difference of Hykube that is a bug. The story then must differ; otherwise Open must be
	// removed.
	Open string `json:"open,omitempty"`
	// Providers names the providers of a story with files.
	Providers []string `json:"providers,omitempty"`
	Steps     []*step  `json:"steps"`
}

// providers returns the names of all providers in the story.
func (st *story) providers() []string {
	names := map[string]bool{}
	for _, name := range st.Providers {
		names[name] = true
	}
	for _, s := range st.Steps {
		for _, addresses := range [][]string{slices.Collect(maps.Keys(s.Resources)), slices.Collect(maps.Keys(s.Set))} {
			for _, at := range addresses {
				if a, err := parseAddress(at); err == nil {
					names[a.provider()] = true
				}
			}
		}
	}
	return sorted(names)
}

// step changes the configuration, the cloud or both, plans, and applies.
type step struct {
	What string `json:"what,omitempty"`

	// These fields change the configuration. Resources, if there are any, replaces all resources; Set changes single
	// arguments; Remove removes resources. Repeat repeats resources; null ends that. ClearLifecycle removes all
	// meta-arguments before it sets those of the step.
	Resources      map[string]map[string]any    `json:"resources,omitempty"`
	Set            map[string]map[string]any    `json:"set,omitempty"`
	Remove         []string                     `json:"remove,omitempty"`
	Repeat         map[string]any               `json:"repeat,omitempty"`
	Lifecycle      map[string]map[string]any    `json:"lifecycle,omitempty"`
	ConfigMaps     map[string]map[string]string `json:"configMaps,omitempty"`
	Secrets        map[string]map[string]string `json:"secrets,omitempty"`
	Forget         []string                     `json:"forget,omitempty"`
	ClearLifecycle bool                         `json:"clearLifecycle,omitempty"`

	// Files are the configuration of a story of a Module, by path: Terraform's working directory. Those that a step omits
	// stay, and an empty one is removed. Inputs, if there are any, replaces the values of all variables.
	Files  map[string]string `json:"files,omitempty"`
	Inputs map[string]any    `json:"inputs,omitempty"`

	// These fields change the cloud before the plan.
	Create []cloudObject `json:"create,omitempty"`
	Drift  []cloudObject `json:"drift,omitempty"`
	Vanish []cloudObject `json:"vanish,omitempty"`
	// Faults affect the calls until the end of the step.
	Faults []simcloud.Fault `json:"faults,omitempty"`
	// ApplyFaults affect only the apply.
	ApplyFaults []simcloud.Fault `json:"applyFaults,omitempty"`

	Taint   []string `json:"taint,omitempty"`
	Untaint []string `json:"untaint,omitempty"`

	// These fields are options of the plan.
	Destroy     bool     `json:"destroy,omitempty"`
	RefreshOnly bool     `json:"refreshOnly,omitempty"`
	NoRefresh   bool     `json:"noRefresh,omitempty"`
	Target      []string `json:"target,omitempty"`
	Exclude     []string `json:"exclude,omitempty"`
	Replace     []string `json:"replace,omitempty"`
	// PlanOnly does not apply the plan.
	PlanOnly bool `json:"planOnly,omitempty"`

	// Fails is the part of the step that must fail: "plan" or "apply"; empty means none.
	Fails string `json:"fails,omitempty"`
	// Expect holds actions by address that the plan must have on both sides, such as "create" or "delete create", so
	// that both cannot be wrong in the same way. Other addresses are not checked. Generated stories have none.
	Expect map[string]string `json:"expect,omitempty"`
	// Anyway permits the step to fail or to succeed, as long as both sides agree. Generated stories need it.
	Anyway bool `json:"anyway,omitempty"`
}

// cloudObject names an object of the cloud and some of its fields.
type cloudObject struct {
	Kind   string         `json:"kind"`
	Name   string         `json:"name"`
	Fields map[string]any `json:"fields,omitempty"`
}

// next returns the configuration after the step.
func (s *step) next(c config) config {
	c = c.clone()
	if s.Resources != nil {
		c = config{ConfigMaps: c.ConfigMaps, Secrets: c.Secrets}
		c.Resources = map[string]map[string]any{}
		for at, body := range s.Resources {
			c.Resources[at] = maps.Clone(body)
		}
	}
	if c.Resources == nil {
		c.Resources = map[string]map[string]any{}
	}
	for at, args := range s.Set {
		if c.Resources[at] == nil {
			c.Resources[at] = map[string]any{}
		}
		for name, v := range args {
			if v == nil {
				delete(c.Resources[at], name)
				continue
			}
			c.Resources[at][name] = v
		}
	}
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	for path, text := range s.Files {
		if c.Files[path] = text; text == "" {
			delete(c.Files, path)
		}
	}
	if s.Inputs != nil {
		c.Inputs = s.Inputs
	}
	if s.ClearLifecycle || c.Lifecycle == nil {
		c.Lifecycle = map[string]map[string]any{}
	}
	maps.Copy(c.Lifecycle, s.Lifecycle)
	if c.Repeat == nil {
		c.Repeat = map[string]any{}
	}
	maps.Copy(c.Repeat, s.Repeat)
	for _, at := range slices.Concat(s.Remove, s.Forget) {
		delete(c.Resources, at)
		delete(c.Lifecycle, at)
		delete(c.Repeat, at)
	}
	c.Forgotten = append(c.Forgotten, s.Forget...)
	if s.ConfigMaps != nil {
		c.ConfigMaps = s.ConfigMaps
	}
	if s.Secrets != nil {
		c.Secrets = s.Secrets
	}
	return c
}

// readStories reads the hand-written stories.
func readStories(dir string) ([]*story, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no stories in %s", dir)
	}
	var out []*story
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for i, doc := range strings.Split(string(text), "\n---\n") {
			data, err := yaml.YAMLToJSONStrict([]byte(doc))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			st := &story{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
			if i > 0 {
				st.name += fmt.Sprintf("-%d", i+1)
			}
			d := json.NewDecoder(strings.NewReader(string(data)))
			d.UseNumber()
			d.DisallowUnknownFields()
			if err := d.Decode(st); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if st.What == "" || len(st.Steps) == 0 {
				return nil, fmt.Errorf("%s: a story says what it is about, and has steps", st.name)
			}
			out = append(out, st)
		}
	}
	return out, nil
}
