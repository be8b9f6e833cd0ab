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
