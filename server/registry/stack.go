package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/stack"
	"github.com/hykube/hykube/internal/store"
)

// newStacks returns the storage of stacks and of their status. plans has the plans that deletes of stacks warn about.
func newStacks(c Config, plans *genericregistry.Store) (*resourceREST, *statusREST, error) {
	var stored *genericregistry.Store
	strategy := kindStrategy[*v1alpha1.Stack, v1alpha1.StackStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, s *v1alpha1.Stack) {
			s.Status = v1alpha1.StackStatus{ObservedGeneration: 1, Author: requester(ctx), AuthorGeneration: 1,
				Conditions: initialConditions(v1alpha1.ReasonSettling, "Finding the resources of the stack.")}
		},
		prepareUpdate:  noteAuthor,
		spec:           func(s *v1alpha1.Stack) any { return s.Spec },
		status:         func(s *v1alpha1.Stack) *v1alpha1.StackStatus { return &s.Status },
		conditions:     func(s *v1alpha1.StackStatus) *[]metav1.Condition { return &s.Conditions },
		validate:       validateStack,
		validateUpdate: func(_, _ *v1alpha1.Stack) field.ErrorList { return nil },
		validateAgainst: func(ctx context.Context, s, old *v1alpha1.Stack) field.ErrorList {
			if old != nil && sameSpec(s.Spec, old.Spec) {
				return nil
			}
			list, err := stored.List(ctx, &metainternalversion.ListOptions{})
			if err != nil {
				return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
			}
			errs := append(validateDependencies(s, list.(*v1alpha1.StackList).Items),
				validateOutputs(s, c.Kinds.Functions(), lang.BudgetOf(ctx))...)
			if s.Spec.Workflow != nil && c.ExternalTemporal {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "workflow"),
					"this server uses an external Temporal cluster, and starts workflows of users only in an embedded one"))
			}
			return errs
		},
		warn:    func(ctx context.Context, s *v1alpha1.Stack) []string { return c.warnStack(ctx, stored, s) },
		keepOwn: func(s, old *v1alpha1.StackStatus) { s.Author, s.AuthorGeneration = old.Author, old.AuthorGeneration },
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.Stack) field.ErrorList {
			return statusByServer(ctx, "a Stack")
		},
	}
	var statusREST *statusREST
	var err error
	if stored, statusREST, err = newStore(c, "stack", new(v1alpha1.Stack), new(v1alpha1.StackList), strategy,
		stackTable); err != nil {
		return nil, nil, err
	}
	mayWrite := func(ctx context.Context, obj, old runtime.Object) error {
		s, before := obj.(*v1alpha1.Stack), (*v1alpha1.Stack)(nil)
		if before, _ = old.(*v1alpha1.Stack); before != nil && !equality.Semantic.DeepEqual(s.Spec.Selector,
			before.Spec.Selector) {
			if err := c.mayRelease(ctx, stored, s); err != nil {
				return err
			}
		}
		return c.mayWriteStack(ctx, s, before)
	}
	mayDelete := func(ctx context.Context, obj runtime.Object) error {
		return c.mayRelease(ctx, stored, obj.(*v1alpha1.Stack))
	}
	current := func(ctx context.Context, namespace string) { c.Backend.CurrentStacks(ctx, namespace) }
	warn := func(ctx context.Context, obj runtime.Object) { warnOfEndingPlans(ctx, plans, obj.(*v1alpha1.Stack)) }
	return &resourceREST{Store: stored, short: "stk", mayWrite: mayWrite, mayDelete: mayDelete, warnDeleted: warn,
		current: current}, statusREST, nil
}

// mayRelease checks the right to take resources from a stack. Another stack of the namespace may then select them, and
// approve their changes by itself.
func (c Config) mayRelease(ctx context.Context, stored *genericregistry.Store, s *v1alpha1.Stack) error {
	if byServer(ctx) {
		return nil
	}
	list, err := stored.List(request.WithNamespace(ctx, s.Namespace), &metainternalversion.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list the stacks beside %q: %w", s.Name, err))
	}
	automatic := slices.IndexFunc(list.(*v1alpha1.StackList).Items, func(o v1alpha1.Stack) bool {
		return o.Name != s.Name && o.Spec.Approval == v1alpha1.ApprovalAutomatic
	})
	if automatic < 0 {
		return nil
	}
	approve := []store.Right{{Verb: store.VerbApprove, Namespace: s.Namespace, Group: groupName, Resource: "plans"}}
	return requireRights(ctx, c.Authorizer, "stacks", s.Name, approve, fmt.Sprintf(
		"the stack %q, which approves its plans by itself, may select the resources that this stack gives up",
		list.(*v1alpha1.StackList).Items[automatic].Name))
}

// noteAuthor records the user of a request that makes this user the author of a stack.
func noteAuthor(ctx context.Context, s, old *v1alpha1.Stack) {
	if changesAuthor(s, old) {
		s.Status.Author, s.Status.AuthorGeneration = requester(ctx), old.Generation+1
	}
}

// changesAuthor reports whether a change of a stack makes the user its author. A change that only suspends the stack,
// or lets it continue, does not change what the stack does. So the stack keeps the rights with which it was written.
func changesAuthor(s, old *v1alpha1.Stack) bool {
	before := old.Spec
	before.Suspend = s.Spec.Suspend
	return !sameSpec(s.Spec, before)
}

// needsAuthor reports whether a change of a stack acts with the rights of whoever makes it. A change that only suspends
// the stack does not, so that a user without the rights of its author can stop it.
func needsAuthor(s, old *v1alpha1.Stack) bool {
	if s.Spec.Suspend {
		before := old.Spec
		before.Suspend = true
		return !sameSpec(s.Spec, before)
	}
	return !sameSpec(s.Spec, old.Spec)
}

// mayWriteStack checks the rights of a stack's author, because the server makes its plans, approves them and evaluates
// its outputs with these rights. old is nil for a new stack.
func (c Config) mayWriteStack(ctx context.Context, s, old *v1alpha1.Stack) error {
	if old != nil && !needsAuthor(s, old) {
		return nil
	}
	if err := requireRights(ctx, c.Authorizer, "stacks", s.Name, rightsOfStack(s),
		"the server acts for the stack with the rights of the user who writes it"); err != nil {
		return err
	}
	who, _ := request.UserFrom(ctx)
	problems, err := c.Kinds.MayRefer(ctx, who, s.Namespace, outputReferences(s), true)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorize outputs of stack %q: %w", s.Name, err))
	}
	if len(problems) > 0 {
		return apierrors.NewForbidden(v1alpha1.Resource("stacks"), s.Name, errors.New(strings.Join(problems, "; ")))
	}
	return nil
}

// rightsOfStack returns the rights that the author of a stack needs, except those to the objects in its outputs.
func rightsOfStack(s *v1alpha1.Stack) []store.Right {
	plans := store.Right{Verb: store.VerbCreate, Namespace: s.Namespace, Group: groupName, Resource: "plans"}
	var needed []store.Right
	if s.Spec.Workflow != nil {
		needed = append(needed, store.StartsWorkflows(s.Namespace, s.Spec.Workflow.TaskQueue))
	}
	if s.Spec.Workflow == nil || s.Spec.Drift != nil {
		needed = append(needed, plans)
	}
	// A drift check makes plans that approve themselves: they change records, and no infrastructure.
	if s.Spec.Approval == v1alpha1.ApprovalAutomatic || s.Spec.Drift != nil {
		plans.Verb = store.VerbApprove
		needed = append(needed, plans)
	}
	if to := s.Spec.WriteOutputsTo; to != nil {
		needed = append(needed, store.WriteOf(s.Namespace, "configmaps", to.ConfigMap)...)
		needed = append(needed, store.WriteOf(s.Namespace, "secrets", to.Secret)...)
	}
	return needed
}

// outputReferences returns the references in the outputs of a stack.
func outputReferences(s *v1alpha1.Stack) (refs []lang.Reference) {
	for name, text := range s.Spec.Outputs {
		found, _ := lang.ExpressionOptions{Namespace: s.Namespace}.References(text,
			field.NewPath("spec", "outputs").Key(name).String())
		refs = append(refs, found...)
	}
	return refs
}

var stackTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn, readyColumn, reasonColumn,
		column("Plan", "string", "Last plan that the stack, or its workflow, made.", 0),
		column("Resources", "integer", "Number of resources that the stack selects.", 0),
		ageColumn,
		column("Pending", "integer", "Number of resources that differ from their specs.", 1),
		column("Approval", "string", "Approval of the plans; - if the stack has a workflow, which decides that.", 1),
		column("Run", "string", "Last run of the stack's workflow.", 1),
		whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		s := obj.(*v1alpha1.Stack)
		ready, reason, message := readinessCells(s, s.Status.Conditions)
		run := ""
		if s.Status.Run != nil && s.Spec.Workflow != nil {
			run = s.Status.Run.RunID
		}
		return []any{s.Name, ready, reason, orNone(stack.LastPlan(s)), int64(s.Status.Resources),
			age(s.CreationTimestamp),
			int64(s.Status.Pending), stack.Approval(s), orNone(run), message}
	},
}

// cycleThrough returns the names of the stacks in a cycle through the stack, which begins and ends with its name; nil
// if there is none.
func cycleThrough(name string, dependsOn map[string][]string) []string {
	seen := map[string]bool{}
	var path []string
	var visit func(at string) bool
	visit = func(at string) bool {
		path = append(path, at)
		for _, next := range dependsOn[at] {
			if next == name {
				path = append(path, next)
				return true
			}
			if !seen[next] {
				seen[next] = true
				if visit(next) {
					return true
				}
			}
		}
		path = slices.Delete(path, len(path)-1, len(path))
		return false
	}
	if visit(name) {
		return path
	}
	return nil
}
