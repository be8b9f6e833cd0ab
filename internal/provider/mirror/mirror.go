// Package mirror reads a directory of provider packages in the layout of Terraform's filesystem mirrors, packed
//
//	HOST/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip
//
// and unpacked
//
//	HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/terraform-provider-TYPE[_vVERSION...]
//
// It imports the standard library alone. It does not order versions and writes nothing.
package mirror

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Package is a package in a mirror directory.
type Package struct {
	// Version is the version in the file name or directory name, without a leading v.
	Version string
	// Platform is the operating system and architecture, such as "linux_amd64".
	Platform string
	// Path of the zip file or of the unpacked directory.
	Path string
	// Packed is true for a zip file.
	Packed bool
}

// Packages returns the packages of a provider in a mirror directory. It returns none if the directory or the provider
// does not exist. It skips files that do not follow the layout.
func Packages(dir, host, namespace, typ string) ([]Package, error) {
	base := filepath.Join(dir, host, namespace, typ)
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read mirror: %w", err)
	}
	var out []Package
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		info, err := os.Stat(path) // a mirror may contain symbolic links
		if err != nil {
			continue
		}
		if !info.IsDir() {
			rest, ok1 := strings.CutPrefix(e.Name(), "terraform-provider-"+typ+"_")
			rest, ok2 := strings.CutSuffix(rest, ".zip")
			if parts := strings.Split(rest, "_"); ok1 && ok2 && len(parts) == 3 {
				out = append(out, Package{
					Version: strings.TrimPrefix(parts[0], "v"), Platform: parts[1] + "_" + parts[2], Path: path,
					Packed: true,
				})
			}
			continue
		}
		platforms, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("read mirror: %w", err)
		}
		for _, p := range platforms {
			unpacked := filepath.Join(path, p.Name())
			if info, err := os.Stat(unpacked); err == nil && info.IsDir() && strings.Count(p.Name(), "_") == 1 {
				out = append(out, Package{Version: e.Name(), Platform: p.Name(), Path: unpacked})
			}
		}
	}
	return out, nil
}

// Executable returns the path of the plugin in an unpacked package.
func Executable(dir, typ string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	name := "terraform-provider-" + typ
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if rest, ok := strings.CutPrefix(e.Name(), name); ok && (rest == "" || rest == ".exe" || rest[0] == '_') {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", fmt.Errorf("find plugin: the package has no file named %s or %s_*; it is not a package of this provider",
		name, name)
}

// Copy copies an unpacked package, which may contain symbolic links, as regular files to an existing, empty directory.
func Copy(from, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	if from, err = filepath.EvalSymlinks(from); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return root.Mkdir(rel, 0o755)
		case !info.Mode().IsRegular():
			return fmt.Errorf("copy package: %s is not a plain file", path)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(d.Name(), "terraform-provider-") {
			mode = 0o755
		}
		return copyFile(path, root, rel, mode)
	})
}

func copyFile(path string, root *os.Root, name string, mode fs.FileMode) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := out.Chmod(mode); err != nil {
		return errors.Join(err, out.Close())
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
