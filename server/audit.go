package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	k8saudit "k8s.io/apiserver/pkg/audit"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	pluginbuffered "k8s.io/apiserver/plugin/pkg/audit/buffered"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
	plugintruncate "k8s.io/apiserver/plugin/pkg/audit/truncate"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/storage"
)

const (
	// dataDirMark is the data directory in the default of --audit-log-path.
	dataDirMark = "{data-dir}"
	// auditKeyFile and auditHeadPath are the key of the audit log in the data directory, and the URL path of its head.
	auditKeyFile  = "audit.key"
	auditHeadPath = "/audit/head"
)

// newAuditOptions returns Kubernetes' options, with an audit log in the data directory. The server refuses requests
// that it cannot record.
func newAuditOptions() *genericoptions.AuditOptions {
	o := genericoptions.NewAuditOptions()
	o.LogOptions.Path = dataDirMark + "/audit/audit.log"
	o.LogOptions.MaxSize, o.LogOptions.MaxBackups, o.LogOptions.MaxAge = 100, 10, 0
	o.LogOptions.BatchOptions.Mode = genericoptions.ModeBlockingStrict
	return o
}

// validateAudit checks the options. The chain of records excludes some of Kubernetes' values.
func validateAudit(o *genericoptions.AuditOptions) []error {
	errs := o.Validate()
	if !isFile(o.LogOptions.Path) {
		return errs
	}
	if o.LogOptions.Format != pluginlog.FormatJson {
		errs = append(errs, fmt.Errorf("use --audit-log-format %q: the audit log is always json", o.LogOptions.Format))
	}
	if o.LogOptions.Compress {
		errs = append(errs, fmt.Errorf("use --audit-log-compress: the server does not compress the audit log"))
	}
	return errs
}

// isFile reports whether --audit-log-path names a file.
func isFile(path string) bool { return path != "" && path != "-" }

// AuditLogPath returns the default path of the audit log of a data directory.
func AuditLogPath(dataDir string) string {
	return strings.Replace(newAuditOptions().LogOptions.Path, dataDirMark, dataDir, 1)
}

// AuditKeyPath returns the path of the key of the audit log.
func AuditKeyPath(dataDir string) string { return filepath.Join(dataDir, auditKeyFile) }

// openAudit opens the audit log, and configures the API server to record requests in it.
func (c *completedConfig) openAudit(ctx context.Context) error {
	if c.Audit == nil {
		return nil
	}
	g, o := c.generic, *c.Audit
	path := strings.Replace(o.LogOptions.Path, dataDirMark, c.DataDir, 1)
	if path == "" && o.WebhookOptions.ConfigFile == "" {
		c.Logger.Warn("the audit log is off (--audit-log-path=), so the server does not record the users who approve and change objects")
		return nil
	}
	own := o.PolicyFile == ""
	if own {
		o.PolicyFile = filepath.Join(c.DataDir, "audit-policy.yaml")
		if err := atomicfile.Write(o.PolicyFile, []byte(auditlog.DefaultPolicy), 0o600); err != nil {
			return fmt.Errorf("write audit policy: %w", err)
		}
	}
	if isFile(path) {
		o.LogOptions.Path = "" // the server's own log, below, replaces Kubernetes'
	}
	if err := o.ApplyTo(g); err != nil {
		return fmt.Errorf("set up audit: %w", err)
	}
	if own {
		g.AuditPolicyRuleEvaluator = auditlog.WithState(g.AuditPolicyRuleEvaluator)
	}
	if isFile(path) {
		backend, err := c.openAuditFile(ctx, path)
		if err != nil {
			return err
		}
		if g.AuditBackend != nil {
			backend = k8saudit.Union(backend, g.AuditBackend)
		}
		g.AuditBackend = backend
	}
	g.AuditBackend = auditlog.WithoutMessages(g.AuditBackend)
	return nil
}

// openAuditFile opens the audit log in a file, with Kubernetes' options.
func (c *completedConfig) openAuditFile(ctx context.Context, path string) (k8saudit.Backend, error) {
	o := c.Audit.LogOptions
	log, err := auditlog.Open(ctx, auditlog.Config{
		Path: path, KeyFile: AuditKeyPath(c.DataDir), MaxBytes: int64(o.MaxSize) << 20, MaxFiles: o.MaxBackups,
		MaxAge: time.Duration(o.MaxAge) * 24 * time.Hour,
		Heads:  &auditlog.Heads{KV: c.store.KV(), Worker: c.dir.worker}, Logger: c.Logger.With("component", "audit"),
	})
	if err != nil {
		return nil, err
	}
	c.auditLog = log
	c.generic.AddReadyzChecks(c.health.wrap(healthz.NamedCheck("audit",
		func(*http.Request) error { return log.Check() }))...)
	backend := pluginlog.NewBackend(log, pluginlog.FormatJson, auditv1.SchemeGroupVersion)
	switch o.BatchOptions.Mode {
	case genericoptions.ModeBatch:
		backend = pluginbuffered.NewBackend(backend, o.BatchOptions.BatchConfig)
	case genericoptions.ModeBlocking:
		backend = lenientBackend{backend}
	}
	if o.TruncateOptions.Enabled {
		backend = plugintruncate.NewBackend(backend, o.TruncateOptions.TruncateConfig, auditv1.SchemeGroupVersion)
	}
	return backend, nil
}

// lenientBackend reports success also for events that it could not write.
type lenientBackend struct{ k8saudit.Backend }

func (b lenientBackend) ProcessEvents(events ...*auditinternal.Event) bool {
	b.Backend.ProcessEvents(events...)
	return true
}

// recorder returns the function that records provider calls; nil if the audit log is off.
func (c *completedConfig) recorder() audit.RecordFunc {
	if c.generic.AuditBackend == nil {
		return nil
	}
	return auditlog.Record(c.generic.AuditBackend)
}

// serveAuditHead serves the head of the audit log, which "hykube audit verify" compares with the files.
func (c *completedConfig) serveAuditHead(s *genericapiserver.GenericAPIServer) {
	if c.auditLog == nil {
		return
	}
	s.Handler.NonGoRestfulMux.HandleFunc(auditHeadPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.auditLog.Head()) // the client is gone
	})
}

// AuditHead returns the head of a server's audit log: from the server if it runs, else from the database of cfg.
func AuditHead(ctx context.Context, cfg storage.Config) (*auditlog.Head, error) {
	dir, err := openDataDir(cfg.DataDir)
	if err != nil {
		head, asked := askAuditHead(ctx, access.AdminPath(cfg.DataDir))
		if asked != nil {
			return nil, fmt.Errorf("%w; ask it for the head of its audit log: %w", err, asked)
		}
		return head, nil
	}
	defer dir.Close() //nolint:errcheck // it only unlocks the directory
	cfg.DataDir = dir.path
	store, err := storage.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer store.Close() //nolint:errcheck // nothing was written
	head, err := (&auditlog.Heads{KV: store.KV(), Worker: dir.worker}).Load(ctx)
	return &head, err
}

// askAuditHead asks a running server.
func askAuditHead(ctx context.Context, kubeconfig string) (*auditlog.Head, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.GroupVersion, config.NegotiatedSerializer = &metav1.Unversioned, legacyscheme.Codecs
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	data, err := client.Get().AbsPath(auditHeadPath).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	head := new(auditlog.Head)
	return head, json.Unmarshal(data, head)
}
