package resolve

import "testing"

func TestAdoptionOf(t *testing.T) {
	for line, want := range map[string][2]string{
		"sim_network.main net-1":             {"sim_network.main", "net-1"},
		"sim-network/main,net-1":             {"sim-network/main", "net-1"},
		"sim_network.main\t  a b,c":          {"sim_network.main", "a b,c"},
		`sim_network.web["a b,c"] net-1`:     {`sim_network.web["a b,c"]`, "net-1"},
		`"sim_network.web[""a""]",net-1`:     {`sim_network.web["a"]`, "net-1"},
		`sim_network.main,"net,1"`:           {"sim_network.main", "net,1"},
		`sim_network.main, net-1`:            {"sim_network.main", "net-1"},
		"sim_network.main":                   {},
		"sim_network.main,":                  {},
		`"sim_network.main"`:                 {},
		`"sim_network.main","net-1","extra"`: {},
	} {
		address, id, err := adoptionOf(line)
		if got := [2]string{address, id}; got != want || (err != nil) != (want[0] == "") {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
}
