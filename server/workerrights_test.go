package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/hykube/hykube/sdk/steps"
	"github.com/hykube/hykube/server"
)

// TestWorkersGiveThemselvesNothing has a privileged starter. Kubernetes compares a role with the rights of the user of the
// request, who is the starter, and the worker must not give itself these.
func TestWorkersGiveThemselvesNothing(t *testing.T) {
	const namespace = "gives"
	trusted, _, _ := privileged(t, namespace)
	admin := temporalOf(t, shared.admin(), namespace)
	for id, tc := range map[string]struct {
		by   client.Client
		how  way
		want string
	}{
		"reads for the administrator": {admin, way{}, "done"},
		"binds for the administrator": {admin, way{Activity: "bindItself"}, "forbidden"},
		"binds for itself":            {trusted, way{Activity: "bindItself"}, "forbidden"},
	} {
		begin(t, tc.by, id, "privileged", tc.how)
		if got := outcome(t, admin, id); got != tc.want {
			t.Errorf("%s: %s, want %s", id, got, tc.want)
		}
	}
}

// TestRightsOfWorkersOnlyForAStarter gives a worker its rights by its group, and not by its user.
func TestRightsOfWorkersOnlyForAStarter(t *testing.T) {
	const namespace = "groups"
	_, editor, _ := privileged(t, namespace)
	rbac := core(t, shared.admin()).RbacV1()
	run := func(c client.Client, id, activity, want string) {
		t.Helper()
		begin(t, c, id, "privileged", way{Activity: activity})
		if got := outcome(t, editor, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	// With rights of its user, code that leaves the starter out acts for each of them.
	run(editor, "by its user", "readRolesItself", "done")
	if err := rbac.RoleBindings(namespace).Delete(t.Context(), "approver-admin", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "hykube:worker:approver"}}}
	if _, err := rbac.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the user of the worker has no right of its own", func() bool {
		_, err := core(t, shared.as("approver")).RbacV1().Roles(namespace).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
	admin := temporalOf(t, shared.admin(), namespace)
	eventually(t, "the worker has the right for an administrator", func() bool {
		id := uuid.NewString()
		begin(t, admin, id, "privileged", way{})
		return outcome(t, admin, id) == "done"
	})
	run(editor, "for a starter without the right", "", "forbidden")
	run(editor, "without the starter", "readRolesItself", "forbidden")
	run(admin, "without an administrator", "readRolesItself", "forbidden")
}

// TestUsersWhoAreGone takes a user out of the token file while a workflow, an activity and a schedule of the user run.
func TestUsersWhoAreGone(t *testing.T) {
	const namespace = "gone"
	write := func(text string) {
		t.Helper()
		next := sharedTokens + ".next"
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, sharedTokens)); err != nil {
			t.Fatal(err)
		}
	}
	write(tokens + "leaver-token,leaver,4,\"writers\"\n")
	t.Cleanup(func() { write(tokens) })
	trusted, _, _ := privileged(t, namespace)
	bindRole(t, namespace, "admin", "leaver")
	leaver := temporalOf(t, shared.as("leaver"), namespace)
	admin := temporalOf(t, shared.admin(), namespace)
	begin(t, leaver, "before", "privileged", way{})
	if got := outcome(t, trusted, "before"); got != "done" {
		t.Fatalf("while the file names the user: %s", got)
	}
	begin(t, leaver, "waits", "privileged", way{Signal: true})
	// The worker of this queue is the test itself, so the activity runs while the user goes.
	begin(t, leaver, "runs", "privileged", way{Check: true})
	checks := &checker{asked: make(chan struct{}), goOn: make(chan struct{})}
	config := steps.OnBehalf(shared.as("approver"))
	checks.client, checks.namespace = core(t, config), namespace
	w := worker.New(trusted, "checks", worker.Options{})
	w.RegisterActivityWithOptions(checks.check, activity.RegisterOptions{Name: "check"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	<-checks.asked
	if _, err := leaver.WorkflowService().CreateSchedule(t.Context(), &workflowservice.CreateScheduleRequest{
		Namespace: "hykube." + namespace, ScheduleId: "leavers", RequestId: uuid.NewString(), Schedule: daily("privileged")}); err != nil {
		t.Fatal(err)
	}
	write(tokens)
	eventually(t, "the token file does not name the user", func() bool {
		_, err := core(t, shared.as("leaver")).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		return apierrors.IsUnauthorized(err)
	})
	close(checks.goOn)
	ended := func(id string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		if _, ok := errors.AsType[*temporal.TerminatedError](admin.GetWorkflow(ctx, id, "").Get(ctx, nil)); !ok {
			t.Errorf("the run %s of a user who is gone was not terminated", id)
		}
	}
	ended("runs")
	if got := checks.result.Load(); got == nil || *got != "forbidden" {
		t.Errorf("an activity that was running: %v, want forbidden", got)
	}
	if err := admin.SignalWorkflow(t.Context(), "waits", "", "go", nil); err != nil {
		t.Fatal(err)
	}
	ended("waits")
	if err := admin.ScheduleClient().GetHandle(t.Context(), "leavers").Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the schedule is paused", func() bool {
		d, err := admin.ScheduleClient().GetHandle(t.Context(), "leavers").Describe(t.Context())
		return err == nil && d.Schedule.State.Paused && strings.Contains(d.Schedule.State.Note, `user "leaver" lacks the verb "create"`)
	})
}

// checker is an activity that waits, and then reads Roles for the starter.
type checker struct {
	client      kubernetes.Interface
	namespace   string
	asked, goOn chan struct{}
	result      atomic.Pointer[string]
}

func (c *checker) check(ctx context.Context) error {
	close(c.asked)
	<-c.goOn
	_, err := c.client.RbacV1().Roles(c.namespace).List(ctx, metav1.ListOptions{})
	out, err := didOrForbidden(err)
	c.result.Store(&out)
	return err
}

// TestWorkflowsAreARoleOfTheirOwn takes the rights on workflows out of the role edit.
func TestWorkflowsAreARoleOfTheirOwn(t *testing.T) {
	const name, label, update = "hykube:workflows", "rbac.authorization.k8s.io/aggregate-to-edit", "rbac.authorization.kubernetes.io/autoupdate"
	s := startT(t, server.Config{DataDir: t.TempDir(), TokenAuthFile: sharedTokens, Wire: testWiring})
	roles := core(t, s.admin()).RbacV1().ClusterRoles()
	has := func() bool {
		edit, err := roles.Get(t.Context(), "edit", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(edit.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "workflows") })
	}
	eventually(t, "edit has the rights on workflows", has)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"},"labels":{%q:null}}}`, update, label)
	if _, err := roles.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "edit has no right on workflows", func() bool { return !has() })
	if role, err := roles.Get(t.Context(), name, metav1.GetOptions{}); err != nil || len(role.Rules) != 1 {
		t.Errorf("the role %s: %v, %v", name, role, err)
	}
}
