package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// measureSet measures one ResourceSet with n instances, of a type whose provider takes batches: the plan and apply of all, a
// plan without a change, and the plan and apply of one percent more. It writes the set with kubectl, so each is planned once.
func measureSet(ctx context.Context, b *bench, n int) error {
	if _, err := b.Kubectl(ctx, setOf(n), "apply", "-f", "-"); err != nil {
		return err
	}
	if _, _, err := b.apply(ctx, n, nil); err != nil {
		return err
	}
	took, _, err := b.run(ctx, nil, "plan")
	if err != nil {
		return err
	}
	b.results.took("set: plan without a change", n, took)
	if _, err := b.Kubectl(ctx, setOf(n+n/100), "apply", "-f", "-"); err != nil {
		return err
	}
	if took, _, err = b.run(ctx, nil, "apply", "--all", "--auto-approve"); err != nil {
		return err
	}
	b.results.took("set: plan and apply of 1 % more: the command", n, took)
	peak, err := peakMemory(b.Pid())
	if err != nil {
		return err
	}
	b.results.add(measurement{What: "set: the most memory of the server", Resources: n, Value: float64(peak) / (1 << 20), Unit: mib, AtMost: 4 << 10})
	size, err := databaseSize(b.Dir)
	if err != nil {
		return err
	}
	b.results.add(measurement{What: "set: size of the databases", Resources: n, Value: float64(size) / (1 << 20), Unit: mib, AtMost: 4 << 10})
	return nil
}

// setOf returns the manifest of a ResourceSet with n instances.
func setOf(n int) string {
	return fmt.Sprintf(`apiVersion: hykube.io/v1alpha1
kind: ResourceSet
metadata: {name: fleet, namespace: %s}
spec:
  count: %d
  template:
    apiVersion: sim.hykube.io/v1
    kind: sim-network
    spec: {name: "fleet-${count.index}", cidr: 10.0.0.0/16}
`, namespace, n)
}

// databaseSize returns the size of the SQLite files below a directory, in bytes.
func databaseSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(e.Name(), ".db") {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
