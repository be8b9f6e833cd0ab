// Package metrics has the metrics of plans, steps, schedules, providers, events and notifications. It imports only the
// client of Prometheus, and knows none of the objects that it counts. No label has a value for each object;
// docs/metrics.md lists the labels.
package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the work of the server. It is safe for concurrent use. The methods of a nil Metrics count nothing.
type Metrics struct {
	steps         *prometheus.CounterVec
	runs          *prometheus.CounterVec
	delay         *prometheus.HistogramVec
	calls         *prometheus.HistogramVec
	events        *prometheus.CounterVec
	notifications *prometheus.CounterVec
}

// Sources returns the current state of the server. Each request for the metrics calls the functions, so they must read
// only memory.
type Sources struct {
	// Plans returns the number of plans by state, and the age of the oldest plan that waits for a decision; 0 if none
	// waits.
	Plans func() (byState map[string]int, oldest time.Duration)
	// Resources returns the numbers of resources by namespace.
	Resources func() map[string]Resources
	// Overdue returns, by the kind of a schedule, the time since a run should have begun; 0 if none is overdue.
	Overdue func() map[string]time.Duration
	// Processes returns the number of running processes by provider.
	Processes func() map[string]int
}

// Resources counts resources of a namespace.
type Resources struct {
	// Drifted resources were changed outside of Hykube. Failed resources are stalled for another reason.
	Drifted, Failed int
}

// New registers the counters. Several servers in one process, as in tests, share them.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hykube_steps_total",
			Help: "Steps of applies that ended, by action and outcome."}, []string{"action", "outcome"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hykube_schedule_runs_total",
			Help: "Runs of the schedules of stacks that ended, by kind and outcome."}, []string{"kind", "outcome"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hykube_schedule_delay_seconds",
			Help:    "Time between the scheduled time of a run and its begin. A tenth of the interval, up to five minutes, is intended.",
			Buckets: []float64{1, 5, 15, 60, 300, 600, 1800, 3600, 21600, 86400}}, []string{"kind"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hykube_provider_call_duration_seconds",
			Help:    "Duration of calls of providers, by provider and call of Terraform's plugin protocol.",
			Buckets: []float64{0.001, 0.01, 0.1, 1, 5, 15, 60, 300, 1200}}, []string{"provider", "call"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hykube_events_total",
			Help: "Kubernetes Events, by result: recorded, or dropped because the namespace had too many."},
			[]string{"result"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hykube_notification_attempts_total",
			Help: "Attempts to send a message of a Notification, by format and result."}, []string{"format", "result"}),
	}
	err := errors.Join(
		register(registry, &m.steps), register(registry, &m.runs), register(registry, &m.delay),
		register(registry, &m.calls),
		register(registry, &m.events), register(registry, &m.notifications),
	)
	if err != nil {
		return nil, err
	}
	// An alert about an increase needs the series before the first one.
	for _, result := range []string{EventRecorded, EventDropped} {
		m.events.WithLabelValues(result)
	}
	for _, format := range []string{"CloudEvents", "Slack", "Teams"} {
		for _, result := range []string{NotificationDelivered, NotificationRetried, NotificationFailed,
			NotificationRefused} {
			m.notifications.WithLabelValues(format, result)
		}
	}
	return m, nil
}

// Watch registers the metrics of the current state of the server. They replace those of another server of the process.
func Watch(registry prometheus.Registerer, s Sources) error {
	current := newGauges(s)
	err := registry.Register(current)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		registry.Unregister(known.ExistingCollector)
		err = registry.Register(current)
	}
	return wrap(err)
}

// register registers a metric, or sets it to the metric that is already registered.
func register[C prometheus.Collector](registry prometheus.Registerer, metric *C) error {
	err := registry.Register(*metric)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*metric, ok = known.ExistingCollector.(C)
		if ok {
			return nil
		}
	}
	return wrap(err)
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Step counts a step of an apply that ended.
func (m *Metrics) Step(action, outcome string) {
	if m != nil {
		m.steps.WithLabelValues(action, outcome).Inc()
	}
}

// ScheduleRun counts a run of a schedule that ended.
func (m *Metrics) ScheduleRun(kind, outcome string) {
	if m != nil {
		m.runs.WithLabelValues(kind, outcome).Inc()
	}
}

// ScheduleDelay records the delay of a run of a schedule.
func (m *Metrics) ScheduleDelay(kind string, late time.Duration) {
	if m != nil {
		m.delay.WithLabelValues(kind).Observe(max(0, late.Seconds()))
	}
}

// Call records a call of a provider.
func (m *Metrics) Call(provider, call string, took time.Duration) {
	if m != nil {
		m.calls.WithLabelValues(provider, call).Observe(took.Seconds())
	}
}

// Results of events.
const (
	EventRecorded = "recorded"
	EventDropped  = "dropped"
)

// Event counts an event.
func (m *Metrics) Event(result string) {
	if m != nil {
		m.events.WithLabelValues(result).Inc()
	}
}

// Results of attempts to send a message.
const (
	NotificationDelivered = "delivered"
	// NotificationRetried attempts failed, and another one follows.
	NotificationRetried = "retried"
	// NotificationFailed attempts failed, and no other one follows.
	NotificationFailed = "failed"
	// NotificationRefused messages were not sent, because of the rights of the author or the address.
	NotificationRefused = "refused"
)

// Notification counts an attempt to send a message.
func (m *Metrics) Notification(format, result string) {
	if m != nil {
		m.notifications.WithLabelValues(format, result).Inc()
	}
}

// gauges are the metrics of the current state of the server.
type gauges struct {
	Sources
	plans, oldest, resources, overdue, processes *prometheus.Desc
}

func newGauges(s Sources) gauges {
	return gauges{
		Sources: s,
		plans: prometheus.NewDesc("hykube_plans", "Plans, by the reason of their condition Ready.",
			[]string{"state"}, nil),
		oldest: prometheus.NewDesc("hykube_plan_oldest_waiting_seconds",
			"Time since the oldest plan that waits for a decision was made; 0 if none waits.", nil, nil),
		resources: prometheus.NewDesc("hykube_resources", "Resources that drifted or failed, by namespace.",
			[]string{"namespace", "state"}, nil),
		overdue: prometheus.NewDesc("hykube_schedule_overdue_seconds",
			"Time for which the run of a schedule is missing, by kind; 0 if none is.", []string{"kind"}, nil),
		processes: prometheus.NewDesc("hykube_provider_processes", "Running processes of providers.",
			[]string{"provider"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.plans, g.oldest, g.resources, g.overdue, g.processes} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	byState, oldest := g.Plans()
	for state, n := range byState {
		send(g.plans, float64(n), state)
	}
	send(g.oldest, oldest.Seconds())
	for namespace, n := range g.Resources() {
		send(g.resources, float64(n.Drifted), namespace, "drifted")
		send(g.resources, float64(n.Failed), namespace, "failed")
	}
	for kind, late := range g.Overdue() {
		send(g.overdue, late.Seconds(), kind)
	}
	for provider, n := range g.Processes() {
		send(g.processes, float64(n), provider)
	}
}
