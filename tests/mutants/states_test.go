package mutants

var stateMutants = []mutant{
	{"A user without the right to secrets pushes a Terraform state.", "server/states/states.go",
		"{Verb: store.VerbGet, Namespace: namespace, Group: group, Resource: plural + \"/state\", Name: name},", "", "TestRights"},
	{"A push replaces a record without being asked to.", "server/states/page.go",
		"case !t.push.Spec.Force:", "case false:", "TestProblems"},
	{"A push takes over a resource that another object manages.", "server/states/page.go",
		"if other.Right == nil {", "if false {", "TestProblems"},
	{"A push replaces the record of a change that runs.", "server/states/page.go",
		"case old.Intent != nil:", "case false:", "TestProblems"},
	{"Who pushed a state has no part in what follows from it.", "server/states/page.go",
		"Contributors: contributor.Merge(old.Contributors, by)", "Contributors: contributor.Merge(old.Contributors)", "TestPushAndPull"},
	{"A user commits what another user checked.", "server/states/states.go",
		"stored.ID == p.Spec.ID && stored.User == who.Username", "stored.ID == p.Spec.ID", "TestRightsOfTheCommit"},
	{"A commit does not check the rights again.", "server/states/commit.go",
		"if err := forbidden(\"statepushes\", \"push\", missing); err != nil {", "if err := forbidden(\"statepushes\", \"push\", missing[:0]); err != nil {", "TestRightsOfTheCommit"},
	{"A commit overwrites what a plan recorded meanwhile.", "internal/ledger/push.go",
		"Value: value, Revision: s.Revision}", "Value: value, Revision: AnyRevision}", "TestAPushIsAllOrNothing"},
	{"A user without the right to secrets pulls the records.", "server/states/pull.go",
		"return forbidden(\"statepulls\", \"pull\", missing)", "return forbidden(\"statepulls\", \"pull\", missing[:0])", "TestRights"},
}
