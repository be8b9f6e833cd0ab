package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"

	"github.com/zclconf/go-cty/cty"
)

// TestPublicArguments shows where a provider sends its requests, and no secret.
func TestPublicArguments(t *testing.T) {
	password := schematest.Optional("password", cty.String)
	password.Sensitive = true
	block := schematest.Block(password, schematest.Optional("retries", cty.Number), schematest.Optional("endpoint", cty.String), schematest.Optional("token", cty.String),
		schematest.Optional("insecure", cty.Bool), schematest.Optional("key", cty.String), schematest.Optional("empty", cty.String), schematest.Optional("later", cty.String),
		&schema.NestedBlock{TypeName: "endpoints", Nesting: schema.NestingList, Block: schematest.Block(schematest.Optional("s3", cty.String))})
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{SecretRefs: []v1alpha1.SecretArgument{{Argument: "key", Name: "k", Key: "k"}}}}
	config := cty.ObjectVal(map[string]cty.Value{
		"password": cty.StringVal("hush-password"), "retries": cty.NumberIntVal(5), "endpoint": cty.StringVal("http://a"), "insecure": cty.True,
		"token": cty.StringVal("hush-token").Mark(lang.Sensitive), "key": cty.StringVal("hush-key"), "empty": cty.NullVal(cty.String), "later": cty.UnknownVal(cty.String),
		"endpoints": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"s3": cty.StringVal(strings.Repeat("x", 300))})}),
	})
	got := fmt.Sprint(publicArguments(block, config, cfg))
	want := fmt.Sprintf("[{endpoint http://a} {endpoints[0].s3 %s...} {insecure true} {key (from a Secret)} {retries 5}]", strings.Repeat("x", 200))
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
