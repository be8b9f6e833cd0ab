// Package flowcontrol holds the server's configuration of Kubernetes' API priority and fairness: the priority levels,
// and the FlowSchemas that assign requests to them. It knows only client-go and Kubernetes' flow control.
package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	client "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Seats is the number of requests that the server executes at once, as in Kubernetes. Requests of the level "exempt" do
// not count.
const Seats = 600

// ensureInterval is the interval at which a running server restores the mandatory objects and the objects that an
// administrator deleted. It reads them from a cache.
const ensureInterval = time.Minute

// Names of the server's own priority levels. The names "exempt", "catch-all" and "global-default" are Kubernetes' own.
const (
	levelDecisions  = "hykube-decisions"
	levelMonitoring = "hykube-monitoring"
	levelHeavy      = "hykube-heavy"
	levelQueries    = "hykube-queries"
	levelWrites     = "hykube-writes"
	levelDefault    = "global-default"
)

// levels returns the suggested priority levels. Their shares and those of "catch-all" add up to 300, so that a share is
// two seats.
func levels() []*flowcontrolv1.PriorityLevelConfiguration {
	return []*flowcontrolv1.PriorityLevelConfiguration{
		// Approvals and cancellations. No other level borrows these seats.
		level(levelDecisions, 40, 0, nil),
		level(levelMonitoring, 10, 0, nil),
		// Requests that occupy a processor for long. More at once would not finish sooner, and would delay all others.
		level(levelHeavy, 3, 0, new(int32(0))),
		// Queries wait for providers.
		level(levelQueries, 16, 0, new(int32(0))),
		// Writes evaluate the expressions of their object. A dry run is a write.
		level(levelWrites, 16, 0, new(int32(0))),
		level(levelDefault, 210, 50, nil),
	}
}

// schemas returns the suggested FlowSchemas. Each distinguishes the requests of its level by user, so that a user who
// sends many waits behind a user who sends few.
func schemas() []*flowcontrolv1.FlowSchema {
	hykube := func(verbs []string, resources ...string) flowcontrolv1.ResourcePolicyRule {
		return resourceRule(verbs, v1alpha1.GroupName, resources...)
	}
	return []*flowcontrolv1.FlowSchema{
		bootstrap.SuggestedFlowSchemaProbes,
		schema("hykube-decisions", levelDecisions, 100, flowcontrolv1.PolicyRulesWithSubjects{
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{hykube(all, "plans/approval", "plans/cancel")},
		}),
		schema("hykube-monitoring", levelMonitoring, 110, flowcontrolv1.PolicyRulesWithSubjects{
			NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"},
				NonResourceURLs: []string{"/metrics", "/metrics/*", "/readyz/*", "/livez/*", "/healthz/*",
					"/version"}}},
		}),
		schema("hykube-heavy", levelHeavy, 200, flowcontrolv1.PolicyRulesWithSubjects{
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{hykube([]string{"create"}, "evaluations", "validations",
				"plans/objects")},
		}),
		schema("hykube-queries", levelQueries, 210, flowcontrolv1.PolicyRulesWithSubjects{
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{hykube([]string{"create"}, "queries")},
		}),
		schema("hykube-plans", levelDefault, 220, flowcontrolv1.PolicyRulesWithSubjects{
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{hykube(all, "plans")},
		}),
		schema("hykube-writes", levelWrites, 300, flowcontrolv1.PolicyRulesWithSubjects{
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{resourceRule([]string{"create", "update", "patch",
				"delete", "deletecollection"}, flowcontrolv1.APIGroupAll, flowcontrolv1.ResourceAll)},
		}),
		bootstrap.SuggestedFlowSchemaGlobalDefault,
	}
}

var all = []string{flowcontrolv1.VerbAll}

func level(name string, shares, lendable int32, borrowing *int32) *flowcontrolv1.PriorityLevelConfiguration {
	l := &flowcontrolv1.PriorityLevelConfiguration{Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares, LendablePercent: &lendable, BorrowingLimitPercent: borrowing,
			LimitResponse: flowcontrolv1.LimitResponse{
				Type:    flowcontrolv1.LimitResponseTypeQueue,
				Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 128, HandSize: 6, QueueLengthLimit: 50},
			},
		},
	}}
	l.Name, l.Annotations = name, map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}
	return l
}

// schema returns a FlowSchema for requests of all users.
func schema(name, level string, precedence int32,
	rules flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	for _, group := range []string{user.AllAuthenticated, user.AllUnauthenticated} {
		rules.Subjects = append(rules.Subjects,
			flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup,
				Group: &flowcontrolv1.GroupSubject{Name: group}})
	}
	s := &flowcontrolv1.FlowSchema{Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		MatchingPrecedence:         precedence,
		DistinguisherMethod: &flowcontrolv1.
			FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{rules},
	}}
	s.Name, s.Annotations = name, map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}
	return s
}

func resourceRule(verbs []string, group string, resources ...string) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{
		Verbs: verbs, APIGroups: []string{group}, Resources: resources,
		Namespaces: []string{flowcontrolv1.NamespaceEvery}, ClusterScope: true,
	}
}

// Ensurer creates and updates the server's priority levels and FlowSchemas, as Kubernetes' API server does: it restores
// deleted ones, and keeps the changes of an administrator.
type Ensurer struct {
	levels  ensurer.ObjectOps[*flowcontrolv1.PriorityLevelConfiguration]
	schemas ensurer.ObjectOps[*flowcontrolv1.FlowSchema]
	synced  []cache.InformerSynced
	log     *slog.Logger
}

// NewEnsurer returns an Ensurer that reads from the informers and writes through the client.
func NewEnsurer(c client.FlowcontrolV1Interface, factory informers.SharedInformerFactory, log *slog.Logger) *Ensurer {
	levels, schemas := factory.Flowcontrol().V1().PriorityLevelConfigurations(),
		factory.Flowcontrol().V1().FlowSchemas()
	return &Ensurer{
		levels:  ensurer.NewPriorityLevelConfigurationOps(c.PriorityLevelConfigurations(), levels.Lister()),
		schemas: ensurer.NewFlowSchemaOps(c.FlowSchemas(), schemas.Lister()),
		synced:  []cache.InformerSynced{levels.Informer().HasSynced, schemas.Informer().HasSynced},
		log:     log,
	}
}

// Start ensures the objects before it returns. It then continues in the background until ctx ends.
func (e *Ensurer) Start(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), e.synced...) {
		return errors.New("read the priority levels: the server is stopping")
	}
	if err := e.ensure(ctx); err != nil {
		return fmt.Errorf("ensure the priority levels: %w", err)
	}
	go func() {
		_ = wait.PollUntilContextCancel(ctx, ensureInterval, false, func(ctx context.Context) (bool, error) {
			if err := e.ensure(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("cannot ensure the priority levels; the server tries again", "error", err)
			}
			return false, nil
		})
	}()
	return nil
}

func (e *Ensurer) ensure(ctx context.Context) error {
	suggestedLevels, suggestedSchemas := levels(), schemas()
	if err := ensurer.EnsureConfigurations(ctx, e.levels, suggestedLevels,
		ensurer.NewSuggestedEnsureStrategy[*flowcontrolv1.PriorityLevelConfiguration]()); err != nil {
		return err
	}
	if err := ensurer.EnsureConfigurations(ctx, e.schemas, suggestedSchemas,
		ensurer.NewSuggestedEnsureStrategy[*flowcontrolv1.FlowSchema]()); err != nil {
		return err
	}
	if err := ensurer.EnsureConfigurations(ctx, e.levels, bootstrap.MandatoryPriorityLevelConfigurations,
		ensurer.NewMandatoryEnsureStrategy[*flowcontrolv1.PriorityLevelConfiguration]()); err != nil {
		return err
	}
	if err := ensurer.EnsureConfigurations(ctx, e.schemas, bootstrap.MandatoryFlowSchemas,
		ensurer.NewMandatoryEnsureStrategy[*flowcontrolv1.FlowSchema]()); err != nil {
		return err
	}
	if err := ensurer.RemoveUnwantedObjects(ctx, e.schemas,
		append(suggestedSchemas, bootstrap.MandatoryFlowSchemas...)); err != nil {
		return err
	}
	return ensurer.RemoveUnwantedObjects(ctx, e.levels,
		append(suggestedLevels, bootstrap.MandatoryPriorityLevelConfigurations...))
}
