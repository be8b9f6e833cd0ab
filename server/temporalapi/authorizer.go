package temporalapi

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/rights"
)

// Authorizer lets requests for the service pass whose user has a role that names task queues. The path and the headers
// of a request do not have its queue, so the service itself checks the right with it.
type Authorizer struct {
	authorizer.Authorizer
	Rules authorizer.RuleResolver
}

// Authorize implements authorizer.Authorizer.
func (a Authorizer) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := a.Authorizer.Authorize(ctx, asked)
	served := strings.HasPrefix(asked.GetPath(), PathPrefix) && asked.IsResourceRequest() && asked.GetNamespace() != ""
	if decision == authorizer.DecisionAllow || !served {
		return decision, reason, err
	}
	for _, who := range append([]user.Info{asked.GetUser()}, rights.ThroughOf(asked.GetUser())...) {
		if !a.named(ctx, who, asked) {
			return decision, reason, err
		}
	}
	return authorizer.DecisionAllow, "the service checks the task queue", nil
}

// named reports whether a role of a user has rights on workflows.
func (a Authorizer) named(ctx context.Context, who user.Info, asked authorizer.Attributes) bool {
	rules, _, _, _ := a.Rules.RulesFor(ctx, who, asked.GetNamespace()) // errors concern other roles
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r authorizer.ResourceRuleInfo) bool {
		verb := has(r.GetVerbs(), asked.GetVerb()) || strings.HasSuffix(asked.GetPath(), "/DescribeNamespace")
		return verb && has(r.GetAPIGroups(), v1alpha1.GroupName) && has(r.GetResources(), Resource)
	})
}
