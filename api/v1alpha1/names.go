package v1alpha1

import "strings"

// ResourceVersion is the version of every provider's API group.
const ResourceVersion = "v1"

// ProviderGroup is the API group of a provider's kinds: "aws" -> "aws.hykube.io".
func ProviderGroup(provider string) string { return provider + "." + GroupName }

// ProviderOfGroup is the reverse of ProviderGroup; ok is false for any other group.
func ProviderOfGroup(group string) (provider string, ok bool) {
	return strings.CutSuffix(group, "."+GroupName)
}

// KindOf is the kind of a Terraform resource type: "aws_s3_bucket" -> "aws-s3-bucket".
func KindOf(terraformType string) string { return strings.ReplaceAll(terraformType, "_", "-") }

// TypeOf is the reverse of KindOf: "aws-s3-bucket" -> "aws_s3_bucket".
func TypeOf(kind string) string { return strings.ReplaceAll(kind, "-", "_") }

// Mode is what a Terraform type stands for.
type Mode string

const (
	// ModeManaged is a resource that Hykube creates, changes and destroys. It is the zero value's meaning, too.
	ModeManaged Mode = "managed"
	// ModeData is a data source: it is read, and nothing else.
	ModeData Mode = "data"
	// ModeEphemeral is an ephemeral resource: it is opened while a plan is made or applied, and never stored.
	ModeEphemeral Mode = "ephemeral"
	// ModeAction is an action: a plan runs it once.
	ModeAction Mode = "action"
)

// KindOf is the kind of a Terraform type of the mode: "sim_image" -> "data-sim-image" for a data source.
func (m Mode) KindOf(terraformType string) string {
	if m == "" || m == ModeManaged {
		return KindOf(terraformType)
	}
	return string(m) + "-" + KindOf(terraformType)
}

// ParseKind is the reverse of Mode.KindOf: "data-sim-image" -> ModeData, "sim_image". A managed type of a provider that is
// called like a mode cannot be told from its kind alone; whoever has the provider's schema asks that first.
func ParseKind(kind string) (m Mode, terraformType string) {
	for _, m := range []Mode{ModeData, ModeEphemeral, ModeAction} {
		if rest, ok := strings.CutPrefix(kind, string(m)+"-"); ok {
			return m, TypeOf(rest)
		}
	}
	return ModeManaged, TypeOf(kind)
}
