package changes

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestChangedArgumentsAdviseWhatIsPossible expects the advice to set rotates for the arguments for which the server takes it.
func TestChangedArgumentsAdviseWhatIsPossible(t *testing.T) {
	for want, refs := range map[string][]v1alpha1.SecretArgument{
		"set rotates for token in spec.secretRefs":             {{Argument: "endpoint"}, {Argument: "token"}},
		"set rotates for token or password in spec.secretRefs": {{Argument: "token"}, {Argument: "password"}},
		"": {{Argument: "endpoint"}, {Argument: "project_id"}, {Argument: "token", Rotates: true}},
	} {
		cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{SecretRefs: refs}}
		cfg.Name = "sim"
		if text := ArgumentsChanged("sim", cfg).Error(); !strings.Contains(text, want) || want == "" && strings.Contains(text, "rotates") {
			t.Errorf("%v: %q, want %q", refs, text, want)
		}
	}
	if text := ArgumentsChanged("sim", nil).Error(); !strings.Contains(text, `"sim"`) || strings.Contains(text, "rotates") {
		t.Errorf("without the ProviderConfig: %q", text)
	}
}
