package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// ownerKey is the key in the data of a user's Temporal namespace with the UID of its Kubernetes namespace.
	ownerKey = "hykube.io/namespace-uid"
	// Limits of one Temporal namespace. Above keptExecutions, the server deletes the oldest finished executions. Above
	// the others, it starts none.
	runningExecutions = 2000
	keptExecutions    = 10_000
	storedExecutions  = 20_000
	maxSchedules      = 50
	// countFor is the time for which the server reuses a count of executions.
	countFor = 5 * time.Second
	// countLimit is the maximum time of a count.
	countLimit = 10 * time.Second
	// listDelay is the time after which a count has an execution for sure.
	listDelay = 2 * time.Second
	// prepareLimit is the maximum time of the preparation of a namespace.
	prepareLimit = 20 * time.Second
	// cleanEvery is the interval at which finished executions above the limit are deleted, and those of removed
	// namespaces.
	cleanEvery = time.Minute
	// limitedPause is the pause after a request that a rate limit refused.
	limitedPause = 200 * time.Millisecond
	// maxOwnAnswer is the maximum size of an answer to the server itself in bytes. A page of a list has memos and
	// search attributes, and the server must be able to delete executions of any size.
	maxOwnAnswer = 128 << 20
	// cleanPage is the number of executions that are deleted together.
	cleanPage = 500
	// cleanLimit is the maximum time for which the server cleans one namespace before the next one.
	cleanLimit = 20 * time.Second
)

// UserNamespaces are the Temporal namespaces for the workflows of users, one for each Kubernetes namespace. Only an
// embedded server has them.
type UserNamespaces struct {
	// Owner returns the UID of a Kubernetes namespace; ok is false if it does not exist or is being deleted.
	Owner func(namespace string) (uid string, ok bool)

	service workflowservice.WorkflowServiceClient
	conn    *grpc.ClientConn
	main    *config.SQL
	logger  *slog.Logger

	preparing, counting singleflight.Group

	mu       sync.Mutex
	prepared map[string]preparedNamespace
	counts   map[string]counted
}

type preparedNamespace struct{ id, owner string }

// counted is the number of executions that a namespace could still start at a time. err is the error for further ones.
// recent has the starts that a count may not have.
type counted struct {
	at     time.Time
	left   int64
	err    error
	recent []started
}

// started is a number of executions that Room permitted at a time.
type started struct {
	at     time.Time
	number int64
}

func newUserNamespaces(f frontend, main *config.SQL, logger *slog.Logger) (*UserNamespaces, error) {
	conn, err := f.connect()
	if err != nil {
		return nil, fmt.Errorf("connect the service for users: %w", err)
	}
	return &UserNamespaces{
		conn: conn, service: workflowservice.NewWorkflowServiceClient(operatorConn{conn}), main: main, logger: logger,
		prepared: map[string]preparedNamespace{}, counts: map[string]counted{},
	}, nil
}

// operatorConn is a connection for the server's own requests. They have priority over those of users. Otherwise users
// could use up the rate limit of a namespace, and the server could not delete their runs.
type operatorConn struct{ *grpc.ClientConn }

// Invoke implements grpc.ClientConnInterface. It repeats a request that a rate limit refuses until ctx ends.
func (c operatorConn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	ctx = metadata.AppendToOutgoingContext(ctx, headers.CallerTypeHeaderName, headers.CallerTypeOperator)
	options = append(options, grpc.MaxCallRecvMsgSize(maxOwnAnswer))
	for {
		err := c.ClientConn.Invoke(ctx, method, request, reply, options...)
		if status.Code(err) != codes.ResourceExhausted {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(limitedPause):
		}
	}
}

// Connection returns the connection to the frontend.
func (u *UserNamespaces) Connection() grpc.ClientConnInterface { return u.conn }

// Service returns the service for the server's own requests, which have priority over those of users.
func (u *UserNamespaces) Service() workflowservice.WorkflowServiceClient { return u.service }

// Prepare creates the Temporal namespace of a Kubernetes namespace if it does not exist, and returns its ID. If it has
// runs of a removed Kubernetes namespace of the same name, Prepare deletes them first. Its errors are those of gRPC.
func (u *UserNamespaces) Prepare(ctx context.Context, namespace string) (id string, err error) {
	owner, ok := u.Owner(namespace)
	if !ok {
		return "", status.Errorf(codes.NotFound, "namespace %q does not exist, or is being deleted", namespace)
	}
	u.mu.Lock()
	p, ok := u.prepared[namespace]
	u.mu.Unlock()
	if ok && p.owner == owner {
		return p.id, nil
	}
	// All callers that wait share one preparation, so it does not end with one of them.
	made, err, _ := u.preparing.Do(namespace, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), prepareLimit)
		defer cancel()
		return u.prepare(ctx, namespace, owner)
	})
	if err != nil {
		u.logger.Warn("cannot prepare a Temporal namespace of users", "namespace", namespace, "error", err)
		return "", status.Errorf(codes.Unavailable, "prepare the Temporal namespace %q: %v",
			v1alpha1.TemporalNamespace(namespace), err)
	}
	p = made.(preparedNamespace)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.prepared[namespace] = p
	return p.id, nil
}

func (u *UserNamespaces) prepare(ctx context.Context, namespace, owner string) (preparedNamespace, error) {
	name := v1alpha1.TemporalNamespace(namespace)
	p, err := u.describe(ctx, name)
	if status.Code(err) == codes.NotFound {
		if err = createNamespace(u.main, name, map[string]string{ownerKey: owner}); err == nil {
			p, err = u.describe(ctx, name)
		}
		if err == nil {
			err = u.awaitVisible(ctx, name)
		}
	}
	if err == nil && p.owner != owner {
		if err = u.empty(ctx, name); err == nil {
			_, err = u.service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
				Namespace: name, UpdateInfo: &namespacepb.UpdateNamespaceInfo{Data: map[string]string{ownerKey: owner}},
			})
		}
	}
	p.owner = owner
	return p, err
}

// awaitVisible waits until the frontend forgets that a namespace did not exist, which takes a second.
func (u *UserNamespaces) awaitVisible(ctx context.Context, name string) error {
	for {
		_, err := u.count(ctx, name, "")
		if status.Code(err) != codes.NotFound {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for Temporal to find its new namespace: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (u *UserNamespaces) describe(ctx context.Context, name string) (preparedNamespace, error) {
	d, err := u.service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return preparedNamespace{}, err
	}
	return preparedNamespace{id: d.GetNamespaceInfo().GetId(), owner: d.GetNamespaceInfo().GetData()[ownerKey]}, nil
}

// runningQuery selects running executions.
const runningQuery = `ExecutionStatus = "Running"`

// Room returns an error of gRPC if a namespace may not start a number of workflow executions, or may have no further
// schedule. Between two counts, it subtracts the started executions.
func (u *UserNamespaces) Room(ctx context.Context, namespace string, starts int, schedule bool) error {
	name := v1alpha1.TemporalNamespace(namespace)
	if schedule {
		page, err := u.service.ListSchedules(ctx,
			&workflowservice.ListSchedulesRequest{Namespace: name, MaximumPageSize: maxSchedules})
		if err != nil {
			return err
		}
		if len(page.GetSchedules()) >= maxSchedules {
			return status.Errorf(codes.ResourceExhausted,
				"namespace %q has %d schedules, which is the maximum; delete some", namespace, maxSchedules)
		}
	}
	for {
		u.mu.Lock()
		known, ok := u.counts[namespace]
		if ok && time.Since(known.at) < countFor {
			defer u.mu.Unlock()
			if known.left < int64(starts) {
				return known.err
			}
			known.left -= int64(starts)
			known.recent = append(known.recent, started{time.Now(), int64(starts)})
			u.counts[namespace] = known
			return nil
		}
		u.mu.Unlock()
		// Callers share one count. A second count would not have the starts that the first one permitted a moment ago.
		if _, err, _ := u.counting.Do(namespace, func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countLimit)
			defer cancel()
			return nil, u.recount(ctx, namespace, name)
		}); err != nil {
			return err
		}
	}
}

// recount counts the executions of a namespace, and subtracts the starts that the count may not have.
func (u *UserNamespaces) recount(ctx context.Context, namespace, name string) error {
	began := time.Now()
	c, err := u.room(ctx, namespace, name)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.counts[namespace].recent {
		if began.Sub(s.at) < listDelay {
			c.left -= s.number
			c.recent = append(c.recent, s)
		}
	}
	u.counts[namespace] = c
	return nil
}

// room counts the executions of a namespace.
func (u *UserNamespaces) room(ctx context.Context, namespace, name string) (counted, error) {
	running, err := u.count(ctx, name, runningQuery)
	if err != nil {
		return counted{}, err
	}
	stored, err := u.count(ctx, name, "")
	if err != nil {
		return counted{}, err
	}
	c := counted{at: time.Now(), left: max(0, min(runningExecutions-running, storedExecutions-stored))}
	if runningExecutions-running <= storedExecutions-stored {
		c.err = status.Errorf(codes.ResourceExhausted, "namespace %q has %d running workflows, and may have %d",
			namespace, running, runningExecutions)
	} else {
		c.err = status.Errorf(codes.ResourceExhausted,
			"namespace %q has %d workflow executions, and may have %d; the server deletes the oldest finished ones in a minute", namespace, stored, storedExecutions)
	}
	return c, nil
}

func (u *UserNamespaces) count(ctx context.Context, name, query string) (int64, error) {
	c, err := u.service.CountWorkflowExecutions(ctx,
		&workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: query})
	return c.GetCount(), err
}

// clean keeps the namespaces within their limits until ctx ends.
func (u *UserNamespaces) clean(ctx context.Context) {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := u.cleanAll(ctx); err != nil && ctx.Err() == nil {
			u.logger.Warn("cannot clean the Temporal namespaces of users", "error", err)
		}
	}
}

func (u *UserNamespaces) cleanAll(ctx context.Context) error {
	var errs []error
	for token, first := []byte(nil), true; first || len(token) > 0; first = false {
		page, err := u.service.ListNamespaces(ctx,
			&workflowservice.ListNamespacesRequest{PageSize: 100, NextPageToken: token})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, d := range page.GetNamespaces() {
			name, owner := d.GetNamespaceInfo().GetName(), d.GetNamespaceInfo().GetData()[ownerKey]
			namespace, ok := v1alpha1.NamespaceOfTemporal(name)
			if !ok || owner == "" { // the server's own
				continue
			}
			uid, exists := u.Owner(namespace)
			errs = append(errs, u.cleanOne(ctx, name, exists && uid == owner))
		}
		token = page.GetNextPageToken()
	}
	return errors.Join(errs...)
}

// cleanOne cleans one Temporal namespace. exists reports whether its Kubernetes namespace exists. The next call
// continues if the time is up.
func (u *UserNamespaces) cleanOne(ctx context.Context, name string, exists bool) (err error) {
	limited, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if exists {
		err = errors.Join(u.stop(limited, name, runningExecutions), u.trim(limited, name, keptExecutions))
	} else {
		err = u.empty(limited, name)
	}
	if limited.Err() != nil {
		return ctx.Err()
	}
	return err
}

// stop terminates the newest running executions of a Temporal namespace above the limit. Schedules start executions
// without a request that could be refused.
func (u *UserNamespaces) stop(ctx context.Context, name string, limit int64) error {
	running, err := u.count(ctx, name, runningQuery)
	for left := running - limit; err == nil && left > 0; {
		var page *workflowservice.ListWorkflowExecutionsResponse
		page, err = u.service.ListWorkflowExecutions(ctx,
			&workflowservice.ListWorkflowExecutionsRequest{Namespace: name, PageSize: int32(min(left, cleanPage)),
				Query: runningQuery})
		if err != nil || len(page.GetExecutions()) == 0 {
			break
		}
		for _, e := range page.GetExecutions() {
			_, terr := u.service.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
				Namespace: name, WorkflowExecution: e.GetExecution(),
				Reason: fmt.Sprintf("the namespace has more than %d running workflows", limit),
			})
			if terr != nil && status.Code(terr) != codes.NotFound {
				return terr
			}
			left--
		}
	}
	return err
}

// trim deletes the oldest finished executions of a Temporal namespace above the limit.
func (u *UserNamespaces) trim(ctx context.Context, name string, limit int64) error {
	stored, err := u.count(ctx, name, "")
	if err != nil || stored <= limit {
		return err
	}
	// The list begins with the newest, so the oldest are at its end.
	skipped := int64(0)
	for token, first := []byte(nil), true; first || len(token) > 0; first = false {
		page, err := u.service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: name, PageSize: cleanPage, NextPageToken: token, Query: `ExecutionStatus != "Running"`,
		})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			if skipped++; skipped <= limit {
				continue
			}
			if err := u.deleteExecution(ctx, name, e.GetExecution().GetWorkflowId(),
				e.GetExecution().GetRunId()); err != nil {
				return err
			}
		}
		token = page.GetNextPageToken()
	}
	return nil
}

// empty deletes all schedules and all executions of a Temporal namespace, including running ones.
func (u *UserNamespaces) empty(ctx context.Context, name string) error {
	for {
		schedules, err := u.service.ListSchedules(ctx,
			&workflowservice.ListSchedulesRequest{Namespace: name, MaximumPageSize: cleanPage})
		if err != nil {
			return err
		}
		for _, s := range schedules.GetSchedules() {
			_, err := u.service.DeleteSchedule(ctx,
				&workflowservice.DeleteScheduleRequest{Namespace: name, ScheduleId: s.GetScheduleId()})
			if err != nil && status.Code(err) != codes.NotFound {
				return err
			}
		}
		page, err := u.service.ListWorkflowExecutions(ctx,
			&workflowservice.ListWorkflowExecutionsRequest{Namespace: name, PageSize: cleanPage})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			if err := u.deleteExecution(ctx, name, e.GetExecution().GetWorkflowId(),
				e.GetExecution().GetRunId()); err != nil {
				return err
			}
		}
		if len(schedules.GetSchedules())+len(page.GetExecutions()) == 0 {
			return nil
		}
		select { // the list follows the deletions with a delay
		case <-ctx.Done():
			return fmt.Errorf("delete the runs of an earlier namespace: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (u *UserNamespaces) deleteExecution(ctx context.Context, name, workflowID, runID string) error {
	_, err := u.service.DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
	})
	if status.Code(err) == codes.NotFound { // it was deleted, and the list does not know yet
		return nil
	}
	return err
}
