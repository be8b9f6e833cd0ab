package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/moduledir"
	"github.com/hykube/hykube/internal/shell"
)

// moduleFlags holds the flags for a directory with Terraform files.
type moduleFlags struct {
	name  string
	given []moduledir.Assignment
	// values is true for a command that takes values of variables, so each required variable needs one.
	values bool
}

func (f *moduleFlags) addName(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "module", "", "Name of the Module for a directory with Terraform files (default: that of the directory)")
}

func (f *moduleFlags) addValues(fs *pflag.FlagSet) {
	f.values = true
	fs.Var(assignments{f, false}, "var", "Value of a variable of the Terraform files; repeatable")
	fs.Var(assignments{f, true}, "var-file", "File with values of variables of the Terraform files; repeatable")
}

// check returns an error for the flags if there is no directory with Terraform files.
func (f *moduleFlags) check() error {
	switch {
	case f.name != "":
		return errors.New("--module names the Module for a directory with Terraform files: name such a directory with -f DIR")
	case len(f.given) > 0:
		return errors.New("--var and --var-file give values to the variables of Terraform files: name their directory with -f DIR")
	}
	return nil
}

// repeatFlags returns the flags that name the same Module and values. It shows no value of --var, which may be a secret.
func (f *moduleFlags) repeatFlags() (text string) {
	if f.name != "" {
		text = " --module " + shell.Word(f.name)
	}
	for _, a := range f.given {
		if a.File != "" {
			text += " --var-file " + shell.Word(a.File)
		} else {
			text += " --var " + a.Name + "=..."
		}
	}
	return text
}

// assignments is the value of --var, or of --var-file. Their order counts, so both append to one list.
type assignments struct {
	of   *moduleFlags
	file bool
}

// Set implements pflag.Value.
func (a assignments) Set(text string) error {
	if a.file {
		a.of.given = append(a.of.given, moduledir.Assignment{File: text})
		return nil
	}
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return errors.New("write NAME=VALUE")
	}
	a.of.given = append(a.of.given, moduledir.Assignment{Name: name, Text: value})
	return nil
}

// String implements pflag.Value.
func (a assignments) String() string { return "" }

// Type implements pflag.Value.
func (a assignments) Type() string {
	if a.file {
		return "file"
	}
	return "name=value"
}

// moduleFiles are the files of a directory with Terraform files.
type moduleFiles struct {
	dir string
	// objects are the paths of the files with objects, within the directory.
	objects map[string]bool
}

// moduleDirectory splits the files of a directory with Terraform files. It returns those with objects, and nil for another directory.
func moduleDirectory(dir string, files []string) (objects []string, of *moduleFiles) {
	if !moduledir.Has(dir) {
		return files, nil
	}
	of = &moduleFiles{dir, map[string]bool{}}
	for _, file := range files {
		within, err := filepath.Rel(dir, file)
		if err != nil || terraformFile(file) || strings.HasPrefix(filepath.ToSlash(within), ".terraform/") {
			continue
		}
		if content, err := os.ReadFile(file); err != nil || hasObjects(content) { // the error is reported with the objects
			objects = append(objects, file)
			of.objects[filepath.ToSlash(within)] = true
		}
	}
	return objects, of
}

// hasObjects reports whether a file of YAML or JSON has objects. Others may belong to the module.
func hasObjects(content []byte) bool { return bytes.Contains(content, []byte("apiVersion")) }

// terraformFile reports whether a file is one with configuration or with values of variables.
func terraformFile(file string) bool {
	return module.IsConfiguration(file) || strings.HasSuffix(file, ".tfvars") || strings.HasSuffix(file, ".tfvars.json")
}

// notAlone returns the error for a Terraform file that is named without its directory.
func notAlone(file string) error {
	dir := filepath.Dir(file)
	return fmt.Errorf("%s is a Terraform file, and a module is a directory: write -f %s", file, dir)
}

// packModules adds the objects of the directories with Terraform files to those of the other files.
func (s *session) packModules(ctx context.Context, directories []*moduleFiles, flags *moduleFlags, ms []manifest) ([]manifest, error) {
	switch {
	case len(directories) == 0:
		return ms, flags.check()
	case len(directories) > 1:
		return ms, fmt.Errorf("%s and %s have Terraform files: name one such directory at a time, because --module and the values of variables are about one",
			directories[0].dir, directories[1].dir)
	}
	packed, err := s.packModule(ctx, directories[0], flags, ms)
	if err != nil {
		return ms, err
	}
	return packed, nil
}

// packModule adds the objects of a directory with Terraform files to those of the other files.
func (s *session) packModule(ctx context.Context, of *moduleFiles, flags *moduleFlags, ms []manifest) ([]manifest, error) {
	dir, err := moduledir.Read(of.dir, func(name string) bool { return of.objects[name] })
	if err != nil {
		return nil, err
	}
	values, err := dir.Values(os.Environ(), flags.given)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Concat(dir.Warnings, values.Warnings) {
		fmt.Fprintln(s.ErrOut, "Warning: "+moduledir.Describe(of.dir, d))
	}
	if dir.Lock != nil {
		s.warnLocked(ctx, filepath.Join(of.dir, moduledir.LockFile), dir.Lock)
	}
	at, err := s.writtenModule(of.dir, flags.name, ms)
	if err != nil {
		return nil, err
	}
	name, written := flags.name, (*unstructured.Unstructured)(nil)
	switch {
	case at >= 0:
		written, name = ms[at].object, ms[at].object.GetName()
	case name == "":
		if name, err = s.moduleName(of.dir); err != nil {
			return nil, err
		}
	}
	packed, err := dir.Pack(name, values, written)
	if err != nil {
		return nil, err
	}
	if flags.values {
		if err := dir.RequireInputs(packed.Module); err != nil {
			return nil, err
		}
	}
	for _, u := range packed.Objects() {
		if at >= 0 && u == packed.Module {
			ms[at].object = u
			continue
		}
		ms = append(ms, manifest{object: u, file: of.dir, item: -1})
	}
	return ms, nil
}

// writtenModule returns the index of the Module without a source that the files have for the directory; -1 without one. The
// directory gives it its source.
func (s *session) writtenModule(dir, name string, ms []manifest) (int, error) {
	var found []int
	for i, m := range ms {
		source, _, _ := unstructured.NestedMap(m.object.Object, "spec", "source")
		if isModule(m.object) && len(source) == 0 && (name == "" || name == m.object.GetName()) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return -1, nil
	case 1:
		return found[0], nil
	}
	return -1, fmt.Errorf("%s and %s have Modules without spec.source: choose the one for %s with --module", ms[found[0]].where(), ms[found[1]].where(), dir)
}

// moduleName returns the name of the Module for a directory, and says if it is not the directory's own.
func (s *session) moduleName(dir string) (string, error) {
	name, err := moduledir.ModuleName(dir)
	if err != nil {
		return "", err
	}
	if absolute, err := filepath.Abs(dir); err == nil && filepath.Base(absolute) != name {
		fmt.Fprintf(s.ErrOut, "The name of the directory %q is no name of a Module, so the Module is %q. --module chooses another name.\n", filepath.Base(absolute), name)
	}
	return name, nil
}

// isModule reports whether an object is a Module.
func isModule(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("Module")
}

// warnLocked warns about providers whose installed version is not that of the dependency lock file of a directory.
func (s *session) warnLocked(ctx context.Context, file string, lock []byte) {
	locks, err := parseLockFile(lock, file)
	list := &v1alpha1.ProviderList{}
	if err == nil {
		err = s.hykube.Get().Resource("providers").Do(ctx).Into(list)
	}
	if err != nil {
		fmt.Fprintf(s.ErrOut, "Warning: the versions in %s are not compared: %v\n", file, explain(err, s.server()))
		return
	}
	for _, l := range locks {
		for _, p := range withSource(list.Items, l.source) {
			if p.Status.Version != "" && p.Status.Version != l.version {
				fmt.Fprintf(s.ErrOut, "Warning: %s has version %s of %s, and the Provider %q has %s. To install the locked version: kubectl hykube provider lock %s -f %s | kubectl apply -f -\n",
					file, l.version, l.source, p.Name, p.Status.Version, p.Name, file)
			}
		}
	}
}
