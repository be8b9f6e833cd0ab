package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/diff"
)

const (
	// redrawPause is the minimum time between two redraws. The pause is also at least redrawShare times the duration of
	// a redraw, so that many changes share one.
	redrawPause = 500 * time.Millisecond
	redrawShare = 5
	// watchedKinds is the number of kinds up to which all kinds are watched. If there are more, only those with objects
	// are.
	watchedKinds = 100
)

// objectEvent is an event of an object in the namespace.
type objectEvent struct{ name, state string }

// watchNamespace shows a namespace until Ctrl-C: redrawn on a terminal, with a line per change in a pipe. It sends
// requests only after events of its watches.
func (o *statusOptions) watchNamespace(ctx context.Context) error {
	interrupted, stop := o.Interrupts()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kinds, err := o.ResourceKinds(ctx)
	if err != nil {
		return err
	}
	events := make(chan objectEvent, 256)
	for _, k := range append(o.populated(ctx, kinds),
		session.Kind{GVR: v1alpha1.SchemeGroupVersion.WithResource("plans"), Kind: "plan"}) {
		go o.watchKind(ctx, k, events)
	}
	screen := &terminal.Block{W: o.Out}
	took, err := o.redraw(ctx, screen)
	if err != nil {
		return err
	}
	defer func() {
		if o.Live {
			fmt.Fprint(o.Out, "\x1b[?25h") // show the cursor
		}
	}()
	said := map[string]string{}
	var due <-chan time.Time
	for {
		select {
		case <-interrupted:
			return nil
		case <-ctx.Done():
			return nil
		case e := <-events:
			if said[e.name] == e.state {
				continue
			}
			said[e.name] = e.state
			if o.Live {
				if due == nil {
					due = time.After(max(redrawPause, redrawShare*took))
				}
				continue
			}
			fmt.Fprintf(o.Out, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), e.name, e.state)
		case <-due:
			due = nil
			if took, err = o.redraw(ctx, screen); err != nil {
				return err
			}
		}
	}
}

// redraw prints the namespace, on a terminal in place of the previous output.
func (o *statusOptions) redraw(ctx context.Context, screen *terminal.Block) (took time.Duration, err error) {
	began := time.Now()
	if !o.Live {
		return 0, o.overview(ctx)
	}
	var text bytes.Buffer
	buffered := *o.Terminal
	buffered.Out = &text
	restore := o.UseTerminal(buffered)
	err = o.overview(ctx)
	restore()
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if _, height := o.Size(); height > 1 && len(lines) > height-1 {
		lines = lines[:height-1]
	}
	for i := range lines {
		lines[i] = o.Style.Fit(lines[i])
	}
	screen.Draw(lines)
	return time.Since(began), nil
}

// populated returns the kinds to watch: all, or only those with objects if there are very many.
func (o *statusOptions) populated(ctx context.Context, kinds []session.Kind) []session.Kind {
	if len(kinds) <= watchedKinds {
		return kinds
	}
	has := map[session.Kind]bool{}
	_, _ = objects.EachObject(ctx, o.Session, kinds, o.Namespace, "",
		func(k session.Kind, _ *unstructured.Unstructured) { has[k] = true })
	var out []session.Kind
	for _, k := range kinds {
		if has[k] {
			out = append(out, k)
		}
	}
	return out
}

// watchKind sends the events of a kind's objects until ctx ends. It skips a kind that the user may not watch.
func (o *statusOptions) watchKind(ctx context.Context, k session.Kind, to chan<- objectEvent) {
	client := o.Resource(k.GVR, o.Namespace)
	for ctx.Err() == nil {
		version := ""
		if l, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
			version = l.GetResourceVersion()
		} else if s := session.APIStatus(err); s != nil && s.Code/100 == 4 {
			return
		}
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err == nil {
			passOn(ctx, k, w, to)
		}
		session.Pause(ctx, time.Second) // the server is unavailable, or closed the connection
	}
}

func passOn(ctx context.Context, k session.Kind, w watch.Interface, to chan<- objectEvent) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.ResultChan():
			u, isObject := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error || !isObject {
				return
			}
			if e.Type == watch.Bookmark {
				continue
			}
			state := stateOf(k, u)
			if e.Type == watch.Deleted {
				state = "removed"
			}
			select {
			case to <- objectEvent{k.Kind + "/" + u.GetName(), state}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// stateOf returns the state of an object in a few words.
func stateOf(k session.Kind, u *unstructured.Unstructured) string {
	if k.Kind == "plan" {
		p := &v1alpha1.Plan{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			return "?"
		}
		state := planapi.State(p)
		if g := p.Status.Progress; g != nil && state == "applying" {
			state += ": " + planapi.Progress(g, "")
		}
		return state
	}
	reason, message, good := objects.Readiness(u)
	reason = objects.AwaitedEnd(u, reason)
	if good || message == "" {
		return reason
	}
	return reason + ": " + diff.Clean(strings.Join(strings.Fields(message), " "), false)
}

// awaitDecision waits until a plan is approved or discarded, or has ended. It returns nil after Ctrl-C.
func (o *statusOptions) awaitDecision(ctx context.Context, p *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	fmt.Fprintf(o.ErrOut, "Plan %s waits in namespace %s for approval; Ctrl-C stops watching it.\n", p.Name,
		p.Namespace)
	err := operation.Watch(ctx, o.Session, p, operation.Watching{
		Changed: func(now *v1alpha1.Plan) (bool, error) {
			p = now
			return !planapi.Waiting(p), nil
		},
		Interrupted: func(<-chan struct{}) error { return operation.ErrDetached },
	})
	if err != nil {
		p = nil
	}
	if errors.Is(err, operation.ErrDetached) {
		err = nil
	}
	return p, err
}
