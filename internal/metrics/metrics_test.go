package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// counted returns the value of each series, without the buckets of histograms.
func counted(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func exercise(t *testing.T, registry prometheus.Registerer) {
	t.Helper()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Step("Create", "Done")
	m.ScheduleRun("drift-check", "NoDrift")
	m.ScheduleDelay("drift-check", time.Second)
	m.Call("example.com/a/b", "ReadResource", time.Second)
	m.Event(EventRecorded)
	m.Notification("Slack", NotificationDelivered)
}

func TestServersOfAProcessShareTheMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	exercise(t, registry)
	exercise(t, registry)
	for plans := range 2 {
		err := Watch(registry, Sources{
			Plans:     func() (map[string]int, time.Duration) { return map[string]int{"Applied": plans}, time.Minute },
			Resources: func() map[string]Resources { return map[string]Resources{"prod": {Drifted: 3, Failed: 4}} },
			Overdue:   func() map[string]time.Duration { return map[string]time.Duration{"drift-check": time.Hour} },
			Processes: func() map[string]int { return map[string]int{"example.com/a/b": 5} },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := counted(t, registry)
	for series, want := range map[string]float64{
		"hykube_steps_total Create Done":                                     2,
		"hykube_schedule_runs_total drift-check NoDrift":                     2,
		"hykube_schedule_delay_seconds drift-check":                          2,
		"hykube_provider_call_duration_seconds ReadResource example.com/a/b": 2,
		"hykube_events_total recorded":                                       2,
		"hykube_events_total dropped":                                        0,
		"hykube_notification_attempts_total Slack delivered":                 2,
		"hykube_plans Applied":                                               1, // of the second server
		"hykube_plan_oldest_waiting_seconds":                                 60,
		"hykube_resources prod drifted":                                      3,
		"hykube_resources prod failed":                                       4,
		"hykube_schedule_overdue_seconds drift-check":                        3600,
		"hykube_provider_processes example.com/a/b":                          5,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s = %v (exists: %t), want %v", series, value, ok, want)
		}
	}
}

// TestThePageListsAllMetrics compares docs/metrics.md with the metrics of this package, and with the two that other
// packages register. The end-to-end tests compare the page with a server.
func TestThePageListsAllMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(hykube_[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	registry := prometheus.NewRegistry()
	exercise(t, registry)
	if err := Watch(registry, Sources{
		Plans:     func() (map[string]int, time.Duration) { return map[string]int{"Applied": 1}, 0 },
		Resources: func() map[string]Resources { return map[string]Resources{"prod": {}} },
		Overdue:   func() map[string]time.Duration { return map[string]time.Duration{"drift-check": 0} },
		Processes: func() map[string]int { return map[string]int{"example.com/a/b": 1} },
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"hykube_database_size_bytes", "hykube_token_file_broken"}
	for series := range counted(t, registry) {
		name, _, _ := strings.Cut(series, " ")
		want = append(want, name)
	}
	slices.Sort(want)
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Compact(want), listed); diff != "" {
		t.Errorf("metrics (-code +page):\n%s", diff)
	}
}
