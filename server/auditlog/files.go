package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rotated returns the name of a rotated file, whose first record has the sequence number.
func rotated(log string, first uint64) string {
	ext := filepath.Ext(log)
	return fmt.Sprintf("%s-%012d%s", strings.TrimSuffix(log, ext), first, ext)
}

// firstOf returns the sequence number in the name of a rotated file.
func firstOf(log, name string) (first uint64, ok bool) {
	ext := filepath.Ext(log)
	number, ok := strings.CutPrefix(strings.TrimSuffix(name, ext), strings.TrimSuffix(log, ext)+"-")
	first, err := strconv.ParseUint(number, 10, 64)
	return first, ok && err == nil && rotated(log, first) == name
}

// files returns the files of a log, the oldest first: their numbers have the same length, and os.ReadDir sorts by name.
func files(log string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(log))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	var old []string
	current := false
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(log), e.Name())
		if _, ok := firstOf(log, path); ok {
			old = append(old, path)
		}
		current = current || path == log
	}
	if current {
		old = append(old, log)
	}
	return old, nil
}

// tailChunk is the amount that lastRecord reads at a time.
const tailChunk = 1 << 20

// lastRecord returns the last record of a file with a valid code, its end, and the incomplete line at the end of the
// file. The record is empty if the file has none.
func lastRecord(key []byte, path string) (last record, torn []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return record{}, nil, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return record{}, nil, fmt.Errorf("read audit log: %w", err)
	}
	for chunk := int64(tailChunk); ; chunk *= 4 {
		from := max(0, info.Size()-chunk)
		data := make([]byte, info.Size()-from)
		if _, err := f.ReadAt(data, from); err != nil {
			return record{}, nil, fmt.Errorf("read audit log: %w", err)
		}
		lines := bytes.Split(data, []byte("\n"))
		torn = lines[len(lines)-1]
		for _, line := range slices.Backward(lines[:len(lines)-1]) {
			if r, err := open(key, line); err == nil {
				return r, torn, nil
			}
		}
		if from == 0 {
			return record{}, torn, nil
		}
	}
}

// firstRecord returns the sequence number of the first record of a file.
func firstRecord(key []byte, path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	r, err := open(key, bytes.TrimSuffix(line, []byte("\n")))
	return r.Sequence, err
}
