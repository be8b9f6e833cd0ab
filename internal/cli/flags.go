package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"
)

// clientFlags are kubectl's own flags that choose a server and a user. They are bound with client-go alone:
// cli-runtime's ConfigFlags would do the same and bring kustomize into a binary that should start at once.
type clientFlags struct {
	kubeconfig string
	cacheDir   string
	overrides  clientcmd.ConfigOverrides
}

func (f *clientFlags) add(fs *pflag.FlagSet) {
	cache := os.Getenv("KUBECACHEDIR")
	if cache == "" {
		cache = filepath.Join(homedir.HomeDir(), ".kube", "cache")
	}
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use")
	fs.StringVar(&f.cacheDir, "cache-dir", cache, "Directory of cached discovery answers")
	fs.Lookup("cache-dir").DefValue = "$HOME/.kube/cache" // what is true for every reader of the help
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.ShortName = "n"
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.overrides, fs, names)
	// kubectl's words, where they say more than client-go's.
	for name, usage := range map[string]string{
		"namespace":       "Namespace to work in; the kubeconfig's own when left out",
		"request-timeout": "How long to wait for one request, such as 5s; 0 means for ever",
	} {
		fs.Lookup(name).Usage = usage
	}
}

func (f *clientFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	rules.ExplicitPath = f.kubeconfig
	o := f.overrides
	o.ClusterDefaults = clientcmd.ClusterDefaults
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o)
}

// config is the server and the user that the flags and the kubeconfig name.
func (f *clientFlags) config() (*rest.Config, error) {
	raw, err := f.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(raw.Clusters) == 0 && f.overrides.ClusterInfo.Server == "" {
		return nil, errors.New("no server is configured: set --kubeconfig or KUBECONFIG to the file that the server wrote, DATA-DIR/admin.kubeconfig")
	}
	cfg, err := f.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return cfg, nil
}

var unsafePath = regexp.MustCompile(`[^(\w/.)]`)

// discovery is kubectl's own discovery cache, shared with kubectl: same directory, same layout.
func (f *clientFlags) discovery(cfg *rest.Config) (discovery.CachedDiscoveryInterface, error) {
	host := strings.Replace(strings.Replace(cfg.Host, "https://", "", 1), "http://", "", 1)
	dir := filepath.Join(f.cacheDir, "discovery", unsafePath.ReplaceAllString(host, "_"))
	return disk.NewCachedDiscoveryClientForConfig(cfg, dir, filepath.Join(f.cacheDir, "http"), 6*time.Hour)
}
