package simprovider

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// parseID is the function parse_id.
type parseID struct{}

func newParseID() function.Function { return parseID{} }

func parsedTypes() map[string]attr.Type {
	return map[string]attr.Type{"prefix": types.StringType, "number": types.Int64Type}
}

func (parseID) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_id"
}

func (parseID) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:     "Takes an identifier apart",
		Description: "Gives the prefix and the number of an identifier of the cloud: net-0000002a has the prefix net and the number 42.",
		Parameters:  []function.Parameter{function.StringParameter{Name: "id", Description: "Identifier that the cloud gave."}},
		Return:      function.ObjectReturn{AttributeTypes: parsedTypes()},
	}
}

func (parseID) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var id string
	if resp.Error = req.Arguments.Get(ctx, &id); resp.Error != nil {
		return
	}
	prefix, hexa, ok := strings.Cut(id, "-")
	number, err := strconv.ParseInt(hexa, 16, 64)
	if !ok || prefix == "" || len(hexa) < 8 || err != nil {
		resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("%q is no identifier such as net-0000002a", id))
		return
	}
	out, diags := types.ObjectValue(parsedTypes(), map[string]attr.Value{"prefix": types.StringValue(prefix), "number": types.Int64Value(number)})
	resp.Error = function.ConcatFuncErrors(function.FuncErrorFromDiags(ctx, diags), resp.Result.Set(ctx, out))
}

// cidrJoin is the function cidr_join.
type cidrJoin struct{}

func newCIDRJoin() function.Function { return cidrJoin{} }

func (cidrJoin) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "cidr_join"
}

func (cidrJoin) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:           "Gives the smallest block that holds all others",
		Description:       "Gives the smallest CIDR block that holds all the given ones: 10.0.0.0/24 and 10.0.1.0/24 are joined by 10.0.0.0/23.",
		Parameters:        []function.Parameter{function.StringParameter{Name: "block", Description: "A CIDR block."}},
		VariadicParameter: function.StringParameter{Name: "blocks", Description: "More CIDR blocks."},
		Return:            function.StringReturn{},
	}
}

func (cidrJoin) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var first string
	var more []string
	if resp.Error = req.Arguments.Get(ctx, &first, &more); resp.Error != nil {
		return
	}
	var joined netip.Prefix
	for i, s := range append([]string{first}, more...) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			resp.Error = function.NewArgumentFuncError(int64(i), fmt.Sprintf("%q is no CIDR block such as 10.0.0.0/16", s))
			return
		}
		p = p.Masked()
		if i == 0 {
			joined = p
			continue
		}
		if p.Addr().Is4() != joined.Addr().Is4() {
			resp.Error = function.NewArgumentFuncError(int64(i), fmt.Sprintf("%s and %s are of different address families", joined, p))
			return
		}
		for bits := min(joined.Bits(), p.Bits()); !joined.Contains(p.Addr()) || joined.Bits() > p.Bits(); bits-- {
			joined = netip.PrefixFrom(joined.Addr(), bits).Masked()
		}
	}
	resp.Error = resp.Result.Set(ctx, joined.String())
}
