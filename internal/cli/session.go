package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"

	"github.com/hykube/hykube/api/v1alpha1"
)

// session is what every verb shares: the terminal and, once connected, the clients of one server.
type session struct {
	*terminal
	flags clientFlags

	// interrupts delivers Ctrl-C while a verb waits.
	interrupts func() (c <-chan struct{}, stop func())

	cfg       *rest.Config
	http      *http.Client
	hykube    rest.Interface // hykube.io/v1alpha1
	objects   dynamic.Interface
	disco     discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
	namespace string
	// enforce is true when the namespace was given with -n, so that files must not name another one.
	enforce bool
	// sources are the files of the objects that this command read, by address.
	sources map[string]manifest
	// endedBefore are, for each plan that this command created, the plans of its namespace that had ended by then.
	endedBefore map[types.UID]map[types.UID]bool

	once sync.Once
	err  error
}

// Complete connects: a verb that reads arguments has a Complete of its own.
func (s *session) Complete([]string) error { return s.connect() }

// Validate finds nothing wrong: a verb with flags to check has a Validate of its own.
func (s *session) Validate() error { return nil }

// planArgument is what verbs share that take the name of a plan.
type planArgument struct {
	*session
	// name is empty when no plan is named.
	name string
}

// Complete takes the name from the arguments.
func (o *planArgument) Complete(args []string) error {
	if len(args) > 0 {
		o.name = args[0]
	}
	return o.connect()
}

// connect reads the kubeconfig and makes the clients. It sends nothing.
func (s *session) connect() error {
	s.once.Do(func() { s.err = s.dial() })
	return s.err
}

func (s *session) dial() error {
	cfg, err := s.flags.config()
	if err != nil {
		return err
	}
	s.namespace, s.enforce, err = s.flags.loader().Namespace()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.UserAgent = "kubectl-hykube/" + Version
	// The server has its own fairness; a client that sleeps only makes people wait.
	cfg.QPS, cfg.Burst = -1, 0
	cfg.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: s.style.Color})
	s.cfg = cfg
	if s.http, err = rest.HTTPClientFor(cfg); err != nil {
		return fmt.Errorf("set up connection: %w", err)
	}
	if s.hykube, err = newHykubeClient(cfg, s.http); err != nil {
		return err
	}
	if s.objects, err = dynamic.NewForConfigAndClient(cfg, s.http); err != nil {
		return fmt.Errorf("set up client: %w", err)
	}
	if s.disco, err = s.flags.discovery(cfg); err != nil {
		return fmt.Errorf("set up discovery: %w", err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(s.disco)
	return nil
}

func newHykubeClient(cfg *rest.Config, client *http.Client) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := rest.CopyConfig(cfg)
	c.APIPath = "/apis"
	c.GroupVersion = &v1alpha1.SchemeGroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	out, err := rest.RESTClientForConfigAndClient(c, client)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return out, nil
}

// fixedKind is a kind that is the same on every server.
type fixedKind struct {
	kind
	namespaced bool
	// short is the short name of the kind; empty when it has none.
	short string
}

// fixedKinds need no discovery.
var fixedKinds = []fixedKind{
	{kind{namespaces, "Namespace"}, false, "ns"},
	{kind{corev1.SchemeGroupVersion.WithResource("secrets"), "Secret"}, true, ""},
	{kind{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap"}, true, "cm"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("providers"), "Provider"}, false, "prov"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"), "ProviderConfig"}, true, "pc"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("plans"), "Plan"}, true, ""},
}

// mapping finds the resource of a kind. errors are those of the mapper: meta.IsNoMatchError tells an unknown kind.
func (s *session) mapping(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	for _, f := range fixedKinds {
		if f.gvr.Group == gvk.Group && f.kind.kind == gvk.Kind {
			return gvk.GroupVersion().WithResource(f.gvr.Resource), f.namespaced, nil
		}
	}
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// resource is the client of one resource in a namespace; "" is cluster scope.
func (s *session) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.objects.Resource(gvr)
	}
	return s.objects.Resource(gvr).Namespace(namespace)
}

// resourceKinds are the served kinds of all providers.
func (s *session) resourceKinds(ctx context.Context) ([]kind, error) {
	s.disco.Invalidate() // kinds come and go with providers
	lists, err := discovery.ServerPreferredNamespacedResources(s.disco)
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list kinds: %w", err)
	}
	var out []kind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		if _, ok := v1alpha1.ProviderOfGroup(gv.Group); !ok {
			continue
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") {
				continue
			}
			out = append(out, kind{gvr: gv.WithResource(r.Name), kind: r.Kind})
		}
	}
	return out, ctx.Err()
}

type kind struct {
	gvr  schema.GroupVersionResource
	kind string
}

var errNoName = errors.New("name a plan; `kubectl get plans` lists them, and `kubectl hykube state list` what is recorded")

// clientFlags are kubectl's own flags that choose a server and a user.
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
