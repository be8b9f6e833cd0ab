// Command terraform-provider-conform6 is the conformance suite's provider on protocol 6, see
// tests/conformance/conform6.
package main

import (
	"fmt"
	"os"

	"github.com/hykube/hykube/tests/conformance/cloud"
	"github.com/hykube/hykube/tests/conformance/conform6"
)

func main() {
	options, err := cloud.OwnOptions()
	if err == nil {
		err = conform6.Serve(options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-conform6:", err)
		os.Exit(1)
	}
}
