package canary

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// receiver receives messages of a Notification. It accepts those of one path, and answers others with an error that quotes
// a secret.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte
}

// notify creates a Notification whose receiver accepts messages, and one whose receiver does not.
func (w *world) notify() {
	w.Helper()
	w.receiver = &receiver{bodies: map[string][]byte{}}
	path, header, key, answer := w.hide("path of a webhook"), w.hide("header of a webhook"), w.hide("signing key of a webhook"), w.hide("answer of a webhook")
	w.receiver.Server = httptest.NewTLSServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.receiver.mu.Lock()
		defer w.receiver.mu.Unlock()
		if r.URL.Path == "/good/"+path.text {
			w.receiver.bodies[fmt.Sprint("message ", len(w.receiver.bodies))] = body
			return
		}
		http.Error(to, answer.text, http.StatusInternalServerError)
	}))
	w.Cleanup(w.receiver.Close)
	ca, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.receiver.Certificate().Raw})))
	w.kubectl(false, "", "create", "secret", "generic", "hook", "--from-literal=header="+header.text, "--from-literal=key="+key.text,
		"--from-literal=good="+w.receiver.URL+"/good/"+path.text, "--from-literal=bad="+w.receiver.URL+"/bad/"+path.text)
	for _, name := range []string{"good", "bad"} {
		w.kubectl(false, fmt.Sprintf(`{apiVersion: hykube.io/v1alpha1, kind: Notification, metadata: {name: %s}, spec: {webhook: {urlFrom: {name: hook, key: %s},
headersFrom: [{name: Authorization, secretKey: {name: hook, key: header}}], signingKeyFrom: {name: hook, key: key}, caBundle: %s}}}`, name, name, ca), "create", "-f", "-")
	}
}

// notified waits until one Notification sent a message, and the other one failed to.
func (w *world) notified() {
	w.Helper()
	w.kubectl(false, "", "wait", "notification/good", "--for=jsonpath={.status.last.code}=200", "--timeout=60s")
	w.kubectl(false, "", "wait", "notification/bad", "--for=jsonpath={.status.last.code}=500", "--timeout=60s")
}

// messages returns the messages that a receiver got.
func messages(_ *testing.T, w *world) map[string][]byte {
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	found := map[string][]byte{}
	for name, body := range w.receiver.bodies {
		found[name] = body
	}
	return found
}
