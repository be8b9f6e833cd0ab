package workflows

import (
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/types"
)

// Final marks an error that another attempt would only repeat.
func Final(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrorFinal, err)
}

// ObjectUID is the UID of the Plan object.
func ObjectUID(p Plan) types.UID { return types.UID(p.UID) }
