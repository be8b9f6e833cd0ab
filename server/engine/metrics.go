package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
)

// metricLabels are kept; each has few values, whatever is planned and applied. Dropped are task queues (each worker
// has a sticky one), workflow and activity types, versions, hosts.
var metricLabels = attribute.NewAllowKeysFilter("service_name", "operation", "namespace", "error_type", "task_type", "resource_exhausted_cause", "resource_exhausted_scope", "cache_type")

// metricsHandler records Temporal's metrics with the names that its dashboards know, timers in seconds. It has no
// port of its own: whoever owns the registry serves them.
func metricsHandler(registry prometheus.Registerer, logger log.Logger) (metrics.Handler, error) {
	if registry == nil {
		return metrics.NoopMetricsHandler, nil
	}
	exporter, err := prometheusexporter.New(
		prometheusexporter.WithRegisterer(registry),
		prometheusexporter.WithoutScopeInfo(),
		prometheusexporter.WithoutTargetInfo(),
		prometheusexporter.WithoutUnits(),
		prometheusexporter.WithoutCounterSuffixes(),
	)
	if err != nil {
		return nil, fmt.Errorf("register metrics of the engine: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithView(metricView))
	return metrics.NewOtelMetricsHandler(logger, &meterProvider{provider, provider.Meter("temporal")}, metrics.ClientConfig{}, true)
}

func metricView(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
	stream := sdkmetric.Stream{Name: i.Name, Description: i.Description, Unit: i.Unit, AttributeFilter: metricLabels}
	if i.Kind == sdkmetric.InstrumentKindHistogram {
		buckets := []float64{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
		if i.Unit == metrics.Seconds {
			buckets = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60}
		}
		stream.Aggregation = sdkmetric.AggregationExplicitBucketHistogram{Boundaries: buckets, NoMinMax: true}
	}
	return stream, true
}

type meterProvider struct {
	provider *sdkmetric.MeterProvider
	meter    metric.Meter
}

func (p *meterProvider) GetMeter() metric.Meter { return p.meter }

func (p *meterProvider) Stop(logger log.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.provider.Shutdown(ctx); err != nil {
		logger.Warn("metrics could not be stopped: " + err.Error())
	}
}
