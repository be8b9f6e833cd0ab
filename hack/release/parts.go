package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The types of an SPDX document, version 2.3: https://spdx.github.io/spdx-spec/v2.3/
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string          `json:"SPDXID"`
		Name             string          `json:"name"`
		VersionInfo      string          `json:"versionInfo"`
		DownloadLocation string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		LicenseConcluded string          `json:"licenseConcluded"`
		LicenseDeclared  string          `json:"licenseDeclared"`
		CopyrightText    string          `json:"copyrightText"`
		PackageFileName  string          `json:"packageFileName,omitempty"`
		Checksums        []spdxChecksum  `json:"checksums,omitempty"`
		Comment          string          `json:"comment,omitempty"`
		ExternalRefs     []spdxReference `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// noAssertion is how SPDX says that a document makes no statement.
const noAssertion = "NOASSERTION"

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// parts writes the SPDX document of a target: the Go modules in its program, as the Go linker recorded them.
func (r *release) parts(t target) error {
	info, err := buildinfo.ReadFile(r.binary(t))
	if err != nil {
		return err
	}
	archive := r.archiveName(t)
	sum, err := checksum(filepath.Join(r.out, archive))
	if err != nil {
		return err
	}
	main := goPackage(info.Main.Path, r.version, "")
	main.SPDXID, main.Name = "SPDXRef-"+t.program, t.program
	main.PackageFileName, main.Checksums = archive, []spdxChecksum{{"SHA256", sum}}
	main.LicenseConcluded, main.LicenseDeclared = "AGPL-3.0-only", "AGPL-3.0-only"
	document := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: archive,
		DocumentNamespace: homepage + "/releases/download/" + r.version + "/" + archive + ".spdx.json/" + sum,
		CreationInfo:      spdxCreation{r.time.Format(time.RFC3339), []string{"Organization: Hykube", "Tool: hykube-release"}},
		Packages:          []spdxPackage{main},
		Relationships:     []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", main.SPDXID}},
	}
	modules := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	for _, m := range modules {
		if m.Replace != nil && m.Replace.Version == "" { // a module of this repository
			m = &debug.Module{Path: m.Path, Version: r.version}
		}
		m = cmp.Or(m.Replace, m)
		p := goPackage(m.Path, m.Version, m.Sum)
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, spdxRelationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, archive+".spdx.json"), append(text, '\n'), 0o644)
}

// goPackage describes a Go module. sum is its checksum in the form of go.sum.
func goPackage(path, version, sum string) spdxPackage {
	p := spdxPackage{
		SPDXID: "SPDXRef-" + notInID.ReplaceAllString(path+"-"+version, "-"), Name: path, VersionInfo: version, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion,
		ExternalRefs: []spdxReference{{"PACKAGE-MANAGER", "purl", fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))}},
	}
	if sum != "" {
		p.Comment = "go.sum has the checksum " + sum
	}
	return p
}
