// Package resources is the verbs that list resources: get, search and instances.
package resources
