package auditlog

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/internal/audit"
)

// Each record has three annotations at the end of its line: its sequence number, the code of the previous record, and
// its own code. The code authenticates every byte of the line before it, so also the code of the previous record.
const (
	sequenceKey = audit.Prefix + "sequence"
	previousKey = audit.Prefix + "previous"
	codeKey     = audit.Prefix + "mac"
)

// Annotations of records about the log itself.
const (
	// tornKey has an incomplete line that the server found at its start.
	tornKey = audit.Prefix + "torn"
	// missingKey has the records that were missing at the start.
	missingKey = audit.Prefix + "missing"
	// lostKey has the number of events that could not be written.
	lostKey = audit.Prefix + "lost"
)

// link is the place of a record in the chain.
type link struct {
	Sequence uint64 `json:"sequence"`
	Code     string `json:"mac"`
}

// sealBytes is the usual size of the annotations of a record.
const sealBytes = 256

// seal appends the annotations to an event, which is one line of JSON. annotations is the last field of an event, so
// the line ends with "}} if the event has annotations.
func seal(key, line []byte, previous link) ([]byte, link) {
	event := bytes.TrimRight(line, "\n")
	body := make([]byte, 0, len(event)+sealBytes)
	if inner, ok := bytes.CutSuffix(event, []byte(`"}}`)); ok {
		body = append(append(body, inner...), `",`...)
	} else {
		body = append(append(body, event[:len(event)-1]...), `,"annotations":{`...)
	}
	next := link{Sequence: previous.Sequence + 1}
	body = fmt.Appendf(body, `"%s":"%d","%s":"%s"`, sequenceKey, next.Sequence, previousKey, previous.Code)
	next.Code = code(key, body)
	return fmt.Appendf(body, `,"%s":"%s"}}`+"\n", codeKey, next.Code), next
}

func code(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// record is a line of the log.
type record struct {
	link
	previous    string
	at          time.Time
	annotations map[string]string
}

// errChanged is the error for a line that differs from the one that the server wrote.
var errChanged = errors.New("the record was changed, or the server did not write it")

// open checks the code of a line without its newline, and returns the record. After an error, the record has the fields
// that it could read.
func open(key, line []byte) (record, error) {
	var ev struct {
		StageTimestamp time.Time         `json:"stageTimestamp"`
		Annotations    map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(line, &ev); err != nil {
		return record{}, errChanged
	}
	r := record{previous: ev.Annotations[previousKey], at: ev.StageTimestamp, annotations: ev.Annotations}
	r.Code = ev.Annotations[codeKey]
	r.Sequence, _ = strconv.ParseUint(ev.Annotations[sequenceKey], 10, 64)
	at := bytes.LastIndex(line, []byte(`,"`+codeKey+`":"`))
	if at < 0 || r.Sequence == 0 {
		return r, errChanged
	}
	want := code(key, line[:at])
	if !hmac.Equal(line[at:], fmt.Appendf(nil, `,"%s":"%s"}}`, codeKey, want)) {
		return r, errChanged
	}
	return r, nil
}

// keyBytes is the length of the key.
const keyBytes = 32

// ReadKey reads the key of a log.
func ReadKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key of audit log: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("read key of audit log %q: it has %d bytes instead of %d; restore it from a backup",
			path, len(key), keyBytes)
	}
	return key, nil
}

// ownKey reads the key, or generates it for a new log.
func ownKey(path, log string) ([]byte, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if files, err := files(log); err != nil || len(files) > 0 {
		return nil, errors.Join(err, fmt.Errorf(
			"read key of audit log %q: %w, and the server cannot verify the log %q without it; restore the file from a backup, or move the log to another directory to begin a new one", path, fs.ErrNotExist, log))
	}
	key = make([]byte, keyBytes)
	rand.Read(key) // rand.Read never fails: https://pkg.go.dev/crypto/rand#Read
	if err := atomicfile.Write(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("write key of audit log: %w", err)
	}
	return key, nil
}
