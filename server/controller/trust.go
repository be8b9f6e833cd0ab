package controller

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/signature"
	"github.com/hykube/hykube/internal/provider/trust"
)

// trustOf returns the requirements of a Provider for its package.
func trustOf(obj *v1alpha1.Provider) provider.Trust {
	return provider.Trust{Checksums: obj.Spec.Checksums, SigningKeys: obj.Spec.SigningKeys}
}

// verified sets the conditions Verified and Signed of a Provider whose package met all requirements.
func verified(conditions *[]metav1.Condition, generation int64, v provider.Verification) {
	set := func(reason, format string, args ...any) {
		condition.Set(conditions, generation, v1alpha1.ConditionVerified, true, reason, fmt.Sprintf(format, args...))
	}
	switch v.KnownFrom {
	case provider.FromSpec:
		set(v1alpha1.ReasonChecksumListed, "The package from the %s has the checksum %s of spec.checksums.", v.From,
			v.Checksum)
	case provider.FromSignedList:
		set(v1alpha1.ReasonChecksumSigned, "The package from the %s has the checksum %s of the signed list of the %s.",
			v.From, v.Checksum, v.SignedBy)
	case provider.FromMirror:
		set(v1alpha1.ReasonChecksumFromMirror, "The package has the checksum %s, which the %s names.", v.Checksum,
			v.From)
	case provider.Nothing:
		condition.Unknown(conditions, generation, v1alpha1.ConditionVerified, v1alpha1.ReasonChecksumUnknown,
			fmt.Sprintf("No trusted list has a checksum of the package from the %s. Its checksum is %s. If you trust the package, add that checksum to spec.checksums.", v.From, v.Checksum))
	}
	if v.SignedBy == "" {
		condition.Unknown(conditions, generation, v1alpha1.ConditionSigned, v1alpha1.ReasonSignatureUnknown,
			fmt.Sprintf("The package is from the %s, and no signature of it was verified. Set spec.signingKeys to require one.", v.From))
		return
	}
	condition.Set(conditions, generation, v1alpha1.ConditionSigned, true, v1alpha1.ReasonSigned,
		fmt.Sprintf("The list of checksums of the %s is signed with %s.", v.SignedBy, v.Signer))
}

// distrusted reports whether a provider must not run, because its package or its source is not trusted.
func distrusted(err error) bool {
	_, unverified := errors.AsType[*provider.VerificationError](err)
	_, changed := errors.AsType[*provider.ChecksumError](err)
	_, refused := errors.AsType[*trust.RefusedError](err)
	return unverified || changed || refused
}

// unverified sets the condition that a failed verification belongs to. It returns the reason for the other conditions.
func unverified(conditions *[]metav1.Condition, obj *v1alpha1.Provider, err error) string {
	if _, ok := errors.AsType[*trust.RefusedError](err); ok {
		return v1alpha1.ReasonSourceRefused
	}
	kind, reason := v1alpha1.ConditionVerified, v1alpha1.ReasonChecksumMismatch
	if s, ok := errors.AsType[*provider.SignatureError](err); ok {
		kind = v1alpha1.ConditionSigned
		switch s.Problem {
		case signature.Unsigned:
			reason = v1alpha1.ReasonUnsigned
		case signature.UnknownKey:
			reason = v1alpha1.ReasonUnknownKey
		case signature.BadSignature:
			reason = v1alpha1.ReasonBadSignature
		}
	}
	condition.Set(conditions, obj.Generation, kind, false, reason, err.Error())
	return v1alpha1.ReasonVerificationFailed
}
