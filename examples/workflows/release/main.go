// Command release is a worker with a workflow that a stack starts instead of making a plan. It is an example of spec.workflow
// on the package sdk/steps.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/sdk/steps"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the user that the worker acts as")
	flag.Parse()
	if err := work(*kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// work runs a worker until it is interrupted.
func work(kubeconfig string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	options, err := steps.ConnectOptions(config, namespace)
	if err != nil {
		return err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	c, err := client.NewLazyClient(options) // lazy: the server may restart meanwhile
	if err != nil {
		return err
	}
	defer c.Close()
	activities, err := steps.New(config, namespace)
	if err != nil {
		return err
	}
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(Release)
	activities.Register(w)
	return w.Run(worker.InterruptCh())
}
