package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/internal/ledger"
)

// settled is the settling time in tests. Only one server writes there.
const settled = 50 * time.Millisecond

func TestMain(m *testing.M) {
	if dir := os.Getenv("HYKUBE_TEST_ROTATE"); dir != "" {
		rotateUntil(dir, os.Getenv("HYKUBE_TEST_STEP"))
	}
	if dir := os.Getenv("HYKUBE_TEST_MOMENT"); dir != "" {
		writeUntilKilled(dir)
	}
	if dir := os.Getenv("HYKUBE_TEST_KMS"); dir != "" {
		servePlugin(dir)
	}
	os.Exit(m.Run())
}

func finishRotation(t *testing.T, s *Store) KeyStatus {
	t.Helper()
	var status KeyStatus
	eventually(t, "the rotation ends", func() bool {
		var err error
		if status, err = s.KeyStatus(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !status.Rotating && !status.Progress.Finished.IsZero()
	})
	return status
}

// rowsWith returns the number of rows whose value or old value contains text.
func rowsWith(t *testing.T, s *Store, text []byte) (n int) {
	t.Helper()
	for _, p := range []part{s.table, ledgerRows{s.records}} {
		for id := int64(0); ; {
			rows, err := p.page(t.Context(), id, rotationPage)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			for _, r := range rows {
				if id = r.id; bytes.Contains(r.value, text) || bytes.Contains(r.old, text) {
					n++
				}
			}
		}
	}
	return n
}

func TestRotationReplacesTheKeyOfEveryRow(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir()})
	const n = 3*rotationPage + 1
	fill(t, s, n)
	key, _ := record(0)
	_, revision, err := s.KV().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	old := s.encryption.ring.loaded.Load().Keys[0]
	if found := rowsWith(t, s, old.prefix()); found != n {
		t.Fatalf("%d rows with the first key, want %d", found, n)
	}
	// Other requests continue.
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("busy/%06d", i)
			at, err := s.KV().Put(t.Context(), name, []byte("one"), 0)
			if err == nil {
				_, err = s.KV().Put(t.Context(), name, []byte("two"), at)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.RotateKeys(t.Context()); err != nil && !errors.Is(err, ErrRotating) {
		t.Fatal(err)
	}
	status := finishRotation(t, s)
	close(stop)
	wg.Wait()
	if len(status.Keys) != 1 || status.Keys[0].ID == old.ID {
		t.Errorf("the keys are %+v, want one new key", status.Keys)
	}
	if found := rowsWith(t, s, old.prefix()); found != 0 {
		t.Errorf("%d rows still have the old key", found)
	}
	checkRecords(t, s, n)
	if _, now, err := s.KV().Get(t.Context(), key); err != nil || now != revision {
		t.Errorf("the revision of a record changed from %d to %d: %v", revision, now, err)
	}
}

// TestTheOldKeyStaysWhileARowNeedsIt has a row that no key decrypts. The old key must stay until the row is gone.
func TestTheOldKeyStaysWhileARowNeedsIt(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir()})
	fill(t, s, 1)
	const broken = "x/broken"
	var passes atomic.Int32
	s.rotator.at = func(step string) {
		if step == stepPass {
			passes.Add(1)
		}
	}
	damaged := ledger.Write{Key: broken, Value: append(s.encryption.ring.loaded.Load().Keys[0].prefix(), "damaged"...)}
	revisions, err := s.records.Batch(t.Context(), "", []ledger.Write{damaged})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "several passes fail", func() bool {
		status, err := s.KeyStatus(t.Context())
		if err != nil || len(status.Keys) != 2 {
			t.Fatalf("status %+v: %v", status, err)
		}
		return strings.Contains(status.Progress.Message, broken) && passes.Load() > 4
	})
	if err := s.KV().Delete(t.Context(), broken, revisions[0]); err != nil {
		t.Fatal(err)
	}
	finishRotation(t, s)
	checkRecords(t, s, 1)
}

// rotateUntil rotates the keys of a database and kills this process before the step.
func rotateUntil(dir, step string) {
	s, err := Open(context.Background(), Config{DataDir: dir, RotationSettle: settled})
	if err != nil {
		panic(err)
	}
	s.rotator.at = func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if err := s.RotateKeys(context.Background()); err != nil {
		panic(err)
	}
	select {}
}

func TestAKilledRotationLosesNothing(t *testing.T) {
	for _, step := range []string{stepAdd, stepAdded, stepPage, stepDrop, stepDropped} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const n = rotationPage + 10
			s := openAt(t, Config{DataDir: dir})
			fill(t, s, n)
			old := s.encryption.ring.loaded.Load().Keys[0]
			closeStore(t, s)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "HYKUBE_TEST_ROTATE="+dir, "HYKUBE_TEST_STEP="+step)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v:\n%s", err, out)
			}
			s = openAt(t, Config{DataDir: dir})
			checkRecords(t, s, n)
			status, err := s.KeyStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case step == stepAdd:
				if status.Rotating || status.Keys[0].ID != old.ID {
					t.Errorf("no key was added, but the status is %+v", status)
				}
			case step != stepDropped:
				status = finishRotation(t, s)
				fallthrough
			default:
				if len(status.Keys) != 1 || status.Keys[0].ID == old.ID || rowsWith(t, s, old.prefix()) > 0 {
					t.Errorf("the status is %+v, and %d rows have the old key", status, rowsWith(t, s, old.prefix()))
				}
			}
			checkRecords(t, s, n)
		})
	}
}

// TestAnotherServerOnTheDatabase rotates the keys on one server while another one has the old keyring in memory.
func TestAnotherServerOnTheDatabase(t *testing.T) {
	dir := t.TempDir()
	first, second, third := openAt(t, Config{DataDir: dir}), openAt(t, Config{DataDir: dir}), openAt(t, Config{DataDir: dir})
	fill(t, first, 3)
	checkRecords(t, second, 3)
	before := second.encryption.ring.loaded.Load().Keys[0].ID
	if err := first.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.KV().Put(t.Context(), "new", []byte("by the new key"), 0); err != nil {
		t.Fatal(err)
	}
	if data, _, err := third.KV().Get(t.Context(), "new"); err != nil || string(data) != "by the new key" {
		t.Errorf("the other server reads %q: %v", data, err)
	}
	checkRecords(t, third, 3)
	// A write never uses a keyring that the server has not compared with the database for some seconds.
	second.encryption.ring.mu.Lock()
	second.encryption.ring.checked = time.Now().Add(-keyringAge)
	second.encryption.ring.mu.Unlock()
	if _, err := second.KV().Put(t.Context(), "other", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if got, _, err := second.records.Get(t.Context(), "other"); err != nil || keyID(got) == before {
		t.Errorf("the other server still writes with the key %q: %v", before, err)
	}
}

// TestTheOldKeyStaysUntilNoWriteUsesIt has nothing to encrypt again, so only the settling time delays the drop.
func TestTheOldKeyStaysUntilNoWriteUsesIt(t *testing.T) {
	const settle = time.Second
	s := openAt(t, Config{DataDir: t.TempDir(), RotationSettle: settle})
	var dropped atomic.Int64
	s.rotator.at = func(step string) {
		if step == stepDrop {
			dropped.Store(time.Now().UnixNano())
		}
	}
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	added := time.Now()
	finishRotation(t, s)
	if waited := time.Unix(0, dropped.Load()).Sub(added); waited < settle-settle/10 {
		t.Errorf("the old key was dropped after %s", waited)
	}
}

// TestAnInterruptedPassDoesNotCount resumes a pass after its last row, of the objects and of the ledger.
func TestAnInterruptedPassDoesNotCount(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir()})
	fill(t, s, 1)
	key := s.encryption.ring.loaded.Load().Keys[0].ID
	last, err := s.table.last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Progress{{Key: key, Revision: last}, {Key: key, Part: 1}} {
		s.rotator.note(t.Context(), func(p *Progress) { *p = at })
		for _, want := range []bool{true, false} {
			if stale, err := s.rotator.pass(t.Context(), key); err != nil || stale > 0 != want {
				t.Errorf("a pass that resumed at %+v found %d rows, %v", at, stale, err)
			}
		}
	}
}

func TestRotationEncryptsPreviousValues(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir()})
	old := s.encryption.ring.loaded.Load().Keys[0]
	const key = "/registry/core/configmaps/prod/k"
	sealed, err := s.encryption.transformer(schema.GroupResource{Resource: "configmaps"}).TransformToStorage(t.Context(), []byte("{}"), value.DefaultContext(key))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, key, string(sealed), put(t, s, key, string(sealed), 0))
	if found := rowsWith(t, s, old.prefix()); found != 2 {
		t.Fatalf("%d rows have the first key, want 2", found)
	}
	if err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	finishRotation(t, s)
	if found := rowsWith(t, s, old.prefix()); found != 0 {
		t.Errorf("%d rows have the old key", found)
	}
}
