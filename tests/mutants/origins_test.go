package mutants

var originMutants = []mutant{
	{"A secret loses its origin on its way through the scope, and goes to any account.", "internal/scope/scope.go",
		"return lang.MarkOrigin(v, s.originOf(addr, \"\"))", "return v, nil", "TestScope"},
	{"A record forgets where its secret came from, and an output gives it away.", "internal/instance/marks.go",
		"if origins := lang.BoundOrigins(lang.OriginsIn(m.Marks), maxOrigins); len(origins) > 0 {", "if origins := lang.OriginsIn(nil); len(origins) > 0 {", "TestSensitivePathsKeepOrigins"},
	{"The author of a stack puts a secret of another namespace into an output.", "internal/query/outputs.go",
		"\t\tif len(missing) > 0 {\n", "\t\tif false {\n", "TestOutputsNeedTheRightsToAllOrigins"},
	{"A secret goes to another account that has the same name.", "activities/planning/secrets.go",
		"return a.provider == other.provider && a.configuration.Same(other.configuration)", "return a.provider == other.provider", "TestDiscloses"},
	{"A tag gives a secret to whoever may list the resources of the account.", "activities/planning/secrets.go",
		"case s.Hidden && to.same(from):", "case to.same(from):", "TestDiscloses"},
	{"A value that planning did not know gives away the secret of another object.", "activities/changes/secrets.go",
		"if !slices.Contains(c.Origins, ledger.Origin(o.Address)) {", "if false {", "TestUnplannedOrigin"},
	{"A user reads a Secret in the answer of a patch.", "server/registry/unreadable.go",
		"if len(missing) < len(readsOf(info)) {", "if true {", "server:TestWritesReturnNothingThatTheUserMayNotGet"},
	{"A user reads a Secret in the annotation that kubectl apply wrote.", "server/registry/unreadable.go",
		"\"creationTimestamp\", \"deletionTimestamp\"}", "\"creationTimestamp\", \"deletionTimestamp\", \"annotations\"}", "server:TestWritesReturnNothingThatTheUserMayNotGet"},
}
