package cli

import (
	"slices"
	"time"

	"github.com/spf13/pflag"
)

// fileFlags are the flags of verbs that read files.
type fileFlags struct {
	paths     []string
	recursive bool
	force     bool
	timeout   time.Duration
}

func (f *fileFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.paths, "filename", "f", nil, "File, directory, URL, or - for standard input; may be given more than once")
	fs.BoolVarP(&f.recursive, "recursive", "R", false, "Also read the sub-directories of a directory")
	fs.BoolVar(&f.force, "force-conflicts", false, "Take over fields that somebody else has set")
	fs.DurationVar(&f.timeout, "provider-timeout", 5*time.Minute, "How long a provider in the files may take to be installed")
}

// stdin is true when the files take standard input, so that nobody can be asked there.
func (f *fileFlags) stdin() bool { return slices.Contains(f.paths, "-") }

// scopes are the addresses of recorded resources by namespace, in the order of the files.
type scope struct {
	namespace string
	addresses []string
}

func scopes(rs []recorded) []scope {
	var out []scope
	for _, r := range rs {
		addr, ok := r.address()
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(s scope) bool { return s.namespace == r.namespace })
		if i < 0 {
			i = len(out)
			out = append(out, scope{namespace: r.namespace})
		}
		out[i].addresses = append(out[i].addresses, addr)
	}
	return out
}
