// Command release builds the files of a release: the server for Linux, the plugin for six platforms and the Helm chart.
// It adds checksums, a list of the parts (SPDX), shell completions, man pages, and the manifest for krew. The same
// sources and the same Go and C compilers give the same bytes.
//
//	go run ./hack/release -version v0.1.0 -out dist
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	r := release{log: os.Stderr}
	only := ""
	flag.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&r.out, "out", "dist", "directory of the release; its content is replaced")
	flag.StringVar(&only, "only", "", "targets such as server/linux/amd64,plugin/darwin/arm64 in place of all")
	flag.BoolVar(&r.bare, "binaries", false, "write only the binaries")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if r.targets, err = targetsOf(only); err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// target is a program for a platform.
type target struct{ program, system, arch string }

// The programs. The names are also those of the directories below cmd.
const (
	server = "hykube"
	plugin = "kubectl-hykube"
)

var allTargets = []target{
	{server, "linux", "amd64"}, {server, "linux", "arm64"},
	{plugin, "linux", "amd64"}, {plugin, "linux", "arm64"},
	{plugin, "darwin", "amd64"}, {plugin, "darwin", "arm64"},
	{plugin, "windows", "amd64"}, {plugin, "windows", "arm64"},
}

// targetsOf parses the flag -only.
func targetsOf(only string) (targets []target, err error) {
	if only == "" {
		return allTargets, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool {
			return name == strings.ReplaceAll(strings.ReplaceAll(t.String(), plugin, "plugin"), server+"/", "server/")
		})
		if i < 0 {
			return nil, fmt.Errorf("use -only %q: there is no target %q", only, name)
		}
		targets = append(targets, allTargets[i])
	}
	return targets, nil
}

func (t target) String() string { return t.program + "/" + t.system + "/" + t.arch }

// file is the name of the program on its platform.
func (t target) file() string {
	if t.system == "windows" {
		return t.program + ".exe"
	}
	return t.program
}

// release builds one release.
type release struct {
	version, out string
	targets      []target
	// bare releases have only the binaries.
	bare bool
	log  io.Writer
	// build builds a target at a path; nil calls the go command. Tests copy a program.
	build func(ctx context.Context, t target, path string) error

	// time is the time in all archives: that of the last commit.
	time time.Time
	work string
}

func (r *release) run(ctx context.Context) (err error) {
	if !semver.IsValid(r.version) {
		return fmt.Errorf("use -version %q: write a semantic version, as in `make release VERSION=v0.1.0`", r.version)
	}
	if r.time, err = commitTime(ctx); err != nil {
		return err
	}
	if r.build == nil {
		r.build = r.compile
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.bare {
		return r.binaries(ctx, func(t target) string { return filepath.Join(r.out, t.file()) })
	}
	if r.work, err = os.MkdirTemp("", "hykube-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := r.binaries(ctx, r.binary); err != nil {
		return err
	}
	if err := r.texts(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.archive(t); err != nil {
			return fmt.Errorf("archive %s: %w", t, err)
		}
		if err := r.parts(t); err != nil {
			return fmt.Errorf("list the parts of %s: %w", t, err)
		}
	}
	if err := r.chart(); err != nil {
		return fmt.Errorf("package the chart: %w", err)
	}
	if err := r.krew(); err != nil {
		return fmt.Errorf("write the manifest of krew: %w", err)
	}
	return r.checksums()
}

// commitTime returns the time of the last commit, or SOURCE_DATE_EPOCH.
func commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("read the time of the last commit: %w; without git, set SOURCE_DATE_EPOCH", err)
		}
		text = string(out)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the last commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// binary returns the path of a built program.
func (r *release) binary(t target) string {
	return filepath.Join(r.work, "bin", t.system+"_"+t.arch, t.file())
}

func (r *release) binaries(ctx context.Context, path func(target) string) error {
	for _, t := range r.targets {
		begun := time.Now()
		if err := r.build(ctx, t, path(t)); err != nil {
			return fmt.Errorf("build %s: %w", t, err)
		}
		info, err := os.Stat(path(t))
		if err != nil {
			return err
		}
		fmt.Fprintf(r.log, "built %s: %d MB in %s\n", t, info.Size()>>20, time.Since(begun).Round(time.Second))
	}
	return nil
}

// checksums writes SHA256SUMS, which `sha256sum --check` reads.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := checksum(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
