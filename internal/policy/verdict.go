package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Verdict holds the rules that hold for a plan.
type Verdict struct {
	// Results are the rules that hold, and those that cannot be evaluated.
	Results []v1alpha1.PlanPolicyResult
	// restricted is true if a plan needs a rule with the effect AllowAutomatic to be applied automatically.
	restricted bool
	// lapsed says which rules AllowAutomatic allow nothing, and why.
	lapsed []string
	// users are the users of the approvals as they are now, by their texts; nil takes the users as the approvals name
	// them.
	users map[string]*v1alpha1.Identity
	// contributors are the names of the users who wrote what the changes follow from, and of those through whose
	// workers they did. As the requester, they do not count where a rule excludes the requester.
	contributors map[string]bool
	// unnamed is true if other users wrote a part of the changes, too, whom the plan does not name. Any approver may be
	// one.
	unnamed bool
	// othersWrote is true if the requester is the author of a stack that another user approved as the author wrote it,
	// and other users wrote the changes. The requester then counts as the others do: by what the user wrote.
	othersWrote bool
	// changes is the number of changes of the plan.
	changes int32
	// wayOn says how those who wrote arguments of a provider stop counting; "" if nobody wrote any.
	wayOn string
	// undecided has the indexes of the changes whose unknown values an undecided rule depends on.
	undecided map[int32]bool
}

// Undecided reports whether an undecided rule depends on the unknown values of a change.
func (v *Verdict) Undecided(change int32) bool { return v.undecided[change] }

// Warnings returns the rules that warn, with their messages.
func (v *Verdict) Warnings() []v1alpha1.PlanPolicyResult { return v.withEffect(v1alpha1.PolicyWarn) }

// VerdictOf returns the verdict in the status of a plan, for a client.
func VerdictOf(p *v1alpha1.Plan) *Verdict {
	return &Verdict{Results: p.Status.Policies, contributors: names(p.Status.Contributors),
		unnamed: haveUnnamed(p.Status.Contributors), othersWrote: othersWrote(p), changes: p.Status.Summary.Changes(),
		wayOn: AfterArguments(p.Status.Contributors)}
}

// othersWrote reports whether the requester of a plan did nothing but write its stack, which another user has approved,
// and others wrote the changes. A user who requested a drift check may have caused what the plan shows.
func othersWrote(p *v1alpha1.Plan) bool {
	of, requester := p.Status.Stack, p.Status.RequestedBy
	if of == nil || !of.AuthorApproved || of.CheckRequestedBy != nil || requester == nil ||
		haveUnnamed(p.Status.Contributors) {
		return false
	}
	return len(p.Status.Contributors) > 0 && !slices.ContainsFunc(p.Status.Contributors,
		func(c v1alpha1.Contributor) bool { return c.Shares(requester) })
}

// haveUnnamed reports whether a list stands for users whom it does not name.
func haveUnnamed(list []v1alpha1.Contributor) bool {
	return slices.ContainsFunc(list, func(c v1alpha1.Contributor) bool { return c.More })
}

func names(list []v1alpha1.Contributor) map[string]bool {
	out := map[string]bool{}
	for _, c := range list {
		if c.More {
			continue
		}
		for _, name := range c.Usernames() {
			out[name] = true
		}
	}
	return out
}

// First returns at most limit results, and the number of further ones. If it leaves some out, denials come first, then
// required approvals.
func (v *Verdict) First(limit int) (results []v1alpha1.PlanPolicyResult, further int) {
	if len(v.Results) <= limit {
		return v.Results, 0
	}
	effects := []v1alpha1.PlanPolicyEffect{v1alpha1.PolicyDeny, v1alpha1.PolicyRequireApprovals,
		v1alpha1.PolicyAllowAutomatic, v1alpha1.PolicyWarn}
	for _, effect := range effects {
		results = append(results, v.withEffect(effect)...)
	}
	for _, effect := range effects {
		results = append(results, v.undecidedWith(effect)...)
	}
	return results[:limit], len(results) - limit
}

// withEffect returns the rules with the effect that hold. It omits undecided ones.
func (v *Verdict) withEffect(effect v1alpha1.PlanPolicyEffect) []v1alpha1.PlanPolicyResult {
	return v.filter(func(r v1alpha1.PlanPolicyResult) bool { return r.Effect == effect && r.Undecided == nil })
}

// undecidedWith returns the undecided rules with the effect.
func (v *Verdict) undecidedWith(effect v1alpha1.PlanPolicyEffect) []v1alpha1.PlanPolicyResult {
	return v.filter(func(r v1alpha1.PlanPolicyResult) bool { return r.Effect == effect && r.Undecided != nil })
}

func (v *Verdict) filter(keep func(v1alpha1.PlanPolicyResult) bool) []v1alpha1.PlanPolicyResult {
	var out []v1alpha1.PlanPolicyResult
	for _, r := range v.Results {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// Denied returns the rules that deny the plan, with their messages; "" if there are none.
func (v *Verdict) Denied() string { return sentences(v.withEffect(v1alpha1.PolicyDeny)) }

func sentences(results []v1alpha1.PlanPolicyResult) string {
	var out []string
	for _, r := range results {
		out = append(out, r.Rule+": "+r.Message)
	}
	return strings.Join(out, "; ")
}

// Missing returns the approvals that the plan still needs; "" if it needs none.
func (v *Verdict) Missing(requester *v1alpha1.Identity, approvals []v1alpha1.PlanApproval) string {
	var out []string
	advice := ""
	for _, r := range v.withEffect(v1alpha1.PolicyRequireApprovals) {
		if n := v.count(r.Approvals) - v.approvers(r.Approvals, requester, approvals); n > 0 {
			out = append(out, fmt.Sprintf("%s requires %s: %s", r.Rule,
				v.missingText(r.Approvals, n)+v.excluded(r.Approvals, requester)+v.further(r.Approvals)+
					v.discounted(r.Approvals, requester, approvals), r.Message))
			if v.excluded(r.Approvals, requester) != "" {
				advice = v.wayOut(r.Approvals, requester)
			}
		}
	}
	if advice != "" {
		out = append(out, advice)
	}
	return strings.Join(out, "; ")
}

// wayOut says who may approve if those who wrote the changes may not. A requester who wrote none of them may approve a
// plan that one of the writers makes. In a team in which everybody wrote some, a plan of a part has other approvers.
func (v *Verdict) wayOut(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity) string {
	text := `ask another user with the verb "approve" on plans`
	switch {
	case requester != nil && !v.othersWrote && !v.contributed(requester) && isMember(requester, a.Groups):
		text += fmt.Sprintf(", or let %s make the plan (kubectl hykube plan), which %s may then approve",
			strings.Join(slices.Sorted(maps.Keys(v.contributors)), " or "), requester)
	case v.changes > 1:
		text += ", or make a plan with --target for the changes that one user wrote, which the others may approve (it leaves out dependents, without which its apply may fail)"
	}
	if v.wayOn != "" {
		text += "; " + v.wayOn
	}
	return text
}

// AfterArguments says how users stop counting who wrote the arguments of a provider, or a Secret that may be one; "" if
// none of a list did. They count for each resource that was applied with other arguments. Only a value from a Secret
// can rotate.
func AfterArguments(list []v1alpha1.Contributor) string {
	wrote := func(object string) bool {
		of := func(part string) bool { return strings.HasPrefix(part, object+" ") }
		return slices.ContainsFunc(list, func(c v1alpha1.Contributor) bool { return slices.ContainsFunc(c.Wrote, of) })
	}
	secret := wrote("Secret")
	if !secret && !wrote("ProviderConfig") {
		return ""
	}
	text := "who wrote a new argument of a provider counts once for each resource that was applied with the former one, or until a user who may approve, " +
		"and wrote none, makes a plan that leaves the resource unchanged (kubectl hykube plan --refresh=All)"
	if secret {
		text += "; for a credential, which neither is an address nor chooses an account, set rotates: true in secretRefs of the ProviderConfig"
	}
	return text
}

// Excludes returns the names of the users whose approvals a rule does not count because they requested the plan or
// wrote a part of its changes, sorted; nil if no rule excludes the requester.
func (v *Verdict) Excludes(requester *v1alpha1.Identity) []string {
	if !slices.ContainsFunc(v.withEffect(v1alpha1.PolicyRequireApprovals),
		func(r v1alpha1.PlanPolicyResult) bool { return r.Approvals.ExcludeRequester }) {
		return nil
	}
	out := maps.Clone(v.contributors)
	if requester != nil && !v.othersWrote {
		for _, name := range requester.Usernames() {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// Counts evaluates an approval in addition to others. counts is true if a rule that the others do not satisfy counts
// it. required is true if any rule requires approvals.
func (v *Verdict) Counts(requester *v1alpha1.Identity, approvals []v1alpha1.PlanApproval,
	next v1alpha1.PlanApproval) (counts, required bool) {
	for _, r := range v.withEffect(v1alpha1.PolicyRequireApprovals) {
		required = true
		before := v.approvers(r.Approvals, requester, approvals)
		if before < v.count(r.Approvals) && v.approvers(r.Approvals, requester,
			append(slices.Clone(approvals), next)) > before {
			counts = true
		}
	}
	return counts, required
}

// Manual returns the reason why a plan with spec.approval Automatic waits for an approval; "" if the server may apply
// it. byPolicy is true for a plan whose creator may not approve it.
func (v *Verdict) Manual(requester *v1alpha1.Identity, byPolicy bool) string {
	if text := v.Denied(); text != "" {
		return text
	}
	if text := v.Missing(requester, nil); text != "" {
		return text
	}
	switch {
	case len(v.withEffect(v1alpha1.PolicyAllowAutomatic)) > 0, !v.restricted && !byPolicy:
		return ""
	case byPolicy && requester != nil:
		return fmt.Sprintf("the user %q may not approve plans, and no rule of a policy allows this plan to be applied automatically", requester.Username) + v.whyNot()
	}
	return "no rule of a policy allows this plan to be applied automatically" + v.whyNot()
}

// Allowed returns the rule AllowAutomatic that allows the plan to be applied automatically; nil if none holds.
func (v *Verdict) Allowed() *v1alpha1.PlanPolicyResult {
	if rules := v.withEffect(v1alpha1.PolicyAllowAutomatic); len(rules) > 0 {
		return &rules[0]
	}
	return nil
}

// whyNot completes the message that no rule AllowAutomatic holds.
func (v *Verdict) whyNot() string {
	text := ""
	for _, why := range v.lapsed {
		text += "; " + why
	}
	for _, r := range v.undecidedWith(v1alpha1.PolicyAllowAutomatic) {
		text += fmt.Sprintf("; %s is undecided, because it depends on values that are not known before the apply: those of %s", r.Rule, r.Undecided.List())
	}
	return text
}

// approvers returns the number of approvals that count for a rule. Of approvals with a user in common, one counts:
// through a workflow, a user can approve again in the name of its starter.
func (v *Verdict) approvers(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity,
	approvals []v1alpha1.PlanApproval) int {
	var eligible, counted []*v1alpha1.Identity
	for _, approval := range approvals {
		if by, why := v.approver(a, requester, approval); why == "" {
			eligible = append(eligible, by)
		}
	}
	// The approvals without a workflow come first, so that one of a workflow does not replace two of them.
	slices.SortStableFunc(eligible,
		func(a, b *v1alpha1.Identity) int { return cmp.Compare(len(a.Through), len(b.Through)) })
	for _, by := range eligible {
		if !slices.ContainsFunc(counted, by.Shares) {
			counted = append(counted, by)
		}
	}
	return len(counted)
}

// approver returns the user of an approval as the user is now, and why the approval does not count for a rule; "" if it
// does.
func (v *Verdict) approver(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity,
	approval v1alpha1.PlanApproval) (by *v1alpha1.Identity, why string) {
	by = approval.By
	if by != nil && v.users != nil {
		by = v.users[by.String()]
	}
	switch {
	case by == nil || by.Username == "":
		return nil, "the server does not know the user any more"
	case a.ExcludeRequester && !v.othersWrote && (requester == nil || by.Shares(requester)):
		return by, "the user requested the plan"
	case a.ExcludeRequester && v.contributed(by):
		return by, "the user wrote a part of the changes"
	case !isMember(by, a.Groups):
		return by, "the user is not a member of " + strings.Join(a.Groups, " or ")
	}
	return by, ""
}

// discounted names the approvals that do not count for a rule, with the reasons; "" if there are none.
func (v *Verdict) discounted(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity,
	approvals []v1alpha1.PlanApproval) string {
	text := ""
	for _, approval := range approvals {
		if _, why := v.approver(a, requester, approval); why != "" && approval.By != nil {
			text += fmt.Sprintf(" (the approval by %s does not count: %s)", approval.By, why)
		}
	}
	return text
}

// contributed reports whether a user behind an identity wrote what the changes follow from.
func (v *Verdict) contributed(by *v1alpha1.Identity) bool {
	return slices.ContainsFunc(by.Usernames(), func(name string) bool { return v.contributors[name] })
}

// isMember reports whether each user behind an identity is in one of the groups. No groups mean all users.
func isMember(by *v1alpha1.Identity, groups []string) bool {
	if len(groups) == 0 {
		return true
	}
	in := func(g string) bool { return slices.Contains(groups, g) }
	return slices.ContainsFunc(by.Groups, in) &&
		!slices.ContainsFunc(by.Through,
			func(u v1alpha1.WorkflowUser) bool { return !slices.ContainsFunc(u.Groups, in) })
}

// excluded names the contributors whose approvals do not count for a rule, besides the requester; "" if there are none.
func (v *Verdict) excluded(a *v1alpha1.RequiredApprovals, requester *v1alpha1.Identity) string {
	if !a.ExcludeRequester {
		return ""
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(v.contributors)) {
		if requester == nil || name != requester.Username {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return ""
	}
	or := " or"
	if v.othersWrote {
		or = ", not by"
	}
	return or + " those who wrote the changes (" + strings.Join(others, ", ") + ")"
}

// count returns the number of approvals that a rule requires of a plan. Any approver may be one of the users whom the
// plan does not name, so no approver counts alone.
func (v *Verdict) count(a *v1alpha1.RequiredApprovals) int {
	if a.ExcludeRequester && v.unnamed {
		return count(a) + 1
	}
	return count(a)
}

// further says why a rule requires one more approval than it names; "" if it does not.
func (v *Verdict) further(a *v1alpha1.RequiredApprovals) string {
	if v.count(a) == count(a) {
		return ""
	}
	return fmt.Sprintf(" (%d in all instead of %d: the plan does not name all users who wrote the changes, and an approver may be one of them)", v.count(a), count(a))
}

// missingText describes the missing approvals of a rule. more is their number.
func (v *Verdict) missingText(a *v1alpha1.RequiredApprovals, more int) string {
	text := "1 more approval"
	if more > 1 {
		text = fmt.Sprintf("%d more approvals", more)
	}
	if len(a.Groups) > 0 {
		text += " by members of " + strings.Join(a.Groups, " or ")
	}
	if a.ExcludeRequester && !v.othersWrote {
		text += ", not by the requester"
	}
	return text
}
