package auditlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/hykube/hykube/internal/audit"
)

// Call is a call to a provider that changes infrastructure, as the log has it.
type Call struct {
	Began     time.Time
	Operation audit.Operation
	// Type is the Terraform type, and Namespace and Name those of the object.
	Type, Namespace, Name string
	Plan                  string
	// Outcome is Succeeded, Failed or Unknown; empty if the log has no record after the call.
	Outcome string
}

// callRecord is the record of a call.
type callRecord struct {
	AuditID   string          `json:"auditID"`
	Verb      audit.Operation `json:"verb"`
	Received  time.Time       `json:"requestReceivedTimestamp"`
	ObjectRef struct {
		Namespace, Name, Subresource string
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Calls returns the calls of a log that have a record after the one with the sequence number, in the order of their
// first such record. It does not verify the log.
func Calls(path string, after uint64) (calls []Call, err error) {
	all, err := files(path)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("read audit log: there is no file %q", path)
	}
	if err != nil {
		return nil, err
	}
	places := map[string]int{} // by the ID of the call
	for _, file := range all {
		err := eachLine(file, func(line []byte) {
			var r callRecord
			// verify reports a damaged line
			if json.Unmarshal(line, &r) != nil || r.ObjectRef.Subresource != "provider" {
				return
			}
			if sequence, _ := strconv.ParseUint(r.Annotations[sequenceKey], 10, 64); sequence <= after {
				return
			}
			at, known := places[r.AuditID]
			if !known {
				at, calls = len(calls), append(calls, Call{
					Began: r.Received, Operation: r.Verb, Type: r.Annotations[audit.Prefix+"type"],
					Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name, Plan: r.Annotations[audit.Prefix+"plan"],
				})
				places[r.AuditID] = at
			}
			calls[at].Outcome = r.Annotations[audit.Prefix+"outcome"]
		})
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
	}
	return calls, nil
}

// eachLine calls do with each complete line of a file.
func eachLine(path string, do func([]byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := lines.ReadBytes('\n') // of any length
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		do(line)
	}
}
