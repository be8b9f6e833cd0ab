package notification

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
)

// Message is the content of a message. It contains no secrets, because its text comes from conditions, which mask them.
// Users control parts of the texts, so each format escapes them.
type Message struct {
	ID        string                      `json:"-"`
	At        time.Time                   `json:"-"`
	Namespace string                      `json:"namespace"`
	Reason    v1alpha1.NotificationReason `json:"reason,omitempty"`
	Kind      string                      `json:"kind,omitempty"`
	Name      string                      `json:"name,omitempty"`
	// Stack is the stack of a plan; empty for others.
	Stack string `json:"stack,omitempty"`
	// Title is one line, and Detail the message of the object's condition.
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
	// RequestedBy is the user who made the plan.
	RequestedBy string `json:"requestedBy,omitempty"`
	// WrittenBy are the users who wrote what the changes follow from.
	WrittenBy []string `json:"writtenBy,omitempty"`
	// Command is the command that shows more.
	Command string `json:"command,omitempty"`
	// Summary counts the changes of a plan.
	Summary *v1alpha1.PlanSummary `json:"summary,omitempty"`
	// LeftOut counts the omitted transitions by reason.
	LeftOut map[v1alpha1.NotificationReason]int `json:"leftOut,omitempty"`
	// Text is the text of the Notification.
	Text string `json:"text,omitempty"`
}

// maxDetail is the maximum length of a detail in bytes. Slack accepts 3000 characters in a block.
const maxDetail = 2000

// AboutPlan returns the message about a transition of a plan.
func AboutPlan(t Transition, p *v1alpha1.Plan) Message {
	m := about(t, p.Namespace, p.Status.Conditions)
	m.Summary = p.Status.Summary
	m.Stack = p.StackName()
	if by := p.Status.RequestedBy; by != nil {
		m.RequestedBy = by.Username
	}
	m.WrittenBy = contributor.Names(p.Status.Contributors)
	verb := map[v1alpha1.NotificationReason]string{v1alpha1.NotifyAwaitingApproval: "waits for a decision",
		v1alpha1.NotifyFailed: "failed", v1alpha1.NotifyStale: "is stale"}[t.Reason]
	m.Title = fmt.Sprintf("Plan %s in the namespace %s %s", p.Name, p.Namespace, verb)
	m.Command = fmt.Sprintf("kubectl hykube show %s -n %s", p.Name, p.Namespace)
	if t.Reason == v1alpha1.NotifyFailed {
		m.Command = fmt.Sprintf("kubectl hykube status %s -n %s", p.Name, p.Namespace)
		m.Detail = shorten(m.Detail + problem(p))
	}
	return m
}

// problem returns the summary of the first error about an object. The condition of the plan has only the address of the
// object. A summary has no values of the object.
func problem(p *v1alpha1.Plan) string {
	for _, d := range p.Status.Diagnostics {
		if d.Severity == v1alpha1.SeverityError && d.Address != "" {
			return fmt.Sprintf(" %s: %s.", d.Address, strings.TrimSuffix(d.Summary, "."))
		}
	}
	return ""
}

// AboutStack returns the message about a transition of a stack.
func AboutStack(t Transition, s *v1alpha1.Stack) Message {
	m := about(t, s.Namespace, s.Status.Conditions)
	m.Title = fmt.Sprintf("Stack %s in the namespace %s cannot continue", s.Name, s.Namespace)
	m.Command = fmt.Sprintf("kubectl hykube stack status %s -n %s", s.Name, s.Namespace)
	if t.Reason == v1alpha1.NotifyDrifted {
		m.Title = fmt.Sprintf("Stack %s in the namespace %s was changed outside of Hykube", s.Name, s.Namespace)
		m.Command = fmt.Sprintf("kubectl hykube drift %s -n %s", s.Name, s.Namespace)
	}
	return m
}

// AboutLeftOut returns a message that counts the omitted transitions.
func AboutLeftOut(id, namespace string, at time.Time, leftOut map[v1alpha1.NotificationReason]int) Message {
	var counts []string
	total := 0
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		counts = append(counts, fmt.Sprintf("%d %s", leftOut[reason], reason))
		total += leftOut[reason]
	}
	return Message{ID: id, At: at, Namespace: namespace, LeftOut: leftOut,
		Title:   fmt.Sprintf("%d further messages of the namespace %s were left out", total, namespace),
		Detail:  "Too many at once: " + strings.Join(counts, ", ") + ".",
		Command: "kubectl get plans,stacks -n " + namespace}
}

func about(t Transition, namespace string, conditions []metav1.Condition) Message {
	m := Message{ID: t.ID, At: t.At, Namespace: namespace, Reason: t.Reason, Kind: t.Kind, Name: t.Name}
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		m.Detail = shorten(ready.Message)
	}
	return m
}

func shorten(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "..."
}

// Encode returns the body and the content type of a message.
func (m Message) Encode(format v1alpha1.NotificationFormat) (body []byte, contentType string, err error) {
	switch format {
	case v1alpha1.FormatSlack:
		body, err = json.Marshal(m.slack())
		return body, "application/json", err
	case v1alpha1.FormatTeams:
		body, err = json.Marshal(m.teams())
		return body, "application/json", err
	default:
		body, err = json.Marshal(m.cloudEvent())
		return body, "application/cloudevents+json; charset=utf-8", err
	}
}

// cloudEvent is a CloudEvent in the JSON format:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
type cloudEvent struct {
	SpecVersion     string  `json:"specversion"`
	ID              string  `json:"id"`
	Source          string  `json:"source"`
	Type            string  `json:"type"`
	Subject         string  `json:"subject,omitempty"`
	Time            string  `json:"time"`
	DataContentType string  `json:"datacontenttype"`
	Data            Message `json:"data"`
}

// typePrefix begins the types of CloudEvents.
const typePrefix = "io.hykube."

func (m Message) cloudEvent() cloudEvent {
	e := cloudEvent{SpecVersion: "1.0", ID: m.ID, Source: "/apis/hykube.io/v1alpha1/namespaces/" + m.Namespace,
		Type: typePrefix + "notification.leftout",
		Time: m.At.UTC().Format(time.RFC3339), DataContentType: "application/json", Data: m}
	if m.Kind != "" {
		e.Type = typePrefix + strings.ToLower(m.Kind) + "." + strings.ToLower(string(m.Reason))
		e.Subject = strings.ToLower(m.Kind) + "s/" + m.Name
	}
	return e
}

// lines returns the lines of a message for chats, without the title.
func (m Message) lines() (out []string) {
	for _, text := range []string{m.Text, m.Detail, prefixed("Stack: ", m.Stack),
		prefixed("Requested by: ", m.RequestedBy), prefixed("Written by: ", strings.Join(m.WrittenBy, ", ")),
		m.Command} {
		if text = plain(text); text != "" {
			out = append(out, text)
		}
	}
	return out
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// plain removes characters that may reorder or hide text: control characters other than line feeds, and characters that
// set the direction of text.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, text)
}

// slackText escapes a text for the field text of Slack, in which < begins a link or a mention such as <!channel>:
// https://docs.slack.dev/messaging/formatting-message-text
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// maxSlackTitle is the maximum length of a header block of Slack, in characters.
const maxSlackTitle = 150

// slack returns a message for Slack. Its blocks are plain text, in which Slack finds neither links nor mentions.
// Clients show the field text only in their own notifications.
func (m Message) slack() map[string]any {
	type block map[string]any
	text := func(s string) block { return block{"type": "plain_text", "text": s, "emoji": false} }
	title := []rune(plain(m.Title))
	blocks := []block{{"type": "header", "text": text(string(title[:min(len(title), maxSlackTitle)]))}}
	for _, line := range m.lines() {
		blocks = append(blocks, block{"type": "section", "text": text(line)})
	}
	return map[string]any{"text": slackText.Replace(plain(m.Title)), "blocks": blocks, "unfurl_links": false,
		"unfurl_media": false}
}

// teams returns a message with an Adaptive Card. Its texts are TextRuns, in which Teams finds no Markdown:
// https://learn.microsoft.com/en-us/adaptive-cards/authoring-cards/text-features
func (m Message) teams() map[string]any {
	type element map[string]any
	run := func(text string, more element) element {
		out := element{"type": "TextRun", "text": text}
		maps.Copy(out, more)
		return element{"type": "RichTextBlock", "inlines": []element{out}}
	}
	body := []element{run(cmp.Or(plain(m.Title), "Hykube"), element{"weight": "Bolder", "size": "Medium"})}
	for _, line := range m.lines() {
		body = append(body, run(line, nil))
	}
	card := element{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard",
		"version": "1.4", "body": body}
	return map[string]any{"type": "message",
		"attachments": []element{{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil,
			"content": card}}}
}
