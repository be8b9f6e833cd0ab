package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/storage"
	"github.com/hykube/hykube/server/storage/records"
)

// openStore opens the database. While another server has its lease, this server is a standby.
func (cc *completedConfig) openStore(ctx context.Context) (err error) {
	c := cc.Config
	owner, err := cc.dir.owner()
	if err != nil {
		return err
	}
	waits := &standby{log: c.Logger, worker: c.Worker}
	cc.store, err = storage.Open(ctx, storage.Config{
		DataDir:          c.DataDir,
		Endpoint:         c.DatastoreEndpoint,
		MaxConnections:   c.DatastoreConnections,
		AcceptRestored:   c.AcceptRestored,
		CreateDatabase:   c.CreateDatabase,
		EncryptionConfig: c.EncryptionConfig,
		KeyFile:          c.EncryptionKeyFile,
		RotationSettle:   c.RotationSettle,
		Compaction:       c.Compaction,
		FreeBytes:        c.FreeBytes,
		Metrics:          legacyregistry.Registerer(),
		Logger:           c.Logger,
		Server:           records.Server{Owner: owner, Address: cc.address(), Version: Version, Settings: c.common()},
		Worker:           c.Worker,
		Waiting:          func(reason string) { cc.wait(waits, reason) },
	})
	return errors.Join(err, waits.end())
}

// common returns the flags that a worker and its server must have in common, without their values where these are
// local.
func (c *Config) common() string {
	flags := []string{"an embedded Temporal"}
	if c.TemporalAddress != "" {
		flags = []string{"--temporal-namespace=" + c.TemporalNamespace}
	}
	for flag, value := range map[string]string{"--token-auth-file": c.TokenAuthFile,
		"--authentication-config": c.AuthenticationFile} {
		if value != "" {
			flags = append(flags, flag)
		}
	}
	slices.Sort(flags[1:])
	return strings.Join(flags, ", ")
}

// wait serves as a standby. The probes of this machine need its kubeconfig.
func (cc *completedConfig) wait(waits *standby, reason string) {
	waits.wait(reason, func(handler http.Handler) (stop func() error) {
		if err := cc.certs.WriteKubeconfig(cc.admin(), time.Now()); err != nil {
			cc.Logger.Warn("write the kubeconfig of a standby", "error", err)
		}
		return serveOn(cc.listener, cc.certs.ServingCert(), cc.certs.ServingKey(), handler, cc.Logger)
	})
}

// shareAuthorities makes all servers of a database use the same certificate authorities, so that one kubeconfig is
// valid for all of them, and after a restore. replace makes those of this server the common ones.
func (cc *completedConfig) shareAuthorities(ctx context.Context, replace bool) error {
	own, err := access.Authorities(cc.tlsDir())
	if err != nil {
		return err
	}
	common, err := ledger.New(cc.store.KV()).Authorities(ctx, own, replace)
	if err != nil {
		return err
	}
	changed, err := access.UseAuthorities(cc.tlsDir(), common)
	if err != nil || !changed {
		return err
	}
	cc.Logger.InfoContext(ctx, "the server uses the certificate authorities of the database")
	cc.certs, err = access.OpenCertificates(cc.tlsDir(), cc.hosts(), time.Now())
	return err
}
