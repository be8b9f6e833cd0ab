package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/hykube/hykube/activities"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/controller"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/server/storage"
	"github.com/hykube/hykube/workflows"
)

// concurrentActivities bounds the activities of this process; most of their time they wait for a provider.
const concurrentActivities = 256

// join connects the rooms of the house: the providers, the ledger, the controllers and the workers.
func join(_ context.Context, h *server.House) (server.Rooms, error) {
	fixed, err := loopback.NewClient(h.Loopback)
	if err != nil {
		return server.Rooms{}, err
	}
	core, err := kubernetes.NewForConfig(h.Loopback)
	if err != nil {
		return server.Rooms{}, fmt.Errorf("make client: %w", err)
	}
	objects, err := dynamic.NewForConfig(h.Loopback)
	if err != nil {
		return server.Rooms{}, fmt.Errorf("make client: %w", err)
	}
	pool := provider.NewPool(provider.PoolConfig{Logger: h.Logger.With("component", "provider")})
	cat := catalog.New(pool)
	led := ledger.New(h.KV)
	plans := &loopback.Plans{Client: fixed}
	configs := &loopback.Configs{Client: fixed, Core: core}
	hands := activities.New(activities.Config{
		Objects: &loopback.Objects{Stored: h.Objects, Client: objects, Kinds: h.Kinds, Catalog: cat},
		Plans:   plans,
		Configs: configs,
		Access:  &loopback.Access{Core: core},
		Catalog: cat,
		Ledger:  led,
		Logger:  h.Logger.With("component", "activities"),
	})
	directories, network, err := mirrors(h.ProviderMirrors)
	if err != nil {
		return server.Rooms{}, err
	}
	installer := provider.NewInstaller(provider.InstallerConfig{
		Dir: filepath.Join(h.DataDir, "providers"), MirrorDirs: directories, NetworkMirror: network, DirectRegistry: true,
		Logger: h.Logger.With("component", "provider"),
	})
	run := func(ctx context.Context) error {
		temporal := h.Engine.Client()
		w := worker.New(temporal, workflows.TaskQueue, worker.Options{
			MaxConcurrentActivityExecutionSize: concurrentActivities,
			DisableRegistrationAliasing:        true,
		})
		w.RegisterWorkflowWithOptions(workflows.MakePlan, workflow.RegisterOptions{Name: workflows.PlanName})
		w.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
		hands.Register(w)
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		defer w.Stop()
		logger := h.Logger.With("component", "controller")
		return controller.Run(ctx,
			&controller.Providers{Client: fixed, Installer: installer, Pool: pool, Catalog: cat, Kinds: h.Kinds, Logger: logger},
			&controller.Configs{Client: fixed, Core: core.CoreV1().RESTClient(), Secrets: configs, Pool: pool, Catalog: cat, Logger: logger},
			&controller.Plans{Client: fixed, Status: plans, Temporal: temporal, Ledger: led, Logger: logger},
		)
	}
	return server.Rooms{
		InUse: func(ctx context.Context, obj metav1.Object) (int, string, error) { return inUse(ctx, led, h.Objects, obj) },
		Changes: func(ctx context.Context, p *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
			return changes(ctx, led, p, limit, cont)
		},
		State: func(ctx context.Context, obj metav1.Object, k kinds.Kind) ([]byte, error) {
			return state(ctx, led, obj, k)
		},
		Run:   run,
		Close: pool.Close,
	}, nil
}

// mirrors tells mirror directories from the one network mirror that there may be.
func mirrors(places []string) (directories []string, network string, err error) {
	for _, place := range places {
		switch {
		case !strings.Contains(place, "://"):
			directories = append(directories, place)
		case network != "":
			return nil, "", fmt.Errorf("--provider-mirror: %q and %q are both network mirrors, and there can be one", network, place)
		default:
			network = place
		}
	}
	return directories, network, nil
}

// inUse counts what a Provider or a ProviderConfig stands behind: the living instances, and for a Provider the objects of
// its kinds, too, which nobody could see or delete without it.
func inUse(ctx context.Context, led *ledger.Ledger, objects *storage.Objects, obj metav1.Object) (n int, example string, err error) {
	count := func(kind, namespace, name string) {
		if n++; n == 1 {
			example = fmt.Sprintf("%s/%s in the namespace %q", kind, name, namespace)
		}
	}
	if _, isConfig := obj.(*v1alpha1.ProviderConfig); !isConfig {
		for o, err := range objects.List(ctx, v1alpha1.ProviderGroup(obj.GetName()), "") {
			if err != nil {
				return 0, "", err
			}
			count(o.GetKind(), o.GetNamespace(), o.GetName())
		}
		return n, example, nil
	}
	for rec, err := range led.Instances(ctx, obj.GetNamespace()) {
		if err != nil {
			return 0, "", err
		}
		if rec.ProviderConfig == obj.GetName() && (rec.Exists() || rec.Intent != nil) {
			count(rec.Object.Kind, rec.Object.Namespace, rec.Object.Name)
		}
	}
	return n, example, nil
}

// defaultChanges is the length of a page of changes when the client names none.
const defaultChanges = 500

// changes reads a page of a plan's changes, masked as they are stored.
func changes(ctx context.Context, led *ledger.Ledger, p *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
	from := int64(0)
	if cont != "" {
		var err error
		if from, err = strconv.ParseInt(cont, 10, 32); err != nil || from < 0 {
			return nil, fmt.Errorf("list changes of plan %q: the continue parameter is not one that this server gave", p.Name)
		}
	}
	if limit <= 0 {
		limit = defaultChanges
	}
	list := &v1alpha1.PlanChangeList{Items: []v1alpha1.PlanChange{}}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("PlanChangeList"))
	for c, err := range led.Changes(ctx, p.UID, int32(from)) {
		if err != nil {
			return nil, err
		}
		if len(list.Items) == limit {
			list.Continue = strconv.Itoa(int(c.Index))
			break
		}
		list.Items = append(list.Items, c.PlanChange)
	}
	return list, nil
}

// state is what the subresource "state" answers: the raw provider state, secrets included. Nil when there is none.
func state(ctx context.Context, led *ledger.Ledger, obj metav1.Object, k kinds.Kind) ([]byte, error) {
	rec, err := led.Instance(ctx, v1alpha1.ObjectReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	})
	if err != nil || !rec.Exists() {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"type": rec.Type, "provider": rec.Provider, "providerVersion": rec.ProviderVersion, "schemaVersion": rec.SchemaVersion,
		"attributes": rec.Attributes, "tainted": rec.Tainted, "dependencies": rec.Dependencies,
	})
}
