package e2e

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness"
)

// received is a message that a receiver got.
type received struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

// text returns a field of a CloudEvent.
func (r received) text(field string) string {
	var event map[string]any
	_ = json.Unmarshal([]byte(r.body), &event)
	text, _ := event[field].(string)
	return text
}

// receiver is an HTTPS server that receives messages.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	messages []received
	// answer returns the status for a message; nil accepts all.
	answer func(path string, attempt int) int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.messages = append(r.messages, received{req.URL.Path, req.Header, string(body), time.Now()})
		attempt := len(r.of(req.URL.Path))
		if r.answer != nil {
			w.WriteHeader(r.answer(req.URL.Path, attempt))
		}
		fmt.Fprint(w, "the-secret-answer")
	}))
	t.Cleanup(r.Close)
	return r
}

// of returns the messages for a path. It requires r.mu.
func (r *receiver) of(path string) []received {
	return slices.DeleteFunc(slices.Clone(r.messages), func(m received) bool { return m.path != path })
}

// wait waits for a number of messages for a path, and returns them.
func (r *receiver) wait(t *testing.T, path string, n int) []received {
	t.Helper()
	var got []received
	err := harness.Within(time.Minute, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if got = r.of(path); len(got) < n {
			return fmt.Errorf("%s got %d messages, want %d", path, len(got), n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// manifest returns a Notification with an address in the Secret "hook".
func (r *receiver) manifest(name, format, more string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	bundle, _ := json.Marshal(string(ca))
	return fmt.Sprintf(`{apiVersion: hykube.io/v1alpha1, kind: Notification, metadata: {name: %s}, spec: {webhook: {format: %s, urlFrom: {name: hook, key: %s},
headersFrom: [{name: Authorization, secretKey: {name: hook, key: header}}], signingKeyFrom: {name: hook, key: signing}, caBundle: %s}%s}}`, name, format, name, bundle, more)
}

// prepare creates a namespace with the Secret "hook", which has an address for each name.
func (r *receiver) prepare(t *testing.T, kubectl func(stdin string, args ...string) string, namespace string, names ...string) {
	t.Helper()
	args := []string{"create", "secret", "generic", "hook", "-n", namespace, "--from-literal=header=Bearer the-secret-token", "--from-literal=signing=the-secret-signing-key-of-32-b"}
	for _, name := range names {
		args = append(args, fmt.Sprintf("--from-literal=%s=%s/%s/%s?the-secret-query", name, r.URL, namespace, name))
	}
	kubectl("", args...)
}

func network(name, spec string) string {
	return fmt.Sprintf("{apiVersion: sim.hykube.io/v1, kind: sim-network, metadata: {name: %s, labels: {stack: all}}, spec: {name: notify-%s%s}}", name, name, spec)
}

const planNamed = "{apiVersion: hykube.io/v1alpha1, kind: Plan, metadata: {name: %s}}"

func TestNotificationFormats(t *testing.T) {
	const ns = "notify-formats"
	newNamespace(t, ns)
	r := newReceiver(t)
	run := func(stdin string, args ...string) string { return kubectlWith(t, stdin, args...) }
	r.prepare(t, run, ns, "events", "slack", "teams", "refused")
	for name, format := range map[string]string{"events": "CloudEvents", "slack": "Slack", "teams": "Teams"} {
		run(r.manifest(name, format, `, text: "<!channel> [read](http://evil.example)"`), "create", "-n", ns, "-f", "-")
	}
	run(network("main", ""), "create", "-n", ns, "-f", "-")
	run(fmt.Sprintf(planNamed, "first"), "create", "-n", ns, "-f", "-")

	event := r.wait(t, "/"+ns+"/events", 1)[0]
	uid := kubectl(t, "get", "plan", "first", "-n", ns, "-o", "jsonpath={.metadata.uid}")
	for field, want := range map[string]string{"specversion": "1.0", "id": uid + "-AwaitingApproval", "type": "io.hykube.plan.awaitingapproval",
		"source": "/apis/hykube.io/v1alpha1/namespaces/" + ns, "subject": "plans/first"} {
		if got := event.text(field); got != want {
			t.Errorf("the CloudEvent has %s %q, want %q", field, got, want)
		}
	}
	if h := event.header; h.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" || h.Get("Authorization") != "Bearer the-secret-token" ||
		h.Get("Webhook-Id") != uid+"-AwaitingApproval" || !strings.HasPrefix(h.Get("Webhook-Signature"), "v1,") {
		t.Errorf("the CloudEvent has the headers %v", h)
	}
	for _, want := range []string{`"command":"kubectl hykube show first -n ` + ns, `"create":1`, `"requestedBy":"hykube:admin"`, `"writtenBy":["hykube:admin"]`} {
		if !strings.Contains(event.body, want) {
			t.Errorf("the CloudEvent lacks %s: %s", want, event.body)
		}
	}
	if slack := r.wait(t, "/"+ns+"/slack", 1)[0].body; !strings.Contains(slack, `"type":"plain_text"`) || strings.Contains(slack, "mrkdwn") || !strings.Contains(slack, "Plan first in the namespace") {
		t.Errorf("the message for Slack is %s", slack)
	}
	if teams := r.wait(t, "/"+ns+"/teams", 1)[0].body; !strings.Contains(teams, `"contentType":"application/vnd.microsoft.card.adaptive"`) || strings.Contains(teams, `"TextBlock"`) {
		t.Errorf("the message for Teams is %s", teams)
	}
	kubectl(t, "wait", "notification/events", "notification/slack", "notification/teams", "-n", ns, "--for=jsonpath={.status.delivered}=1", "--timeout=30s")

	// An edit makes the plan stale, and a failure follows.
	run(network("main", ", cidr: 10.3.0.0/16"), "apply", "-n", ns, "-f", "-")
	if got := r.wait(t, "/"+ns+"/events", 2)[1].text("type"); got != "io.hykube.plan.stale" {
		t.Errorf("the second message has the type %q", got)
	}
	run(`{apiVersion: sim.hykube.io/v1, kind: sim-subnet, metadata: {name: bad}, spec: {name: notify-bad, cidr: 10.0.0.0/24, network_id: "${sim_network.none.id}"}}`, "create", "-n", ns, "-f", "-")
	run(fmt.Sprintf(planNamed, "second"), "create", "-n", ns, "-f", "-")
	if got := r.wait(t, "/"+ns+"/events", 3)[2]; got.text("type") != "io.hykube.plan.failed" || got.text("subject") != "plans/second" {
		t.Errorf("the third message is %s", got.body)
	}

	// Neither the objects nor the events nor the log nor Temporal's database have an address or a header.
	shown := kubectl(t, "get", "notifications,events,plans", "-n", ns, "-o", "yaml")
	log, err := os.ReadFile(shared.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range map[string]string{"an object": shown, "the log": string(log)} {
		if strings.Contains(text, "the-secret") || strings.Contains(text, r.URL) {
			t.Errorf("%s has a secret", place)
		}
	}
	for _, file := range databases(t) {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "the-secret") {
			t.Errorf("%s has a secret", file)
		}
	}
}

// databases returns the files of the shared server's databases of Temporal.
func databases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared.Data(), "temporal", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no database of Temporal: %v", err)
	}
	return files
}

// notified waits until the condition Ready of a Notification has a reason, and returns its message.
func notified(t *testing.T, namespace, name, reason string) string {
	t.Helper()
	kubectl(t, "wait", "notification/"+name, "-n", namespace, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=`+reason, "--timeout=60s")
	return kubectl(t, "get", "notification", name, "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
}

func TestNotificationsThatFail(t *testing.T) {
	const ns = "notify-failures"
	newNamespace(t, ns)
	r := newReceiver(t)
	r.answer = func(path string, attempt int) int {
		switch {
		case strings.HasSuffix(path, "/busy") && attempt < 3:
			return http.StatusServiceUnavailable
		case strings.HasSuffix(path, "/gone"):
			return http.StatusGone
		}
		return http.StatusNoContent
	}
	run := func(stdin string, args ...string) string { return kubectlWith(t, stdin, args...) }
	// The author learns of the missing Secret at the write, and before a message is due.
	write := shared.Command(t.Context(), "hykube-kubectl", "create", "-n", ns, "-f", "-")
	write.Stdin = strings.NewReader(r.manifest("busy", "CloudEvents", ""))
	if out, err := write.CombinedOutput(); err != nil || !strings.Contains(string(out), "Warning: ") || !strings.Contains(string(out), `"hook"`) {
		t.Errorf("the write of a Notification without a Secret: %v: %s", err, out)
	}
	notified(t, ns, "busy", "SecretNotFound")
	r.prepare(t, run, ns, "busy", "gone", "rights")
	notified(t, ns, "busy", "NothingSent")
	kubectl(t, "delete", "secret", "hook", "-n", ns)
	notified(t, ns, "busy", "SecretNotFound")
	kubectl(t, "delete", "notification", "busy", "-n", ns)
	r.prepare(t, run, ns, "busy", "gone", "rights")
	for _, name := range []string{"busy", "gone"} {
		run(r.manifest(name, "CloudEvents", ""), "create", "-n", ns, "-f", "-")
	}
	// The address of the metadata of a cloud, and one that is private.
	for name, address := range map[string]string{"metadata": "https://169.254.169.254/latest/meta-data", "private": "https://10.0.0.1/x"} {
		run(fmt.Sprintf(`{apiVersion: hykube.io/v1alpha1, kind: Notification, metadata: {name: %s}, spec: {webhook: {url: "%s"}}}`, name, address), "create", "-n", ns, "-f", "-")
	}
	// alice may edit, and loses the right before the message.
	kubectl(t, "create", "rolebinding", "editors", "--clusterrole=edit", "--user=alice", "-n", ns)
	run(r.manifest("rights", "CloudEvents", ""), "create", "-n", ns, "--as=alice", "-f", "-")
	kubectl(t, "delete", "rolebinding", "editors", "-n", ns)
	kubectl(t, "create", "rolebinding", "viewers", "--clusterrole=view", "--user=alice", "-n", ns)

	run(network("failures", ""), "create", "-n", ns, "-f", "-")
	run(fmt.Sprintf(planNamed, "first"), "create", "-n", ns, "-f", "-")

	if got := notified(t, ns, "busy", "Delivered"); got != "The receiver accepted the last message." {
		t.Errorf("busy: %s", got)
	}
	attempts := r.wait(t, "/"+ns+"/busy", 3)
	for _, a := range attempts {
		if a.text("id") != attempts[0].text("id") {
			t.Errorf("an attempt has the ID %q, and the first %q", a.text("id"), attempts[0].text("id"))
		}
	}
	if got := kubectl(t, "get", "notification", "busy", "-n", ns, "-o", "jsonpath={.status.last.attempts} {.status.delivered} {.status.failed}"); got != "3 1 " {
		t.Errorf("the status of busy has attempts, delivered and failed %q", got)
	}
	if got := notified(t, ns, "gone", "DeliveryFailed"); !strings.Contains(got, "HTTP 410") {
		t.Errorf("gone: %s", got)
	}
	for _, name := range []string{"metadata", "private"} {
		if got := notified(t, ns, name, "DeliveryFailed"); !strings.Contains(got, "not public") || strings.Contains(got, "169.254") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := notified(t, ns, "rights", "MissingRights"); !strings.Contains(got, `"alice"`) || !strings.Contains(got, "get secrets") {
		t.Errorf("rights: %s", got)
	}
	r.mu.Lock()
	if sent := r.of("/" + ns + "/rights"); len(sent) > 0 {
		t.Errorf("a message was sent with rights that the author lost: %v", sent)
	}
	r.mu.Unlock()
	if err := harness.Within(time.Minute, func() error {
		if events := kubectl(t, "events", "--for", "notification/gone", "-n", ns); !strings.Contains(events, "DeliveryFailed") {
			return errors.New(events)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	// Whoever may not read the Secret cannot name it.
	if out, err := shared.Kubectl(t.Context(), r.manifest("other", "CloudEvents", ""), "create", "-n", ns, "--as=alice", "-f", "-"); err == nil {
		t.Errorf("a user without rights created a Notification: %s", out)
	}
}

// TestNotificationsSurviveKill kills the server after a plan began to wait, and before its message was accepted.
func TestNotificationsSurviveKill(t *testing.T) {
	r := newReceiver(t)
	accept := false
	r.answer = func(string, int) int {
		if accept {
			return http.StatusOK
		}
		return http.StatusInternalServerError
	}
	s := &harness.Server{Dir: t.TempDir(), Args: []string{"--notification-allow-cidr", "127.0.0.0/8"}, Env: []string{"SIMCLOUD_ADDRESS=" + cloud.Address}}
	s.Serve(t)
	if err := s.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}}); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		out, err := s.Kubectl(t.Context(), stdin, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	r.prepare(t, run, "default", "team")
	run(simConfig, "apply", "-f", "-")
	run(r.manifest("team", "CloudEvents", ""), "create", "-f", "-")
	run(network("kill", ""), "create", "-f", "-")
	run(fmt.Sprintf(planNamed, "waiting"), "create", "-f", "-")
	run("", "wait", "plan/waiting", "--for=condition=Planned", "--timeout=60s")
	s.Kill()
	r.mu.Lock()
	accept = true
	before := len(r.messages)
	r.mu.Unlock()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.wait(t, "/default/team", before+1)
	run("", "wait", "notification/team", "--for=jsonpath={.status.delivered}=1", "--timeout=60s")
	for _, m := range got {
		if m.text("id") != got[0].text("id") || m.text("type") != "io.hykube.plan.awaitingapproval" {
			t.Errorf("a message is %s", m.body)
		}
	}
	// A further start sends nothing again.
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(`{apiVersion: hykube.io/v1alpha1, kind: Plan, metadata: {name: other}, spec: {targets: [sim_network.kill]}}`, "create", "-f", "-")
	r.wait(t, "/default/team", before+2)
	r.mu.Lock()
	defer r.mu.Unlock()
	accepted := map[string]int{}
	for _, m := range r.messages[before:] {
		accepted[m.text("subject")]++
	}
	if accepted["plans/waiting"] != 1 || accepted["plans/other"] != 1 {
		t.Errorf("the receiver accepted %v, want one message for each plan", accepted)
	}
}
