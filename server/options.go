package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/contain/cgroup"
	"github.com/hykube/hykube/internal/provider/trust"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/storage"
)

// Options holds the values of the server's flags, with k3s' names where k3s has such flags.
type Options struct {
	// Worker is true for a worker.
	Worker               bool
	DataDir              string
	BindAddress          string
	SecurePort           int
	TLSSANs              []string
	DatastoreEndpoint    string
	DatastoreFile        string
	DatastoreConnections int
	AcceptRestored       bool
	CreateDatabase       bool
	EncryptionConfig     string
	EncryptionKeyFile    string
	AdminLifetime        time.Duration
	TemporalAddress      string
	TemporalNamespace    string
	TemporalTLS          bool
	TemporalCredentials  engine.Credentials
	ProviderMirrors      []string
	ProviderSandbox      string
	ProviderCgroup       string
	ProviderMemoryLimit  string
	ProviderMessageLimit string
	RecordLimit          string
	ProviderTrustPolicy  string
	TokenAuthFile        string
	AuthenticationFile   string
	PlanHistoryLimit     int
	NamespacePlans       int
	PlanHistoryAge       time.Duration
	// NotificationCIDRs are networks to which Notifications may send although they are not public.
	NotificationCIDRs []string
	LogLevel          string
	LogFormat         string
	Audit             *genericoptions.AuditOptions
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		DataDir:       DefaultDataDir(),
		BindAddress:   "127.0.0.1",
		AdminLifetime: access.AdminLifetime,

		DatastoreConnections: storage.DefaultMaxConnections,

		SecurePort: 6443,

		TemporalNamespace:    "hykube",
		TemporalTLS:          true,
		ProviderSandbox:      string(contain.Auto),
		ProviderCgroup:       cgroup.Auto,
		ProviderMessageLimit: "16Mi",
		RecordLimit:          "8Mi",

		PlanHistoryLimit: 100,
		NamespacePlans:   4,
		PlanHistoryAge:   30 * 24 * time.Hour,
		LogLevel:         "info",
		LogFormat:        "text",
		Audit:            newAuditOptions(),
	}
}

// AddFlags adds the flags for the options of a server.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.addDataDir(fs)
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve on.")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port to serve HTTPS on; 0 takes a free one.")
	fs.StringSliceVar(&o.TLSSANs, "tls-san", o.TLSSANs,
		"Additional host names or IP addresses for the serving certificate; repeatable.")
	fs.BoolVar(&o.CreateDatabase, "create-database", false,
		"Create the database of --datastore-endpoint if it does not exist, and accept an empty one although the data directory knows another.")
	fs.BoolVar(&o.AcceptRestored, "accept-restored", false,
		"Start although the objects, the ledger and the data directory are of different moments, and go on with the plans of a copied database. Give it once, after a restore.")
	fs.DurationVar(&o.AdminLifetime, "admin-certificate-lifetime", o.AdminLifetime,
		"Lifetime of the certificate in admin.kubeconfig. The server renews it in the file when a third is left.")
	fs.IntVar(&o.NamespacePlans, "concurrent-plans-per-namespace", o.NamespacePlans,
		"Number of plans of one namespace that the server makes at once; others wait. 0 means no limit. It does not limit applies.")
	fs.IntVar(&o.PlanHistoryLimit, "plan-history-limit", o.PlanHistoryLimit,
		"Number of finished plans to keep in each namespace; 0 keeps all. Records of plans (PlanRecord) stay.")
	fs.DurationVar(&o.PlanHistoryAge, "plan-history-age", o.PlanHistoryAge,
		"How long to keep a finished plan; 0 keeps it for ever. Records of plans (PlanRecord) stay.")
	o.addFlags(fs)
}

// AddWorkerFlags adds the flags for the options of a worker.
func (o *Options) AddWorkerFlags(fs *pflag.FlagSet) {
	o.Worker, o.SecurePort = true, 0
	o.addDataDir(fs)
	o.addFlags(fs)
}

func (o *Options) addDataDir(fs *pflag.FlagSet) {
	fs.StringVarP(&o.DataDir, "data-dir", "d", o.DataDir,
		"Directory for all of the server's data; the server creates it.")
}

// addFlags adds the flags that servers and workers have.
func (o *Options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DatastoreEndpoint, "datastore-endpoint", o.DatastoreEndpoint,
		`Database for objects and states, such as "postgres://user:password@host:5432/hykube" or "mysql://user:password@tcp(host:3306)/hykube"; SQLite in the data directory when it is left out.`)
	fs.StringVar(&o.DatastoreFile, "datastore-endpoint-file", o.DatastoreFile,
		"File with the value of --datastore-endpoint, to keep a password out of the list of processes. The server reads it at its start.")
	fs.IntVar(&o.DatastoreConnections, "datastore-max-open-connections", o.DatastoreConnections,
		"Maximum number of connections to the database of --datastore-endpoint.")
	fs.StringVar(&o.EncryptionConfig, "encryption-provider-config", o.EncryptionConfig,
		"File with a Kubernetes EncryptionConfiguration for data at rest, for example with a KMS plugin; the server's own keys encrypt resources that the file does not name.")
	fs.StringVar(&o.EncryptionKeyFile, "encryption-key-file", o.EncryptionKeyFile,
		"File with the root key, which encrypts the data keys in the database: 32 bytes, or lines of 32 bytes in base64, of which the first encrypts. By default, encryption.key in the data directory.")
	fs.StringVar(&o.TemporalAddress, "temporal-address", o.TemporalAddress,
		"HOST:PORT of a Temporal server to use instead of the embedded one.")
	fs.StringVar(&o.TemporalNamespace, "temporal-namespace", o.TemporalNamespace,
		"Namespace of the Temporal server that holds the workflows of this server; the server creates it if it is missing.")
	fs.BoolVar(&o.TemporalTLS, "temporal-tls", o.TemporalTLS,
		"Connect by TLS to the Temporal server at --temporal-address.")
	fs.StringVar(&o.TemporalCredentials.CAFile, "temporal-tls-ca-file", "",
		"PEM file with the certificate authorities of the Temporal server; by default those that the machine trusts.")
	fs.StringVar(&o.TemporalCredentials.CertFile, "temporal-tls-cert-file", "",
		"PEM file with the client certificate for the Temporal server. The server reads it again for each connection.")
	fs.StringVar(&o.TemporalCredentials.KeyFile, "temporal-tls-key-file", "",
		"PEM file with the key of --temporal-tls-cert-file.")
	fs.StringVar(&o.TemporalCredentials.ServerName, "temporal-tls-server-name", "",
		"Name in the certificate of the Temporal server; by default the host of --temporal-address.")
	fs.StringVar(&o.TemporalCredentials.APIKeyFile, "temporal-api-key-file", "",
		"File with an API key for the Temporal server. The server reads it again for each call.")
	fs.StringArrayVar(&o.ProviderMirrors, "provider-mirror", o.ProviderMirrors,
		"Directory in the layout of Terraform's filesystem mirror, or the https:// address of a network mirror; searched before any registry; repeatable.")
	fs.StringVar(&o.ProviderSandbox, "provider-sandbox", o.ProviderSandbox,
		"Sandbox of provider processes: auto uses everything that this machine supports, require refuses to start a provider without a complete sandbox, off uses no sandbox.")
	fs.StringVar(&o.ProviderCgroup, "provider-cgroup", o.ProviderCgroup,
		"Cgroup (v2) below which each provider process gets its own: auto uses the server's cgroup if it is delegated (Delegate=yes of systemd), a directory names another one, off uses none.")
	fs.StringVar(&o.ProviderMemoryLimit, "provider-memory-limit", o.ProviderMemoryLimit,
		"Maximum memory of one provider process in a sandbox, such as 8Gi; by default 4Gi, but at most half of the machine's memory.")
	fs.StringVar(&o.ProviderTrustPolicy, "provider-trust-policy", o.ProviderTrustPolicy,
		"File with a ProviderTrustPolicy: the sources from which the server installs providers, and the signatures and checksums that it requires. The server reads it at its start. Without it, all sources are allowed.")
	fs.StringVar(&o.ProviderMessageLimit, "provider-message-limit", o.ProviderMessageLimit,
		"Maximum size of one response of a provider, such as 16Mi. The server needs many times its size.")
	fs.StringVar(&o.RecordLimit, "record-limit", o.RecordLimit,
		"Maximum size of one stored record, such as 8Mi: the state of a resource, or a planned change with its values before and after. The answer to a change is always stored.")
	fs.StringVar(&o.TokenAuthFile, "token-auth-file", o.TokenAuthFile,
		`File with tokens: lines of token,user,uid,"group1,group2". It is read again when it changes.`)
	fs.StringVar(&o.AuthenticationFile, "authentication-config", o.AuthenticationFile,
		"File with a Kubernetes AuthenticationConfiguration, for OpenID Connect.")
	fs.StringSliceVar(&o.NotificationCIDRs, "notification-allow-cidr", o.NotificationCIDRs,
		"Network, such as 10.1.0.0/16, to which Notifications may send although its addresses are not public; repeatable. Without it, the server sends to public addresses only.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "Log level: debug, info, warn or error.")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "Log format: text or json.")
	o.Audit.AddFlags(fs)
}

// Validate checks the options without side effects.
func (o *Options) Validate() error {
	var errs []error
	if net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("use --bind-address %q: it is not an IP address", o.BindAddress))
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		errs = append(errs, fmt.Errorf("use --secure-port %d: choose 1 to 65535, or 0 for a free one", o.SecurePort))
	}
	if _, err := DatastoreEndpoint(o.DatastoreEndpoint, o.DatastoreFile); err != nil {
		errs = append(errs, err)
	}
	if o.Worker && (o.DatastoreEndpoint == "" && o.DatastoreFile == "" || o.TemporalAddress == "") {
		errs = append(errs, errors.New(
			"a worker needs the database and the Temporal server of its server: --datastore-endpoint-file and --temporal-address"))
	}
	if o.TemporalAddress != "" {
		if _, _, err := net.SplitHostPort(o.TemporalAddress); err != nil {
			errs = append(errs, fmt.Errorf("use --temporal-address %q: it is not HOST:PORT", o.TemporalAddress))
		}
		if err := o.temporalCredentials().Validate(); err != nil {
			errs = append(errs, err)
		}
	} else if o.temporalCredentials() != (engine.Credentials{}) {
		errs = append(errs, errors.New(
			"the flags --temporal-tls... and --temporal-api-key-file need --temporal-address: the embedded server makes its own keys"))
	}
	if o.AdminLifetime < leastAdminLifetime {
		errs = append(errs, fmt.Errorf("use --admin-certificate-lifetime %s: write a duration of at least %s",
			o.AdminLifetime, leastAdminLifetime))
	}
	if o.DatastoreConnections < storage.LeastMaxConnections {
		errs = append(errs, fmt.Errorf("use --datastore-max-open-connections %d: write a number of at least %d",
			o.DatastoreConnections, storage.LeastMaxConnections))
	}
	if o.NamespacePlans < 0 {
		errs = append(errs, fmt.Errorf(
			"use --concurrent-plans-per-namespace %d: write a number of plans, or 0 for no limit", o.NamespacePlans))
	}
	if o.PlanHistoryLimit < 0 {
		errs = append(errs, fmt.Errorf("use --plan-history-limit %d: write a number of plans, or 0 to keep all",
			o.PlanHistoryLimit))
	}
	if o.PlanHistoryAge < 0 {
		errs = append(errs, fmt.Errorf(
			"use --plan-history-age %s: write a duration such as 720h, or 0 to keep plans for ever", o.PlanHistoryAge))
	}
	if o.DataDir == "" {
		errs = append(errs, errors.New("use --data-dir: it is empty"))
	}
	if _, _, err := o.mirrors(); err != nil {
		errs = append(errs, err)
	}
	if _, err := contain.ParseMode(o.ProviderSandbox); err != nil {
		errs = append(errs, err)
	}
	if err := contain.CheckCgroup(o.ProviderCgroup); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.memoryLimit(); err != nil {
		errs = append(errs, err)
	}
	if _, err := trust.Load(o.ProviderTrustPolicy); err != nil {
		errs = append(errs, fmt.Errorf("use --provider-trust-policy: %w", err))
	}
	if _, err := o.notificationNetworks(); err != nil {
		errs = append(errs, err)
	}
	if _, err := sizeFlag("provider-message-limit", o.ProviderMessageLimit); err != nil {
		errs = append(errs, err)
	}
	if _, err := sizeFlag("record-limit", o.RecordLimit); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, validateAudit(o.Audit)...)...)
}

// notificationNetworks returns the value of --notification-allow-cidr.
func (o *Options) notificationNetworks() (out []netip.Prefix, err error) {
	for _, text := range o.NotificationCIDRs {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("use --notification-allow-cidr %q: write a network such as 10.1.0.0/16 or fd00:1::/64", text)
		}
		out = append(out, network.Masked())
	}
	return out, nil
}

// leastAdminLifetime is the minimum of --admin-certificate-lifetime.
const leastAdminLifetime = time.Hour

// leastSize and mostSize are the bounds of the flags for sizes. gRPC counts a message in 32 bits.
const (
	leastSize = 64 << 10
	mostSize  = 1 << 30
)

// sizeFlag returns the value of a flag for a size in bytes.
func sizeFlag(name, value string) (int, error) {
	q, err := resource.ParseQuantity(value)
	if n := q.Value(); err == nil && n >= leastSize && n <= mostSize {
		return int(n), nil
	}
	return 0, fmt.Errorf("use --%s %q: write a size between 64Ki and 1Gi, such as 16Mi", name, value)
}

// leastMemory is the minimum of --provider-memory-limit. Large providers need more.
const leastMemory = 64 << 20

// memoryLimit returns the value of --provider-memory-limit in bytes; 0 means the default.
func (o *Options) memoryLimit() (int64, error) {
	if o.ProviderMemoryLimit == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(o.ProviderMemoryLimit)
	if n := q.Value(); err == nil && n >= leastMemory {
		return n, nil
	}
	return 0, fmt.Errorf("use --provider-memory-limit %q: write a size of at least 64Mi, such as 8Gi",
		o.ProviderMemoryLimit)
}

// DatastoreEndpoint returns the database that the flags --datastore-endpoint and --datastore-endpoint-file name; "" if
// neither is set.
func DatastoreEndpoint(endpoint, file string) (string, error) {
	switch {
	case file == "":
		return endpoint, nil
	case endpoint != "":
		return "", errors.New("the flags --datastore-endpoint and --datastore-endpoint-file exclude each other")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read --datastore-endpoint-file: %w", err)
	}
	if endpoint = strings.TrimSpace(string(text)); endpoint == "" {
		return "", fmt.Errorf("read --datastore-endpoint-file: %s is empty", file)
	}
	return endpoint, nil
}

// temporalCredentials returns the credentials for the server at --temporal-address.
func (o *Options) temporalCredentials() engine.Credentials {
	c := o.TemporalCredentials
	c.Plaintext = !o.TemporalTLS
	return c
}

// mirrors separates the mirror directories from the network mirror, of which there may be one. It returns an error if a
// directory does not exist.
func (o *Options) mirrors() (directories []string, network string, err error) {
	for _, place := range o.ProviderMirrors {
		switch info, err := os.Stat(place); {
		case strings.HasPrefix(place, "https://") && network == "":
			network = place
		case strings.HasPrefix(place, "https://"):
			return nil, "", fmt.Errorf("use --provider-mirror %q: %q is a second network mirror, and only one is allowed", place, network)
		case strings.Contains(place, "://"):
			return nil, "", fmt.Errorf("use --provider-mirror %q: a network mirror is reached by https", place)
		case err != nil:
			return nil, "", fmt.Errorf("use --provider-mirror %q: %w", place, cause(err))
		case !info.IsDir():
			return nil, "", fmt.Errorf("use --provider-mirror %q: it is not a directory", place)
		default:
			directories = append(directories, place)
		}
	}
	return directories, network, nil
}

// Config converts valid options to a Config.
func (o *Options) Config(logger *slog.Logger) (*Config, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	directories, network, err := o.mirrors()
	if err != nil {
		return nil, err
	}
	messageLimit, err := sizeFlag("provider-message-limit", o.ProviderMessageLimit)
	if err != nil {
		return nil, err
	}
	recordLimit, err := sizeFlag("record-limit", o.RecordLimit)
	if err != nil {
		return nil, err
	}
	memoryLimit, err := o.memoryLimit()
	if err != nil {
		return nil, err
	}
	policy, err := trust.Load(o.ProviderTrustPolicy)
	if err != nil {
		return nil, err
	}
	endpoint, err := DatastoreEndpoint(o.DatastoreEndpoint, o.DatastoreFile)
	if err != nil {
		return nil, err
	}
	networks, err := o.notificationNetworks()
	if err != nil {
		return nil, err
	}
	return &Config{
		DataDir:              o.DataDir,
		Worker:               o.Worker,
		BindAddress:          net.ParseIP(o.BindAddress),
		SecurePort:           o.SecurePort,
		TLSSANs:              o.TLSSANs,
		DatastoreEndpoint:    endpoint,
		DatastoreConnections: o.DatastoreConnections,
		AcceptRestored:       o.AcceptRestored,
		CreateDatabase:       o.CreateDatabase,
		EncryptionConfig:     o.EncryptionConfig,
		EncryptionKeyFile:    o.EncryptionKeyFile,
		AdminLifetime:        o.AdminLifetime,
		TemporalAddress:      o.TemporalAddress,
		TemporalNamespace:    o.TemporalNamespace,
		TemporalCredentials:  o.temporalCredentials(),
		TokenAuthFile:        o.TokenAuthFile,
		AuthenticationFile:   o.AuthenticationFile,
		Settings: Settings{
			ProviderMirrors:      directories,
			NetworkMirror:        network,
			ProviderSandbox:      contain.Mode(o.ProviderSandbox),
			ProviderCgroup:       o.ProviderCgroup,
			ProviderMemoryLimit:  memoryLimit,
			ProviderMessageLimit: messageLimit,
			RecordLimit:          recordLimit,
			ProviderTrust:        policy,
			PlanHistoryLimit:     o.PlanHistoryLimit,
			NamespacePlans:       o.NamespacePlans,
			PlanHistoryAge:       o.PlanHistoryAge,
			NotificationNetworks: networks,
		},
		Audit:  o.Audit,
		Logger: logger,
	}, nil
}
