package manifest

import (
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/hykube/hykube/internal/shell"
)

// Flags holds the flags of verbs that read files.
type Flags struct {
	resource.FilenameOptions
	Force   bool
	Timeout time.Duration
	Modules moduleFlags
}

// Add adds all flags of verbs that record files.
func (f *Flags) Add(fs *pflag.FlagSet) {
	f.AddFilenames(fs)
	f.Modules.AddName(fs)
	f.Modules.addValues(fs)
	fs.BoolVar(&f.Force, "force-conflicts", false, "Take over fields that other managers own")
	fs.DurationVar(&f.Timeout, "provider-timeout", 5*time.Minute,
		"How long to wait for the installation of a provider in the files")
}

// AddFilenames adds kubectl's flags for files, directories, URLs, standard input and kustomizations.
func (f *Flags) AddFilenames(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.Filenames, "filename", "f", nil, "File, directory, URL, or - for standard input; repeatable")
	fs.BoolVarP(&f.Recursive, "recursive", "R", false, "Also read the sub-directories of a directory")
	fs.StringVarP(&f.Kustomize, "kustomize", "k", "", "Directory of a kustomization, instead of -f")
}

// Given reports whether the command names files.
func (f *Flags) Given() bool { return f.RequireFilenameOrKustomize() == nil }

// Stdin reports whether the files include standard input, which then cannot answer questions.
func (f *Flags) Stdin() bool { return slices.Contains(f.Filenames, "-") }

// NothingInFiles is the message if the files have nothing to plan.
const NothingInFiles = "No resources in these files, so there is nothing to plan."

// Each returns the flag with each of its values.
func Each(flag string, values []string) string {
	text := ""
	for _, v := range values {
		text += " " + flag + " " + shell.Word(v)
	}
	return text
}

// RepeatFlags returns the flags that name the same files.
func (f *Flags) RepeatFlags() string {
	text := Each("-f", f.Filenames)
	if f.Kustomize != "" {
		text += " -k " + shell.Word(f.Kustomize)
	}
	if f.Recursive {
		text += " -R"
	}
	text += f.Modules.repeatFlags()
	if f.Force {
		text += " --force-conflicts"
	}
	return text
}

// repeatFlags returns the flags that name the same Module and values. It shows no value of --var, which may be a
// secret.
func (f *moduleFlags) repeatFlags() (text string) {
	if f.Name != "" {
		text = " --module " + shell.Word(f.Name)
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
