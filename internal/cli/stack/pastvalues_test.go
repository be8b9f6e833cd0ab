package stack

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestValuesBefore computes earlier values from those of today and the later changes.
func TestValuesBefore(t *testing.T) {
	raw := func(text string) *runtime.RawExtension {
		if text == "" {
			return nil
		}
		return &runtime.RawExtension{Raw: []byte(text)}
	}
	change := func(plan, address, before string, edit ...func(*v1alpha1.PlanChange)) pastChange {
		c := &v1alpha1.PlanChange{Address: address, Before: raw(before)}
		for _, e := range edit {
			e(c)
		}
		return pastChange{plan, c}
	}
	today := map[string]string{"sim_network.main": `{"id":"n","cidr":"now"}`}
	for why, tc := range map[string]struct {
		later   []pastChange
		removed []v1alpha1.PlanRecord
		want    []string // address, values or why they are unknown, next plan
		gaps    int
	}{
		"nothing changed": {want: []string{`sim_network.main {"id":"n","cidr":"now"} `}},
		"two updates: the values before the first": {
			later: []pastChange{change("p-2", "sim_network.main", `{"cidr":"then"}`), change("p-3", "sim_network.main", `{"cidr":"between"}`)},
			want:  []string{`sim_network.main {"cidr":"then"} p-2`},
		},
		"created later":                      {later: []pastChange{change("p-2", "sim_network.main", "")}, want: nil},
		"created later, and updated":         {later: []pastChange{change("p-2", "sim_network.main", ""), change("p-3", "sim_network.main", `{}`)}, want: nil},
		"imported later":                     {later: []pastChange{change("p-2", "sim_network.main", `{}`, func(c *v1alpha1.PlanChange) { c.Importing = &v1alpha1.PlanImport{ID: "n"} })}, want: nil},
		"destroyed and created again":        {later: []pastChange{change("p-2", "sim_network.main", `{"id":"old"}`), change("p-3", "sim_network.main", "null")}, want: []string{`sim_network.main {"id":"old"} p-2`}},
		"destroyed later, and not there now": {later: []pastChange{change("p-2", "sim_disk.gone", `{"id":"d"}`)}, want: []string{`sim_disk.gone {"id":"d"} p-2`, `sim_network.main {"id":"n","cidr":"now"} `}},
		"of another stack":                   {later: []pastChange{change("p-2", "other.resource", `{"id":"x"}`)}, want: []string{`sim_network.main {"id":"n","cidr":"now"} `}},
		"drift: what was recorded, and not what was read": {
			later: []pastChange{change("p-2", "sim_network.main", `{"cidr":"rogue"}`, func(c *v1alpha1.PlanChange) { c.Recorded = raw(`{"cidr":"then"}`) })},
			want:  []string{`sim_network.main {"cidr":"then"} p-2`},
		},
		"moved later": {
			later: []pastChange{change("p-2", "sim_network.main", `{"cidr":"then"}`, func(c *v1alpha1.PlanChange) { c.PreviousAddress = "sim_network.old" })},
			want:  []string{`sim_network.old {"cidr":"then"} p-2`},
		},
		"withheld values": {
			later: []pastChange{change("p-2", "sim_network.main", "", func(c *v1alpha1.PlanChange) { c.ValuesWithheld = true })},
			want:  []string{"sim_network.main you may not get the object p-2"},
		},
		"a removed plan changed it": {
			removed: []v1alpha1.PlanRecord{{Plan: v1alpha1.PlanReference{Name: "p-2"}, MoreChanges: 3, Changes: []v1alpha1.PlanRecordChange{
				{Address: "sim_network.main", Outcome: v1alpha1.ChangeDone}, {Address: "sim_disk.gone", Outcome: v1alpha1.ChangeSkipped},
			}}},
			want: []string{"sim_network.main plan p-2, which is removed, changed it p-2"}, gaps: 1,
		},
	} {
		t.Run(why, func(t *testing.T) {
			current := map[string]json.RawMessage{}
			for address, values := range today {
				current[address] = json.RawMessage(values)
			}
			past, gaps := valuesBefore(current, tc.later, tc.removed, func(address string) bool { return strings.HasPrefix(address, "sim_") })
			var got []string
			for _, r := range past {
				got = append(got, r.Address+" "+r.Unknown+string(r.Values)+" "+r.ChangedBy)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(gaps) != tc.gaps {
				t.Errorf("gaps %q; resources (-want +got):\n%s", gaps, diff)
			}
		})
	}
}

// TestPlanAt finds the plan that --at names.
func TestPlanAt(t *testing.T) {
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	of := func(name string, number int64, trigger v1alpha1.PlanTrigger, minute int) v1alpha1.Plan {
		p := v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Status.Stack = &v1alpha1.PlanStack{Number: number, Trigger: trigger}
		if minute > 0 {
			p.Status.FinishedAt = &metav1.Time{Time: began.Add(time.Duration(minute) * time.Minute)}
		}
		return p
	}
	plans := []v1alpha1.Plan{of("web-3", 3, "", 0), of("web-drift-x-2", 2, v1alpha1.TriggerDriftCheck, 20), of("web-2", 2, "", 10), of("web-1", 1, "", 5)}
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for at, want := range map[string]string{
		"web-2": "web-2", "2": "web-2", "web-3": "web-3", "2026-11-24T12:09:59Z": "web-1", "2026-11-24T13:10:00+01:00": "web-2", "2027-01-01T00:00:00Z": "web-drift-x-2",
		"2026-11-24T12:00:00Z": "", "web-9": "", "yesterday": "",
		"5m": "web-drift-x-2", "10m1s": "web-2", "1h": "", "-5m": "", "5": "", "12:10": "web-2", "12:09:59": "web-1", "12:31Z": "", "25:00": "", "1m": "1m",
	} {
		p, err := planAt(append(plans, of("1m", 0, "", 0)), s, at, began.Add(30*time.Minute))
		if got := ""; p != nil {
			if got = p.Name; got != want {
				t.Errorf("%s: got %s, want %s", at, got, want)
			}
		} else if want != "" || !strings.Contains(err.Error(), "kubectl hykube stack history web") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
