// Package auditlog writes the audit log: Kubernetes' audit events as lines of JSON, in files of bounded size and
// number. Each record authenticates the one before it with a key of the server, so that a missing or changed record is
// found.
package auditlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// headInterval is the interval at which the log syncs its file and stores its head, if there are new records.
const headInterval = 5 * time.Second

// keptTorn is the length of an incomplete line that the next record keeps.
const keptTorn = 1 << 10

// Config configures a Log.
type Config struct {
	// Path is the file of the log. KeyFile is that of its key.
	Path, KeyFile string
	// MaxBytes is the size at which a file is rotated; 0 means no rotation. MaxFiles is the maximum number of rotated
	// files, and MaxAge their maximum age; 0 means no limit.
	MaxBytes int64
	MaxFiles int
	MaxAge   time.Duration
	// Heads stores the head of the log.
	Heads  *Heads
	Logger *slog.Logger
}

// Log is an open audit log. It implements io.Writer: each call writes one event.
type Log struct {
	cfg  Config
	key  []byte
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	file *os.File
	size int64
	last link
	// first is the sequence number of the first record of the file; oldest is that of the oldest file.
	first, oldest uint64
	saved         link
	// lost is the number of events that could not be written since the last record.
	lost int
}

// Open opens the log, and continues its chain.
func Open(ctx context.Context, cfg Config) (_ *Log, err error) {
	l := &Log{cfg: cfg, stop: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o700); err != nil {
		return nil, fmt.Errorf("create directory of audit log: %w", err)
	}
	if l.key, err = ownKey(cfg.KeyFile, cfg.Path); err != nil {
		return nil, err
	}
	head, err := cfg.Heads.Load(ctx)
	if err != nil {
		return nil, err
	}
	note, err := l.resume(head)
	if err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(cfg.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if err := l.begin(note); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	l.done.Go(l.keepHead)
	return l, nil
}

// resume finds the end of the chain. It removes an incomplete line from the end of the file, since readers of the log
// expect whole lines; the first record keeps its text. If the stored head is later than the end of the chain, records
// are missing. The chain then continues from the head, so that the gap stays visible.
func (l *Log) resume(head Head) (note map[string]string, err error) {
	note = map[string]string{}
	all, err := files(l.cfg.Path)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0 && l.last.Sequence == 0; i-- {
		last, torn, err := lastRecord(l.key, all[i])
		if err != nil {
			return nil, err
		}
		l.last = last.link
		if all[i] == l.cfg.Path && len(torn) > 0 {
			if err := l.removeTorn(torn); err != nil {
				return nil, err
			}
			note[tornKey] = string(torn[:min(len(torn), keptTorn)])
			l.cfg.Logger.Warn("the last line of the audit log was incomplete; the first record of this start keeps it",
				"file", l.cfg.Path)
		}
	}
	l.oldest = head.First
	if head.Sequence > l.last.Sequence {
		note[missingKey] = fmt.Sprintf("%d-%d", l.last.Sequence+1, head.Sequence)
		l.cfg.Logger.Error("records of the audit log are missing; see hykube audit verify", "file", l.cfg.Path,
			"records", note[missingKey])
		l.last = head.link
	}
	l.saved = head.link
	return note, nil
}

func (l *Log) removeTorn(torn []byte) error {
	info, err := os.Stat(l.cfg.Path)
	if err == nil {
		err = os.Truncate(l.cfg.Path, info.Size()-int64(len(torn)))
	}
	if err != nil {
		return fmt.Errorf("remove the incomplete line of the audit log: %w", err)
	}
	return nil
}

// begin writes the first record after a start.
func (l *Log) begin(note map[string]string) error {
	if err := os.Chmod(l.cfg.Path, 0o600); err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	l.size, l.first = info.Size(), l.last.Sequence+1
	if l.size > 0 {
		if first, err := firstRecord(l.key, l.cfg.Path); err == nil {
			l.first = first
		}
	}
	if l.oldest == 0 {
		l.oldest = l.first
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendOwn("start", note)
}

// Write writes one event. After an error, the file is as before.
func (l *Log) Write(event []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.recover(); err != nil {
		l.lost++
		return 0, err
	}
	if err := l.append(event); err != nil {
		l.lost = 1
		l.cfg.Logger.Error("the audit log cannot be written", "file", l.cfg.Path, "error", err)
		return 0, err
	}
	return len(event), nil
}

// recover writes a record about lost events, if there are any.
func (l *Log) recover() error {
	if l.lost == 0 {
		return nil
	}
	if err := l.appendOwn("lose", map[string]string{lostKey: strconv.Itoa(l.lost)}); err != nil {
		return err
	}
	l.cfg.Logger.Info("the audit log can be written again", "file", l.cfg.Path, "lost", l.lost)
	l.lost = 0
	return nil
}

// appendOwn writes an event about the log itself.
func (l *Log) appendOwn(verb string, note map[string]string) error {
	line, err := ownEvent(verb, note)
	if err != nil {
		return err
	}
	return l.append(line)
}

// append seals an event and writes it.
func (l *Log) append(event []byte) error {
	line, next := seal(l.key, event, l.last)
	if l.cfg.MaxBytes > 0 && l.size > 0 && l.size+int64(len(line)) > l.cfg.MaxBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if _, err := l.file.Write(line); err != nil {
		// A part of the line may have been written, and must not stay before the next one.
		return errors.Join(fmt.Errorf("write audit log: %w", err), l.file.Truncate(l.size))
	}
	l.size, l.last = l.size+int64(len(line)), next
	return nil
}

// rotate renames the file and begins a new one.
func (l *Log) rotate() error {
	old := l.file
	if err := os.Rename(l.cfg.Path, rotated(l.cfg.Path, l.first)); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(fmt.Errorf("rotate audit log: %w", err), os.Rename(rotated(l.cfg.Path, l.first), l.cfg.Path))
	}
	if err := errors.Join(old.Sync(), old.Close()); err != nil {
		l.cfg.Logger.Warn("close rotated audit log", "error", err)
	}
	l.file, l.size, l.first = f, 0, l.last.Sequence+1
	return nil
}

// Check returns an error while events cannot be written. It tries again, so that a server without requests recovers.
func (l *Log) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.recover(); err != nil {
		return fmt.Errorf("the audit log cannot be written, and %d events are lost: %w", l.lost, err)
	}
	return nil
}

// Head returns the current head.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Head{link: l.last, First: l.oldest}
}

// keepHead stores the head while the log is open.
func (l *Log) keepHead() {
	ticker := time.NewTicker(headInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.saveHead()
		case <-l.stop:
			l.saveHead()
			return
		}
	}
}

// saveHead syncs the file, stores the head, and then removes old files. In this order, the stored head never names
// records that a crash may have lost, or that were removed.
func (l *Log) saveHead() {
	ctx, cancel := context.WithTimeout(context.Background(), headInterval)
	defer cancel()
	l.mu.Lock()
	file, last := l.file, l.last
	remove, oldest := l.outdated()
	l.mu.Unlock()
	if last == l.saved && len(remove) == 0 {
		return
	}
	// A rotation since then has synced and closed the file.
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		l.cfg.Logger.Error("sync audit log", "error", err)
		return
	}
	if err := l.cfg.Heads.Save(ctx, Head{link: last, First: oldest}); err != nil {
		l.cfg.Logger.Error("store the head of the audit log", "error", err)
		return
	}
	l.mu.Lock()
	l.saved, l.oldest = last, oldest
	l.mu.Unlock()
	for _, path := range remove {
		if err := os.Remove(path); err != nil {
			l.cfg.Logger.Error("remove old audit log", "error", err)
		}
	}
}

// outdated returns the rotated files to remove, and the sequence number of the first record that stays.
func (l *Log) outdated() (remove []string, oldest uint64) {
	all, err := files(l.cfg.Path)
	if err != nil || len(all) == 0 {
		return nil, l.oldest
	}
	old := all[:len(all)-1]
	for i, path := range old {
		tooMany := l.cfg.MaxFiles > 0 && len(old)-i > l.cfg.MaxFiles
		info, err := os.Stat(path)
		tooOld := l.cfg.MaxAge > 0 && err == nil && time.Since(info.ModTime()) > l.cfg.MaxAge
		if !tooMany && !tooOld {
			break
		}
		remove = append(remove, path)
	}
	if len(remove) == 0 {
		return nil, l.oldest
	}
	if first, ok := firstOf(l.cfg.Path, all[len(remove)]); ok {
		return remove, first
	}
	return remove, l.first
}

// Close stores the head and closes the file.
func (l *Log) Close() error {
	close(l.stop)
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
