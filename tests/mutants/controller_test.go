package mutants

var controllerMutants = []mutant{
	{"A ProviderConfig stays refused after its provider died once.", "server/controller/configs.go",
		"](err); lost {", "](err); lost && false {", "TestConfigsAreCheckedAgainAfterALostProcess"},
	{"A plan that was approved is superseded by a later one.", "server/controller/superseded.go",
		"s.Approval == nil && s.Cancel == nil && !p.Ended() &&\n", "s.Cancel == nil && !p.Ended() &&\n", "TestLaterPlansSupersedeEarlierOnes"},
	{"Plans of one second are ordered by chance.", "server/controller/superseded.go",
		"if at := p.Status.RequestedAt; at != nil {", "if at := p.Status.RequestedAt; false {", "TestLaterPlansSupersedeEarlierOnes"},
	{"A plan for other targets supersedes the one that waits for approval.", "server/controller/superseded.go",
		"spec.Approval, spec.Timestamp = \"\", nil\n", "spec.Approval, spec.Timestamp, spec.Targets = \"\", nil, nil\n", "TestLaterPlansSupersedeEarlierOnes"},
	{"A plan is bound to a state that an applied plan moved, and the server does not end the plan.", "server/controller/superseded.go",
		"\tcase binds(c):\n\t\treturn true\n\t}\n\treturn c.Refreshed != nil", "\t}\n\treturn c.Refreshed != nil", "TestAppliedPlansSupersedeWhatIsBoundToTheirChanges"},
	{"The plan that explains a lost create is removed with the old ones.", "server/controller/history.go",
		"if rec.Intent.Of(plan, c.Index) {", "if rec == nil {", "TestPlansOfLostOutcomesAreKept"},
	{"A plan that is under way is removed as an old one.", "server/controller/history.go",
		"if p.Status.FinishedAt != nil && p.DeletionTimestamp == nil {", "if p.DeletionTimestamp == nil {", "TestFinishedPlansAreOutdated"},
	{"The newest finished plans are removed, and the oldest stay.", "server/controller/history.go",
		"cmp.Or(a.Status.FinishedAt.Compare(b.Status.FinishedAt.Time),", "cmp.Or(b.Status.FinishedAt.Compare(a.Status.FinishedAt.Time),", "TestFinishedPlansAreOutdated"},
	{"One namespace keeps all other plans from running.", "server/controller/running.go",
		"phase.Request(obj.Namespace)", "phase.Request(\"\")", "TestPlansOfOneNamespaceLeaveRoomForOthers"},
	{"A plan that is approved keeps its slot among the plans that are made.", "server/controller/running.go",
		"if has.phase == phase {", "if has.Slot != nil {", "TestAnApplyLeavesRoomForPlans"},
	{"A cancelled plan waits for others until it ends.", "server/controller/running.go",
		"granted(slot) || obj.Status.Cancel != nil || begun(obj) {", "granted(slot) || begun(obj) {", "TestACancelledPlanNeedsNoSlot"},
	{"After a restart, a plan that was being applied waits for plans that were not.", "server/controller/running.go",
		"obj.Status.Cancel != nil || begun(obj) {", "obj.Status.Cancel != nil {", "TestABegunApplyContinuesAfterARestart"},
	{"A plan that ended keeps its place, until no plan can run.", "server/controller/plans.go",
		"\tif !runs(obj) {\n\t\tp.releaseSlot(obj.UID)\n\t}\n", "", "TestPlansOfOneNamespaceLeaveRoomForOthers"},
	{"Plans go on with a provider whose package is not the listed one.", "server/controller/providers.go",
		`	if distrusted(why) {
`, `	if false {
`, "TestDistrustedPackageIsNotUsed"},
	{"A package that nothing vouches for is called verified.", "server/controller/trust.go",
		`	case provider.Nothing:
`, `	case provider.Nothing:
		set(v1alpha1.ReasonChecksumListed, "%s", v.From)
	case provider.Knowledge(-1):
`, "TestConditionsOfTrust"},
}
