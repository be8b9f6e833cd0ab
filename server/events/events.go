// Package events records Kubernetes Events for transitions of objects, as `kubectl describe` and `kubectl events` show
// them. It decides from the conditions of an object which transitions have an Event, and limits the Events of each
// namespace. It does not know where objects come from.
package events

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/hykube/hykube/internal/metrics"
)

const (
	// component is the source of the events.
	component = "hykube"
	// burst is the number of events that a namespace may have at once, and perSecond is its rate afterwards. The server
	// writes only a few hundred events a second, and one namespace with many failures must not fill the queue.
	burst     = 200
	perSecond = 2
	// maxMessage is the maximum length of a message, as in the group events.k8s.io.
	maxMessage = 1024
	// maxLimits is the number of limiters after which the Recorder removes those that no longer limit anything.
	maxLimits = 1000
)

// Event describes a transition of an object.
type Event struct {
	// Warning is true if a user must act.
	Warning bool
	// Reason is a reason of a condition. Message is its message, in which secrets are masked.
	Reason, Message string
}

// Recorder writes events in the background. Equal events of an object have a count. It is safe for concurrent use. A
// nil Recorder records nothing.
type Recorder struct {
	to      record.EventRecorder
	metrics *metrics.Metrics
	close   func()

	mu     sync.Mutex
	limits map[string]*rate.Limiter
}

// NewRecorder returns a Recorder that writes events until Close.
func NewRecorder(client kubernetes.Interface, m *metrics.Metrics) *Recorder {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&sink{typed.EventSinkImpl{Interface: client.CoreV1().Events("")}})
	return &Recorder{to: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), metrics: m,
		limits: map[string]*rate.Limiter{}, close: broadcaster.Shutdown}
}

// Close drops the events that are not written yet. Record may still be called.
func (r *Recorder) Close() { r.close() }

// Record records an event of an object. It does not wait: it drops the event if its namespace has too many.
func (r *Recorder) Record(object corev1.ObjectReference, e Event) {
	if r == nil {
		return
	}
	if !r.allows(object.Namespace, time.Now()) {
		r.metrics.Event(metrics.EventDropped)
		return
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.to.Event(&object, kind, e.Reason, shorten(e.Message))
	r.metrics.Event(metrics.EventRecorded)
}

// allows reports whether a namespace may have an event now.
func (r *Recorder) allows(namespace string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.limits) >= maxLimits {
		for name, l := range r.limits {
			if l.TokensAt(now) >= burst {
				delete(r.limits, name)
			}
		}
	}
	l := r.limits[namespace]
	if l == nil {
		l = rate.NewLimiter(perSecond, burst)
		r.limits[namespace] = l
	}
	return l.AllowN(now, 1)
}

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-3], "") + "..." // the cut may split a character
}

// sink writes events as the server itself. It drops events whose namespace no longer exists or is being deleted.
type sink struct{ typed.EventSinkImpl }

// Create implements record.EventSink.
func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) {
	written, err := s.EventSinkImpl.Create(e)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // the namespace is gone, or is being deleted
		return e, nil
	}
	return written, err
}
