package lang

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// parsePrefix reads an address prefix in CIDR notation. As in Terraform, an octet may have leading zeros and is still
// decimal.
func parsePrefix(s string) (*net.IPNet, error) {
	_, n, err := net.ParseCIDR(plainOctets(s))
	if err != nil {
		return nil, fmt.Errorf("invalid CIDR expression: %q is not an address and a prefix length, such as 10.0.0.0/8",
			s)
	}
	return n, nil
}

func plainOctets(s string) string {
	if strings.Contains(s, ":") {
		return s
	}
	addr, bits, slash := strings.Cut(s, "/")
	octets := strings.Split(addr, ".")
	for i, o := range octets {
		if t := strings.TrimLeft(o, "0"); o != "" && t == "" {
			octets[i] = "0"
		} else {
			octets[i] = t
		}
	}
	s = strings.Join(octets, ".")
	if slash {
		s += "/" + bits
	}
	return s
}

// prefixFunction returns a function whose first argument is an address prefix and whose result is a string.
func prefixFunction(impl func(n *net.IPNet, args []cty.Value) (string, error),
	more ...function.Parameter) function.Function {
	return function.New(&function.Spec{
		Params:       append([]function.Parameter{{Name: "prefix", Type: cty.String}}, more...),
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := parsePrefix(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			text, err := impl(n, args)
			if err != nil {
				return cty.UnknownVal(cty.String), err
			}
			return cty.StringVal(text), nil
		},
	})
}

var cidrHost = prefixFunction(func(n *net.IPNet, args []cty.Value) (string, error) {
	num, err := whole(args[1])
	if err != nil {
		return "", function.NewArgError(1, err)
	}
	ip, err := cidr.HostBig(n, num)
	return ip.String(), err
}, function.Parameter{Name: "hostnum", Type: cty.Number})

var cidrNetmask = prefixFunction(func(n *net.IPNet, _ []cty.Value) (string, error) {
	if n.IP.To4() == nil {
		return "", function.NewArgErrorf(0, "IPv6 addresses cannot have a netmask: %s", n)
	}
	return net.IP(n.Mask).String(), nil
})

var cidrSubnet = prefixFunction(func(n *net.IPNet, args []cty.Value) (string, error) {
	bits, err := whole(args[1])
	// A negative number shortens the prefix, down to length 0.
	ones, _ := n.Mask.Size()
	if err != nil || !bits.IsInt64() || bits.Int64() > 128 || bits.Int64() < int64(-ones) {
		return "", function.NewArgErrorf(1, "must be a whole number from %d to 128", -ones)
	}
	num, err := whole(args[2])
	if err != nil {
		return "", function.NewArgError(2, err)
	}
	sub, err := cidr.SubnetBig(n, int(bits.Int64()), num)
	if err != nil {
		return "", err
	}
	return sub.String(), nil
}, function.Parameter{Name: "newbits", Type: cty.Number}, function.Parameter{Name: "netnum", Type: cty.Number})

var cidrSubnets = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "prefix", Type: cty.String}},
	VarParam:     &function.Parameter{Name: "newbits", Type: cty.Number},
	Type:         function.StaticReturnType(cty.List(cty.String)),
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		n, err := parsePrefix(args[0].AsString())
		if err != nil {
			return cty.UnknownVal(ty), function.NewArgError(0, err)
		}
		start, size := n.Mask.Size()
		if len(args) == 1 {
			return cty.ListValEmpty(cty.String), nil
		}
		var out []cty.Value
		var last *net.IPNet
		for i, a := range args[1:] {
			bits, err := whole(a)
			switch {
			case err != nil:
				return cty.UnknownVal(ty), function.NewArgError(i+1, err)
			case bits.Sign() < 1:
				return cty.UnknownVal(ty), function.NewArgErrorf(i+1, "must extend prefix by at least one bit")
			case !bits.IsInt64() || bits.Int64() > 32:
				// Terraform keeps this limit from the time when a network's number had to fit 32 bits.
				return cty.UnknownVal(ty), function.NewArgErrorf(i+1, "may not extend prefix by more than 32 bits")
			case start+int(bits.Int64()) > size:
				return cty.UnknownVal(ty), function.NewArgErrorf(i+1,
					"would extend prefix to %d bits, which is too long for an address of %d bits",
					start+int(bits.Int64()), size)
			}
			length := start + int(bits.Int64())
			sub, full := net.IPNet{IP: n.IP, Mask: net.CIDRMask(length, size)}, false
			if last != nil {
				var next *net.IPNet
				if next, full = cidr.NextSubnet(last, length); !full {
					sub = *next
				}
			}
			if full || !n.Contains(sub.IP) {
				return cty.UnknownVal(ty), function.NewArgErrorf(i+1,
					"not enough remaining address space for a subnet with a prefix of %d bits", length)
			}
			last = &sub
			out = append(out, cty.StringVal(sub.String()))
		}
		return cty.ListVal(out), nil
	},
})

// cidrContains is OpenTofu's cidrcontains: it reports whether a prefix contains an address or another prefix.
var cidrContains = twoStrings("containing_prefix", "contained_ip_or_prefix", cty.Bool,
	func(outer, inner string) (cty.Value, error) {
		n, err := parsePrefix(outer)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		first, last := net.IP(nil), net.IP(nil)
		if addr, err := netip.ParseAddr(plainOctets(inner)); err == nil {
			first = addr.AsSlice()
			last = first
		} else if m, err := parsePrefix(inner); err == nil {
			first, last = cidr.AddressRange(m)
		} else {
			return cty.NilVal, function.NewArgErrorf(1, "neither an IP address nor a prefix in CIDR notation")
		}
		if (first.To4() == nil) != (n.IP.To4() == nil) {
			return cty.NilVal, fmt.Errorf("address family mismatch: %s and %s", outer, inner)
		}
		return cty.BoolVal(n.Contains(first) && n.Contains(last)), nil
	})

// whole returns a number as an integer. It fails if the number has a fraction.
func whole(v cty.Value) (*big.Int, error) {
	i, acc := v.AsBigFloat().Int(nil)
	if acc != big.Exact {
		return nil, errors.New("must be a whole number")
	}
	return i, nil
}
