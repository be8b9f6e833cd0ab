package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/hykube/hykube/activities"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/controller"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/workflows"
)

// stopTimeout is the time that running provider calls have to finish when the server stops.
const stopTimeout = 2 * time.Second

// wire connects the packages: the providers, the ledger, the controllers and the workers.
func wire(_ context.Context, h *server.Components) (server.Wiring, error) {
	fixed, err := loopback.NewClient(h.Loopback)
	if err != nil {
		return server.Wiring{}, err
	}
	core, err := kubernetes.NewForConfig(h.Loopback)
	if err != nil {
		return server.Wiring{}, fmt.Errorf("make client: %w", err)
	}
	containment := contain.New(contain.Config{
		Mode: h.ProviderSandbox, Protected: append([]string{h.DataDir}, h.KeyFiles...), MaxMemory: h.ProviderMemoryLimit,
	})
	if err := containment.UseCgroup(h.ProviderCgroup, h.Logger.With("component", "provider")); err != nil {
		return server.Wiring{}, err
	}
	pool := provider.NewPool(provider.PoolConfig{Logger: h.Logger.With("component", "provider"), Containment: containment, MessageLimit: h.ProviderMessageLimit})
	cat := catalog.New(pool)
	led := ledger.New(h.KV)
	led.Limit = h.RecordLimit
	plans := &loopback.Plans{Stored: h.Plans, Client: fixed}
	configs := &loopback.Configs{Core: core, Stored: h.Objects}
	idx := index.New(h.Objects, led, cat)
	sources := &scope.Sources{
		Objects:  &loopback.Objects{Stored: h.Objects, Kinds: h.Kinds},
		Configs:  configs,
		Access:   rights.Access{Authorizer: h.Authorizer},
		Policies: &loopback.Policies{Client: fixed, Core: core},
		Catalog:  cat,
		Ledger:   led,
		Index:    idx,
		Sessions: session.NewPool(cat),
		Record:   h.Record,
	}
	registered := activities.New(sources, plans, h.Processors, h.Logger.With("component", "activities"))
	settle := func(ctx context.Context, p workflows.Plan) error { return changes.Settle(ctx, sources, p) }
	verify := func(ctx context.Context, p *v1alpha1.Plan) (changes.Verification, error) {
		return changes.Verify(ctx, sources, p)
	}
	judge := func(ctx context.Context, p *v1alpha1.Plan, approvals []v1alpha1.PlanApproval) (*policy.Verdict, error) {
		return changes.Judge(ctx, sources, p, approvals)
	}
	queries := &query.Queries{Sources: sources}
	installer := provider.NewInstaller(provider.InstallerConfig{
		Dir: filepath.Join(h.DataDir, "providers"), MirrorDirs: h.ProviderMirrors, NetworkMirror: h.NetworkMirror, DirectRegistry: true,
		Policy: h.ProviderTrust,
		Logger: h.Logger.With("component", "provider"),
	})
	logger := h.Logger.With("component", "controller")
	providers := &controller.Providers{
		Client: fixed, Installer: installer, Pool: pool, Containment: containment, Catalog: cat, Kinds: h.Kinds, Logger: logger,
		Schemas: controller.Schemas(filepath.Join(h.DataDir, "schemas")),
		Objects: func(ctx context.Context, provider string) iter.Seq2[*unstructured.Unstructured, error] {
			return h.Objects.List(ctx, v1alpha1.ProviderGroup(provider), "")
		},
		Grant: func(ctx context.Context, name string, resources []string) error {
			return access.EnsureRoles(ctx, core, access.ProviderRoles(name, resources), nil)
		},
	}
	run := func(ctx context.Context) error {
		indexing, stopIndexing := context.WithCancel(ctx)
		indexed := make(chan struct{})
		go func() {
			defer close(indexed)
			idx.Run(indexing, providers.Ready, logger)
		}()
		defer func() {
			stopIndexing()
			<-indexed
		}()
		temporal := h.Engine.Client()
		w := worker.New(temporal, workflows.TaskQueue, worker.Options{
			MaxConcurrentActivityExecutionSize: activities.MaxTasks,
			DisableRegistrationAliasing:        true,
			WorkerStopTimeout:                  stopTimeout,
		})
		w.RegisterWorkflowWithOptions(workflows.MakePlan, workflow.RegisterOptions{Name: workflows.PlanName})
		w.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
		registered.Register(w)
		started := false
		defer func() {
			if started {
				w.Stop()
			}
		}()
		work := func() error {
			if err := w.Start(); err != nil {
				return fmt.Errorf("start worker: %w", err)
			}
			started = true
			return nil
		}
		return controller.Run(ctx, providers,
			&controller.Configs{Client: fixed, Core: core.CoreV1().RESTClient(), Secrets: configs, Pool: pool, Catalog: cat, Logger: logger},
			&controller.Plans{Client: fixed, Status: plans, Temporal: temporal, Ledger: led, Settle: settle, Logger: logger, Outdated: h.Kinds.Outdated(),
				History: controller.History{Limit: h.PlanHistoryLimit, Age: h.PlanHistoryAge}, NamespacePlans: h.NamespacePlans},
			work,
		)
	}
	answers := &loopback.Answers{Ledger: led, Stored: h.Objects, Client: fixed, Kinds: h.Kinds}
	return server.Wiring{
		InUse: answers.InUse, Named: answers.Named, Changes: answers.Changes, SaveObjects: answers.SaveObjects, Verify: verify,
		Judge: judge, Automatic: func(ctx context.Context, namespace string) (bool, error) {
			return changes.AutomaticByPolicy(ctx, sources, namespace)
		},
		State: answers.State, Taint: answers.Taint, Undelete: answers.Undelete, Deletion: answers.Deletion, Query: loopback.Query(queries.Query),
		Evaluate: queries.Evaluate, Run: run, Ready: providers.Ready, Close: pool.Close,
	}, nil
}
