package mutants

var controllerMutants = []mutant{
	{"A plan that was approved is superseded by a later one.", "server/controller/overtaken.go",
		"s.Approval == nil && s.Cancel == nil && !p.Ended() &&\n", "s.Cancel == nil && !p.Ended() &&\n", "TestLaterPlansSupersedeEarlierOnes"},
	{"A plan for other targets supersedes the one that waits for approval.", "server/controller/overtaken.go",
		"spec.Approval, spec.Timestamp = \"\", nil\n", "spec.Approval, spec.Timestamp, spec.Targets = \"\", nil, nil\n", "TestLaterPlansSupersedeEarlierOnes"},
	{"A plan is bound to a state that an applied plan moved, and nobody says so.", "server/controller/overtaken.go",
		"\tcase binds(c):\n\t\treturn true\n\t}\n\treturn c.Refreshed != nil", "\t}\n\treturn c.Refreshed != nil", "TestAppliedPlansSupersedeWhatIsBoundToTheirChanges"},
	{"The plan that explains a lost create is removed with the old ones.", "server/controller/history.go",
		"if rec.Intent.Of(plan, c.Index) {", "if rec == nil {", "TestPlansOfLostOutcomesAreKept"},
	{"A plan that is under way is removed as an old one.", "server/controller/history.go",
		"if p.Status.FinishedAt != nil && p.DeletionTimestamp == nil {", "if p.DeletionTimestamp == nil {", "TestFinishedPlansAreOutdated"},
	{"The newest finished plans are removed, and the oldest stay.", "server/controller/history.go",
		"return a.Status.FinishedAt.Compare(b.Status.FinishedAt.Time)", "return b.Status.FinishedAt.Compare(a.Status.FinishedAt.Time)", "TestFinishedPlansAreOutdated"},
}
