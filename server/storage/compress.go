package storage

import (
	_ "embed" // for dictionary1
	"fmt"

	"github.com/klauspost/compress/s2"
)

// This file compresses the rows of the ledger. They are short and alike, so a dictionary has the parts that most rows
// have.

const (
	// plain is the first byte of a row whose content follows as it is. It is left out unless the content begins with
	// one of these bytes.
	plain byte = iota
	// compressed1 is the first byte of a row that was compressed with dictionary1.
	compressed1
)

// minCompressed is the minimum size of the rows that are compressed.
const minCompressed = 128

// dictionary1 must stay as it is, because stored rows need it. A better dictionary needs another first byte.
//
//go:embed compress1.dict
var dictionary1 []byte

var dict1 = s2.MakeDict(dictionary1, nil)

// compress returns the content of a row as it is stored.
func compress(content []byte) []byte {
	if len(content) >= minCompressed {
		out := make([]byte, 1, 1+s2.MaxEncodedLen(len(content)))
		out[0] = compressed1
		if block := dict1.Encode(out[1:cap(out)], content); len(block) < len(content) {
			return out[:1+len(block)]
		}
	}
	if len(content) > 0 && content[0] <= compressed1 {
		return append([]byte{plain}, content...)
	}
	return content
}

// decompress returns the content of a stored row.
func decompress(row []byte) ([]byte, error) {
	if len(row) == 0 || row[0] > compressed1 {
		return row, nil
	}
	if row[0] == plain {
		return row[1:], nil
	}
	content, err := dict1.Decode(nil, row[1:])
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return content, nil
}
