package mutants

var contributorMutants = []mutant{
	{"A user lets a suspended stack continue and becomes its author.", "server/registry/stack.go",
		"before.Suspend = s.Spec.Suspend", "before.Suspend = old.Spec.Suspend", "TestAuthorOfAStack"},
	{"A user undoes the approvals of others with a plan of the same spec.", "server/controller/superseded.go",
		"later(l, p) && mayReplace(l, p) {", "later(l, p) {", "TestLaterPlansSupersedeEarlierOnes"},
	{"A write takes over what another user wrote of an object.", "internal/contributor/contributor.go",
		"func Add(list []v1alpha1.Contributor, w Write) []v1alpha1.Contributor {\n\treturn Merge(list, ", "func Add(list []v1alpha1.Contributor, w Write) []v1alpha1.Contributor {\n\treturn Merge(", "TestAddKeepsTheOthers"},
	{"A user who wrote an object again after a plan was made is forgotten with its apply.", "internal/contributor/contributor.go",
		"&& !d.At.Before(&c.At)", "", "TestWithout"},
	{"The users whom a list leaves out are forgotten.", "internal/contributor/contributor.go",
		"return append(slices.Clone(list[over:users]), more)", "return slices.Clone(list[over:users])", "TestLimit"},
	{"What a worker wrote for a user counts as written by the user alone.", "internal/contributor/contributor.go",
		"return append([]user{{who.Username, who.TokenFile}}, slices.Compact(others)...)", "return []user{{who.Username, who.TokenFile}}", "TestAUserThroughAnotherIsAnother"},
	{"The rights of a user are taken for those of the user through the worker of another one.", "activities/changes/selfapproval.go",
		"who.Username, who.Groups, who.Through)", "who.Username, who.Groups, \"\")", "TestWhyPersonThroughAWorkflow"},
	{"An instance of a set is attributed to the writers of another key.", "activities/planning/contributors.go",
		"cmp.Or(from.Key, key.Name)", "cmp.Or(from.Key, key.Text()+\"-\")", "TestWritersOfInstances"},
	{"A user who writes all keys of a ConfigMap again takes over the removals of others.", "internal/contributor/keys.go",
		"if c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote), has); len(c.Wrote) > 0 {", "if false {", "TestRemovedKeysKeepTheirWriters"},
	{"The writer of a key counts as that of no key.", "internal/contributor/keys.go",
		"case key == \"\" || slices.Contains(keys, key):", "case key == \"\":", "TestWritersOfKeys"},
}
