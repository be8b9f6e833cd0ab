package query

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
)

// SameAccount reports whether two ProviderConfigs of one provider may reach the same account, so that the same ID may
// mean the same resource. It returns false only if both set an argument to different values that are neither sensitive
// nor expressions: two tokens may belong to one account. ours and theirs are names; a missing ProviderConfig may reach
// every account.
func SameAccount(ctx context.Context, src *scope.Sources, e catalog.Entry, namespace, ours, otherNamespace,
	theirs string) (bool, error) {
	if namespace == otherNamespace && ours == theirs || ours == "" || theirs == "" {
		return true, nil
	}
	a, err := src.Configs.Get(ctx, namespace, ours)
	if err != nil {
		return false, err
	}
	b, err := src.Configs.Get(ctx, otherNamespace, theirs)
	if err != nil || a == nil || b == nil {
		return true, err
	}
	return !differ(e.Schema.Config.Block, a, b), nil
}

// differ reports whether both ProviderConfigs set an argument that is not sensitive to different constants.
func differ(block *schema.Block, a, b *v1alpha1.ProviderConfig) bool {
	ours, theirs := constants(block, a), constants(block, b)
	for name, value := range ours {
		if other, both := theirs[name]; both && !reflect.DeepEqual(value, other) {
			return true
		}
	}
	return false
}

// constants returns the arguments of a ProviderConfig without those that are sensitive, null or hold an expression.
func constants(block *schema.Block, cfg *v1alpha1.ProviderConfig) map[string]any {
	args := map[string]any{}
	if cfg.Spec.Config == nil || json.Unmarshal(cfg.Spec.Config.Raw, &args) != nil {
		return nil // a provider refuses invalid arguments
	}
	for name, value := range args {
		raw, err := json.Marshal(value)
		if err != nil || value == nil || sensitive(block, name) || strings.Contains(string(raw), "${") ||
			strings.Contains(string(raw), "%{") {
			delete(args, name)
		}
	}
	return args
}

// sensitive reports whether an argument, or any argument in a block, is sensitive. It returns true for an unknown one.
func sensitive(block *schema.Block, name string) bool {
	if a := block.Attribute(name); a != nil {
		return schema.HasSensitiveAttribute([]*schema.Attribute{a})
	}
	nested := block.NestedBlock(name)
	return nested == nil || schema.HasSensitive(nested.Block)
}
