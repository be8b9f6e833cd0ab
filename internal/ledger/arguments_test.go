package ledger

import "testing"

// TestCompareArguments compares arguments with approved ones.
func TestCompareArguments(t *testing.T) {
	known := Arguments{Configuration: Configuration{Arguments: "a", Rotating: "r"}, Secrets: "s"}
	unknown := Arguments{Configuration: Configuration{Rotating: "r"}, Secrets: "s"}
	ephemeral := Arguments{Configuration: Configuration{Arguments: "a", Ephemeral: true}, Secrets: "s"}
	for reason, test := range map[string]struct {
		approved, now Arguments
		want          Difference
	}{
		"the same":                               {known, known, SameArguments},
		"another argument":                       {known, Arguments{Configuration{Arguments: "b", Rotating: "r"}, "s"}, OtherArguments},
		"another Secret":                         {known, Arguments{Configuration{Arguments: "a", Rotating: "r"}, "t"}, OtherArguments},
		"another credential that rotates":        {known, Arguments{Configuration{Arguments: "a", Rotating: "q"}, "s"}, RotatedArguments},
		"both":                                   {known, Arguments{Configuration{Arguments: "b", Rotating: "q"}, "s"}, OtherArguments},
		"an argument is not known any more":      {known, unknown, OtherArguments},
		"unknown to the plan":                    {unknown, known, SameArguments},
		"unknown to the plan, another Secret":    {unknown, Arguments{Configuration{Arguments: "a", Rotating: "r"}, "t"}, OtherArguments},
		"unknown to the plan, a rotated one":     {unknown, Arguments{Configuration{Arguments: "a", Rotating: "q"}, "s"}, RotatedArguments},
		"ephemeral values differ each time":      {ephemeral, ephemeral, RotatedArguments},
		"ephemeral values, and another argument": {ephemeral, Arguments{Configuration{Arguments: "b", Ephemeral: true}, "s"}, OtherArguments},
	} {
		if got := test.approved.Compare(test.now); got != test.want {
			t.Errorf("%s: %d, want %d", reason, got, test.want)
		}
	}
}
