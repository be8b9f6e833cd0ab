package protocol

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Answers keeps what a provider answered, for equal calls later. Messages are encoded as on the wire. An answer may
// have errors.
type Answers interface {
	// Recall returns the answer to an equal earlier call. ok is false if there is none.
	Recall(method string, request []byte) (answer []byte, ok bool)
	Keep(method string, request, answer []byte)
}

type answersKey struct{}

// WithAnswers returns a context for calls to one provider with one configuration. Of these, the calls that validate,
// read, import or plan first look for an answer in a.
func WithAnswers(ctx context.Context, a Answers) context.Context {
	return context.WithValue(ctx, answersKey{}, a)
}

// repeatable reports whether a call changes nothing, and opens nothing, so that an earlier answer can take its place.
func repeatable(method string) bool {
	switch method {
	case "ValidateResourceConfig", "ReadResource", "PlanResourceChange", "ImportResourceState", "MoveResourceState",
		"UpgradeResourceState", "UpgradeResourceIdentity", "ValidateDataResourceConfig", "ReadDataSource",
		"ValidateActionConfig", "PlanAction":
		return true
	}
	return false
}

// answer fills in the response to a request: from the answers of the context, or with call.
func answer(ctx context.Context, method string, req, resp proto.Message, call func() error) error {
	answers, has := ctx.Value(answersKey{}).(Answers)
	if !has || !repeatable(method) {
		return call()
	}
	request, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return call() // the call reports what is wrong
	}
	if kept, ok := answers.Recall(method, request); ok && proto.Unmarshal(kept, resp) == nil {
		return nil
	}
	if err := call(); err != nil {
		return err
	}
	if given, err := proto.Marshal(resp); err == nil {
		answers.Keep(method, request, given)
	}
	return nil
}
