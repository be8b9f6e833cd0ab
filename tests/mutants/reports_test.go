package mutants

var reportMutants = []mutant{
	{"A user adds series to the metrics with a condition.", "server/controller/plancounts.go",
		"if !planStates[state] {", "if false {", "TestCountPlans"},
	{"A decided plan counts as one that waits for a decision.", "server/controller/plancounts.go",
		"if waits(plan) && plan.Status", "if plan.Status", "TestCountPlans"},
	{"A missing run of a schedule is not noticed.", "server/controller/overdue.go",
		"if known.generation != s.Generation {", "if true {", "TestOverdueRuns"},
	{"A stack that is suspended raises an alert.", "server/controller/overdue.go",
		"w.Suspended || ", "", "TestOverdueRuns"},
	{"The metric of failed resources stays as it was.", "internal/index/index.go",
		"\t\tx.uncounted[name] = true\n\t\tif x.Changed", "\t\tif x.Changed", "server/storage:TestIndexFollowsTheStore"},
	{"An apply of many resources writes an event for each.", "server/events/transitions.go",
		"\tcase ready.Status == metav1.ConditionTrue && stalled:\n", "\tcase ready.Status == metav1.ConditionTrue || stalled:\n", "TestEventsOfResources"},
	{"A failure writes an event for each resource that depends on the failed one.", "server/events/transitions.go",
		"ready.Reason == v1alpha1.ReasonSkipped, ", "", "TestEventsOfResources"},
	{"A namespace fills the queue of events of the others.", "server/events/events.go",
		"\treturn l.AllowN(now, 1)\n", "\treturn true\n", "TestManyEventsOfANamespace"},
	{"The limits of events grow with the namespaces for ever.", "server/events/events.go",
		"delete(r.limits, name)", "_ = name", "TestManyEventsOfANamespace"},
	{"A stale plan is reported as if no one had to act.", "server/events/transitions.go",
		"case v1alpha1.ReasonRetrying, v1alpha1.ReasonStale:", "case v1alpha1.ReasonRetrying:", "TestEventsOfTransitions"},
}
