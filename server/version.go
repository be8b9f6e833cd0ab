package server

import (
	"runtime"
	"runtime/debug"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// kubernetesVersion is the version of the Kubernetes API machinery that is built in; /version tells it, so that
// clients know which API conventions to expect.
const kubernetesVersion = "v1.36.3"

// Version is Hykube's own version, set by the linker for a release.
var Version = "0.1.0-dev"

// effectiveVersion is Kubernetes' for behaviour, and ours for what /version says.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

func newEffectiveVersion() basecompatibility.EffectiveVersion {
	return effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
}

func (v effectiveVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = kubernetesVersion + "+hykube-" + Version
	info.GitTreeState, info.GitCommit, info.BuildDate = "", "", ""
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				info.GitCommit = s.Value
			case "vcs.time":
				info.BuildDate = s.Value
			}
		}
	}
	info.GoVersion, info.Compiler, info.Platform = runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH
	return info
}
