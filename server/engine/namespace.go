package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
)

const (
	// claimKey is the key in a namespace's data that names the installation to which the namespace belongs.
	claimKey = "hykube.io/installation"
	// namespaceInterval is the time between two looks whether an external cluster still has the namespace, and between
	// two attempts to start a worker again.
	namespaceInterval = 5 * time.Second
)

// register registers the namespace and its search attributes where they are missing, and claims the namespace.
func (e *Engine) register(ctx context.Context) error {
	if err := ensureNamespace(ctx, e.client, e.config.Namespace); err != nil {
		return err
	}
	if err := e.claim(ctx); err != nil {
		return err
	}
	return ensureSearchAttributes(ctx, e.client, e.config.Namespace)
}

// claim notes in the namespace of an external cluster that it belongs to this installation. It returns an error if
// another one has it: their workers would take each other's tasks, about plans that they do not have, so plans would
// wait for ever.
func (e *Engine) claim(ctx context.Context) error {
	if e.config.Address == "" || e.config.Installation == "" {
		return nil
	}
	for {
		found, err := e.client.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: e.config.Namespace})
		if err != nil {
			return fmt.Errorf("look up Temporal namespace %q: %w", e.config.Namespace, err)
		}
		switch owner := found.GetNamespaceInfo().GetData()[claimKey]; owner {
		case e.config.Installation:
			return nil
		case "":
		default:
			return fmt.Errorf("the Temporal namespace %q belongs to another installation of Hykube (%s; this one is %s): give this server a namespace of its own with --temporal-namespace. "+
				"If that installation no longer exists: temporal operator namespace update --data %s=%s %s",
				e.config.Namespace, owner, e.config.Installation, claimKey, e.config.Installation, e.config.Namespace)
		}
		// Two servers may claim it at once, so the namespace is read again.
		_, err = e.client.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace:  e.config.Namespace,
			UpdateInfo: &namespacepb.UpdateNamespaceInfo{Data: map[string]string{claimKey: e.config.Installation}},
		})
		_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
		if _, missing := errors.AsType[*serviceerror.Unimplemented](err); denied || missing {
			e.logger.Warn("cannot note in the Temporal namespace to which installation it belongs; no other one may use it", "namespace", e.config.Namespace, "error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("claim Temporal namespace %q: %w", e.config.Namespace, err)
		}
	}
}

// watchNamespace registers the namespace of an external cluster again when the cluster has lost it, as after a restore
// of Temporal's database.
func (e *Engine) watchNamespace(ctx context.Context) {
	ticker := time.NewTicker(namespaceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		e.checkNamespace(ctx)
	}
}

func (e *Engine) checkNamespace(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := e.client.WorkflowService().DescribeNamespace(asked,
		&workflowservice.DescribeNamespaceRequest{Namespace: e.config.Namespace})
	if _, lost := errors.AsType[*serviceerror.NamespaceNotFound](err); !lost {
		return
	}
	err = fmt.Errorf("the Temporal cluster has lost the namespace %q, which the server registers again: %w",
		e.config.Namespace, err)
	e.lost.Store(&err)
	e.logger.Warn("the Temporal cluster has lost the namespace", "namespace", e.config.Namespace)
	if err := e.register(ctx); err != nil {
		err = fmt.Errorf("the Temporal cluster has lost the namespace: %w", err)
		e.lost.Store(&err)
		return
	}
	e.lost.Store(nil)
	e.logger.Info("registered the namespace again; the plans that run begin again from their records", "namespace",
		e.config.Namespace)
}

// RunWorker starts a worker, which the caller stops with the returned function. The SDK ends a worker for ever when the
// cluster has no such namespace for minutes. RunWorker then starts another one. Until it runs, Healthy returns the
// reason.
func (e *Engine) RunWorker(ctx context.Context,
	newWorker func(onFatal func(error)) worker.Worker) (stop func(), err error) {
	failed := make(chan error, 1)
	next := func() (worker.Worker, error) {
		w := newWorker(func(err error) { failed <- err })
		return w, w.Start()
	}
	w, err := next()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { w.Stop() }()
		for {
			select {
			case <-ctx.Done():
				return
			case err = <-failed:
			}
			for err != nil {
				reason := fmt.Errorf("the worker ended, and the server starts another one: %w", err)
				e.worker.Store(&reason)
				e.logger.Warn("the worker ended; the server starts another one", "error", err)
				w.Stop()
				select {
				case <-ctx.Done():
					return
				case <-time.After(namespaceInterval):
				}
				w, err = next()
			}
			e.worker.Store(nil)
		}
	}()
	return func() { cancel(); <-ended }, nil
}
