package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Binaries are the programs and the provider mirror that tests use.
type Binaries struct {
	// Bin is the directory of `make build`, and Mirror that of `make mirror`.
	Bin, Mirror string
}

// Path returns the path of a program.
func (b Binaries) Path(program string) string { return filepath.Join(b.Bin, program) }

// Built finds the binaries in HYKUBE_BIN_DIR and HYKUBE_MIRROR_DIR. If neither is set, it runs `make build mirror`
// first.
func Built() (Binaries, error) { return built() }

var built = sync.OnceValues(func() (Binaries, error) {
	b := Binaries{Bin: os.Getenv("HYKUBE_BIN_DIR"), Mirror: os.Getenv("HYKUBE_MIRROR_DIR")}
	if b.Bin == "" && b.Mirror == "" {
		root, err := repository()
		if err != nil {
			return b, err
		}
		b = Binaries{Bin: filepath.Join(root, "bin"), Mirror: filepath.Join(root, ".cache", "mirror")}
		if err := build(root); err != nil {
			return b, err
		}
	}
	return b.Complete()
})

// Complete makes the paths absolute. Its error names a missing binary and the command that makes it.
func (b Binaries) Complete() (Binaries, error) {
	for _, need := range []struct {
		dir                 *string
		name, pattern, make string
	}{
		{&b.Bin, "HYKUBE_BIN_DIR", "hykube", "make build"},
		{&b.Mirror, "HYKUBE_MIRROR_DIR", "registry.terraform.io/hykube/sim", "make mirror"},
	} {
		if *need.dir == "" {
			return b, fmt.Errorf("%s is not set: set both HYKUBE_BIN_DIR and HYKUBE_MIRROR_DIR, or neither", need.name)
		}
		abs, err := filepath.Abs(*need.dir)
		if err != nil {
			return b, err
		}
		// The go command does not use a cached test result if a file that the test examined has changed. So call Stat.
		if _, err := os.Stat(filepath.Join(abs, need.pattern)); err != nil {
			return b, fmt.Errorf("there is no %s in %s (%s): run %s", need.pattern, abs, need.name, need.make)
		}
		*need.dir = abs
	}
	return b, nil
}

// Kubectl returns the command line of the machine's kubectl, or of the one inside hykube if the machine has none.
func Kubectl(t testing.TB) []string {
	t.Helper()
	if path, err := exec.LookPath("kubectl"); err == nil {
		return []string{path}
	}
	b, err := Built()
	if err != nil {
		t.Fatal(err)
	}
	return []string{b.Path("hykube-kubectl")}
}

// build runs make, for one package of tests at a time.
func build(root string) error {
	if err := os.MkdirAll(filepath.Join(root, ".cache"), 0o755); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(root, ".cache", "build.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if out, err := exec.Command("make", "-s", "-C", root, "build", "mirror").CombinedOutput(); err != nil {
		return fmt.Errorf("make build mirror: %w\n%s", err, out)
	}
	return nil
}

// repository returns the top directory of the repository. Tests run in the directory of their package.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir:
			return "", fmt.Errorf("find the repository: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}
