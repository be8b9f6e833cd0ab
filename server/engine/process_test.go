package engine_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// listening returns the TCP addresses on which this process listens, from Linux's files in /proc.
func listening(t *testing.T) (addresses []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	sockets := map[string]bool{}
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && strings.HasPrefix(link, "socket:[") {
			sockets[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue // no such protocol
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			const listen = "0A"
			if len(f) < 10 || f[3] != listen || !sockets[f[9]] {
				continue
			}
			addresses = append(addresses, address(t, f[1]))
		}
	}
	return addresses
}

// address reads the kernel's form: words in host order, in hexadecimal.
func address(t *testing.T, s string) string {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	ip, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(ip); i += 4 {
		slices.Reverse(ip[i : i+4])
	}
	var n int
	if _, err := fmt.Sscanf(port, "%X", &n); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(ip).String(), fmt.Sprint(n))
}

// temporalGoroutines are the stacks that run Temporal's code.
func temporalGoroutines() (found []string) {
	buf := make([]byte, 16<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "go.temporal.io/") {
			found = append(found, stack)
		}
	}
	return found
}
