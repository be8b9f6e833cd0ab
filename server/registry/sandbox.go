package registry

import (
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/provider/contain"
)

// Limits of a sandbox. The server passes all of it to each process in one argument, which has at most 128 KiB.
const (
	maxGrantedPaths = 32
	maxGrantedPath  = 512
	maxConnectPorts = 64
	maxEnvironment  = 64
	maxVariable     = 128
)

// validateSandbox validates spec.sandbox of a Provider. protected are directories of the server.
func validateSandbox(s *v1alpha1.ProviderSandbox, protected []string, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	switch s.Mode {
	case "", v1alpha1.SandboxEnforced, v1alpha1.SandboxOff:
	default:
		errs = append(errs, field.NotSupported(at.Child("mode"), s.Mode,
			[]v1alpha1.SandboxMode{v1alpha1.SandboxEnforced, v1alpha1.SandboxOff}))
	}
	for name, paths := range map[string][]string{"readPaths": s.ReadPaths, "writePaths": s.WritePaths,
		"executePaths": s.ExecutePaths} {
		if len(paths) > maxGrantedPaths {
			errs = append(errs, field.TooMany(at.Child(name), len(paths), maxGrantedPaths))
		}
		for i, path := range paths {
			errs = append(errs, validateGrantedPath(path, protected, at.Child(name).Index(i))...)
		}
	}
	if len(s.ConnectPorts) > maxConnectPorts {
		errs = append(errs, field.TooMany(at.Child("connectPorts"), len(s.ConnectPorts), maxConnectPorts))
	}
	for i, port := range s.ConnectPorts {
		if port < 1 || port > 65535 {
			errs = append(errs, field.Invalid(at.Child("connectPorts").Index(i), port,
				"must be a port between 1 and 65535"))
		}
	}
	return errs
}

func validateGrantedPath(path string, protected []string, at *field.Path) field.ErrorList {
	switch {
	case len(path) > maxGrantedPath:
		return field.ErrorList{field.TooLong(at, "", maxGrantedPath)}
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0):
		return field.ErrorList{field.Invalid(at, shorten(path),
			`must be an absolute path without "..", "." and a slash at its end, such as "/srv/output"`)}
	}
	if dir := contain.Overlapping(path, contain.System); dir != "" {
		return field.ErrorList{field.Invalid(at, path, "must not include "+dir+
			", which shows other processes and the machine")}
	}
	if dir := contain.Overlapping(path, protected); dir != "" {
		return field.ErrorList{field.Invalid(at, path,
			"must be neither a directory that contains the server's directory "+dir+
				", nor a path in it: it has the keys and the data of the server")}
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func validateEnvironment(names []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(names) > maxEnvironment {
		errs = append(errs, field.TooMany(at, len(names), maxEnvironment))
	}
	for i, name := range names {
		switch {
		case len(name) > maxVariable || !variable.MatchString(name):
			errs = append(errs, field.Invalid(at.Index(i), shorten(name),
				`must be the name of an environment variable, such as "AWS_PROFILE"; the server has its value`))
		case !contain.Grantable(name):
			errs = append(errs, field.Invalid(at.Index(i), name,
				"belongs to Hykube or to the connection with the plugin"))
		}
	}
	return errs
}
