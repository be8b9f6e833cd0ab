package ledger

import jsonv1 "github.com/go-json-experiment/json/v1"

// unmarshal is json.Unmarshal of the package encoding/json, in the implementation that will replace it. It takes half
// the time, and an apply decodes each change several times.
func unmarshal(data []byte, into any) error { return jsonv1.Unmarshal(data, into) }
