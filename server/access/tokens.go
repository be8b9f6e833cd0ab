package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
)

const (
	// tokensSettle is how long a token file must stay as it is before it is read: who writes it in place is not done at once.
	tokensSettle = 100 * time.Millisecond
	// tokensLook is how often the file is looked at where no event tells of a change, as on a network file system.
	tokensLook = 30 * time.Second
)

// tokens knows users by the tokens of a file, which is read again when it changes. A file that cannot be read leaves the tokens
// as they were.
type tokens struct {
	path    string
	current atomic.Pointer[tokenfile.TokenAuthenticator]
	// seen is the file that was read last, good or bad.
	seen   fileVersion
	broken prometheus.Gauge
	logger *slog.Logger
}

// fileVersion tells one content of a file from another, without reading it.
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

// openTokens reads a token file, and follows it until ctx ends. At the start the file must be good.
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
	t.seen = versionOf(path)
	first, err := tokenfile.NewCSV(path)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	t.current.Store(first)
	t.broken.Set(0)
	// The directory, since most editors and every mounted Secret put a new file in the place of the old one.
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(path)); err != nil {
			err = errors.Join(err, watcher.Close())
		}
	}
	if err != nil {
		logger.Warn("changes of the token file are noticed late", "file", path, "interval", tokensLook, "error", err)
		watcher = &fsnotify.Watcher{}
	}
	go t.follow(ctx, watcher, err == nil)
	return t, nil
}

// AuthenticateToken implements authenticator.Token.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return t.current.Load().AuthenticateToken(ctx, token)
}

func (t *tokens) follow(ctx context.Context, watcher *fsnotify.Watcher, watching bool) {
	if watching {
		defer watcher.Close()
	}
	look := time.NewTicker(tokensLook)
	defer look.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
			settled = time.After(tokensSettle)
		case err := <-watcher.Errors:
			t.logger.Warn("changes of the token file are noticed late", "file", t.path, "interval", tokensLook, "error", err)
		case <-look.C:
			t.reload()
		case <-settled:
			settled = nil
			t.reload()
		}
	}
}

// reload reads the file when it is another than the one that was read last.
func (t *tokens) reload() {
	now := versionOf(t.path)
	if now.same(t.seen) {
		return
	}
	t.seen = now
	next, err := tokenfile.NewCSV(t.path)
	if err != nil {
		t.broken.Set(1)
		t.logger.Error("the token file cannot be read: the tokens that were read before stay valid", "file", t.path, "error", err)
		return
	}
	t.current.Store(next)
	t.broken.Set(0)
	t.logger.Info("read the token file again", "file", t.path)
}
