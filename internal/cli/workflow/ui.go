package workflow

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
)

// uiPath is the path of Temporal's Web UI on the server.
const uiPath = "/temporal/"

// temporalNamespace is the Temporal namespace of the runs.
const temporalNamespace = "hykube"

type uiOptions struct {
	session.PlanArgument
	open     bool
	port     int
	workflow bool
}

// NewUI returns the command ui.
func NewUI(s *session.Session) *cobra.Command {
	o := &uiOptions{PlanArgument: session.PlanArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "ui [PLAN]",
		Short: "Open Temporal's Web UI with your own credentials",
		Long: `Open Temporal's Web UI with your own credentials.

The server authenticates each request for the Web UI, and a browser cannot use a kubeconfig. This command listens on a
loopback port and forwards requests with your credentials. It prints an address with a random key; the browser stores the
key as a cookie, and the command refuses requests without it. It runs until Ctrl-C.

With the name of a plan it opens the run that applied the plan. If no run applied it, it opens the run that made it. With
--workflow, it opens the run of the user's workflow that asked for the plan.`,
		Example: `  kubectl hykube ui --open
  kubectl hykube ui apply-x7k2d -n prod --open`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: planapi.Complete(s, nil),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.open, "open", false, "Open the address in a browser")
	cmd.Flags().IntVar(&o.port, "port", 0, "Loopback port to listen on; 0 takes a free one")
	cmd.Flags().BoolVar(&o.workflow, "workflow", false, "Open the workflow of a user that asked for the plan")
	return cmd
}

// Validate checks the flags.
func (o *uiOptions) Validate() error {
	if o.workflow && o.Name == "" {
		return errors.New("--workflow needs the name of a plan")
	}
	return nil
}

func (o *uiOptions) Run(ctx context.Context) error {
	proxy, err := newUIProxy(o.Config, rand.Text())
	if err != nil {
		return err
	}
	// Check before opening the browser, so that the user sees an error instead of a blank page.
	if err := proxy.probe(ctx); err != nil {
		return o.Explain(err)
	}
	if o.Name != "" {
		p, err := planapi.Get(ctx, o.Session, o.Namespace, o.Name)
		if err != nil {
			return err
		}
		if proxy.page, err = o.pageOf(p); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("listen for the browser: %w", err)
	}
	proxy.host = l.Addr().String()
	srv := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	address := proxy.address()
	fmt.Fprintf(o.Out, "%s\n", address)
	fmt.Fprintln(o.ErrOut, "Anyone who opens this address acts with your rights. Ctrl-C ends the command.")
	if o.open {
		if err := openBrowser(address); err != nil {
			fmt.Fprintf(o.ErrOut, "Warning: no browser could be started (%v): open the address yourself\n", err)
		}
	}
	stop, done := o.Interrupts()
	defer done()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case <-stop:
	case <-ctx.Done():
	case err := <-failed:
		return fmt.Errorf("serve browser: %w", err)
	}
	return srv.Close()
}

// pageOf returns the page that the options ask for.
func (o *uiOptions) pageOf(p *v1alpha1.Plan) (string, error) {
	if !o.workflow {
		return runPage(p)
	}
	w := RunOf(p)
	if w == nil {
		return "", fmt.Errorf("no workflow of a user asked for plan %q", p.Name)
	}
	return w.page(), nil
}

// runPage returns the page of the run that applied a plan, or that made it if it was not applied. The Web UI finds the
// last run of a workflow ID itself.
func runPage(p *v1alpha1.Plan) (string, error) {
	var runs v1alpha1.PlanRuns
	if p.Status.Runs != nil {
		runs = *p.Status.Runs
	}
	id := cmp.Or(runs.Apply, runs.Plan)
	if id == "" {
		return "", fmt.Errorf("plan %q has no run yet", p.Name)
	}
	return uiPath + "namespaces/" + temporalNamespace + "/workflows/" + url.PathEscape(id), nil
}

func openBrowser(address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", address).Start()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", address).Start()
	}
	return exec.Command("xdg-open", address).Start()
}

// uiProxy forwards a browser's requests for the Web UI to the server with the user's credentials. Other web pages and
// other users of the machine must not have access. So it requires its own Host (against DNS rebinding), its cookie, and
// its own Origin for requests that change anything.
type uiProxy struct {
	host      string
	key       string
	page      string // path of the printed address
	target    *url.URL
	transport http.RoundTripper
	proxy     *httputil.ReverseProxy
}

func newUIProxy(cfg *rest.Config, key string) (*uiProxy, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read server address: %w", err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up connection: %w", err)
	}
	p := &uiProxy{key: key, page: uiPath, target: target, transport: transport}
	p.proxy = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			// Remove the browser's credentials and identity headers, which must not reach the server with the user's
			// credentials.
			r.Out.Header.Del("Authorization")
			for h := range r.Out.Header {
				if strings.HasPrefix(h, "Impersonate-") || strings.HasPrefix(h, "X-Remote-") {
					r.Out.Header.Del(h)
				}
			}
			r.Out.Header.Del("Referer")
			if r.Out.Header.Get("Origin") != "" {
				r.Out.Header.Set("Origin", target.Scheme+"://"+target.Host)
			}
			cookies := r.In.Cookies()
			r.Out.Header.Del("Cookie")
			for _, c := range cookies {
				if c.Name != p.cookie() {
					r.Out.AddCookie(c)
				}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			// The browser uses plain HTTP to loopback, so it would drop a Secure cookie, with which the Web UI protects
			// forms.
			cookies := resp.Cookies()
			resp.Header.Del("Set-Cookie")
			for _, c := range cookies {
				c.Secure, c.Domain = false, ""
				if c.SameSite == http.SameSiteNoneMode {
					c.SameSite = http.SameSiteLaxMode
				}
				resp.Header.Add("Set-Cookie", c.String())
			}
			if loc, err := resp.Location(); err == nil && loc.Host == target.Host {
				resp.Header.Set("Location", loc.RequestURI())
			}
			resp.Header.Del("Strict-Transport-Security")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			http.Error(w, session.Explain(err, target.String()).Error(), http.StatusBadGateway)
		},
	}
	return p, nil
}

// probe requests the Web UI once and returns an error with an explanation.
func (p *uiProxy) probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.target.JoinPath(uiPath).String(), nil)
	if err != nil {
		return fmt.Errorf("request Web UI: %w", err)
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("request Web UI: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return errors.New("the server doesn't know who you are: the token or certificate in the kubeconfig is wrong or has expired")
	case http.StatusForbidden:
		return &exit.Error{Code: exit.Refused,
			Cause: fmt.Errorf("you may not see the Web UI: it needs the verb \"get\" on the path %s (a ClusterRole with nonResourceURLs)", uiPath)}
	case http.StatusNotFound:
		return fmt.Errorf("the server at %s serves no Web UI", p.target.Host)
	}
	return nil
}

// cookie returns the cookie's name. It contains the port, because browsers share cookies among the ports of a host.
func (p *uiProxy) cookie() string {
	_, port, _ := net.SplitHostPort(p.host)
	return "hykube-ui-" + port
}

func (p *uiProxy) address() string { return "http://" + p.host + "/enter/" + p.key }

func (p *uiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != p.host {
		http.Error(w, "wrong host", http.StatusMisdirectedRequest)
		return
	}
	if key, ok := strings.CutPrefix(r.URL.Path, "/enter/"); ok && r.Method == http.MethodGet {
		if subtle.ConstantTimeCompare([]byte(key), []byte(p.key)) != 1 {
			http.Error(w, "this address belongs to another run of `kubectl hykube ui`: open the address that it printed last", http.StatusForbidden)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: p.cookie(), Value: p.key, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, p.page, http.StatusSeeOther)
		return
	}
	c, err := r.Cookie(p.cookie())
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.key)) != 1 {
		http.Error(w, "open the address that `kubectl hykube ui` printed", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if o := r.Header.Get("Origin"); o != "http://"+p.host {
			http.Error(w, "wrong origin", http.StatusForbidden)
			return
		}
	}
	if r.URL.Path == "/" {
		http.Redirect(w, r, uiPath, http.StatusSeeOther)
		return
	}
	// Permit only the Web UI, because the credentials give access to the whole API.
	if !strings.HasPrefix(r.URL.Path, uiPath) || strings.Contains(r.URL.Path, "/../") ||
		strings.HasSuffix(r.URL.Path, "/..") {
		http.NotFound(w, r)
		return
	}
	p.proxy.ServeHTTP(w, r)
}
