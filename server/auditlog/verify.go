package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Report is the result of Verify.
type Report struct {
	// Files are the verified files, the oldest first. Records is the number of their valid records.
	Files   []string
	Records int
	// First and Last are the sequence numbers of the first and last valid record; From and To their times.
	First, Last uint64
	From, To    time.Time
	// Problems are the changed and missing records.
	Problems []Finding
	// Notes are events that the log names itself, such as an interrupted write.
	Notes []Finding
}

// Finding is a problem or a note about a line of a log.
type Finding struct {
	File string
	// Line is the number of the line; 0 means the whole file.
	Line int
	// Time is the time of the record; zero if it is unknown.
	Time time.Time
	Text string
}

// Verify checks every record of a log, and that none is missing. head is the stored head; nil means that it is unknown.
// Verify then cannot notice missing records at either end.
func Verify(path string, key []byte, head *Head) (*Report, error) {
	all, err := files(path)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("verify audit log: there is no file %q", path)
	}
	v := &verifier{key: key, head: head, Report: &Report{Files: all}}
	for _, v.file = range all {
		if err := v.read(v.file == all[len(all)-1]); err != nil {
			return nil, err
		}
	}
	v.end()
	return v.Report, nil
}

type verifier struct {
	*Report
	key  []byte
	head *Head
	file string
	line int
	at   time.Time
	// last is the latest valid record, and changed the number of changed lines after it.
	last    link
	changed uint64
}

func (v *verifier) problem(format string, args ...any) {
	v.Problems = append(v.Problems, Finding{v.file, v.line, v.at, fmt.Sprintf(format, args...)})
}

func (v *verifier) note(format string, args ...any) {
	v.Notes = append(v.Notes, Finding{v.file, v.line, v.at, fmt.Sprintf(format, args...)})
}

func (v *verifier) read(newest bool) error {
	f, err := os.Open(v.file)
	if err != nil {
		return fmt.Errorf("verify audit log: %w", err)
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 64<<10)
	for v.line = 1; ; v.line++ {
		line, err := lines.ReadBytes('\n') // of any length
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) && newest:
			v.at = time.Time{}
			v.note("the last line is incomplete: a write is running, or was interrupted; the server removes the line at its next start")
			return nil
		case errors.Is(err, io.EOF):
			v.problem("the last line is incomplete")
			return nil
		case err != nil:
			return fmt.Errorf("verify audit log: %w", err)
		}
		v.check(bytes.TrimSuffix(line, []byte("\n")))
	}
}

// check checks one line.
func (v *verifier) check(line []byte) {
	r, err := open(v.key, line)
	v.at = r.at
	if err != nil {
		v.problem("%v", err)
		v.changed++
		return
	}
	v.Records++
	switch {
	case v.last.Sequence == 0:
		v.First, v.From = r.Sequence, r.at
		v.begin(r)
	case r.Sequence <= v.last.Sequence:
		v.problem("record %d is out of order, or a copy: it follows record %d", r.Sequence, v.last.Sequence)
		return
	case r.Sequence-v.last.Sequence-1 > v.changed:
		v.problem("%s missing before this line", span(v.last.Sequence+v.changed+1, r.Sequence-1))
	case r.Sequence-v.last.Sequence-1 < v.changed:
		v.problem("a line before this one was inserted")
	case r.Sequence == v.last.Sequence+1 && r.previous != v.last.Code:
		v.problem("record %d does not continue record %d: the log, or its server's data, was replaced by an older copy",
			r.Sequence, v.last.Sequence)
	}
	v.explain(r)
	v.last, v.changed = r.link, 0
	v.Last, v.To = r.Sequence, r.at
	if v.head != nil && r.Sequence == v.head.Sequence && r.Code != v.head.Code {
		v.problem("record %d is not the one that the server wrote", r.Sequence)
	}
}

// begin checks that the log begins with the oldest record that the server keeps.
func (v *verifier) begin(r record) {
	if v.head != nil && v.head.First > 0 && r.Sequence > v.head.First {
		v.problem("%s missing before this line, and the server did not remove such records",
			span(v.head.First, r.Sequence-1))
	}
}

// explain adds the notes of a record about the log itself.
func (v *verifier) explain(r record) {
	if torn, ok := r.annotations[tornKey]; ok {
		v.note("the server was interrupted while it wrote a line, and kept what was written: %.200s", torn)
	}
	if lost, ok := r.annotations[lostKey]; ok {
		v.note("%s events before this line could not be written", lost)
	}
}

// end checks the end of the log.
func (v *verifier) end() {
	v.line, v.at = 0, time.Time{}
	if v.Records == 0 {
		v.problem("the log has no valid record: the key is that of another log, or every record was changed")
		return
	}
	if last := v.last.Sequence + v.changed; v.head != nil && v.head.Sequence > last {
		v.problem("%s missing at the end", span(last+1, v.head.Sequence))
	}
}

// span names records as the subject of a sentence.
func span(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("record %d is", first)
	}
	return fmt.Sprintf("records %d to %d are", first, last)
}
