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

// session holds the common state of all verbs: the terminal and, after connect, the clients of one server.
type session struct {
	*terminal
	flags clientFlags

	// interrupts returns a channel that receives each Ctrl-C until stop is called.
	interrupts func() (c <-chan struct{}, stop func())

	cfg       *rest.Config
	http      *http.Client
	hykube    rest.Interface // hykube.io/v1alpha1
	objects   dynamic.Interface
	disco     discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
	namespace string
	// enforce is true if the namespace was set with -n, so that files must not have another one.
	enforce bool
	// sources maps addresses to the files of the objects that this command read.
	sources map[string]manifest
	// printed is the set of diagnostics that were printed with the plan.
	printed map[v1alpha1.Diagnostic]bool
	// endedBefore holds, for each plan that this command created, the plans of its namespace that had ended before.
	endedBefore map[types.UID]map[types.UID]bool

	// lines writes the progress of a verb with -o json. It is nil for other verbs and formats.
	lines *jsonLines

	once sync.Once
	err  error
}

// Complete connects. Verbs with arguments have their own Complete.
func (s *session) Complete([]string) error { return s.connect() }

// Validate returns nil. Verbs with flags to check have their own Validate.
func (s *session) Validate() error { return nil }

// planArgument holds the common options of verbs with the name of a plan.
type planArgument struct {
	*session
	// name is empty if no plan is named.
	name string
}

// Complete reads the name from the arguments.
func (o *planArgument) Complete(args []string) error {
	if len(args) > 0 {
		o.name = args[0]
	}
	return o.connect()
}

// connect reads the kubeconfig and creates the clients. It sends no request.
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
	// The server has its own limits, so the client needs none.
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

// fixedKind is a kind that every server has.
type fixedKind struct {
	kind
	namespaced bool
	// short is the short name of the kind; empty if it has none.
	short string
}

// fixedKinds lists kinds that need no discovery.
var fixedKinds = []fixedKind{
	{kind{namespaces, "Namespace"}, false, "ns"},
	{kind{corev1.SchemeGroupVersion.WithResource("secrets"), "Secret"}, true, ""},
	{kind{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap"}, true, "cm"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("providers"), "Provider"}, false, "prov"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("providerconfigs"), "ProviderConfig"}, true, "pc"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource(setsResource), "ResourceSet"}, true, "rset"},
	{moduleKind, true, "mod"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("plans"), "Plan"}, true, ""},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("planpolicies"), "PlanPolicy"}, true, "pp"},
	{kind{v1alpha1.SchemeGroupVersion.WithResource("clusterplanpolicies"), "ClusterPlanPolicy"}, false, "cpp"},
}

// mapping returns the resource of a kind. Errors are those of the mapper; meta.IsNoMatchError identifies an unknown
// kind.
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

// resource returns the client of a resource in a namespace; "" means cluster scope.
func (s *session) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.objects.Resource(gvr)
	}
	return s.objects.Resource(gvr).Namespace(namespace)
}

// resourceKinds returns the served kinds of all providers.
func (s *session) resourceKinds(ctx context.Context) ([]kind, error) {
	s.disco.Invalidate() // kinds change with the installed providers
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

// clientFlags holds kubectl's flags that select a server and a user.
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
	fs.Lookup("cache-dir").DefValue = "$HOME/.kube/cache" // the default in the help must not depend on the user
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.ShortName = "n"
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.overrides, fs, names)
	// kubectl's texts where they are clearer than client-go's.
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

// config returns the client configuration for the flags and the kubeconfig.
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

// discovery returns a discovery client with kubectl's cache: the same directory and layout.
func (f *clientFlags) discovery(cfg *rest.Config) (discovery.CachedDiscoveryInterface, error) {
	host := strings.Replace(strings.Replace(cfg.Host, "https://", "", 1), "http://", "", 1)
	dir := filepath.Join(f.cacheDir, "discovery", unsafePath.ReplaceAllString(host, "_"))
	return disk.NewCachedDiscoveryClientForConfig(cfg, dir, filepath.Join(f.cacheDir, "http"), 6*time.Hour)
}
