package module

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hykube/hykube/internal/diag"
)

// Limits on the files of a module. Within them, loading takes seconds at most.
const (
	maxFiles = 5_000
	// maxBytes is the size of all files together, maxConfigBytes that of the configuration files alone, and
	// maxConfigFile that of one of them. The parser needs about a hundred times the size of a file.
	maxBytes       = 32 << 20
	maxConfigBytes = 8 << 20
	maxConfigFile  = 1 << 20
	maxPath        = 1024
)

// Files are the files of a module by their paths: relative to the root module's directory, with slashes, as in
// "modules/net/main.tf" and ".terraform/modules/modules.json". The contents must not change.
type Files map[string][]byte

// check returns an error for files that no loader should read.
func (f Files) check() diag.Diagnostics {
	if len(f) > maxFiles {
		return diag.Diagnostics{diag.Errorf("", "Module too large",
			"The module has %d files, and the limit is %d. Leave out the files that its expressions do not read.",
			len(f), maxFiles)}
	}
	var diags diag.Diagnostics
	total, config := 0, 0
	for _, name := range slices.Sorted(maps.Keys(f)) {
		total += len(f[name])
		if why := badPath(name); why != "" {
			diags = append(diags, diag.Errorf("", "Invalid file name",
				"The file name %.200q %s. A name is a path within the module's directory, such as modules/net/main.tf.",
				name, why))
		}
		if kindOf(name) == noConfig {
			continue
		}
		config += len(f[name])
		if n := len(f[name]); n > maxConfigFile {
			diags = append(diags, diag.Errorf(name, "File too large",
				"The file has %d bytes, and the limit is %d. Split it.", n, maxConfigFile))
		}
	}
	if total > maxBytes || config > maxConfigBytes {
		diags = append(diags, diag.Errorf("", "Module too large",
			"All files together have %d bytes, of which %d are configuration; the limits are %d and %d. Leave out what the module does not need.", total, config, maxBytes, maxConfigBytes))
	}
	return diags
}

// badPath returns what is wrong with the path of a file; "" if nothing is.
func badPath(name string) string {
	switch {
	case len(name) > maxPath:
		return "is too long"
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\\\x00"):
		return "has a character that is not allowed"
	case name != path.Clean(name) || path.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return "leads out of the directory, or is not in its shortest form"
	}
	return ""
}

// fileKind is the role of a file in its directory.
type fileKind int

const (
	noConfig fileKind = iota
	primary
	override
)

// extensions are those of configuration files. A file with one of OpenTofu replaces that of the same name with one
// of Terraform.
var extensions = []string{".tofu.json", ".tofu", ".tf.json", ".tf"}

// splitName splits the name of a configuration file from its extension; "" for another file.
func splitName(name string) (base, extension string) {
	for _, e := range extensions {
		if base, ok := strings.CutSuffix(name, e); ok {
			return base, e
		}
	}
	return name, ""
}

func kindOf(name string) fileKind {
	base, extension := splitName(path.Base(name))
	switch {
	case extension == "" || strings.HasPrefix(base, ".") || strings.HasSuffix(name, "~"):
		return noConfig
	case base == "override" || strings.HasSuffix(base, "_override"):
		return override
	default:
		return primary
	}
}

// IsConfiguration reports whether a file is one with configuration, by its name or path.
func IsConfiguration(name string) bool { return kindOf(name) != noConfig }

// in returns the paths of the configuration files in a directory, sorted: first the primary files, then the overrides.
func (f Files) in(dir string) []string {
	var out []string
	for name := range f {
		if path.Dir(name) != dir || kindOf(name) == noConfig {
			continue
		}
		base, extension := splitName(name)
		if strings.HasPrefix(extension, ".tf") && f.has(base+strings.Replace(extension, ".tf", ".tofu", 1)) {
			continue
		}
		out = append(out, name)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a, b)) })
	return out
}

func (f Files) has(name string) bool {
	_, ok := f[name]
	return ok
}

// inside returns the path of a directory within the files, given the path of a source relative to another directory. ok
// is false if the path leads out of the files.
func inside(dir, source string) (string, bool) {
	p := path.Join(dir, source)
	if path.IsAbs(source) || p == ".." || strings.HasPrefix(p, "../") {
		return "", false
	}
	return p, true
}

// place formats a position in a file, such as "main.tf:3:5".
func place(file string, line, column int) string { return fmt.Sprintf("%s:%d:%d", file, line, column) }
