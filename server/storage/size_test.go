package storage

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestDatabaseSize(t *testing.T) {
	metrics := prometheus.NewRegistry()
	for range 2 { // another server in the same process does not fail
		openAt(t, Config{DataDir: t.TempDir(), Metrics: metrics})
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "hykube_database_size_bytes" {
				found[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if len(found) != 2 || found["objects"] <= 0 || found["ledger"] <= 0 {
		t.Errorf("sizes %v", found)
	}
}
