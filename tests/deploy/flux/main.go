// Command flux applies the objects of its standard input and waits for them as Flux's kustomize-controller does for a
// Kustomization with "wait: true", or with a health check of one kind. It uses the same library with the same options.
// It is a module of its own, because the product needs no part of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the server")
	namespace := flag.String("namespace", "default", "namespace of the objects, as targetNamespace of a Kustomization")
	timeout := flag.Duration("timeout", time.Minute, "maximum time to wait, as timeout of a Kustomization")
	kind := flag.String("health-check", "", "kind of the objects to wait for, as healthChecks of a Kustomization; all by default")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, *kubeconfig, *namespace, *kind, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, kubeconfig, namespace, kind string, timeout time.Duration) error {
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("read objects: %w", err)
	}
	if len(objects) == 0 {
		return errors.New("the standard input has no objects")
	}
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 300 // the controller's defaults
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return err
	}
	manager := ssa.NewResourceManager(c, polling.NewStatusPoller(c, mapper, polling.Options{}),
		ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	manager.SetOwnerLabels(objects, "web", namespace)
	set, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, e := range set.Entries {
		fmt.Println(e)
	}
	wait := set.ToObjMetadataSet()
	if kind != "" {
		wait = slices.DeleteFunc(wait, func(o object.ObjMetadata) bool { return o.GroupKind.Kind != kind })
	}
	// The controller polls each five seconds.
	start := time.Now()
	if err := manager.WaitForSet(wait, ssa.WaitOptions{Interval: time.Second, Timeout: timeout, FailFast: true}); err != nil {
		return fmt.Errorf("health check failed after %s: %w", time.Since(start).Round(time.Second), err)
	}
	return nil
}
