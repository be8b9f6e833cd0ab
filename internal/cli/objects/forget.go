package objects

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
)

// ForgetAll marks all targets for deletion without a destroy. It then prints a sentence about the next applied plan, and
// the commands to apply it or to revert the deletion.
func (o *Named) ForgetAll(ctx context.Context, nextPlan string) error {
	var wait []addrs.Target
	err := o.EachTarget(func(t addrs.Target) error {
		t, waits, err := o.forget(ctx, t)
		if waits {
			wait = append(wait, t)
		}
		return err
	})
	if len(wait) > 0 && o.Output == "" {
		ns, _ := NamespaceOf(o.Session, wait[0])
		line, back := "kubectl hykube apply", "kubectl hykube undelete"
		for _, t := range wait {
			line += " --target " + t.Address()
			back += " " + t.Kind() + "/" + t.Name
		}
		fmt.Fprintf(o.ErrOut, "%s:\n  %s -n %s\nUntil then you can take that back:\n  %s -n %s\n", nextPlan, line, ns, back, ns)
	}
	return err
}

// forget sets lifecycle.destroy of an object to false and deletes the object. waits is true if a plan must remove its
// record.
func (o *Named) forget(ctx context.Context, t addrs.Target) (found addrs.Target, waits bool, err error) {
	t, k, ns, err := Find(ctx, o.Session, t)
	if err != nil {
		return t, false, err
	}
	if v1alpha1.OwnerKind(t.Name) == "Module" {
		return t, false, fmt.Errorf("state rm: %s is a resource of a Module. Write a removed block with destroy = false for it in the files of the Module, and remove its block: the next plan forgets it", t.Address())
	}
	if v1alpha1.IsVirtualName(t.Name) {
		return t, false, fmt.Errorf("state rm: %s is an instance of a ResourceSet. Set lifecycle.destroy of the template to false, and then remove the key of the instance, or lower the count: the next plan forgets it", t.Address())
	}
	u, err := MergeAs(ctx, o.Session, StateManager, k, ns, t.Name, map[string]any{"lifecycle": map[string]any{"destroy": false}})
	if err != nil {
		return t, false, err
	}
	if waits, err = Mark(ctx, o.Session, k, ns, u); err == nil {
		o.PrintResult(k, t.Name, map[bool]string{true: "marked to be forgotten", false: "deleted"}[waits])
	}
	return t, waits, err
}
