package mutants

var accessMutants = []mutant{
	{"Every viewer reads the secrets of states.", "server/access/roles.go",
		"rule(group, slices.Concat(resources, status), readVerbs)", "rule(group, []string{\"*\"}, readVerbs)", "TestRoles|TestProviderRolesKeepStateFromViewers"},
	{"Every viewer reads Secrets.", "server/access/roles.go",
		"[]string{\"configmaps\", \"events\", \"namespaces\",", "[]string{\"configmaps\", \"secrets\", \"events\", \"namespaces\",", "TestRoles"},
	{"Whoever writes plans approves them.", "server/access/roles.go",
		"rule(group, []string{\"plans\"}, writeVerbs),", "rule(group, []string{\"plans\"}, append(writeVerbs, VerbApprove)),", "TestRoles"},
	{"Every viewer queries providers in the name of a ProviderConfig.", "server/access/roles.go",
		"rule(group, []string{\"evaluations\"}, []string{\"create\"})", "rule(group, []string{\"evaluations\", \"queries\"}, []string{\"create\"})", "TestRoles"},
	{"A broken token file locks everybody out.", "server/access/tokens.go",
		"\t\tt.broken.Set(1)\n", "\t\tt.broken.Set(1)\n\t\tt.current.Store(&tokenfile.TokenAuthenticator{})\n", "TestTokenFileIsReadAgain"},
	{"A token that was taken out of the file stays valid.", "server/access/tokens.go",
		"\tt.current.Store(next)\n", "\t_ = next\n", "TestTokenFileIsReadAgain"},
	{"An authority is used with a key that is another's.", "server/access/authority.go",
		"!ok || !public.Equal(cert.PublicKey) {", "!ok || public == nil {", "TestAuthorityNeedsItsOwnKey"},
	{"The administrator's certificate of an older version stays for a year.", "server/access/certificates.go",
		"left < lifetime/3 || left > lifetime {", "left < lifetime/3 {", "TestAdministratorsCertificate"},
	{"The administrator's certificate expires while the server runs.", "server/access/certificates.go",
		"left < lifetime/3 || left > lifetime {", "left > lifetime {", "TestAdministratorsCertificate"},
}
