package engine

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is Temporal's dynamic configuration for one process that serves one machine, and mostly sleeps.
// Keys: https://pkg.go.dev/go.temporal.io/server/common/dynamicconfig. Durations are typed: a bare int would mean seconds.
func tuning() dynamicconfig.StaticClient {
	const (
		workers = 16 // goroutines per task queue processor, of 512: one SQLite writer feeds them
		never   = 24 * time.Hour
	)
	values := map[dynamicconfig.Key]any{}
	set := func(key string, value any) { values[dynamicconfig.MakeKey(key)] = value }

	// Speed: by default each of a workflow's steps waits ~45 ms for the next poll of its queue.
	set("history.transferProcessorMaxPollRPS", 1000)
	set("history.timerProcessorMaxPollRPS", 1000)
	set("history.visibilityProcessorMaxPollRPS", 1000)
	set("history.outboundProcessorMaxPollRPS", 1000)
	set("history.timerProcessorMaxTimeShift", 100*time.Millisecond)
	set("matching.numTaskqueueReadPartitions", 1)
	set("matching.numTaskqueueWritePartitions", 1)

	// What we use.
	set("matching.enableFairness", true)
	set("frontend.WorkflowPauseEnabled", true)
	set("history.enableCHASMSchedulerCreation", true) // schedules without the worker service
	set("history.chasmSchedulerCreationRolloutPercent", 100)

	// What we must not have: a workflow reaching into another namespace.
	set("system.enableCrossNamespaceCommands", false)
	// There is no system worker to hand it to.
	set("system.enableParentClosePolicyWorker", false)

	// Memory.
	set("history.hostLevelCacheMaxSize", 512)
	set("history.eventsCacheMaxSizeBytes", 1<<20)
	set("history.transferProcessorSchedulerWorkerCount", workers)
	set("history.timerProcessorSchedulerWorkerCount", workers)
	set("history.visibilityProcessorSchedulerWorkerCount", workers)
	set("history.archivalProcessorSchedulerWorkerCount", 1)
	set("history.memoryTimerProcessorSchedulerWorkerCount", workers)
	set("history.ReplicationProcessorSchedulerWorkerCount", 1)
	set("history.ReplicationLowPriorityProcessorSchedulerWorkerCount", 1)

	// Idle: nobody else writes to these files, so nothing needs to be looked up again and again.
	set("system.namespaceCacheRefreshInterval", 10*time.Second)
	set("system.clusterMetadataRefreshInterval", never)
	set("matching.nexusEndpointsRefreshInterval", never)
	set("system.persistenceHealthSignalMetricsEnabled", false)
	return values
}
