package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/storage"
)

// ThawPath is the URL of the state after a restore. GET returns storage.Restored, or null for a database that was not
// restored. POST thaws the namespaces of the parameters ThawNamespace, or all: the server then applies their plans
// again. With the parameter ThawPlans, that includes the plans that were approved before.
const (
	ThawPath      = "/thaw"
	ThawNamespace = "namespace"
	ThawPlans     = "plans"
)

// addThaw serves ThawPath.
func (s *Server) addThaw() {
	s.addAdministration(ThawPath, s.thaw, func(*http.Request) (any, error) { return s.config.store.Restored(), nil })
}

// thaw lets the server act. With the parameter ThawPlans, it also lets the plans go on that were approved before;
// without it, they wait.
func (s *Server) thaw(r *http.Request) error {
	restored, plans, namespaces := s.config.store.Restored(), r.URL.Query().Has(ThawPlans), r.URL.Query()[ThawNamespace]
	if restored == nil {
		return notFrozen()
	}
	for _, namespace := range namespaces {
		if found, err := s.config.store.Objects().Get(r.Context(), corev1.Resource("namespaces"), "",
			namespace); err != nil {
			return err
		} else if found == nil {
			return apierrors.NewNotFound(corev1.Resource("namespaces"), namespace)
		}
	}
	frozen := slices.ContainsFunc(namespaces, restored.Frozen) || len(namespaces) == 0 && restored.Frozen("")
	if !frozen && !plans {
		return notFrozen()
	}
	waiting, err := s.waiting(r.Context(), restored, namespaces, plans)
	if err != nil {
		return err
	}
	err = s.config.store.Thaw(r.Context(), namespaces, waiting)
	if errors.Is(err, storage.ErrNotFrozen) {
		return notFrozen()
	}
	if err == nil {
		s.log.Info("thawed after a restore; the server applies plans again", "namespaces", namespaces, "waiting",
			len(waiting))
	}
	return err
}

// waiting returns the plans that wait after a thaw of these namespaces, or of all if there are none: those that were
// approved before it, except in these namespaces if plans is true.
func (s *Server) waiting(ctx context.Context, restored *storage.Restored, namespaces []string,
	plans bool) (map[types.UID]bool, error) {
	waiting := map[types.UID]bool{}
	err := s.config.eachPlan(ctx, func(p *v1alpha1.Plan) {
		if p.Status.FinishedAt != nil || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved) {
			return
		}
		thawing := len(namespaces) == 0 || slices.Contains(namespaces, p.Namespace)
		if restored.Waiting[p.UID] || thawing && restored.Frozen(p.Namespace) {
			waiting[p.UID] = !plans || !thawing
		}
	})
	maps.DeleteFunc(waiting, func(_ types.UID, waits bool) bool { return !waits })
	return waiting, err
}

// notFrozen returns the error of a thaw of a database that is not frozen.
func notFrozen() error {
	err := apierrors.NewConflict(kschema.GroupResource{Resource: "thaw"}, "", nil)
	err.ErrStatus.Message = storage.ErrNotFrozen.Error()
	return err
}

// eachPlan calls each with all plans of the database.
func (c *completedConfig) eachPlan(ctx context.Context, each func(*v1alpha1.Plan)) error {
	for u, err := range c.store.Objects().List(ctx, v1alpha1.GroupName, "") {
		if err != nil {
			return fmt.Errorf("list the plans: %w", err)
		}
		if u.GetKind() != "Plan" {
			continue
		}
		p := new(v1alpha1.Plan)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			return fmt.Errorf("read plan %q: %w", u.GetName(), err)
		}
		each(p)
	}
	return nil
}

// restored returns what follows for plans from a restore.
func (c *completedConfig) restored() changes.Restored {
	r := c.store.Restored()
	if r == nil {
		return changes.Restored{}
	}
	return changes.Restored{Frozen: r.Frozen, Waiting: r.Waiting}
}

// warnFrozen adds a warning to the answers of a frozen server to users, which kubectl prints.
func (s *Server) warnFrozen(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		// Clients keep the answers of discovery, and would show their warnings after the thaw.
		if info != nil && info.IsResourceRequest && s.config.store.Restored().Frozen(info.Namespace) &&
			!s.gate.fromServer(r) {
			warning.AddWarning(r.Context(), v1alpha1.WarningAgentFrozen, changes.MessageFrozen)
		}
		inner.ServeHTTP(w, r)
	})
}
