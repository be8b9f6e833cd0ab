package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// config is the desired state in a neutral form, from which both sides are rendered.
type config struct {
	// Resources holds arguments by address: "sim_network.main", "data.sim_images.all", "ephemeral.sim_x.y". It uses
	// only templates that both languages have. On Terraform's side, ${configmap.NAME.KEY} and ${secret.NAME.KEY} become
	// variables.
	Resources map[string]map[string]any `json:"resources,omitempty"`
	// Repeat holds the addresses that are repeated: a number is Terraform's count, a map or a list of strings its for_each.
	Repeat map[string]any `json:"repeat,omitempty"`
	// Lifecycle holds Hykube's meta-arguments by address. Terraform's are derived from them.
	Lifecycle map[string]map[string]any `json:"lifecycle,omitempty"`
	// ConfigMaps and Secrets hold keys and values by name.
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
	Secrets    map[string]map[string]string `json:"secrets,omitempty"`
	// Forgotten holds addresses that were removed and whose infrastructure stays: a removed block, or
	// lifecycle.destroy: false.
	Forgotten []string `json:"forgotten,omitempty"`
	// Files and Inputs are those of a Module; see modules_test.go.
	Files  map[string]string `json:"files,omitempty"`
	Inputs map[string]any    `json:"inputs,omitempty"`
}

func (c config) clone() config {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // it was JSON before
	}
	var out config
	if err := decode(data, &out); err != nil {
		panic(err)
	}
	return out
}

func (c config) addresses() []string { return slices.Sorted(maps.Keys(c.Resources)) }

// address is a parsed address.
type address struct{ mode, typ, name string }

func parseAddress(s string) (address, error) {
	a := address{mode: "managed"}
	for _, mode := range []string{"data", "ephemeral", "action"} {
		if rest, ok := strings.CutPrefix(s, mode+"."); ok {
			a.mode, s = mode, rest
		}
	}
	var ok bool
	if a.typ, a.name, ok = strings.Cut(s, "."); !ok || a.typ == "" || a.name == "" || strings.Contains(a.name, ".") {
		return a, fmt.Errorf("%q is no address", s)
	}
	return a, nil
}

// provider returns the name of the provider of a type.
func (a address) provider() string {
	name, _, _ := strings.Cut(a.typ, "_")
	return name
}

// kind returns Hykube's kind for a type.
func (a address) kind() string {
	kind := strings.ReplaceAll(a.typ, "_", "-")
	if a.mode != "managed" {
		kind = a.mode + "-" + kind
	}
	return kind
}

// reference matches references to keys of ConfigMaps and Secrets.
var reference = regexp.MustCompile(`\b(configmap|secret)\.([a-z0-9-]+)\.([A-Za-z0-9_]+)`)

// terraform renders the configuration as JSON for Terraform. sources are the providers' addresses by name. endpoint is
// the address of the simulated cloud, and directory replaces the cloud for providers without one.
func (c config) terraform(sources map[string]string, endpoint, directory string) ([]byte, error) {
	required, providers := map[string]any{}, map[string]any{}
	blocks := map[string]map[string]map[string]any{}
	var imports, moves, removed []any
	for _, at := range c.addresses() {
		a, err := parseAddress(at)
		if err != nil {
			return nil, err
		}
		source, ok := sources[a.provider()]
		if !ok {
			return nil, fmt.Errorf("%s: there is no provider %q", at, a.provider())
		}
		required[a.provider()] = map[string]any{"source": source}
		providers[a.provider()] = providerConfig(a.provider(), endpoint, directory)
		body := maps.Clone(c.Resources[at])
		if body == nil {
			body = map[string]any{}
		}
		switch keys := c.Repeat[at].(type) {
		case nil:
		case []any:
			body["for_each"] = fmt.Sprintf("${toset(%s)}", text(keys))
		case map[string]any:
			body["for_each"] = keys
		default:
			body["count"] = keys
		}
		extra, err := terraformLifecycle(c.Lifecycle[at])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if id, ok := extra["import"]; ok {
			block := map[string]any{"to": at}
			maps.Copy(block, id.(map[string]any))
			imports = append(imports, block)
			delete(extra, "import")
		}
		if from, ok := extra["moved"]; ok {
			moves = append(moves, map[string]any{"from": from, "to": at})
			delete(extra, "moved")
		}
		maps.Copy(body, extra)
		keyword := map[string]string{"managed": "resource", "data": "data", "ephemeral": "ephemeral"}[a.mode]
		if keyword == "" {
			return nil, fmt.Errorf("%s: this Terraform has no %s", at, a.mode)
		}
		if blocks[keyword] == nil {
			blocks[keyword] = map[string]map[string]any{}
		}
		if blocks[keyword][a.typ] == nil {
			blocks[keyword][a.typ] = map[string]any{}
		}
		blocks[keyword][a.typ][a.name] = body
	}
	for _, at := range c.Forgotten {
		a, err := parseAddress(at)
		if err != nil {
			return nil, err
		}
		required[a.provider()] = map[string]any{"source": sources[a.provider()]}
		providers[a.provider()] = providerConfig(a.provider(), endpoint, directory)
		removed = append(removed, map[string]any{"from": at, "lifecycle": map[string]any{"destroy": false}})
	}
	// Terraform needs a provider that nothing uses any more to destroy the provider's resources.
	for name, source := range sources {
		if required[name] == nil {
			required[name], providers[name] = map[string]any{"source": source}, providerConfig(name, endpoint, directory)
		}
	}
	out := map[string]any{"terraform": map[string]any{"required_providers": required}, "provider": providers}
	for keyword, types := range blocks {
		out[keyword] = types
	}
	variables := map[string]any{}
	for prefix, sets := range map[string]map[string]map[string]string{"configmap": c.ConfigMaps, "secret": c.Secrets} {
		for name, keys := range sets {
			for key, value := range keys {
				v := map[string]any{"type": "string", "default": value}
				if prefix == "secret" {
					v["sensitive"] = true
				}
				variables[variable(prefix, name, key)] = v
			}
		}
	}
	for keyword, list := range map[string][]any{"import": imports, "moved": moves, "removed": removed} {
		if len(list) > 0 {
			out[keyword] = list
		}
	}
	if len(variables) > 0 {
		out["variable"] = variables
	}
	out = mapStrings(out, func(s string) string {
		if !strings.Contains(s, "${") && !strings.Contains(s, "%{") {
			return s
		}
		return reference.ReplaceAllStringFunc(s, func(ref string) string {
			m := reference.FindStringSubmatch(ref)
			return "var." + variable(m[1], m[2], m[3])
		})
	}).(map[string]any)
	return json.MarshalIndent(out, "", "  ")
}

// providerConfig returns the configuration of a provider on one side: the address of its cloud.
func providerConfig(name, endpoint, directory string) map[string]any {
	switch name {
	case "sim":
		return map[string]any{"endpoint": endpoint}
	case "conform5", "conform6", "shape5", "shape6":
		return map[string]any{"directory": directory}
	}
	return map[string]any{}
}

func variable(kind, name, key string) string {
	return kind + "_" + strings.ReplaceAll(name, "-", "_") + "_" + key
}

// terraformLifecycle converts Hykube's meta-arguments to Terraform's. In Terraform, "import" and "moved" are blocks
// outside of the resource.
func terraformLifecycle(in map[string]any) (map[string]any, error) {
	out, lifecycle := map[string]any{}, map[string]any{}
	for key, v := range in {
		switch key {
		case "dependsOn":
			out["depends_on"] = v
		case "preventDestroy":
			lifecycle["prevent_destroy"] = v
		case "createBeforeDestroy":
			lifecycle["create_before_destroy"] = v
		case "replaceTriggeredBy":
			lifecycle["replace_triggered_by"] = v
		case "ignoreChanges":
			lifecycle["ignore_changes"] = v
			if list, ok := v.([]any); ok && len(list) == 1 && list[0] == "all" {
				lifecycle["ignore_changes"] = "all"
			}
		case "preconditions", "postconditions":
			list, ok := v.([]any)
			if !ok {
				return nil, fmt.Errorf("%s is no list", key)
			}
			var blocks []any
			for _, e := range list {
				condition, ok := e.(map[string]any)
				if !ok {
					return nil, fmt.Errorf("%s: %v is no condition", key, e)
				}
				blocks = append(blocks, map[string]any{"condition": condition["condition"], "error_message": condition["errorMessage"]})
			}
			lifecycle[strings.TrimSuffix(key, "s")] = blocks
		case "import":
			out["import"] = v
		case "moved":
			from, ok := v.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("moved: %v has no from", v)
			}
			out["moved"] = from["from"]
		default:
			return nil, fmt.Errorf("Terraform has no %s", key)
		}
	}
	if len(lifecycle) > 0 {
		out["lifecycle"] = lifecycle
	}
	return out, nil
}

// object renders one resource as an object of Hykube.
func (c config) object(at string) (map[string]any, error) {
	a, err := parseAddress(at)
	if err != nil {
		return nil, err
	}
	body := c.Resources[at]
	if body == nil {
		body = map[string]any{}
	}
	out := map[string]any{
		"apiVersion": a.provider() + ".hykube.io/v1", "kind": a.kind(),
		"metadata": map[string]any{"name": a.name}, "spec": body,
	}
	if l := c.Lifecycle[at]; len(l) > 0 {
		out["lifecycle"] = l
	}
	switch keys := c.Repeat[at].(type) {
	case nil:
		return out, nil
	case []any, map[string]any:
		out = map[string]any{"forEach": keys, "template": out}
	default:
		out = map[string]any{"count": keys, "template": out}
	}
	return map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "ResourceSet", "metadata": map[string]any{"name": setName(a)}, "spec": out}, nil
}

// setName is the name of the ResourceSet of an address, of which each type may have one.
func setName(a address) string { return strings.ReplaceAll(a.typ, "_", "-") + "." + a.name }

// text writes a value as JSON.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was JSON before
	}
	return string(data)
}

// mapStrings copies JSON and replaces its strings.
func mapStrings(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[f(k)] = mapStrings(e, f)
		}
		return out
	case map[string]map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = mapStrings(e, f)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mapStrings(e, f)
		}
		return out
	}
	return v
}

// decode parses JSON and keeps numbers as written.
func decode(data []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	return d.Decode(into)
}
