package contain

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"sync"
)

// The user IDs of providers are in a range that neither distributions nor container managers use; see
// https://systemd.io/UIDS-GIDS/. In a user namespace without this range, they are in its largest range.
const (
	firstUser  = 1879048192
	countUsers = 1 << 27
	// smallestUser is the first user ID in a small range, above the machine's own users.
	smallestUser = 20000
	// fewestUsers is the minimum size of a range.
	fewestUsers = 1000
)

// users assigns a user ID to each provider. The ID is a hash of the provider's address, so that files keep their owner
// after a restart and on other machines. If two providers of a server have the same hash, the second gets the next free
// ID.
type users struct {
	first, count uint32

	mu    sync.Mutex
	taken map[uint32]string
}

// idOf returns the user ID of a provider, which is also its group ID.
func (u *users) idOf(source string) int {
	sum := sha256.Sum256([]byte(source))
	n := binary.BigEndian.Uint32(sum[:]) % u.count
	u.mu.Lock()
	defer u.mu.Unlock()
	for {
		id := u.first + n
		if by, ok := u.taken[id]; !ok || by == source {
			u.taken[id] = source
			return int(id)
		}
		n = (n + 1) % u.count
	}
}

// newUsers returns the user IDs that both maps of a user namespace contain; nil if there are too few. The maps have the
// format of /proc/PID/uid_map.
func newUsers(uids, gids io.Reader) *users {
	first, end := widest(uids)
	firstGroup, endGroup := widest(gids)
	first, end = max(first, firstGroup), min(end, endGroup)
	switch {
	case first <= firstUser && end >= firstUser+countUsers:
		first, end = firstUser, firstUser+countUsers
	case end > 1<<17: // in a large range, the upper half is the least likely to be in use
		first = first + (end-first)/2
	default:
		first = max(first, smallestUser)
	}
	if end < first+fewestUsers {
		return nil
	}
	return &users{first: uint32(first), count: uint32(min(end-first, countUsers)), taken: map[uint32]string{}}
}

// widest returns the largest range of a map, in the IDs of the user namespace.
func widest(m io.Reader) (first, end uint64) {
	for lines := bufio.NewScanner(m); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		from, err1 := strconv.ParseUint(fields[0], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 33)
		if err1 == nil && err2 == nil && count > end-first {
			first, end = from, from+count
		}
	}
	return first, end
}
