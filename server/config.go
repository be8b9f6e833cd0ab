package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
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
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/trust"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/flowcontrol"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/quota"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/speculation"
	"github.com/hykube/hykube/server/starter"
	"github.com/hykube/hykube/server/storage"
	"github.com/hykube/hykube/server/temporalapi"
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
	// Worker makes the process a worker of a server: it only carries out activities. It needs DatastoreEndpoint and
	// TemporalAddress.
	Worker bool
	// DatastoreEndpoint is the database; empty means SQLite in DataDir.
	DatastoreEndpoint string
	// DatastoreConnections is the maximum number of connections to a database server; 0 means the default of the
	// storage.
	DatastoreConnections int
	// AcceptRestored and CreateDatabase: see storage.Config.
	AcceptRestored, CreateDatabase bool
	EncryptionConfig               string
	// EncryptionKeyFile is the path of a file with the root key; empty means a file in DataDir.
	EncryptionKeyFile string
	// RotationSettle is the time that a rotation waits for running writes; 0 means the default of the storage.
	RotationSettle time.Duration
	// AdminLifetime is the lifetime of the administrator's certificate; 0 means access.AdminLifetime.
	AdminLifetime time.Duration
	// Compaction configures the database; the zero value means its defaults.
	Compaction storage.Compaction
	// FreeBytes returns the bytes that are available in a directory of the disk of the database; nil asks the operating
	// system.
	FreeBytes       func(dir string) (uint64, error)
	TemporalAddress string
	// TemporalNamespace is the Temporal namespace of this server's workflows. TemporalCredentials apply to the server
	// at TemporalAddress.
	TemporalNamespace   string
	TemporalCredentials engine.Credentials
	TokenAuthFile       string
	AuthenticationFile  string
	Settings
	// Audit configures the audit log; nil disables it.
	Audit  *genericoptions.AuditOptions
	Logger *slog.Logger
	// Wire connects the packages that this package does not import; see wire.go. It is required.
	Wire func(context.Context, *Components) (Wiring, error)
}

// Settings configure the providers and the plans. The function Config.Wire receives them.
type Settings struct {
	// The server searches ProviderMirrors, and then the https:// address NetworkMirror if it is set, before any
	// registry.
	ProviderMirrors []string
	NetworkMirror   string
	// ProviderSandbox is the mode of the providers' sandboxes. The default is contain.Auto.
	ProviderSandbox contain.Mode
	// ProviderCgroup is the place for the cgroups of provider processes, as for contain.Policy.UseCgroup.
	ProviderCgroup string
	// ProviderMemoryLimit is the maximum memory of a provider process in bytes; 0 means the default.
	ProviderMemoryLimit int64
	// ProviderTrust is the trust policy for providers; nil allows all sources.
	ProviderTrust *trust.Policy
	// ProviderMessageLimit is the maximum size of a provider's response in bytes; 0 means the default.
	ProviderMessageLimit int
	// RecordLimit is the maximum size of a record in the ledger in bytes; 0 means the default.
	RecordLimit int
	// PlanHistoryLimit is the number of finished plans to keep per namespace. PlanHistoryAge is the time to keep them.
	// 0 means no limit.
	PlanHistoryLimit int
	PlanHistoryAge   time.Duration
	// NamespacePlans is the maximum number of plans of one namespace that are made at once; 0 means no limit.
	NamespacePlans int
	// NotificationNetworks are networks to which Notifications may send although they are not public.
	NotificationNetworks []netip.Prefix
}

// completedConfig holds open resources. New takes ownership of them and closes them if it fails.
type completedConfig struct {
	*Config
	dir       *dataDir
	listener  *net.TCPListener
	certs     *access.Certificates
	serving   *dynamiccertificates.DynamicCertKeyPairContent
	store     *storage.Store
	generic   *genericapiserver.Config
	informers informers.SharedInformerFactory
	client    kubernetes.Interface
	codecs    registry.Codecs
	endAuth   context.CancelFunc
	users     rights.Users
	deletions *deletions
	quotas    *quota.Counter
	auditLog  *auditlog.Log // nil without an audit log in a file
	health    *healthLog
	stamps    starter.Signer
}

// CompletedConfig is a Config whose data directory, port, certificates and database are open.
type CompletedConfig struct{ *completedConfig }

// Complete opens the server's resources, the cheapest first. So it reports a mistake quickly and cleans up after it.
func (c *Config) Complete(ctx context.Context) (_ CompletedConfig, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	cc := &completedConfig{
		Config: c, codecs: registry.NewCodecs(), deletions: newDeletions(c.Logger.With("component", "deletions")),
		health: &healthLog{log: c.Logger},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cc.close())
		}
	}()
	if cc.dir, err = openDataDir(c.DataDir); err != nil {
		return CompletedConfig{}, err
	}
	c.DataDir = cc.dir.path
	if err = cc.dir.serve(c.Worker); err != nil {
		return CompletedConfig{}, err
	}
	if cc.listener, err = listen(ctx, c.BindAddress, c.SecurePort); err != nil {
		return CompletedConfig{}, err
	}
	removed := access.AuthorityRemoved(c.tlsDir())
	if cc.certs, err = access.OpenCertificates(c.tlsDir(), c.hosts(), time.Now()); err != nil {
		return CompletedConfig{}, err
	}
	if err = cc.openStore(ctx); err != nil {
		return CompletedConfig{}, err
	}
	if err = cc.shareAuthorities(ctx, removed); err != nil {
		return CompletedConfig{}, err
	}
	// Write it only now: a server that cannot open its database must not replace the kubeconfig of one that runs.
	if err = cc.certs.WriteKubeconfig(cc.admin(), time.Now()); err != nil {
		return CompletedConfig{}, err
	}
	if err = cc.completeGeneric(ctx); err != nil {
		return CompletedConfig{}, err
	}
	return CompletedConfig{cc}, nil
}

// tlsDir returns the directory of the certificates.
func (c *Config) tlsDir() string { return filepath.Join(c.DataDir, "tls") }

func (c *completedConfig) completeGeneric(ctx context.Context) error {
	g := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.generic = g
	g.EffectiveVersion = effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
	g.MaxRequestBodyBytes = kinds.MaxRequestBodyBytes
	g.RequestInfoResolver = temporalapi.
		Resolver{RequestInfoResolver: undeleteResolver{genericapiserver.NewRequestInfoResolver(g)}}
	g.LongRunningFunc = longRunning(g.LongRunningFunc)
	g.ExternalAddress = c.listener.Addr().String()
	g.PublicAddress = c.BindAddress
	// End watches at shutdown, since their connections would delay it.
	g.ShutdownWatchTerminationGracePeriod = time.Second
	g.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	g.RESTOptionsGetter = c.store.RESTOptions(c.codecs.ForStorage, true)
	if err := c.secure(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.authorize(ctx); err != nil {
		return err
	}
	var err error
	if g.AdmissionControl, err = c.admission(); err != nil {
		return err
	}
	if err := c.openAudit(ctx); err != nil {
		return err
	}
	c.openAPI()
	g.AddHealthChecks(c.health.wrap(healthz.NamedCheck("watches",
		func(*http.Request) error { return c.store.Delivers() }))...)
	g.AddReadyzChecks(c.health.wrap(c.store.HealthChecks()...)...)
	g.AddReadyzChecks(c.health.wrap(
		healthz.NamedCheck("storage", func(*http.Request) error { return c.store.Ready(context.Background()) }),
		healthz.NamedCheck(spaceCheck, func(*http.Request) error { return c.store.HasSpace() }),
	)...)
	return nil
}

// secure loads the server's certificate, and the authority of the users' certificates.
func (c *completedConfig) secure() (err error) {
	if c.serving, err = dynamiccertificates.NewDynamicServingContentFromFiles("serving", c.certs.ServingCert(),
		c.certs.ServingKey()); err != nil {
		return fmt.Errorf("load serving certificate: %w", err)
	}
	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", c.certs.ClientCA())
	if err != nil {
		return fmt.Errorf("load client authority: %w", err)
	}
	c.generic.SecureServing = &genericapiserver.SecureServingInfo{Listener: deadlineListener{c.listener, writeLimit},
		Cert: unwatched{c.serving}, ClientCA: clientCA}
	return nil
}

// connect makes the clients with which the server sends requests to itself.
func (c *completedConfig) connect() (err error) {
	c.generic.LoopbackClientConfig = &rest.Config{
		Host:            c.url(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certs.ServerCA()},
		BearerToken:     uuid.NewString(),
		// Do not throttle the server's own client.
		QPS:                -1,
		DisableCompression: true,
		UserAgent:          "hykube/" + Version,
		WrapTransport: func(inner http.RoundTripper) http.RoundTripper {
			return pausingTransport{auditlog.SendCause(inner)}
		},
	}
	if c.client, err = kubernetes.NewForConfig(protobuf(c.generic.LoopbackClientConfig)); err != nil {
		return fmt.Errorf("make loopback client: %w", err)
	}
	c.informers = informers.NewSharedInformerFactoryWithOptions(c.client, 0,
		informers.WithTransform(withoutManagedFields))
	c.generic.FlowControl = utilflowcontrol.New(c.informers, c.client.FlowcontrolV1(), flowcontrol.Seats)
	return nil
}

// authorize sets up the authentication and the authorization of requests.
func (c *completedConfig) authorize(ctx context.Context) (err error) {
	g := c.generic
	authCtx, endAuth := context.WithCancel(context.WithoutCancel(ctx))
	c.endAuth = endAuth
	g.Authentication.APIAudiences = []string{access.Audience}
	authenticator, narrow, err := access.NewAuthenticator(authCtx, access.AuthenticationConfig{
		ClientCA: g.SecureServing.ClientCA, TokenFile: c.TokenAuthFile, ConfigFile: c.AuthenticationFile,
		Metrics: legacyregistry.Registerer(), Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	c.stamps = starter.Signer{Key: keyOnce(ledger.New(c.store.KV()).ContentsKey)}
	g.Authentication.Authenticator = access.OnBehalf{Request: authenticator, Stamps: c.stamps}
	authorizer, rules := access.NewAuthorizer(c.informers, narrow)
	c.users = rights.Users{Narrow: narrow}
	queues := temporalapi.Authorizer{Authorizer: authorizer, Rules: rules}
	g.Authorization.Authorizer, g.RuleResolver = speculation.Authorizer{Authorizer: queues}, rules
	return nil
}

// keyOnce returns a function that reads a key until it has it.
func keyOnce(read func(context.Context) ([]byte, error)) func(context.Context) ([]byte, error) {
	var known atomic.Pointer[[]byte]
	return func(ctx context.Context) ([]byte, error) {
		if key := known.Load(); key != nil {
			return *key, nil
		}
		key, err := read(ctx)
		if err == nil {
			known.Store(&key)
		}
		return key, err
	}
}

// unwatched is a serving certificate whose files the API server does not watch: a watch would read the key and the
// certificate between their two writes. The server reloads them itself after both.
type unwatched struct {
	dynamiccertificates.CertKeyContentProvider
}

// admission rejects objects in a namespace that does not exist or is being deleted, except plans. It also rejects the
// deletion of the namespace "default".
func (c *completedConfig) admission() (admission.Interface, error) {
	plugin, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault))
	if err != nil {
		return nil, fmt.Errorf("create namespace admission: %w", err)
	}
	initializer.New(c.client, nil, c.informers, c.generic.Authorization.Authorizer, utilfeature.DefaultFeatureGate,
		c.generic.EffectiveVersion, c.generic.DrainedNotify(), nil).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, fmt.Errorf("create namespace admission: %w", err)
	}
	quotas, err := quota.NewAdmission(c.client, c.informers, c.generic.DrainedNotify())
	if err != nil {
		return nil, fmt.Errorf("create quota admission: %w", err)
	}
	if c.quotas, err = quota.NewCounter(c.client, c.informers, c.Logger.With("component", "quota")); err != nil {
		return nil, fmt.Errorf("create quota counter: %w", err)
	}
	c.store.Observe(c.quotas.Changed, v1alpha1.Resource("plans"))
	return admission.NewChainHandler(spaceAdmission{c.store}, lifecycleAdmission{plugin, c.deletions}, quotas), nil
}

func (c *completedConfig) close() error {
	var errs []error
	if c.endAuth != nil {
		c.endAuth()
	}
	if c.auditLog != nil {
		errs = append(errs, c.auditLog.Close())
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

// keyFiles returns the files outside of the data directory that hold the server's keys.
func (c *Config) keyFiles() (files []string) {
	for _, file := range []string{c.EncryptionKeyFile, c.EncryptionConfig} {
		if file == "" {
			continue
		}
		if abs, err := filepath.Abs(file); err == nil {
			file = abs
		}
		files = append(files, file)
		if resolved, err := filepath.EvalSymlinks(file); err == nil {
			files = append(files, resolved)
		}
	}
	return files
}

// admin describes the administrator's kubeconfig.
func (c *completedConfig) admin() access.Admin {
	return access.Admin{Path: access.AdminPath(c.DataDir), ServerURL: c.url(),
		Lifetime: cmp.Or(c.AdminLifetime, access.AdminLifetime)}
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

// address returns the server's address for people on other machines. A worker has only a name.
func (c *completedConfig) address() string {
	addr := c.listener.Addr().(*net.TCPAddr)
	if name, err := os.Hostname(); err == nil && c.Worker {
		return fmt.Sprintf("%s (process %d)", name, os.Getpid())
	}
	if name, err := os.Hostname(); err == nil && addr.IP.IsUnspecified() {
		return net.JoinHostPort(name, strconv.Itoa(addr.Port))
	}
	return addr.String()
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

func listen(ctx context.Context, ip net.IP, port int) (*net.TCPListener, error) {
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
	return l.(*net.TCPListener), nil
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
