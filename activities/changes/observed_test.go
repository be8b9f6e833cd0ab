package changes

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
)

// TestObserved expects that each change of a resource in a Module with the mode Observe is denied, unless it only records something.
func TestObserved(t *testing.T) {
	changeOf := func(action v1alpha1.Action, edit func(*ledger.Change)) *ledger.Change {
		c := &ledger.Change{}
		c.Action, c.Object = action, v1alpha1.ObjectReference{Name: "module.shop:a", Set: "shop"}
		if edit != nil {
			edit(c)
		}
		return c
	}
	from := &v1alpha1.ObjectReference{Name: "module.shop:a", Set: "shop"}
	for name, tc := range map[string]struct {
		change  *ledger.Change
		deleted bool
		denied  bool
	}{
		"create":                     {change: changeOf(v1alpha1.ActionCreate, nil), denied: true},
		"update":                     {change: changeOf(v1alpha1.ActionUpdate, nil), denied: true},
		"replace":                    {change: changeOf(v1alpha1.ActionReplace, nil), denied: true},
		"delete":                     {change: changeOf(v1alpha1.ActionDelete, nil), denied: true},
		"run an action":              {change: changeOf(v1alpha1.ActionInvoke, nil), denied: true},
		"delete a deleted Module":    {change: changeOf(v1alpha1.ActionDelete, nil), deleted: true, denied: true},
		"forget":                     {change: changeOf(v1alpha1.ActionForget, nil), denied: true},
		"forget of a deleted Module": {change: changeOf(v1alpha1.ActionForget, nil), deleted: true},
		"read":                       {change: changeOf(v1alpha1.ActionRead, nil)},
		"nothing":                    {change: changeOf(v1alpha1.ActionNoOp, nil)},
		"import":                     {change: changeOf(v1alpha1.ActionNoOp, func(c *ledger.Change) { c.Importing = &v1alpha1.PlanImport{ID: "1"} }), denied: true},
		"move":                       {change: changeOf(v1alpha1.ActionNoOp, func(c *ledger.Change) { c.PreviousAddress = "module.shop.test_thing.b" }), denied: true},
		"move out of the Module": {change: changeOf(v1alpha1.ActionUpdate, func(c *ledger.Change) {
			c.Object, c.Preconditions.From = v1alpha1.ObjectReference{Name: "a"}, from
		}), denied: true},
		"another Module":                  {change: changeOf(v1alpha1.ActionDelete, func(c *ledger.Change) { c.Object.Name, c.Object.Set = "module.web:a", "web" })},
		"a ResourceSet with the name":     {change: changeOf(v1alpha1.ActionDelete, func(c *ledger.Change) { c.Object.Name = "a[0]" })},
		"an object outside of any Module": {change: changeOf(v1alpha1.ActionDelete, func(c *ledger.Change) { c.Object = v1alpha1.ObjectReference{Name: "a"} })},
	} {
		o := &observed{namespace: "prod", modules: []index.Observed{{Name: "shop", Deleting: tc.deleted}}, found: map[string]bool{}}
		o.add(tc.change)
		if denials := o.denials(); (len(denials) > 0) != tc.denied {
			t.Errorf("%s: %+v", name, denials)
		}
	}
}
