// Package jsonlines writes the progress of a command as lines of JSON, as terraform apply -json does.
package jsonlines
