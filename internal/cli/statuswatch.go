package cli

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
	"github.com/hykube/hykube/internal/diff"
)

const (
	// redrawPause is the shortest time between two drawings of a namespace, and redrawShare how many times longer than a
	// drawing takes that must be: many changes at once are drawn together.
	redrawPause = 500 * time.Millisecond
	redrawShare = 5
	// watchedKinds is how many kinds are watched also without objects. Of more kinds those with objects are.
	watchedKinds = 100
)

// seen is something that happened to an object of the namespace.
type seen struct{ name, state string }

// watchNamespace shows a namespace until it is interrupted: drawn anew on a terminal, a line for each change in a pipe. Watches
// say when to look; without a change nothing is asked of the server.
func (o *statusOptions) watchNamespace(ctx context.Context) error {
	interrupted, stop := o.interrupts()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kinds, err := o.resourceKinds(ctx)
	if err != nil {
		return explain(err, o.server())
	}
	events := make(chan seen, 256)
	for _, k := range append(o.populated(ctx, kinds), kind{gvr: v1alpha1.SchemeGroupVersion.WithResource("plans"), kind: "plan"}) {
		go o.watchKind(ctx, k, events)
	}
	screen := &block{w: o.Out}
	took, err := o.redraw(ctx, screen)
	if err != nil {
		return err
	}
	defer func() {
		if o.live {
			fmt.Fprint(o.Out, "\x1b[?25h") // the cursor
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
			if o.live {
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

// redraw shows the namespace as it is: in the place of what was shown before on a terminal.
func (o *statusOptions) redraw(ctx context.Context, screen *block) (took time.Duration, err error) {
	began := time.Now()
	if !o.live {
		return 0, o.overview(ctx)
	}
	var text bytes.Buffer
	once := *o.terminal
	once.Out = &text
	shared := o.session.terminal
	o.session.terminal = &once
	err = o.overview(ctx)
	o.session.terminal = shared
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if _, height := o.size(); height > 1 && len(lines) > height-1 {
		lines = lines[:height-1]
	}
	for i := range lines {
		lines[i] = o.style.Fit(lines[i])
	}
	screen.draw(lines)
	return time.Since(began), nil
}

// populated are the kinds to watch: all of them, or of very many those that have objects.
func (o *statusOptions) populated(ctx context.Context, kinds []kind) []kind {
	if len(kinds) <= watchedKinds {
		return kinds
	}
	has := map[kind]bool{}
	_, _ = o.eachObject(ctx, kinds, o.namespace, "", func(k kind, _ *unstructured.Unstructured) { has[k] = true })
	var out []kind
	for _, k := range kinds {
		if has[k] {
			out = append(out, k)
		}
	}
	return out
}

// watchKind sends what happens to the objects of a kind until ctx ends. A kind that the user may not watch is passed over, as one
// that may not be listed is.
func (o *statusOptions) watchKind(ctx context.Context, k kind, to chan<- seen) {
	client := o.resource(k.gvr, o.namespace)
	for ctx.Err() == nil {
		version := ""
		if l, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
			version = l.GetResourceVersion()
		} else if s := apiStatus(err); s != nil && s.Code/100 == 4 {
			return
		}
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err == nil {
			passOn(ctx, k, w, to)
		}
		pause(ctx, time.Second) // of a server that went away, or hung up
	}
}

func passOn(ctx context.Context, k kind, w watch.Interface, to chan<- seen) {
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
			case to <- seen{k.kind + "/" + u.GetName(), state}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// stateOf is an object's state in a few words.
func stateOf(k kind, u *unstructured.Unstructured) string {
	if k.kind == "plan" {
		p := &v1alpha1.Plan{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			return "?"
		}
		state := planState(p)
		if g := p.Status.Progress; g != nil && state == "applying" {
			state += ": " + progressText(g, "")
		}
		return state
	}
	reason, message, good := readiness(u)
	reason = awaitedEnd(u, reason)
	if good || message == "" {
		return reason
	}
	return reason + ": " + diff.Clean(strings.Join(strings.Fields(message), " "), false)
}

// awaitDecision waits until a plan is approved, discarded or over; nil when the wait was interrupted.
func (o *statusOptions) awaitDecision(ctx context.Context, p *v1alpha1.Plan) (*v1alpha1.Plan, error) {
	fmt.Fprintf(o.ErrOut, "Plan %s waits in namespace %s for approval; Ctrl-C stops watching it.\n", p.Name, p.Namespace)
	err := o.session.watch(ctx, p, watching{
		seen: func(now *v1alpha1.Plan) (bool, error) {
			p = now
			return !waiting(p), nil
		},
		interrupted: func(<-chan struct{}) error { return errDetached },
	})
	if err != nil {
		p = nil
	}
	if errors.Is(err, errDetached) {
		err = nil
	}
	return p, err
}
