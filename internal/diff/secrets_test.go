package diff

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestSecretsShowWhereTheyComeFromAndGo renders a change that gives the secret of another object to another account.
func TestSecretsShowWhereTheyComeFromAndGo(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	c := &v1alpha1.PlanChange{
		Address: "sim_network.loot", Type: "sim_network", ProviderConfig: "evil", Action: v1alpha1.ActionCreate, Object: v1alpha1.ObjectReference{Name: "loot"},
		After:          raw(`{"name":"(sensitive value)","tags":{"x":"(sensitive value)"},"note":"(sensitive value)"}`),
		AfterSensitive: raw(`{"name":true,"tags":{"x":true},"note":true}`),
		Secrets: []v1alpha1.PlanSecret{
			{Path: raw(`["tags","x"]`), From: []string{"namespace.prod.sim_password.db", "secret.db.key"}, Discloses: true},
			{Path: raw(`["name"]`), From: []string{"sim_password.own"}},
			{Path: raw(`["write_only"]`), From: []string{"sim_password.\x1b[31mred"}, Discloses: true},
		},
		ProviderArguments: []v1alpha1.PlanArgument{{Name: "endpoint", Value: "http://127.0.0.1:9"}},
	}
	text := Change(c, Style{})
	for _, want := range []string{
		"x = (sensitive value of namespace.prod.sim_password.db, secret.db.key)\n",
		"name = (sensitive value of sim_password.own)\n", "note = (sensitive value)\n",
		"# secrets: values of namespace.prod.sim_password.db, secret.db.key, ", ` go to ProviderConfig "evil"` + "\n",
		`  # secrets:   endpoint = "http://127.0.0.1:9"` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("a name controls the terminal: %q", text)
	}
	s := NewScreen(Style{}, 12)
	s.Add(c)
	var out strings.Builder
	if err := s.Write(&out, &v1alpha1.Plan{}); err != nil || !s.Folded || !strings.Contains(out.String(), `go to ProviderConfig "evil"`) {
		t.Errorf("%v, %t:\n%s", err, s.Folded, out.String())
	}
	// The origin of a secret is not a change of it.
	c.Action, c.Before, c.BeforeSensitive = v1alpha1.ActionUpdate, c.After, c.AfterSensitive
	if text := Change(c, Style{}); strings.Contains(text, "~ tags") {
		t.Errorf("got:\n%s", text)
	}
	c.Secrets = c.Secrets[1:2]
	if text := Change(c, Style{}); strings.Contains(text, "# secrets:") {
		t.Errorf("a secret that the provider has is a disclosure:\n%s", text)
	}
}
