package storage

import (
	"sync"

	"k8s.io/apiserver/pkg/storage"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
)

// featureChecker answers for the embedded kine. Upstream's asks the client's endpoints for their version, and ours has none,
// so that consistent reads from the watch cache would silently be off.
type featureChecker struct {
	etcdfeature.FeatureSupportChecker
}

func (featureChecker) Supports(f storage.Feature) bool { return f == storage.RequestWatchProgress }

// replaceFeatureChecker runs once: the checker is a variable of the whole process.
var replaceFeatureChecker = sync.OnceFunc(func() {
	etcdfeature.DefaultFeatureSupportChecker = featureChecker{etcdfeature.DefaultFeatureSupportChecker}
})
