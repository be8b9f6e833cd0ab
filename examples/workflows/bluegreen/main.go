// Command bluegreen is a worker and a client for a rollout of servers: a new set replaces an old one. It is an example of
// a workflow of one's own on the package sdk/steps.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/sdk/steps"
)

const usage = `usage: bluegreen [--kubeconfig FILE] worker
       bluegreen [--kubeconfig FILE] start ID ROLLOUT.json
       bluegreen [--kubeconfig FILE] decide ID promote|rollback
       bluegreen [--kubeconfig FILE] wait ID`

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bluegreen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bluegreen", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the user that the worker acts as")
	flags.Usage = func() { fmt.Fprintln(flags.Output(), usage) }
	if err := flags.Parse(args); err != nil {
		return err
	}
	// The workflow takes a decision once, and a word that it does not know would take the rollout back.
	if word := flags.Arg(2); flags.NArg() == 3 && flags.Arg(0) == "decide" && word != promote && word != rollback {
		return fmt.Errorf("the decision %q is neither %q nor %q, so it was not sent", word, promote, rollback)
	}
	config, namespace, err := load(*kubeconfig)
	if err != nil {
		return err
	}
	options, err := steps.ConnectOptions(config, namespace)
	if err != nil {
		return err
	}
	// Without a logger, Temporal's client prints each step to the standard output.
	options.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	// A lazy client waits for the server if the worker starts while the server restarts.
	c, err := client.NewLazyClient(options)
	if err != nil {
		return err
	}
	defer c.Close()
	switch {
	case flags.NArg() == 1 && flags.Arg(0) == "worker":
		return work(c, config, namespace)
	case flags.NArg() == 3 && flags.Arg(0) == "start":
		return start(ctx, c, flags.Arg(1), flags.Arg(2))
	case flags.NArg() == 3 && flags.Arg(0) == "decide":
		return c.SignalWorkflow(ctx, flags.Arg(1), "", decisionSignal, flags.Arg(2))
	case flags.NArg() == 2 && flags.Arg(0) == "wait":
		return wait(ctx, c, flags.Arg(1))
	}
	return errors.New(usage)
}

// load reads a kubeconfig and returns the namespace of its context.
func load(path string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// work runs a worker until it is interrupted.
func work(c client.Client, config *rest.Config, namespace string) error {
	activities, err := steps.New(config, namespace)
	if err != nil {
		return err
	}
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(BlueGreen)
	activities.Register(w)
	return w.Run(worker.InterruptCh())
}

// start starts a rollout. The workflow ID is the name of the service, so that only one rollout of it runs at once.
func start(ctx context.Context, c client.Client, id, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var in Rollout
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true}, BlueGreen, in)
	if err != nil {
		return err
	}
	fmt.Printf("workflow %s started, run %s\n", run.GetID(), run.GetRunID())
	return nil
}

// wait waits for the end of a rollout and prints its result.
func wait(ctx context.Context, c client.Client, id string) error {
	var out Result
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &out); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
