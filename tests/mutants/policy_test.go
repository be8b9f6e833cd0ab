package mutants

var policyMutants = []mutant{
	{"A rule that cannot be evaluated lets every plan through.", "internal/policy/evaluate.go",
		"result.Effect, result.Approvals = v1alpha1.PolicyDeny, nil\n", "", "TestRuleThatFailsRefuses"},
	{"A cluster policy whose selector cannot be parsed binds no namespace.", "internal/policy/policy.go",
		"selected = err != nil || selector.Matches(labels.Set(namespace))", "selected = err == nil && selector.Matches(labels.Set(namespace))", "TestNamespaceSelector"},
	{"One user who approves twice counts as two.", "internal/policy/verdict.go",
		"seen[by.Username] = true", "seen[by.Username+string(rune(len(seen)))] = true", "TestRequiredApprovals"},
	{"The requester approves their own plan where others must.", "internal/policy/verdict.go",
		"case a.ExcludeRequester && (requester == nil || by.Username == requester.Username):", "case false:", "TestRequiredApprovals"},
	{"An approval counts although the user is in none of the groups.", "internal/policy/verdict.go",
		"case len(a.Groups) > 0 && !slices.ContainsFunc", "case false && !slices.ContainsFunc", "TestRequiredApprovals"},
	{"A plan is applied automatically although a rule requires approvals.", "internal/policy/verdict.go",
		"\tif text := v.Missing(requester, nil); text != \"\" {\n\t\treturn text\n\t}\n", "", "TestManual"},
	{"A plan is applied automatically although no rule allows it.", "internal/policy/verdict.go",
		"if (v.restricted || byPolicy) &&", "if false &&", "TestManual"},
	{"A plan is approved although a policy refuses it.", "server/registry/planpolicy.go",
		"if why := verdict.Denied(); why != \"\" {", "if why := verdict.Denied(); false {", "TestPolicyRefusesAnApproval"},
	{"One approval is enough where a policy requires two.", "server/registry/planpolicy.go",
		"return missing != \"\", nil", "return false, nil", "TestFourEyes"},
	{"Whoever writes policies has plans approved that they may not approve.", "server/registry/planpolicy.go",
		"if !policy.AllowsAutomatic(spec(obj)) {", "if true {", "TestAllowAutomaticNeedsApprove"},
}
