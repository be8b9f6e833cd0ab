package v1alpha1

import "strings"

// ResourceVersion is the version of every provider's API group.
const ResourceVersion = "v1"

// ProviderGroup returns the API group of a provider's kinds: "aws" -> "aws.hykube.io".
func ProviderGroup(provider string) string { return provider + "." + GroupName }

// ProviderOfGroup is the inverse of ProviderGroup. ok is false for any other group.
func ProviderOfGroup(group string) (provider string, ok bool) {
	return strings.CutSuffix(group, "."+GroupName)
}

// KindOf returns the kind of a Terraform resource type: "aws_s3_bucket" -> "aws-s3-bucket".
func KindOf(terraformType string) string { return strings.ReplaceAll(terraformType, "_", "-") }

// TypeOf is the inverse of KindOf: "aws-s3-bucket" -> "aws_s3_bucket".
func TypeOf(kind string) string { return strings.ReplaceAll(kind, "-", "_") }

// Mode is the category of a Terraform type: managed resource, data source, ephemeral resource or action.
type Mode string

const (
	// ModeManaged is a resource that Hykube creates, updates and destroys. An empty Mode means the same.
	ModeManaged Mode = "managed"
	// ModeData is a data source, which is only read.
	ModeData Mode = "data"
	// ModeEphemeral is an ephemeral resource, which is open during planning or apply, and never stored.
	ModeEphemeral Mode = "ephemeral"
	// ModeAction is an action, which a plan runs once.
	ModeAction Mode = "action"
)

// HasInfrastructure reports whether objects of the mode have infrastructure, which only a plan destroys or forgets.
func (m Mode) HasInfrastructure() bool { return m == "" || m == ModeManaged }

// KindOf returns the kind of a Terraform type of the mode: "sim_image" -> "data-sim-image" for a data source.
func (m Mode) KindOf(terraformType string) string {
	if m == "" || m == ModeManaged {
		return KindOf(terraformType)
	}
	return string(m) + "-" + KindOf(terraformType)
}

// ParseKind is the inverse of Mode.KindOf: "data-sim-image" -> ModeData, "sim_image". The result is ambiguous if the
// name of a managed type's provider equals a mode. Callers with the provider's schema must look the kind up there
// first.
func ParseKind(kind string) (m Mode, terraformType string) {
	for _, m := range []Mode{ModeData, ModeEphemeral, ModeAction} {
		if rest, ok := strings.CutPrefix(kind, string(m)+"-"); ok {
			return m, TypeOf(rest)
		}
	}
	return ModeManaged, TypeOf(kind)
}
