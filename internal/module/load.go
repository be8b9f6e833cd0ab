package module

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// Limits on the tree of modules.
const (
	maxModules     = 2_000
	maxModuleDepth = 32
	// maxProblems is the number of problems that a report lists.
	maxProblems = 500
)

// Tree is a loaded module with the modules that it calls. It is immutable.
type Tree struct {
	Root *Config

	files  Files
	digest [sha256.Size]byte
	count  int
	// functions are those that expressions may call besides the built-in ones.
	functions lang.Functions
	// budget bounds the static checks of the expressions while the tree is loaded; nil afterwards.
	budget *lang.Budget
}

// Load reads the files of a module whose root is in the directory ".". The report lists all problems at once, each
// with its position as the attribute, such as "main.tf:3:5". The tree is nil if one of them is an error. functions
// are those of the installed providers.
func Load(files Files, functions lang.Functions) (*Tree, diag.Diagnostics) {
	return LoadWithin(nil, files, functions)
}

// LoadWithin is Load with a budget that bounds the static checks of all expressions together.
func LoadWithin(budget *lang.Budget, files Files, functions lang.Functions) (*Tree, diag.Diagnostics) {
	if diags := files.check(); diag.HasErrors(diags) {
		return nil, diags
	}
	tree := &Tree{files: files, digest: digestOf(files), functions: functionsOf(files, functions), budget: budget}
	defer func() { tree.budget = nil }()
	l := &loader{files: files, tree: tree, parsed: map[string][]parsedFile{}}
	l.readManifest()
	l.tree.Root = l.module(nil, ".", nil)
	if !diag.HasErrors(l.diags) {
		l.diags = append(l.diags, l.tree.compile(l.tree.Root)...)
		l.diags = append(l.diags, l.tree.cycles()...)
	}
	report := sorted(l.diags)
	if diag.HasErrors(report) {
		return nil, report
	}
	return l.tree, report
}

// sorted returns diagnostics in the order of their positions, without duplicates.
func sorted(diags diag.Diagnostics) diag.Diagnostics {
	diags = slices.Clone(diags)
	slices.SortStableFunc(diags, func(a, b v1alpha1.Diagnostic) int { return comparePlaces(a.Attribute, b.Attribute) })
	seen := map[v1alpha1.Diagnostic]bool{}
	diags = slices.DeleteFunc(diags, func(d v1alpha1.Diagnostic) bool {
		twice := seen[d]
		seen[d] = true
		return twice
	})
	if more := len(diags) - maxProblems; more > 0 {
		rest := diag.Errorf("", "Too many problems", "There are %d more problems. Correct these first.", more)
		diags = append(diags[:maxProblems:maxProblems], rest)
	}
	return diags
}

// comparePlaces orders positions by file, line and column.
func comparePlaces(a, b string) int {
	fileA, lineA, columnA := splitPlace(a)
	fileB, lineB, columnB := splitPlace(b)
	return cmp.Or(strings.Compare(fileA, fileB), lineA-lineB, columnA-columnB)
}

func splitPlace(s string) (file string, line, column int) {
	parts := strings.Split(s, ":")
	if len(parts) < 3 {
		return s, 0, 0
	}
	_, err := fmt.Sscan(parts[len(parts)-2]+" "+parts[len(parts)-1], &line, &column)
	if err != nil {
		return s, 0, 0
	}
	return strings.Join(parts[:len(parts)-2], ":"), line, column
}

type loader struct {
	files Files
	tree  *Tree
	// installed maps the calls of modules to the directories where terraform init has put these modules.
	installed map[string]string
	// parsed has the files of each directory.
	parsed map[string][]parsedFile
	diags  diag.Diagnostics
}

type parsedFile struct {
	body     hcl.Body
	override bool
}

// manifestFile is where terraform init lists the modules that it has installed.
const manifestFile = ".terraform/modules/modules.json"

func (l *loader) readManifest() {
	content, ok := l.files[manifestFile]
	if !ok {
		return
	}
	var manifest struct {
		Modules []struct{ Key, Dir string }
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		l.diags = append(l.diags, diag.Errorf(manifestFile, "Invalid module manifest",
			"The file is not what terraform init writes: %v. Run terraform init again.", err))
		return
	}
	l.installed = make(map[string]string, len(manifest.Modules))
	for _, m := range manifest.Modules {
		l.installed[m.Key] = path.Clean(strings.ReplaceAll(m.Dir, `\`, "/"))
	}
}

// files parses the files of a directory, once.
func (l *loader) parse(dir string) []parsedFile {
	if known, ok := l.parsed[dir]; ok {
		return known
	}
	out := []parsedFile{}
	for _, name := range l.files.in(dir) {
		body, diags := parseFile(name, l.files[name])
		l.diags = append(l.diags, diags...)
		if body != nil {
			out = append(out, parsedFile{body, kindOf(name) == override})
		}
	}
	l.parsed[dir] = out
	return out
}

// module loads the module in a directory, and those that it calls. above are the directories of the callers.
func (l *loader) module(at []string, dir string, above []string) *Config {
	l.tree.count++
	d := &decoder{config: newConfig(at, dir)}
	d.converter = converter{files: l.files, positions: d.config.positions}
	for _, file := range l.parse(dir) {
		d.override = file.override
		d.file(file.body)
	}
	l.diags = append(l.diags, d.diags...)
	for _, name := range sortedKeys(d.config.Calls) {
		l.child(d.config, d.config.Calls[name], append(slices.Clone(above), dir))
	}
	return d.config
}

func newConfig(at []string, dir string) *Config {
	return &Config{
		Path: at, Dir: dir, positions: Positions{},
		Variables: map[string]*Variable{}, Locals: map[string]*Expr{}, Outputs: map[string]*Output{},
		Calls: map[string]*Call{}, Children: map[string]*Config{}, Blocks: map[BlockID]*Block{},
		Checks:    map[string]*Check{},
		Providers: map[ProviderID]*Provider{}, Required: map[string]*RequiredProvider{},
	}
}

// child loads the module of a call.
func (l *loader) child(parent *Config, call *Call, above []string) {
	fail := func(summary, format string, args ...any) {
		l.diags = append(l.diags, diag.Errorf(place(call.Range.Filename, call.Range.Start.Line,
			call.Range.Start.Column), summary, format, args...))
	}
	if call.Source == "" {
		return // the decoder has reported it
	}
	dir, ok := l.directory(parent, call, fail)
	if !ok {
		return
	}
	at := append(slices.Clone(parent.Path), call.Name)
	switch {
	case slices.Contains(above, dir):
		fail("Module calls itself", "The module %q has its source in %q, which is the directory of a module that calls it.", strings.Join(at, "."), dir)
	case len(at) > maxModuleDepth:
		fail("Too many nested modules", "Modules may call each other to a depth of %d.", maxModuleDepth)
	case l.tree.count >= maxModules:
		fail("Too many modules", "A module may call %d modules in all, those of its modules included.", maxModules)
	default:
		parent.Children[call.Name] = l.module(at, dir, above)
	}
}

// directory returns the directory of a called module.
func (l *loader) directory(parent *Config, call *Call, fail func(summary, format string, args ...any)) (string, bool) {
	if !isLocal(call.Source) {
		key := strings.Join(append(slices.Clone(parent.Path), call.Name), ".")
		dir, ok := l.installed[key]
		switch {
		case !ok:
			fail("Module not installed", "The source %q is not a directory of this module, and %s does not list it. Run terraform init, and include .terraform/modules.", call.Source, manifestFile)
			return "", false
		case badPath(dir) != "":
			fail("Module not installed", "%s has the module %q in %q, which is not within the module's directory.",
				manifestFile, key, dir)
			return "", false
		case len(l.files.in(dir)) == 0:
			fail("Module not installed", "The directory %q of the module %q has no configuration files. Run terraform init, and include .terraform/modules.", dir, key)
			return "", false
		}
		return dir, true
	}
	dir, ok := inside(parent.Dir, call.Source)
	switch {
	case !ok:
		fail("Module outside of the directory",
			"The source %q leads out of the module's directory, so its files are not here. Use the directory above as the root.", call.Source)
	case len(l.files.in(dir)) == 0:
		fail("Unreadable module directory", "The directory %q of the source %q has no configuration files.", dir,
			call.Source)
	default:
		return dir, true
	}
	return "", false
}

func isLocal(source string) bool {
	return strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") || source == "." || source == ".."
}

// sortedKeys returns the keys of a map with names, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// SameFiles reports whether the tree was loaded from equal files.
func (t *Tree) SameFiles(files Files) bool { return digestOf(files) == t.digest }
