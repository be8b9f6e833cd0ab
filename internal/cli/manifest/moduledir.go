package manifest

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
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/lockfile"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/moduledir"
)

// moduleFlags holds the flags for a directory with Terraform files.
type moduleFlags struct {
	Name  string
	given []moduledir.Assignment
	// values is true for a command that takes values of variables, so each required variable needs one.
	values bool
}

// AddName adds the flag that names the Module of a directory.
func (f *moduleFlags) AddName(fs *pflag.FlagSet) {
	fs.StringVar(&f.Name, "module", "",
		"Name of the Module for a directory with Terraform files (default: that of the directory)")
}

func (f *moduleFlags) addValues(fs *pflag.FlagSet) {
	f.values = true
	fs.Var(assignments{f, false}, "var", "Value of a variable of the Terraform files; repeatable")
	fs.Var(assignments{f, true}, "var-file", "File with values of variables of the Terraform files; repeatable")
}

// Check returns an error for the flags if there is no directory with Terraform files.
func (f *moduleFlags) Check() error {
	switch {
	case f.Name != "":
		return errors.New("--module names the Module for a directory with Terraform files: name such a directory with -f DIR")
	case len(f.given) > 0:
		return errors.New("--var and --var-file give values to the variables of Terraform files: name their directory with -f DIR")
	}
	return nil
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

// moduleDirectory splits the files of a directory with Terraform files. It returns those with objects, and nil for
// another directory.
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
		// the error is reported with the objects
		if content, err := os.ReadFile(file); err != nil || hasObjects(content) {
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
func packModules(ctx context.Context, s *session.Session, directories []*moduleFiles, flags *moduleFlags,
	ms []Manifest) ([]Manifest, error) {
	switch {
	case len(directories) == 0:
		return ms, flags.Check()
	case len(directories) > 1:
		return ms, fmt.Errorf("%s and %s have Terraform files: name one such directory at a time, because --module and the values of variables are about one",
			directories[0].dir, directories[1].dir)
	}
	packed, err := packModule(ctx, s, directories[0], flags, ms)
	if err != nil {
		return ms, err
	}
	return packed, nil
}

// packModule adds the objects of a directory with Terraform files to those of the other files.
func packModule(ctx context.Context, s *session.Session, of *moduleFiles, flags *moduleFlags,
	ms []Manifest) ([]Manifest, error) {
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
		warnLocked(ctx, s, filepath.Join(of.dir, moduledir.LockFile), dir.Lock)
	}
	at, err := writtenModule(of.dir, flags.Name, ms)
	if err != nil {
		return nil, err
	}
	name, written := flags.Name, (*unstructured.Unstructured)(nil)
	switch {
	case at >= 0:
		written, name = ms[at].Object, ms[at].Object.GetName()
	case name == "":
		if name, err = moduleName(s, of.dir); err != nil {
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
			ms[at].Object = u
			continue
		}
		ms = append(ms, Manifest{Object: u, File: of.dir, item: -1})
	}
	return ms, nil
}

// writtenModule returns the index of the Module without a source that the files have for the directory; -1 without one.
// The directory gives it its source.
func writtenModule(dir, name string, ms []Manifest) (int, error) {
	var found []int
	for i, m := range ms {
		source, _, _ := unstructured.NestedMap(m.Object.Object, "spec", "source")
		if addrs.IsModule(m.Object) && len(source) == 0 && (name == "" || name == m.Object.GetName()) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return -1, nil
	case 1:
		return found[0], nil
	}
	return -1, fmt.Errorf("%s and %s have Modules without spec.source: choose the one for %s with --module",
		ms[found[0]].Where(), ms[found[1]].Where(), dir)
}

// moduleName returns the name of the Module for a directory, and says if it is not the directory's own.
func moduleName(s *session.Session, dir string) (string, error) {
	name, err := moduledir.ModuleName(dir)
	if err != nil {
		return "", err
	}
	if absolute, err := filepath.Abs(dir); err == nil && filepath.Base(absolute) != name {
		fmt.Fprintf(s.ErrOut, "The name of the directory %q is no name of a Module, so the Module is %q. --module chooses another name.\n", filepath.Base(absolute), name)
	}
	return name, nil
}

// warnLocked warns about providers whose installed version is not that of the dependency lock file of a directory.
func warnLocked(ctx context.Context, s *session.Session, file string, lock []byte) {
	locks, err := lockfile.Parse(lock, file)
	list := &v1alpha1.ProviderList{}
	if err == nil {
		err = s.Hykube.Get().Resource("providers").Do(ctx).Into(list)
	}
	if err != nil {
		fmt.Fprintf(s.ErrOut, "Warning: the versions in %s are not compared: %v\n", file, s.Explain(err))
		return
	}
	for _, l := range locks {
		for _, p := range lockfile.WithSource(list.Items, l.Source) {
			if p.Status.Version != "" && p.Status.Version != l.Version {
				fmt.Fprintf(s.ErrOut, "Warning: %s has version %s of %s, and the Provider %q has %s. To install the locked version: kubectl hykube provider lock %s -f %s | kubectl apply -f -\n",
					file, l.Version, l.Source, p.Name, p.Status.Version, p.Name, file)
			}
		}
	}
}
