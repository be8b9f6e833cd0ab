package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/speculation"
	"github.com/hykube/hykube/server/storage"
)

// Config is what a server is made of. The zero value of a field that is not said to be required means its default.
type Config struct {
	// DataDir is required.
	DataDir string
	// BindAddress is required.
	BindAddress net.IP
	// SecurePort 0 takes a free port.
	SecurePort int
	// TLSSANs are further names for the serving certificate.
	TLSSANs []string
	// DatastoreEndpoint empty means SQLite in DataDir.
	DatastoreEndpoint string
	EncryptionConfig  string
	// Compaction is the database's; its zero value means the defaults.
	Compaction      storage.Compaction
	TemporalAddress string
	// TemporalNamespace holds the workflows of this server. TemporalCredentials are for the server at TemporalAddress.
	TemporalNamespace   string
	TemporalCredentials engine.Credentials
	ProviderMirrors     []string
	// NetworkMirror is the https:// address of a network mirror, asked after ProviderMirrors; empty means none.
	NetworkMirror      string
	TokenAuthFile      string
	AuthenticationFile string
	// PlanHistoryLimit is the number of finished plans that a namespace keeps, and PlanHistoryAge how long it keeps them; 0 is no bound.
	PlanHistoryLimit int
	PlanHistoryAge   time.Duration
	// Audit nil means no audit.
	Audit  *genericoptions.AuditOptions
	Logger *slog.Logger
	// Wire connects the packages that this one does not import; see wire.go. It is required.
	Wire func(context.Context, *Components) (Wiring, error)
}

// completedConfig holds what is open: New takes it over, and a failed New closes it.
type completedConfig struct {
	*Config
	dir       *dataDir
	listener  net.Listener
	certs     *access.Certificates
	store     *storage.Store
	generic   *genericapiserver.Config
	informers informers.SharedInformerFactory
	client    kubernetes.Interface
	codecs    registry.Codecs
	endAuth   context.CancelFunc
	deletions *deletions
}

// CompletedConfig is a Config whose data directory, port, certificates and database are open.
type CompletedConfig struct{ *completedConfig }

// Complete opens what the server stands on, cheapest first, so that a mistake is told at once and leaves nothing behind.
func (c *Config) Complete(ctx context.Context) (_ CompletedConfig, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	cc := &completedConfig{Config: c, codecs: registry.NewCodecs(), deletions: newDeletions(c.Logger.With("component", "deletions"))}
	defer func() {
		if err != nil {
			err = errors.Join(err, cc.close())
		}
	}()
	if cc.dir, err = openDataDir(c.DataDir); err != nil {
		return CompletedConfig{}, err
	}
	c.DataDir = cc.dir.path
	if cc.listener, err = listen(ctx, c.BindAddress, c.SecurePort); err != nil {
		return CompletedConfig{}, err
	}
	if cc.certs, err = access.OpenCertificates(filepath.Join(c.DataDir, "tls"), c.hosts(), time.Now()); err != nil {
		return CompletedConfig{}, err
	}
	if err = cc.certs.WriteKubeconfig(cc.kubeconfigPath(), cc.url(), time.Now()); err != nil {
		return CompletedConfig{}, err
	}
	cc.store, err = storage.Open(ctx, storage.Config{
		DataDir:          c.DataDir,
		Endpoint:         c.DatastoreEndpoint,
		EncryptionConfig: c.EncryptionConfig,
		Compaction:       c.Compaction,
		Metrics:          legacyregistry.Registerer(),
		Logger:           c.Logger,
	})
	if err != nil {
		return CompletedConfig{}, err
	}
	if err = cc.completeGeneric(ctx); err != nil {
		return CompletedConfig{}, err
	}
	return CompletedConfig{cc}, nil
}

func (c *completedConfig) completeGeneric(ctx context.Context) error {
	g := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.generic = g
	g.EffectiveVersion = newEffectiveVersion()
	g.MaxRequestBodyBytes = kinds.MaxRequestBodyBytes
	g.RequestInfoResolver = undeleteResolver{genericapiserver.NewRequestInfoResolver(g)}
	g.ExternalAddress = c.listener.Addr().String()
	g.PublicAddress = c.BindAddress
	// Watches are told to go; without it their connections would hold the shutdown up.
	g.ShutdownWatchTerminationGracePeriod = time.Second
	g.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	g.RESTOptionsGetter = c.store.RESTOptions(c.codecs.ForStorage, true)

	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", c.certs.ServingCert(), c.certs.ServingKey())
	if err != nil {
		return fmt.Errorf("load serving certificate: %w", err)
	}
	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", c.certs.ClientCA())
	if err != nil {
		return fmt.Errorf("load client authority: %w", err)
	}
	g.SecureServing = &genericapiserver.SecureServingInfo{Listener: impatient{c.listener, writeLimit}, Cert: serving, ClientCA: clientCA}
	g.LoopbackClientConfig = &rest.Config{
		Host:            c.url(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certs.ServerCA()},
		BearerToken:     uuid.NewString(),
		// The server does not throttle itself.
		QPS:                -1,
		DisableCompression: true,
		UserAgent:          "hykube/" + Version,
	}
	if c.client, err = kubernetes.NewForConfig(protobuf(g.LoopbackClientConfig)); err != nil {
		return fmt.Errorf("make loopback client: %w", err)
	}
	c.informers = informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithTransform(withoutManagedFields))

	authCtx, endAuth := context.WithCancel(context.WithoutCancel(ctx))
	c.endAuth = endAuth
	g.Authentication.APIAudiences = []string{access.Audience}
	g.Authentication.Authenticator, err = access.NewAuthenticator(authCtx, access.AuthenticationConfig{
		ClientCA: clientCA, TokenFile: c.TokenAuthFile, ConfigFile: c.AuthenticationFile,
		Metrics: legacyregistry.Registerer(), Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	authorizer, rules := access.NewAuthorizer(c.informers)
	g.Authorization.Authorizer, g.RuleResolver = speculation.Authorizer{Authorizer: authorizer}, rules

	if g.AdmissionControl, err = c.admission(); err != nil {
		return err
	}
	if c.Audit != nil {
		if err := applyAudit(c.Audit, c.DataDir, g); err != nil {
			return err
		}
	}
	c.openAPI()
	g.AddHealthChecks(healthz.NamedCheck("watches", func(*http.Request) error { return c.store.Delivers() }))
	g.AddReadyzChecks(healthz.NamedCheck("storage", func(*http.Request) error { return c.store.Ready(context.Background()) }))
	return nil
}

// admission refuses objects in a namespace that is missing or, but for plans, going away, and the deletion of "default".
func (c *completedConfig) admission() (admission.Interface, error) {
	plugin, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault))
	if err != nil {
		return nil, fmt.Errorf("make namespace admission: %w", err)
	}
	initializer.New(c.client, nil, c.informers, c.generic.Authorization.Authorizer, utilfeature.DefaultFeatureGate, c.generic.EffectiveVersion, c.generic.DrainedNotify(), nil).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, fmt.Errorf("make namespace admission: %w", err)
	}
	return admission.NewChainHandler(lifecycleAdmission{plugin, c.deletions}), nil
}

func (c *completedConfig) close() error {
	var errs []error
	if c.endAuth != nil {
		c.endAuth()
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	if c.listener != nil {
		if err := c.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	return errors.Join(errs...)
}

func (c *completedConfig) kubeconfigPath() string {
	return filepath.Join(c.DataDir, "admin.kubeconfig")
}

// url is how a client on this machine reaches the server.
func (c *completedConfig) url() string {
	addr := c.listener.Addr().(*net.TCPAddr)
	ip := addr.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + net.JoinHostPort(ip.String(), strconv.Itoa(addr.Port))
}

// hosts are the names and addresses at which clients may reach the server.
func (c *Config) hosts() []string {
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, c.TLSSANs...)
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if !c.BindAddress.IsUnspecified() {
		return append(hosts, c.BindAddress.String())
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}

func listen(ctx context.Context, ip net.IP, port int) (net.Listener, error) {
	address := net.JoinHostPort(ip.String(), strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is in use; choose another with --secure-port, or 0 for a free one", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen on %s: this machine does not have that address; choose another with --bind-address", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not permitted; choose a --secure-port above 1023", address)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// protobuf returns a copy of a client configuration that speaks protobuf, for the kinds of Kubernetes.
func protobuf(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.ContentType = runtime.ContentTypeProtobuf
	return c
}

// withoutManagedFields drops what no informer of ours reads.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// defaultAuditPolicy says who did what and when, and never what was in it: specs and Secrets may hold passwords.
const defaultAuditPolicy = `# The audit policy of this server, unless --audit-policy-file names another. Written once; change it as you like.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# What the server asks itself, and what watches over it.
- {level: None, users: ["system:apiserver"], verbs: [get, list, watch]}
- {level: None, nonResourceURLs: ["/livez*", "/readyz*", "/healthz*", "/metrics", "/version", "/openapi*", "/api", "/apis"]}
- {level: Metadata}
`

// applyAudit sets up the audit log. Kubernetes records nothing without a policy, which is not what one who asks for a log
// expects.
func applyAudit(o *genericoptions.AuditOptions, dataDir string, g *genericapiserver.Config) error {
	asked := o.LogOptions.Path != "" || o.WebhookOptions.ConfigFile != ""
	if asked && o.PolicyFile == "" {
		path := filepath.Join(dataDir, "audit-policy.yaml")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, []byte(defaultAuditPolicy), 0o600); err != nil {
				return fmt.Errorf("write audit policy: %w", err)
			}
		}
		with := *o
		with.PolicyFile = path
		o = &with
	}
	if err := o.ApplyTo(g); err != nil {
		return fmt.Errorf("set up audit: %w", err)
	}
	return nil
}

// openAPI sets up the documents of the fixed kinds. Providers' kinds bring their own, see package kinds.
func (c *completedConfig) openAPI() {
	definitions := func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
		all := kubeopenapi.GetOpenAPIDefinitions(ref)
		maps.Copy(all, registry.GetOpenAPIDefinitions(ref))
		return all
	}
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, registry.NewScheme(), aggregatorscheme.Scheme)
	c.generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.generic.OpenAPIConfig.Info.Title = "Hykube"
	c.generic.OpenAPIConfig.PostProcessSpec = withoutCustomResources
	c.generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.generic.OpenAPIV3Config.Info.Title = "Hykube"
}

// withoutCustomResources takes the parameter fieldValidation away from what patches a namespace, in the second version of
// the document alone, where kubectl looks for nothing else. It is how kubectl tells that a server has custom resources: it
// would ask for their definitions when it meets a kind that nobody serves, and say that it could not list them instead of
// that there is no such kind.
func withoutCustomResources(doc *spec.Swagger) (*spec.Swagger, error) {
	item, ok := doc.Paths.Paths["/api/v1/namespaces/{name}"]
	if !ok || item.Patch == nil {
		return doc, nil
	}
	const name = "fieldValidation"
	item.Patch.Parameters = slices.DeleteFunc(item.Patch.Parameters, func(p spec.Parameter) bool {
		return p.Name == name || strings.HasPrefix(p.Ref.String(), "#/parameters/"+name)
	})
	return doc, nil
}
