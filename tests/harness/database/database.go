// Package database starts database servers for tests. It imports only the standard library and package machine.
package database

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness/machine"
)

// PostgreSQL starts a PostgreSQL server, which stops with the test, and returns the DSN of an empty database. Without
// PostgreSQL, it skips the test.
func PostgreSQL(t testing.TB) (dsn string) {
	t.Helper()
	dsn, _ = RestartablePostgreSQL(t)
	return dsn
}

// RestartablePostgreSQL is PostgreSQL with a function that stops the server, without a wait for its sessions, and starts
// it again.
func RestartablePostgreSQL(t testing.TB) (dsn string, restart func() error) {
	t.Helper()
	control := machine.PostgreSQL.Need(t)
	dir, err := os.MkdirTemp("", "hykube-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	owner := unprivileged(t, dir)
	data, port := filepath.Join(dir, "data"), freePort(t)
	run := func(arg ...string) error {
		cmd := exec.Command(control, append([]string{"-D", data, "-s"}, arg...)...)
		cmd.Dir, cmd.SysProcAttr = dir, owner
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
		// Without a limit, Wait would not return while a server keeps a pipe open.
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("pg_ctl %s: %w\n%s", strings.Join(arg, " "), err, text)
		}
		return nil
	}
	if err := run("initdb", "-o", "-A trust -U hykube --no-sync -E UTF8"); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -p %d -k %s", port, dir)
	if err := run("start", "-w", "-o", options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run("stop", "-m", "immediate"); err != nil {
			t.Error(err)
		}
	})
	return fmt.Sprintf("postgres://hykube@127.0.0.1:%d/hykube?sslmode=disable", port), func() error {
		return run("restart", "-w", "-m", "immediate", "-o", options)
	}
}

// MariaDB starts a MariaDB server, which stops with the test, and returns the DSN of an empty database. Without MariaDB,
// it skips the test.
func MariaDB(t testing.TB) (dsn string) {
	t.Helper()
	server, install := machine.MariaDB.Need(t), machine.MariaDBInstall.Need(t)
	dir, err := os.MkdirTemp("", "hykube-mariadb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	owner := unprivileged(t, dir)
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	command := func(name string, arg ...string) *exec.Cmd {
		cmd := exec.Command(name, append([]string{"--no-defaults", "--datadir=" + data}, arg...)...)
		cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = dir, owner, log, log
		return cmd
	}
	fail := func(doing string, err error) {
		t.Helper()
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%s: %v\n%s", doing, err, text)
	}
	if err := command(install, "--auth-root-authentication-method=normal", "--skip-test-db").Run(); err != nil {
		fail("make the files of MariaDB", err)
	}
	running := command(server, "--socket="+socket, "--skip-networking", "--pid-file="+filepath.Join(dir, "pid"),
		"--innodb-flush-log-at-trx-commit=0")
	if err := running.Start(); err != nil {
		fail("start MariaDB", err)
	}
	t.Cleanup(func() {
		_ = running.Process.Kill()
		_ = running.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
			return "mysql://root@unix(" + socket + ")/hykube"
		}
		if time.Now().After(deadline) {
			fail("wait for MariaDB", err)
		}
	}
}

// unprivileged returns the attributes of a process that owns dir. PostgreSQL refuses to run as root.
func unprivileged(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("PostgreSQL refuses to run as root, and there is no user nobody")
	}
	uid, uidErr := strconv.Atoi(nobody.Uid)
	gid, gidErr := strconv.Atoi(nobody.Gid)
	if uidErr != nil || gidErr != nil || os.Chown(dir, uid, gid) != nil {
		t.Fatalf("give %s to the user nobody", dir)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
