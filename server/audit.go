package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

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
