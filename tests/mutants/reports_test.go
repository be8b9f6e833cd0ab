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
}
