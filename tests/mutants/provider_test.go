package mutants

var providerMutants = []mutant{
	{"A provider whose files were changed on the disk is run.", "internal/provider/package.go",
		"if err == nil && got != p.Checksum {", "if false {", "TestInstallRefusesWhatChanged"},
	{"A mirror replaces an installed version with other files.", "internal/provider/installer.go",
		"} else if sum != r.Checksum {", "} else if false && sum != r.Checksum {", "TestInstallRefusesWhatChanged"},
	{"A package from a network mirror is not compared with its hashes.", "internal/provider/place.go",
		"if !slices.Contains(h1, got) {", "if false {", "TestInstallFromNetworkMirror"},
	{"A download that was damaged on its way is installed.", "internal/provider/place.go",
		"if wrong, ok := errors.AsType[*registry.ChecksumError](err); ok {", "if wrong, ok := errors.AsType[*registry.ChecksumError](err); ok && wrong == nil {", "TestInstallFromRegistryRefuses"},
	{"A provider that speaks another protocol is offered.", "internal/provider/place.go",
		"if err != nil || !supportsProtocol(entry.Protocols) {", "if err != nil {", "TestInstallFromRegistry|TestInstallFromRegistryRefuses"},
	{"Resources are made with the old configuration of a provider.", "internal/provider/pool.go",
		"return a.RawEquals(b)", "return true", "TestPoolRunsAProtocol6Provider|TestPoolReplacesWornProcesses|TestPoolRestartsWhatDied"},
	{"A server runs more processes than it may.", "internal/provider/pool.go",
		"if len(p.all) >= p.config.MaxProcesses {", "if false {", "TestPoolLimit"},
	{"A provider that nobody uses runs for ever.", "internal/provider/pool.go",
		"if proc.leases == 0 && proc.idleSince == mark {", "if proc.leases < 0 && proc.idleSince == mark {", "TestPoolIdleProcessesEnd"},
	{"A worn provider is never replaced, and fills the memory.", "internal/provider/pool.go",
		"proc.server.Made() >= p.config.MaxCalls", "false", "TestPoolReplacesWornProcesses"},
}
