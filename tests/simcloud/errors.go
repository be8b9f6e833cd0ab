package simcloud

import (
	"fmt"
	"net/http"
	"time"
)

// Error is the cloud's answer to a call that failed.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code is a stable identifier such as "NotFound".
	Code string `json:"code"`
	// Message is a text for users.
	Message string `json:"message"`
	// Field is the name of the invalid field; empty if the error is not about one.
	Field string `json:"field,omitempty"`
	// RetryAfter is the time after which the caller may try again; 0 means that the answer has none.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the code, the message and the status.
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
