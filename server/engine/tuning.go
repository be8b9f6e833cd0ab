package engine

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// tuning is Temporal's dynamic configuration for one process that serves one machine, and mostly sleeps.
// Durations are typed: a bare int would mean seconds.
func tuning() dynamicconfig.StaticClient {
	const (
		workers = 16 // goroutines per task queue processor, of 512: one SQLite writer feeds them
		never   = 24 * time.Hour
	)
	values := map[dynamicconfig.Key]any{}
	set := func(setting dynamicconfig.GenericSetting, value any) { values[setting.Key()] = value }

	// Speed: by default each of a workflow's steps waits ~45 ms for the next poll of its queue.
	set(dynamicconfig.TransferProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxPollRPS, 1000)
	set(dynamicconfig.VisibilityProcessorMaxPollRPS, 1000)
	set(dynamicconfig.OutboundProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxTimeShift, 100*time.Millisecond)
	// Who waits for a workflow's end sometimes misses it (about 1 in 100 here): the history service drops a notification
	// when the one before it was not read yet. The waiter asks again after this time, of 20 s.
	set(dynamicconfig.HistoryLongPollExpirationInterval, time.Second)
	set(dynamicconfig.MatchingNumTaskqueueReadPartitions, 1)
	set(dynamicconfig.MatchingNumTaskqueueWritePartitions, 1)

	// What we use.
	set(dynamicconfig.MatchingEnableFairness, true)
	set(dynamicconfig.WorkflowPauseEnabled, true)
	set(dynamicconfig.EnableCHASMSchedulerCreation, true) // schedules without the worker service
	set(dynamicconfig.CHASMSchedulerCreationRolloutPercent, 100)

	// What we must not have: a workflow reaching into another namespace.
	set(dynamicconfig.EnableCrossNamespaceCommands, false)
	// There is no system worker to hand it to.
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

	// Idle: nobody else writes to these files, so nothing needs to be looked up again and again.
	set(dynamicconfig.ClusterMetadataRefreshInterval, never)
	set(dynamicconfig.MatchingNexusEndpointsRefreshInterval, never)
	set(dynamicconfig.PersistenceHealthSignalMetricsEnabled, false)
	return values
}
