package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// sizeTimeout is the maximum time for the sizes of the database, at each request for the metrics.
const sizeTimeout = 5 * time.Second

// sizes is the metric of the database's size, by part.
type sizes struct {
	description *prometheus.Desc
	// parts return the bytes of each part.
	parts map[string]func(context.Context) (int64, error)
}

// registerSizes registers the metric. Several servers in one process, as in tests, share the metric of the first.
func registerSizes(metrics prometheus.Registerer, parts map[string]func(context.Context) (int64, error)) error {
	if metrics == nil {
		return nil
	}
	err := metrics.Register(sizes{prometheus.NewDesc("hykube_database_size_bytes",
		"Size of the database: of the objects with their log, and of the ledger with states and the changes of plans.",
		[]string{"part"}, nil), parts})
	if _, known := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !known {
		return fmt.Errorf("register metric of the database's size: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (s sizes) Describe(out chan<- *prometheus.Desc) { out <- s.description }

// Collect implements prometheus.Collector. It omits a part whose size it cannot read; Store.Ready reports the error.
func (s sizes) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
	defer cancel()
	for name, size := range s.parts {
		if bytes, err := size(ctx); err == nil {
			out <- prometheus.MustNewConstMetric(s.description, prometheus.GaugeValue, float64(bytes), name)
		}
	}
}
