package mutants

var storageMutants = []mutant{
	{"All watches together hold as much as is written.", "server/storage/queue.go",
		"for w.held > maxHeldBytes {", "for false {", "TestQueuesAreBoundedTogether"},
	{"A watch that nobody reads holds as much as is written.", "server/storage/queue.go",
		"return len(one.queue) > maxQueuedEvents || one.bytes > maxQueuedBytes", "return false", "TestSlowWatchEndsAlone"},
	{"Every watch decodes every event, and holds its own copy.", "server/storage/shared.go",
		"one := s.known[key].Value(); one != nil", "one := s.known[key].Value(); one != nil && false", "TestObjectsAreDecodedAndEncodedOnce"},
	{"Progress says that there are no events that are still in the queue.", "server/storage/queue.go",
		"\t\treturn events, true, 0\n", "\t\treturn events, true, one.passed\n", "TestQueuesShareEvents"},
	{"A watch by labels goes on showing an object that lost its label.", "server/storage/uncached.go",
		"\tcase was:\n\t\treturn w.send(watch.Deleted, before)\n", "\tcase was && deleted:\n\t\treturn w.send(watch.Deleted, before)\n", "TestWatchesOfUncachedStoreAreThoseOfEtcd3"},
	{"A client that never learns where its list ends.", "server/storage/uncached.go",
		"endOfInitial: asked && opts.Predicate.AllowWatchBookmarks", "endOfInitial: false", "TestWatchesOfUncachedStoreAreThoseOfEtcd3"},
}
