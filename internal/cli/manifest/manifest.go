// Package manifest reads objects from files, directories, URLs and kustomizations, with the positions of their fields.
// It writes nothing to the server; package record does.
package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

// Manifest is one object of a file.
type Manifest struct {
	// Version is the required version of the existing object when it is recorded. Empty means that the object must not
	// exist; nil permits any version.
	Version *string
	Object  *unstructured.Unstructured
	File    string
	Line    int
	// doc is the document with the object. item is the index if the document is a list, else -1.
	doc  document
	item int
	// Pruned is true for an object on the server that is no longer in the files.
	Pruned bool
}

// Where returns "file.yaml:12", the directory of a packed module, or the applyset for a pruned object.
func (m Manifest) Where() string {
	if m.Pruned {
		return m.File
	}
	return Place(m.File, m.Line, 0)
}

// Read reads files, directories, URLs, "-" and kustomizations. It reports every invalid document, and then returns
// no objects, because a partial set could be harmful.
func Read(ctx context.Context, s *session.Session, f *Flags) ([]Manifest, error) {
	out, err := ReadValid(ctx, s, f)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReadValid returns the valid documents of files, and an error with every invalid one.
func ReadValid(ctx context.Context, s *session.Session, f *Flags) ([]Manifest, error) {
	if f.Kustomize != "" && (len(f.Filenames) > 0 || f.Recursive) {
		return nil, errors.New("only one of -f or -k can be specified")
	}
	var out []Manifest
	var bad []error
	read := 0
	var directories []*moduleFiles
	parse := func(file string, data []byte, err error) {
		if err == nil {
			var ms []Manifest
			ms, err = Parse(file, data)
			out = append(out, ms...)
		}
		if err != nil {
			bad = append(bad, err)
		}
	}
	for _, p := range f.Filenames {
		files, err := expand(p, f.Recursive)
		if err != nil {
			bad = append(bad, err)
		}
		files, directory := moduleDirectory(p, files)
		if directory != nil {
			directories = append(directories, directory)
			read++
		}
		read += len(files)
		for _, file := range files {
			if directory == nil && terraformFile(file) {
				bad = append(bad, notAlone(file))
				continue
			}
			data, err := readManifest(ctx, s, file)
			parse(file, data, err)
		}
	}
	if f.Kustomize != "" {
		data, err := kustomize(f.Kustomize)
		parse(f.Kustomize, data, err)
	}
	out, err := packModules(ctx, s, directories, &f.Modules, out)
	if err != nil {
		bad = append(bad, err)
	}
	if len(bad) == 0 {
		bad = duplicates(out)
	}
	if len(bad) == 0 && len(out) == 0 {
		bad = append(bad, &NoObjectsError{paths: cmp.Or(strings.Join(f.Filenames, ", "), f.Kustomize), Files: read})
	}
	return out, errors.Join(bad...)
}

// NoObjectsError is the error for files without objects.
type NoObjectsError struct {
	paths string
	// Files is the number of files that were read.
	Files int
}

func (e *NoObjectsError) Error() string {
	return fmt.Sprintf("no objects in %s: files end in .yaml, .yml or .json; -R also looks into sub-directories",
		e.paths)
}

// expand returns the files of a path in a stable order, as kubectl does.
func expand(path string, recursive bool) ([]string, error) {
	if path == "-" || strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return []string{path}, nil
	}
	paths := []string{path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if paths, _ = filepath.Glob(path); len(paths) == 0 {
			return nil, fmt.Errorf("the path %q does not exist", path)
		}
	}
	var out []string
	for _, p := range paths {
		visitors, err := resource.ExpandPathsToFileVisitors(nil, p, recursive, resource.FileExtensions, nil)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", p, err)
		}
		for _, v := range visitors {
			out = append(out, v.(*resource.FileVisitor).Path)
		}
	}
	return out, nil
}

// kustomize returns the objects of a kustomization, as "kubectl kustomize" prints them.
func kustomize(dir string) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as in kubectl apply -k
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", dir, err)
	}
	return objects.AsYaml()
}

// MaxManifest is the maximum size of one file in bytes. The server has a much lower limit for an object.
const MaxManifest = 256 << 20

func readManifest(ctx context.Context, s *session.Session, path string) ([]byte, error) {
	var r io.Reader
	switch {
	case path == "-":
		r = s.Input
	case strings.HasPrefix(path, "http://"), strings.HasPrefix(path, "https://"):
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		resp, err := http.DefaultClient.Do(req) // use no credentials: this is a public file, not the API server
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("read %s: server answered %s", path, resp.Status)
		}
		r = resp.Body
	default:
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	if len(data) > MaxManifest {
		return nil, fmt.Errorf("read %q: larger than %d MiB", path, MaxManifest>>20)
	}
	return data, nil
}

// Parse splits a file into documents and decodes each. Errors have the file and line.
func Parse(file string, data []byte) ([]Manifest, error) {
	name := file
	if file == "-" {
		name = "standard input"
	}
	var out []Manifest
	var bad []error
	for _, doc := range documents(data) {
		var raw any
		js, err := yaml.YAMLToJSONStrict(doc.text)
		if err == nil {
			err = json.Unmarshal(js, &raw)
		}
		if err != nil {
			bad = append(bad, yamlError(name, doc.line, err))
			continue
		}
		if raw == nil {
			continue // a document with only comments
		}
		m, ok := raw.(map[string]any)
		if !ok {
			bad = append(bad, &PositionError{name, doc.line, 0,
				"the document is not a Kubernetes object: it needs apiVersion, kind and metadata"})
			continue
		}
		objects, list := []any{m}, false
		if items, ok := m["items"].([]any); ok && strings.HasSuffix(fmt.Sprint(m["kind"]), "List") {
			objects, list = items, true
		}
		for i, o := range objects {
			om, ok := o.(map[string]any)
			if !ok {
				bad = append(bad, &PositionError{name, doc.line, 0, "an item of the list is not a Kubernetes object"})
				continue
			}
			u := &unstructured.Unstructured{Object: om}
			item := Manifest{Object: u, File: name, Line: doc.line, doc: doc, item: -1}
			if list {
				item.item = i
			}
			if err := checkManifest(item); err != nil {
				bad = append(bad, err)
				continue
			}
			out = append(out, item)
		}
	}
	return out, errors.Join(bad...)
}

func checkManifest(m Manifest) error {
	var missing []string
	var bad []error
	check := func(field string, v any, required bool) {
		text, isString := v.(string)
		switch {
		case required && (v == nil || isString && text == ""):
			missing = append(missing, field)
		case v != nil && !isString:
			bad = append(bad, m.notString(field, v))
		}
	}
	for _, f := range []string{"apiVersion", "kind"} {
		check(f, m.Object.Object[f], true)
	}
	meta, _ := m.Object.Object["metadata"].(map[string]any)
	check("metadata.name", meta["name"], true)
	check("metadata.namespace", meta["namespace"], false)
	for _, f := range []string{"labels", "annotations"} {
		texts, _ := meta[f].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(texts)) {
			check(fmt.Sprintf("metadata.%s[%q]", f, k), texts[k], false)
		}
	}
	// A plan of the files names each resource, which fails for an invalid name.
	if _, ok := v1alpha1.ProviderOfGroup(m.Object.GroupVersionKind().Group); ok && len(missing)+len(bad) == 0 {
		for _, why := range validation.NameIsDNSSubdomain(m.Object.GetName(), false) {
			bad = append(bad, m.errorAt("metadata.name", "%s %q: metadata.name: Invalid value: %s", m.Object.GetKind(),
				m.Object.GetName(), why))
		}
	}
	if m.Object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Resource") {
		bad = append(bad, m.errorAt("kind",
			"Resource %q: Resources are a read-only table of the objects of all providers' kinds; write the object itself", m.Object.GetName()))
	}
	if len(missing) > 0 {
		bad = append([]error{&PositionError{m.File, m.Line, 0, strings.Join(missing, " and ") + " must be set"}},
			bad...)
	}
	return errors.Join(bad...)
}

// notString returns the error for a value that must be a string but that YAML parses as another type, such as y, on and
// no.
func (m Manifest) notString(field string, v any) error {
	what := "an object"
	switch v.(type) {
	case bool:
		what = "a boolean"
	case int64, float64:
		what = "a number"
	case []any:
		what = "a list"
	}
	if text := m.written(field); text != "" {
		return m.errorAt(field, "%s: %s is %s in YAML: quote it, as in %q", field, text, what, text)
	}
	return m.errorAt(field, "%s must be a string, not %s", field, what)
}

type document struct {
	text []byte
	line int // first line that is neither empty nor a comment
}

// documents splits a YAML stream at its "---" lines.
func documents(data []byte) []document {
	var out []document
	var cur document
	line, started := 0, false
	flush := func() {
		if started {
			out = append(out, cur)
		}
		cur, started = document{}, false
	}
	for l := range bytes.SplitAfterSeq(data, []byte("\n")) {
		line++
		t := bytes.TrimRight(l, "\r\n \t")
		if bytes.Equal(t, []byte("---")) || bytes.HasPrefix(l, []byte("--- ")) {
			flush()
			continue
		}
		if !started {
			if len(t) == 0 || bytes.HasPrefix(bytes.TrimLeft(t, " \t"), []byte("#")) {
				continue
			}
			started, cur.line = true, line
		}
		cur.text = append(cur.text, l...)
	}
	flush()
	return out
}

var yamlLine = regexp.MustCompile(`\bline (\d+)(?:, column \d+)?:? ?`)

// yamlError converts a line number in a document to one in the file: "first.yaml:14: did not find expected key". The
// parser's errors have the line only in their text.
func yamlError(file string, first int, err error) error {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  "} {
		text = strings.TrimPrefix(text, prefix)
	}
	line := first
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		n, _ := strconv.Atoi(text[m[2]:m[3]])
		line = first + n - 1
		text = text[:m[0]] + text[m[1]:]
	}
	return &PositionError{file, line, 0, "malformed YAML: " + strings.TrimSpace(text)}
}

// duplicates reports objects that occur twice in the files. Otherwise the second would silently replace the first.
func duplicates(ms []Manifest) []error {
	seen := map[string]Manifest{}
	var bad []error
	for _, m := range ms {
		key := m.Object.GroupVersionKind().GroupKind().String() + "\x00" + m.Object.GetNamespace() + "\x00" +
			m.Object.GetName()
		if first, ok := seen[key]; ok {
			bad = append(bad, &PositionError{m.File, m.Line, 0,
				fmt.Sprintf("%s %q is already in %s", m.Object.GetKind(), m.Object.GetName(), first.Where())})
			continue
		}
		seen[key] = m
	}
	return bad
}
