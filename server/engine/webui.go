package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// webUI serves Temporal's Web UI without its own port. It combines components of ui-server instead of using ui-server's
// Server. That Server listens, exits the process if the port is in use, and never closes its connection. It also drops
// the content security policy unless it is mounted at the root.
type webUI struct {
	http.Handler
	conn *grpc.ClientConn
}

func newWebUI(f frontend) (*webUI, error) {
	provider, err := config.NewConfigProviderWithRefresh(readOnlyConfig(f.address, f.namespace))
	if err != nil {
		return nil, fmt.Errorf("configure web UI: %w", err)
	}
	conn, err := f.connect()
	if err != nil {
		return nil, fmt.Errorf("connect web UI: %w", err)
	}
	files, err := ui.Assets()
	if err == nil {
		files, err = fs.Sub(files, "local")
	}
	if err != nil {
		return nil, fmt.Errorf("open web UI assets: %w", err)
	}
	page, err := pageHandler(files, f.namespace)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip())
	routeAPI(e.Group("/api/v1"), provider, conn)
	route.SetRenderRoute(e, "/")
	e.GET("/*", page)
	return &webUI{conn: conn, Handler: mounted(e)}, nil
}

func readOnlyConfig(address, namespace string) *config.Config {
	return &config.Config{
		TemporalGRPCAddress: address,
		EnableUI:            true,
		PublicPath:          UIPath,
		DefaultNamespace:    namespace,
		// Terminating or resetting a run would bypass its plan. Users cancel a plan through the API.
		DisableWriteActions:       true,
		WorkflowTerminateDisabled: true,
		WorkflowCancelDisabled:    true,
		WorkflowSignalDisabled:    true,
		WorkflowUpdateDisabled:    true,
		WorkflowResetDisabled:     true,
		WorkflowPauseDisabled:     true,
		BatchActionsDisabled:      true,
		StartWorkflowDisabled:     true,
		ActivityCommandsDisabled:  true,
		DisableNewsFetch:          true,
		HideLogs:                  true,
	}
}

// routeAPI adds the API routes that the pages call.
func routeAPI(group *echo.Group, provider *config.ConfigProviderWithRefresh, conn *grpc.ClientConn) {
	group.GET("/settings", api.GetSettings(provider))
	group.GET("/ui-extensions", api.GetUIExtensions(provider, nil))
	group.GET(api.WorkflowRawHistoryUrl, api.WorkflowRawHistoryHandler(workflowservice.NewWorkflowServiceClient(conn)))
	// The original handler would request the latest release from GitHub.
	group.GET("/releases", func(c echo.Context) error {
		return c.JSON(http.StatusOK, api.LatestReleasesResponse{Releases: map[string]string{}})
	})
	group.Match([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, "/*",
		api.TemporalAPIHandler(provider, nil, conn), readOnly)
}

// pageHandler serves the assets. For every other path of the application, it serves the index page. namespace is the
// Temporal namespace of the plans.
func pageHandler(files fs.FS, namespace string) (echo.HandlerFunc, error) {
	index, policy, err := indexPage(files, namespace)
	if err != nil {
		return nil, err
	}
	assets := http.FileServerFS(files)
	return func(c echo.Context) error {
		name := strings.TrimPrefix(c.Request().URL.Path, "/")
		if info, err := fs.Stat(files, name); name != "index.html" && err == nil && !info.IsDir() {
			if strings.HasPrefix(name, "_app/immutable/") {
				c.Response().Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			}
			assets.ServeHTTP(c.Response(), c.Request())
			return nil
		}
		if strings.HasPrefix(name, "_app/") {
			return echo.ErrNotFound
		}
		header := c.Response().Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-cache")
		return c.HTMLBlob(http.StatusOK, index)
	}, nil
}

// mounted serves a handler below UIPath and removes the callers' credentials from the requests.
func mounted(inner http.Handler) http.Handler {
	strip := http.StripPrefix(UIPath, inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == UIPath {
			http.Redirect(w, r, UIPath+"/", http.StatusPermanentRedirect)
			return
		}
		// The caller's credentials are for Hykube. The handler would pass them on to Temporal.
		r = r.Clone(r.Context())
		for _, name := range []string{"Authorization", "Authorization-Extras", "Cookie"} {
			r.Header.Del(name)
		}
		strip.ServeHTTP(w, r)
	})
}

// workflowQuery matches the path of a workflow query, a POST that changes nothing.
var workflowQuery = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/workflows/[^/]+/query/[^/]+$`)

// readOnly permits only reads. Upstream's middleware permits every POST with "/query/" anywhere in its path.
func readOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		switch {
		case r.Method == http.MethodGet, r.Method == http.MethodHead:
		case r.Method == http.MethodPost && workflowQuery.MatchString(r.URL.EscapedPath()):
		default:
			return echo.ErrMethodNotAllowed
		}
		return next(c)
	}
}

// Close closes the connection to the frontend.
func (u *webUI) Close() error { return u.conn.Close() }

var (
	policyTag    = regexp.MustCompile(`(?i)<meta[^>]*http-equiv\s*=\s*["']content-security-policy["'][^>]*>`)
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
)

// columns are the columns of the list of runs, by their labels in the Web UI.
var columns = []string{"Status", "HykubePlan", "HykubeNamespace", "HykubeRequester", "Type", "HykubeOutcome", "Start",
	"Workflow ID"}

// columnsScript returns a script that sets the columns of a namespace, unless the reader has chosen columns. The Web UI
// reads them from the browser's storage, and has no setting for them.
func columnsScript(namespace string) (string, error) {
	type column struct {
		Label string `json:"label"`
	}
	var list []column
	for _, label := range columns {
		list = append(list, column{label})
	}
	chosen, err := json.Marshal(map[string]any{namespace: list}) // which escapes <
	return fmt.Sprintf(`try {
	const key = "namespace-workflow-table-columns";
	localStorage.setItem(key, JSON.stringify({...%s, ...JSON.parse(localStorage.getItem(key) ?? "{}")}));
} catch {} // without a storage, the Web UI shows its own columns
`, chosen), err
}

// indexPage returns the page of the single-page application with its base path and its columns, and its content
// security policy. The base path changes the inline script, so indexPage recomputes the script's hash in the policy.
func indexPage(files fs.FS, namespace string) (page []byte, policy string, err error) {
	page, err = fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, "", fmt.Errorf("open web UI page: %w", err)
	}
	page = policyTag.ReplaceAll(page, nil)
	page = bytes.ReplaceAll(page, []byte(`base: ""`), fmt.Appendf(nil, `base: %q`, UIPath))
	page = bytes.ReplaceAll(page, []byte(`"/_app/`), fmt.Appendf(nil, `"%s/_app/`, UIPath))
	// Without this link, the browser would request a favicon from the root path.
	page = bytes.Replace(page, []byte("</head>"),
		fmt.Appendf(nil, `<link rel="icon" href="%s/favicon.ico">`+"\n</head>", UIPath), 1)
	script := inlineScript.FindSubmatch(page)
	if script == nil || !bytes.Contains(script[1], []byte(UIPath)) {
		return nil, "", fmt.Errorf("open web UI page: ui-server changed its form")
	}
	first, err := columnsScript(namespace)
	if err != nil {
		return nil, "", fmt.Errorf("open web UI page: %w", err)
	}
	policy = "default-src 'self'; script-src 'strict-dynamic' " + scriptHash([]byte(first)) + " " +
		scriptHash(script[1]) +
		"; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; manifest-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'self'; form-action 'none'"
	return bytes.Replace(page, []byte("</head>"), []byte("<script>"+first+"</script>\n</head>"), 1), policy, nil
}

// scriptHash returns the source of a content security policy that permits a script.
func scriptHash(script []byte) string {
	sum := sha256.Sum256(script)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
