// Package undelete is the verb undelete, which removes marks for deletion.
package undelete
