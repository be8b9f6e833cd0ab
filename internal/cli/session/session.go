// Package session is the connection of a command to a server: the flags of kubectl, the clients, the kinds that the
// server has, and what all verbs have in common: their run, completion and the explanation of errors. It knows no
// verb.
package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/hykube/hykube/internal/cli/jsonlines"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/terminal"
	"github.com/hykube/hykube/internal/cli/version"
)

// Session holds the common state of all verbs: the terminal and, after connect, the clients of one server.
type Session struct {
	*terminal.Terminal
	// Flags are kubectl's flags that select a server and a user.
	Flags clientFlags

	// Interrupts returns a channel that receives each Ctrl-C until stop is called.
	Interrupts func() (c <-chan struct{}, stop func())

	// The clients below exist after Connect.
	Config    *rest.Config
	HTTP      *http.Client
	Hykube    rest.Interface // hykube.io/v1alpha1
	Objects   dynamic.Interface
	Discovery discovery.CachedDiscoveryInterface
	Mapper    meta.ResettableRESTMapper
	Namespace string
	// Enforce is true if the namespace was set with -n, so that files must not have another one.
	Enforce bool
	// Sources maps addresses to the objects of files that this command read. It is nil for an address that occurs
	// twice.
	Sources map[string]Source
	// Printed is the set of diagnostics that were printed with the plan.
	Printed map[v1alpha1.Diagnostic]bool
	// EndedBefore holds, for each plan that this command created, the plans of its namespace that had ended before.
	EndedBefore map[types.UID]map[types.UID]bool
	// Frozen has the namespaces whose plans the server did not apply when this command created its last plan there.
	Frozen map[string]bool

	// Lines writes the progress of a verb with -o json. It is nil for other verbs and formats.
	Lines *jsonlines.Writer

	once sync.Once
	err  error
}

// Source is an object of a file.
type Source interface {
	// FieldPlace returns the position of a field of the resource, such as "main.yaml:12:9".
	FieldPlace(field string) string
}

// Complete connects. Verbs with arguments have their own Complete.
func (s *Session) Complete([]string) error { return s.Connect() }

// Validate returns nil. Verbs with flags to check have their own Validate.
func (s *Session) Validate() error { return nil }

// UseTerminal lets the session use another terminal until restore is called.
func (s *Session) UseTerminal(t terminal.Terminal) (restore func()) {
	own := s.Terminal
	s.Terminal = &t
	return func() { s.Terminal = own }
}

// PlanArgument holds the common options of verbs with the name of a plan.
type PlanArgument struct {
	*Session
	// Name is empty if no plan is named.
	Name string
}

// Complete reads the name from the arguments.
func (o *PlanArgument) Complete(args []string) error {
	if len(args) > 0 {
		o.Name = args[0]
	}
	return o.Connect()
}

// Connect reads the kubeconfig and creates the clients. It sends no request.
func (s *Session) Connect() error {
	s.once.Do(func() { s.err = s.dial() })
	return s.err
}

func (s *Session) dial() error {
	cfg, err := s.Flags.config()
	if err != nil {
		return err
	}
	s.Namespace, s.Enforce, err = s.Flags.loader().Namespace()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.UserAgent = "kubectl-hykube/" + version.Version
	// The server has its own limits, so the client needs none.
	cfg.QPS, cfg.Burst = -1, 0
	cfg.WarningHandler = rest.NewWarningWriter(s.ErrOut,
		rest.WarningWriterOptions{Deduplicate: true, Color: s.Style.Color})
	s.Config = cfg
	if s.HTTP, err = rest.HTTPClientFor(cfg); err != nil {
		return fmt.Errorf("set up connection: %w", err)
	}
	if s.Hykube, err = newHykubeClient(cfg, s.HTTP); err != nil {
		return err
	}
	if s.Objects, err = dynamic.NewForConfigAndClient(cfg, s.HTTP); err != nil {
		return fmt.Errorf("set up client: %w", err)
	}
	if s.Discovery, err = s.Flags.discovery(cfg); err != nil {
		return fmt.Errorf("set up discovery: %w", err)
	}
	s.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(s.Discovery)
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

// ErrNoName is the error of a verb without the name of a plan.
var ErrNoName = errors.New("name a plan; `kubectl get plans` lists them, and `kubectl hykube state list` what is recorded")

// clientFlags holds kubectl's flags that select a server and a user.
type clientFlags struct {
	kubeconfig string
	cacheDir   string
	overrides  clientcmd.ConfigOverrides
}

// Add adds the flags.
func (f *clientFlags) Add(fs *pflag.FlagSet) {
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

// RestOf returns the token with which a list continues after an error: the server has forgotten the revision of the
// first page, and returns the rest at the current one. It is "" after another error, or without one.
func RestOf(err error) string {
	if status := APIStatus(err); status != nil && apierrors.IsResourceExpired(err) {
		return status.Continue
	}
	return ""
}

// Pause waits for a time, or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ListPage is the number of objects per list request, and ListAtOnce the number of kinds that are listed concurrently.
const (
	ListPage   = 500
	ListAtOnce = 16
)

// verb is the interface of every command: an options struct that completes, validates and runs itself.
type verb interface {
	Complete(args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// Run returns the RunE function of a verb.
func Run(v verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkSingleDash(cmd); err != nil {
			return err
		}
		if err := v.Complete(args); err != nil {
			return err
		}
		if err := printer.CheckOutput(cmd); err != nil {
			return err
		}
		if err := v.Validate(); err != nil {
			return err
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		return v.Run(ctx)
	}
}

// OnInterrupt returns a channel that receives each Ctrl-C, which then does not end the process, until stop is called.
func OnInterrupt() (<-chan struct{}, func()) {
	signals, out, end := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-end:
					return
				}
			case <-end:
				return
			}
		}
	}()
	return out, func() { signal.Stop(signals); close(end) }
}
