// Package module is the verbs below module.
package module
