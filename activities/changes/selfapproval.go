package changes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// This file decides whether a plan may approve itself: the plan of a Stack with automatic approval, one with
// spec.approval Automatic, one that a policy allows, and a drift check. SelfApproval collects the facts that speak
// against it, and WhyPerson makes the reasons of them.

// PersonFor is a kind of fact because of which a person must approve a plan.
type PersonFor string

const (
	// ForApproval: a contributor may not approve the plan, and no policy would allow it to be applied automatically if
	// the contributor had made it.
	ForApproval PersonFor = "Approval"
	// ForRights: a contributor lacks rights that the change needs.
	ForRights PersonFor = "Rights"
	// ForCheckRights: the user who requested the drift check lacks rights that the change needs.
	ForCheckRights PersonFor = "CheckRights"
	// ForUnknown: the change has contributors whom the server did not record.
	ForUnknown PersonFor = "Unknown"
	// ForOtherOwner: another object may manage the same infrastructure.
	ForOtherOwner PersonFor = "OtherOwner"
	// ForSecrets: the change gives a provider secrets of other objects that the requester or a contributor may not
	// read.
	ForSecrets PersonFor = "Secrets"
	// ForForget: the change forgets infrastructure, and no contributor deleted the object.
	ForForget PersonFor = "Forget"
)

// PersonFact is a fact because of which a person must approve a plan.
type PersonFact struct {
	For PersonFor
	// Address is that of the first change with the fact, and More is the number of further ones. Who is the contributor
	// of ForApproval, ForRights and ForSecrets, with what the user wrote, and the user of ForCheckRights. Missing are
	// the rights that the user lacks. From are the objects of ForSecrets.
	Address string
	More    int
	Who     v1alpha1.Contributor
	Missing []store.Right
	From    []string
}

// maxPersonFacts is the maximum number of facts in a reason.
const maxPersonFacts = 3

// WhyPerson returns why a person must approve a plan, as a part of a sentence; "" without facts.
func WhyPerson(facts []PersonFact) string {
	var texts []string
	var who []v1alpha1.Contributor
	for _, f := range facts {
		who = append(who, f.Who)
	}
	for _, f := range facts {
		if len(texts) == maxPersonFacts {
			texts = append(texts, fmt.Sprintf("and %d more", len(facts)-maxPersonFacts))
			break
		}
		texts = append(texts, f.text())
	}
	if hint := policy.AfterArguments(who); hint != "" {
		texts = append(texts, hint)
	}
	return strings.Join(texts, "; ")
}

func (f PersonFact) text() string {
	address := f.Address
	if f.More > 0 {
		address += " and of " + Counted(f.More, "other resource", "other resources")
	}
	switch f.For {
	case ForApproval:
		return fmt.Sprintf("the user %q, who wrote %s of %s, may not approve plans", f.Who.String(),
			contributor.JoinParts(f.Who.Wrote), address)
	case ForRights:
		return fmt.Sprintf("the user %q, who wrote %s of %s, has no right to %s", f.Who.String(),
			contributor.JoinParts(f.Who.Wrote), address, store.ListRights(f.Missing))
	case ForCheckRights:
		return fmt.Sprintf("the user %q, who requested the drift check, has no right to %s, which the change of %s needs", f.Who.String(), store.ListRights(f.Missing), address)
	case ForUnknown:
		return fmt.Sprintf("the server does not know all users who wrote what the change of %s follows from", address)
	case ForOtherOwner:
		return fmt.Sprintf("another object may manage the infrastructure of %s", address)
	case ForSecrets:
		wrote := "requested the plan"
		if len(f.Who.Wrote) > 0 {
			wrote = "wrote " + contributor.JoinParts(f.Who.Wrote)
		}
		return fmt.Sprintf("the change of %s would give the provider secrets of %s, and the user %q, who %s, has no right to %s",
			address, strings.Join(f.From, ", "), f.Who.String(), wrote, store.ListRights(f.Missing))
	case ForForget:
		return fmt.Sprintf("it would forget the infrastructure of %s, and nobody deleted the object", address)
	}
	return string(f.For)
}

// SelfApproval collects the facts because of which a person must approve a plan. Its askers cache the answers of the
// authorizer, so use it only for a short time.
type SelfApproval struct {
	src    *scope.Sources
	plan   *v1alpha1.Plan
	askers map[string]*store.Asker
	// lacking holds the contributors who may not approve the plan, in a fact each.
	lacking map[string]*PersonFact
	facts   []PersonFact
	// added is the number of changes, and causes holds the contributors of a change and of those that it depends on, by
	// its index. It omits changes without any.
	added  int32
	causes map[int32][]v1alpha1.Contributor
}

// NewSelfApproval returns a SelfApproval without facts. The plan must be one that approves itself.
func NewSelfApproval(src *scope.Sources, po *v1alpha1.Plan) *SelfApproval {
	return &SelfApproval{src: src, plan: po, askers: map[string]*store.Asker{}, lacking: map[string]*PersonFact{},
		causes: map[int32][]v1alpha1.Contributor{}}
}

// SelfApprovalOf returns why a person must approve a plan with stored changes; "" if it may approve itself.
func (w *Stored) SelfApprovalOf(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan) (string, error) {
	s := NewSelfApproval(src, po)
	for i := range w.Changes {
		if err := s.Add(ctx, &w.Changes[i].Brief); err != nil {
			return "", err
		}
	}
	return s.Why(ctx)
}

// Why returns why a person must approve the plan; "" if it may approve itself. The status of the plan must have all
// contributors, because policies read them.
func (s *SelfApproval) Why(ctx context.Context) (string, error) {
	var facts []PersonFact
	for _, key := range slices.Sorted(maps.Keys(s.lacking)) {
		allowed, err := s.allowedByPolicy(ctx, s.lacking[key].Who.Identity)
		if err != nil {
			return "", err
		}
		if !allowed {
			facts = append(facts, *s.lacking[key])
		}
	}
	return WhyPerson(append(facts, s.facts...)), nil
}

// Add adds the facts about the next change. The changes that it depends on come first.
func (s *SelfApproval) Add(ctx context.Context, b *Brief) error {
	inherited := s.inherit(b)
	if b.NoSteps || b.State == v1alpha1.ChangeSkipped || b.State == v1alpha1.ChangeFailed ||
		b.State == v1alpha1.ChangeDone {
		return nil
	}
	if b.OtherOwner {
		s.note(PersonFact{For: ForOtherOwner, Address: b.Address})
	}
	if b.Action == v1alpha1.ActionForget && !b.Deleting && !s.plan.Spec.Destroy {
		s.note(PersonFact{For: ForForget, Address: b.Address})
	}
	rights, err := b.Rights(s.src)
	if err != nil {
		return err
	}
	if err := s.addChecker(ctx, b, rights); err != nil {
		return err
	}
	for _, c := range b.Contributors {
		if err := s.addContributor(ctx, b, c, rights); err != nil {
			return err
		}
	}
	for _, c := range inherited {
		if err := s.addInherited(ctx, b, c, rights); err != nil {
			return err
		}
	}
	return s.addSecrets(ctx, b)
}

// inherit returns the contributors of the changes on which a change depends, with the addresses before what they wrote.
// A change without steps passes on what it inherits.
func (s *SelfApproval) inherit(b *Brief) (inherited []v1alpha1.Contributor) {
	for _, i := range b.DependsOn {
		inherited = contributor.Merge(inherited, s.causes[i])
	}
	own := inherited
	if !b.NoSteps && len(b.Contributors) > 0 {
		own = contributor.Merge(inherited,
			contributor.Named(contributor.Remove(b.Contributors, v1alpha1.WroteLabels), b.Address))
	}
	if len(own) > 0 {
		s.causes[s.added] = own
	}
	s.added++
	return inherited
}

// addInherited adds the fact that a contributor of another change lacks the rights of the change that follows from it.
func (s *SelfApproval) addInherited(ctx context.Context, b *Brief, c v1alpha1.Contributor, rights []store.Right) error {
	if by := s.plan.Status.RequestedBy; c.More || by != nil && contributor.SameUser(*by, c.Identity) {
		return nil // the other change has the fact that the contributor is unknown
	}
	missing, err := s.asker(c.Identity).Missing(ctx, rights)
	if len(missing) > 0 {
		s.note(PersonFact{For: ForRights, Address: b.Address, Who: c, Missing: missing})
	}
	return err
}

// addChecker adds the fact that the user who requested the drift check lacks rights. To forget what is gone takes the
// right to delete.
func (s *SelfApproval) addChecker(ctx context.Context, b *Brief, rights []store.Right) error {
	of := s.plan.Status.Stack
	if of == nil || of.CheckRequestedBy == nil {
		return nil
	}
	if b.Gone {
		forget, err := RightTo(s.src.Objects, b.Object)
		if err != nil {
			return err
		}
		forget.Verb = store.VerbDelete
		rights = append(rights, forget)
	}
	by := v1alpha1.Contributor{Identity: *of.CheckRequestedBy}
	missing, err := s.asker(by.Identity).Missing(ctx, rights)
	if len(missing) > 0 {
		s.note(PersonFact{For: ForCheckRights, Address: b.Address, Who: by, Missing: missing})
	}
	return err
}

// addSecrets adds the facts about the users who may not read the secrets that a change gives to a provider.
func (s *SelfApproval) addSecrets(ctx context.Context, b *Brief) error {
	rights, err := SecretRights(s.src, b.Discloses)
	if err != nil || len(rights) == 0 {
		return err
	}
	for _, c := range causes(s.plan, b.Contributors) {
		missing, err := s.asker(c.Identity).Missing(ctx, rights)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			f := PersonFact{For: ForSecrets, Address: b.Address, Who: c, Missing: missing}
			for _, o := range b.Discloses {
				f.From = append(f.From, lang.Origin{Address: lang.Address(o)}.Text(b.Object.Namespace))
			}
			f.From = f.From[:min(len(f.From), maxPersonFacts)]
			s.note(f)
		}
	}
	return nil
}

// addContributor adds the facts about a contributor of a change. The plan's requester needs the rights anyway.
func (s *SelfApproval) addContributor(ctx context.Context, b *Brief, c v1alpha1.Contributor,
	rights []store.Right) error {
	if c.More {
		s.note(PersonFact{For: ForUnknown, Address: b.Address})
		return nil
	}
	if by := s.plan.Status.RequestedBy; by != nil && contributor.SameUser(*by, c.Identity) {
		return nil
	}
	asker := s.asker(c.Identity)
	missing, err := asker.Missing(ctx, rights)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		s.note(PersonFact{For: ForRights, Address: b.Address, Who: c, Missing: missing})
	}
	may, err := asker.May(ctx, approvalOf(s.plan))
	if err != nil || may {
		return err
	}
	if f := s.lacking[userKey(c.Identity)]; f != nil {
		f.More++
	} else {
		s.lacking[userKey(c.Identity)] = &PersonFact{For: ForApproval, Address: b.Address, Who: c}
	}
	return nil
}

// note adds a fact. Of each kind, it keeps the first one for each user.
func (s *SelfApproval) note(f PersonFact) {
	for i := range s.facts {
		if k := &s.facts[i]; k.For == f.For && contributor.SameUser(k.Who.Identity, f.Who.Identity) {
			k.More++
			return
		}
	}
	s.facts = append(s.facts, f)
}

func (s *SelfApproval) asker(who v1alpha1.Identity) *store.Asker {
	key := userKey(who)
	if s.askers[key] == nil {
		s.askers[key] = &store.Asker{Access: s.src.Access, Who: who}
	}
	return s.askers[key]
}

// userKey identifies a user with the groups of one moment, and with those through whose workers the user acted.
func userKey(who v1alpha1.Identity) string {
	return fmt.Sprintf("%t %q %q %v", who.TokenFile, who.Username, who.Groups, who.Through)
}

// approvalOf returns the right to approve a plan.
func approvalOf(po *v1alpha1.Plan) store.Right {
	return store.Right{Verb: store.VerbApprove, Namespace: po.Namespace, Group: v1alpha1.GroupName, Resource: "plans",
		Name: po.Name}
}

// allowedByPolicy reports whether a policy would allow the plan to be applied automatically if a user had made it.
func (s *SelfApproval) allowedByPolicy(ctx context.Context, who v1alpha1.Identity) (bool, error) {
	if automatic, err := AutomaticByPolicy(ctx, s.src, s.plan.Namespace); err != nil || !automatic {
		return false, err
	}
	made := s.plan.DeepCopy()
	made.Status.RequestedBy = &who
	verdict, err := Judge(ctx, s.src, made, Judged{})
	return err == nil && verdict.Manual(&who, true) == "", err
}
