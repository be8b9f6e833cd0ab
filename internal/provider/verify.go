package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/internal/provider/registry"
	"github.com/hykube/hykube/internal/provider/signature"
	"github.com/hykube/hykube/internal/provider/trust"
)

// Trust has the requirements of a Provider object for its package.
type Trust struct {
	// Checksums are the accepted "h1:" and "zh:" checksums; empty accepts all.
	Checksums []string
	// SigningKeys are armored public keys or fingerprints, one of which must have signed; empty accepts every key that
	// the registry names.
	SigningKeys []string
	// Kept accepts an installed package that met the requirements at its installation. Only the sources and the signing
	// keys of the trust policy apply to it.
	Kept bool
}

// Requirements are those of a Provider and of the trust policy for a package.
type Requirements struct {
	source    Source
	checksums []string
	// keys are sets of trusted keys. One key of each set must have signed.
	keys []signature.Keys
	// signed requires a signature of packages from mirrors, too.
	signed bool
	// mirrorsMatch requires of a package from a mirror that the registry has it, or that checksums list it.
	mirrorsMatch bool
}

// Require returns the requirements for a source. It returns a *trust.RefusedError if the policy does not allow the
// source or the Provider.
func Require(policy *trust.Policy, s Source, t Trust) (Requirements, error) {
	rule, err := policy.Rule(s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return Requirements{}, err
	}
	if rule.RequireChecksums && len(t.Checksums) == 0 && !t.Kept {
		return Requirements{}, &trust.RefusedError{Source: s.String(), Rule: rule.Name, Path: rule.Path,
			NoChecksums: true}
	}
	own, err := signature.ParseKeys(t.SigningKeys)
	if err != nil {
		return Requirements{}, fmt.Errorf("use spec.signingKeys: %w", err)
	}
	need := Requirements{source: s, checksums: t.Checksums, mirrorsMatch: rule.MirrorsMustMatch && !t.Kept,
		signed: rule.RequireSignature}
	for _, keys := range []signature.Keys{own, rule.Keys()} {
		if !keys.Empty() {
			need.keys, need.signed = append(need.keys, keys), true
		}
	}
	return need, nil
}

// evidence has the facts about the origin of a package. The record keeps it, so that a later start or a
// change of the requirements can verify the package again without the registry.
type evidence struct {
	// Archive is the SHA-256 checksum of the zip file; empty for an unpacked package.
	Archive string `json:"archive,omitempty"`
	// Hashes are the checksums that a network mirror names.
	Hashes []string `json:"hashes,omitempty"`
	// Signed is the publisher's list of checksums; nil if it is not known.
	Signed *registry.SignedSums `json:"signed,omitempty"`
}

// Knowledge names where the checksum of a package was known from.
type Knowledge int

const (
	// Nothing: the package is from a mirror without checksums.
	Nothing Knowledge = iota
	// FromMirror: the network mirror names the checksum.
	FromMirror
	// FromSignedList: the publisher's signed list has the checksum.
	FromSignedList
	// FromSpec: spec.checksums has the checksum.
	FromSpec
)

// Verification has the results of the verification of a package.
type Verification struct {
	// Checksum is the checksum that matched. Without one, it is the package's "h1:" checksum.
	Checksum  string
	KnownFrom Knowledge
	// Archive is the "zh:" checksum of the zip file; empty for an unpacked package.
	Archive string
	// From names the mirror or registry of the package.
	From string
	// Signer signed the list of checksums; it is empty if no signature was verified.
	Signer signature.Signer
	// SignedBy names the mirror or registry of the signed list.
	SignedBy string
}

const archivePrefix = "zh:"

// verify verifies a package against the requirements. It may ask the registry for the signed list of checksums, which
// it adds to the record.
func (in *Installer) verify(ctx context.Context, need Requirements, version string, r *record) (Verification, error) {
	v := Verification{Checksum: r.Checksum, From: r.From}
	if r.Archive != "" {
		v.Archive = archivePrefix + r.Archive
	}
	if err := need.verifySigned(ctx, in, version, r, &v); err != nil {
		return Verification{}, err
	}
	if have := r.among(r.Hashes); v.KnownFrom == Nothing && have != "" {
		v.KnownFrom, v.Checksum = FromMirror, have
	}
	if len(need.checksums) == 0 {
		return v, nil
	}
	if have := r.among(need.checksums); have != "" {
		v.KnownFrom, v.Checksum = FromSpec, have
		return v, nil
	}
	got := r.Checksum
	if v.Archive != "" {
		got += " and " + v.Archive
	}
	return Verification{}, need.mismatch(version, got)
}

// among returns the checksum of the package that a list has, or "".
func (r *record) among(list []string) string {
	for _, have := range []string{r.Checksum, archivePrefix + r.Archive} {
		if slices.Contains(list, have) {
			return have
		}
	}
	return ""
}

// mismatch is the error for a package that has none of the checksums of the Provider.
func (need Requirements) mismatch(version, got string) error {
	return &ChecksumError{What: strings.TrimSpace(fmt.Sprintf("provider %q %s", need.source, version)),
		Want: "one of spec.checksums", Got: got,
		Remedy: "if the checksums belong to another version, set spec.version to that one; else ask the publisher of the package"}
}

// beforeUnpack compares the checksum of a zip file with the Provider's, if none of these is for unpacked content.
func (need Requirements) beforeUnpack(archive string) error {
	if len(need.checksums) == 0 || len(withPrefix(need.checksums, archivePrefix)) < len(need.checksums) ||
		slices.Contains(need.checksums, archivePrefix+archive) {
		return nil
	}
	return need.mismatch("", archivePrefix+archive)
}

// verifySigned verifies the signed list of checksums, and that it has the package. It does nothing if no list is
// required and known.
func (need Requirements) verifySigned(ctx context.Context, in *Installer, version string, r *record,
	v *Verification) error {
	required := need.signed || need.mirrorsMatch && r.among(need.checksums) == ""
	known := r.Signed
	if known != nil && len(known.Keys) == 0 && len(need.keys) == 0 {
		known = nil // the list of a mirror, without a key to verify it
	}
	if known == nil && !required {
		return nil
	}
	if r.Archive == "" {
		return need.refuse(version, signature.Unsigned,
			"the package is unpacked, so no signature covers it; put the publisher's zip file into the mirror")
	}
	if known == nil {
		var err error
		if known, err = in.askRegistry(ctx, need.source, version); err != nil {
			return need.refuse(version, signature.Unsigned,
				fmt.Sprintf("it is from a mirror, and the registry's list of checksums could not be read: %v", err))
		}
	}
	signer, err := need.signer(version, in.platform, known)
	if err != nil {
		return err
	}
	sum, ok := known.Sum()
	switch {
	case !ok:
		return need.refuse(version, signature.Unsigned,
			fmt.Sprintf("the signed list of checksums does not name %q", known.Filename))
	case sum != r.Archive:
		return &ChecksumError{What: fmt.Sprintf("provider %q %s from %s", need.source, version, r.From),
			Want: "SHA-256 " + sum + " (as the publisher signed it)", Got: r.Archive,
			Remedy: "it was changed after it was published; ask the operator of the mirror"}
	}
	r.Signed = known
	v.KnownFrom, v.Checksum, v.Signer, v.SignedBy = FromSignedList, v.Archive, signer, known.From
	return nil
}

// refuse returns the error for a missing or unacceptable signature. reason is a clause.
func (need Requirements) refuse(version string, p signature.Problem, reason string) error {
	return &SignatureError{Provider: need.source.String(), Version: version, Problem: p, Reason: reason}
}

// askRegistry returns the registry's signed list of checksums of a version.
func (in *Installer) askRegistry(ctx context.Context, s Source, version string) (*registry.SignedSums, error) {
	if !in.config.DirectRegistry {
		return nil, errors.New("the server does not use registries")
	}
	origin, err := in.client.Origin(ctx, s.Hostname, s.Namespace, s.Type)
	if err != nil {
		return nil, err
	}
	goos, goarch, _ := strings.Cut(in.platform, "_")
	offer, err := origin.Offer(ctx, version, goos, goarch)
	if err != nil {
		return nil, err
	}
	return &offer.Signed, nil
}

// signer verifies the signature of a list of checksums.
func (need Requirements) signer(version, platform string,
	list *registry.SignedSums) (signer signature.Signer, err error) {
	switch {
	case len(list.Signature) == 0:
		return signer, need.refuse(version, signature.Unsigned, list.From+" names no signature for it")
	case len(need.keys) == 0 && len(list.Keys) == 0:
		return signer, need.refuse(version, signature.UnknownKey,
			list.From+" names no key, so the server cannot verify its signature")
	case len(need.keys) == 0:
		signer, err = signature.VerifyOffered(list.Keys, list.Sums, list.Signature)
	}
	for _, keys := range need.keys {
		if err == nil {
			signer, err = keys.Verify(list.Keys, list.Sums, list.Signature)
		}
	}
	if e, ok := errors.AsType[*signature.Error](err); ok {
		return signer, need.refuse(version, e.Problem, e.Reason)
	}
	// The list of another version is signed, too.
	if want := fmt.Sprintf("terraform-provider-%s_%s_%s.zip", need.source.Type, version,
		platform); len(need.keys) > 0 && list.Filename != want {
		return signer, need.refuse(version, signature.BadSignature,
			fmt.Sprintf("%s names the file %q instead of %q, which may be another version", list.From, list.Filename,
				want))
	}
	return signer, err
}
