package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/storage"
)

// ThawPath is the URL of the state after a restore. GET returns storage.Restored, or null for a database that was not restored. POST
// thaws the database: the server then applies plans again. With the parameter ThawPlans, that includes the plans that were approved
// before.
const (
	ThawPath  = "/thaw"
	ThawPlans = "plans"
)

// addThaw serves ThawPath.
func (s *Server) addThaw() {
	s.addAdministration(ThawPath, s.thaw, func(*http.Request) (any, error) { return s.config.store.Restored(), nil })
}

// thaw lets the server act. With the parameter ThawPlans, it also lets the plans go on that were approved before; without it, they wait.
func (s *Server) thaw(r *http.Request) error {
	plans := r.URL.Query().Has(ThawPlans)
	if !s.config.store.Restored().Frozen() && !plans {
		return notFrozen()
	}
	waiting := map[types.UID]bool{}
	err := s.config.eachPlan(r.Context(), func(p *v1alpha1.Plan) {
		if !plans && p.Status.FinishedAt == nil && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved) {
			waiting[p.UID] = true
		}
	})
	if err != nil {
		return err
	}
	err = s.config.store.Thaw(r.Context(), waiting)
	if errors.Is(err, storage.ErrNotFrozen) {
		return notFrozen()
	}
	if err == nil {
		s.log.Info("the database is thawed; the server applies plans again", "waiting", len(waiting))
	}
	return err
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
	return changes.Restored{Frozen: r.Frozen(), Waiting: r.Waiting}
}

// warnFrozen adds a warning to the answers of a frozen server to users, which kubectl prints.
func (s *Server) warnFrozen(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.config.restored().Frozen && !s.gate.fromServer(r) {
			warning.AddWarning(r.Context(), "", changes.MessageFrozen)
		}
		inner.ServeHTTP(w, r)
	})
}
