package server

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
)

// kubernetesVersion is the version of the built-in Kubernetes API machinery. /version returns it, so that clients know
// the API conventions.
const kubernetesVersion = "v1.36.3"

// Version is Hykube's version, which the linker sets for a release.
var Version = "0.1.0-dev"

// build identifies the build of this program. Builds of a version between releases differ in the size or the time of
// the file.
func build() string {
	path, err := os.Executable()
	if err != nil {
		return Version
	}
	info, err := os.Stat(path)
	if err != nil {
		return Version
	}
	return fmt.Sprintf("%s, %d bytes of %s", Version, info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
}

// effectiveVersion uses Kubernetes' version for behaviour and Hykube's version for /version.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
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
