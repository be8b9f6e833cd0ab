package v1alpha1

import "testing"

func TestModulePaths(t *testing.T) {
	tests := []struct{ written, path, rest string }{
		{"module.shop", "module.shop", ""},
		{"module.shop.sim_subnet.a", "module.shop", ".sim_subnet.a"},
		{`module.shop.module.net["eu"].sim_subnet.a[3]`, `module.shop.module.net["eu"]`, ".sim_subnet.a[3]"},
		{"module.shop.module.net[0].module.x:a", "module.shop.module.net[0].module.x", ":a"},
		{`module.a["x]:\"y.module.b"].x.y`, `module.a["x]:\"y.module.b"]`, ".x.y"},
		{`module.a["x/y"]:b`, `module.a["x\u002fy"]`, ":b"},
		{"sim_subnet.a", "", ""},
		{"module.", "", ""},
		{"module.a[x].b", "", ""},
		{`module.a["x`, "", ""},
	}
	for _, tc := range tests {
		path, rest, ok := CutModulePath(tc.written)
		if ok != (tc.path != "") || ok && (path != tc.path || rest != tc.rest) {
			t.Errorf("%s: got %q, %q, %t", tc.written, path, rest, ok)
		}
		if !ok {
			continue
		}
		caller, call, key := LastCall(path)
		if again := ModulePath(caller, call, key); again != path {
			t.Errorf("%s: the calls give %q", path, again)
		}
		if again, _, _ := CutModulePath(ShownModule(path)); again != path {
			t.Errorf("%s: as shown, it is %q", path, again)
		}
	}
}

func TestInstancesInModules(t *testing.T) {
	const inNet = `module.shop.module.net["a/b"]:`
	for name, want := range map[string]bool{`module.shop.module.net["eu"]:a`: false, `module.shop.module.net["eu"]:a[3]`: true, "module.shop:a": false} {
		if IsInstanceName(name) != want {
			t.Errorf("%s: not %t", name, want)
		}
	}
	own := InstanceName(`module.shop.module.net["a\u002fb"]:a`, InstanceKey{Named: true, Name: "x/y"})
	name, key, ok := ParseInstanceName(own)
	if !ok || name != `module.shop.module.net["a\u002fb"]:a` || key.Name != "x/y" || ShownName(own) != inNet+`a["x/y"]` {
		t.Errorf("%s: got %q %v %t, shown as %s", own, name, key, ok, ShownName(own))
	}
	if CompareNames("module.a:b[10]", "module.a:b[9]") <= 0 || CompareNames("module.a:b", "module.b:a") >= 0 {
		t.Error("names in modules are ordered by module, name and key")
	}
}

func TestNamesOfModuleObjects(t *testing.T) {
	tests := []struct{ name, path, inner string }{
		{`module.shop.module.net["eu:x"]:a["b:c"]`, `module.shop.module.net["eu:x"]`, `a["b:c"]`},
		{"module.shop:a", "module.shop", "a"},
		{"web[0]", "", "web[0]"},
		{"module.x", "", "module.x"},               // a stored object may have this name
		{`module.x["a:b"]`, "", `module.x["a:b"]`}, // and so may the template of a ResourceSet
		{`module.x["module.y:b"]`, "", `module.x["module.y:b"]`},
	}
	for _, tc := range tests {
		path, inner := SplitModuleObjectName(tc.name)
		if path != tc.path || inner != tc.inner || ModuleObjectName(path, inner) != tc.name {
			t.Errorf("%s: got %q and %q", tc.name, path, inner)
		}
	}
}
