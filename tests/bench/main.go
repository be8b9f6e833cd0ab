// Command bench measures the time from start to ready, the memory and CPU of an idle server, and the time from a file
// to applied infrastructure. It runs the built binaries against a simulated cloud without latency, and removes
// everything at the end.
//
//	go run ./tests/bench -bin bin -mirror .cache/mirror -short
package main

import (
	"cmp"
	"context"
	"errors"
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
	// contributors measures only what it costs to know who wrote a resource.
	contributors bool
	// kinds measures only the cost of 1,500 kinds, with the schemas of a file; "" generates them.
	kinds  bool
	schema string
	// leaf measures only the apply of this number of resources, and plans after a change of one of them; 0 disables it.
	leaf int
	// estate measures only the cost of a namespace with this number of resources; 0 disables it.
	estate int
	// set measures only a ResourceSet with this number of instances; 0 disables it.
	set int
	// results collects the measurements.
	results *results
	// record is the directory for the results; "" records nothing.
	record string
	// repeats is the number of measurements of each kind; 0 means the default.
	repeats int
	// profiles is the directory for profiles of the server beside the hostile namespace; "" records none.
	profiles string
}

func main() {
	var o options
	flag.StringVar(&o.Bin, "bin", "bin", "directory of the built binaries")
	flag.StringVar(&o.Mirror, "mirror", ".cache/mirror", "directory of the provider mirror")
	flag.BoolVar(&o.short, "short", false, "measure what takes less than a minute")
	flag.BoolVar(&o.neighbour, "neighbour", false, "measure only how a hostile namespace delays another")
	flag.BoolVar(&o.contributors, "contributors", false, "measure only writes and plans of resources that many users wrote, beside those that one wrote")
	flag.BoolVar(&o.kinds, "kinds", false, "measure only what a provider with 1,500 kinds costs")
	flag.IntVar(&o.leaf, "leaf", 0, "measure only the apply and destroy of so many resources, and the plans of one changed resource among them")
	flag.IntVar(&o.estate, "estate", 0, "measure only what a namespace with so many resources costs, from the first apply to the destroy")
	flag.IntVar(&o.set, "set", 0, "measure only a ResourceSet with so many instances: plan, apply, a plan without a change, and one percent more")
	flag.StringVar(&o.schema, "schema", "", "a file with the output of `terraform providers schema -json` for -kinds; generated without it")
	flag.IntVar(&o.repeats, "repeats", 0, "number of measurements of each kind; 0 means 5 with -short, 100 with -neighbour and -contributors, else 20")
	flag.StringVar(&o.profiles, "profiles", "", "with -neighbour: directory for a CPU profile and an execution trace of the server")
	attack := flag.String("attack", "", "attack the server of a kubeconfig until the end of the input; -neighbour starts this itself")
	flag.StringVar(&o.record, "record", "", "directory for the results as JSON and as a plot; also writes the table of docs/performance.md")
	flag.Parse()
	o.results = newResults()
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
	if err := measureChosen(ctx, o); err != nil || o.record == "" {
		return err
	}
	return o.results.write(o.record, "docs/performance.md")
}

// measureChosen runs the measurements that the options select, or all.
func measureChosen(ctx context.Context, o options) error {
	const all = 20 // repeats
	switch {
	case o.kinds:
		return measureKinds(ctx, o)
	case o.neighbour:
		repeats := 100 // fewer would end before the hostile namespace has made a plan
		if o.short {
			repeats = 5
		}
		return withBench(ctx, o, func(b *bench) error { return measureNeighbour(ctx, b, cmp.Or(o.repeats, repeats), o.profiles) })
	case o.contributors:
		return withBench(ctx, o, func(b *bench) error { return measureContributors(ctx, b, cmp.Or(o.repeats, 100)) })
	case o.estate > 0:
		return withBench(ctx, o, func(b *bench) error { return measureEstate(ctx, b, o.estate) })
	case o.set > 0:
		return withBench(ctx, o, func(b *bench) error { return measureSet(ctx, b, o.set) })
	case o.leaf > 0:
		return withBench(ctx, o, func(b *bench) error { return measureOne(ctx, b, o.leaf, cmp.Or(o.repeats, all)) })
	case o.short:
		return measureStart(ctx, o, 3, 10*time.Second, cmp.Or(o.repeats, 5))
	}
	if err := measureStart(ctx, o, 5, time.Minute, cmp.Or(o.repeats, all)); err != nil {
		return err
	}
	for _, n := range []int{1000, 10_000} {
		if err := withBench(ctx, o, func(b *bench) error { return measureOne(ctx, b, n, cmp.Or(o.repeats, all)) }); err != nil {
			return err
		}
	}
	o.results.growth(leafPlan, 2)
	o.results.growth(hubPlan, 2)
	if err := withBench(ctx, o, func(b *bench) error { return measureEstate(ctx, b, 10_000) }); err != nil {
		return err
	}
	return measureKinds(ctx, o)
}

// withBench runs f with a started server that has a provider.
func withBench(ctx context.Context, o options, f func(*bench) error) (err error) {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if _, err := b.start(ctx); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return f(b)
}

// measureStart measures starts of the server, the idle server for a time, and one resource.
func measureStart(ctx context.Context, o options, starts int, idle time.Duration, repeats int) (err error) {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
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
	b.results.took("start to ready, new data directory", 0, ready[0])
	b.results.took("start to ready, again", 0, median(ready[1:]))
	if err := measureIdle(ctx, b, 0, idle); err != nil {
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
	b.results.took("write, plan, approve, apply one resource: the command", 0, median(whole))
	b.results.add(measurement{What: "write, plan, approve, apply one resource: the server", Value: median(server).Seconds(), Unit: seconds, AtMost: 0.15})
	return nil
}

// measureIdle lets the server settle, and then measures it for a while. n is the number of its resources.
func measureIdle(ctx context.Context, b *bench, n int, window time.Duration) error {
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
			b.results.add(measurement{What: "idle memory (RSS) with the providers", Resources: n, Value: float64(after.rss) / (1 << 20), Unit: mib})
			b.results.add(measurement{What: "idle CPU of a core, over " + window.String(), Resources: n, Value: 100 * (after.cpu - before.cpu).Seconds() / window.Seconds(), Unit: percent, AtMost: 1})
		}
	}
	return nil
}

func median(d []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(d))[len(d)/2]
}
