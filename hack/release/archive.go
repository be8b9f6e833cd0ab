package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive: its name there, and its path here or its content.
type entry struct {
	name, path string
	content    []byte
	program    bool
}

// archiveName returns the name of the archive of a target.
func (r *release) archiveName(t target) string {
	extension := ".tar.gz"
	if t.system == "windows" {
		extension = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", t.program, r.version, t.system, t.arch, extension)
}

// archive writes the archive of a target: the program, the licence, the completions and the man pages. That of the
// server also has the files for systemd.
func (r *release) archive(t target) error {
	entries := []entry{{name: t.file(), path: r.binary(t), program: true}, {name: "LICENSE", path: "LICENSE"}}
	if t.program == server {
		for _, name := range []string{"hykube.service", "hykube.env"} {
			entries = append(entries, entry{name: "systemd/" + name, path: filepath.Join("deploy", "systemd", name)})
		}
	} else if t.system != "windows" {
		entries = append(entries, entry{name: "kubectl_complete-hykube", path: filepath.Join(r.work, "kubectl_complete-hykube"), program: true})
	}
	for _, pattern := range []string{"completions/" + t.program + ".*", "man1/" + t.program + ".1", "man1/" + t.program + "-*.1"} {
		files, err := filepath.Glob(filepath.Join(r.work, pattern))
		if err != nil || len(files) == 0 {
			return errors.Join(err, fmt.Errorf("there is no %s", pattern))
		}
		for _, file := range files {
			name, err := filepath.Rel(r.work, file)
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: filepath.ToSlash(name), path: file})
		}
	}
	path := filepath.Join(r.out, r.archiveName(t))
	if t.system == "windows" {
		return writeZip(path, entries, r.time)
	}
	return writeTar(path, entries, r.time)
}

var (
	chartVersion    = regexp.MustCompile(`(?m)^version: .*$`)
	chartAppVersion = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// chart writes the Helm chart with the version of the release.
func (r *release) chart() error {
	var entries []entry
	top := filepath.Join("deploy", "helm", "hykube")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "ci" { // as .helmignore says
				return fs.SkipDir
			}
			return nil
		}
		e := entry{name: "hykube/" + filepath.ToSlash(name), path: path}
		if name == "Chart.yaml" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			number := strings.TrimPrefix(r.version, "v")
			text = chartVersion.ReplaceAll(text, []byte("version: "+number))
			e.content = chartAppVersion.ReplaceAll(text, []byte("appVersion: "+number))
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	// Helm reads Chart.yaml first.
	slices.SortStableFunc(entries, func(a, b entry) int {
		return strings.Compare(strings.TrimSuffix(a.name, "Chart.yaml"), strings.TrimSuffix(b.name, "Chart.yaml"))
	})
	return writeTar(filepath.Join(r.out, "hykube-"+strings.TrimPrefix(r.version, "v")+".tgz"), entries, r.time)
}

func (e entry) mode() fs.FileMode {
	if e.program {
		return 0o755
	}
	return 0o644
}

func (e entry) read() ([]byte, error) {
	if e.content != nil {
		return e.content, nil
	}
	return os.ReadFile(e.path)
}

// writeTar writes a tar.gz in which nothing depends on the machine: no owner, and one time.
func writeTar(path string, entries []entry, when time.Time) error {
	return writeFile(path, func(out io.Writer) error {
		zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		archive := tar.NewWriter(zipped)
		for _, e := range entries {
			content, err := e.read()
			if err != nil {
				return err
			}
			header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode()), Size: int64(len(content)), ModTime: when, Format: tar.FormatPAX}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			if _, err := archive.Write(content); err != nil {
				return err
			}
		}
		return errors.Join(archive.Close(), zipped.Close())
	})
}

// writeZip writes a zip file in which nothing depends on the machine.
func writeZip(path string, entries []entry, when time.Time) error {
	return writeFile(path, func(out io.Writer) error {
		archive := zip.NewWriter(out)
		for _, e := range entries {
			content, err := e.read()
			if err != nil {
				return err
			}
			header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
			header.SetMode(e.mode())
			w, err := archive.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
