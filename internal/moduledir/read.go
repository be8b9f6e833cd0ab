package moduledir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/module"
)

// Limits on a directory. MaxBytes is the size of the files of a Module together, because a ConfigMap carries 1 MiB.
// MaxFiles is the number of these files.
const (
	MaxBytes = 1<<20 - 64<<10 // the keys and the metadata need space, too
	MaxFiles = 1000
	// maxEntries is the number of files and directories that are looked at, and maxRead the size of the files that are
	// read.
	maxEntries = 100_000
	maxRead    = 32 << 20
)

const (
	terraformDir     = ".terraform"
	installedModules = terraformDir + "/modules"
	manifestFile     = installedModules + "/modules.json"
)

// LockFile is the name of Terraform's dependency lock file.
const LockFile = terraformDir + ".lock.hcl"

// Directory is a directory with the files of a root module.
type Directory struct {
	// Path is the path as the caller named it.
	Path string
	// Files are those that the module consists of, and those that it may read.
	Files module.Files
	// Root is the configuration of the root module.
	Root *module.Config
	// Lock is the content of Terraform's dependency lock file; nil without one.
	Lock []byte
	// Warnings are those of the loader, and name the files that are left out although the module may read them.
	Warnings diag.Diagnostics

	// variables are the names of the files with values that Terraform reads by itself, in ascending precedence.
	variables []variableFile
}

// variableFile is a file with values of variables.
type variableFile struct {
	name    string
	content []byte
}

// Has reports whether a path is a directory with configuration files of Terraform or OpenTofu.
func Has(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return !e.IsDir() && module.IsConfiguration(e.Name()) })
}

// Read reads a directory. objects reports whether a file has objects, which are no part of the module; its argument is
// the path within the directory, with slashes. The error has all problems of the files, each with its position.
func Read(dir string, objects func(name string) bool) (*Directory, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the directory %q: %w", dir, err)
	}
	defer root.Close()
	r := &reader{root: root, dir: &Directory{Path: dir, Files: module.Files{}}, objects: objects}
	if err := fs.WalkDir(root.FS(), ".", r.visit); err != nil {
		return nil, fmt.Errorf("read the directory %q: %w", dir, err)
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r.dir, r.check()
}

// reader reads a directory.
type reader struct {
	root    *os.Root
	dir     *Directory
	objects func(string) bool
	entries int
	read    int64
	// others are the files that expressions of the module may read. keys are those that look like private keys.
	others, keys []string
	// links are symbolic links, and large are files that no Module can have.
	links, large []string
}

func (r *reader) visit(name string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if r.entries++; r.entries > maxEntries {
		return fmt.Errorf("it has more than %d files. Move the Terraform files to a directory of their own", maxEntries)
	}
	if e.IsDir() {
		if hidden(name) && name != terraformDir && name != installedModules {
			return fs.SkipDir
		}
		if path.Dir(name) == terraformDir && name != installedModules {
			return fs.SkipDir
		}
		return nil
	}
	return r.file(name, e)
}

// hidden reports whether the last part of a path begins with a dot.
func hidden(name string) bool {
	return name != "." && strings.HasPrefix(path.Base(name), ".")
}

// file sorts a file by its name.
func (r *reader) file(name string, e fs.DirEntry) (err error) {
	top := path.Dir(name) == "."
	switch kind := kindOf(name); {
	case name == LockFile:
		r.dir.Lock, err = r.content(name)
		return err
	case path.Dir(name) == terraformDir, kind == stateFile, hidden(name), r.objects(name):
		return nil
	case e.Type()&fs.ModeSymlink != 0:
		r.links = append(r.links, name)
		return nil
	case !e.Type().IsRegular():
		return nil
	case kind == valuesFile:
		if !top || !automatic(name) {
			return nil
		}
		content, err := r.content(name)
		r.dir.variables = append(r.dir.variables, variableFile{name, content})
		return err
	case module.IsConfiguration(name), name == manifestFile:
		r.dir.Files[name], err = r.content(name)
		return err
	case kind == keyFile:
		r.keys = append(r.keys, name)
		return nil
	default:
		r.others = append(r.others, name)
		return nil
	}
}

// content reads a file, within the limit on all of them.
func (r *reader) content(name string) ([]byte, error) {
	f, err := r.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRead-r.read+1))
	if r.read += int64(len(content)); r.read > maxRead {
		return nil, fmt.Errorf("its Terraform files have more than %d MiB. Move files that the module does not need to another directory", maxRead>>20)
	}
	return content, err
}

// kinds of files that are never packed.
type fileKind int

const (
	otherFile fileKind = iota
	stateFile
	valuesFile
	keyFile
)

// kindOf returns the kind of a file by its name. States and plans of Terraform, variable files and keys have secrets.
func kindOf(name string) fileKind {
	base := path.Base(name)
	has := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(base, s) })
	}
	switch {
	case has(".tfstate", ".tfplan", "~") || strings.Contains(base, ".tfstate.") || base == "tfplan" ||
		base == "crash.log":
		return stateFile
	case has(".tfvars", ".tfvars.json"):
		return valuesFile
	case has(".pem", ".key", ".p12", ".pfx", ".jks") || strings.HasPrefix(base, "id_") && path.Ext(base) == "":
		return keyFile
	}
	return otherFile
}

// automatic reports whether Terraform reads a file with values by itself.
func automatic(name string) bool {
	base := strings.TrimSuffix(name, ".json")
	return base == "terraform.tfvars" || strings.HasSuffix(base, ".auto.tfvars")
}

// load loads the module, and keeps the files of the modules that it calls, with those that expressions may read.
func (r *reader) load() error {
	reads, err := r.addOthers()
	if err != nil {
		return err
	}
	tree, diags := module.Load(r.dir.Files, nil)
	if tree != nil {
		diags = append(diags, tree.Unsupported()...)
	}
	if diag.HasErrors(diags) {
		// What is left out may be the reason.
		return errors.Join(problems(r.dir.Path, diags), r.refuseLinks(r.links), r.refuseLarge(r.large),
			problems(r.dir.Path, leftOut(r.keys)))
	}
	r.dir.Warnings, r.dir.Root = diags, tree.Root
	dirs, installed := map[string]bool{}, map[string]bool{}
	called(tree.Root, dirs)
	for dir := range dirs {
		if strings.HasPrefix(dir, installedModules) {
			installed[packageOf(dir)] = true
		}
	}
	needed := func(name string) bool {
		switch {
		case module.IsConfiguration(name):
			return dirs[path.Dir(name)]
		case name == manifestFile:
			return len(installed) > 0
		}
		return reads && (!strings.HasPrefix(name, installedModules) || installed[packageOf(name)])
	}
	maps.DeleteFunc(r.dir.Files, func(name string, _ []byte) bool { return !needed(name) })
	for _, d := range leftOut(filter(r.keys, needed)) {
		d.Severity = v1alpha1.SeverityWarning
		r.dir.Warnings = append(r.dir.Warnings, d)
	}
	return errors.Join(r.refuseLinks(filter(r.links, needed)), r.refuseLarge(filter(r.large, needed)))
}

func filter(names []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !keep(name) })
}

// called collects the directories of a module and of those that it calls.
func called(c *module.Config, into map[string]bool) {
	into[c.Dir] = true
	for _, child := range c.Children {
		called(child, into)
	}
}

// addOthers adds the files that are no configuration if an expression may read one, and reports whether one may.
func (r *reader) addOthers() (reads bool, err error) {
	for _, content := range r.dir.Files {
		reads = reads || module.ReadsFiles(content)
	}
	if !reads {
		return false, nil
	}
	for _, name := range r.others {
		info, err := r.root.Stat(filepath.FromSlash(name))
		if err != nil {
			return false, fmt.Errorf("read the directory %q: %w", r.dir.Path, err)
		}
		if info.Size() > MaxBytes {
			r.large = append(r.large, name)
			continue
		}
		if r.dir.Files[name], err = r.content(name); err != nil {
			return false, fmt.Errorf("read the directory %q: %w", r.dir.Path, err)
		}
	}
	return true, nil
}

// refuseLinks returns an error for symbolic links.
func (r *reader) refuseLinks(links []string) error {
	if len(links) == 0 {
		return nil
	}
	return fmt.Errorf("the directory %q has symbolic links, and a Module consists of regular files: put a copy in place of %s", r.dir.Path, listed(links))
}

// refuseLarge returns an error for files that no Module can have.
func (r *reader) refuseLarge(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the module in %q may read files, and the files of a Module together may have %d bytes. These have more: %s. Move those that it does not read to another directory",
		r.dir.Path, MaxBytes, listed(names))
}

// leftOut returns an error for each private key.
func leftOut(names []string) (out diag.Diagnostics) {
	for _, name := range names {
		out = append(out, diag.Errorf(name, "File left out",
			"The name is that of a private key, and a ConfigMap is no place for one. Give the key to the module by a variable with sensitive = true."))
	}
	return out
}

// packageOf returns the directory where terraform init has put a module with all that belongs to it.
func packageOf(name string) string {
	rest := strings.TrimPrefix(name, installedModules+"/")
	first, _, _ := strings.Cut(rest, "/")
	return installedModules + "/" + first
}

// check returns an error if the files are too many or too large for a Module.
func (r *reader) check() error {
	files := r.dir.Files
	if len(files) > MaxFiles {
		return fmt.Errorf("the module in %q has %d files, and a Module may have %d: move those that it does not read to another directory", r.dir.Path, len(files), MaxFiles)
	}
	total := 0
	for _, content := range files {
		total += len(content)
	}
	if total <= MaxBytes {
		return nil
	}
	names := keysOf(files)
	slices.SortStableFunc(names, func(a, b string) int { return len(files[b]) - len(files[a]) })
	return fmt.Errorf("the module in %q has %d bytes, and a Module may have %d. The largest files are %s. Move those that it does not read to another directory, or split the module",
		r.dir.Path, total, MaxBytes, listed(names))
}

// listed returns the first few names as text.
func listed(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// problems returns the errors of diagnostics as one error with a line for each, with the path of the file.
func problems(dir string, diags diag.Diagnostics) error {
	var out []error
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityError {
			out = append(out, errors.New(Describe(dir, d)))
		}
	}
	return errors.Join(out...)
}

// Describe returns a diagnostic about a file of a directory as one line, as in "infra/main.tf:3:5: Summary: Detail".
func Describe(dir string, d v1alpha1.Diagnostic) string {
	at := dir
	if d.Attribute != "" {
		at = filepath.Join(dir, d.Attribute)
	}
	return fmt.Sprintf("%s: %s: %s", at, d.Summary, strings.Join(strings.Fields(d.Detail), " "))
}
