package v1alpha1

// MessageApplied is the message of the condition Ready of a resource that is applied.
const MessageApplied = "The infrastructure matches the spec."

// Messages of the condition Ready of an object that is marked as deleted. The server and its workers write them.
const (
	// MessageDeleting goes with ReasonDeleting.
	MessageDeleting = "deleted; make a Plan to destroy the infrastructure and release the object"
	// MessageForgetting goes with ReasonForgetting.
	MessageForgetting = "deleted, and lifecycle.destroy is false; make a Plan to forget the infrastructure, which stays, and release the object"
)

// MessageMoving goes with ReasonMoving. It names the object that takes the infrastructure over.
func MessageMoving(to string) string {
	return "deleted, and " + to + " takes its infrastructure over (lifecycle.moved); make a Plan to move it and release the object"
}
