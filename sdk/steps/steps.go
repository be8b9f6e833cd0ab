package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// heartbeatEvery is the interval of the heartbeats to the SDK, which forwards only as many as Temporal needs.
	heartbeatEvery = time.Second
	// lastHeartbeat is the maximum time for which a step that has ended waits for a heartbeat.
	lastHeartbeat = time.Second
	// watchPause is the pause between two watches, and watchLimit is the maximum time of one.
	watchPause = time.Second
	watchLimit = 5 * time.Minute
)

// errStopping ends the attempt of a step when its worker stops. Another worker, or the next one, continues the step at
// once.
var errStopping = errors.New("the worker stops; another one continues the step")

// Steps are the activities of a worker.
type Steps struct {
	hykube    rest.Interface // hykube.io/v1alpha1
	objects   dynamic.Interface
	mapper    meta.ResettableRESTMapper
	namespace string
}

// New returns the activities that act with the credentials of config. namespace is the namespace of steps that name
// none. It sends no request.
func New(config *rest.Config, namespace string) (*Steps, error) {
	if namespace == "" {
		return nil, errors.New("make steps: no namespace is set")
	}
	config = OnBehalf(config)
	config.QPS = -1 // the server has its own limits
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make steps: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("make steps: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	fixed := rest.CopyConfig(config)
	fixed.APIPath, fixed.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	fixed.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	s := &Steps{namespace: namespace}
	if s.hykube, err = rest.RESTClientForConfigAndClient(fixed, client); err != nil {
		return nil, fmt.Errorf("make steps: %w", err)
	}
	if s.objects, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("make steps: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make steps: %w", err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	return s, nil
}

// Register registers the activities with a worker.
func (s *Steps) Register(r worker.ActivityRegistry) {
	for name, f := range map[string]any{
		recordName: s.record, planName: s.plan, awaitApprovalName: s.awaitApproval, applyName: s.apply,
		awaitReadyName: s.awaitReady, driftName: s.drift, outputsName: s.outputs, discardName: s.discard,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// in returns the namespace of a step.
func (s *Steps) in(namespace string) string {
	if namespace == "" {
		return s.namespace
	}
	return namespace
}

// withHeartbeats reports heartbeats until done is called. The returned context ends with the step, or when the worker
// stops. The Web UI shows subject as the last heartbeat of a running step.
func withHeartbeats(ctx context.Context, subject string) (_ context.Context, done func()) {
	beats, interrupt := context.WithCancel(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for ctx.Err() == nil { // a tick and the end may come at once
			activity.RecordHeartbeat(beats, subject)
			select {
			case <-tick.C:
			case <-stopping:
				cancel(errStopping)
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		// The SDK logs a warning about a heartbeat that is interrupted, or that arrives after the end of its activity.
		select {
		case <-ended:
		case <-time.After(lastHeartbeat):
			interrupt()
			<-ended
		}
	}
}

// source reads and watches one object.
type source[T metav1.Object] struct {
	get   func(ctx context.Context) (T, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// until watches an object until done returns true or an error. It watches again after the end of a watch.
func until[T metav1.Object](ctx context.Context, name string, from source[T], done func(T) (bool, error)) (T, error) {
	for {
		object, err := from.get(ctx)
		if err != nil {
			return object, ended(ctx, err)
		}
		if end, err := done(object); end || err != nil {
			return object, err
		}
		seconds := int64(watchLimit.Seconds())
		events, err := from.watch(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: object.GetResourceVersion(),
				TimeoutSeconds: &seconds})
		if err != nil {
			return object, ended(ctx, err)
		}
		latest, end, err := follow(ctx, events, object, done)
		if end || err != nil {
			return latest, ended(ctx, err)
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return latest, ended(ctx, ctx.Err())
		}
	}
}

// follow returns when done returns true or an error, or when the watch ends. After the end of a watch, the caller reads
// the object again. It does not find a deleted object, and an error of the watch has no further effect.
func follow[T metav1.Object](ctx context.Context, events watch.Interface, object T,
	done func(T) (bool, error)) (T, bool, error) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return object, false, ctx.Err()
		case e, ok := <-events.ResultChan():
			if !ok || e.Type == watch.Error || e.Type == watch.Deleted {
				return object, false, nil
			}
			next, ok := e.Object.(T)
			if !ok {
				continue
			}
			object = next
			if end, err := done(object); end || err != nil {
				return object, end, err
			}
		}
	}
}

// ended returns the cause of the context's end instead of the error of an interrupted request.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
