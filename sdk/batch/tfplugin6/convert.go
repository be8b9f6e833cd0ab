// Package tfplugin6 has the messages of Terraform's provider protocol 6, generated from tfplugin6.proto, and
// conversions between them and the types of terraform-plugin-go. It may import nothing of this repository.
package tfplugin6

import "github.com/hashicorp/terraform-plugin-go/tfprotov6"

// ToValue converts a value to its message; nil for nil.
func ToValue(v *tfprotov6.DynamicValue) *DynamicValue {
	if v == nil {
		return nil
	}
	return &DynamicValue{Msgpack: v.MsgPack, Json: v.JSON}
}

// FromValue converts the message of a value; nil for nil.
func FromValue(v *DynamicValue) *tfprotov6.DynamicValue {
	if v == nil {
		return nil
	}
	return &tfprotov6.DynamicValue{MsgPack: v.Msgpack, JSON: v.Json}
}

// ToIdentity converts a resource identity to its message; nil for nil.
func ToIdentity(d *tfprotov6.ResourceIdentityData) *ResourceIdentityData {
	if d == nil {
		return nil
	}
	return &ResourceIdentityData{IdentityData: ToValue(d.IdentityData)}
}

// FromIdentity converts the message of a resource identity; nil for nil.
func FromIdentity(d *ResourceIdentityData) *tfprotov6.ResourceIdentityData {
	if d == nil {
		return nil
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: FromValue(d.IdentityData)}
}
