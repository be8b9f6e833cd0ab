package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/activities"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/notifying"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/activities/scheduled"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/metrics"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/internal/webhook"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/controller"
	"github.com/hykube/hykube/server/events"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/states"
	"github.com/hykube/hykube/workflows"
)

// stopTimeout is the time that running provider calls have to finish when the server stops.
const stopTimeout = 2 * time.Second

// wire connects the packages: the providers, the ledger, the controllers and the workers.
func wire(_ context.Context, c *server.Components) (server.Wiring, error) {
	fixed, err := loopback.NewClient(c.Loopback)
	if err != nil {
		return server.Wiring{}, err
	}
	core, err := kubernetes.NewForConfig(c.Loopback)
	if err != nil {
		return server.Wiring{}, fmt.Errorf("make client: %w", err)
	}
	counted, err := metrics.New(c.Metrics)
	if err != nil {
		return server.Wiring{}, err
	}
	providers, err := newProviders(c, fixed, core, counted)
	if err != nil {
		return server.Wiring{}, err
	}
	plans := &loopback.Plans{Stored: c.Plans, Client: fixed}
	secrets := &loopback.Configs{Core: core, Stored: c.Objects}
	sources, objects := newSources(c, fixed, core, secrets, providers.Catalog)
	sources.Metrics = counted
	recorder := events.NewRecorder(core, counted)
	objects.Events = recorder
	registered := activities.New(sources, plans, c.Processors, c.Hold, c.Logger.With("component", "activities"))
	configs := &controller.Configs{
		Client: fixed, Core: core.CoreV1().RESTClient(), Secrets: secrets, Pool: providers.Pool,
		Catalog: providers.Catalog,
		Ledger:  sources.Ledger, Logger: providers.Logger,
	}
	queries := &query.Queries{Sources: sources}
	stored := &loopback.Stacks{Client: fixed, Core: core, Queries: queries, Access: sources.Access}
	stacks := newStacks(sources, stored, c.Hold.Frozen, providers.Logger)
	notifier := &notifying.Notifier{
		Objects: &loopback.Notifications{Client: fixed, Plans: plans, Stacks: stored}, Secrets: secrets,
		Access: sources.Access,
		Sender: &webhook.Client{Allow: c.NotificationNetworks}, Metrics: counted,
		Logger: c.Logger.With("component", "notification"),
	}
	run := func(ctx context.Context) error {
		if c.Worker {
			sources.Index.Changed = nil
		}
		defer runIndex(ctx, sources.Index, providers)()
		temporal := c.Engine.Client()
		stacks.Schedules = &controller.Schedules{Temporal: temporal.ScheduleClient()}
		if users := c.Engine.Users(); users != nil {
			stacks.Runs = &controller.UserRuns{Service: users.Service(), Prepare: users.Prepare, Room: c.WorkflowRoom,
				Key: sources.Ledger.ContentsKey, Stamps: c.Stamps}
		}
		newWorker := func(onFatal func(error)) worker.Worker {
			return newWorker(temporal, registered, &scheduled.Requests{Stacks: stored, Metrics: counted}, notifier,
				onFatal)
		}
		planned := &controller.Plans{Client: fixed, Status: plans, Temporal: temporal, Ledger: sources.Ledger,
			Logger: providers.Logger, Written: c.Kinds.Written(),
			History:        controller.History{Limit: c.PlanHistoryLimit, Age: c.PlanHistoryAge},
			NamespacePlans: c.NamespacePlans, Hold: c.Hold,
			Terminating: sources.Configs.Terminating,
			Judge: func(ctx context.Context, po *v1alpha1.Plan) (*policy.Verdict, error) {
				return changes.JudgeWaiting(ctx, sources, po)
			},
			OtherSecrets: func(ctx context.Context, po *v1alpha1.Plan, config string) (bool, error) {
				return changes.OtherSecrets(ctx, sources, po, config)
			},
			LostRights: func(ctx context.Context, po *v1alpha1.Plan) (string, error) {
				return changes.LostRights(ctx, sources, po)
			}}
		stop := func() {}
		defer func() { stop() }()
		watched := metrics.Sources{Plans: planned.Counts, Resources: sources.Index.Counts, Overdue: stacks.Overdue,
			Processes: providers.Pool.Processes}
		work := func() error {
			if err := metrics.Watch(c.Metrics, watched); err != nil {
				return err
			}
			end, err := c.Engine.RunWorker(ctx, newWorker)
			if err != nil {
				return fmt.Errorf("start worker: %w", err)
			}
			stop = end
			return nil
		}
		if c.Worker {
			// The server counts its plans and stacks.
			watched.Plans = func() (map[string]int, time.Duration) { return nil, 0 }
			watched.Overdue = func() map[string]time.Duration { return nil }
			return controller.RunWorker(ctx, providers, work)
		}
		return controller.Run(ctx, providers, configs, planned,
			&controller.ResourceSets{Index: sources.Index, Update: objects.UpdateSetStatus,
				Release: objects.RemoveSetFinalizer, Forget: sources.Ledger.ForgetStatuses,
				UpdateModule: objects.UpdateModuleStatus, ReleaseModule: objects.RemoveModuleFinalizer,
				Outputs: queries.ModuleOutputs, Logger: providers.Logger},
			stacks, &controller.Notifications{Client: fixed, Temporal: temporal, Secrets: secrets,
				Frozen: c.Hold.Frozen, Logger: providers.Logger}, recorder, work,
		)
	}
	answers := &loopback.Answers{Ledger: sources.Ledger, Stored: c.Objects, Client: fixed, Kinds: c.Kinds,
		Modules: sources.Index}
	return server.Wiring{
		Backend: newBackend(sources, objects, answers, providers, stacks, queries, c.Hold.Frozen),
		Infrastructure: kinds.Infrastructure{
			State: answers.State, Taint: answers.Taint, Resolve: answers.Resolve, Forget: answers.Forget,
			Undelete: answers.Undelete, Deletion: answers.Deletion,
			Instance: objects.Instance, InstanceStatus: objects.UpdateInstanceStatus, SetAt: objects.Index.KnownSetAt,
			SetOf: objects.Index.KnownSetOf,
		},
		Changes: answers.Changes,
		Verify: func(ctx context.Context, p *v1alpha1.Plan) (changes.Verification, error) {
			return changes.Verify(ctx, sources, p)
		},
		SaveObjects: answers.SaveObjects, RebuildIndex: sources.Index.Rebuild, Run: run, Ready: providers.Ready,
		Close: func(ctx context.Context) error { recorder.Close(); return providers.Pool.Close(ctx) },
	}, nil
}

// newBackend returns the functions that answer requests for the fixed kinds.
func newBackend(sources *scope.Sources, objects *loopback.Objects, answers *loopback.Answers,
	providers *controller.Providers, stacks *controller.Stacks,
	queries *query.Queries, frozen func(namespace string) bool) registry.Backend {
	terraform := states.New(sources, frozen)
	return registry.Backend{
		InUse: answers.InUse, ProviderNamespaces: objects.Index.OfProvider, Named: answers.Named,
		Instances: objects.Instances, Index: objects.Index, Instance: objects.Located, Record: sources.Ledger.Instance,
		DestroysInstances: answers.DestroysInstances, ModuleDeletion: answers.ModuleDeletion,
		FormerSet: objects.Index.LeftAt,
		Judge: func(ctx context.Context, p *v1alpha1.Plan, in changes.Judged) (*policy.Verdict, error) {
			return changes.Judge(ctx, sources, p, in)
		},
		Automatic: func(ctx context.Context, namespace string) (bool, error) {
			return changes.AutomaticByPolicy(ctx, sources, namespace)
		},
		CurrentStacks: func(ctx context.Context, namespace string) {
			// An error means that the server cannot tell what changed. The read then shows the last known state.
			if providers.Ready() == nil && sources.Index.Refresh(ctx) == nil {
				stacks.Current(ctx, namespace)
			}
		},
		SelectsAny: func(ctx context.Context, namespace string, selects func(labels.Set) bool) (bool, error) {
			if providers.Ready() != nil {
				return true, nil // without the providers' schemas, the index would have to read the objects twice
			}
			return planning.SelectsAny(ctx, sources, namespace, selects)
		},
		CancelRun: func(ctx context.Context, s *v1alpha1.Stack, reason string) (bool, error) {
			if err := providers.Ready(); err != nil { // the engine starts
				return false, err
			}
			return stacks.CancelRun(ctx, s, reason)
		},
		Query: loopback.Query(queries.Query), Evaluate: queries.Evaluate,
		PushState: terraform.Push, PullState: terraform.Pull,
	}
}

// runIndex keeps the index up to date in the background until the caller calls stop.
func runIndex(ctx context.Context, x *index.Index, providers *controller.Providers) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.Run(ctx, providers.Ready, providers.Logger)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// newProviders returns the controller of Providers, with an empty pool and an empty catalog.
func newProviders(c *server.Components, fixed rest.Interface, core kubernetes.Interface,
	counted *metrics.Metrics) (*controller.Providers, error) {
	logger := c.Logger.With("component", "provider")
	containment := contain.New(contain.Config{
		Mode: c.ProviderSandbox, Protected: append([]string{c.DataDir}, c.KeyFiles...),
		MaxMemory: c.ProviderMemoryLimit,
	})
	if err := containment.UseCgroup(c.ProviderCgroup, logger); err != nil {
		return nil, err
	}
	pool := provider.NewPool(provider.PoolConfig{Logger: logger, Containment: containment,
		MessageLimit: c.ProviderMessageLimit, Called: counted.Call})
	installer := provider.NewInstaller(provider.InstallerConfig{
		Dir: filepath.Join(c.DataDir, "providers"), MirrorDirs: c.ProviderMirrors, NetworkMirror: c.NetworkMirror,
		DirectRegistry: true,
		Policy:         c.ProviderTrust, Logger: logger,
	})
	return &controller.Providers{
		Client: fixed, Installer: installer, Pool: pool, Containment: containment, Catalog: catalog.New(pool),
		Kinds:   c.Kinds,
		Logger:  c.Logger.With("component", "controller"),
		Schemas: controller.Schemas(filepath.Join(c.DataDir, "schemas")),
		Objects: func(ctx context.Context, provider string) iter.Seq2[*unstructured.Unstructured, error] {
			return c.Objects.List(ctx, v1alpha1.ProviderGroup(provider), "")
		},
		Grant: func(ctx context.Context, name string, resources []string) error {
			return access.EnsureRoles(ctx, core, access.ProviderRoles(name, resources), nil)
		},
	}, nil
}

// newSources returns the sources of values for plans, and the objects among them.
func newSources(c *server.Components, fixed rest.Interface, core kubernetes.Interface, configs store.Configs,
	installed *catalog.Catalog) (*scope.Sources, *loopback.Objects) {
	records := ledger.New(c.KV)
	records.Limit = c.RecordLimit
	idx := index.New(c.Objects, records, installed)
	idx.Persist(c.Snapshots, c.Logger.With("component", "index"))
	objects := &loopback.Objects{Stored: c.Objects, Kinds: c.Kinds, Index: idx, Ledger: records, Client: fixed}
	return &scope.Sources{
		Objects:   objects,
		Sets:      objects,
		Configs:   configs,
		Access:    rights.Access{Authorizer: c.Authorizer},
		Users:     c.Users,
		Policies:  &loopback.Policies{Client: fixed, Core: core},
		Catalog:   installed,
		Ledger:    records,
		Processes: c.Processes,
		Index:     idx,
		Sessions:  session.NewPool(installed, c.Processes, c.Logger.With("component", "session")),
		Record:    c.Record,
		Creates:   scope.NewCreates(),
	}, objects
}

// newStacks returns the controller of Stacks. The index calls it after a change in a namespace.
func newStacks(sources *scope.Sources, stacks *loopback.Stacks, frozen func(namespace string) bool,
	logger *slog.Logger) *controller.Stacks {
	c := controller.NewStacks(controller.StacksConfig{
		Client: stacks.Client, Update: stacks.UpdateStatus, Outputs: stacks.Outputs, Written: stacks.Written,
		Access: sources.Access, Users: sources.Users, Frozen: frozen, Logger: logger,
		Select: func(ctx context.Context, who *v1alpha1.Identity, namespace string,
			selects func(labels.Set) bool) (*planning.Selection, error) {
			return planning.Select(ctx, sources, who, namespace, selects)
		},
	})
	sources.Index.Changed = c.NamespaceChanged
	return c
}

// newWorker returns a worker for all workflows and activities. The caller starts it. onFatal is called if the worker
// ends by itself.
func newWorker(temporal client.Client, registered *activities.Activities, requests *scheduled.Requests,
	notifier *notifying.Notifier, onFatal func(error)) worker.Worker {
	w := worker.New(temporal, workflows.TaskQueue, worker.Options{
		MaxConcurrentActivityExecutionSize: activities.MaxTasks,
		DisableRegistrationAliasing:        true,
		WorkerStopTimeout:                  stopTimeout,
		OnFatalError:                       onFatal,
	})
	w.RegisterWorkflowWithOptions(workflows.MakePlan, workflow.RegisterOptions{Name: workflows.PlanName})
	w.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
	w.RegisterWorkflowWithOptions(workflows.DriftCheck, workflow.RegisterOptions{Name: workflows.DriftCheckName})
	w.RegisterWorkflowWithOptions(workflows.ScheduledPlan, workflow.RegisterOptions{Name: workflows.ScheduledPlanName})
	w.RegisterWorkflowWithOptions(workflows.Notify, workflow.RegisterOptions{Name: workflows.NotifyName})
	registered.Register(w)
	requests.Register(w)
	notifier.Register(w)
	return w
}
