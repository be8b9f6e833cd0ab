package module

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// languageVersion is the version of Terraform whose language this package implements.
const languageVersion = "1.14.0"

// checkVersion warns of a required_version that excludes languageVersion. It is no error, because the programs that the
// constraint is about, Terraform and OpenTofu, differ in their versions.
func (d *decoder) checkVersion(constraint string, r hcl.Range) {
	allowed, valid := allows(constraint, languageVersion)
	switch {
	case !valid:
		d.fail(r, "Invalid version constraint",
			"%q is not a version constraint, such as \">= 1.5.0, < 2.0.0\" or \"~> 1.5\".", constraint)
	case !allowed:
		d.warn(r, "Other version of the language",
			"The module requires version %s, and Hykube implements the language of Terraform %s.", constraint,
			languageVersion)
	}
}

// allows reports whether a version satisfies a constraint. valid is false if the constraint is none.
func allows(constraint, version string) (allowed, valid bool) {
	own, _, _ := parseVersion(version)
	allowed = true
	for part := range strings.SplitSeq(constraint, ",") {
		part = strings.TrimSpace(part)
		operator := part[:len(part)-len(strings.TrimLeft(part, "=!<>~"))]
		wanted, segments, ok := parseVersion(strings.TrimSpace(part[len(operator):]))
		if !ok {
			return false, false
		}
		order := slices.Compare(own, wanted)
		switch operator {
		case "", "=":
			allowed = allowed && order == 0
		case "!=":
			allowed = allowed && order != 0
		case ">":
			allowed = allowed && order > 0
		case ">=":
			allowed = allowed && order >= 0
		case "<":
			allowed = allowed && order < 0
		case "<=":
			allowed = allowed && order <= 0
		case "~>": // all segments but the last one stay
			same := max(1, segments-1)
			allowed = allowed && order >= 0 && slices.Equal(own[:same], wanted[:same])
		default:
			return false, false
		}
	}
	return allowed, true
}

// parseVersion reads a version of up to three numbers. segments is how many it has. A suffix such as -beta1 is ignored.
func parseVersion(s string) (version []int, segments int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "-")
	s, _, _ = strings.Cut(s, "+")
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return nil, 0, false
	}
	version = make([]int, 3)
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return nil, 0, false
		}
		version[i] = n
	}
	return version, cmp.Or(len(parts), 1), true
}
