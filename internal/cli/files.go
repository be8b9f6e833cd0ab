package cli

import (
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/hykube/hykube/api/v1alpha1"
)

// fileFlags holds the flags of verbs that read files.
type fileFlags struct {
	resource.FilenameOptions
	force   bool
	timeout time.Duration
	modules moduleFlags
}

func (f *fileFlags) add(fs *pflag.FlagSet) {
	f.addFilenames(fs)
	f.modules.addName(fs)
	f.modules.addValues(fs)
	fs.BoolVar(&f.force, "force-conflicts", false, "Take over fields that other managers own")
	fs.DurationVar(&f.timeout, "provider-timeout", 5*time.Minute, "How long to wait for the installation of a provider in the files")
}

// addFilenames adds kubectl's flags for files, directories, URLs, standard input and kustomizations.
func (f *fileFlags) addFilenames(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.Filenames, "filename", "f", nil, "File, directory, URL, or - for standard input; repeatable")
	fs.BoolVarP(&f.Recursive, "recursive", "R", false, "Also read the sub-directories of a directory")
	fs.StringVarP(&f.Kustomize, "kustomize", "k", "", "Directory of a kustomization, instead of -f")
}

// given reports whether the command names files.
func (f *fileFlags) given() bool { return f.RequireFilenameOrKustomize() == nil }

// stdin reports whether the files include standard input, which then cannot answer questions.
func (f *fileFlags) stdin() bool { return slices.Contains(f.Filenames, "-") }

// nothingInFiles is the message if the files have nothing to plan.
const nothingInFiles = "No resources in these files, so there is nothing to plan."

// scope holds the objects of the files in one namespace, in the order of the files.
type scope struct {
	namespace string
	objects   []target
}

// of returns the addresses of the objects with one of the modes.
func (s scope) of(modes ...v1alpha1.Mode) []string {
	var out []string
	for _, t := range s.objects {
		if slices.Contains(modes, t.mode) {
			out = append(out, t.address())
		}
	}
	return out
}

// planned returns the addresses of the objects for which a plan is made. Plans open ephemeral resources when they need them, so an
// ephemeral resource needs no plan.
func (s scope) planned() []string {
	return s.of(v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeAction, modeModule)
}

func scopes(rs []recorded) []scope {
	var out []scope
	for _, r := range rs {
		t, ok := r.target()
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(s scope) bool { return s.namespace == r.namespace })
		if i < 0 {
			i = len(out)
			out = append(out, scope{namespace: r.namespace})
		}
		out[i].objects = append(out[i].objects, t)
	}
	return out
}
