package access

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/hykube/hykube/server/rights"
)

const (
	// tokensSettle is the time for which a token file must be unchanged before it is read, because writing it in place
	// takes time.
	tokensSettle = 100 * time.Millisecond
	// tokensInterval is the interval for checking the file where there are no events, as on a network file system.
	tokensInterval = 30 * time.Second
)

// tokens authenticates users by the tokens in a file, which it reads again when the file changes. If the file is
// invalid, the previous tokens stay valid.
type tokens struct {
	path    string
	current atomic.Pointer[tokenUsers]
	// version is the version of the file that was last read, valid or not.
	version fileVersion
	broken  prometheus.Gauge
	logger  *slog.Logger
}

// tokenUsers is the content of a valid token file.
type tokenUsers struct {
	*tokenfile.TokenAuthenticator
	// groups has the groups of each user, of all tokens of the user together.
	groups map[string]sets.Set[string]
}

// readTokens reads a token file. Kubernetes' authenticator does not tell which users it has, so the file is read twice.
func readTokens(path string) (*tokenUsers, error) {
	authenticator, err := tokenfile.NewCSV(path)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	users := &tokenUsers{authenticator, map[string]sets.Set[string]{}}
	for _, fields := range lines {
		if len(fields) < 3 || fields[0] == "" { // as Kubernetes does
			continue
		}
		groups := users.groups[fields[1]]
		if groups == nil {
			groups = sets.New(user.AllAuthenticated)
			users.groups[fields[1]] = groups
		}
		if len(fields) >= 4 {
			groups.Insert(strings.Split(fields[3], ",")...)
		}
	}
	return users, nil
}

// fileVersion identifies the content of a file by its metadata, without reading it.
type fileVersion struct {
	info os.FileInfo
	err  string
}

func versionOf(path string) fileVersion {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{err: err.Error()}
	}
	return fileVersion{info: info}
}

func (v fileVersion) same(w fileVersion) bool {
	if v.info == nil || w.info == nil {
		return v.info == nil && w.info == nil && v.err == w.err
	}
	return os.SameFile(v.info, w.info) && v.info.ModTime().Equal(w.info.ModTime()) && v.info.Size() == w.info.Size()
}

// openTokens reads a token file, which must be valid, and watches it until ctx ends.
func openTokens(ctx context.Context, path string, metrics prometheus.Registerer, logger *slog.Logger) (*tokens, error) {
	t := &tokens{path: path, logger: logger, broken: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hykube_token_file_broken",
		Help: "1 while the token file cannot be read and the tokens that were read before are in use, else 0.",
	})}
	if metrics != nil {
		err := metrics.Register(t.broken)
		if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			t.broken, _ = known.ExistingCollector.(prometheus.Gauge)
		} else if err != nil {
			return nil, fmt.Errorf("register metric of the token file: %w", err)
		}
	}
	t.version = versionOf(path)
	first, err := readTokens(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	t.current.Store(first)
	t.broken.Set(0)
	// Watch the directory, because most editors and every mounted Secret replace the file.
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(path)); err != nil {
			err = errors.Join(err, watcher.Close())
		}
	}
	if err != nil {
		logger.Warn("the server cannot watch the token file, and reads it again only after an interval", "file", path,
			"interval", tokensInterval, "error", err)
		watcher = &fsnotify.Watcher{}
	}
	go t.follow(ctx, watcher, err == nil)
	return t, nil
}

// AuthenticateToken implements authenticator.Token.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := t.current.Load().AuthenticateToken(ctx, token)
	if !ok || err != nil {
		return response, ok, err
	}
	who := response.User
	named := *response
	named.User = &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(),
		Extra: rights.NamedByTokenFile()}
	return &named, true, nil
}

// narrow returns a user that the token file named, with the groups that it still gives. It returns false if the file no
// longer names the user.
func (t *tokens) narrow(who user.Info) (user.Info, bool) {
	groups, ok := t.current.Load().groups[who.GetName()]
	if !ok {
		return nil, false
	}
	kept := slices.DeleteFunc(slices.Clone(who.GetGroups()), func(name string) bool { return !groups.Has(name) })
	return &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: kept, Extra: who.GetExtra()}, true
}

func (t *tokens) follow(ctx context.Context, watcher *fsnotify.Watcher, watching bool) {
	if watching {
		defer watcher.Close()
	}
	poll := time.NewTicker(tokensInterval)
	defer poll.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
			settled = time.After(tokensSettle)
		case err := <-watcher.Errors:
			t.logger.Warn("the server cannot watch the token file, and reads it again only after an interval", "file",
				t.path, "interval", tokensInterval, "error", err)
		case <-poll.C:
			t.reload()
		case <-settled:
			settled = nil
			t.reload()
		}
	}
}

// reload reads the file if it has changed.
func (t *tokens) reload() {
	now := versionOf(t.path)
	if now.same(t.version) {
		return
	}
	t.version = now
	next, err := readTokens(t.path)
	if err != nil {
		t.broken.Set(1)
		t.logger.Error("the token file cannot be read: the tokens that were read before stay valid", "file", t.path,
			"error", err)
		return
	}
	t.current.Store(next)
	t.broken.Set(0)
	t.logger.Info("read the token file again", "file", t.path)
}
