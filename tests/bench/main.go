// Command bench measures the time from start to ready, the memory and CPU of an idle server, and the time from a file
// to applied infrastructure. It runs the built binaries against a simulated cloud without latency, and removes
// everything at the end.
//
//	go run ./tests/bench -bin bin -mirror .cache/mirror -short
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/hykube/hykube/tests/harness"
)

// options are what to measure, and with what.
type options struct {
	harness.Binaries
	short bool
	// neighbour measures only how one namespace delays another.
	neighbour bool
	// kinds measures only the cost of 1,500 kinds, with the schemas of a file; "" generates them.
	kinds  bool
	schema string
	// leaf measures only a plan of one changed resource among so many, and hub one of a changed resource to which so many
	// refer. If both are 0, everything is measured.
	leaf, hub int
	// estate measures only what a namespace with so many resources costs; 0 means not to.
	estate int
	// repeats is the number of measurements of each kind; 0 means the default.
	repeats int
	// profiles is the directory for profiles of the server beside the hostile namespace; empty means none.
	profiles string
}

func main() {
	var o options
	flag.StringVar(&o.Bin, "bin", "bin", "directory of the built binaries")
	flag.StringVar(&o.Mirror, "mirror", ".cache/mirror", "directory of the provider mirror")
	flag.BoolVar(&o.short, "short", false, "measure what takes less than a minute")
	flag.BoolVar(&o.neighbour, "neighbour", false, "measure only how a hostile namespace delays another")
	flag.BoolVar(&o.kinds, "kinds", false, "measure only what a provider with 1,500 kinds costs")
	flag.IntVar(&o.leaf, "leaf", 0, "measure only a plan of one changed resource among so many")
	flag.IntVar(&o.hub, "hub", 0, "measure only a plan of one changed resource that so many refer to")
	flag.IntVar(&o.estate, "estate", 0, "measure only what a namespace with so many resources costs, from the first apply to the destroy")
	flag.StringVar(&o.schema, "schema", "", "a file with the output of `terraform providers schema -json` for -kinds; generated without it")
	flag.IntVar(&o.repeats, "repeats", 0, "number of measurements of each kind; 0 means 5 with -short, 100 with -neighbour, else 20")
	flag.StringVar(&o.profiles, "profiles", "", "with -neighbour: directory for a CPU profile and an execution trace of the server")
	attack := flag.String("attack", "", "attack the server of a kubeconfig until the end of the input; -neighbour starts this itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, o) }
	if *attack != "" {
		do = func() error { return attackUntil(ctx, *attack, os.Stdin) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if !o.kinds {
		if err := measure(ctx, o); err != nil || o.short || o.neighbour || o.leaf > 0 || o.hub > 0 || o.estate > 0 {
			return err
		}
	}
	return measureKinds(ctx, o)
}

func measure(ctx context.Context, o options) (err error) {
	b, err := newBench(o.Binaries)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := b.close(); err == nil {
			err = cerr
		}
	}()
	starts, idle, repeats := 3, 10*time.Second, 5
	if !o.short {
		starts, idle, repeats = 5, time.Minute, 20
	}
	if o.neighbour && !o.short {
		repeats = 100 // fewer would end before the hostile namespace has made a plan
	}
	repeats = cmp.Or(o.repeats, repeats)
	if o.neighbour {
		if _, err := b.start(ctx); err != nil {
			return err
		}
		if err := b.prepare(ctx); err != nil {
			return err
		}
		return measureNeighbour(ctx, b, repeats, o.profiles)
	}
	if o.leaf > 0 || o.hub > 0 || o.estate > 0 {
		if _, err := b.start(ctx); err != nil {
			return err
		}
		if err := b.prepare(ctx); err != nil {
			return err
		}
		if o.estate > 0 {
			return measureEstate(ctx, b, o.estate)
		}
		return measureOne(ctx, b, max(o.leaf, o.hub), repeats, o.hub > 0)
	}
	var ready []time.Duration
	for i := range starts {
		if i > 0 {
			if err := b.Stop(); err != nil {
				return err
			}
		}
		took, err := b.start(ctx)
		if err != nil {
			return err
		}
		ready = append(ready, took)
	}
	report("start to ready, new data directory", "%s", ms(ready[0]))
	report("start to ready, again", "%s", ms(median(ready[1:])))

	if err := measureIdle(ctx, b, idle); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	var whole, server []time.Duration
	for i := range repeats + 1 {
		w, err := b.applyFile(ctx, fmt.Sprintf("cli-%d", i), 1)
		if err != nil {
			return err
		}
		s, err := b.applyDirectly(ctx, fmt.Sprintf("api-%d", i))
		if err != nil {
			return err
		}
		if i > 0 { // the first one warms the provider's process up
			whole, server = append(whole, w), append(server, s)
		}
	}
	report("write, plan, approve, apply one resource: the command", "%s", ms(median(whole)))
	report("write, plan, approve, apply one resource: the server", "%s", ms(median(server)))
	if !o.short {
		for _, n := range []int{100, 1000} {
			took, err := b.applyFile(ctx, fmt.Sprintf("many-%d", n), n)
			if err != nil {
				return err
			}
			report(fmt.Sprintf("the command, %d resources", n), "%s", ms(took))
		}
		for _, n := range []int{1000, 10_000} {
			if err := measureOne(ctx, b, n, repeats, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureIdle lets the server settle, then looks at it for a while.
func measureIdle(ctx context.Context, b *bench, window time.Duration) error {
	for _, d := range []time.Duration{3 * time.Second, window} {
		before, err := usageOf(b.Pid())
		if err != nil {
			return err
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
		after, err := usageOf(b.Pid())
		if err != nil {
			return err
		}
		if d == window {
			report("idle memory (RSS)", "%.0f MB", float64(after.rss)/1e6)
			report(fmt.Sprintf("idle CPU over %s", window), "%.2f %% of a core", 100*(after.cpu-before.cpu).Seconds()/window.Seconds())
		}
	}
	return nil
}

func report(what, format string, args ...any) {
	fmt.Printf("%-56s %s\n", what, fmt.Sprintf(format, args...))
}

func ms(d time.Duration) string { return d.Round(time.Millisecond).String() }

func median(d []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(d))[len(d)/2]
}
