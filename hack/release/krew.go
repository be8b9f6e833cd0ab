package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// The types of a manifest of krew: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type (
	krewPlugin struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   krewMeta `json:"metadata"`
		Spec       krewSpec `json:"spec"`
	}
	krewMeta struct {
		Name string `json:"name"`
	}
	krewSpec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	}
	krewPlatform struct {
		Selector krewSelector `json:"selector"`
		URI      string       `json:"uri"`
		SHA256   string       `json:"sha256"`
		Bin      string       `json:"bin"`
		Files    []krewFile   `json:"files"`
	}
	krewSelector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	krewFile struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
)

const homepage = "https://github.com/hykube/hykube"

// krew writes the manifest with which krew installs the plugin, hykube.yaml.
func (r *release) krew() error {
	p := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMeta{"hykube"}, Spec: krewSpec{
		Version: r.version, Homepage: homepage,
		ShortDescription: "Plan and apply infrastructure of Terraform providers",
		Description: `Adds the verbs of Hykube that kubectl lacks: plan, show, approve, apply, import,
graph, state and more. Hykube serves the resource types of Terraform providers as
a Kubernetes API, plans each change and applies approved plans.
`,
		Caveats: `The plugin needs a Hykube server: see the documentation at
https://github.com/hykube/hykube/blob/main/docs/install.md
`,
	}}
	for _, t := range r.targets {
		if t.program != plugin {
			continue
		}
		archive := r.archiveName(t)
		sum, err := checksum(filepath.Join(r.out, archive))
		if err != nil {
			return err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": t.system, "arch": t.arch}},
			URI:      fmt.Sprintf("%s/releases/download/%s/%s", homepage, r.version, archive), SHA256: sum, Bin: t.file(),
			Files: []krewFile{{t.file(), "."}, {"LICENSE", "."}},
		})
	}
	if len(p.Spec.Platforms) == 0 {
		return nil
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "hykube.yaml"), text, 0o644)
}
