package mutants

var providerMutants = []mutant{
	{"A provider gets every variable of the server.", "internal/provider/contain/environment.go",
		"if slices.Contains(passed, name) ||", "if true ||", "TestEnvironment"},
	{"A provider may call whatever the kernel has.", "internal/provider/contain/entry/entry_linux.c",
		"if (instructions > 0) {", "if (0) {", "internal/provider:TestHostileProviderIsContained"},
	{"A provider reads every file that its user may read.", "internal/provider/contain/entry/entry_linux.c",
		"if (has_ruleset)", "if (0)", "internal/provider:TestHostileProviderIsContained"},
	{"A provider keeps the group of the server.", "internal/provider/contain/entry/entry_linux.c",
		"check(\"change group\", setresgid(user, user, user));", "", "internal/provider:TestHostileProviderIsContained"},
	{"Each start of a provider first starts the Go runtime.", "internal/provider/contain/entry/entry_linux.c",
		"__attribute__((constructor)) static", "", "internal/provider/contain:TestEntryRunsBeforeGo"},
	{"A provider fills the disk of the server.", "internal/provider/contain/disk.go",
		"case used.exceeds(limits.process):", "case false:", "TestCheckDiskEndsTheLargest"},
	{"A provider fills the disk of the server with deleted files.", "internal/provider/contain/disk_linux.go",
		"used = used.plus(usage{st.Blocks * 512, 1})", "", "internal/provider:TestHostileProviderFillsTheDisk"},
	{"The server takes a cgroup that belongs to another program.", "internal/provider/contain/cgroup/find_linux.go",
		"if delegated(dir) && (", "if (", "TestServerLeavesOtherCgroupsAlone"},
	{"A server that starts ends the providers of another one.", "internal/provider/contain/cgroup/tree_linux.go",
		"if lock, err := dirlock.Lock(dir); err == nil {", "if lock, err := os.Open(dir); err == nil {", "TestLeftovers"},
	{"What a killed server left in its cgroups goes on.", "internal/provider/contain/cgroup/tree_linux.go",
		"\tsweep(root)\n", "", "TestLeftovers"},
	{"A provider has no cgroup.", "internal/provider/contain/command_linux.go",
		"if p.tree != nil && s.contained {", "if false {", "internal/provider:TestProcessesHaveCgroups"},
	{"A provider writes the cgroups, and leaves its own.", "internal/provider/contain/cgroup.go",
		"p.config.Protected = append(p.config.Protected, tree.Root)", "", "TestCgroupsAreProtected"},
	{"A Provider opens the directory above the server's keys.", "internal/provider/contain/policy.go",
		"if within(path, d) || within(d, path) {", "if within(path, d) {", "TestGrantsSpareTheServer"},
	{"A symbolic link to the server's keys is granted.", "internal/provider/contain/policy.go",
		"resolved, err := filepath.EvalSymlinks(path)\n\tif errors", "resolved, err := path, error(nil)\n\tif errors", "TestGrantsSpareTheServer"},
	{"A server that requires sandboxes runs a provider without one.", "internal/provider/contain/policy.go",
		"case p.config.Mode == Require && g.Off:", "case false:", "TestModes"},
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
	{"Resources are made with the old configuration of a provider.", "internal/provider/acquire.go",
		"return a.RawEquals(b)", "return true", "TestPoolRunsAProtocol6Provider|TestPoolReplacesWornProcesses|TestPoolRestartsWhatDied"},
	{"A server runs more processes than it may.", "internal/provider/pool.go",
		"slots: fair.New(c.MaxProcesses)", "slots: fair.New(100 * c.MaxProcesses)", "TestPoolLimit"},
	{"Idle processes stay beside those that may run.", "internal/provider/acquire.go",
		"if running < p.config.MaxProcesses {", "if true {", "TestPoolEndsAnUnwantedStart"},
	{"One namespace holds all provider processes, and others wait for good.", "internal/provider/acquire.go",
		"p.slots.Request(namespace)", "p.slots.Request(\"\")", "TestPoolLeavesProcessesForOtherNamespaces"},
	{"Whoever waits for a process that another namespace requested waits as long as that.", "internal/provider/acquire.go",
		"\tif proc.slot != nil {\n\t\treturn proc, nil, nil\n\t}\n", "\tif proc.slot != nil || proc.leases > 1 {\n\t\treturn proc, nil, nil\n\t}\n", "TestPoolLeavesProcessesForOtherNamespaces"},
	{"A namespace with many processes ends the only one of another.", "internal/provider/acquire.go",
		"n > most || n == most && proc.idle", "n+most < 0 || proc.idle", "TestPoolEndsIdleProcessesOfTheLargestNamespace"},
	{"A start that hangs goes on although nobody waits for it.", "internal/provider/process.go",
		"\tif proc.begun() {\n\t\tproc.stopStart()\n\t}\n", "", "TestPoolEndsAnUnwantedStart"},
	{"One namespace takes every slot, and others wait for good.", "internal/fair/fair.go",
		"s.held[next.key] >= share*s.free && !s.alone(next.key) {", "false {", "TestAHogLeavesSlotsForNewcomers"},
	{"A free slot goes to the namespace that holds the most.", "internal/fair/fair.go",
		"s.held[key] < s.held[next.key] ||", "s.held[key] > s.held[next.key] ||", "TestAWaitingRequestFollowsTheFewestSlots"},
	{"A cancelled plan stays in the queue, and takes a slot for good.", "internal/fair/fair.go",
		"\t\ts.dequeue(r)\n\t\treturn\n", "\t\treturn\n", "TestAcquireEndsWithItsContext"},
	{"Nobody gets the slot that another plan released.", "internal/fair/fair.go",
		"\ts.grant()\n}\n\nfunc (s *Slots) dequeue", "}\n\nfunc (s *Slots) dequeue", "TestSlotsProperties"},
	{"A slot that is released twice counts twice.", "internal/fair/fair.go",
		"\tif r.gone {\n\t\treturn\n\t}\n\tr.gone = true\n\tclose(r.released)\n", "", "TestAcquireEndsWithItsContext"},
	{"A provider that nobody uses runs for ever.", "internal/provider/acquire.go",
		"if proc.leases == 0 && proc.idleSince == mark {", "if proc.leases < 0 && proc.idleSince == mark {", "TestPoolIdleProcessesEnd"},
	{"A worn provider is never replaced, and fills the memory.", "internal/provider/acquire.go",
		"proc.server.Made() >= p.config.MaxCalls", "false", "TestPoolReplacesWornProcesses"},
	{"A package with another checksum than the listed ones is installed.", "internal/provider/verify.go",
		`	return Verification{}, need.mismatch(version, got)`, `	return v, nil`, "TestTrustInRegistry"},
	{"The keys of the Provider are not heeded.", "internal/provider/verify.go",
		`		if !keys.Empty() {`, `		if keys.Empty() {`, "TestTrustInRegistry"},
	{"A mirror's package needs no signature although a key is pinned.", "internal/provider/verify.go",
		`append(need.keys, keys), true`, `append(need.keys, keys), need.signed`, "TestTrustInMirrors"},
	{"A mirror's package is not compared with the registry's.", "internal/provider/verify.go",
		`	case sum != r.Archive:`, `	case false:`, "TestTrustInMirrors"},
	{"A policy's mirrorsMustMatch is not heeded.", "internal/provider/verify.go",
		`mirrorsMatch: rule.MirrorsMustMatch && !t.Kept,`, `mirrorsMatch: false,`, "TestTrustInMirrors"},
	{"A policy's requireSignature is not heeded.", "internal/provider/verify.go",
		`signed: rule.RequireSignature}`, `signed: false}`, "TestTrustInMirrors"},
	{"An old version with its signature passes for a new one.", "internal/provider/verify.go",
		`len(need.keys) > 0 && list.Filename != want {`, `false && list.Filename != want {`, "TestTrustInRegistry"},
	{"A list without a signature is accepted.", "internal/provider/verify.go",
		`	case len(list.Signature) == 0:`, `	case len(list.Signature) == 0 && len(need.checksums) > 0:
		return signer, nil
	case len(list.Signature) == 0:`, "TestTrustInRegistry"},
	{"A changed spec does not apply to an installed package.", "internal/provider/installer.go",
		`	if pkg.Verification, err = in.verify(ctx, need, version, &r); err != nil {`, `	if pkg.Verification, err = in.verify(ctx, Requirements{source: need.source}, version, &r); err != nil {`, "TestTrustInInstalledPackage"},
	{"A source that the trust policy does not allow is installed.", "internal/provider/verify.go",
		`	if err != nil {
		return Requirements{}, err
	}
	if rule`, `	if err != nil {
		err = nil
	}
	if rule`, "TestTrustPolicyRefusesSources"},
	{"A policy that requires checksums installs without them.", "internal/provider/verify.go",
		`rule.RequireChecksums && len(t.Checksums) == 0`, `false && len(t.Checksums) == 0`, "TestTrustPolicyRefusesSources"},
	{"A signature by a stranger's key is accepted.", "internal/provider/signature/signature.go",
		`	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return`, `	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return Signer{}, nil
	case err != nil && len(sig) == 0:
		return`, "TestVerify"},
	{"A signature made after its key expired is accepted.", "internal/provider/signature/signature.go",
		`	case errors.Is(err, pgperrors.ErrKeyExpired):
		return`, `	case errors.Is(err, pgperrors.ErrKeyExpired):
		return named(signer), nil
	case err != nil && len(sig) == 0:
		return`, "TestVerify"},
	{"A revoked key is accepted.", "internal/provider/signature/signature.go",
		`	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return`, `	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return named(signer), nil
	case err != nil && len(sig) == 0:
		return`, "TestVerify"},
	{"A fingerprint accepts every key of the registry.", "internal/provider/signature/signature.go",
		`return bytes.Equal(f, e.PrimaryKey.Fingerprint)`, `return true`, "TestVerify"},
	{"A private key is accepted, and stored for all readers of Providers.", "internal/provider/signature/signature.go",
		`	if strings.Contains(text, privateArmor) {`, `	if false {`, "TestKeys"},
	{"A rule that denies a source allows it.", "internal/provider/trust/trust.go",
		`			if r.Action == Deny {`, `			if false {`, "TestRules"},
	{"A source without a rule is allowed.", "internal/provider/trust/trust.go",
		`	return Rule{}, refused
}`, `	return Rule{}, nil
}`, "TestRules"},
	{"A source with a trailing dot after its host evades a rule.", "internal/provider/source.go",
		`strings.HasSuffix(host, ".")`, `false && strings.HasSuffix(host, ".")`, "TestParseSource"},
	{"A misspelled requirement is ignored.", "internal/provider/trust/trust.go",
		`	decoder.DisallowUnknownFields()`, ``, "TestParseRefuses"},
}
