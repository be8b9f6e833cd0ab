package mutants

var kindsMutants = []mutant{
	{"A write is checked as its object was before unknown fields were dropped.", "server/kinds/spec.go",
		"!reflect.DeepEqual(p.spec, spec) {", "!reflect.DeepEqual(p.spec, spec) && false {", "TestFieldValidation|TestReferencesNeedTheRightToRead"},
	{"An object refers to a Secret that its author may not read.", "server/kinds/references.go",
		"\tif len(problems) == 0 {\n\t\treturn nil\n\t}\n\treturn apierrors.NewForbidden", "\tif true || len(problems) == 0 {\n\t\treturn nil\n\t}\n\treturn apierrors.NewForbidden", "TestReferencesNeedTheRightToRead"},
	{"The right to read is asked for when an object is created, and not when it is changed.", "server/kinds/references.go",
		"if old != nil && !changed(u, old, \"spec\") && !changed(u, old, \"lifecycle\") {", "if old != nil {", "TestReferencesNeedTheRightToRead"},
	{"An object is planned with a ProviderConfig that its author may not use.", "server/kinds/references.go",
		"\tif problem != \"\" {\n\t\tproblems = append(problems, problem)\n", "\tif false {\n\t\tproblems = append(problems, problem)\n", "TestAuthorsNeedTheRightsOfWhatTheyName"},
	{"An object takes over, or waits for, what its author may not read.", "server/kinds/references.go",
		"refs = slices.Concat(refs, s.lifecycleReferences(u), movedFrom(u))", "refs = slices.Concat(refs, movedFrom(u)[:0])", "TestAuthorsNeedTheRightsOfWhatTheyName"},
	{"Whoever may delete an object leaves its infrastructure running and unknown.", "server/kinds/strategy.go",
		"\tif byServer(ctx) {\n\t\treturn nil\n\t}\n\treturn field.ErrorList{field.Forbidden(", "\tif true || byServer(ctx) {\n\t\treturn nil\n\t}\n\treturn field.ErrorList{field.Forbidden(", "TestFinalizerIsTheServersOwn"},
	{"A client writes the status of an object with its spec.", "server/kinds/strategy.go",
		"\tif status, ok := o.Object[\"status\"]; ok {\n\t\tn.Object[\"status\"] = status\n", "\tif status, ok := o.Object[\"status\"]; ok {\n\t\t_ = status\n", "TestStatusSubresource|TestGenerationFollowsSpecAndLifecycle"},
	{"A change of lifecycle does not make a plan look at the object.", "server/kinds/strategy.go",
		"if changed(n, o, \"spec\") || changed(n, o, \"lifecycle\") {", "if changed(n, o, \"spec\") {", "TestGenerationFollowsSpecAndLifecycle"},
	{"An administrator overwrites a status that the server wrote.", "server/kinds/strategy.go",
		"if !byServer(ctx) && ctx.Value(ownStatus{}) == nil && changed(n, o, \"status\") {", "if false {", "TestStatusSubresource"},
	{"A mistyped type is found only by a plan.", "server/kinds/unknown.go",
		"if t.certain && !slices", "if false && !slices", "TestWriteLooksUpTypesAndProviderConfig"},
}
