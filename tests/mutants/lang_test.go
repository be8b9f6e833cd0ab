package mutants

var langMutants = []mutant{
	{"A value from a Secret is shown wherever an expression puts it.", "internal/lang/evaluate.go",
		"\tcase r.Stored() && r.Type == TypeSecret:\n\t\treturn v.Mark(Sensitive)\n", "", "TestSecretsAreMarkedWhateverTheScopeReturns"},
	{"A Secret in a call of a function that is not known yet needs no right.", "internal/lang/config.go",
		"	if p.referencesOnly {\n		return expr, true", "	if false {\n		return expr, true", "internal/catalog:TestConfigurationBeforeAnythingIsKnown"},
	{"An ephemeral value is stored in a state.", "internal/lang/evaluate.go",
		"return v.Mark(Ephemeral)\n", "return v\n", "TestEphemeralValuesEndInWriteOnlyArguments|TestEvaluate"},
	{"The error of an expression shows the secret that it was made of.", "internal/lang/evaluate.go",
		"fromHCL(diags, n.field, !ev.static && ev.usesSecret(n))", "fromHCL(diags, n.field, false)", "TestErrorsKeepSecrets"},
	{"A secret in a nested block of a state loses its mark.", "internal/lang/marks.go",
		"cty.Value { return markBlock(nb.Block, e) })", "cty.Value { return e })", "TestMarkSensitive"},
	{"A reference to something that is not there is taken for a value that is not known yet.", "internal/lang/evaluate.go",
		"\t\t\tev.diags = append(ev.diags, missingObject(r, nil))\n", "", "TestEvaluateErrors"},
	{"Whoever has no right to a state reads a secret of it through a function.", "internal/lang/passonly.go",
		"if missing, no := held(a); no {", "if missing, no := held(a); no && false {", "TestPassOnlyRefuses"},
	{"Whoever has no right to a state reads a secret of it bit by bit, through conditions.", "internal/lang/passonly.go",
		"if missing, no := held(v); no {\n\t\terr := costBudgetOf", "if missing, no := held(v); no && false {\n\t\terr := costBudgetOf", "TestPassOnlyRefuses"},
	{"Whoever has no right to a state reads a secret of it through try and can.", "internal/lang/passonly.go",
		"v = v.WithMarks(passOnlyMarks(closure.EvalContext, t))", "_ = t", "TestPassOnlyRefuses"},
	{"A format with a precision cuts a secret into readable pieces.", "internal/lang/passonly.go",
		"embeds = printsWholeArguments(args[0])", "embeds = true", "TestPassOnlyRefuses"},
}
