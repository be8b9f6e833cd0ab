package simcloud

import (
	"fmt"
	"net/http"
	"time"
)

// Error is what the cloud answers when it does not do what was asked.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code is a stable word such as "NotFound".
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
	// Field that is wrong; empty when the error is not about one.
	Field string `json:"field,omitempty"`
	// RetryAfter says when to come back; 0 means that the cloud didn't say.
	RetryAfter time.Duration `json:"-"`
}

// Error is the code, the message and the status.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (HTTP %d)", e.Code, e.Message, e.Status) }

func invalid(field, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: field + ": " + message, Field: field}
}

func notFound(kind, id string) *Error {
	return &Error{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("%s %q does not exist", kind, id)}
}

func conflict(code, format string, args ...any) *Error {
	return &Error{Status: http.StatusConflict, Code: code, Message: fmt.Sprintf(format, args...)}
}
