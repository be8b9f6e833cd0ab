package schema

import (
	"encoding/binary"
	"errors"
)

// errAnnounced is the error for a message that is shorter than its headers declare.
var errAnnounced = errors.New("the message is shorter than its headers declare")

// checkAnnounced checks that a MessagePack message is long enough for the lengths that its headers declare. The decoder
// allocates the declared size at once, so a message of nine bytes could make it request a hundred gigabytes:
// https://github.com/msgpack/msgpack/blob/master/spec.md
func checkAnnounced(b []byte) error {
	for len(b) > 0 {
		code := b[0]
		b = b[1:]
		// size is the number of bytes of the length field. skip is the number of payload bytes without headers. items
		// is the number of values that follow, each of at least one byte.
		size, skip, items := 0, 0, 0
		switch {
		case code <= 0x7f || code >= 0xe0 || code >= 0xc0 && code <= 0xc3: // small numbers, nil, booleans
		case code <= 0x8f:
			items = 2 * int(code&0x0f)
		case code <= 0x9f:
			items = int(code & 0x0f)
		case code <= 0xbf:
			skip = int(code & 0x1f)
		case code >= 0xc4 && code <= 0xc6: // bytes
			size = 1 << (code - 0xc4)
		case code >= 0xc7 && code <= 0xc9: // extensions, with a byte for their type
			size, skip = 1<<(code-0xc7), 1
		case code == 0xca:
			skip = 4
		case code == 0xcb:
			skip = 8
		case code >= 0xcc && code <= 0xcf:
			skip = 1 << (code - 0xcc)
		case code >= 0xd0 && code <= 0xd3:
			skip = 1 << (code - 0xd0)
		case code >= 0xd4 && code <= 0xd8: // extensions of a fixed length
			skip = 1 + 1<<(code-0xd4)
		case code >= 0xd9 && code <= 0xdb: // strings
			size = 1 << (code - 0xd9)
		case code == 0xdc || code == 0xdd: // arrays
			size = 2 << (code - 0xdc)
		default: // maps
			size = 2 << (code - 0xde)
		}
		if size > 0 {
			if len(b) < size {
				return errAnnounced
			}
			n := int(binary.BigEndian.Uint32(append(make([]byte, 4-size, 4), b[:size]...)))
			b = b[size:]
			switch {
			case code == 0xdc || code == 0xdd:
				items = n
			case code >= 0xde:
				items = 2 * n
			default:
				skip += n
			}
		}
		if skip > len(b) || items > len(b)-skip {
			return errAnnounced
		}
		b = b[skip:]
	}
	return nil
}
