// Package webui opens Temporal's Web UI in a headless browser. Tests pass the address of the server. It may import the
// browser driver and must not know the server.
package webui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/hykube/hykube/tests/harness/machine"
)

// Browser is one tab of a fresh browser profile, closed when its test ends.
type Browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string // the errors that pages logged
}

// Open starts a browser. Without one, it skips the test, or fails it if machine.Required lists the browser.
func Open(t *testing.T) *Browser {
	t.Helper()
	path := machine.Browser.Need(t)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.NoFirstRun,
		chromedp.NoSandbox, // a container's root has no sandbox
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1400, 1000),
		chromedp.WSURLReadTimeout(time.Minute), // a cold start on a busy machine
	}
	for _, flag := range []string{"headless", "disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-default-apps", "disable-extensions", "no-default-browser-check", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	// t.Context ends before cleanups run, and would kill the browser instead of closing it.
	allocator, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the process to end
		cancel()
	})
	b := &Browser{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, b.listen) // starts it
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		t.Fatalf("start browser %q: %v", path, err)
	}
	return b
}

func (b *Browser) listen(event any) {
	var message string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError {
			return
		}
		message = fmt.Sprintf("%s %s", e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		message = fmt.Sprintf("%s %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, message)
}

// Errors returns the errors that the pages have logged: scripts that failed, files that were missing or rejected.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.messages...)
}

// visible returns the visible text of a page and its frames, some of which have the titles of activities.
const visible = `document.body ? [document.body, ...[...document.querySelectorAll("iframe")].map(e => e.contentDocument && e.contentDocument.body)]
	.map(e => e ? e.innerText : "").join("\n") : ""`

// See opens a page and returns its visible text when it has all wanted texts. If that takes too long, the test fails,
// and its artifacts have a screenshot.
func (b *Browser) See(address string, timeout time.Duration, wanted ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Navigate(address))
	var text string
	for err == nil {
		text, err = chromedp.Run(ctx, chromedp.Evaluate[string](visible))
		if err == nil && containsAll(text, wanted) {
			return text
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	b.t.Fatalf("see %q at %s: %v\npicture: %s\nthe page's errors: %q\nits text:\n%s", wanted, address, err, b.picture(), b.Errors(), text)
	return ""
}

// containsAll ignores case, because style sheets change it.
func containsAll(text string, wanted []string) bool {
	text = strings.ToLower(text)
	for _, w := range wanted {
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

func (b *Browser) picture() string {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err.Error()
	}
	file, err := os.CreateTemp(b.t.ArtifactDir(), "page-*.png")
	if err != nil {
		return err.Error()
	}
	if _, err := file.Write(png); err != nil {
		return err.Error()
	}
	_ = file.Close()
	return file.Name()
}

// Proxy serves target on a loopback address until the test ends, for the browser, which has no credentials. The
// transport has them: a client certificate or a bearer token, and the trusted authority.
func Proxy(t *testing.T, target *url.URL, transport http.RoundTripper) (address string) {
	t.Helper()
	server := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	})
	t.Cleanup(server.Close)
	return server.URL
}

// Bearer returns a transport that sends the token with every request. A nil base means http.DefaultTransport.
func Bearer(token string, base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
		return base.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
