package engine

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/hykube/hykube/internal/atomicfile"
)

const (
	recoveryTimeout = time.Minute
	// recoveryWorkflows is the maximum number of running workflows to examine, newest first. The activities of others
	// wait until their heartbeats expire.
	recoveryWorkflows = 10_000
	recoveryParallel  = 8
	identityFile      = "identities"
	identitiesKept    = 16
)

// newIdentity returns the identity of the worker in a process.
func newIdentity(process string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return "hykube@" + host + processMark(cmp.Or(process, rand.Text()))
}

// processMark returns the end of the identity of the worker in a process.
func processMark(process string) string {
	return "/" + strings.ToLower(process[:min(len(process), 10)])
}

// rememberIdentity adds the identity to those in the data directory and returns the earlier ones. It must be durable
// before the first activity starts with this identity.
func rememberIdentity(dir, identity string) (previous []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("store engine identity: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if file, err := root.Open(identityFile); err == nil {
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				previous = append(previous, line)
			}
		}
		_ = file.Close()
	}
	// Keep several identities: a run that ended during its recovery has left activities of earlier runs unfinished.
	previous = previous[max(0, len(previous)-identitiesKept):]
	return previous, writeIdentities(dir, append(slices.Clone(previous), identity))
}

func writeIdentities(dir string, identities []string) error {
	if err := atomicfile.Write(filepath.Join(dir, identityFile), []byte(strings.Join(identities, "\n")+"\n"),
		0o600); err != nil {
		return fmt.Errorf("store engine identity: %w", err)
	}
	return nil
}

// recover fails the activities that earlier runs of this server started and cannot finish. So their retry policies
// apply at once and not after the heartbeat timeout. It searches twice, because a workflow that began right before a
// crash becomes visible only later.
func (e *Engine) recover(ctx context.Context, previous []string) {
	if len(previous) == 0 || !e.failOf(ctx, func(identity string) bool { return slices.Contains(previous, identity) }) {
		return
	}
	// Only now may the earlier identities be removed.
	if err := writeIdentities(e.dir, []string{e.identity}); err != nil {
		e.logger.Warn("cannot remove the identities of earlier runs", "error", err)
	}
}

// FailActivities fails the activities of processes that have ended.
func (e *Engine) FailActivities(ctx context.Context, processes []string) {
	e.failOf(ctx, func(identity string) bool {
		return slices.ContainsFunc(processes,
			func(process string) bool { return strings.HasSuffix(identity, processMark(process)) })
	})
}

// failOf fails the activities of workers that have ended. It returns false after an error.
func (e *Engine) failOf(ctx context.Context, ended func(identity string) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	begin := time.Now()
	var failed, examined int
	for _, pause := range []time.Duration{0, time.Second} {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		f, l, err := e.failAbandoned(ctx, ended)
		failed, examined = failed+f, l
		if err != nil {
			if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				e.logger.Warn("cannot fail all activities of processes that have ended; Temporal retries the others when their heartbeats expire", "failed", failed, "error", err)
			}
			return false
		}
	}
	if failed > 0 {
		e.logger.Info("failed the activities of processes that have ended, so that Temporal retries them", "activities",
			failed,
			"workflows", examined, "took", time.Since(begin).Round(time.Millisecond))
	}
	return true
}

// failAbandoned examines the running workflows once.
func (e *Engine) failAbandoned(ctx context.Context,
	ended func(identity string) bool) (failed, examined int, err error) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		errs   []error
		tokens = make(chan struct{}, recoveryParallel)
		page   []byte
	)
	defer wg.Wait()
	for examined < recoveryWorkflows {
		list, err := e.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: e.config.Namespace, Query: `ExecutionStatus = "Running"`, PageSize: 500, NextPageToken: page,
		})
		if err != nil {
			return failed, examined, fmt.Errorf("list running workflows: %w", err)
		}
		for _, execution := range list.GetExecutions() {
			examined++
			tokens <- struct{}{}
			wg.Go(func() {
				defer func() { <-tokens }()
				n, err := e.failActivities(ctx, execution.GetExecution(), ended)
				mu.Lock()
				defer mu.Unlock()
				failed += n
				if err != nil {
					errs = append(errs, err)
				}
			})
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	wg.Wait()
	return failed, examined, errors.Join(errs...)
}

func (e *Engine) failActivities(ctx context.Context, execution *commonpb.WorkflowExecution,
	ended func(identity string) bool) (int, error) {
	description, err := e.client.DescribeWorkflowExecution(ctx, execution.GetWorkflowId(), execution.GetRunId())
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("describe workflow %q: %w", execution.GetWorkflowId(), err)
	}
	failed := 0
	for _, activity := range description.GetPendingActivities() {
		if !abandoned(activity, ended) {
			continue
		}
		err := e.client.CompleteActivityByID(ctx, e.config.Namespace, execution.GetWorkflowId(), execution.GetRunId(),
			activity.GetActivityId(), nil,
			temporal.NewApplicationErrorWithOptions("the server that ran this activity has stopped", "ServerStopped",
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond}))
		if isNotFound(err) {
			continue // it timed out or ended in the meantime
		}
		if err != nil {
			return failed, fmt.Errorf("fail activity %q of workflow %q: %w", activity.GetActivityId(),
				execution.GetWorkflowId(), err)
		}
		failed++
		e.logger.Debug("failed an activity of an earlier run", "workflow", execution.GetWorkflowId(),
			"activity", activity.GetActivityType().GetName(), "attempt", activity.GetAttempt())
	}
	return failed, nil
}

// abandoned reports whether a worker that has ended started an activity and has not completed it.
func abandoned(activity *workflowpb.PendingActivityInfo, ended func(identity string) bool) bool {
	switch activity.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_STARTED, enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
		enumspb.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED:
		return ended(activity.GetLastWorkerIdentity())
	}
	return false
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
