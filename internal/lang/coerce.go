package lang

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// coercion converts a spec to a value that conforms to a block's schema, and reports each mismatch. It always returns a
// value of the right type, so that one mistake does not hide the next.
type coercion struct {
	// static is true in a dry run, in which all references are unknown. Each known value is then a literal of the spec.
	static bool
	// dry is true if all references are unknown, so that no value can be secret.
	dry bool
	// ephemeral allows ephemeral values in every attribute.
	ephemeral bool
	// hidden is the path of the enclosing field whose value is sensitive; empty outside of one. Names and keys below
	// this path may be secret, so diagnostics name the path instead.
	hidden string
	// refused is true within a value that may only be passed on; see passOnly. The coercion reports that refusal, but
	// no other problem within the value.
	refused bool
	// siblings are all attributes of the block or object that holds the current attribute.
	siblings []*schema.Attribute
	diags    diag.Diagnostics
	// mismatches has the kinds of the errors in diags.
	mismatches map[v1alpha1.Diagnostic]Mismatch
}

const (
	summaryWrongType = "Incorrect value type"
	summaryEphemeral = "Invalid use of ephemeral value"
)

func (c *coercion) fail(field, summary, format string, args ...any) {
	if c.refused {
		return
	}
	d := diag.Errorf(field, summary, format, args...)
	if c.hidden != "" {
		d.Attribute, d.Detail = c.hidden,
			"The value has the wrong type or content for this field. It comes from a sensitive value, so the details are not shown."
		if slices.Contains(c.diags, d) {
			return
		}
	}
	c.diags = append(c.diags, d)
}

// enter begins the conversion of the parts of a value with the given marks. It reports an ephemeral value where the
// schema would store it. The caller must call leave at the end.
func (c *coercion) enter(marks cty.ValueMarks, field string) (leave func()) {
	outer, refused := c.hidden, c.refused
	if _, ephemeral := marks[Ephemeral]; ephemeral && !c.ephemeral {
		c.fail(field, summaryEphemeral,
			"An ephemeral value is not stored, so only write-only arguments may use it. Refer to it in one of those, or use ephemeralasnull.")
	}
	if missing, held := missingIn(marks); held {
		c.fail(field, SummaryPassOnly, "%s",
			PassOnlyText("A value that is used for blocks or nested attributes", missing))
		c.refused = true
	}
	if len(marks) > 0 && outer == "" && !c.dry {
		c.hidden = field
	}
	return func() { c.hidden, c.refused = outer, refused }
}

func (c *coercion) warn(field, summary, format string, args ...any) {
	d := diag.Errorf(field, summary, format, args...)
	d.Severity = v1alpha1.SeverityWarning
	c.diags = append(c.diags, d)
}

// block converts one block. It treats null as a block without arguments, since the caller has decided whether the block
// may be absent.
func (c *coercion) block(b *schema.Block, v cty.Value, field string) cty.Value {
	v, marks := v.Unmark()
	defer c.enter(marks, field)()
	if !v.IsKnown() && !v.Type().IsObjectType() {
		if !mayBeObject(v.Type()) {
			c.wrongType(field, "an object", v.Type())
		}
		return cty.UnknownVal(b.ImpliedType()).WithMarks(marks)
	}
	vals, ok := entries(v)
	if !ok {
		c.wrongType(field, "an object", v.Type())
		return cty.UnknownVal(b.ImpliedType()).WithMarks(marks)
	}
	c.refuseUnknown(b.Attributes, b.Blocks, vals, field)
	out := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	c.attributes(b.Attributes, vals, out, field)
	for _, nb := range b.Blocks {
		out[nb.TypeName] = c.nestedBlock(nb, vals[nb.TypeName], diag.KeyField(field, nb.TypeName))
	}
	return cty.ObjectVal(out).WithMarks(marks)
}

func (c *coercion) attributes(attrs []*schema.Attribute, vals, out map[string]cty.Value, field string) {
	for _, a := range attrs {
		c.siblings = attrs
		out[a.Name] = c.attribute(a, vals[a.Name], diag.KeyField(field, a.Name))
	}
}

// attribute converts the value of an attribute. NilVal means that the attribute is not set.
func (c *coercion) attribute(a *schema.Attribute, v cty.Value, field string) cty.Value {
	if v != cty.NilVal && a.Configurable() && !a.WriteOnly && !c.ephemeral && holdsEphemeral(a, v) {
		c.fail(field, summaryEphemeral,
			"%q is stored, but Hykube does not store ephemeral values. Only write-only arguments may use one.%s",
			a.Name, c.writeOnly(a))
		return cty.UnknownVal(a.Type)
	}
	if v == cty.NilVal || v.IsNull() {
		if a.Required {
			c.mismatch(Mismatch{Kind: MissingArgument}, field, "Missing required argument",
				"The argument %q is required, but it is not set or null. Add it to the spec.%s", a.Name, describe(a))
		}
		switch {
		case v == cty.NilVal:
			return cty.NullVal(a.Type)
		case a.Type == cty.DynamicPseudoType && a.Nested == nil:
			return v // the provider may distinguish nulls by their types
		}
		_, marks := v.Unmark()
		return cty.NullVal(a.Type).WithMarks(marks)
	}
	if !a.Configurable() {
		c.mismatch(Mismatch{Kind: ReadOnlyArgument}, field, "Value for a read-only attribute",
			"Only the provider sets %q. Remove it from the spec; its value appears in the status.", a.Name)
		return cty.NullVal(a.Type)
	}
	if a.Deprecated && c.static {
		c.warn(field, "Argument is deprecated", "The provider has deprecated %q.%s", a.Name, describe(a))
	}
	if a.Nested != nil {
		return c.nestedAttribute(a, v, field)
	}
	return c.convert(a, v, field)
}

func describe(a *schema.Attribute) string {
	s, _, _ := strings.Cut(strings.TrimSpace(a.Description), "\n")
	if s == "" || len(s) > 200 {
		return ""
	}
	return " " + diag.Sentence(s)
}

// convert converts the value of an attribute without nested attributes, by Terraform's conversion rules.
func (c *coercion) convert(a *schema.Attribute, v cty.Value, field string) cty.Value {
	if a.Type == cty.DynamicPseudoType {
		if at, huge := findOutOfRange(v); huge {
			c.fail(diag.PathField(field, at), "Invalid number",
				"The number is infinite or out of range. Write one with an exponent between -1024 and 1024.")
			return cty.DynamicVal
		}
		return v
	}
	if c.static {
		c.extraFields(v, a.Type, field)
	}
	if missing, held := HoldsPassOnly(v); held && !v.Type().Equals(a.Type) && convert.GetConversion(v.Type(),
		optionalAttributes(a.Type, false)) == nil {
		c.fail(field, SummaryPassOnly, "%s", PassOnlyText("The conversion to "+article(a.Type.FriendlyName()), missing))
		return cty.UnknownVal(a.Type)
	}
	out, err := convertCollection(v, optionalAttributes(a.Type, false))
	if err != nil {
		// If the value holds a secret, the keys of a map may be secret, too. The path must not show them.
		if pe, ok := errors.AsType[cty.PathError](err); ok && (c.dry || !v.ContainsMarked()) {
			field = diag.PathField(field, pe.Path)
		}
		c.fail(field, summaryWrongType, "%s.", conversionText(fmt.Sprintf("%q", a.Name), err, v, a.Type, c.dry))
		return cty.UnknownVal(a.Type)
	}
	if at, huge := findOutOfRange(out); huge {
		c.fail(diag.PathField(field, at), "Invalid number",
			"The number is infinite or out of range. Write one with an exponent between -1024 and 1024.")
		return cty.UnknownVal(a.Type)
	}
	return out
}

// holdsEphemeral reports whether the attribute itself would store an ephemeral value. It ignores the values of nested
// attributes, since some of these may be write-only; their own conversion checks them.
func holdsEphemeral(a *schema.Attribute, v cty.Value) bool {
	if a.Nested != nil {
		return v.HasMark(Ephemeral)
	}
	if !v.ContainsMarked() {
		return false
	}
	found := false
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		found = found || v.HasMark(Ephemeral)
		return !found, nil
	})
	return found
}

// writeOnly returns a hint to use the write-only variant of an attribute, such as password_wo for password. It returns
// "" if there is none.
func (c *coercion) writeOnly(a *schema.Attribute) string {
	if slices.ContainsFunc(c.siblings,
		func(s *schema.Attribute) bool { return s.WriteOnly && s.Name == a.Name+"_wo" }) {
		return fmt.Sprintf(" Use %q instead.", a.Name+"_wo")
	}
	return ""
}

// optionalAttributes makes the attributes of objects in lists and sets optional; an omitted one is null. Legacy
// providers declare what looks like a nested block in this form, and Terraform accepts block syntax for it:
// https://developer.hashicorp.com/terraform/language/attr-as-blocks
func optionalAttributes(ty cty.Type, inside bool) cty.Type {
	switch {
	case ty.IsListType():
		return cty.List(optionalAttributes(ty.ElementType(), true))
	case ty.IsSetType():
		return cty.Set(optionalAttributes(ty.ElementType(), true))
	case ty.IsMapType():
		return cty.Map(optionalAttributes(ty.ElementType(), false))
	case ty.IsObjectType():
		atys := ty.AttributeTypes()
		var optional []string
		out := make(map[string]cty.Type, len(atys))
		for name, aty := range atys {
			out[name] = optionalAttributes(aty, false)
			if inside {
				optional = append(optional, name)
			}
		}
		return cty.ObjectWithOptionalAttrs(out, optional)
	default:
		return ty
	}
}

// extraFields reports fields of an object that the target type lacks. The conversion would drop them silently.
func (c *coercion) extraFields(v cty.Value, ty cty.Type, field string) {
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return
	}
	switch from := v.Type(); {
	case ty.IsObjectType() && from.IsObjectType():
		vals := v.AsValueMap()
		for _, k := range sortedKeys(vals) {
			if !ty.HasAttribute(k) {
				c.unknown(field, k, diag.DidYouMean(k, sortedKeys(ty.AttributeTypes())))
				continue
			}
			c.extraFields(vals[k], ty.AttributeType(k), diag.KeyField(field, k))
		}
	case ty.IsMapType() && from.IsObjectType():
		vals := v.AsValueMap()
		for _, k := range sortedKeys(vals) {
			c.extraFields(vals[k], ty.ElementType(), diag.KeyField(field, k))
		}
	case (ty.IsListType() || ty.IsSetType()) && from.IsTupleType():
		for i, e := range v.AsValueSlice() {
			c.extraFields(e, ty.ElementType(), diag.IndexField(field, i))
		}
	}
}

func (c *coercion) nestedAttribute(a *schema.Attribute, v cty.Value, field string) cty.Value {
	elem := cty.Object(schema.AttributeTypes(a.Nested.Attributes))
	one := func(e cty.Value, field string) cty.Value {
		e, marks := e.Unmark()
		defer c.enter(marks, field)()
		switch {
		case e.IsNull():
			return cty.NullVal(elem).WithMarks(marks)
		case !e.IsKnown():
			if !mayBeObject(e.Type()) {
				c.wrongType(field, "an object", e.Type())
			}
			return cty.UnknownVal(elem).WithMarks(marks)
		}
		vals, ok := entries(e)
		if !ok {
			c.wrongType(field, "an object", e.Type())
			return cty.UnknownVal(elem).WithMarks(marks)
		}
		c.refuseUnknown(a.Nested.Attributes, nil, vals, field)
		out := make(map[string]cty.Value, len(a.Nested.Attributes))
		c.attributes(a.Nested.Attributes, vals, out, field)
		return cty.ObjectVal(out).WithMarks(marks)
	}
	return c.nested(a.Nested.Nesting, elem, a.Type, v, field, one)
}

// nestedBlock converts all blocks of one type. NilVal means that there are none.
func (c *coercion) nestedBlock(nb *schema.NestedBlock, v cty.Value, field string) cty.Value {
	if v == cty.NilVal || v.IsNull() {
		if nb.MinItems > 0 {
			c.mismatch(Mismatch{Kind: MissingBlock}, field, "Missing required block",
				"At least %d block %q is required. Add it to the spec.", nb.MinItems, nb.TypeName)
		}
		return schema.EmptyNested(nb)
	}
	if nb.Block.Deprecated && c.static {
		c.warn(field, "Block is deprecated", "The provider has deprecated %q.", nb.TypeName)
	}
	// As in Terraform's JSON syntax, a single block may be written with or without a list around it.
	switch raw, marks := v.Unmark(); nb.Nesting {
	case schema.NestingList, schema.NestingSet:
		if raw.Type().IsObjectType() && !raw.IsNull() {
			v = cty.TupleVal([]cty.Value{raw}).WithMarks(marks)
		}
	case schema.NestingSingle, schema.NestingGroup:
		if raw.Type().IsTupleType() && raw.IsKnown() && raw.LengthInt() == 1 {
			v, field = raw.AsValueSlice()[0].WithMarks(marks), diag.IndexField(field, 0)
		}
	}
	out := c.nested(nb.Nesting, nb.Block.ImpliedType(), nb.ImpliedType(), v, field,
		func(e cty.Value, field string) cty.Value {
			if e.IsNull() {
				c.fail(field, "Missing block", "A block %q is null. Remove it, or set its arguments.", nb.TypeName)
				return cty.UnknownVal(nb.Block.ImpliedType())
			}
			return c.block(nb.Block, e, field)
		})
	c.countBlocks(nb, out, field)
	return out
}

func (c *coercion) countBlocks(nb *schema.NestedBlock, v cty.Value, field string) {
	v, _ = v.Unmark()
	if nb.Nesting != schema.NestingList && nb.Nesting != schema.NestingSet || !v.IsKnown() || v.IsNull() {
		return
	}
	// Unknown elements of a set may turn out to be equal. So MaxItems applies only to a list or to a wholly known
	// value.
	n := int64(v.LengthInt())
	if n < nb.MinItems {
		c.fail(field, "Too few blocks", "At least %d %q are required, but there are %d.", nb.MinItems, nb.TypeName, n)
	}
	if nb.MaxItems > 0 && n > nb.MaxItems && (nb.Nesting == schema.NestingList || v.IsWhollyKnown()) {
		c.fail(field, "Too many blocks", "At most %d %q are allowed, but there are %d.", nb.MaxItems, nb.TypeName, n)
	}
}

// nested converts a nested block or attribute of any nesting mode, element by element.
func (c *coercion) nested(nesting schema.Nesting, elem, ty cty.Type, v cty.Value, field string,
	one func(cty.Value, string) cty.Value) cty.Value {
	if nesting == schema.NestingSingle || nesting == schema.NestingGroup {
		return one(v, field)
	}
	v, marks := v.Unmark()
	defer c.enter(marks, field)()
	if !v.IsKnown() {
		if t := v.Type(); !mayNest(nesting, t) {
			c.wrongType(field, nestingText(nesting), t)
		}
		return cty.UnknownVal(ty).WithMarks(marks)
	}
	if nesting == schema.NestingMap {
		vals, ok := entries(v)
		if !ok {
			c.wrongType(field, nestingText(nesting), v.Type())
			return cty.UnknownVal(ty).WithMarks(marks)
		}
		for _, k := range sortedKeys(vals) {
			vals[k] = one(vals[k], diag.KeyField(field, k))
		}
		return schema.MapVal(vals, elem).WithMarks(marks)
	}
	if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		c.wrongType(field, nestingText(nesting), t)
		return cty.UnknownVal(ty).WithMarks(marks)
	}
	vals := v.AsValueSlice()
	for i, e := range vals {
		vals[i] = one(e, diag.IndexField(field, i))
	}
	if nesting == schema.NestingList {
		return schema.ListVal(vals, elem).WithMarks(marks)
	}
	out, ok := schema.SetVal(vals, elem)
	if !ok {
		c.fail(field, summaryWrongType, "All elements of the set must have the same type.")
		return cty.UnknownVal(ty).WithMarks(marks)
	}
	return out.WithMarks(marks)
}

// mayNest reports whether an unknown value of the type may turn out to be a collection of objects.
func mayNest(n schema.Nesting, ty cty.Type) bool {
	switch {
	case ty == cty.DynamicPseudoType:
		return true
	case ty.IsObjectType() || ty.IsTupleType():
		return ty.IsObjectType() == (n == schema.NestingMap)
	case ty.IsCollectionType():
		return ty.IsMapType() == (n == schema.NestingMap) && mayBeObject(ty.ElementType())
	default:
		return false
	}
}

// entries returns the elements of an object or a map by name. For null, it returns an empty map. It returns false for a
// value of another type, and for an unknown map.
func entries(v cty.Value) (map[string]cty.Value, bool) {
	if v.IsNull() {
		return map[string]cty.Value{}, true
	}
	ty := v.Type()
	if !ty.IsObjectType() && !ty.IsMapType() {
		return nil, false
	}
	vals := map[string]cty.Value{}
	if !v.IsKnown() {
		// The attributes of an unknown object are known by name. Their values are unknown.
		if ty.IsMapType() {
			return nil, false
		}
		for k := range ty.AttributeTypes() {
			vals[k] = v.GetAttr(k)
		}
		return vals, true
	}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		k, _ = k.Unmark()
		vals[k.AsString()] = e
	}
	return vals, true
}

func mayBeObject(ty cty.Type) bool {
	return ty == cty.DynamicPseudoType || ty.IsObjectType() || ty.IsMapType()
}

func (c *coercion) wrongType(field, want string, got cty.Type) {
	c.fail(field, summaryWrongType, "%s is needed here, not %s.", sentenceStart(want), article(got.FriendlyName()))
}

// metaArguments maps Terraform's meta-arguments to the hint about their equivalent in a Hykube object.
var metaArguments = map[string]string{
	"count":       "Write a ResourceSet with spec.count, and this object as its template.",
	"depends_on":  "Use lifecycle.dependsOn of the object.",
	"for_each":    "Write a ResourceSet with spec.forEach, and this object as its template.",
	"lifecycle":   "Put it beside spec, not into it.",
	"provider":    "Use lifecycle.providerConfig of the object.",
	"provisioner": "There are no provisioners.",
}

// IsMetaArgument reports whether Terraform has a meta-argument of that name. Hykube objects have these in lifecycle,
// not in spec.
func IsMetaArgument(name string) bool { return metaArguments[name] != "" }

func (c *coercion) refuseUnknown(attrs []*schema.Attribute, blocks []*schema.NestedBlock, vals map[string]cty.Value,
	field string) {
	if len(vals) == 0 {
		return
	}
	known := make(map[string]bool, len(attrs)+len(blocks))
	for _, a := range attrs {
		known[a.Name] = true
	}
	for _, nb := range blocks {
		known[nb.TypeName] = true
	}
	for _, k := range sortedKeys(vals) {
		if known[k] {
			continue
		}
		hint := ""
		if field == "spec" && metaArguments[k] != "" {
			hint = " " + metaArguments[k]
		} else if hint = diag.DidYouMean(k, configurable(attrs, blocks)); hint == "" {
			hint = fmt.Sprintf(" Remove it, or see kubectl explain for the fields of %s.", field)
		}
		c.unknown(field, k, hint)
	}
}

func configurable(attrs []*schema.Attribute, blocks []*schema.NestedBlock) []string {
	var names []string
	for _, a := range attrs {
		if a.Configurable() {
			names = append(names, a.Name)
		}
	}
	for _, nb := range blocks {
		names = append(names, nb.TypeName)
	}
	return names
}
