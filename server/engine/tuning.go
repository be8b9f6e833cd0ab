package engine

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning returns Temporal's dynamic configuration for one process on one machine that is mostly idle. Durations must be
// typed: a bare int would mean seconds.
func tuning() dynamicconfig.StaticClient {
	const (
		workers = 16 // goroutines per task queue processor instead of 512, since there is a single SQLite writer
		never   = 24 * time.Hour
	)
	values := map[dynamicconfig.Key]any{}
	set := func(setting dynamicconfig.GenericSetting, value any) { values[setting.Key()] = value }

	// Speed: by default, each step of a workflow waits some 45 ms for the next poll of its queue.
	set(dynamicconfig.TransferProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxPollRPS, 1000)
	set(dynamicconfig.VisibilityProcessorMaxPollRPS, 1000)
	set(dynamicconfig.OutboundProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxTimeShift, 100*time.Millisecond)
	// A client that waits for the end of a workflow sometimes misses it (about 1 in 100 here). The history service
	// drops a notification if the client has not read the previous one. The client polls again after this time instead
	// of 20 s.
	set(dynamicconfig.HistoryLongPollExpirationInterval, time.Second)
	set(dynamicconfig.MatchingNumTaskqueueReadPartitions, 1)
	set(dynamicconfig.MatchingNumTaskqueueWritePartitions, 1)

	// Features that Hykube uses.
	set(dynamicconfig.MatchingEnableFairness, true)
	set(dynamicconfig.WorkflowPauseEnabled, true)
	set(dynamicconfig.EnableCHASMSchedulerCreation, true) // run schedules without the worker service
	set(dynamicconfig.CHASMSchedulerCreationRolloutPercent, 100)

	// A workflow must not access another namespace.
	set(dynamicconfig.EnableCrossNamespaceCommands, false)
	// There is no system worker for this task.
	set(dynamicconfig.EnableParentClosePolicyWorker, false)

	// Memory.
	set(dynamicconfig.HistoryCacheHostLevelMaxSize, 512)
	set(dynamicconfig.EventsCacheMaxSizeBytes, 1<<20)
	set(dynamicconfig.TransferProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.TimerProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.VisibilityProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.ArchivalProcessorSchedulerWorkerCount, 1)
	set(dynamicconfig.MemoryTimerProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.ReplicationProcessorSchedulerWorkerCount, 1)
	set(dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount, 1)

	// Idle load: no other process writes to these files, so periodic refreshes are unnecessary.
	set(dynamicconfig.ClusterMetadataRefreshInterval, never)
	set(dynamicconfig.MatchingNexusEndpointsRefreshInterval, never)
	set(dynamicconfig.PersistenceHealthSignalMetricsEnabled, false)
	return values
}
