// Package backup is the format of backups: a tar archive with the rows of a database of any kind, and a manifest that
// authenticates them. It imports nothing of Hykube, and knows no database and no key.
//
// The entries of an archive, in this order:
//
//	hykube-backup.json   Header: the format, and the version that wrote it
//	objects/000001.cbor  rows of kine's table in the order of their revisions, as a CBOR sequence (RFC 8742); then
//	                     000002, ...
//	ledger/000001.cbor   rows of the ledger in the order of their revisions; then 000002, ...
//	manifest.json        Manifest: what the archive has, with the SHA-256 of each part
//	manifest.hmac        the code of manifest.json
package backup

import (
	"errors"
	"fmt"
	"time"
)

// Format is the format that this version writes, and the newest that it reads.
const Format = 1

// The names of the entries of an archive.
const (
	headerName   = "hykube-backup.json"
	manifestName = "manifest.json"
	codeName     = "manifest.hmac"
)

// The tables of an archive. Each part is named by its table and a number.
const (
	tableObjects = "objects"
	tableLedger  = "ledger"
)

const (
	// partBytes is the size after which a part ends. One row may exceed it.
	partBytes = 1 << 20
	// maxPartBytes is the maximum size of a part that a reader accepts, and maxTextBytes that of another entry.
	maxPartBytes = 256 << 20
	maxTextBytes = 64 << 20
)

// Header is the first entry.
type Header struct {
	Format int `json:"format"`
	// Version is the version of Hykube that wrote the archive.
	Version string `json:"version"`
}

// Manifest describes an archive. It has no secret: the data keys in Keyring are encrypted with the root key.
type Manifest struct {
	Header
	// Time is the time of the snapshot.
	Time time.Time `json:"time"`
	// Installation is the identity of the database.
	Installation string `json:"installation"`
	Objects      Table  `json:"objects"`
	Ledger       Table  `json:"ledger"`
	// Epoch is that of the lease of the database; 0 without one.
	Epoch int64 `json:"epoch"`
	// Audit is the last record of the audit log that the server had written before the snapshot; nil without an audit
	// log.
	Audit *AuditHead `json:"audit,omitempty"`
	// RootKey is the key that a restore needs.
	RootKey RootKey `json:"rootKey"`
	// DataKey is the ID of the data key that authenticates the manifest. Keyring has it, encrypted with the root key.
	DataKey string `json:"dataKey"`
	Keyring []byte `json:"keyring"`
	// Parts are the parts in their order.
	Parts []Part `json:"parts"`
}

// Table describes the rows of a table.
type Table struct {
	// Revision is the last revision.
	Revision int64 `json:"revision"`
	Rows     int64 `json:"rows"`
	// Bytes are the bytes of the parts.
	Bytes int64 `json:"bytes"`
}

// AuditHead is a record of the audit log.
type AuditHead struct {
	Sequence uint64 `json:"sequence"`
	Code     string `json:"code"`
}

// RootKey names a root key without the key.
type RootKey struct {
	// ID is the ID of a key in a file. It is empty if an EncryptionConfiguration encrypts the keyring, such as a KMS
	// plugin.
	ID string `json:"id,omitempty"`
	// Configuration is true if the database was encrypted with an EncryptionConfiguration, which a restore needs, too.
	Configuration bool `json:"encryptionProviderConfig,omitempty"`
}

func (k RootKey) String() string {
	switch {
	case k.ID == "":
		return "the key or the KMS plugin of --encryption-provider-config"
	case k.Configuration:
		return "the root key " + k.ID + ", and the file of --encryption-provider-config"
	}
	return "the root key " + k.ID
}

// Part describes a part.
type Part struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 []byte `json:"sha256"`
}

// Object is a row of kine's table.
type Object struct {
	_ struct{} `cbor:",toarray"`
	// ID is the revision.
	ID               int64
	Name             string
	Created, Deleted bool
	CreateRevision   int64
	PrevRevision     int64
	Lease            int64
	// Value and Old are the value of the row and that of the row before, encrypted; nil if the database has none.
	Value, Old []byte
}

// Record is a row of the ledger.
type Record struct {
	_        struct{} `cbor:",toarray"`
	Name     []byte
	Value    []byte // encrypted
	Revision int64
}

// ErrDamaged is wrapped by the errors of an archive that is truncated, or that was changed.
var ErrDamaged = errors.New("the backup is damaged, or was changed")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
