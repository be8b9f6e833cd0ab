package auditlog

import (
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	k8saudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// DefaultPolicy is the policy of a server without --audit-policy-file. It never records the content of objects, since
// specs and Secrets may hold passwords. Where it does not omit the stage RequestReceived, a request that cannot be
// recorded fails.
const DefaultPolicy = `# The audit policy of this server, unless --audit-policy-file names another. The server writes this file at each start.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
# Health checks, metrics, discovery and documents.
- {level: None, verbs: [get, head, options], nonResourceURLs: ["*"]}
# The server's own caches. They keep the names of Secrets only.
- {level: None, users: ["system:apiserver"], verbs: [list, watch]}
# Every access to a Secret, also by the server. Annotations name the plan or the user for whom it reads.
- {level: Metadata, resources: [{group: "", resources: [secrets, "secrets/*"]}]}
# Decisions about plans, and writes of providers, policies and rights: recorded before and after, also those of the server.
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: hykube.io, resources: [plans/approval, plans/cancel, providers, providers/undelete, providerconfigs, providerconfigs/undelete, planpolicies, clusterplanpolicies, planrecords]}
  - {group: rbac.authorization.k8s.io}
# Other writes of the server, such as status.
- {level: None, users: ["system:apiserver"]}
# Rotation of keys, backups, the thaw after a restore, and writes that change which policies and limits apply: recorded before and after.
- {level: Metadata, verbs: [post], nonResourceURLs: ["/rotate-keys", "/backup", "/thaw"]}
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [namespaces, "namespaces/*", resourcequotas, "resourcequotas/*"]}
  - {group: flowcontrol.apiserver.k8s.io}
# Evaluations, whose answers may have values of states: recorded before and after.
- {level: Metadata, verbs: [create], resources: [{group: hykube.io, resources: [evaluations]}]}
# Pushes and pulls of Terraform states, whose annotations have the lineage and the serial: recorded before and after.
- {level: Metadata, verbs: [create], resources: [{group: hykube.io, resources: [statepushes, statepulls]}]}
# Frequent requests that change nothing.
- level: None
  resources: [{group: authentication.k8s.io}, {group: authorization.k8s.io}, {group: "", resources: [events]}, {group: events.k8s.io}, {group: hykube.io, resources: [validations]}]
- {level: None, verbs: [get, list, watch]}
# The tasks of workers of workflows. The changes of workers to infrastructure and objects are requests of their own.
- {level: None, verbs: [work], resources: [{group: hykube.io, resources: [workflows]}]}
# Every other write: recorded only after it.
- {level: Metadata, omitStages: [RequestReceived]}
`

// WithState returns an evaluator that also records every read of raw state, in any group, before and after.
func WithState(policy k8saudit.PolicyRuleEvaluator) k8saudit.PolicyRuleEvaluator {
	return withState{policy}
}

type withState struct{ k8saudit.PolicyRuleEvaluator }

func (e withState) EvaluatePolicyRule(attrs authorizer.Attributes) k8saudit.RequestAuditConfig {
	if attrs.IsResourceRequest() && attrs.GetSubresource() == "state" {
		return k8saudit.RequestAuditConfig{Level: auditinternal.LevelMetadata,
			OmitStages: []auditinternal.Stage{auditinternal.StageResponseStarted}}
	}
	return e.PolicyRuleEvaluator.EvaluatePolicyRule(attrs)
}
