package activities

import (
	"github.com/hykube/hykube/api/v1alpha1"
)

func things(names ...string) func(*crashScenario) {
	return func(sc *crashScenario) {
		for _, name := range names {
			sc.put("test-thing/"+name, m{"name": name, "size": "1"}, nil)
		}
	}
}

// instances puts two instances of a ResourceSet.
func instances(name, size string, lifecycle m) func(*crashScenario) {
	return func(sc *crashScenario) {
		for _, key := range []string{"0", "1"} {
			object := "test-thing/web[" + key + "]"
			sc.put(object, m{"name": name + key, "size": size}, lifecycle)
			sc.Stored["team:"+object].Object[v1alpha1.FieldInstance] = m{"set": "fleet", "setUID": "s"}
		}
	}
}

func stories() map[string]story {
	cbd := m{"createBeforeDestroy": true}
	one := func(lifecycle m) func(*crashScenario) {
		return func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "1"}, lifecycle) }
	}
	again := func(name, size string, lifecycle m) func(*crashScenario) {
		return func(sc *crashScenario) { sc.put("test-thing/a", m{"name": name, "size": size}, lifecycle) }
	}
	pair := func(name string, lifecycle m) func(*crashScenario) {
		return func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": name, "size": "1"}, lifecycle)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
		}
	}
	faulty := func(do func(*crashScenario), call string, faults ...string) func(*crashScenario) {
		return func(sc *crashScenario) {
			do(sc)
			sc.cloud.faults[call] = faults
		}
	}
	foreign := func(sc *crashScenario) { sc.cloud.put("", map[string]string{"name": "a", "size": "1"}) }
	imported := func(name, size string, lifecycle m) func(*crashScenario) {
		return func(sc *crashScenario) {
			lc := m{"import": m{"id": "id-1"}}
			for k, v := range lifecycle {
				lc[k] = v
			}
			sc.put("test-thing/a", m{"name": name, "size": size}, lc)
		}
	}
	moved := func(kind, name, size string, lifecycle m) func(*crashScenario) {
		return func(sc *crashScenario) {
			lc := m{"moved": m{"from": "test_thing.a"}}
			for k, v := range lifecycle {
				lc[k] = v
			}
			sc.put(kind, m{"name": name, "size": size}, lc)
			sc.delete("test-thing/a")
		}
	}
	// leftover creates an instance with a deposed one.
	leftover := func(sc *crashScenario) {
		one(cbd)(sc)
		sc.apply()
		sc.cloud.faults["delete a"] = []string{"refused"}
		again("a2", "1", cbd)(sc)
	}
	// inTheWay leaves an old instance of a resource that the next plan replaces.
	on := func(sc *crashScenario, name string, lifecycle m) {
		sc.put("test-thing/b", m{"name": name, "uses": "${test_thing.a.id}"}, lifecycle)
	}
	inTheWay := func(sc *crashScenario) {
		sc.cloud.strict = true
		one(nil)(sc)
		on(sc, "b", cbd)
		sc.apply()
		sc.cloud.faults["delete b"] = []string{"refused"}
		on(sc, "b2", cbd)
	}
	once := func(names ...string) map[string]int {
		made := map[string]int{}
		for _, n := range names {
			made[n] = 1
		}
		return made
	}
	never := m{"postconditions": []any{m{"condition": "${self.id == \"none\"}", "errorMessage": "no"}}}
	return map[string]story{
		"create":                      {nil, things("a"), []string{"a 1"}, once("a"), nil},
		"create that is refused once": {nil, faulty(things("a"), "create a", "refused"), []string{"a 1"}, once("a"), nil},
		"create that is throttled":    {nil, faulty(things("a"), "create a", "throttled", "throttled"), []string{"a 1"}, once("a"), nil},
		"create that breaks":          {nil, faulty(things("a"), "create a", "broken"), []string{"a 1"}, map[string]int{"a": 2}, nil},
		"update":                      {one(nil), again("a", "2", nil), []string{"a 2"}, once("a"), nil},
		"update that is refused once": {one(nil), faulty(again("a", "2", nil), "update a", "refused"), []string{"a 2"}, once("a"), nil},
		"update that breaks":          {one(nil), faulty(again("a", "2", nil), "update a", "broken"), []string{"a 2"}, once("a"), nil},
		"delete":                      {one(nil), func(sc *crashScenario) { sc.delete("test-thing/a") }, nil, once("a"), nil},
		"gone, and deleted": {one(nil), func(sc *crashScenario) {
			clear(sc.cloud.things)
			sc.delete("test-thing/a")
		}, nil, once("a"), nil},
		"delete that is throttled":     {one(nil), faulty(func(sc *crashScenario) { sc.delete("test-thing/a") }, "delete a", "throttled"), nil, once("a"), nil},
		"replace":                      {one(nil), again("a2", "1", nil), []string{"a2 1"}, once("a", "a2"), nil},
		"replace, create refused once": {one(nil), faulty(again("a2", "1", nil), "create a2", "refused"), []string{"a2 1"}, once("a", "a2"), nil},
		"replace, create throttled":    {one(nil), faulty(again("a2", "1", nil), "create a2", "throttled"), []string{"a2 1"}, once("a", "a2"), nil},
		"replace, create breaks":       {one(nil), faulty(again("a2", "1", nil), "create a2", "broken"), []string{"a2 1"}, map[string]int{"a": 1, "a2": 2}, nil},
		"replace of a pair":            {pair("a", nil), pair("a2", nil), []string{"a2 1", "b"}, once("a", "a2", "b"), nil},
		"new first":                    {one(cbd), again("a2", "1", cbd), []string{"a2 1"}, once("a", "a2"), nil},
		"new first, refused once":      {one(cbd), faulty(again("a2", "1", cbd), "create a2", "refused"), []string{"a2 1"}, once("a", "a2"), nil},
		"new first, throttled":         {one(cbd), faulty(again("a2", "1", cbd), "create a2", "throttled"), []string{"a2 1"}, once("a", "a2"), nil},
		"new first, breaks":            {one(cbd), faulty(again("a2", "1", cbd), "create a2", "broken"), []string{"a2 1"}, map[string]int{"a": 1, "a2": 2}, nil},
		"new first, delete refused":    {one(cbd), faulty(again("a2", "1", cbd), "delete a", "refused"), []string{"a2 1"}, once("a", "a2"), nil},
		"new first, of a pair":         {pair("a", cbd), pair("a2", cbd), []string{"a2 1", "b"}, once("a", "a2", "b"), nil},
		"old one that was left over":   {leftover, nil, []string{"a2 1"}, once("a", "a2"), nil},
		"old one left over, deleted":   {leftover, func(sc *crashScenario) { sc.delete("test-thing/a") }, nil, once("a", "a2"), nil},
		"old one left over, replaced":  {leftover, again("a3", "1", cbd), []string{"a3 1"}, once("a", "a2", "a3"), nil},
		"two old ones left over": {func(sc *crashScenario) {
			leftover(sc)
			sc.apply()
			sc.cloud.faults["delete a"] = []string{"refused"}
			sc.cloud.faults["delete a2"] = []string{"refused"}
			again("a3", "1", cbd)(sc)
		}, nil, []string{"a3 1"}, once("a", "a2", "a3"), nil},
		"old one left over, in the way": {inTheWay, func(sc *crashScenario) {
			on(sc, "b3", nil)
			again("a2", "1", nil)(sc)
		}, []string{"a2 1", "b3"}, once("a", "a2", "b", "b2", "b3"), nil},
		"old one left over, moved":      {leftover, moved("test-thing/n", "a2", "1", nil), []string{"a2 1"}, once("a", "a2"), nil},
		"taint":                         {one(nil), func(sc *crashScenario) { sc.taint("test-thing/a") }, []string{"a 1"}, map[string]int{"a": 2}, nil},
		"taint, new first":              {one(cbd), func(sc *crashScenario) { sc.taint("test-thing/a") }, []string{"a 1"}, map[string]int{"a": 2}, nil},
		"import":                        {foreign, imported("a", "1", nil), []string{"a 1"}, once("a"), []string{"a"}},
		"import and update":             {foreign, imported("a", "2", nil), []string{"a 2"}, once("a"), []string{"a"}},
		"import and replace":            {foreign, imported("a2", "1", nil), []string{"a2 1"}, once("a", "a2"), []string{"a"}},
		"import and replace, new first": {foreign, imported("a2", "1", cbd), []string{"a2 1"}, once("a", "a2"), []string{"a"}},
		"import, new first, refused":    {foreign, faulty(imported("a2", "1", cbd), "create a2", "refused"), []string{"a2 1"}, once("a", "a2"), []string{"a"}},
		"move":                          {one(nil), moved("test-thing/n", "a", "1", nil), []string{"a 1"}, once("a"), nil},
		"move and update":               {one(nil), moved("test-thing/n", "a", "2", nil), []string{"a 2"}, once("a"), nil},
		"move to another type":          {one(nil), moved("test-box/n", "a", "1", nil), []string{"a 1"}, once("a"), nil},
		"move and replace":              {one(nil), moved("test-box/n", "a2", "1", nil), []string{"a2 1"}, once("a", "a2"), nil},
		"move and replace, new first":   {one(nil), moved("test-box/n", "a2", "1", cbd), []string{"a2 1"}, once("a", "a2"), nil},
		"move that ended half-way and is not asked for any more": {one(nil), func(sc *crashScenario) {
			moved("test-thing/n", "a", "1", nil)(sc)
			sc.halfMoved("test-thing/a", "test-thing/n")
			sc.put("test-thing/n", m{"name": "a", "size": "1"}, nil)
		}, []string{"a 1"}, once("a"), nil},
		"forget": {one(nil), func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, m{"destroy": false})
			sc.delete("test-thing/a")
		}, []string{"a 1"}, once("a"), []string{"a"}},
		"forget one with an old one": {leftover, func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": "a2", "size": "1"}, m{"destroy": false})
			sc.apply()
			sc.delete("test-thing/a")
		}, []string{"a 1", "a2 1"}, once("a", "a2"), []string{"a", "a2"}},
		"replace that forgets":                {one(m{"destroy": false}), again("a2", "1", m{"destroy": false}), []string{"a 1", "a2 1"}, once("a", "a2"), []string{"a"}},
		"replace that forgets, refused":       {one(m{"destroy": false}), faulty(again("a2", "1", m{"destroy": false}), "create a2", "refused"), []string{"a 1", "a2 1"}, once("a", "a2"), []string{"a"}},
		"replace that forgets, breaks":        {one(m{"destroy": false}), faulty(again("a2", "1", m{"destroy": false}), "create a2", "broken"), []string{"a 1", "a2 1", "a2 1"}, map[string]int{"a": 1, "a2": 2}, []string{"a", "a2"}},
		"replace with a broken postcondition": {one(nil), again("a2", "1", never), []string{"a2 1"}, once("a", "a2"), nil},
		"new first with a broken postcondition": {one(cbd), again("a2", "1", m{"createBeforeDestroy": true, "postconditions": never["postconditions"]}),
			[]string{"a 1", "a2 1"}, once("a", "a2"), nil},
		"instances":         {nil, instances("a", "1", nil), []string{"a0 1", "a1 1"}, once("a0", "a1"), nil},
		"instances, update": {instances("a", "1", nil), instances("a", "2", nil), []string{"a0 2", "a1 2"}, once("a0", "a1"), nil},
		"instances, refused once": {instances("a", "1", nil), faulty(instances("a", "2", nil), "update a1", "refused"), []string{"a0 2", "a1 2"},
			once("a0", "a1"), nil},
		"instances, replace":   {instances("a", "1", nil), instances("b", "1", nil), []string{"b0 1", "b1 1"}, once("a0", "a1", "b0", "b1"), nil},
		"instances, new first": {instances("a", "1", cbd), instances("b", "1", cbd), []string{"b0 1", "b1 1"}, once("a0", "a1", "b0", "b1"), nil},
		"instances, with a broken postcondition": {instances("a", "1", nil), instances("b", "1", never), []string{"b0 1", "b1 1"},
			once("a0", "a1", "b0", "b1"), nil},
	}
}

// halfMoved writes the record of one object under the name of another as well, as a server does that is killed during a
// move.
func (sc *crashScenario) halfMoved(from, to string) {
	old, rec := sc.recordOf(from), sc.recordOf(to)
	rec.State, rec.Deposed, rec.Provider, rec.MovedFrom = old.State, old.Deposed, old.Provider, old.Object.UID
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
	sc.Stored["team:"+to].SetFinalizers([]string{v1alpha1.FinalizerState})
}
