package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/tests/harness/machine"
)

// Units of measurements.
const (
	seconds = "s"
	mib     = "MiB"
	percent = "%"
	times   = "×"
)

// results holds the measurements of one run. Ratios compare measurements of the same run only.
type results struct {
	Date       string `json:"date"`
	Go         string `json:"go"`
	Processors int    `json:"processors"`
	// Compared is the version of Terraform or OpenTofu on the machine; "" without one.
	Compared     string        `json:"compared,omitempty"`
	Measurements []measurement `json:"measurements"`
}

// measurement is one figure.
type measurement struct {
	// What was measured. Equal measurements with other numbers of resources have the same text.
	What string `json:"what"`
	// Resources is the number of resources that the measurement is about; 0 if it does not depend on one.
	Resources int     `json:"resources,omitempty"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	// More means that the bench stopped what it measured at this value.
	More bool `json:"more,omitempty"`
	// AtMost and AtLeast are what Hykube aims at; 0 means no goal.
	AtMost  float64 `json:"atMost,omitempty"`
	AtLeast float64 `json:"atLeast,omitempty"`
}

func newResults() *results {
	r := &results{Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), Processors: runtime.NumCPU()}
	if path := machine.TerraformOrTofu.Path(); path != "" {
		if out, err := exec.Command(path, "version").Output(); err == nil {
			r.Compared, _, _ = strings.Cut(string(out), "\n")
		}
	}
	return r
}

// add prints a measurement and keeps it.
func (r *results) add(m measurement) {
	r.Measurements = append(r.Measurements, m)
	what, verdict := m.What, m.verdict()
	if m.Resources > 0 {
		what += fmt.Sprintf(", %d resources", m.Resources)
	}
	if verdict != "" {
		verdict = fmt.Sprintf(" (%s: %s)", verdict, m.goal())
	}
	fmt.Printf("%-76s %s%s\n", what, m, verdict)
}

// took adds a duration.
func (r *results) took(what string, resources int, d time.Duration) {
	r.add(measurement{What: what, Resources: resources, Value: d.Seconds(), Unit: seconds})
}

// String returns the value with its unit.
func (m measurement) String() string {
	if m.More {
		return "more than " + figure(m.Value, m.Unit)
	}
	return figure(m.Value, m.Unit)
}

// figure returns a value with three significant digits and its unit.
func figure(v float64, unit string) string {
	switch {
	case unit == seconds && v < 1:
		return fmt.Sprintf("%.0f ms", v*1000)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	default:
		return fmt.Sprintf("%.2f %s", v, unit)
	}
}

// goal returns a goal for the apply of n resources; 0 if they are too few to judge by.
func goal(n int, value float64) float64 {
	if n < 10_000 {
		return 0
	}
	return value
}

// goal returns what Hykube aims at, or "".
func (m measurement) goal() string {
	switch {
	case m.AtMost > 0:
		return "at most " + figure(m.AtMost, m.Unit)
	case m.AtLeast > 0:
		return "at least " + figure(m.AtLeast, m.Unit)
	default:
		return ""
	}
}

// verdict returns whether the measurement meets its goal, or "" without a goal.
func (m measurement) verdict() string {
	switch {
	case m.goal() == "":
		return ""
	case m.AtMost > 0 && m.Value > m.AtMost, m.AtLeast > 0 && m.Value < m.AtLeast:
		return "missed"
	default:
		return "met"
	}
}

// find returns the values of a measurement by the number of resources, without those at which the bench stopped it.
func (r *results) find(what string) map[int]float64 {
	out := map[int]float64{}
	for _, m := range r.Measurements {
		if m.What == what && !m.More {
			out[m.Resources] = m.Value
		}
	}
	return out
}

// growth adds, for a measurement, its value with the most resources as a multiple of that with the fewest.
func (r *results) growth(what string, atMost float64) {
	values := r.find(what)
	var sizes []int
	for n := range values {
		sizes = append(sizes, n)
	}
	if len(sizes) < 2 {
		return
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	r.add(measurement{What: fmt.Sprintf("%s: %d resources, as a multiple of %d", what, most, least), Value: values[most] / values[least], Unit: times, AtMost: atMost})
}

// table returns the measurements as a table in Markdown.
func (r *results) table() string {
	var out strings.Builder
	out.WriteString("| What | Resources | Measured | Goal | |\n|---|---|---|---|---|\n")
	for _, m := range r.Measurements {
		n := ""
		if m.Resources > 0 {
			n = fmt.Sprint(m.Resources)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", m.What, n, m, m.goal(), m.verdict())
	}
	return out.String()
}

// write writes the results as JSON and as a plot to a directory, and the table into a page.
func (r *results) write(dir, page string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return errors.Join(r.plot(filepath.Join(dir, "bench.svg")), r.intoPage(page))
}

// The comments around the table in a page.
const (
	tableBegin = "<!-- The next lines are written by make bench. -->\n"
	tableEnd   = "<!-- The lines above are written by make bench. -->\n"
)

// intoPage writes the table into a page, in place of the former one.
func (r *results) intoPage(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, found := strings.Cut(rest, tableEnd)
	if !ok || !found {
		return fmt.Errorf("write table into %s: it lacks the lines %q and %q", page, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return os.WriteFile(page, []byte(before+tableBegin+"\n"+r.caption()+"\n\n"+r.table()+"\n"+tableEnd+after), 0o644)
}

// caption returns when and on what the results were measured.
func (r *results) caption() string {
	text := fmt.Sprintf("Measured on %s with %d processors and %s", r.Date, r.Processors, r.Go)
	if r.Compared != "" {
		text += ", compared with " + r.Compared
	}
	return text + "."
}
