package provider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// installTime builds hashicorp/time, a real provider of protocol 5, through the Go module proxy; Go's own caches make
// the second time quick.
func installTime(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "install", "github.com/hashicorp/terraform-provider-time@v0.14.2")
	cmd.Dir = dir // away from our own go.mod
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build hashicorp/time: %v: %s", err, out)
	}
	return filepath.Join(dir, "terraform-provider-time")
}

// children counts the living processes of a group.
func children(t *testing.T, group int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("needs /proc")
	}
	n := 0
	for _, f := range stats {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 2 && fields[0] != "Z" && fields[2] == strconv.Itoa(group) {
			n++
		}
	}
	return n
}

func waitForProcesses(t *testing.T, p *Pool, want int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d processes", want), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.all) == want
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
