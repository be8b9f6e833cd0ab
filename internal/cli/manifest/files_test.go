package manifest

import "testing"

// The command that a plan prints has the same values, but no text of --var, which may be a secret.
func TestRepeatedValues(t *testing.T) {
	f := &Flags{}
	f.Filenames = []string{"shop"}
	f.Modules.Name = "eu"
	if err := (assignments{&f.Modules, false}).Set("password=secret"); err != nil {
		t.Fatal(err)
	}
	if err := (assignments{&f.Modules, true}).Set("a b.tfvars"); err != nil {
		t.Fatal(err)
	}
	if got := f.RepeatFlags(); got != " -f shop --module eu --var password=... --var-file 'a b.tfvars'" {
		t.Errorf("got %q", got)
	}
}
