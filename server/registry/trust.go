package registry

import (
	"context"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/signature"
	"github.com/hykube/hykube/internal/provider/trust"
)

// Limits of spec.checksums and spec.signingKeys. A lock file has about 15 checksums of a version.
const (
	maxChecksums   = 256
	maxSigningKeys = 16
	maxSigningKey  = 64 << 10
)

var checksum = regexp.MustCompile(`^(h1:[A-Za-z0-9+/]{43}=|zh:[0-9a-f]{64})$`)

func validateChecksums(list []string, at *field.Path) field.ErrorList {
	if len(list) > maxChecksums {
		return field.ErrorList{field.TooMany(at, len(list), maxChecksums)}
	}
	var errs field.ErrorList
	for i, c := range list {
		if !checksum.MatchString(c) {
			errs = append(errs, field.Invalid(at.Index(i), shorten(c),
				`must be "h1:" with 44 characters in base64, or "zh:" with 64 hexadecimal digits in lower case, as in Terraform's dependency lock file`))
		}
	}
	return errs
}

// validateSigningKeys validates keys without repeating them, because one may be private.
func validateSigningKeys(list []string, at *field.Path) field.ErrorList {
	if len(list) > maxSigningKeys {
		return field.ErrorList{field.TooMany(at, len(list), maxSigningKeys)}
	}
	var errs field.ErrorList
	for i, key := range list {
		if len(key) > maxSigningKey {
			errs = append(errs, field.TooLong(at.Index(i), "", maxSigningKey))
		} else if err := signature.CheckKey(key); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), field.OmitValueType{}, err.Error()))
		}
	}
	return errs
}

// refuseUntrusted rejects a new or changed Provider that the trust policy does not allow. A change of metadata alone,
// such as the removal of a finalizer, is always possible.
func refuseUntrusted(policy *trust.Policy) func(ctx context.Context, obj, old runtime.Object) error {
	return func(_ context.Context, obj, old runtime.Object) error {
		p := obj.(*v1alpha1.Provider)
		if old != nil && sameSpec(p.Spec, old.(*v1alpha1.Provider).Spec) {
			return nil
		}
		if err := checkTrust(policy, p); err != nil {
			return apierrors.NewForbidden(v1alpha1.Resource("providers"), p.Name, err)
		}
		return nil
	}
}

// checkTrust returns an error if the trust policy does not allow a valid Provider.
func checkTrust(policy *trust.Policy, p *v1alpha1.Provider) error {
	source, err := provider.ParseSource(p.Spec.Source)
	if err != nil {
		return err
	}
	_, err = provider.Require(policy, source,
		provider.Trust{Checksums: p.Spec.Checksums, SigningKeys: p.Spec.SigningKeys})
	return err
}
