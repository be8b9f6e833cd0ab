// Package printer prints objects as JSON and YAML, and formats lists, times and counts. It sends no requests.
package printer
