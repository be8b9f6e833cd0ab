package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/internal/ledger"
)

// join makes a store a worker within a minute.
func join(t *testing.T, s *Store, own Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Join(ctx, own, func(string) {}); err != nil {
		t.Fatal(err)
	}
}

// expireProcess makes the lease of a process expire, which no longer renews it.
func expireProcess(t *testing.T, s *Store) {
	t.Helper()
	s.lease.stop()
	s.lease.renewals.Wait()
	if _, err := s.write.ExecContext(t.Context(), s.dialect.text("UPDATE hykube_process SET expires = 1 WHERE process = ?"), s.Own()); err != nil {
		t.Fatal(err)
	}
}

func TestWorkers(t *testing.T) {
	for name, open := range map[string]func(*testing.T) opener{"PostgreSQL": inPostgreSQL, "MariaDB": inMariaDB} {
		t.Run(name, func(t *testing.T) { workers(t, open(t)) })
	}
}

// workers has a server and workers. Each worker writes until its lease has expired and another process needs to know what it does.
func workers(t *testing.T, open opener) {
	leader, first, second := open(t), open(t), open(t)
	waitsFor := func(own Server, want string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		err := first.Join(ctx, own, func(reason string) {
			if !strings.Contains(reason, want) {
				t.Errorf("waits because %s, want %s", reason, want)
			}
			cancel()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the worker does not wait: %v", err)
		}
	}
	waitsFor(Server{Owner: "w1", Version: "1"}, "no server serves the database")
	lead(t, leader, Server{Owner: "a", Address: "a:1", Version: "1", Settings: "--temporal-namespace=hykube"})
	waitsFor(Server{Owner: "w1", Version: "2"}, "the server a:1 (version 1) has another version than this worker (2)")
	err := first.Join(t.Context(), Server{Owner: "w1", Version: "1", Settings: "--temporal-namespace=other"}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "the server has --temporal-namespace=hykube, and this worker has --temporal-namespace=other: give both the same flags") {
		t.Errorf("other settings: %v", err)
	}
	join(t, first, Server{Owner: "w1", Address: "w1:1", Version: "1", Settings: "--temporal-namespace=hykube"})
	join(t, second, Server{Owner: "w2", Address: "w2:1", Version: "1", Settings: "--temporal-namespace=hykube"})
	for name, s := range map[string]*Store{"leader": leader, "w1": first, "w2": second} {
		if err := write(t, s, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := second.Processes(); n != 3 {
		t.Errorf("the last worker counts %d processes", n)
	}
	if others, err := leader.Others(t.Context()); err != nil || !slices.Equal(others, []string{"w1:1", "w2:1"}) {
		t.Errorf("the others are %v, %v", others, err)
	}
	if address, err := second.Live(t.Context(), first.Own()); err != nil || address != "w1:1" {
		t.Errorf("the first worker lives at %q, %v", address, err)
	}
	if address, err := second.Live(t.Context(), "unknown"); err != nil || address != "" {
		t.Errorf("an unknown process lives at %q, %v", address, err)
	}

	expireProcess(t, first)
	if err := write(t, first, "expired"); err != nil {
		t.Errorf("nobody has ended the worker: %v", err)
	}
	if address, err := second.Live(t.Context(), first.Own()); err != nil || address != "" {
		t.Errorf("the first worker lives at %q, %v", address, err)
	}
	if err := write(t, first, "ended"); !errors.Is(err, ErrTakenOver) {
		t.Errorf("a worker writes after its end: %v", err)
	}
	if err := first.Held(); !errors.Is(err, ErrTakenOver) || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("held: %v", err)
	}
	leader.StopCalls()
	if err := leader.MayCall(); !errors.Is(err, errStopping) || leader.Held() != nil {
		t.Errorf("may call: %v, held: %v", err, leader.Held())
	}
	select {
	case <-first.Lost():
	case <-time.After(time.Minute):
		t.Error("the worker does not notice its end")
	}

	expireProcess(t, second)
	if ended, err := leader.EndWorkers(t.Context()); err != nil || !slices.Equal(ended, []string{second.Own()}) {
		t.Errorf("ended %v, %v", ended, err)
	}
	if ended, err := leader.EndWorkers(t.Context()); err != nil || len(ended) > 0 {
		t.Errorf("ended again %v, %v", ended, err)
	}
}

// TestAWorkerEndsAServerWhoseLeaseExpired has no second server that could take over.
func TestAWorkerEndsAServerWhoseLeaseExpired(t *testing.T) {
	open := inPostgreSQL(t)
	leader, worker := open(t), open(t)
	lead(t, leader, Server{Owner: "a", Address: "a:1"})
	join(t, worker, Server{Owner: "w", Address: "w:1"})
	if address, err := worker.Live(t.Context(), leader.Own()); err != nil || address != "a:1" {
		t.Errorf("the server lives at %q, %v", address, err)
	}
	expireProcess(t, leader)
	if address, err := worker.Live(t.Context(), leader.Own()); err != nil || address != "" {
		t.Errorf("the server lives at %q, %v", address, err)
	}
	if err := write(t, leader, "late"); !errors.Is(err, ErrTakenOver) {
		t.Errorf("the server writes after its end: %v", err)
	}
	if err := write(t, worker, "on"); err != nil {
		t.Error(err)
	}
	lead(t, open(t), Server{Owner: "b", Address: "b:1"})
}

// TestAWorkerEndsWithTheVersionOfItsServer upgrades the server.
func TestAWorkerEndsWithTheVersionOfItsServer(t *testing.T) {
	open := inPostgreSQL(t)
	leader, worker := open(t), open(t)
	lead(t, leader, Server{Owner: "a", Version: "1"})
	join(t, worker, Server{Owner: "w", Version: "1"})
	leader.Close()
	lead(t, open(t), Server{Owner: "a", Version: "2"})
	select {
	case <-worker.Lost():
	case <-time.After(time.Minute):
		t.Fatal("the worker goes on")
	}
	if err := worker.Held(); !errors.Is(err, ErrOtherVersion) {
		t.Errorf("held: %v", err)
	}
}

// TestProcessesShareSlots takes slots from two processes. The slots of a process that ends are free.
func TestProcessesShareSlots(t *testing.T) {
	open := inPostgreSQL(t)
	leader, worker := open(t), open(t)
	lead(t, leader, Server{Owner: "a"})
	join(t, worker, Server{Owner: "w"})
	full := func(s *Store) bool {
		t.Helper()
		err := s.takeSlot(t.Context(), "probe", "config", 2)
		if err != nil && !errors.Is(err, errNoSlot) {
			t.Fatal(err)
		}
		s.releaseSlot(t.Context(), "probe")
		return err != nil
	}
	take := func(s *Store, name string) (release func()) {
		t.Helper()
		release, err := s.TakeSlot(t.Context(), name, 2)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	release := take(leader, "config")
	take(worker, "config")
	take(worker, "other")
	if !full(leader) || !full(worker) {
		t.Error("a third slot")
	}
	release()
	if full(worker) {
		t.Error("no slot after a release")
	}
	take(leader, "config")
	expireProcess(t, worker)
	if _, err := leader.EndWorkers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if full(leader) {
		t.Error("the slot of a process that has ended is taken")
	}
}

// TestProcessesShareALimit has two processes ask for parts of limits. A process that has ended holds nothing.
func TestProcessesShareALimit(t *testing.T) {
	open := inPostgreSQL(t)
	leader, worker := open(t), open(t)
	lead(t, leader, Server{Owner: "a"})
	join(t, worker, Server{Owner: "w"})
	for _, step := range []struct {
		who        *Store
		limit      string
		want, held int64
		expect     ledger.Share
	}{
		{leader, "config", 16, 0, ledger.Share{Want: 16, Held: 10, Fair: 10}},
		{worker, "config", 4, 0, ledger.Share{Want: 4, Held: 0, Fair: 4}},
		{worker, "other", 4, 0, ledger.Share{Want: 4, Held: 4, Fair: 4}},
		{leader, "config", 16, 10, ledger.Share{Want: 16, Held: 10, Fair: 6}}, // its calls run
		{leader, "config", 16, 7, ledger.Share{Want: 16, Held: 7, Fair: 6}},
		{worker, "config", 4, 0, ledger.Share{Want: 4, Held: 3, Fair: 4}},
		{leader, "config", 0, 0, ledger.Share{}},
		{worker, "config", 16, 3, ledger.Share{Want: 16, Held: 10, Fair: 10}},
		{leader, "config", 1, 0, ledger.Share{Want: 1, Held: 0, Fair: 1}},
	} {
		got, err := step.who.Share(t.Context(), step.limit, 10, ledger.Share{Want: step.want, Held: step.held})
		if err != nil || got != step.expect {
			t.Fatalf("%+v: %+v %v", step, got, err)
		}
	}
	expireProcess(t, worker)
	if _, err := leader.EndWorkers(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := leader.Share(t.Context(), "config", 10, ledger.Share{Want: 16})
	if want := (ledger.Share{Want: 16, Held: 10, Fair: 10}); err != nil || got != want {
		t.Errorf("after the end of the worker: %+v %v, want %+v", got, err, want)
	}
}
