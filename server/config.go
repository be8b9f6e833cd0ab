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

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/speculation"
	"github.com/hykube/hykube/server/storage"
)

// Config configures a Server. A zero field means its default unless the field is required.
type Config struct {
	// DataDir is the data directory. It is required.
	DataDir string
	// BindAddress is the address to listen on. It is required.
	BindAddress net.IP
	// SecurePort is the port; 0 means any free port.
	SecurePort int
	// TLSSANs are additional names in the serving certificate.
	TLSSANs []string
	// DatastoreEndpoint is the database; empty means SQLite in DataDir.
	DatastoreEndpoint string
	EncryptionConfig  string
	// Compaction configures the database; the zero value means its defaults.
	Compaction      storage.Compaction
	TemporalAddress string
	// TemporalNamespace is the Temporal namespace of this server's workflows. TemporalCredentials apply to the server
	// at TemporalAddress.
	TemporalNamespace   string
	TemporalCredentials engine.Credentials
	ProviderMirrors     []string
	// NetworkMirror is the https:// address of a network mirror, which the server uses after ProviderMirrors; empty
	// means none.
	NetworkMirror string
	// ProviderSandbox is the mode of the providers' sandboxes. The default is contain.Auto.
	ProviderSandbox contain.Mode
	// ProviderMessageLimit is the maximum size of a provider's response in bytes; 0 means the default.
	ProviderMessageLimit int
	TokenAuthFile        string
	AuthenticationFile   string
	// PlanHistoryLimit is the number of finished plans to keep per namespace. PlanHistoryAge is the time to keep them.
	// 0 means no limit.
	PlanHistoryLimit int
	PlanHistoryAge   time.Duration
	// Audit configures the audit log; nil disables it.
	Audit  *genericoptions.AuditOptions
	Logger *slog.Logger
	// Wire connects the packages that this package does not import; see wire.go. It is required.
	Wire func(context.Context, *Components) (Wiring, error)
}

// completedConfig holds open resources. New takes ownership of them and closes them if it fails.
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

// Complete opens the server's resources, the cheapest first. So it reports a mistake quickly and cleans up after it.
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
	// End watches at shutdown, since their connections would delay it.
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
		// Do not throttle the server's own client.
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

// admission rejects objects in a namespace that does not exist or is being deleted, except plans. It also rejects the
// deletion of the namespace "default".
func (c *completedConfig) admission() (admission.Interface, error) {
	plugin, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault))
	if err != nil {
		return nil, fmt.Errorf("create namespace admission: %w", err)
	}
	initializer.New(c.client, nil, c.informers, c.generic.Authorization.Authorizer, utilfeature.DefaultFeatureGate, c.generic.EffectiveVersion, c.generic.DrainedNotify(), nil).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, fmt.Errorf("create namespace admission: %w", err)
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

// url returns the server's URL for clients on this machine.
func (c *completedConfig) url() string {
	addr := c.listener.Addr().(*net.TCPAddr)
	ip := addr.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return "https://" + net.JoinHostPort(ip.String(), strconv.Itoa(addr.Port))
}

// hosts returns the names and addresses for the serving certificate.
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

// protobuf returns a copy of a client configuration that uses protobuf, for the Kubernetes kinds.
func protobuf(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.ContentType = runtime.ContentTypeProtobuf
	return c
}

// withoutManagedFields removes the managed fields, which the server's informers do not use.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// defaultAuditPolicy logs the user, the request and the time, but never the content: specs and Secrets may hold
// passwords.
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

// applyAudit configures the audit log. Without a policy, Kubernetes would log nothing, so applyAudit adds the default
// policy.
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

// openAPI configures the documents of the fixed kinds. Package kinds serves those of the providers' kinds.
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

// withoutCustomResources removes the parameter fieldValidation from the PATCH of a namespace, only in the OpenAPI v2
// document. From this parameter, kubectl infers that a server has custom resources. For an unknown kind, it would then
// fail to list their definitions instead of reporting the unknown kind.
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
