package planning

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/workflows"
)

// totals accumulates the changes of a plan for its Plan object.
type totals struct {
	summary  v1alpha1.PlanSummary
	digest   changes.Digest
	contents *contents
	// referrers holds the resources outside of the plan that refer to its changes.
	referrers map[string]bool
	// destroys is true if the plan destroys everything that it visits. The plan of a stack does so only in a namespace
	// that is being deleted.
	destroys bool
	// steps is the number of changes that an apply would make. read is the number of resources that planning read.
	steps, read int
	// gone is the number of forgets of resources that do not exist.
	gone int32
	// unselected is the address of a change to an object that the spec does not select; empty if there is none.
	unselected string
	// needed names a resource that the plan destroys or replaces although one outside of the plan refers to it; empty
	// if there is none.
	needed string
	// again is the address of a create after one that may have made the resource; empty if there is none.
	again string
	// elsewhere is the address of a resource that may be that of another account; empty if there is none.
	elsewhere string
	waitsFor  []v1alpha1.PlanReference
	// rolled counts the changes of each ResourceSet that its rollout limits, and rollouts are what the limits are.
	rolled   map[types.UID]*rolled
	rollouts []v1alpha1.PlanRollout
	// diags are about the changes, postponed about those that were taken out of the plan, and forbidden about those
	// that lifecycle.preventDestroy blocks. obstacles lists the latter.
	diags, postponed, forbidden diag.Diagnostics
	// waiting are the reasons why the plan leaves out blocks of Modules; see index.Index.Waiting.
	waiting   map[string]string
	obstacles []changes.Obstacle
	// planned has the indexes of the changes with planned values, at most a little more than maxOutputChanges, and
	// outputs the outputs of Modules that these change.
	planned map[lang.Address]int32
	outputs []v1alpha1.PlanOutput
	// verdict is the result of the policies for the plan.
	verdict *policy.Verdict
	// contributors are those of the changes that an apply would make.
	contributors []v1alpha1.Contributor
	// unwritten is true if nobody wrote what one of these changes follows from: the infrastructure was changed outside
	// of Hykube, or the provider was upgraded.
	unwritten bool
	// person is why a person must approve the plan because of its contributors; empty if it may approve itself.
	person string
}

func newTotals(key []byte) *totals {
	return &totals{digest: changes.NewDigest(), contents: &contents{key: key}, referrers: map[string]bool{},
		rolled: map[types.UID]*rolled{}, planned: map[lang.Address]int32{}}
}

// add adds one change.
func (t *totals) add(h hashedChange) {
	c := h.Change
	t.digest.Add(h.covered)
	t.contents.add(h.content)
	t.destroys = t.destroys || c.Preconditions.Destroys
	if w := c.WaitsFor; w != nil && !slices.ContainsFunc(t.waitsFor,
		func(other v1alpha1.PlanReference) bool { return other.UID == w.UID }) {
		t.waitsFor = append(t.waitsFor, *w)
	}
	if c.Read {
		t.read++
	}
	if c.AccountChanged && t.elsewhere == "" {
		t.elsewhere = c.Address
	}
	if c.State == v1alpha1.ChangeSkipped {
		t.postponed = append(t.postponed, c.Diagnostics...)
		return
	}
	t.diags = append(t.diags, c.Diagnostics...)
	if c.State == v1alpha1.ChangeFailed {
		return
	}
	t.summary.Count(&c.PlanChange)
	if c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonGone {
		t.gone++
	}
	for _, r := range c.Referrers {
		t.referrers[r.Address] = true
		if verb := map[v1alpha1.Action]string{v1alpha1.ActionDelete: "destroy",
			v1alpha1.ActionReplace: "replace"}[c.Action]; verb != "" && t.needed == "" {
			t.needed = fmt.Sprintf("%s %s, to which %s refers", verb, c.Address, r.Address)
		}
	}
	if c.FailedCreate != "" && t.again == "" {
		t.again = c.Address
	}
	if changes.Rolled(&c.PlanChange) {
		t.noteRolled(c)
	}
	if !changes.HasNoSteps(c) {
		t.noteOutput(c)
		t.steps++
		t.addContributors(c.Contributors)
		t.unwritten = t.unwritten || len(c.Contributors) == 0 && c.Action != v1alpha1.ActionRead
		if !c.Requested && c.Mode != v1alpha1.ModeData && t.unselected == "" {
			t.unselected = c.Address
		}
	}
	if c.Prevented {
		t.forbidden = append(t.forbidden, prevented(c.Address))
		t.obstacles = append(t.obstacles, changes.Obstacle{Address: c.Address, Why: c.Blocked})
	}
	if c.Blocked != "" {
		t.summary.Blocked++
	}
}

// addContributors adds the contributors of a change. Adjacent changes often have the same.
func (t *totals) addContributors(list []v1alpha1.Contributor) {
	if len(contributor.Without(list, t.contributors)) > 0 {
		t.contributors = contributor.Merge(t.contributors, list)
	}
}

// diagnostics returns all diagnostics of the plan.
func (t *totals) diagnostics() diag.Diagnostics {
	return slices.Concat(mergeConfigDiagnostics(t.diags), t.forbidden, t.postponed)
}

// summarize completes the summary after all changes were added.
func (t *totals) summarize(in workflows.Publish) {
	if t.steps == 0 {
		t.summary.RecordUpdates = 0 // an apply would not record them either
	}
	t.summary.Resources, t.summary.NotRead = int32(in.Resources), int32(max(0, in.Recorded-t.read))
	t.summary.Referrers = int32(len(t.referrers))
	t.summary.Text = summaryText(&t.summary, t.gone)
}

// noteContributors sets the contributors of a plan. If nobody wrote a change, the author of the plan's stack counts as
// its requester.
func (t *totals) noteContributors(s *v1alpha1.PlanStatus) {
	s.Contributors = t.contributors
	if t.unwritten && s.Stack != nil {
		s.Stack.AuthorApproved = false
	}
}

// writeStatus sets the status of a planned plan.
func (t *totals) writeStatus(po *v1alpha1.Plan, s *v1alpha1.PlanStatus) {
	g := po.Generation
	s.ObservedGeneration, s.Summary, s.Digest, s.PlannedAt = g, &t.summary, t.digest.String(), changes.Now()
	t.noteContributors(s)
	s.Contents, s.WaitsFor, s.Rollouts, s.Outputs = t.contents.String(), t.waitsFor, t.rollouts, t.outputs
	diags := t.diagnostics()
	if t.summary.Referrers > 0 {
		diags = append(diag.Diagnostics{leftOut(po, slices.Sorted(maps.Keys(t.referrers)))}, diags...)
	}
	for _, address := range slices.Sorted(maps.Keys(t.waiting)) {
		diags = append(diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning,
			Summary: "Instances are known after apply", Address: address,
			Detail: diag.Sentence(t.waiting[address]) +
				" This plan leaves it out. After the apply, make another plan."})
	}
	results, further := t.verdict.First(changes.MaxPolicies)
	if further > 0 {
		diags = append(diag.Diagnostics{{Severity: v1alpha1.SeverityWarning, Summary: "Further policy rules left out",
			Detail: fmt.Sprintf("%s, and status.policies leaves them out. The server evaluates all rules.",
				changes.Counted(further, "more rule holds for the plan", "more rules hold for the plan"))}}, diags...)
	}
	s.Diagnostics, s.Policies = diag.Limit(diag.ErrorsFirst(diags)), results
	manual := t.manual(po)
	if manual != "" && t.steps > 0 && s.AutomaticApproval != nil {
		s.AutomaticApproval.Granted = false
		s.AutomaticApproval.Message = changes.WaitsText(diag.Clip(manual))
	}
	condition.Set(&s.Conditions, g, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, t.summary.Text)
	end := func(reason, message string) {
		s.FinishedAt = changes.Now()
		condition.Ready(&s.Conditions, g, reason, message)
	}
	switch {
	case s.Cancel != nil:
		abandoned(s, g)
	case t.summary.Blocked > 0 && !po.Spec.Speculative:
		condition.Stalled(&s.Conditions, g, v1alpha1.ReasonBlocked,
			blockedText(po, t.digest.String(), t.obstacles, int(t.summary.Blocked), t.steps))
	case t.steps > 0 && t.verdict.Denied() != "" && !po.Spec.Speculative:
		condition.Stalled(&s.Conditions, g, v1alpha1.ReasonPolicyDenied, changes.RefusedText(t.verdict.Denied()))
	case t.steps == 0 && t.elsewhere != "":
		s.FinishedAt = changes.Now()
		condition.Stalled(&s.Conditions, g, v1alpha1.ReasonAccountChanged,
			accountChangedText(t.elsewhere)+", so nothing was recorded. See status.diagnostics.")
	case t.steps == 0 && len(t.postponed) > 0:
		end(v1alpha1.ReasonDeferred, "No change can be applied now: providers deferred the changes, or another plan is changing the resources. See status.diagnostics; make another plan later.")
	case t.steps == 0:
		end(v1alpha1.ReasonNoChanges, noChanges(po, &t.summary))
	case po.Spec.Speculative:
		end(v1alpha1.ReasonSpeculative,
			fmt.Sprintf("%s. It is speculative: its objects were never recorded, so it cannot be approved. Apply them with kubectl hykube apply -f PATH -n %s.", t.summary.Text, po.Namespace))
	case po.ApprovesItself() && manual == "":
		// Publish approves the plan next. A user must neither read it as a question, nor get an Event.
		condition.Reconciling(&s.Conditions, g, v1alpha1.ReasonPlanning, t.summary.Text+". The plan approves itself.")
	default:
		missing := t.verdict.Missing(po.Status.RequestedBy, nil)
		if strings.Contains(manual, missing) { // the message has manual
			missing = ""
		}
		condition.Waiting(&s.Conditions, g, v1alpha1.ReasonAwaitingApproval, changes.AwaitingText(po, s, missing))
	}
}

// accountChangedText says that a resource may be that of another account.
func accountChangedText(address string) string {
	return fmt.Sprintf("The provider read %s with other arguments than before, and it may be that of another account",
		address)
}

// manual returns why a plan with automatic approval waits for a user's approval. It returns "" if the plan need not
// wait, and for any other plan.
func (t *totals) manual(po *v1alpha1.Plan) string {
	if !po.ApprovesItself() {
		return ""
	}
	if po.Status.Stack != nil && t.destroys {
		return "it destroys the infrastructure of the namespace, which is being deleted"
	}
	if po.Status.Stack != nil && t.unselected != "" { // it was edited after the stack decided to make the plan
		return fmt.Sprintf("it would change %s, which the stack %s does not select", t.unselected,
			po.Status.Stack.Stack)
	}
	if po.Status.Stack != nil && t.needed != "" {
		return fmt.Sprintf("it would %s, which the stack %s does not select", t.needed, po.Status.Stack.Stack)
	}
	if t.again != "" {
		return fmt.Sprintf("it would create %s again, and an earlier create that failed may have made it: search for the resource first, as status.diagnostics says", t.again)
	}
	var reasons []string
	if t.elsewhere != "" {
		reasons = append(reasons, accountChangedText(t.elsewhere)+", and status.diagnostics says how")
	}
	for _, why := range []string{t.verdict.Manual(po.Status.RequestedBy, po.Status.AutomaticApproval.ByPolicy),
		t.person} {
		if why != "" {
			reasons = append(reasons, why)
		}
	}
	return strings.Join(reasons, "; ")
}

// contents hashes the effect of a plan's changes, independent of their order and of UIDs, generations and versions.
// Without the key, the hash reveals nothing about the values.
type contents struct {
	key  []byte
	sums [][]byte
}

// add adds the hash of a change; nil for none.
func (s *contents) add(sum []byte) {
	if sum != nil {
		s.sums = append(s.sums, sum)
	}
}

// hash returns the hash of a change, or nil for a change that is not part of the contents.
func (s *contents) hash(c *ledger.Change) []byte {
	if changes.HasNoSteps(c) && c.State != v1alpha1.ChangeSkipped && c.State != v1alpha1.ChangeFailed {
		return nil
	}
	h := hmac.New(sha256.New, s.key)
	// Encoding plain strings, numbers and bytes into a hash cannot fail.
	_ = json.NewEncoder(h).Encode(struct {
		Address, From, Deposed, Provider, Config string
		Mode                                     v1alpha1.Mode
		Action                                   v1alpha1.Action
		State                                    v1alpha1.ChangeState
		Prior                                    string
		Planned, PlannedSensitive                []byte
		Before, After, AfterUnknown, Paths       *runtime.RawExtension
		First, Forget, Checks                    bool
		Import                                   *v1alpha1.PlanImport
	}{
		c.Address, c.PreviousAddress, c.Deposed, c.Provider, c.ProviderConfig, c.Mode, c.Action, c.State,
		c.Preconditions.State,
		c.Planned, c.PlannedSensitive, c.Before, c.After, c.AfterUnknown, c.ReplacePaths, c.CreateBeforeDestroy,
		c.Forget, c.Checks, c.Importing,
	})
	return h.Sum(nil)
}

func (s *contents) String() string {
	slices.SortFunc(s.sums, slices.Compare)
	h := hmac.New(sha256.New, s.key)
	for _, sum := range s.sums {
		h.Write(sum)
	}
	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}
