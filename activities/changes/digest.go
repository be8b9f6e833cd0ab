package changes

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// Digest hashes everything that an approval covers.
type Digest struct{ hash.Hash }

// NewDigest returns the digest of a plan without changes.
func NewDigest() Digest { return Digest{sha256.New()} }

// Add adds what an approval covers of a change; see Covered. The order of the changes matters.
func (d Digest) Add(covered []byte) { d.Write(covered) }

// HashOf returns a short hash of what an approval covers of a change. It is never 0.
func HashOf(covered []byte) uint64 {
	sum := sha256.Sum256(covered)
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// Covered returns what an approval covers of a change, as one line of JSON.
func Covered(c *ledger.Change) []byte {
	var out bytes.Buffer
	// Encoding plain strings, numbers and bytes cannot fail.
	_ = json.NewEncoder(&out).Encode(struct {
		Index   int32
		Address string
		Object  v1alpha1.ObjectReference
		Version string
		Config  string
		Action  v1alpha1.Action
		Bound   ledger.Preconditions
		Planned []byte
		Deposed string                  `json:",omitempty"`
		First   bool                    `json:",omitempty"`
		Forget  bool                    `json:",omitempty"`
		Import  *v1alpha1.PlanImport    `json:",omitempty"`
		From    string                  `json:",omitempty"`
		Checks  bool                    `json:",omitempty"`
		Records bool                    `json:",omitempty"`
		Blocked string                  `json:",omitempty"`
		Secrets []v1alpha1.PlanSecret   `json:",omitempty"`
		To      []v1alpha1.PlanArgument `json:",omitempty"`
		Origins []ledger.Origin         `json:",omitempty"`
	}{
		c.Index, c.Address, c.Object, c.ProviderVersion, c.ProviderConfig, c.Action, c.Preconditions, c.Planned,
		c.Deposed, c.CreateBeforeDestroy, c.Forget, c.Importing, c.PreviousAddress, c.Checks, c.UpdatesRecord,
		c.Blocked,
		c.Secrets, c.ProviderArguments, c.Origins,
	})
	return out.Bytes()
}

// String returns the digest in the format of a Plan's status.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d.Sum(nil)) }
