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
	began := time.Now()
	took, own, err := b.run(ctx, networksOf("hub", n), "apply", "-f", "-", "--all", "--auto-approve")
	if err != nil {
		return err
	}
	report(fmt.Sprintf("the command, %d resources that refer to one", n), "%s, of which its own processor time is %s", ms(took), ms(own))
	if _, err := b.reportPhases(ctx, began); err != nil {
		return err
	}
	if err := b.reportScreen(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		args []string
	}{
		{"plan without a change", []string{"plan"}},
		{"plan without a change, every resource read", []string{"plan", "--refresh=All"}},
	} {
		if took, _, err = b.run(ctx, nil, step.args...); err != nil {
			return err
		}
		if err := b.reportStep(step.what, took); err != nil {
			return err
		}
	}
	if err := measureIdle(ctx, b, time.Minute); err != nil {
		return err
	}
	if err := b.Stop(); err != nil {
		return err
	}
	if took, err = b.start(ctx); err != nil {
		return err
	}
	if err := b.reportStep("restart to ready", took); err != nil {
		return err
	}
	if took, _, err = b.run(ctx, nil, "plan"); err != nil {
		return err
	}
	if err := b.reportStep("the first plan after it, without a change", took); err != nil {
		return err
	}
	if took, _, err = b.run(ctx, nil, "destroy", "--all", "--auto-approve"); err != nil {
		return err
	}
	return b.reportStep("destroy of all", took)
}

// reportStep reports how long a step took, and the most memory that the server has used since its start.
func (b *bench) reportStep(what string, took time.Duration) error {
	peak, err := peakMemory(b.Pid())
	if err != nil {
		return err
	}
	report(what, "%s; at most %d MB so far", ms(took), peak>>20)
	return nil
}

// reportScreen reports how long it takes until the first lines of the last plan are shown.
func (b *bench) reportScreen(ctx context.Context) error {
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
	report("show of the plan", "the first %d lines after %s, all after %s", lines, ms(first), ms(time.Since(began)))
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
