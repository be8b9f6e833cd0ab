package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// measureEstate measures a namespace with n networks that all refer to one: the apply of all, the first screen of the
// plan, plans without a change, a full refresh, an idle minute, a restart, and the destroy of all.
func measureEstate(ctx context.Context, b *bench, n int) error {
	if _, _, err := b.apply(ctx, n, networksOf("hub", n)); err != nil {
		return err
	}
	if err := b.reportScreen(ctx, n); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		args []string
	}{
		{"plan without a change", []string{"plan"}},
		{"plan without a change, every resource read", []string{"plan", "--refresh=All"}},
	} {
		took, _, err := b.run(ctx, nil, step.args...)
		if err != nil {
			return err
		}
		b.results.took(step.what, n, took)
	}
	if err := measureIdle(ctx, b, n, time.Minute); err != nil {
		return err
	}
	peak, err := peakMemory(b.Pid())
	if err != nil {
		return err
	}
	b.results.add(measurement{What: "the most memory of the server, before its restart", Resources: n, Value: float64(peak) / (1 << 20), Unit: mib, AtMost: 3 << 10})
	if err := b.Stop(); err != nil {
		return err
	}
	took, err := b.start(ctx)
	if err != nil {
		return err
	}
	b.results.add(measurement{What: "restart to ready", Resources: n, Value: took.Seconds(), Unit: seconds, AtMost: 5})
	if took, _, err = b.run(ctx, nil, "plan"); err != nil {
		return err
	}
	b.results.add(measurement{What: "the first plan after a restart, without a change", Resources: n, Value: took.Seconds(), Unit: seconds, AtMost: 10})
	if took, _, err = b.run(ctx, nil, "destroy", "--all", "--auto-approve"); err != nil {
		return err
	}
	b.results.took("destroy of all: the command", n, took)
	return nil
}

// reportScreen reports how long it takes until the first lines of the last plan are shown.
func (b *bench) reportScreen(ctx context.Context, n int) error {
	list, err := b.client.Resource(plans).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return fmt.Errorf("list plans: %d, %w", len(list.Items), err)
	}
	const lines = 40
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := b.Command(ctx, "kubectl-hykube", "show", latest(list.Items).GetName(), "-n", namespace)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	screen := bufio.NewScanner(out)
	for i := 0; i < lines && screen.Scan(); i++ { //nolint:revive // only reads
	}
	first := time.Since(began)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("show plan: %w", err)
	}
	b.results.add(measurement{What: fmt.Sprintf("show of the plan, the first %d lines", lines), Resources: n, Value: first.Seconds(), Unit: seconds, AtMost: 1})
	b.results.took("show of the plan, all lines", n, time.Since(began))
	return nil
}

// peakMemory returns the largest resident memory of a process so far, in bytes, without the processes below it.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("measure process (Linux only): %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("measure process %d: it has no VmHWM", pid)
}
