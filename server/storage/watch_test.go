package storage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// opens is how many watches TestWatchesLoseNothing opens: a short form unless the long one is asked for.
var opens = flag.Int("opens", 600, "how many watches to open and close")

// next reads one response.
func next(t *testing.T, from clientv3.WatchChan) (clientv3.WatchResponse, bool) {
	t.Helper()
	select {
	case r, ok := <-from:
		return r, ok
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came within 10 s")
	}
	return clientv3.WatchResponse{}, false
}

func TestWatchStartsInThePast(t *testing.T) {
	s := openStore(t)
	first := put(t, s, "/registry/a/1", "one", 0)
	second := put(t, s, "/registry/a/1", "two", first)
	put(t, s, "/registry/b/1", "other", 0)
	var got []string
	w := s.client.Watch(t.Context(), "/registry/a/", clientv3.WithPrefix(), clientv3.WithRev(first))
	put(t, s, "/registry/a/2", "three", 0)
	for len(got) < 3 {
		r, ok := next(t, w)
		if !ok || r.Err() != nil {
			t.Fatalf("the watch ended: %v", r.Err())
		}
		for _, e := range r.Events {
			got = append(got, fmt.Sprintf("%s=%s", e.Kv.Key, e.Kv.Value))
			if e.Kv.ModRevision == second && (e.PrevKv == nil || string(e.PrevKv.Value) != "one") {
				t.Errorf("the update has the previous value %v", e.PrevKv)
			}
		}
	}
	if want := "/registry/a/1=one /registry/a/1=two /registry/a/2=three"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWatchFromAMissingRevisionFails watches from revisions that are compacted, and that a restored database never had.
func TestWatchFromAMissingRevisionFails(t *testing.T) {
	s := openStore(t)
	last := put(t, s, "/registry/a/1", "one", 0)
	r, _ := next(t, s.client.Watch(t.Context(), "/registry/a/", clientv3.WithPrefix(), clientv3.WithRev(last+1000)))
	if !errors.Is(r.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from the future: %v, want %v, so that the client lists again", r.Err(), rpctypes.ErrCompacted)
	}
}

// TestSlowWatchEndsAlone lets one watch read nothing while another reads everything.
func TestSlowWatchEndsAlone(t *testing.T) {
	s := openStore(t)
	slow := s.client.Watch(t.Context(), "/registry/a/", clientv3.WithPrefix())
	quick := s.client.Watch(t.Context(), "/registry/a/", clientv3.WithPrefix())
	const count = 40
	value := strings.Repeat("x", maxQueuedBytes/20)
	done := make(chan int)
	go func() {
		seen := 0
		for r := range quick {
			if seen += len(r.Events); seen == count {
				break
			}
		}
		done <- seen
	}()
	for i := range count {
		put(t, s, fmt.Sprintf("/registry/a/%d", i), value, 0)
	}
	select {
	case seen := <-done:
		if seen != count {
			t.Errorf("the quick watch ended after %d of %d events", seen, count)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the quick watch has not seen everything within 20 s")
	}
	seen := 0
	for r, ok := next(t, slow); ok; r, ok = next(t, slow) {
		if r.Err() != nil {
			t.Errorf("the slow watch ended with %v; its client should watch again from where it was", r.Err())
		}
		seen += len(r.Events)
	}
	if seen >= count {
		t.Errorf("the slow watch had all %d events in memory", seen)
	}
}

func TestProgressIsNeverAheadOfEvents(t *testing.T) {
	s := openStore(t)
	asked := s.client.Watch(withProgress(t.Context()), "/registry/a/", clientv3.WithPrefix())
	silent := s.client.Watch(t.Context(), "/registry/a/", clientv3.WithPrefix())
	for i := range 50 {
		mine := put(t, s, fmt.Sprintf("/registry/a/%d", i), "x", 0)
		other := put(t, s, fmt.Sprintf("/registry/b/%d", i), "x", 0)
		seen := false
		for passed := int64(0); passed < other; {
			if err := s.client.RequestProgress(t.Context()); err != nil {
				t.Fatal(err)
			}
			var r clientv3.WatchResponse
			select {
			case r = <-asked:
			case <-time.After(5 * time.Millisecond):
				continue
			}
			if passed = r.Header.Revision; r.IsProgressNotify() && passed >= mine && !seen {
				t.Fatalf("progress to %d came before the event of %d", passed, mine)
			}
			seen = seen || len(r.Events) > 0
		}
	}
	for range 50 {
		if r, ok := next(t, silent); !ok || len(r.Events) == 0 {
			t.Fatal("a watch that did not ask for progress got it, or ended")
		} else if len(r.Events) > 1 {
			break
		}
	}
}

// TestWatchesLoseNothing opens and closes watches at random while keys are written. Some pause, some end and watch again. Each
// compares every revision that it got with what was written.
func TestWatchesLoseNothing(t *testing.T) {
	s := openStore(t)
	// The memory that kine needs for the first watch and the first write does not count.
	ctx, end := context.WithCancel(t.Context())
	first := s.client.Watch(ctx, "/registry/first")
	put(t, s, "/registry/first", "x", 0)
	next(t, first)
	end()
	next(t, first)
	before := runtime.NumGoroutine()
	log := &written{}
	writing, stopWriting := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() { log.write(writing, t, s, i) })
	}
	var clients sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range *opens {
		slots <- struct{}{}
		clients.Go(func() {
			defer func() { <-slots }()
			log.follow(t, s, rand.New(rand.NewPCG(uint64(i), 1)))
		})
	}
	clients.Wait()
	stopWriting()
	writers.Wait()
	t.Logf("%d watches, %d writes, %d events compared", *opens, len(log.revisions), log.compared)
	if log.compared < *opens {
		t.Errorf("only %d events were compared", log.compared)
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// written records the written revisions by prefix.
type written struct {
	mu        sync.Mutex
	revisions map[int64]string // to the prefix
	compared  int
}

func prefixOf(i int) string { return fmt.Sprintf("/registry/kind%d/", i) }

// write writes and deletes keys below one prefix until ctx ends.
func (l *written) write(ctx context.Context, t *testing.T, s *Store, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s%d", prefixOf(i), n)
		revision := put(t, s, key, "value", 0)
		l.add(revision, prefixOf(i))
		if n%3 == 0 {
			r, err := s.client.Txn(context.WithoutCancel(ctx)).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
				Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key)).Commit()
			if err != nil || !r.Succeeded {
				t.Errorf("delete %s: %v", key, err)
				return
			}
			l.add(r.Header.Revision, prefixOf(i))
		}
		time.Sleep(time.Millisecond) // limits the rate of the writers, so that the watches use most of the time
	}
}

func (l *written) add(revision int64, prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revisions == nil {
		l.revisions = map[int64]string{}
	}
	l.revisions[revision] = prefix
}

// follow is one client: it watches one prefix or all, for a while, from the present or the past, with pauses, and watches again
// from where it was.
func (l *written) follow(t *testing.T, s *Store, random *rand.Rand) {
	key := "/registry/kind"
	if i := random.IntN(6); i < 4 {
		key = prefixOf(i)
	}
	now, err := s.client.KV.Get(t.Context(), key)
	if err != nil {
		t.Error(err)
		return
	}
	from := max(now.Header.Revision-random.Int64N(200), 2)
	last := from - 1
	var got []int64
	for range 1 + random.IntN(3) {
		ctx, end := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(60))*time.Millisecond)
		for r := range s.client.Watch(ctx, key, clientv3.WithPrefix(), clientv3.WithRev(last+1)) {
			if r.Err() != nil {
				t.Errorf("watch from %d: %v", last+1, r.Err())
			}
			for _, e := range r.Events {
				if e.Kv.ModRevision <= last || !strings.HasPrefix(string(e.Kv.Key), key) {
					t.Errorf("watch of %s got %s at %d after %d", key, e.Kv.Key, e.Kv.ModRevision, last)
				}
				last = e.Kv.ModRevision
				got = append(got, last)
			}
			if random.IntN(8) == 0 {
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // a pause of the client
			}
		}
		end()
	}
	l.compare(t, key, from, last, got)
}

// compare expects got to have all revisions that were written below key from one revision to another. The writer
// records a revision shortly after the watches may receive it.
func (l *written) compare(t *testing.T, key string, from, to int64, got []int64) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		l.mu.Lock()
		missed, noted := 0, 0
		has := make(map[int64]bool, len(got))
		for _, r := range got {
			if has[r] = true; l.revisions[r] != "" {
				noted++
			}
		}
		for r := from; r <= to; r++ {
			if strings.HasPrefix(l.revisions[r], key) && !has[r] {
				missed++
			}
		}
		if noted == len(got) {
			l.compared += len(got)
		}
		l.mu.Unlock()
		if missed > 0 {
			t.Errorf("watch of %s from %d to %d missed %d events", key, from, to, missed)
			return
		}
		if noted == len(got) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("watch of %s got %d events, of which %d were written", key, len(got), noted)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCanary stops the delivery and expects an error.
func TestCanary(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir(), CanaryInterval: 50 * time.Millisecond})
	until := func(what string, holds func(error) bool) {
		t.Helper()
		eventually(t, what, func() bool { return holds(s.Delivers()) })
	}
	until("the canary is seen", func(err error) bool {
		s.canary.mu.Lock()
		defer s.canary.mu.Unlock()
		return err == nil && s.canary.seen > 0
	})
	s.watches.mu.Lock()
	until("it fails when nothing is delivered", func(err error) bool { return err != nil })
	s.watches.mu.Unlock()
	until("it recovers", func(err error) bool { return err == nil })
	s.watches.mu.Lock()
	for one := range s.watches.open {
		one.cancel() // as for a watch that is too slow
	}
	s.watches.mu.Unlock()
	seen := func() int64 {
		s.canary.mu.Lock()
		defer s.canary.mu.Unlock()
		return s.canary.seen
	}
	last := seen()
	until("it watches again after its watch ended", func(err error) bool { return err == nil && seen() > last+1 })
}
