package shell

import (
	"os/exec"
	"testing"
)

// A real shell reads each quoted word as the text.
func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"sim-instance/web-1":    "sim-instance/web-1",
		"sim_instance.web":      "sim_instance.web",
		"sim-instance/web[3]":   "'sim-instance/web[3]'",
		`sim_instance.web["a"]`: `'sim_instance.web["a"]'`,
		`web["it's $HOME"]`:     `'web["it'\''s $HOME"]'`,
		"":                      "''",
	} {
		if got := Word(text); got != want {
			t.Errorf("Word(%q) is %s, not %s", text, got, want)
		}
		out, err := exec.Command("sh", "-c", "printf %s "+Word(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("a shell reads %s as %q: %v", Word(text), out, err)
		}
	}
}
