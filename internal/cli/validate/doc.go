// Package validate is the verb validate, which checks files without recording them.
package validate
